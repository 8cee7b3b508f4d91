/* Prints the layout of the public structs as your compiler sees them: one entry of `layouts` in struct-layouts.json.
 *   cc -I../../include -o probe probe.c && ./probe
 * With -DWHEEL and the include directories of a tvm-ffi wheel it looks at the wheel's headers instead. EPOCH says which:
 * 0 is 0.21 (still inside TVM), then tvm-ffi 1: 0.1.0 to 0.1.7, 2: 0.1.8, 3: 0.1.9 to 0.1.12, 4: from 0.1.13 on.
 * A member that was renamed is printed under its last name. */
#include <stddef.h>
#include <stdio.h>
#ifndef EPOCH
#define EPOCH 4
#endif
#ifdef WHEEL
#include <tvm/ffi/c_api.h>
#define TVMFFIDLTensor DLTensor
#define TVMFFIDLManagedTensor DLManagedTensor
#define TVMFFIDLManagedTensorVersioned DLManagedTensorVersioned
#define padding __padding
#if EPOCH < 3
#define default_value_or_factory default_value
#endif
#if EPOCH == 0
#define small_str_len small_len
#define backtrace traceback
#define update_backtrace update_traceback
#define metadata type_schema
#define type_ancestors type_acenstors
#define TVMFFITypeMetadata TVMFFITypeExtraInfo
#endif
#else
#include "tvm_ffi_c_api.h"
#endif
/* The union of TVMFFIAny has no name. */
#define u v_int64
#define STRUCT(name) printf("%s  \"%s\": {\"size\": %zu, \"fields\": {", first++ ? ",\n" : "", #name, sizeof(name)), field = 0
#define FIELD(name, member) FIELD_AS(name, member, #member)
#define FIELD_AS(name, member, text) printf("%s\"%s\": [%zu, %zu]", field++ ? ", " : "", text, offsetof(name, member), sizeof(((name*)0)->member))
#define END() printf("}}")

