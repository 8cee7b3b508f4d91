/* The tvm-ffi C interface as tvmspec exports it (ABI 0.1.16; TVM 0.22 and later). Plain C99 without dependencies.
 * Layouts: spec/value.md, spec/function.md, spec/object.md; golden/value/probe.c prints them.
 * Unless stated otherwise, a function returns 0, or -1 after it has raised an error on the calling thread. TVMFFIErrorMoveFromRaised
 * returns that error.
 *
 * Use it together with upstream's <tvm/ffi/c_api.h> (tvm-ffi 0.1.0 or later) in any order: if the compiler finds that header and DLPack,
 * this header includes them and uses their types. A compiler without __has_include (before GCC 5) needs upstream's headers first. */
#ifndef TVMSPEC_TVM_FFI_C_API_H_
#define TVMSPEC_TVM_FFI_C_API_H_

#ifdef __has_include
#if __has_include(<tvm/ffi/c_api.h>) && __has_include(<dlpack/dlpack.h>)
#include <tvm/ffi/c_api.h>
#endif
#endif
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifdef TVM_FFI_C_API_H_
/* Upstream's header is already included. */
typedef DLDataType TVMFFIDLDataType;
typedef DLDevice TVMFFIDLDevice;
typedef DLTensor TVMFFIDLTensor;
typedef DLManagedTensor TVMFFIDLManagedTensor;
typedef DLManagedTensorVersioned TVMFFIDLManagedTensorVersioned;
#if TVM_FFI_VERSION_MAJOR == 0 && TVM_FFI_VERSION_MINOR == 1 && TVM_FFI_VERSION_PATCH < 14
typedef struct TVMFFICustomAllocator TVMFFICustomAllocator;
#endif
#else
typedef void* TVMFFIObjectHandle;

/* Type indices. A value with an index below 64 has no object. */
enum {
  kTVMFFIAny = -1, kTVMFFINone = 0, kTVMFFIInt = 1, kTVMFFIBool = 2, kTVMFFIFloat = 3, kTVMFFIOpaquePtr = 4,
  kTVMFFIDataType = 5, kTVMFFIDevice = 6, kTVMFFIDLTensorPtr = 7, kTVMFFIRawStr = 8, kTVMFFIByteArrayPtr = 9,
  kTVMFFIObjectRValueRef = 10, kTVMFFISmallStr = 11, kTVMFFISmallBytes = 12, kTVMFFIUnchanged = 13,
  kTVMFFIObject = 64, kTVMFFIStr = 65, kTVMFFIBytes = 66, kTVMFFIError = 67, kTVMFFIFunction = 68, kTVMFFIShape = 69,
  kTVMFFITensor = 70, kTVMFFIArray = 71, kTVMFFIMap = 72, kTVMFFIModule = 73, kTVMFFIOpaquePyObject = 74,
  kTVMFFIList = 75, kTVMFFIDict = 76, kTVMFFIVisitInterrupt = 77, kTVMFFIBigInt = 78, kTVMFFIDynObjectBegin = 128
};

/* Flags of a field or a method. */
enum {
  kTVMFFIFieldFlagBitMaskWritable = 1, kTVMFFIFieldFlagBitMaskHasDefault = 2, kTVMFFIFieldFlagBitMaskIsStaticMethod = 4,
  kTVMFFIFieldFlagBitMaskSEqHashIgnore = 8, kTVMFFIFieldFlagBitMaskSEqHashDefPattern = 16,
  kTVMFFIFieldFlagBitMaskDefaultFromFactory = 32, kTVMFFIFieldFlagBitMaskReprOff = 64,
  kTVMFFIFieldFlagBitMaskCompareOff = 128, kTVMFFIFieldFlagBitMaskHashOff = 256, kTVMFFIFieldFlagBitMaskInitOff = 512,
  kTVMFFIFieldFlagBitMaskKwOnly = 1024, kTVMFFIFieldFlagBitSetterIsFunctionObj = 2048,
  kTVMFFIFieldFlagBitMaskSEqHashDefSimple = 4096
};

