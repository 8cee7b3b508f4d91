/* Times the tvm-ffi C interface of two libraries in turn, in one process each, with the same code:
 *   cc -O2 -o ffi_driver benches/ffi_driver.c -ldl
 *   ./ffi_driver path/to/libtvm_ffi.so target/release/libtvmspec.so
 * Prints nanoseconds per operation of each (best of rounds that alternate) and the ratio second / first. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "../include/tvm_ffi_c_api.h"

#define MEASURES 13
#define ROUNDS 7

static const char* const NAMES[MEASURES] = {
    "call, 0 ints", "call, 3 ints", "call, 8 ints", "global lookup, 22 characters, hit", "global lookup, 22 characters, miss",
    "global lookup, 7 characters", "IncRef + DecRef", "string of 7 bytes", "string of 8 bytes", "string of 1000 bytes",
    "Array of 1e5 ints, per element", "Map of 1e5 ints, per pair", "Map of 2e4 strings, per pair"};

static int (*call)(TVMFFIObjectHandle, TVMFFIAny*, int32_t, TVMFFIAny*);
static int (*create)(void*, TVMFFISafeCallType, void (*)(void*), TVMFFIObjectHandle*);
static int (*lookup)(const TVMFFIByteArray*, TVMFFIObjectHandle*);
static int (*set_global)(const TVMFFIByteArray*, TVMFFIObjectHandle, int);
static int (*inc)(TVMFFIObjectHandle);
static int (*dec)(TVMFFIObjectHandle);
static int (*string)(const TVMFFIByteArray*, TVMFFIAny*);

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e9 + t.tv_nsec;
}

static int sum(void* self, const TVMFFIAny* args, int32_t count, TVMFFIAny* result) {
  int64_t total = 0;
  (void)self;
  for (int32_t i = 0; i < count; ++i) total += args[i].u.v_int64;
  result->type_index = kTVMFFIInt;
  result->small_str_len = 0;
  result->u.v_int64 = total;
  return 0;
}

static TVMFFIByteArray bytes(const char* text) {
  TVMFFIByteArray array = {text, strlen(text)};
  return array;
}

static void release(TVMFFIAny* value) {
  if (value->type_index >= 64) dec(value->u.v_obj);
}

static double calls(TVMFFIObjectHandle f, int count) {
  TVMFFIAny args[8], result;
  memset(args, 0, sizeof args);
  double start = now();
  for (int i = 0; i < 300000; ++i) {
    for (int k = 0; k < count; ++k) {
      args[k].type_index = kTVMFFIInt;
      args[k].u.v_int64 = i + k;
    }
    memset(&result, 0, sizeof result);
    call(f, args, count, &result);
  }
  return (now() - start) / 300000;
}

static double lookups(const char* name) {
  TVMFFIByteArray array = bytes(name);
  double start = now();
  for (int i = 0; i < 200000; ++i) {
    TVMFFIObjectHandle f = NULL;
    lookup(&array, &f);
    if (f) dec(f);
  }
  return (now() - start) / 200000;
}

static double strings(size_t size) {
  static char text[1000];
  TVMFFIByteArray array = {text, size};
  double start = now();
  for (int i = 0; i < 200000; ++i) {
    TVMFFIAny value;
    string(&array, &value);
    release(&value);
  }
  return (now() - start) / 200000;
}

static double packed(const char* name, int count, int per_element, int text) {
  TVMFFIByteArray key = bytes(name);
  TVMFFIObjectHandle f = NULL;
  lookup(&key, &f);
  TVMFFIAny* args = calloc(count, sizeof *args);
  for (int i = 0; i < count; ++i) {
    char buffer[32];
    args[i].type_index = kTVMFFIInt;
    args[i].u.v_int64 = i;
    if (text && i % 2 == 0) {
      TVMFFIByteArray array = {buffer, (size_t)sprintf(buffer, "key-number-%06d", i)};
      string(&array, &args[i]);
    }
  }
  double start = now();
  TVMFFIAny result;
  memset(&result, 0, sizeof result);
  call(f, args, count, &result);
  release(&result);
  double time = (now() - start) / (count / per_element);
  for (int i = 0; i < count; ++i) release(&args[i]);
  free(args);
  dec(f);
  return time;
}

static void measure(const char* path, double* out) {
  void* library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
  if (!library) {
    fprintf(stderr, "%s\n", dlerror());
    exit(2);
  }
  *(void**)&call = dlsym(library, "TVMFFIFunctionCall");
  *(void**)&create = dlsym(library, "TVMFFIFunctionCreate");
  *(void**)&lookup = dlsym(library, "TVMFFIFunctionGetGlobal");
  *(void**)&set_global = dlsym(library, "TVMFFIFunctionSetGlobal");
  *(void**)&inc = dlsym(library, "TVMFFIObjectIncRef");
  *(void**)&dec = dlsym(library, "TVMFFIObjectDecRef");
  *(void**)&string = dlsym(library, "TVMFFIStringFromByteArray");
  TVMFFIObjectHandle f = NULL;
  create(NULL, sum, NULL, &f);
  TVMFFIByteArray name = bytes("bench.a_function_name_"), small = bytes("bench.f");
  set_global(&name, f, 1);
  set_global(&small, f, 1);
  out[0] = calls(f, 0);
  out[1] = calls(f, 3);
  out[2] = calls(f, 8);
  out[3] = lookups("bench.a_function_name_");
  out[4] = lookups("bench.a_function_namex");
  out[5] = lookups("bench.f");
  double start = now();
  for (int i = 0; i < 1000000; ++i) {
    inc(f);
    dec(f);
  }
  out[6] = (now() - start) / 1000000;
  out[7] = strings(7);
  out[8] = strings(8);
  out[9] = strings(1000);
  out[10] = packed("ffi.Array", 100000, 1, 0);
  out[11] = packed("ffi.Map", 200000, 2, 0);
  out[12] = packed("ffi.Map", 40000, 2, 1);
}

int main(int argc, char** argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: %s FIRST.so SECOND.so\n", argv[0]);
    return 2;
  }
  double best[2][MEASURES];
  for (int side = 0; side < 2; ++side)
    for (int i = 0; i < MEASURES; ++i) best[side][i] = 1e30;
  for (int round = 0; round < ROUNDS * 2; ++round) {
    int side = round % 2, pipes[2];
    double out[MEASURES];
    if (pipe(pipes)) return 2;
    pid_t child = fork();
    if (child == 0) {
      measure(argv[1 + side], out);
      if (write(pipes[1], out, sizeof out) != (ssize_t)sizeof out) _exit(2);
      _exit(0);
    }
    close(pipes[1]);
    if (read(pipes[0], out, sizeof out) != (ssize_t)sizeof out) return 2;
    close(pipes[0]);
    waitpid(child, NULL, 0);
    for (int i = 0; i < MEASURES; ++i)
      if (out[i] < best[side][i]) best[side][i] = out[i];
  }
  printf("| measure | first, ns | second, ns | second / first |\n|---|---|---|---|\n");
  for (int i = 0; i < MEASURES; ++i)
    printf("| %s | %.1f | %.1f | %.2f |\n", NAMES[i], best[0][i], best[1][i], best[1][i] / best[0][i]);
  return 0;
}
