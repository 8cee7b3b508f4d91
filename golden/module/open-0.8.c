/* A library of 0.7 to 0.20 whose functions reach the runtime through every slot that such a library may have. Written by
   hand from spec/module.md; open.sh compiles it. */
#include <stdint.h>

typedef union {
  int64_t i;
  double f;
  void* p;
  const char* text;
} Value;

typedef int (*Task)(int, void*, void*);

#define SLOT __attribute__((visibility("default")))

SLOT void* __tvm_module_ctx;
SLOT const char __tvm_main__[] = "start";
SLOT int (*__TVMFuncCall)(void*, Value*, int*, int, Value*, int*);
SLOT void (*__TVMAPISetLastError)(const char*);
SLOT int (*__TVMBackendGetFuncFromEnv)(void*, const char*, void**);
SLOT void* (*__TVMBackendAllocWorkspace)(int, int, uint64_t, int, int);
SLOT int (*__TVMBackendFreeWorkspace)(int, int, void*);
SLOT int (*__TVMBackendParallelLaunch)(Task, void*, int);
SLOT int (*__TVMBackendParallelBarrier)(int, void*);

#define FUNCTION(name) SLOT int name(Value* args, int* codes, int count, Value* result, int* code, void* resource)

static int give(Value* result, int* code, int64_t number) {
  result->i = number;
  *code = 0;
  return 0;
}

/* The sum of integers. */
FUNCTION(sum) {
  int64_t sum = 0;
  for (int at = 0; at < count; ++at) sum += args[at].i;
  return give(result, code, sum);
}

/* What the entry point of the library names. */
FUNCTION(start) { return give(result, code, 8); }

/* Nothing: a null. */
FUNCTION(nothing) {
  *code = 4;
  return 0;
}

FUNCTION(half) {
  result->f = 0.5;
  *code = 2;
  return 0;
}

FUNCTION(text) {
  result->text = "text";
  *code = 11;
  return 0;
}

FUNCTION(fail) {
  __TVMAPISetLastError("the library fails");
  return -1;
}

FUNCTION(workspace) {
  char* one = __TVMBackendAllocWorkspace(1, 0, 100, 2, 32);
  char* two = __TVMBackendAllocWorkspace(1, 0, 100, 2, 32);
  int good = one && two && one != two && (uintptr_t)one % 64 == 0 && (uintptr_t)two % 64 == 0;
  for (int at = 0; good && at < 100; ++at) one[at] = two[at] = 1;
  good &= __TVMBackendFreeWorkspace(1, 0, two) == 0;
  good &= __TVMBackendFreeWorkspace(1, 0, one) == 0;
  return give(result, code, good);
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

FUNCTION(parallel) {
  int64_t sum = 0;
  if (__TVMBackendParallelLaunch(run_task, &sum, 1) != 0) return -1;
  return give(result, code, sum);
}

/* Calls the function `f` of the environment, found through the context, with its arguments. */
FUNCTION(environment) {
  void* found = 0;
  if (__TVMBackendGetFuncFromEnv(__tvm_module_ctx, "f", &found) != 0) return -1;
  return __TVMFuncCall(found, args, codes, count, result, code);
}

SLOT int64_t number = 7;
__attribute__((visibility("hidden"))) int hidden(Value* args, int* codes, int count, Value* result, int* code) {
  return give(result, code, 2);
}