typedef struct { uint8_t code; uint8_t bits; uint16_t lanes; } TVMFFIDLDataType;
typedef struct { int32_t device_type; int32_t device_id; } TVMFFIDLDevice;
typedef struct {
  void* data; TVMFFIDLDevice device; int32_t ndim; TVMFFIDLDataType dtype;
  int64_t* shape; int64_t* strides; uint64_t byte_offset;
} TVMFFIDLTensor;
typedef struct TVMFFIDLManagedTensor {
  TVMFFIDLTensor dl_tensor; void* manager_ctx; void (*deleter)(struct TVMFFIDLManagedTensor*);
} TVMFFIDLManagedTensor;
typedef struct TVMFFIDLManagedTensorVersioned {
  struct { uint32_t major, minor; } version; void* manager_ctx;
  void (*deleter)(struct TVMFFIDLManagedTensorVersioned*); uint64_t flags; TVMFFIDLTensor dl_tensor;
} TVMFFIDLManagedTensorVersioned;

/* The header at the start of every object, 24 bytes. */
typedef struct {
  uint64_t combined_ref_count; /* strong count in the low 32 bits, weak count in the high 32 bits */
  int32_t type_index;
  uint32_t padding;
  void (*deleter)(void* object, int flags); /* flags: 1 destroys the content, 2 frees the memory, 3 does both */
} TVMFFIObject;

/* A value, 16 bytes. */
typedef struct {
  int32_t type_index;
  uint32_t small_str_len; /* 0 except for small strings and small bytes */
#ifdef __GNUC__
  __extension__ /* C99 has no unnamed unions */
#endif
  union {
    int64_t v_int64; double v_float64; void* v_ptr; const char* v_c_str; TVMFFIObject* v_obj;
    TVMFFIDLDataType v_dtype; TVMFFIDLDevice v_device; char v_bytes[8]; uint64_t v_uint64;
  };
} TVMFFIAny;

typedef struct { const char* data; size_t size; } TVMFFIByteArray;
typedef struct { const int64_t* data; size_t size; } TVMFFIShapeCell;
typedef struct { void* data; int64_t size, capacity; void (*data_deleter)(void*); } TVMFFISeqCell; /* an array or a list of TVMFFIAny */
typedef struct { void* handle; } TVMFFIOpaqueObjectCell;
typedef struct { uint32_t major, minor, patch; } TVMFFIVersion;
typedef int (*TVMFFISafeCallType)(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result);
typedef struct { TVMFFISafeCallType safe_call; void* cpp_call; } TVMFFIFunctionCell;
typedef struct {
  TVMFFIByteArray kind, message, backtrace;
  void (*update_backtrace)(TVMFFIObjectHandle self, const TVMFFIByteArray* text, int32_t mode); /* mode: 0 replaces, 1 appends */
  TVMFFIObjectHandle cause_chain, extra_context;
} TVMFFIErrorCell;
typedef struct {
  TVMFFIByteArray name, doc, metadata; int64_t flags, size, alignment, offset;
  int (*getter)(void* field, TVMFFIAny* result); void* setter; TVMFFIAny default_value_or_factory;
  int32_t field_static_type_index;
} TVMFFIFieldInfo;
typedef struct { TVMFFIByteArray name, doc, metadata; int64_t flags; TVMFFIAny method; } TVMFFIMethodInfo;
typedef struct {
  TVMFFIByteArray doc; int (*creator)(TVMFFIObjectHandle* result); int32_t total_size; int32_t structural_eq_hash_kind;
} TVMFFITypeMetadata;
typedef struct { const TVMFFIAny* data; int32_t size; int32_t begin_index; } TVMFFITypeAttrColumn;
typedef struct TVMFFITypeInfo {
  int32_t type_index, type_depth; TVMFFIByteArray type_key; const struct TVMFFITypeInfo** type_ancestors;
  uint64_t type_key_hash; int32_t num_fields, num_methods; const TVMFFIFieldInfo* fields;
  const TVMFFIMethodInfo* methods; const TVMFFITypeMetadata* metadata;
} TVMFFITypeInfo;
typedef struct { void (*delete_space)(void* ptr); } TVMFFIObjectAllocHeader; /* the header before the memory that a custom allocator returns */
typedef struct {
  void* (*allocate)(size_t size, size_t alignment, int32_t type_index, void* context); void* context;
} TVMFFICustomAllocator;
#endif

