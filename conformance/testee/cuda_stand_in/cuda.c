/* A stand-in for the CUDA driver library, so that the CUDA path can be tested without a card.
 *
 * It is not an emulator. It manages memory and streams, and reads only the kernels and their parameters from PTX. It runs
 * three kernels of golden/device/kernels.cu, which are written again below. It is as strict as the driver: contexts must
 * be current, handles alive, sizes and alignments right. Streams are lazy: queued work runs when a caller waits. The name
 * of the device is "stand-in", so that results from it can be recognized.
 *
 * Built by tests/devices/device.rs: cc -shared -fPIC -o libcuda.so.1 cuda.c */

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { OK = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NOT_INITIALIZED = 3, NO_DEVICE = 100, INVALID_DEVICE = 101,
       INVALID_IMAGE = 200, INVALID_CONTEXT = 201, INVALID_PTX = 218, INVALID_HANDLE = 400, NOT_FOUND = 500,
       INVALID_ADDRESS = 700, TOO_MANY_RESOURCES = 701, LAUNCH_TIMEOUT = 702 };

#define DEVICES 2
#define STREAMS 64
#define BLOCKS 4096
#define EVENTS 4096
#define FUNCTIONS 64

typedef struct { uint64_t base, size; int alive; } Block;
typedef struct Op { int kind; uint64_t to, from, size; int event; unsigned event_generation; int function; unsigned grid[3], block[3], shared;
                    uint8_t args[256]; struct Op *next; } Op;
typedef struct { int alive; int device; Op *first, *last; } Stream;
typedef struct { int alive; int recorded; int pending; unsigned generation; } Event;
typedef struct { int alive; char name[128]; int count; int size[32]; size_t allowed; uintptr_t module; } Function;
typedef struct { uintptr_t module; char name[64]; size_t size; uint64_t value; } Global;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int initialized;
static Block blocks[BLOCKS];
static Stream streams[STREAMS]; /* 0 and 1 are the default streams of the two devices */
static Event events[EVENTS];
static Function functions[FUNCTIONS];
static Global globals[FUNCTIONS];
static uintptr_t modules;
static int contexts[DEVICES] = {1, 2};
static __thread int current; /* device + 1 */
static uint64_t used;

#define ENTER() do { if (!initialized) return NOT_INITIALIZED; pthread_mutex_lock(&lock); } while (0)
#define LEAVE(code) do { int code_ = (code); pthread_mutex_unlock(&lock); return code_; } while (0)

int cuInit(unsigned flags) {
    if (flags) return INVALID_VALUE;
    initialized = 1;
    for (int i = 0; i < DEVICES; i++) { streams[i].alive = 1; streams[i].device = i; }
    return OK;
}
int cuDriverGetVersion(int *version) { *version = 12000; return OK; }
int cuDeviceGetCount(int *count) { if (!initialized) return NOT_INITIALIZED; *count = DEVICES; return OK; }
int cuDeviceGet(int *device, int ordinal) { if (ordinal < 0 || ordinal >= DEVICES) return INVALID_DEVICE; *device = ordinal; return OK; }
int cuDeviceGetName(char *name, int size, int device) { snprintf(name, size, "stand-in %d", device); return OK; }
int cuDeviceTotalMem_v2(size_t *bytes, int device) { (void)device; *bytes = 64u << 20; return OK; }
int cuMemGetInfo_v2(size_t *available, size_t *total) { if (!current) return INVALID_CONTEXT; *total = 64u << 20; *available = *total - used; return OK; }

int cuDeviceGetAttribute(int *value, int attribute, int device) {
    if (device < 0 || device >= DEVICES) return INVALID_DEVICE;
    switch (attribute) {
    case 1: *value = 1024; break;                       /* threads per block */
    case 2: case 3: *value = 1024; break;               /* block x, y */
    case 4: *value = 64; break;                         /* block z */
    case 8: *value = 49152; break;                      /* shared memory */
    case 10: *value = 32; break;                        /* warp */
    case 12: *value = 65536; break;                     /* registers */
    case 13: *value = 1000000; break;                   /* clock, kHz */
    case 16: *value = 4; break;                         /* multiprocessors */
    case 38: *value = 1 << 20; break;                   /* L2 */
    case 75: *value = 7; break;                         /* compute capability */
    case 76: *value = 5; break;
    default: *value = 0;
    }
    return OK;
}

