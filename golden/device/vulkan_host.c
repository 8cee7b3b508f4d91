/* Host code of a Vulkan library, written by hand for the convention of 0.22 on: add1(x, y) makes y = x + 1 on the device.
 *
 * No release at hand was built with Vulkan, so no real library shows this. What is here is what the chapters say that any
 * host code does: it finds its kernel through the library's context, and passes on what a tensor has as data, which on a
 * device is the handle of its memory and never an address that the host may read.
 *
 * Nothing of the runtime is linked: the loader writes its functions into the weak symbols below (MOD-05). */
#include "../../include/tvm_ffi_c_api.h"
#include <stdio.h>

enum { DEVICE_VULKAN = 7, CODE_FLOAT = 2, THREADS = 64 };

#define EXPORTED __attribute__((visibility("default")))
#define SLOT EXPORTED __attribute__((weak))

/* The module of this library, by which its imports are found. */
SLOT void* __tvm_ffi__library_ctx;
SLOT int (*__TVMFFIEnvModLookupFromImports)(void* context, const char* name, TVMFFIObjectHandle* out);
SLOT int (*__TVMFFIFunctionCall)(TVMFFIObjectHandle function, TVMFFIAny* args, int32_t count, TVMFFIAny* result);
SLOT void (*__TVMFFIErrorSetRaisedFromCStr)(const char* kind, const char* message);

static int raise(const char* kind, const char* message) {
  if (__TVMFFIErrorSetRaisedFromCStr) __TVMFFIErrorSetRaisedFromCStr(kind, message);
  return -1;
}

/* The function of the imports, or else of the runtime, called with `args`. */
static int call(const char* name, TVMFFIAny* args, int32_t count) {
  TVMFFIObjectHandle function = NULL; /* borrowed: the module keeps it */
  TVMFFIAny nothing = {kTVMFFINone, 0, {0}};
  if (!__TVMFFIEnvModLookupFromImports || !__TVMFFIFunctionCall) return raise("RuntimeError", "add1: the loader filled no slots");
  if (__TVMFFIEnvModLookupFromImports(__tvm_ffi__library_ctx, name, &function)) return -1;
  return __TVMFFIFunctionCall(function, args, count, &nothing);
}

static TVMFFIAny integer(int64_t value) {
  TVMFFIAny any = {kTVMFFIInt, 0, {0}};
  any.v_int64 = value;
  return any;
}

static TVMFFIAny number(double value) {
  TVMFFIAny any = {kTVMFFIFloat, 0, {0}};
  any.v_float64 = value;
  return any;
}

static TVMFFIAny memory(const TVMFFIDLTensor* tensor) {
  TVMFFIAny any = {kTVMFFIOpaquePtr, 0, {0}};
  any.v_ptr = tensor->data;
  return any;
}

/* The vector of float32 in Vulkan memory that argument `at` must be; null with an error waiting if it is not. */
static const TVMFFIDLTensor* vector(const TVMFFIAny* arg, int at) {
  const TVMFFIDLTensor* tensor = NULL;
  char message[128];
  if (arg->type_index == kTVMFFIDLTensorPtr) tensor = arg->v_ptr;
  if (arg->type_index == kTVMFFITensor) tensor = (const void*)((const char*)arg->v_ptr + sizeof(TVMFFIObject));
  if (!tensor) {
    snprintf(message, sizeof message, "add1: argument #%d is not a tensor (type index %d)", at, arg->type_index);
    raise("TypeError", message);
    return NULL;
  }
  if (tensor->dtype.code != CODE_FLOAT || tensor->dtype.bits != 32 || tensor->dtype.lanes != 1) {
    snprintf(message, sizeof message, "add1: argument #%d is not of float32", at);
    raise("TypeError", message);
    return NULL;
  }
  if (tensor->device.device_type != DEVICE_VULKAN) {
    snprintf(message, sizeof message, "add1: argument #%d is on device type %d, not on vulkan (7)", at,
             tensor->device.device_type);
    raise("ValueError", message);
    return NULL;
  }
  /* The kernel gets whole buffers, so no view may begin inside one. */
  if (tensor->ndim != 1 || (tensor->strides && tensor->strides[0] != 1) || tensor->byte_offset != 0) {
    snprintf(message, sizeof message, "add1: argument #%d is not a compact vector from the start of its memory", at);
    raise("ValueError", message);
    return NULL;
  }
  return tensor;
}

EXPORTED int __tvm_ffi_add1(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  (void)self;
  (void)result; /* None already: the caller made it so */
  if (num_args != 2) return raise("TypeError", "add1: two arguments are expected, the input and the output");
  const TVMFFIDLTensor* x = vector(&args[0], 0);
  const TVMFFIDLTensor* y = x ? vector(&args[1], 1) : NULL;
  if (!y) return -1;
  int64_t n = x->shape[0];
  if (n != y->shape[0]) return raise("ValueError", "add1: the input and the output differ in length");
  if (x->device.device_id != y->device.device_id) return raise("ValueError", "add1: the input and the output are on two devices");
  if (n == 0) return 0;

  TVMFFIAny device[] = {integer(DEVICE_VULKAN), integer(x->device.device_id)};
  if (call("__tvm_set_device", device, 2)) return -1;
  /* The parameters of the kernel, then its launch parameters: blocks and threads of a block along x. */
  TVMFFIAny launch[] = {memory(y), memory(x), integer(n), number(1.0), integer((n + THREADS - 1) / THREADS), integer(THREADS)};
  return call("add_one", launch, 6);
}
