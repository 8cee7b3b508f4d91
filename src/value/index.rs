//! The fixed type indices: 0 to 63 for values without an object, 64 to 127 for objects that every library knows. Others start at 128.

/// "Any type", in schemas only.
pub const ANY: i32 = -1;
/// None.
pub const NONE: i32 = 0;
/// 64-bit signed integer.
pub const INT: i32 = 1;
/// Bool, stored as integer 0 or 1.
pub const BOOL: i32 = 2;
/// 64-bit float.
pub const FLOAT: i32 = 3;
/// Opaque pointer.
pub const OPAQUE: i32 = 4;
/// Data type.
pub const DATA_TYPE: i32 = 5;
/// Device.
pub const DEVICE: i32 = 6;
/// Borrowed tensor description; only in views.
pub const DLTENSOR_PTR: i32 = 7;
/// Borrowed C string; only in views.
pub const RAW_STR: i32 = 8;
/// Borrowed byte array; only in views.
pub const BYTE_ARRAY: i32 = 9;
/// Address of an owned object slot that the callee may empty; only in views.
pub const RVALUE_REF: i32 = 10;
/// String of at most 7 bytes, inside the cell.
pub const SMALL_STR: i32 = 11;
/// Bytes, at most 7, inside the cell.
pub const SMALL_BYTES: i32 = 12;
/// The result "unchanged" of a structural mutation hook.
pub const UNCHANGED: i32 = 13;
/// First index of a counted object.
pub const OBJECT_BEGIN: i32 = 64;
/// Root of all objects.
pub const OBJECT: i32 = 64;
/// String on the heap.
pub const STR: i32 = 65;
/// Bytes on the heap.
pub const BYTES: i32 = 66;
/// Error.
pub const ERROR: i32 = 67;
/// Function.
pub const FUNCTION: i32 = 68;
/// Shape.
pub const SHAPE: i32 = 69;
/// Tensor.
pub const TENSOR: i32 = 70;
/// Immutable sequence.
pub const ARRAY: i32 = 71;
/// Immutable map.
pub const MAP: i32 = 72;
/// Module.
pub const MODULE: i32 = 73;
/// Object of the frontend language.
pub const OPAQUE_PY: i32 = 74;
/// Mutable sequence.
pub const LIST: i32 = 75;
/// Mutable map.
pub const DICT: i32 = 76;
/// Early end of a structural visit.
pub const VISIT_INTERRUPT: i32 = 77;
/// Integer beyond 64 bits.
pub const BIG_INT: i32 = 78;
/// One past the last fixed object index that has a type.
pub(crate) const STATIC_END: i32 = 79;
/// First index that is allocated at run time (VAL-14).
pub const DYNAMIC_BEGIN: i32 = 128;

/// Keys of the indices without an object, in order from 0.
pub const PLAIN_KEYS: [&str; 14] = [
    "None",
    "int",
    "bool",
    "float",
    "void*",
    "DataType",
    "Device",
    "DLTensor*",
    "const char*",
    "TVMFFIByteArray*",
    "ObjectRValueRef",
    // VAL-03: missing in 0.21, whose list ends before this entry. 0.21 stores every text as an object.
    "ffi.SmallStr",
    "ffi.SmallBytes",
    "ffi.Unchanged",
];

/// Keys of the fixed object indices, in order from 64.
pub const OBJECT_KEYS: [&str; 15] = [
    "ffi.Object",
    "ffi.String",
    "ffi.Bytes",
    "ffi.Error",
    "ffi.Function",
    // MOD-25: 0.21 has these four in another order: array 69, map 70, shape 71, tensor 72.
    "ffi.Shape",
    "ffi.Tensor",
    "ffi.Array",
    "ffi.Map",
    "ffi.Module",
    "ffi.OpaquePyObject",
    "ffi.List",
    "ffi.Dict",
    "ffi.VisitInterrupt",
    "ffi.BigInt",
];