int cuDevicePrimaryCtxRetain(void **context, int device) { if (device < 0 || device >= DEVICES) return INVALID_DEVICE; *context = &contexts[device]; return OK; }
int cuDevicePrimaryCtxRelease_v2(int device) { (void)device; return OK; }
int cuCtxSetCurrent(void *context) { current = context ? *(int *)context : 0; return OK; }
int cuCtxGetCurrent(void **context) { *context = current ? &contexts[current - 1] : NULL; return OK; }

static Block *block_of(uint64_t address, uint64_t size) {
    for (int i = 0; i < BLOCKS; i++)
        if (blocks[i].alive && address >= blocks[i].base && address + size <= blocks[i].base + blocks[i].size) return &blocks[i];
    return NULL;
}

static Stream *stream_of(void *handle) {
    uintptr_t number = (uintptr_t)handle;
    if (number == 0) return &streams[current - 1];
    if (number < DEVICES || number >= STREAMS || !streams[number].alive) return NULL;
    return &streams[number];
}

static Global *global_of(uintptr_t module, const char *name) {
    for (int i = 0; i < FUNCTIONS; i++)
        if (globals[i].module == module && !strcmp(globals[i].name, name)) return &globals[i];
    return NULL;
}

static void run_kernel(Op *op) {
    Function *f = &functions[op->function];
    uint64_t out, in; int n;
    memcpy(&out, op->args, 8);
    if (!strcmp(f->name, "add_one")) {
        memcpy(&in, op->args + 8, 8); memcpy(&n, op->args + 16, 4);
        uint64_t threads = (uint64_t)op->grid[0] * op->block[0];
        for (uint64_t i = 0; i < threads && (int)i < n; i++) ((float *)(uintptr_t)out)[i] = ((float *)(uintptr_t)in)[i] + 1.0f;
    } else if (!strcmp(f->name, "scalars")) {
        int64_t a; int32_t b; uint32_t c; double d; float e;
        memcpy(&a, op->args + 8, 8); memcpy(&b, op->args + 16, 4); memcpy(&c, op->args + 24, 4); memcpy(&d, op->args + 32, 8); memcpy(&e, op->args + 40, 4);
        double *o = (double *)(uintptr_t)out;
        o[0] = (double)a; o[1] = b; o[2] = c; o[3] = d; o[4] = e;
    } else if (!strcmp(f->name, "reverse")) {
        float *data = (float *)(uintptr_t)out;
        for (unsigned i = 0; i < op->block[0] / 2; i++) { float t = data[i]; data[i] = data[op->block[0] - 1 - i]; data[op->block[0] - 1 - i] = t; }
    } else if (!strcmp(f->name, "arrive")) { /* of tests/devices/device_modules/cuda.rs: the number of arrived threads */
        Global *state = global_of(f->module, "__tvm_global_barrier_state");
        state->value += (uint64_t)op->grid[0] * op->block[0];
        *(uint32_t *)(uintptr_t)out = (uint32_t)state->value;
    }
}

/* Runs the oldest work of a stream. Returns 0 if there is none, or if it must wait. */
static int step(Stream *stream) {
    Op *op = stream->first;
    if (!op) return 0;
    if (op->kind == 3 && events[op->event].generation == op->event_generation && events[op->event].pending) return 0;
    stream->first = op->next;
    if (!stream->first) stream->last = NULL;
    if (op->kind == 1) memmove((void *)(uintptr_t)op->to, (void *)(uintptr_t)op->from, op->size);
    if (op->kind == 2) { Event *event = &events[op->event]; if (event->generation == op->event_generation) { event->pending = 0; event->recorded = 1; } }
    if (op->kind == 4) run_kernel(op);
    if (op->kind == 5) for (uint64_t i = 0; i < op->size; i++) ((uint32_t *)(uintptr_t)op->to)[i] = (uint32_t)op->from;
    free(op);
    return 1;
}

