//! The fixed type indices: 0 to 63 for values without an object, 64 to 127 for objects that every library knows. Others start at 128.

/// "Any type", in schemas only.
pub const ANY: i32 = -1;
/// First index of a counted object.
pub const OBJECT_BEGIN: i32 = 64;
/// One past the last fixed object index that has a type.
pub(crate) const STATIC_END: i32 = 79;
/// First index that is allocated at run time (VAL-14).
pub const DYNAMIC_BEGIN: i32 = 128;

/// Declares a constant for each index, and `$keys` with the type keys in the same order.
macro_rules! indices {
    ($(#[$about:meta])* $keys:ident[$count:literal]: $($(#[$doc:meta])* $name:ident = $index:literal, $key:literal;)*) => {
        $(
            $(#[$doc])*
            pub const $name: i32 = $index;
        )*
        $(#[$about])*
        pub const $keys: [&str; $count] = [$($key),*];
    };
}

indices! {
    /// Keys of the indices without an object, in order from 0.
    PLAIN_KEYS[14]:
    /// None.
    NONE = 0, "None";
    /// 64-bit signed integer.
    INT = 1, "int";
    /// Bool, stored as integer 0 or 1.
    BOOL = 2, "bool";
    /// 64-bit float.
    FLOAT = 3, "float";
    /// Opaque pointer.
    OPAQUE = 4, "void*";
    /// Data type.
    DATA_TYPE = 5, "DataType";
    /// Device.
    DEVICE = 6, "Device";
    /// Borrowed tensor description; only in views.
    DLTENSOR_PTR = 7, "DLTensor*";
    /// Borrowed C string; only in views.
    RAW_STR = 8, "const char*";
    /// Borrowed byte array; only in views.
    BYTE_ARRAY = 9, "TVMFFIByteArray*";
    /// Address of an owned object slot that the callee may empty; only in views.
    RVALUE_REF = 10, "ObjectRValueRef";
    // VAL-03: missing in 0.21, whose list ends before this entry. 0.21 stores every text as an object.
    /// String of at most 7 bytes, inside the cell.
    SMALL_STR = 11, "ffi.SmallStr";
    /// Bytes, at most 7, inside the cell.
    SMALL_BYTES = 12, "ffi.SmallBytes";
    /// The result "unchanged" of a structural mutation hook.
    UNCHANGED = 13, "ffi.Unchanged";
}

indices! {
    /// Keys of the fixed object indices, in order from 64.
    OBJECT_KEYS[15]:
    /// Root of all objects.
    OBJECT = 64, "ffi.Object";
    /// String on the heap.
    STR = 65, "ffi.String";
    /// Bytes on the heap.
    BYTES = 66, "ffi.Bytes";
    /// Error.
    ERROR = 67, "ffi.Error";
    /// Function.
    FUNCTION = 68, "ffi.Function";
    // MOD-25: 0.21 has these four in another order: array 69, map 70, shape 71, tensor 72.
    /// Shape.
    SHAPE = 69, "ffi.Shape";
    /// Tensor.
    TENSOR = 70, "ffi.Tensor";
    /// Immutable sequence.
    ARRAY = 71, "ffi.Array";
    /// Immutable map.
    MAP = 72, "ffi.Map";
    /// Module.
    MODULE = 73, "ffi.Module";
    /// Object of the frontend language.
    OPAQUE_PY = 74, "ffi.OpaquePyObject";
    /// Mutable sequence.
    LIST = 75, "ffi.List";
    /// Mutable map.
    DICT = 76, "ffi.Dict";
    /// Early end of a structural visit.
    VISIT_INTERRUPT = 77, "ffi.VisitInterrupt";
    /// Integer beyond 64 bits.
    BIG_INT = 78, "ffi.BigInt";
}
