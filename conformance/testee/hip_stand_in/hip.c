/* A stand-in for the HIP driver library, so that the ROCm path can be tested without a card.
 *
 * It shares memory, streams, events and the three kernels with the CUDA stand-in. This file contains the differences of
 * HIP: a device per thread instead of contexts, other numbers for attributes and errors, one block of arguments. A code
 * object of this stand-in is a PTX text, from which it reads the kernels and their parameters.
 *
 * Built by tests/devices/device_modules.rs: cc -shared -fPIC -o libamdhip64.so hip.c */

#include "../cuda_stand_in/cuda.c"

int hipInit(unsigned flags) { return cuInit(flags); }
/* HIP functions initialize the driver themselves, unlike CUDA functions. */
static void start(void) { if (!initialized) cuInit(0); if (!current) current = 1; }

const char *hipGetErrorName(int code) {
    switch (code) {
    case OK: return "hipSuccess";
    case INVALID_VALUE: return "hipErrorInvalidValue";
    case OUT_OF_MEMORY: return "hipErrorOutOfMemory";
    case INVALID_DEVICE: return "hipErrorInvalidDevice";
    case INVALID_IMAGE: return "hipErrorInvalidImage";
    case INVALID_HANDLE: return "hipErrorInvalidHandle";
    case NOT_FOUND: return "hipErrorNotFound";
    case TOO_MANY_RESOURCES: return "hipErrorLaunchOutOfResources";
    default: return "hipErrorUnknown (stand-in)";
    }
}

int hipRuntimeGetVersion(int *version) { *version = 50221153; return OK; }
int hipGetDeviceCount(int *count) { *count = DEVICES; return OK; }
int hipSetDevice(int device) {
    if (device < 0 || device >= DEVICES) return INVALID_DEVICE;
    start();
    current = device + 1;
    return OK;
}

/* hipDeviceAttribute_t of ROCm 5 and later. */
int hipDeviceGetAttribute(int *value, int attribute, int device) {
    if (device < 0 || device >= DEVICES) return INVALID_DEVICE;
    switch (attribute) {
    case 5: *value = 1700000; return OK;                /* clock, kHz */
    case 19: *value = 8 << 20; return OK;               /* L2 */
    case 23: *value = 9; return OK;                     /* compute capability */
    case 61: *value = 0; return OK;
    case 26: case 27: *value = 1024; return OK;         /* block x, y */
    case 28: *value = 64; return OK;                    /* block z */
    case 56: *value = 1024; return OK;                  /* threads per block */
    case 63: *value = 104; return OK;                   /* compute units */
    case 71: *value = 65536; return OK;                 /* registers */
    case 74: *value = 65536; return OK;                 /* shared memory */
    case 87: *value = 64; return OK;                    /* warp */
    default: return INVALID_VALUE;
    }
}

int hipDeviceGetName(char *name, int size, int device) { return cuDeviceGetName(name, size, device); }
int hipDeviceTotalMem(size_t *bytes, int device) { return cuDeviceTotalMem_v2(bytes, device); }

static int fill(char *properties, size_t size, size_t arch_name, int device) {
    if (device < 0 || device >= DEVICES) return INVALID_DEVICE;
    memset(properties, 0xEE, size);
    strcpy(properties + arch_name, "gfx90a:sramecc+:xnack-");
    return OK;
}
/* hipDeviceProp_t of ROCm 5, which all releases have under the old name, and of ROCm 6. The architecture is at 396 and 1160. */
int hipGetDeviceProperties(char *properties, int device) { return fill(properties, 792, 396, device); }
#ifndef ROCM5
int hipGetDevicePropertiesR0600(char *properties, int device) { return fill(properties, 1472, 1160, device); }
#endif

int hipMalloc(void **data, size_t size) {
    uint64_t address = 0;
    start();
    int code = cuMemAlloc_v2(&address, size);
    *data = (void *)(uintptr_t)address;
    return code;
}
int hipFree(void *data) { start(); return cuMemFree_v2((uint64_t)(uintptr_t)data); }

int hipMemcpyAsync(void *to, const void *from, size_t size, int kind, void *stream) {
    start();
    if (kind < 1 || kind > 3) return INVALID_VALUE;
    return copy((uint64_t)(uintptr_t)to, kind != 2, (uint64_t)(uintptr_t)from, kind != 1, size, stream);
}
int hipMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t size, void *stream) {
    start();
    if (to_device < 0 || to_device >= DEVICES || from_device < 0 || from_device >= DEVICES) return INVALID_DEVICE;
    return copy((uint64_t)(uintptr_t)to, 1, (uint64_t)(uintptr_t)from, 1, size, stream);
}

int hipStreamCreateWithFlags(void **stream, unsigned flags) { start(); return cuStreamCreate(stream, flags); }
int hipStreamDestroy(void *stream) { start(); return cuStreamDestroy_v2(stream); }
int hipStreamSynchronize(void *stream) { start(); return cuStreamSynchronize(stream); }
int hipStreamWaitEvent(void *stream, void *event, unsigned flags) { start(); return cuStreamWaitEvent(stream, event, flags); }
int hipEventCreateWithFlags(void **event, unsigned flags) { start(); return cuEventCreate(event, flags); }
int hipEventRecord(void *event, void *stream) { start(); return cuEventRecord(event, stream); }
int hipEventSynchronize(void *event) { start(); return cuEventSynchronize(event); }
int hipEventElapsedTime(float *milliseconds, void *start_, void *stop) { return cuEventElapsedTime(milliseconds, start_, stop); }
int hipEventDestroy(void *event) { start(); return cuEventDestroy_v2(event); }

int hipModuleLoadData(void **module, const void *image) { start(); return cuModuleLoadData(module, image); }
int hipModuleUnload(void *module) { return cuModuleUnload(module); }
int hipModuleGetFunction(void **function, void *module, const char *name) { start(); return cuModuleGetFunction(function, module, name); }

/* Arguments arrive in one block: each is aligned to its size, and there is no padding after the last one. */
int hipModuleLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                          unsigned shared, void *stream, void **params, void **extra) {
    start();
    uintptr_t number = (uintptr_t)function;
    if (!number || number >= FUNCTIONS || !functions[number].alive) return INVALID_HANDLE;
    if (params || !extra || extra[0] != (void *)1 || extra[2] != (void *)2 || extra[4] != (void *)3) return INVALID_VALUE;
    uint8_t *block = extra[1];
    size_t size = *(size_t *)extra[3], at = 0;
    void *list[32];
    Function *f = &functions[number];
    for (int i = 0; i < f->count && i < 32; i++) {
        size_t width = (size_t)f->size[i];
        at = (at + width - 1) / width * width;
        list[i] = block + at;
        at += width;
    }
    if (at != size) return INVALID_VALUE;
    return cuLaunchKernel(function, gx, gy, gz, bx, by, bz, shared, stream, list, NULL);
}
