/* A library of 0.22 to 0.27 whose functions reach the runtime through every slot that such a library may have. Written by
   hand from spec/module.md; open.sh compiles it. */
#include <stdint.h>

typedef struct {
  int32_t type_index;
  uint32_t padding;
  union {
    int64_t i;
    double f;
    void* p;
  };
} Any;

typedef int (*Call)(void*, const Any*, int32_t, Any*);
typedef int (*Task)(int, void*, void*);

#define SLOT __attribute__((visibility("default")))

SLOT void* __tvm_ffi__library_ctx;
SLOT int (*__TVMFFIFunctionCall)(void*, const Any*, int32_t, Any*);
SLOT void (*__TVMFFIErrorSetRaisedFromCStr)(const char*, const char*);
SLOT int (*__TVMFFIEnvModLookupFromImports)(void*, const char*, void**);
SLOT int (*__TVMFFIHandleInitOnce)(void**, int (*)(void**));
SLOT void* (*__TVMBackendAllocWorkspace)(int, int, uint64_t, int, int);
SLOT int (*__TVMBackendFreeWorkspace)(int, int, void*);
SLOT int (*__TVMBackendParallelLaunch)(Task, void*, int);
SLOT int (*__TVMBackendParallelBarrier)(int, void*);

static int give(Any* result, int64_t number) {
  result->type_index = 1;
  result->padding = 0;
  result->i = number;
  return 0;
}

/* The sum of integers. */
SLOT int __tvm_ffi_sum(void* self, const Any* args, int32_t count, Any* result) {
  int64_t sum = 0;
  for (int32_t at = 0; at < count; ++at) sum += args[at].i;
  return give(result, sum);
}

/* What the entry point of the library gives. */
SLOT int __tvm_ffi_main(void* self, const Any* args, int32_t count, Any* result) { return give(result, 22); }

/* Nothing: the cell of the result stays as the caller made it. */
SLOT int __tvm_ffi_nothing(void* self, const Any* args, int32_t count, Any* result) { return 0; }

SLOT int __tvm_ffi_fail(void* self, const Any* args, int32_t count, Any* result) {
  __TVMFFIErrorSetRaisedFromCStr("ValueError", "the library fails");
  return -1;
}

/* Fails without an error. */
SLOT int __tvm_ffi_silent(void* self, const Any* args, int32_t count, Any* result) { return -1; }

/* Whether the workspace is there and aligned, and another one lies elsewhere. */
SLOT int __tvm_ffi_workspace(void* self, const Any* args, int32_t count, Any* result) {
  char* one = __TVMBackendAllocWorkspace(1, 0, 100, 2, 32);
  char* two = __TVMBackendAllocWorkspace(1, 0, 100, 2, 32);
  int good = one && two && one != two && (uintptr_t)one % 64 == 0 && (uintptr_t)two % 64 == 0;
  for (int at = 0; good && at < 100; ++at) one[at] = two[at] = 1;
  good &= __TVMBackendFreeWorkspace(1, 0, two) == 0;
  good &= __TVMBackendFreeWorkspace(1, 0, one) == 0;
  return give(result, good);
}

typedef struct {
  void* sync;
  int32_t count;
} Group;

static int run_task(int task, void* group, void* data) {
  __TVMBackendParallelBarrier(task, group);
  __atomic_fetch_add((int64_t*)data, task + 1 + 100 * ((Group*)group)->count, __ATOMIC_SEQ_CST);
  return 0;
}

/* 100 and the number of the task counted from 1, for each task of one. */
SLOT int __tvm_ffi_parallel(void* self, const Any* args, int32_t count, Any* result) {
  int64_t sum = 0;
  if (__TVMBackendParallelLaunch(run_task, &sum, 1) != 0) return -1;
  return give(result, sum);
}

/* Calls the function `f` of the environment, found through the context, with its arguments. */
SLOT int __tvm_ffi_environment(void* self, const Any* args, int32_t count, Any* result) {
  void* found = 0;
  if (__TVMFFIEnvModLookupFromImports(__tvm_ffi__library_ctx, "f", &found) != 0) return -1;
  return __TVMFFIFunctionCall(found, args, count, result);
}

static int made;
static int make(void** handle) {
  *handle = &made;
  ++made;
  return 0;
}

/* How often a handle is made that is asked for three times. */
SLOT int __tvm_ffi_once(void* self, const Any* args, int32_t count, Any* result) {
  static void* handle;
  for (int at = 0; at < 3; ++at) {
    if (__TVMFFIHandleInitOnce(&handle, make) != 0 || handle != &made) return -1;
  }
  return give(result, made);
}

/* Symbols that are no functions: data, read-only data, what each thread has its own of. */
SLOT int64_t __tvm_ffi_number = 7;
SLOT const int64_t __tvm_ffi_constant = 7;
SLOT __thread int64_t __tvm_ffi_own = 7;

/* No function of this release, since the prefix is missing, and one that others do not see. */
SLOT int bare(void* self, const Any* args, int32_t count, Any* result) { return give(result, 1); }
__attribute__((visibility("hidden"))) int __tvm_ffi_hidden(void* self, const Any* args, int32_t count, Any* result) {
  return give(result, 2);
}