static void drain(Stream *stream) {
    while (stream->first) {
        if (step(stream)) continue;
        int moved = 0;
        for (int i = 0; i < STREAMS; i++) if (streams[i].alive && step(&streams[i])) { moved = 1; break; }
        if (!moved) return;
    }
}
static void drain_all(void) { for (int i = 0; i < STREAMS; i++) if (streams[i].alive) drain(&streams[i]); }

static Op *push(Stream *stream, int kind) {
    Op *op = calloc(1, sizeof *op);
    op->kind = kind;
    if (stream->last) stream->last->next = op; else stream->first = op;
    stream->last = op;
    return op;
}

int cuMemAlloc_v2(uint64_t *address, size_t size) {
    ENTER();
    if (!current) LEAVE(INVALID_CONTEXT);
    if (!size) LEAVE(INVALID_VALUE);
    if (used + size > (64u << 20)) LEAVE(OUT_OF_MEMORY);
    void *data = NULL;
    for (int i = 0; i < BLOCKS; i++) {
        if (blocks[i].alive) continue;
        if (posix_memalign(&data, 256, size)) LEAVE(OUT_OF_MEMORY);
        memset(data, 0xCD, size);
        blocks[i] = (Block){(uint64_t)(uintptr_t)data, size, 1};
        used += size;
        *address = blocks[i].base;
        LEAVE(OK);
    }
    LEAVE(OUT_OF_MEMORY);
}

int cuMemFree_v2(uint64_t address) {
    ENTER();
    if (!current) LEAVE(INVALID_CONTEXT);
    for (int i = 0; i < BLOCKS; i++)
        if (blocks[i].alive && blocks[i].base == address) {
            drain_all(); /* freeing waits, as in the driver */
            blocks[i].alive = 0;
            used -= blocks[i].size;
            memset((void *)(uintptr_t)address, 0xDD, blocks[i].size);
            free((void *)(uintptr_t)address);
            LEAVE(OK);
        }
    LEAVE(INVALID_VALUE);
}

static int copy(uint64_t to, int to_device, uint64_t from, int from_device, size_t size, void *stream) {
    ENTER();
    if (!current) LEAVE(INVALID_CONTEXT);
    Stream *queue = stream_of(stream);
    if (!queue) LEAVE(INVALID_HANDLE);
    if ((to_device && !block_of(to, size)) || (from_device && !block_of(from, size))) LEAVE(INVALID_VALUE);
    Op *op = push(queue, 1);
    op->to = to; op->from = from; op->size = size;
    LEAVE(OK);
}
int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t size, void *stream) { return copy(to, 1, (uint64_t)(uintptr_t)from, 0, size, stream); }
int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t size, void *stream) { return copy((uint64_t)(uintptr_t)to, 0, from, 1, size, stream); }
int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t size, void *stream) { return copy(to, 1, from, 1, size, stream); }
int cuMemcpyPeerAsync(uint64_t to, void *to_context, uint64_t from, void *from_context, size_t size, void *stream) {
    if (!to_context || !from_context) return INVALID_CONTEXT;
    return copy(to, 1, from, 1, size, stream);
}

int cuStreamCreate(void **stream, unsigned flags) {
    ENTER();
    if (!current) LEAVE(INVALID_CONTEXT);
    if (flags > 1) LEAVE(INVALID_VALUE);
    for (int i = DEVICES; i < STREAMS; i++)
        if (!streams[i].alive) { streams[i] = (Stream){1, current - 1, NULL, NULL}; *stream = (void *)(uintptr_t)i; LEAVE(OK); }
    LEAVE(OUT_OF_MEMORY);
}
int cuStreamDestroy_v2(void *stream) {
    ENTER();
    Stream *queue = stream ? stream_of(stream) : NULL;
    if (!queue) LEAVE(INVALID_HANDLE);
    drain(queue);
    queue->alive = 0;
    LEAVE(OK);
}
int cuStreamSynchronize(void *stream) {
    ENTER();
    if (!current) LEAVE(INVALID_CONTEXT);
    Stream *queue = stream_of(stream);
    if (!queue) LEAVE(INVALID_HANDLE);
    drain(queue);
    LEAVE(OK);
}
int cuStreamWaitEvent(void *stream, void *event, unsigned flags) {
    ENTER();
    Stream *queue = stream_of(stream);
    uintptr_t number = (uintptr_t)event;
    if (!queue || flags || !number || number >= EVENTS || !events[number].alive) LEAVE(INVALID_HANDLE);
    Op *op = push(queue, 3);
    op->event = (int)number; op->event_generation = events[number].generation;
    LEAVE(OK);
}

