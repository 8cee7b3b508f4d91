//! Type indices of Rust types, whose objects can be read as those types (VAL-16).

use super::allocate::{NewType, allocate};
use super::table::writer;
use super::{layout_owner, published};
use crate::value::index;
use std::sync::atomic::{AtomicI32, Ordering};

/// The type index of a Rust type: every object with this index, or of a derived type, begins with that Rust type.
///
/// An `i32` does not prove that, because any program may register a key and create objects with its index. An `ObjectIndex` is a fixed
/// index, or the index of a [`DynamicType`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectIndex(i32);

impl ObjectIndex {
    /// Returns an index that the ABI fixes, such as [`index::TENSOR`]. Safe code creates objects with these indices only through the types
    /// of this crate.
    ///
    /// # Panics
    ///
    /// Panics for an index outside 64 to 127.
    pub const fn fixed(type_index: i32) -> ObjectIndex {
        assert!(
            index::OBJECT_BEGIN <= type_index && type_index < index::DYNAMIC_BEGIN,
            "the ABI fixes no such index of objects"
        );
        ObjectIndex(type_index)
    }

    /// Returns the number.
    #[inline]
    pub const fn get(self) -> i32 {
        self.0
    }
}

/// A type without a fixed index for a Rust type. The index is allocated on first use.
///
/// Its objects have the memory of that Rust type only. If another program, library or Rust type registered the key before, the key stays
/// with that type. This type then has the same name, and an index that no lookup of the key returns.
///
/// ```
/// use tvmspec::value::types::{self, DynamicType};
///
/// static POINT: DynamicType = DynamicType::new("example.Point");
/// assert_eq!(types::index_of("example.Point"), None);
/// let index = POINT.index().get();
/// assert_eq!(types::index_of("example.Point"), Some(index));
/// ```
pub struct DynamicType {
    key: &'static str,
    parent: fn() -> ObjectIndex,
    /// 0 until it is allocated.
    index: AtomicI32,
}

debug_fields!(DynamicType: key);

impl DynamicType {
    /// Creates a type with the key `key`, derived from `ffi.Object`.
    pub const fn new(key: &'static str) -> DynamicType {
        DynamicType::derived_from(key, || ObjectIndex::fixed(index::OBJECT))
    }

    /// Creates a type derived from `parent`. Its Rust type must begin with that of `parent`.
    pub(crate) const fn derived_from(
        key: &'static str,
        parent: fn() -> ObjectIndex,
    ) -> DynamicType {
        DynamicType {
            key,
            parent,
            index: AtomicI32::new(0),
        }
    }

    /// Returns the index of the type.
    ///
    /// # Panics
    ///
    /// Panics if no index is left: 1,024 are reserved for these types.
    #[inline]
    pub fn index(&'static self) -> ObjectIndex {
        match self.index.load(Ordering::Relaxed) {
            0 => self.allocate(),
            known => ObjectIndex(known),
        }
    }

    #[cold]
    fn allocate(&'static self) -> ObjectIndex {
        // Before the lock, because the parent also acquires it.
        let parent = (self.parent)().get();
        let mut writer = writer();
        let known = self.index.load(Ordering::Relaxed);
        if known != 0 {
            return ObjectIndex(known);
        }
        let owner = layout_owner::Owner::of(self);
        let listed = writer.index_of(self.key.as_bytes());
        let listed = listed.map(|at| writer.keys[at].1).ok();
        // With another parent, its objects would be treated as objects of that parent's Rust type.
        let fits = |at: &i32| {
            published(*at).is_some_and(|entry| {
                let above = entry.info.parent().map(|above| above.type_index);
                above == Some(parent) && entry.layout.claim(owner)
            })
        };
        let index = listed.filter(fits).unwrap_or_else(|| {
            let new = NewType {
                key: self.key,
                static_index: -1,
                depth: None,
                child_slots: 0,
                can_overflow: true,
                parent,
            };
            let index = allocate(&mut writer, new, 0).expect("indices are kept for Rust types");
            let is_own = published(index).is_some_and(|entry| entry.layout.claim(owner));
            assert!(is_own, "the index is new, and the table is locked");
            index
        });
        self.index.store(index, Ordering::Relaxed);
        ObjectIndex(index)
    }
}
