//! Type indices of Rust types, whose objects may be read as those types (VAL-16).

use super::allocate::{NewType, allocate};
use super::table::writer;
use super::{layout, published};
use crate::value::index;
use std::sync::atomic::{AtomicI32, Ordering};

/// The type index of a Rust type: every object of this index, or of a type derived from it, begins with that Rust type.
///
/// An `i32` does not prove that, because any program may register a key and make objects of its index. This is a fixed index, or
/// one that a [`DynamicType`] has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectIndex(i32);

impl ObjectIndex {
    /// An index that the ABI fixes, such as [`index::TENSOR`]. Safe code makes no objects of these but through the types of this
    /// crate.
    ///
    /// # Panics
    ///
    /// For an index outside of 64 to 127.
    pub const fn fixed(type_index: i32) -> ObjectIndex {
        assert!(
            index::OBJECT_BEGIN <= type_index && type_index < index::DYNAMIC_BEGIN,
            "the ABI fixes no such index of objects"
        );
        ObjectIndex(type_index)
    }

    /// The number.
    #[inline]
    pub const fn get(self) -> i32 {
        self.0
    }
}

/// The type of a Rust type without a fixed index, which is allocated when it is first used.
///
/// Its objects have the memory of that one Rust type. A key that was registered elsewhere before, by a program, a library or
/// another Rust type, stays the key of that other type; this one then has the same name and an index that no lookup of the key returns.
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
    /// 0 until it is known.
    index: AtomicI32,
}

impl DynamicType {
    /// A type of the key `key`, derived from `ffi.Object`.
    pub const fn new(key: &'static str) -> DynamicType {
        DynamicType::below(key, || ObjectIndex::fixed(index::OBJECT))
    }

    /// A type that is derived from `parent`, whose Rust type its own begins with.
    pub(crate) const fn below(key: &'static str, parent: fn() -> ObjectIndex) -> DynamicType {
        DynamicType {
            key,
            parent,
            index: AtomicI32::new(0),
        }
    }

    /// The index of the type.
    ///
    /// # Panics
    ///
    /// When no index is left for it: 1,024 are kept for these types.
    #[inline]
    pub fn index(&'static self) -> ObjectIndex {
        match self.index.load(Ordering::Relaxed) {
            0 => self.allocate(),
            known => ObjectIndex(known),
        }
    }

    #[cold]
    fn allocate(&'static self) -> ObjectIndex {
        // Before the lock, which the parent takes as well.
        let parent = (self.parent)().get();
        let mut writer = writer();
        let known = self.index.load(Ordering::Relaxed);
        if known != 0 {
            return ObjectIndex(known);
        }
        let owner = layout::Owner::of(self);
        let listed = writer.index_of(self.key.as_bytes());
        let listed = listed.map(|at| writer.keys[at].1).ok();
        // Below another parent its objects would be taken for those of that parent's Rust type.
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
