/* Uses an RPC server from C: connects, uploads a library, loads it there, looks up its function, and makes calls. One call fails.
 * With the C library in PREFIX, as `release/install-c PREFIX` or the archive of a release installs it, in the folder of this file:
 *
 *   export PKG_CONFIG_PATH=PREFIX/lib/pkgconfig LD_LIBRARY_PATH=PREFIX/lib
 *   cc remote.c $(pkg-config --cflags --libs tvmspec) -o remote
 *   tvmspec serve --port 9090 --allow-load &
 *   ./remote 9090 open-0.22.so
 *
 * The archive contains open-0.22.so; in the source tree it is in golden/module. The command line of cargo or pip can serve it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tvm_ffi_c_api.h"

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

static TVMFFIAny integer(int64_t value) {
  TVMFFIAny any = {.type_index = kTVMFFIInt};
  any.v_int64 = value;
  return any;
}

static TVMFFIAny text(const char* value) {
  TVMFFIAny any = {.type_index = kTVMFFIRawStr};
  any.v_c_str = value;
  return any;
}

/* Calls a function of the registry. */
static int call(const char* name, TVMFFIAny* args, int count, TVMFFIAny* result) {
  TVMFFIByteArray key = {name, strlen(name)};
  TVMFFIObjectHandle function = NULL;
  if (TVMFFIFunctionGetGlobal(&key, &function)) return -1;
  if (!function) {
    printf("there is no function %s\n", name);
    return -1;
  }
  memset(result, 0, sizeof *result);
  int code = TVMFFIFunctionCall(function, args, count, result);
  TVMFFIObjectDecRef(function);
  return code;
}

/* Looks up a function of a module or a session. The functions of a session are the server's global functions. */
static int function_of(TVMFFIAny module, const char* name, TVMFFIAny* function) {
  TVMFFIAny args[3] = {module, text(name), integer(1)};
  args[2].type_index = kTVMFFIBool;
  return call("ffi.ModuleGetFunction", args, 3, function);
}

int main(int argc, char** argv) {
  if (argc != 3) return printf("remote PORT LIBRARY\n"), 2;
  FILE* file = fopen(argv[2], "rb");
  if (!file) return perror(argv[2]), 2;
  static char content[1 << 20];
  TVMFFIByteArray bytes = {content, fread(content, 1, sizeof content, file)};
  fclose(file);

  TVMFFIAny session, upload, library, echo, nothing, result;
  TVMFFIAny to[4] = {text("127.0.0.1"), integer(atoi(argv[1])), text(""), integer(0)};
  if (call("rpc.Connect", to, 4, &session)) return fail("rpc.Connect");
  if (function_of(session, "tvm.rpc.server.upload", &upload)) return fail("look up");
  TVMFFIAny sent[2] = {text("open.so")};
  sent[1] = (TVMFFIAny){.type_index = kTVMFFIByteArrayPtr};
  sent[1].v_ptr = &bytes;
  memset(&result, 0, sizeof result);
  if (TVMFFIFunctionCall(upload.v_obj, sent, 2, &result)) return fail("upload");
  TVMFFIAny loaded[2] = {session, text("open.so")};
  if (call("rpc.LoadRemoteModule", loaded, 2, &library)) return fail("load");
  if (function_of(library, "nothing", &nothing)) return fail("look up");
  printf("the library there %s a function `nothing`\n", nothing.type_index == kTVMFFINone ? "has not" : "has");

  if (function_of(session, "testing.echo", &echo)) return fail("look up");
  TVMFFIAny number = integer(42);
  memset(&result, 0, sizeof result);
  if (TVMFFIFunctionCall(echo.v_obj, &number, 1, &result)) return fail("call");
  printf("testing.echo(42) = %lld\n", (long long)result.v_int64);
  TVMFFIAny missing[2] = {session, text("missing.so")};
  if (call("rpc.LoadRemoteModule", missing, 2, &result)) fail("missing.so");

  TVMFFIObjectDecRef(nothing.v_obj);
  TVMFFIObjectDecRef(library.v_obj);
  TVMFFIObjectDecRef(echo.v_obj);
  TVMFFIObjectDecRef(upload.v_obj);
  TVMFFIObjectDecRef(session.v_obj);
  return 0;
}
