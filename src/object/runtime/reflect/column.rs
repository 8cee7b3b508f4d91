//! The type attributes that this library itself looks at.

use crate::value::types::{self, Column};
use crate::value::{Any, AnyView};
use std::sync::OnceLock;

/// One attribute by name, made on first use so that its address is known before a type registers into it.
pub(crate) struct TypeAttribute {
    name: &'static str,
    column: OnceLock<&'static Column>,
}

impl TypeAttribute {
    const fn new(name: &'static str) -> TypeAttribute {
        TypeAttribute {
            name,
            column: OnceLock::new(),
        }
    }

    /// The name.
    pub(crate) const fn name(&self) -> &'static str {
        self.name
    }

    /// The column, made if it is not there.
    #[inline]
    pub(crate) fn column(&self) -> &'static Column {
        self.column.get_or_init(|| {
            // Registering at index 0 makes the column and nothing else, so it cannot be refused.
            let _ = types::set_attr(0, self.name, Any::none());
            types::column(self.name).unwrap_or_else(|| unreachable!("the column was just made"))
        })
    }

    /// The attribute of a type.
    #[inline]
    pub(crate) fn value(&self, type_index: i32) -> Option<AnyView<'static>> {
        self.column().value(type_index)
    }
}

macro_rules! attributes {
    ($($(#[$doc:meta])* $name:ident $text:literal)*) => {
        $($(#[$doc])* pub(crate) static $name: TypeAttribute = TypeAttribute::new($text);)*

        /// All of them.
        pub(crate) static ALL: &[&TypeAttribute] = &[$(&$name),*];
    };
}

attributes! {
    /// Hash in containers.
    ANY_HASH "__any_hash__"
    /// Equality in containers.
    ANY_EQUAL "__any_equal__"
    /// To the `data` of a JSON graph node.
    DATA_TO_JSON "__data_to_json__"
    /// From the `data` of a JSON graph node.
    DATA_FROM_JSON "__data_from_json__"
    /// Conversion of a value to the type.
    CONVERT "__ffi_convert__"
    /// Three-way comparison.
    COMPARE "__ffi_compare__"
    /// Equality.
    EQ "__ffi_eq__"
    /// Hash.
    HASH "__ffi_hash__"
    /// Constructor.
    INIT "__ffi_init__"
    /// Makes an object with empty fields.
    NEW "__ffi_new__"
    /// Text form.
    REPR "__ffi_repr__"
    /// Copy of the object that shares its fields.
    SHALLOW_COPY "__ffi_shallow_copy__"
    /// No type may derive from it.
    TYPE_FINAL "__ffi_type_final__"
    /// Members of an enumeration.
    ENUM "__ffi_enum__"
    /// Structural equality.
    S_EQUAL "__s_equal__"
    /// Structural hash.
    S_HASH "__s_hash__"
    /// Structural visit.
    S_VISIT "__s_visit__"
    /// Structural mutation.
    S_MUTATE "__s_mutate__"
    /// Structural mutation that may change the object itself.
    S_MAYBE_INPLACE "__s_maybe_inplace_mutate__"
}