int cuEventCreate(void **event, unsigned flags) {
    ENTER();
    (void)flags;
    /* Queued work may still wait for a destroyed event, so a number is reused only after all others. */
    static int next = 1;
    for (int tried = 0; tried < EVENTS; tried++) {
        int i = next; next = next + 1 < EVENTS ? next + 1 : 1;
        if (!events[i].alive && !events[i].pending) { events[i].alive = 1; events[i].recorded = 0; events[i].generation++; *event = (void *)(uintptr_t)i; LEAVE(OK); }
    }
    LEAVE(OUT_OF_MEMORY);
}
int cuEventRecord(void *event, void *stream) {
    ENTER();
    Stream *queue = stream_of(stream);
    uintptr_t number = (uintptr_t)event;
    if (!queue || !number || number >= EVENTS || !events[number].alive) LEAVE(INVALID_HANDLE);
    events[number].pending = 1;
    Op *op = push(queue, 2);
    op->event = (int)number; op->event_generation = events[number].generation;
    LEAVE(OK);
}
int cuEventSynchronize(void *event) { ENTER(); (void)event; drain_all(); LEAVE(OK); }
int cuEventElapsedTime(float *milliseconds, void *start, void *stop) { (void)start; (void)stop; *milliseconds = 0.25f; return OK; }
int cuEventDestroy_v2(void *event) {
    ENTER();
    uintptr_t number = (uintptr_t)event;
    if (!number || number >= EVENTS || !events[number].alive) LEAVE(INVALID_HANDLE);
    events[number].alive = 0;
    LEAVE(OK);
}

/* Finds the kernels of a PTX text and the sizes of their parameters. */
int cuModuleLoadData(void **module, const void *image) {
    ENTER();
    if (!current) LEAVE(INVALID_CONTEXT);
    const char *text = image;
    if (!strstr(text, ".version")) LEAVE(INVALID_IMAGE);
    int found = 0;
    modules++;
    /* `.global .align 4 .u32 NAME;`: the last word is the name, and the type states the size. */
    for (const char *at = text; (at = strstr(at, ".global .align ")); at++) {
        Global g = {.module = modules, .size = strstr(at, ".u64 ") == at + 17 ? 8 : 4};
        if (sscanf(at, ".global .align %*d .%*s %63[^;]", g.name) != 1) LEAVE(INVALID_PTX);
        for (int i = 0; i < FUNCTIONS; i++) if (!globals[i].module) { globals[i] = g; break; }
    }
    for (const char *at = text; (at = strstr(at, ".entry ")); ) {
        at += 7;
        Function f = {.alive = 1, .allowed = 49152, .module = modules};
        size_t length = strcspn(at, "( \n");
        if (length >= sizeof f.name) LEAVE(INVALID_PTX);
        memcpy(f.name, at, length);
        const char *end = strchr(at, ')');
        if (!end) LEAVE(INVALID_PTX);
        for (const char *p = at; (p = strstr(p, ".param ")) && p < end; p++)
            f.size[f.count++] = strstr(p, "64") && strstr(p, "64") < strchr(p, ' ') + 8 ? 8 : 4;
        for (int i = 1; i < FUNCTIONS; i++) if (!functions[i].alive) { functions[i] = f; found++; break; }
        at = end;
    }
    if (!found) LEAVE(INVALID_PTX);
    *module = (void *)modules;
    LEAVE(OK);
}
int cuModuleUnload(void *module) { (void)module; return OK; }
int cuModuleGetGlobal_v2(uint64_t *address, size_t *bytes, void *module, const char *name) {
    ENTER();
    if (!current) LEAVE(INVALID_CONTEXT);
    if (!module) LEAVE(INVALID_HANDLE);
    Global *global = global_of((uintptr_t)module, name);
    if (!global) LEAVE(NOT_FOUND);
    *address = (uint64_t)(uintptr_t)&global->value;
    *bytes = global->size;
    LEAVE(OK);
}
int cuMemsetD32Async(uint64_t to, unsigned value, size_t count, void *stream) {
    ENTER();
    if (!current) LEAVE(INVALID_CONTEXT);
    Stream *queue = stream_of(stream);
    if (!queue) LEAVE(INVALID_HANDLE);
    Op *op = push(queue, 5);
    op->to = to; op->from = value; op->size = count;
    LEAVE(OK);
}
int cuModuleGetFunction(void **function, void *module, const char *name) {
    ENTER();
    if (!module) LEAVE(INVALID_HANDLE);
    for (int i = FUNCTIONS - 1; i > 0; i--)
        if (functions[i].alive && !strcmp(functions[i].name, name)) { *function = (void *)(uintptr_t)i; LEAVE(OK); }
    LEAVE(NOT_FOUND);
}
int cuFuncSetAttribute(void *function, int attribute, int value) {
    uintptr_t number = (uintptr_t)function;
    if (!number || number >= FUNCTIONS) return INVALID_HANDLE;
    if (attribute != 8 || value > 96 << 10) return INVALID_VALUE;
    functions[number].allowed = (size_t)value;
    return OK;
}

