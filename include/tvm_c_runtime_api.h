/*
 * The C interface of the TVM runtime from 0.8 to 0.20, as tvmspec exports it.
 *
 * Every function that returns an int returns 0, or -1 with a text that TVMGetLastError() returns on the same thread.
 * Output parameters are not written on failure. The caller owns a returned handle, unless stated otherwise.
 * Values are 8 bytes each. Their type codes are in a separate array of ints.
 *
 * Use it together with upstream's <dlpack/dlpack.h>, <tvm/runtime/c_runtime_api.h> and <tvm/runtime/c_backend_api.h> (TVM 0.8 or later) in
 * any order: if the compiler finds them, this header includes them and uses their types. A compiler without __has_include (before GCC 5)
 * needs upstream's headers first.
 *
 * Written for tvmspec; names, numbers and layouts are those of the releases.
 */
#ifndef TVMSPEC_TVM_C_RUNTIME_API_H_
#define TVMSPEC_TVM_C_RUNTIME_API_H_

#ifdef __has_include
#if __has_include(<dlpack/dlpack.h>)
#include <dlpack/dlpack.h>
#if __has_include(<tvm/runtime/c_runtime_api.h>)
#include <tvm/runtime/c_runtime_api.h>
#endif
#if __has_include(<tvm/runtime/c_backend_api.h>) && (__has_include(<tvm/runtime/c_runtime_api.h>) || __has_include(<tvm/ffi/c_api.h>))
#include <tvm/runtime/c_backend_api.h>
#endif
#endif
#endif
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef TVM_DLL
#ifdef _WIN32
#define TVM_DLL __declspec(dllimport)
#else
#define TVM_DLL __attribute__((visibility("default")))
#endif
#endif

#ifndef DLPACK_DLPACK_H_
/* The part of DLPack that this interface needs. */
typedef struct { int32_t device_type; int32_t device_id; } DLDevice;
typedef struct { uint8_t code; uint8_t bits; uint16_t lanes; } DLDataType;
typedef struct {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides; /* in elements; null: compact and row-major */
  uint64_t byte_offset;
} DLTensor;
typedef struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(struct DLManagedTensor* self);
} DLManagedTensor;
#endif

#ifndef TVM_RUNTIME_C_RUNTIME_API_H_
typedef int64_t tvm_index_t;

/* Type codes. */
enum {
  kTVMArgInt = 0,
  kTVMArgFloat = 2,
  kTVMOpaqueHandle = 3,
  kTVMNullptr = 4,
  kTVMDataType = 5,
  kDLDevice = 6,
  kTVMDLTensorHandle = 7,
  kTVMObjectHandle = 8,
  kTVMModuleHandle = 9,
  kTVMPackedFuncHandle = 10,
  kTVMStr = 11,
  kTVMBytes = 12,
  kTVMNDArrayHandle = 13,
  kTVMObjectRValueRefArg = 14,
  kTVMArgBool = 15 /* from 0.18 on */
};

typedef union {
  int64_t v_int64;
  double v_float64;
  void* v_handle;
  const char* v_str;
  DLDataType v_type;
  DLDevice v_device;
} TVMValue;

typedef struct { const char* data; size_t size; } TVMByteArray;

typedef DLTensor* TVMArrayHandle;
typedef void* TVMModuleHandle;
typedef void* TVMFunctionHandle;
typedef void* TVMRetValueHandle;
typedef void* TVMStreamHandle;
typedef void* TVMObjectHandle;

/* A callback sets its result with TVMCFuncSetReturn and returns 0. On failure it calls TVMAPISetLastError and returns -1. */
typedef int (*TVMPackedCFunc)(TVMValue* args, int* type_codes, int num_args, TVMRetValueHandle ret, void* resource);
typedef void (*TVMPackedCFuncFinalizer)(void* resource);
#endif

/* ---- errors ---- */