int main(void) {
  int first = 0, field = 0;
  printf("{\n");
#if EPOCH >= 1
  STRUCT(TVMFFIVersion);
  FIELD(TVMFFIVersion, major);
  FIELD(TVMFFIVersion, minor);
  FIELD(TVMFFIVersion, patch);
  END();
#endif
  STRUCT(TVMFFIObject);
#if EPOCH == 0
  FIELD(TVMFFIObject, type_index);
  FIELD(TVMFFIObject, ref_counter);
#endif
#if EPOCH >= 1
  FIELD(TVMFFIObject, combined_ref_count);
  FIELD(TVMFFIObject, type_index);
  FIELD(TVMFFIObject, padding);
#endif
  FIELD(TVMFFIObject, deleter);
  END();
  STRUCT(TVMFFIAny);
  FIELD(TVMFFIAny, type_index);
  FIELD(TVMFFIAny, small_str_len);
  FIELD(TVMFFIAny, u);
  END();
  STRUCT(TVMFFIByteArray);
  FIELD(TVMFFIByteArray, data);
  FIELD(TVMFFIByteArray, size);
  END();
  STRUCT(TVMFFIShapeCell);
  FIELD(TVMFFIShapeCell, data);
  FIELD(TVMFFIShapeCell, size);
  END();
#if EPOCH >= 3
  STRUCT(TVMFFISeqCell);
  FIELD(TVMFFISeqCell, data);
  FIELD(TVMFFISeqCell, size);
  FIELD(TVMFFISeqCell, capacity);
  FIELD(TVMFFISeqCell, data_deleter);
  END();
#endif
  STRUCT(TVMFFIErrorCell);
  FIELD(TVMFFIErrorCell, kind);
  FIELD(TVMFFIErrorCell, message);
  FIELD(TVMFFIErrorCell, backtrace);
  FIELD(TVMFFIErrorCell, update_backtrace);
#if EPOCH >= 2
  FIELD(TVMFFIErrorCell, cause_chain);
  FIELD(TVMFFIErrorCell, extra_context);
#endif
  END();
  STRUCT(TVMFFIFunctionCell);
  FIELD(TVMFFIFunctionCell, safe_call);
#if EPOCH >= 1
  FIELD(TVMFFIFunctionCell, cpp_call);
#endif
  END();
#if EPOCH >= 1
  STRUCT(TVMFFIOpaqueObjectCell);
  FIELD(TVMFFIOpaqueObjectCell, handle);
  END();
#endif
#if EPOCH >= 4
  STRUCT(TVMFFIObjectAllocHeader);
  FIELD(TVMFFIObjectAllocHeader, delete_space);
  END();
  STRUCT(TVMFFICustomAllocator);
  FIELD(TVMFFICustomAllocator, allocate);
  FIELD(TVMFFICustomAllocator, context);
  END();
#endif
  STRUCT(TVMFFIFieldInfo);
  FIELD(TVMFFIFieldInfo, name);
  FIELD(TVMFFIFieldInfo, doc);
  FIELD(TVMFFIFieldInfo, metadata);
  FIELD(TVMFFIFieldInfo, flags);
  FIELD(TVMFFIFieldInfo, size);
  FIELD(TVMFFIFieldInfo, alignment);
  FIELD(TVMFFIFieldInfo, offset);
  FIELD(TVMFFIFieldInfo, getter);
  FIELD(TVMFFIFieldInfo, setter);
  FIELD(TVMFFIFieldInfo, default_value_or_factory);
  FIELD(TVMFFIFieldInfo, field_static_type_index);
  END();
  STRUCT(TVMFFIMethodInfo);
  FIELD(TVMFFIMethodInfo, name);
  FIELD(TVMFFIMethodInfo, doc);
  FIELD(TVMFFIMethodInfo, metadata);
  FIELD(TVMFFIMethodInfo, flags);
  FIELD(TVMFFIMethodInfo, method);
  END();
  STRUCT(TVMFFITypeMetadata);
  FIELD(TVMFFITypeMetadata, doc);
  FIELD(TVMFFITypeMetadata, creator);
  FIELD(TVMFFITypeMetadata, total_size);
#if EPOCH >= 1
  FIELD(TVMFFITypeMetadata, structural_eq_hash_kind);
#endif
  END();
#if EPOCH >= 1
  STRUCT(TVMFFITypeAttrColumn);
  FIELD(TVMFFITypeAttrColumn, data);
  FIELD(TVMFFITypeAttrColumn, size);
#endif
#if EPOCH >= 3
  FIELD(TVMFFITypeAttrColumn, begin_index);
#endif
#if EPOCH >= 1
  END();
#endif
  STRUCT(TVMFFITypeInfo);
  FIELD(TVMFFITypeInfo, type_index);
  FIELD(TVMFFITypeInfo, type_depth);
  FIELD(TVMFFITypeInfo, type_key);
  FIELD(TVMFFITypeInfo, type_ancestors);
  FIELD(TVMFFITypeInfo, type_key_hash);
  FIELD(TVMFFITypeInfo, num_fields);
  FIELD(TVMFFITypeInfo, num_methods);
  FIELD(TVMFFITypeInfo, fields);
  FIELD(TVMFFITypeInfo, methods);
#if EPOCH >= 1
  FIELD(TVMFFITypeInfo, metadata);
#endif
#if EPOCH == 0
  FIELD_AS(TVMFFITypeInfo, extra_info, "metadata");
#endif
  END();
  STRUCT(TVMFFIDLTensor);
  FIELD(TVMFFIDLTensor, data);
  FIELD(TVMFFIDLTensor, device);
  FIELD(TVMFFIDLTensor, ndim);
  FIELD(TVMFFIDLTensor, dtype);
  FIELD(TVMFFIDLTensor, shape);
  FIELD(TVMFFIDLTensor, strides);
  FIELD(TVMFFIDLTensor, byte_offset);
  END();
  STRUCT(TVMFFIDLManagedTensor);
  FIELD(TVMFFIDLManagedTensor, dl_tensor);
  FIELD(TVMFFIDLManagedTensor, manager_ctx);
  FIELD(TVMFFIDLManagedTensor, deleter);
  END();
  STRUCT(TVMFFIDLManagedTensorVersioned);
  FIELD(TVMFFIDLManagedTensorVersioned, version);
  FIELD(TVMFFIDLManagedTensorVersioned, manager_ctx);
  FIELD(TVMFFIDLManagedTensorVersioned, deleter);
  FIELD(TVMFFIDLManagedTensorVersioned, flags);
  FIELD(TVMFFIDLManagedTensorVersioned, dl_tensor);
  END();
  printf("\n}\n");
  return 0;
}