/* A launch of 7 blocks of 7 threads returns only when a second launch is in the driver at the same time. */
static pthread_cond_t met = PTHREAD_COND_INITIALIZER;
static int meeting;
static int meet(void) {
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += 20;
    if (++meeting % 2 == 0) { pthread_cond_broadcast(&met); return 0; }
    for (int alone = meeting; meeting == alone; ) if (pthread_cond_timedwait(&met, &lock, &end)) return 1;
    return 0;
}

int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *stream, void **params, void **extra) {
    ENTER();
    if (!current) LEAVE(INVALID_CONTEXT);
    Stream *queue = stream_of(stream);
    uintptr_t number = (uintptr_t)function;
    if (!queue || !number || number >= FUNCTIONS || !functions[number].alive || extra) LEAVE(INVALID_HANDLE);
    Function *f = &functions[number];
    if (!gx || !gy || !gz || !bx || !by || !bz || bx > 1024 || by > 1024 || bz > 64) LEAVE(INVALID_VALUE);
    if ((uint64_t)bx * by * bz > 1024 || shared > f->allowed) LEAVE(TOO_MANY_RESOURCES);
    if (gx == 7 && bx == 7 && meet()) LEAVE(LAUNCH_TIMEOUT);
    Op *op = push(queue, 4);
    op->function = (int)number;
    op->grid[0] = gx; op->grid[1] = gy; op->grid[2] = gz; op->block[0] = bx; op->block[1] = by; op->block[2] = bz; op->shared = shared;
    /* Parameters are copied before the call returns: the number of bytes that the kernel declares, at a stride of 8. */
    for (int i = 0; i < f->count && i < 32; i++) memcpy(op->args + 8 * i, params[i], (size_t)f->size[i]);
    LEAVE(OK);
}
int cuLaunchCooperativeKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                              unsigned shared, void *stream, void **params) {
    return cuLaunchKernel(function, gx, gy, gz, bx, by, bz, shared, stream, params, NULL);
}

int cuGetErrorName(int code, const char **name) {
    switch (code) {
    case OK: *name = "CUDA_SUCCESS"; break;
    case INVALID_VALUE: *name = "CUDA_ERROR_INVALID_VALUE"; break;
    case OUT_OF_MEMORY: *name = "CUDA_ERROR_OUT_OF_MEMORY"; break;
    case INVALID_IMAGE: *name = "CUDA_ERROR_INVALID_IMAGE"; break;
    case INVALID_CONTEXT: *name = "CUDA_ERROR_INVALID_CONTEXT"; break;
    case INVALID_PTX: *name = "CUDA_ERROR_INVALID_PTX"; break;
    case NOT_FOUND: *name = "CUDA_ERROR_NOT_FOUND"; break;
    case TOO_MANY_RESOURCES: *name = "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"; break;
    default: *name = "CUDA_ERROR (stand-in)";
    }
    return OK;
}
int cuGetErrorString(int code, const char **text) { return cuGetErrorName(code, text); }
