/* A device of your own, for tvmspec.
 *
 * Fill in a table, and register a global function "device_api.<name>" that takes nothing and returns the table's address
 * as an opaque pointer. The table must live for ever; its functions may be called from any thread. Every function gets
 * `context` first, then the index of the device; 0 is success.
 */
#ifndef TVMSPEC_DEVICE_H
#define TVMSPEC_DEVICE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* "tvmspDEV", little endian. */
#define TVMSPEC_DEVICE_MAGIC 0x56454470736d7674ull

/* An answer to an attribute: tag 0 nothing, 1 number, 2 text (which lives until the next call on this thread). */
typedef struct {
    int tag;
    int64_t number;
    const char *text;
} tvmspec_answer;

/* A copy between two spaces. Devices are type and index; type 1 is the host. */
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
    /* The rest may be null: then there is only the default stream. */
    int (*create_stream)(void *context, int32_t id, void **stream);
    int (*free_stream)(void *context, int32_t id, void *stream);
    int (*sync_streams)(void *context, int32_t id, void *before, void *after);
} tvmspec_device;

/* Registers the devices of the library as `device_api.<name>`; the library itself finds them without. */
int tvmspec_install_devices(void);

/* Drives a device through every rule. Returns the number of programs that it broke, or -1 if there is no such device or there are no
   cases: a program that leaves the tree needs a library with feature `embed`. */
int tvmspec_device_contract(int kind, int id, char *report, size_t size);

#ifdef __cplusplus
}
#endif
#endif