/* Returns the text of the last failure on this thread, which is valid until the next one. */
TVM_DLL const char* TVMGetLastError(void);
/* Sets the text of the last failure on this thread. */
TVM_DLL void TVMAPISetLastError(const char* message);
/* Since 0.15: prints the last failure and aborts. */
TVM_DLL void TVMThrowLastError(void);
/* Since 0.15: returns the backtrace of the last failure, which is empty here. */
TVM_DLL const char* TVMGetLastBacktrace(void);
/* Since 0.15: an error object that a frontend stores for this thread. */
TVM_DLL void TVMAPISetLastPythonError(void* error);
TVM_DLL void* TVMGetLastPythonError(void);
TVM_DLL void TVMDropLastPythonError(void);

/* ---- modules ---- */

/* Loads a file. `format` selects the loader; if it is empty, the extension of the file does. */
TVM_DLL int TVMModLoadFromFile(const char* file_name, const char* format, TVMModuleHandle* out);
/* Adds an import. Fails if it would close a cycle. */
TVM_DLL int TVMModImport(TVMModuleHandle module, TVMModuleHandle dependency);
/* Returns 0 and a null handle for an unknown function. */
TVM_DLL int TVMModGetFunction(TVMModuleHandle module, const char* name, int query_imports, TVMFunctionHandle* out);
TVM_DLL int TVMModFree(TVMModuleHandle module);

/* ---- functions ---- */

TVM_DLL int TVMFuncFree(TVMFunctionHandle function);
/* A text or bytes in the result are valid until the next call on this thread. A data type is returned as text. */
TVM_DLL int TVMFuncCall(TVMFunctionHandle function, TVMValue* args, int* type_codes, int num_args, TVMValue* ret, int* ret_code);
/* For callbacks. num_ret must be 1. The value is copied; for a handle, the reference count rises. */
TVM_DLL int TVMCFuncSetReturn(TVMRetValueHandle ret, TVMValue* value, int* type_code, int num_ret);
/* For callbacks. Turns an argument into a value that the callback owns. */
TVM_DLL int TVMCbArgToReturn(TVMValue* value, int* type_code);
/* `finalizer(resource)` is called after the last reference to the function is released. */
TVM_DLL int TVMFuncCreateFromCFunc(TVMPackedCFunc function, void* resource, TVMPackedCFuncFinalizer finalizer, TVMFunctionHandle* out);
TVM_DLL int TVMFuncRegisterGlobal(const char* name, TVMFunctionHandle function, int override);
/* Returns 0 and a null handle for an unknown function. */
TVM_DLL int TVMFuncGetGlobal(const char* name, TVMFunctionHandle* out);
/* The array is valid until the next call of this function on the same thread. */
TVM_DLL int TVMFuncListGlobalNames(int* out_size, const char*** out_array);
TVM_DLL int TVMFuncRemoveGlobal(const char* name);

/* Destroys a result of an extension type (type code 16 to 127), which C++ registers with TVM_REGISTER_EXT_TYPE. Only in 0.2 to 0.6. */
TVM_DLL int TVMExtTypeFree(void* handle, int type_code);

/* ---- arrays ---- */

/* The content of a new array is undefined. */
TVM_DLL int TVMArrayAlloc(const tvm_index_t* shape, int ndim, int dtype_code, int dtype_bits, int dtype_lanes, int device_type, int device_id, TVMArrayHandle* out);
TVM_DLL int TVMArrayFree(TVMArrayHandle array);
/* `nbytes` must be the size of the array. */
TVM_DLL int TVMArrayCopyFromBytes(TVMArrayHandle array, void* data, size_t nbytes);
TVM_DLL int TVMArrayCopyToBytes(TVMArrayHandle array, void* data, size_t nbytes);
TVM_DLL int TVMArrayCopyFromTo(TVMArrayHandle from, TVMArrayHandle to, TVMStreamHandle stream);
TVM_DLL int TVMArrayFromDLPack(DLManagedTensor* from, TVMArrayHandle* out);
TVM_DLL int TVMArrayToDLPack(TVMArrayHandle from, DLManagedTensor** out);
TVM_DLL void TVMDLManagedTensorCallDeleter(DLManagedTensor* tensor);

