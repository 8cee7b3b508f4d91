/*
 * Registers a callback, finds it again and calls it. Then loads a library of TVM 0.8 and calls it, through the C interface.
 *
 * With the C library in PREFIX, as `release/install-c PREFIX` or the archive of a release installs it, in the folder of this file:
 *
 *   export PKG_CONFIG_PATH=PREFIX/lib/pkgconfig LD_LIBRARY_PATH=PREFIX/lib
 *   cc load.c $(pkg-config --cflags --libs tvmspec) -o load
 *   ./load host-0.8.so
 *
 * The archive contains host-0.8.so; in the source tree it is in golden/module.
 */
#include <stdio.h>

#include "tvm_c_runtime_api.h"
#include "tvmspec.h"

#define CHECK(call)                                      \
  if ((call) != 0) {                                     \
    fprintf(stderr, "%s: %s\n", #call, TVMGetLastError()); \
    return 1;                                            \
  }

static int twice(TVMValue* args, int* codes, int count, TVMRetValueHandle ret, void* resource) {
  (void)resource;
  if (count != 1 || codes[0] != kTVMArgInt) {
    TVMAPISetLastError("TypeError: twice takes one integer");
    return -1;
  }
  TVMValue value = {.v_int64 = 2 * args[0].v_int64};
  int code = kTVMArgInt;
  return TVMCFuncSetReturn(ret, &value, &code, 1);
}

int main(int argc, char** argv) {
  TVMFunctionHandle function;
  TVMValue args[2], result;
  int codes[2] = {kTVMArgInt, kTVMArgInt}, result_code;

  printf("tvmspec %s\n", tvmspec_version());
  CHECK(TVMFuncCreateFromCFunc(twice, NULL, NULL, &function));
  CHECK(TVMFuncRegisterGlobal("example.twice", function, 0));
  CHECK(TVMFuncFree(function));

  CHECK(TVMFuncGetGlobal("example.twice", &function));
  args[0].v_int64 = 21;
  CHECK(TVMFuncCall(function, args, codes, 1, &result, &result_code));
  printf("twice(21) = %lld\n", (long long)result.v_int64);
  if (TVMFuncCall(function, args, codes, 2, &result, &result_code) == 0) return 1;
  printf("twice(21, 21) fails: %s\n", TVMGetLastError());
  CHECK(TVMFuncFree(function));
  if (argc < 2) return 0;

  char* report = NULL;
  int code = tvmspec_examine_file("verify --strict", argv[1], &report);
  printf("%s: %s %s\n", argv[1], code == 0 ? "keeps every rule" : "does not keep every rule", report);
  tvmspec_free(report);

  TVMModuleHandle module;
  CHECK(TVMModLoadFromFile(argv[1], "", &module));
  CHECK(TVMModGetFunction(module, "add1", 0, &function));
  CHECK(TVMModFree(module)); /* the function keeps the library mapped */
  float numbers[4] = {0, 1, 2, 3};
  int64_t shape[1] = {4};
  TVMArrayHandle in, out;
  CHECK(TVMArrayAlloc(shape, 1, 2, 32, 1, 1, 0, &in));
  CHECK(TVMArrayAlloc(shape, 1, 2, 32, 1, 1, 0, &out));
  CHECK(TVMArrayCopyFromBytes(in, numbers, sizeof(numbers)));
  args[0].v_handle = in;
  args[1].v_handle = out;
  codes[0] = codes[1] = kTVMNDArrayHandle;
  CHECK(TVMFuncCall(function, args, codes, 2, &result, &result_code));
  CHECK(TVMArrayCopyToBytes(out, numbers, sizeof(numbers)));
  printf("add1 = %g %g %g %g\n", numbers[0], numbers[1], numbers[2], numbers[3]);
  CHECK(TVMArrayFree(in));
  CHECK(TVMArrayFree(out));
  CHECK(TVMFuncFree(function));
  return 0;
}
