/* Your own device in C. It is registered as ext_dev, and checked against every rule of the contract. The check needs the cases of the
 * source tree, and a library with the feature `suite`. With the installed library, this program prints that it has no test of devices.
 *
 *   cargo rustc --lib --crate-type cdylib
 *   cc -Iinclude examples/c/external_device.c -Ltarget/debug -ltvmspec -o external_device
 *   LD_LIBRARY_PATH=target/debug ./external_device */
#define _POSIX_C_SOURCE 200112L /* posix_memalign */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tvmspec_device.h>

/* The part of the tvm-ffi C API needed to register a device. */
typedef struct { int32_t type_index; uint32_t aux; union { int64_t number; void *pointer; } value; } Any;
typedef struct { const char *data; size_t size; } Bytes;
typedef int (*SafeCall)(void *context, const Any *args, int32_t count, Any *result);
int TVMFFIFunctionCreate(void *context, SafeCall call, void (*deleter)(void *), void **out);
int TVMFFIFunctionSetGlobal(const Bytes *name, void *function, int allow_override);

static int set_device(void *context, int32_t id) { (void)context; return id == 0 ? 0 : 1; }
static int attribute(void *context, int32_t id, int32_t number, tvmspec_answer *answer) {
    (void)context;
    if (number == 0) *answer = (tvmspec_answer){1, id == 0, NULL};
    if (number == 5) *answer = (tvmspec_answer){2, 0, "a device in C"};
    return 0;
}
static int alloc_space(void *context, int32_t id, uint64_t nbytes, uint64_t alignment, void **space) {
    (void)context; (void)id;
    return posix_memalign(space, alignment < 8 ? 8 : alignment, nbytes ? nbytes : 1);
}
static int free_space(void *context, int32_t id, void *space) { (void)context; (void)id; free(space); return 0; }
static int copy_bytes(void *context, const tvmspec_copy *copy, void *stream) {
    (void)context; (void)stream;
    memmove((char *)copy->to + copy->to_offset, (char *)copy->from + copy->from_offset, copy->nbytes);
    return 0;
}
static int sync_stream(void *context, int32_t id, void *stream) { (void)context; (void)id; (void)stream; return 0; }

static tvmspec_device mine = {TVMSPEC_DEVICE_MAGIC, sizeof mine, NULL, NULL, set_device, attribute, alloc_space,
                              free_space, copy_bytes, sync_stream, NULL, NULL, NULL};

static int factory(void *context, const Any *args, int32_t count, Any *result) {
    (void)context; (void)args; (void)count;
    *result = (Any){4, 0, {.pointer = &mine}}; /* an opaque pointer */
    return 0;
}

int main(void) {
    void *function;
    Bytes name = {"device_api.ext_dev", 18};
    if (TVMFFIFunctionCreate(NULL, factory, NULL, &function) || TVMFFIFunctionSetGlobal(&name, function, 1)) return 2;
    tvmspec_install_devices();
    static char report[1 << 16];
    int broken = tvmspec_device_contract(12, 0, report, sizeof report);
    puts(report);
    return broken < 0 ? 2 : broken > 0;
}
