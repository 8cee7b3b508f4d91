/* Interface for devices that are implemented outside of tvmspec.
 *
 * Fill in a tvmspec_device table. Register a global function "device_api.<name>" without arguments that returns the address
 * of the table as an opaque pointer. The table must stay valid until the process ends. Any thread may call its functions.
 * Each function gets `context`, then the index of the device, and returns 0 for success.
 */
#ifndef TVMSPEC_DEVICE_H
#define TVMSPEC_DEVICE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* "tvmspDEV" as a little-endian number. */
#define TVMSPEC_DEVICE_MAGIC 0x56454470736d7674ull

/* The value of an attribute. Tag 0 means no value, 1 a number, 2 a text, which is valid until the next call on this thread. */
typedef struct {
    int tag;
    int64_t number;
    const char *text;
} tvmspec_answer;

/* A copy between two memory spaces. A device is its type and its index; type 1 is the host. */
typedef struct {
    void *from;
    uint64_t from_offset;
    void *to;
    uint64_t to_offset;
    uint64_t nbytes;
    int32_t from_device[2];
    int32_t to_device[2];
    uint16_t hint[3]; /* code, bits, lanes of the element type */
} tvmspec_copy;

typedef struct {
    uint64_t magic; /* TVMSPEC_DEVICE_MAGIC */
    uint64_t size;  /* sizeof(tvmspec_device) */
    void *context;
    const char *(*last_error)(void *context); /* may be null */
    int (*set_device)(void *context, int32_t id);
    int (*attribute)(void *context, int32_t id, int32_t number, tvmspec_answer *answer);
    int (*alloc)(void *context, int32_t id, uint64_t nbytes, uint64_t alignment, void **space);
    int (*free)(void *context, int32_t id, void *space);
    int (*copy)(void *context, const tvmspec_copy *copy, void *stream);
    int (*sync)(void *context, int32_t id, void *stream);
    /* The remaining functions may be null. The device then has only the default stream. */
    int (*create_stream)(void *context, int32_t id, void **stream);
    int (*free_stream)(void *context, int32_t id, void *stream);
    int (*sync_streams)(void *context, int32_t id, void *before, void *after);
} tvmspec_device;

/* Registers the devices of the library as `device_api.<name>`. The library itself does not need this to find them. */
int tvmspec_install_devices(void);

/* Tests a device against every rule. Returns the number of failed programs. Returns -1 with the reason in `report` if there is no such
   device or there are no cases. The installed library has no cases: build it in the source tree, as examples/c/external_device.c states. */
int tvmspec_device_contract(int kind, int id, char *report, size_t size);

#ifdef __cplusplus
}
#endif
#endif
