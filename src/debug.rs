//! `Debug` for types whose other fields say nothing to a reader, such as locks, pointers and large tables.

/// Implements `Debug` for a struct: its name, the fields that are listed, and `..`.
macro_rules! debug_fields {
    ($type:ident $(<$life:lifetime>)? : $($field:ident),*) => {
        impl std::fmt::Debug for $type $(<$life>)? {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($type))
                    $(.field(stringify!($field), &self.$field))*
                    .finish_non_exhaustive()
            }
        }
    };
}
