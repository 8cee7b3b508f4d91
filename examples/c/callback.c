/* A C callback as a function of the runtime, called by name.
 * With the C library in PREFIX, as `release/install-c PREFIX` or the archive of a release installs it, in the folder of this file:
 *
 *   export PKG_CONFIG_PATH=PREFIX/lib/pkgconfig LD_LIBRARY_PATH=PREFIX/lib
 *   cc callback.c $(pkg-config --cflags --libs tvmspec) -o callback && ./callback */
#include <stdio.h>
#include <string.h>
#include "tvm_ffi_c_api.h"

static int add(void* self, const TVMFFIAny* args, int32_t count, TVMFFIAny* result) {
  (void)self;
  if (count != 2 || args[0].type_index != kTVMFFIInt || args[1].type_index != kTVMFFIInt) {
    TVMFFIErrorSetRaisedFromCStr("TypeError", "add takes two integers");
    return -1;
  }
  memset(result, 0, sizeof *result);
  result->type_index = kTVMFFIInt;
  result->v_int64 = args[0].v_int64 + args[1].v_int64;
  return 0;
}

static int fail(const char* what) {
  TVMFFIObjectHandle error = NULL;
  TVMFFIErrorMoveFromRaised(&error);
  if (error) {
    TVMFFIErrorCell* cell = (TVMFFIErrorCell*)((char*)error + sizeof(TVMFFIObject));
    printf("%s: %.*s: %.*s\n", what, (int)cell->kind.size, cell->kind.data, (int)cell->message.size, cell->message.data);
    TVMFFIObjectDecRef(error);
  }
  return 1;
}

int main(void) {
  TVMFFIByteArray name = {"example.add", 11};
  TVMFFIObjectHandle made = NULL, found = NULL;
  if (TVMFFIFunctionCreate(NULL, add, NULL, &made) || TVMFFIFunctionSetGlobal(&name, made, 0)) return fail("register");
  if (TVMFFIFunctionGetGlobal(&name, &found) || !found) return fail("look up");
  TVMFFIAny args[2], result;
  memset(args, 0, sizeof args);
  memset(&result, 0, sizeof result);
  args[0].type_index = args[1].type_index = kTVMFFIInt;
  args[0].v_int64 = 40;
  args[1].v_int64 = 2;
  if (TVMFFIFunctionCall(found, args, 2, &result)) return fail("call");
  printf("example.add(40, 2) = %lld\n", (long long)result.v_int64);
  memset(&result, 0, sizeof result); /* A result is None before each call. */
  if (TVMFFIFunctionCall(found, args, 1, &result)) fail("example.add(40)");
  TVMFFIObjectDecRef(found);
  TVMFFIObjectDecRef(made);
  return 0;
}