/* ---- devices ---- */

TVM_DLL int TVMStreamCreate(int device_type, int device_id, TVMStreamHandle* out);
TVM_DLL int TVMStreamFree(int device_type, int device_id, TVMStreamHandle stream);
TVM_DLL int TVMSetStream(int device_type, int device_id, TVMStreamHandle stream);
TVM_DLL int TVMSynchronize(int device_type, int device_id, TVMStreamHandle stream);
TVM_DLL int TVMStreamStreamSynchronize(int device_type, int device_id, TVMStreamHandle before, TVMStreamHandle after);
TVM_DLL int TVMDeviceAllocDataSpace(DLDevice device, size_t nbytes, size_t alignment, DLDataType hint, void** out);
TVM_DLL int TVMDeviceAllocDataSpaceWithScope(DLDevice device, int ndim, const int64_t* shape, DLDataType dtype, const char* scope, void** out);
TVM_DLL int TVMDeviceFreeDataSpace(DLDevice device, void* space);
TVM_DLL int TVMDeviceCopyDataFromTo(DLTensor* from, DLTensor* to, TVMStreamHandle stream);

/* ---- objects ---- */

TVM_DLL int TVMObjectGetTypeIndex(TVMObjectHandle object, unsigned* out);
TVM_DLL int TVMObjectTypeKey2Index(const char* type_key, unsigned* out);
/* The text ends with NUL and comes from malloc. The caller frees it. */
TVM_DLL int TVMObjectTypeIndex2Key(unsigned type_index, char** out);
TVM_DLL int TVMObjectDerivedFrom(uint32_t child, uint32_t parent, int* out);
TVM_DLL int TVMObjectRetain(TVMObjectHandle object);
TVM_DLL int TVMObjectFree(TVMObjectHandle object);
/* Does nothing, because the thread owns the byte arrays in results. */
TVM_DLL int TVMByteArrayFree(TVMByteArray* array);

/* ---- functions for compiled code (c_backend_api.h) ---- */

#ifndef TVM_RUNTIME_C_BACKEND_API_H_
typedef struct { void* sync_handle; int32_t num_task; } TVMParallelGroupEnv;
typedef int (*FTVMParallelLambda)(int task_id, TVMParallelGroupEnv* group, void* data);
#endif

/* The module owns the returned handle. */
TVM_DLL int TVMBackendGetFuncFromEnv(void* context, const char* name, TVMFunctionHandle* out);
TVM_DLL int TVMBackendRegisterSystemLibSymbol(const char* name, void* address);
TVM_DLL void* TVMBackendAllocWorkspace(int device_type, int device_id, uint64_t nbytes, int dtype_code_hint, int dtype_bits_hint);
TVM_DLL int TVMBackendFreeWorkspace(int device_type, int device_id, void* space);
/* 0 for num_task means one task for each worker. */
TVM_DLL int TVMBackendParallelLaunch(FTVMParallelLambda task, void* data, int num_task);
TVM_DLL int TVMBackendParallelBarrier(int task_id, TVMParallelGroupEnv* group);
TVM_DLL int TVMBackendRunOnce(void** handle, int (*f)(void*), void* data, int nbytes);
/* Lists of the Relax VM. Up to 0.20, codes_or_n is the array of type codes and n the index of the value. Later, codes_or_n is the index. */
TVM_DLL int TVMBackendAnyListSetPackedArg(void* list, int index, void* values, void* codes_or_n, int n);
TVM_DLL int TVMBackendAnyListResetItem(void* list, int index);
TVM_DLL int TVMBackendAnyListMoveFromPackedReturn(void* list, int index, void* values, void* codes_or_n, int n);
/* Added after 0.27. */
TVM_DLL int TVMBackendSetDevice(int device_type, int device_id);
/* Accepts a hook of the Python frontend, but never calls it. */
TVM_DLL int TVMBackendRegisterEnvCAPI(const char* name, void* address);

#ifdef __cplusplus
}
#endif

#endif /* TVMSPEC_TVM_C_RUNTIME_API_H_ */
