/* Prints the layout of the public structs as your compiler sees them, in the form of struct-layouts.json.
 *   cc -I../../include -o probe probe.c && ./probe | diff - struct-layouts.json
 * With -DWHEEL and the include directories of the tvm-ffi wheel it looks at the wheel's headers instead. */
#include <stddef.h>
#include <stdio.h>
#ifdef WHEEL
#include <tvm/ffi/c_api.h>
#define TVMFFIDLTensor DLTensor
#define TVMFFIDLManagedTensor DLManagedTensor
#define TVMFFIDLManagedTensorVersioned DLManagedTensorVersioned
#define padding __padding
#define u v_int64
#else
#include "tvm_ffi_c_api.h"
#endif
#define STRUCT(name) printf("%s  \"%s\": {\n   \"size\": %zu,\n   \"fields\": {", first++ ? ",\n" : "", #name, sizeof(name)), field = 0
#define FIELD(name, member) printf("%s\n    \"%s\": [\n     %zu,\n     %zu\n    ]", field++ ? "," : "", #member, offsetof(name, member), sizeof(((name*)0)->member))
#define END() printf("\n   }\n  }")

int main(void) {
  int first = 0, field = 0;
  printf("{\n \"release\": \"tvm-ffi 0.1.15.post2\",\n \"target\": \"x86-64\",\n \"what\": \"%s\",\n \"structs\": {\n", "size in bytes; fields as [offset, size]; DLPack structs under our names");
  STRUCT(TVMFFIVersion);
  FIELD(TVMFFIVersion, major);
  FIELD(TVMFFIVersion, minor);
  FIELD(TVMFFIVersion, patch);
  END();
  STRUCT(TVMFFIObject);
  FIELD(TVMFFIObject, combined_ref_count);
  FIELD(TVMFFIObject, type_index);
  FIELD(TVMFFIObject, padding);
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
  STRUCT(TVMFFIErrorCell);
  FIELD(TVMFFIErrorCell, kind);
  FIELD(TVMFFIErrorCell, message);
  FIELD(TVMFFIErrorCell, backtrace);
  FIELD(TVMFFIErrorCell, update_backtrace);
  FIELD(TVMFFIErrorCell, cause_chain);
  FIELD(TVMFFIErrorCell, extra_context);
  END();
  STRUCT(TVMFFIFunctionCell);
  FIELD(TVMFFIFunctionCell, safe_call);
  FIELD(TVMFFIFunctionCell, cpp_call);
  END();
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
  FIELD(TVMFFITypeMetadata, structural_eq_hash_kind);
  END();
  STRUCT(TVMFFITypeAttrColumn);
  FIELD(TVMFFITypeAttrColumn, data);
  FIELD(TVMFFITypeAttrColumn, size);
  FIELD(TVMFFITypeAttrColumn, begin_index);
  END();
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
  FIELD(TVMFFITypeInfo, metadata);
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
  printf("\n }\n}\n");
  return 0;
}