typedef int (*TVMFFIDLPackAllocator)(TVMFFIDLTensor* prototype, TVMFFIDLManagedTensorVersioned** out, void* error_ctx,
                                     void (*set_error)(void* error_ctx, const char* kind, const char* message));

/* Objects. Null handles are allowed in the first two. */
void TVMFFIGetVersion(TVMFFIVersion* out);
int TVMFFIObjectIncRef(TVMFFIObjectHandle obj);
int TVMFFIObjectDecRef(TVMFFIObjectHandle obj);
int TVMFFIObjectCreateOpaque(void* handle, int32_t type_index, void (*deleter)(void* handle), TVMFFIObjectHandle* out);
int TVMFFIHandleInitOnce(void** handle_addr, int (*init_func)(void** result));
int TVMFFIHandleDeinitOnce(void** handle_addr, int (*deinit_func)(void* handle));
TVMFFICustomAllocator* TVMFFIGetCustomAllocator(void);
int TVMFFISetCustomAllocator(TVMFFICustomAllocator* allocator);

/* Functions. A missing global returns 0 and a null handle. */
int TVMFFIFunctionCreate(void* self, TVMFFISafeCallType safe_call, void (*deleter)(void* self), TVMFFIObjectHandle* out);
int TVMFFIFunctionCall(TVMFFIObjectHandle func, TVMFFIAny* args, int32_t num_args, TVMFFIAny* result);
int TVMFFIFunctionGetGlobal(const TVMFFIByteArray* name, TVMFFIObjectHandle* out);
int TVMFFIFunctionSetGlobal(const TVMFFIByteArray* name, TVMFFIObjectHandle f, int allow_override);
int TVMFFIFunctionSetGlobalFromMethodInfo(const TVMFFIMethodInfo* method_info, int allow_override);

/* Errors. */
void TVMFFIErrorMoveFromRaised(TVMFFIObjectHandle* result);
void TVMFFIErrorSetRaised(TVMFFIObjectHandle error);
void TVMFFIErrorSetRaisedFromCStr(const char* kind, const char* message);
void TVMFFIErrorSetRaisedFromCStrParts(const char* kind, const char** message_parts, int32_t num_parts);
int TVMFFIErrorCreate(const TVMFFIByteArray* kind, const TVMFFIByteArray* message, const TVMFFIByteArray* backtrace,
                      TVMFFIObjectHandle* out);
int TVMFFIErrorCreateWithCauseAndExtraContext(const TVMFFIByteArray* kind, const TVMFFIByteArray* message,
                                              const TVMFFIByteArray* backtrace, TVMFFIObjectHandle cause_chain,
                                              TVMFFIObjectHandle extra_context, TVMFFIObjectHandle* out);
const TVMFFIByteArray* TVMFFIBacktrace(const char* filename, int lineno, const char* func, int cross_ffi_boundary);

