//! What generated host code and a runtime know of each other: records, functions, the names of both eras.

use super::scalar::ScalarType;
use crate::release::Release;

/// The convention that entry functions are called by (FUN).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Abi {
    /// Up to 0.20: values of 8 bytes, type codes beside them.
    Legacy,
    /// From 0.21 on: values of 16 bytes.
    Ffi,
}

impl Abi {
    /// By the release that wrote the module: its runtime loads the code (MOD-03).
    pub(super) fn of(release: Release) -> Abi {
        if release < Release::of(21) {
            Abi::Legacy
        } else {
            Abi::Ffi
        }
    }

    /// The member of the union that a value of this type is in.
    pub(super) fn member(self, dtype: ScalarType) -> Option<&'static str> {
        Some(match (self, dtype) {
            (_, ScalarType::Bool | ScalarType::Int(_) | ScalarType::UInt(_)) => "v_int64",
            (_, ScalarType::Float(_) | ScalarType::BFloat) => "v_float64",
            (Abi::Legacy, ScalarType::Handle) => "v_handle",
            (Abi::Ffi, ScalarType::Handle) => "v_ptr",
            (_, ScalarType::Void) => return None,
        })
    }

    /// What a packed function leaves its result in.
    pub(super) fn value(self) -> &'static str {
        match self {
            Abi::Legacy => "TVMValue",
            Abi::Ffi => "TVMFFIAny",
        }
    }

    /// What `tvm_stack_alloca` makes room for.
    pub(super) fn record(self, what: &str) -> Option<&'static str> {
        Some(match (what, self) {
            ("shape", _) => "int64_t",
            ("array", _) => "DLTensor",
            ("arg_value", Abi::Legacy) => "TVMValue",
            ("arg_tcode", Abi::Legacy) => "int32_t",
            ("tvm_ffi_any", Abi::Ffi) => "TVMFFIAny",
            _ => return None,
        })
    }

    /// How many arguments of `tvm_call_packed_lowered` are about the stack.
    ///
    /// Up to 0.20 values and codes lie apart, each with a place of its own.
    pub(super) fn stack_arguments(self) -> usize {
        match self {
            Abi::Legacy => 4,
            Abi::Ffi => 3,
        }
    }

    /// What every file begins with. The layout of records is that of TEN, VAL and FUN; no header of a release is needed.
    pub(super) fn prelude(self) -> String {
        let own = match self {
            Abi::Legacy => LEGACY,
            Abi::Ffi => FFI,
        };
        [BOTH, own].concat()
    }

    /// What an assertion does that fails (TGT-88).
    pub(super) fn raise(self, kind: &str, parts: &[String]) -> Vec<String> {
        match (self, parts) {
            // TGT-88: up to 0.20 an error is a message without a kind.
            (Abi::Legacy, parts) => vec![format!("TVMAPISetLastError({});", parts.join(" "))],
            (Abi::Ffi, [message]) => {
                vec![format!("TVMFFIErrorSetRaisedFromCStr({kind}, {message});")]
            }
            (Abi::Ffi, parts) => vec![
                format!("const char* parts[] = {{{}}};", parts.join(", ")),
                format!(
                    "TVMFFIErrorSetRaisedFromCStrParts({kind}, parts, {});",
                    parts.len()
                ),
            ],
        }
    }

    /// The function that calls the one that a library is entered by (TGT-90).
    pub(super) fn entry(self, symbol: &str) -> String {
        let name = self.entry_name();
        match self {
            Abi::Legacy => format!(
                "int32_t {name}(void* args, int32_t* codes, int32_t count, void* result, int32_t* code, void* resource) {{\n  \
                 return {symbol}(args, codes, count, result, code, resource);\n}}\n"
            ),
            Abi::Ffi => format!(
                "int32_t {name}(void* self, void* args, int32_t count, void* result) {{\n  \
                 return {symbol}(self, args, count, result);\n}}\n"
            ),
        }
    }

    /// The symbol of a function that has another name in the text. A compiler that knows no label takes the symbol as the name.
    pub(super) fn label(symbol: &str, name: &str, types: &str) -> String {
        format!(
            "#ifdef __GNUC__\nint32_t {name}({types}) __asm__(TVMSPEC_STRING(__USER_LABEL_PREFIX__) \"{symbol}\");\n\
             #else\n#define {name} {symbol}\n#endif\n"
        )
    }

    /// The name of that function.
    pub(super) fn entry_name(self) -> &'static str {
        match self {
            Abi::Legacy => "__tvm_main__",
            Abi::Ffi => "__tvm_ffi_main",
        }
    }

    /// What calls packed functions by their names, where any is called.
    ///
    /// A function is looked up at its first call and kept: the lookup goes through all imports (MOD-13).
    pub(super) fn caller(self) -> &'static str {
        match self {
            Abi::Legacy => LEGACY_CALL,
            Abi::Ffi => FFI_CALL,
        }
    }
}

