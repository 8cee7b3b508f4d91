//! Shapes: immutable lists of extents (OBJ-09). They differ from arrays because compiled code reads them as a C array.
//!
//! | bytes  | field                   | rule   |
//! |--------|-------------------------|--------|
//! | 24..32 | address of the extents  | OBJ-09 |
//! | 32..40 | number of extents       | OBJ-09 |
//! | 40..   | the extents, i64        | OBJ-09 |

use super::seq::sequence_of;
use crate::value::header::{Header, ObjectRef, Ref, static_object};
use crate::value::heap::{allocate, delete_plain};
use crate::value::{AnyView, Schema, index};

/// The fixed part of a shape.
#[repr(C)]
pub(crate) struct ShapeObj {
    /// Reference counts, type index and deleter.
    header: Header,
    /// The first extent: directly after the object, or wherever the shape's creator stores them.
    data: *const i64,
    /// Number of extents.
    size: usize,
}

const _: () = assert!(size_of::<ShapeObj>() == 40);

static_object!(ShapeObj, index::SHAPE);

/// An immutable list of extents: i64 each, the outermost first. Negative extents are allowed (OBJ-09).
#[derive(Clone)]
#[repr(transparent)]
pub struct Shape(Ref<ShapeObj>);

impl std::fmt::Debug for Shape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Shape({:?})", self.as_slice())
    }
}

impl Shape {
    /// Creates a shape of `extents`.
    pub fn new(extents: &[i64]) -> Shape {
        let head = size_of::<ShapeObj>();
        let object = allocate(head + size_of_val(extents));
        let data = object.wrapping_add(head).cast::<i64>();
        // SAFETY: the block holds the extents after the head.
        unsafe { std::ptr::copy_nonoverlapping(extents.as_ptr(), data, extents.len()) };
        let shape = ShapeObj {
            header: Header::new(index::SHAPE, delete_plain),
            data,
            size: extents.len(),
        };
        // SAFETY: the block holds the head, and is aligned for any object.
        unsafe { object.cast::<ShapeObj>().write(shape) };
        // SAFETY: a fresh object has one reference, which moves here.
        Shape(unsafe { Ref::from_raw(object.cast()) })
    }

    /// Returns the extents, the outermost first. The shape of a scalar has none.
    pub fn as_slice(&self) -> &[i64] {
        extents_of(AnyView::from(self.0.as_object())).unwrap_or_default()
    }

    /// Returns the object with this handle's reference.
    pub fn into_object(self) -> ObjectRef {
        self.0.into_object()
    }
}

/// Returns the extents of a shape; `None` for other values. A sequence of integers is not a shape, but converts to one (OBJ-09).
pub fn extents_of(view: AnyView<'_>) -> Option<&[i64]> {
    if view.type_index() != index::SHAPE {
        return None;
    }
    let shape = view.as_raw().ptr().cast::<ShapeObj>();
    // SAFETY: an object of this index begins with a `ShapeObj` (OBJ-09), and lives for the view's life.
    let shape = unsafe { &*shape };
    // A slice needs an address, but another library may leave the address of a scalar's shape null.
    if shape.size == 0 || shape.data.is_null() {
        return Some(&[]);
    }
    // SAFETY: `size` extents are at the address (OBJ-09), and do not change while the shape lives.
    Some(unsafe { std::slice::from_raw_parts(shape.data, shape.size) })
}

crate::value::handle_value!(Shape, ShapeObj, Schema::plain("ffi.Shape"), |view| {
    // OBJ-09: an array or a list converts if each of its elements converts to an int.
    let items = sequence_of(view)?;
    let extents: Option<Vec<i64>> = items
        .iter()
        .map(|item| i64::try_from_view(item.view()))
        .collect();
    extents.map(|extents| Shape::new(&extents))
});