/* Values. */
int TVMFFIAnyViewToOwnedAny(const TVMFFIAny* any_view, TVMFFIAny* out);
int TVMFFIStringFromByteArray(const TVMFFIByteArray* input, TVMFFIAny* out);
int TVMFFIBytesFromByteArray(const TVMFFIByteArray* input, TVMFFIAny* out);
int TVMFFIBigIntFromByteArray(const TVMFFIByteArray* input, TVMFFIAny* out);
TVMFFIByteArray TVMFFIBigIntGetContentByteArray(const TVMFFIAny* value);
int TVMFFIDataTypeFromString(const TVMFFIByteArray* str, TVMFFIDLDataType* out);
int TVMFFIDataTypeToString(const TVMFFIDLDataType* dtype, TVMFFIAny* out);

/* Tensors. */
int TVMFFITensorFromDLPack(TVMFFIDLManagedTensor* from, int32_t require_alignment, int32_t require_contiguous,
                           TVMFFIObjectHandle* out);
int TVMFFITensorToDLPack(TVMFFIObjectHandle from, TVMFFIDLManagedTensor** out);
int TVMFFITensorFromDLPackVersioned(TVMFFIDLManagedTensorVersioned* from, int32_t require_alignment,
                                    int32_t require_contiguous, TVMFFIObjectHandle* out);
int TVMFFITensorToDLPackVersioned(TVMFFIObjectHandle from, TVMFFIDLManagedTensorVersioned** out);
int TVMFFITensorCreateUnsafeView(TVMFFIObjectHandle source, const TVMFFIDLTensor* prototype, TVMFFIObjectHandle* out);

/* Types. TVMFFITypeGetOrAllocIndex returns -1 and raises an error if the type does not fit its parent. TVMFFIGetTypeAttrColumn returns
 * null for an unknown attribute. TVMFFIGetTypeInfo ends the process with a message for an unknown index, because callers dereference
 * its result without a check. */
int TVMFFITypeKeyToIndex(const TVMFFIByteArray* type_key, int32_t* out_tindex);
int32_t TVMFFITypeGetOrAllocIndex(const TVMFFIByteArray* type_key, int32_t static_type_index, int32_t type_depth,
                                  int32_t num_child_slots, int32_t child_slots_can_overflow, int32_t parent_type_index);
const TVMFFITypeInfo* TVMFFIGetTypeInfo(int32_t type_index);
int TVMFFITypeRegisterField(int32_t type_index, const TVMFFIFieldInfo* info);
int TVMFFITypeRegisterMethod(int32_t type_index, const TVMFFIMethodInfo* info);
int TVMFFITypeRegisterMetadata(int32_t type_index, const TVMFFITypeMetadata* metadata);
int TVMFFITypeRegisterAttr(int32_t type_index, const TVMFFIByteArray* attr_name, const TVMFFIAny* attr_value);
const TVMFFITypeAttrColumn* TVMFFIGetTypeAttrColumn(const TVMFFIByteArray* attr_name);

/* Environment: streams and allocators of each thread, hooks of a Python frontend, symbols of libraries. */
int TVMFFIEnvSetStream(int32_t device_type, int32_t device_id, void* stream, void** opt_out_original_stream);
void* TVMFFIEnvGetStream(int32_t device_type, int32_t device_id);
int TVMFFIEnvSetDLPackManagedTensorAllocator(TVMFFIDLPackAllocator allocator, int write_to_global_context,
                                             TVMFFIDLPackAllocator* opt_out_original_allocator);
TVMFFIDLPackAllocator TVMFFIEnvGetDLPackManagedTensorAllocator(void);
int TVMFFIEnvTensorAlloc(TVMFFIDLTensor* prototype, TVMFFIObjectHandle* out);
int TVMFFIEnvCheckSignals(void);
int TVMFFIEnvRegisterCAPI(const char* name, void* symbol);
int TVMFFIEnvModLookupFromImports(void* library_ctx, const char* func_name, TVMFFIObjectHandle* out);
int TVMFFIEnvModRegisterContextSymbol(const char* name, void* symbol);
int TVMFFIEnvModRegisterSystemLibSymbol(const char* name, void* symbol);

#ifdef __cplusplus
}
#endif
#endif