/// What every file ends with.
pub(super) const END: &str = "\
#ifdef __cplusplus
}
#endif
";

// `load_module` of the releases compiles a member `.c` of an archive as C++, which finds no function by a name that C++ has decorated. The
// headers are of C++ there, and stay outside.
const BOTH: &str = "\
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern \"C\" {
#endif
typedef struct { int32_t device_type; int32_t device_id; } DLDevice;
typedef struct { uint8_t code; uint8_t bits; uint16_t lanes; } DLDataType;
typedef struct {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
} DLTensor;
#define TVMSPEC_TEXT(of) #of
#define TVMSPEC_STRING(of) TVMSPEC_TEXT(of)
extern void* TVMBackendAllocWorkspace(int device_type, int device_id, uint64_t nbytes, int code_hint, int bits_hint);
extern int TVMBackendFreeWorkspace(int device_type, int device_id, void* space);
";

const LEGACY: &str = "\
typedef union { int64_t v_int64; double v_float64; void* v_handle; } TVMValue;
extern void TVMAPISetLastError(const char* message);
void* __tvm_module_ctx = NULL;
";

const FFI: &str = "\
typedef struct {
  int32_t type_index;
  uint32_t zero_padding;
  union { int64_t v_int64; double v_float64; void* v_ptr; };
} TVMFFIAny;
extern void TVMFFIErrorSetRaisedFromCStr(const char* kind, const char* message);
extern void TVMFFIErrorSetRaisedFromCStrParts(const char* kind, const char** parts, int32_t count);
void* __tvm_ffi__library_ctx = NULL;
";

const LEGACY_CALL: &str = "\
extern int TVMBackendGetFuncFromEnv(void* context, const char* name, void** function);
extern int TVMFuncCall(void* function, TVMValue* args, int* codes, int count, TVMValue* result, int* code);
static int call_packed(const char* name, void** function, void* values, void* codes, int begin, int end, TVMValue* answer) {
  TVMValue result;
  int code;
  if (answer == NULL) answer = &result;
  if (*function == NULL && TVMBackendGetFuncFromEnv(__tvm_module_ctx, name, function) != 0) return -1;
  return TVMFuncCall(*function, (TVMValue*)values + begin, (int*)codes + begin, end - begin, answer, &code);
}
";

// The result is None before the call, as the C interface requires of a caller.
const FFI_CALL: &str = "\
extern int TVMFFIEnvModLookupFromImports(void* context, const char* name, void** function);
extern int TVMFFIFunctionCall(void* function, TVMFFIAny* args, int32_t count, TVMFFIAny* result);
static int call_packed(const char* name, void** function, void* stack, int begin, int end, TVMFFIAny* answer) {
  TVMFFIAny result;
  if (answer == NULL) answer = &result;
  answer->type_index = 0;
  answer->zero_padding = 0;
  answer->v_int64 = 0;
  if (*function == NULL && TVMFFIEnvModLookupFromImports(__tvm_ffi__library_ctx, name, function) != 0) return -1;
  return TVMFFIFunctionCall(*function, (TVMFFIAny*)stack + begin, end - begin, answer);
}
";
