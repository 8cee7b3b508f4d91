//! The type attributes that this library reads: hooks and marks that a type registers under a name (VAL-15).
//!
//! In the signatures below, `object` belongs to the type itself. The last argument of a hook that compares, hashes or prints is a function.
//! It does the same for a part of the object, and knows which objects are open.

use crate::value::types::{self, Column};
use crate::value::{Any, AnyView};
use std::sync::OnceLock;

/// A named attribute. Its column is created on first use, so that its address is known before a type registers into it.
pub(crate) struct TypeAttribute {
    /// The registered name, such as `__any_hash__`.
    name: &'static str,
    /// The column of the process, cached after the first lookup: a lookup needs the name, and a hash is computed for each key.
    column: OnceLock<&'static Column>,
}

impl TypeAttribute {
    /// Creates the attribute `name` without its column.
    const fn new(name: &'static str) -> TypeAttribute {
        TypeAttribute {
            name,
            column: OnceLock::new(),
        }
    }

    /// Returns the name of the attribute.
    pub(crate) const fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the column, and creates it if necessary.
    #[inline]
    pub(crate) fn column(&self) -> &'static Column {
        self.column.get_or_init(|| {
            // A registration at index 0 only creates the column, so it cannot fail.
            let _ = types::set_attr(0, self.name, Any::none());
            types::column(self.name).unwrap_or_else(|| unreachable!("the column was just made"))
        })
    }

    /// Returns the attribute of the type itself; `None` if the type has not registered it.
    #[inline]
    pub(crate) fn value(&self, type_index: i32) -> Option<AnyView<'static>> {
        self.column().value(type_index)
    }
}

/// Declares attributes and the list of all of them.
macro_rules! attributes {
    ($($(#[$doc:meta])* $name:ident $text:literal)*) => {
        $($(#[$doc])* pub(crate) static $name: TypeAttribute = TypeAttribute::new($text);)*

        /// All attributes.
        pub(crate) static ALL: &[&TypeAttribute] = &[$(&$name),*];
    };
}

attributes! {
    /// Hash in containers: `(object) -> int`, or a bare C function (OBJ-01, OBJ-38).
    ANY_HASH "__any_hash__"
    /// Equality in containers: `(key, key) -> bool`, or a bare C function (OBJ-02, OBJ-38).
    ANY_EQUAL "__any_equal__"
    /// Conversion to the `data` of a JSON graph node (OBJ-18): `(object) -> any`.
    DATA_TO_JSON "__data_to_json__"
    /// Conversion from the `data` of a JSON graph node (OBJ-18): `(any) -> object`.
    DATA_FROM_JSON "__data_from_json__"
    /// Conversion of a value to the type: `(any) -> object`. Frontends call it for fields and parameters.
    CONVERT "__ffi_convert__"
    /// Three-way comparison by content (OBJ-14): `(object, object, compare) -> int`, less than, equal to or greater than 0.
    COMPARE "__ffi_compare__"
    /// Equality by content (OBJ-14): `(object, object, equal) -> bool`. If it is missing, `COMPARE` decides.
    EQ "__ffi_eq__"
    /// Hash by content (OBJ-14): `(object, hash) -> int`.
    HASH "__ffi_hash__"
    /// Constructor (OBJ-15): `(arguments) -> object`, with names and values after the object of `ffi.GetKwargsObject`.
    INIT "__ffi_init__"
    /// Factory of an object with empty fields: `() -> object`, for a type without a creator in its metadata.
    NEW "__ffi_new__"
    /// Text form (OBJ-13): `(object, repr) -> str`.
    REPR "__ffi_repr__"
    /// Copy of the object that shares its fields: `(object) -> object`.
    SHALLOW_COPY "__ffi_shallow_copy__"
    /// A bool: no other type may derive from it.
    TYPE_FINAL "__ffi_type_final__"
    /// Members of an enumeration, an `ffi.EnumState`.
    ENUM "__ffi_enum__"
    /// Structural equality: `(object, object, equal) -> bool`.
    S_EQUAL "__s_equal__"
    /// Structural hash: `(object, hash so far, hash) -> int`.
    S_HASH "__s_hash__"
    /// Structural visit: `(visitor, object)`, or a bare C function.
    S_VISIT "__s_visit__"
    /// Structural mutation: `(mutator, object)`, or a bare C function (OBJ-35).
    S_MUTATE "__s_mutate__"
    /// Structural mutation that may change the object itself, in the same form (OBJ-35).
    S_MAYBE_INPLACE "__s_maybe_inplace_mutate__"
}
