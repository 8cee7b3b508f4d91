//! Attributes of types: a list of values by type index, which can grow while others read it.

use super::super::{Any, AnyPayload, AnyView, RawAny, index};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Ordering};

/// One attribute of types (`TVMFFITypeAttrColumn`): a value for each type index. The address of the column never changes.
#[repr(C)]
pub struct Column {
    /// Values, starting at `begin_index`.
    data: AtomicPtr<AttributeCell>,
    /// Number of values.
    size: AtomicI32,
    /// Always 0.
    begin_index: i32,
}

debug_fields!(Column: begin_index);

/// A cell that changes once while others read it: from None to a value that is kept forever.
#[repr(C)]
struct AttributeCell {
    type_index: AtomicI32,
    aux: AtomicU32,
    bits: AtomicU64,
}

const _: () =
    assert!(size_of::<Column>() == 16 && size_of::<AttributeCell>() == size_of::<RawAny>());

impl AttributeCell {
    const fn none() -> AttributeCell {
        AttributeCell {
            type_index: AtomicI32::new(index::NONE),
            aux: AtomicU32::new(0),
            bits: AtomicU64::new(0),
        }
    }

    /// Sets the value. The tag is stored last: a reader that sees it also sees the rest.
    fn set(&self, value: Any) {
        // The reference is never dropped, because readers have uncounted views of the value.
        let raw = value.into_raw();
        self.bits.store(raw.bits(), Ordering::Relaxed);
        self.aux.store(raw.aux, Ordering::Relaxed);
        self.type_index.store(raw.type_index, Ordering::Release);
    }

    fn read(&self) -> RawAny {
        RawAny {
            type_index: self.type_index.load(Ordering::Acquire),
            aux: self.aux.load(Ordering::Relaxed),
            payload: AnyPayload {
                bits: self.bits.load(Ordering::Relaxed),
            },
        }
    }
}

impl Column {
    pub(super) const fn new() -> Column {
        Column {
            data: AtomicPtr::new(null_mut()),
            size: AtomicI32::new(0),
            // As in releases, which fill columns from index 0. Readers in C subtract it nevertheless.
            begin_index: 0,
        }
    }

    /// Returns the published cells.
    #[inline]
    fn cells(&self) -> &'static [AttributeCell] {
        // The size is read first, so that the data that is read then has at least that many cells.
        let size = self.size.load(Ordering::Acquire) as usize;
        let data = self.data.load(Ordering::Acquire);
        if data.is_null() {
            return &[];
        }
        // SAFETY: a list is published before its size, with at least as many cells, and is never freed.
        unsafe { std::slice::from_raw_parts(data, size) }
    }

    /// Returns the attribute of `type_index`, if registered.
    #[inline]
    pub fn value(&self, type_index: i32) -> Option<AnyView<'static>> {
        let at = usize::try_from(type_index).ok()?;
        let cell = self.cells().get(at)?;
        // SAFETY: None or a complete value, which `set_attribute` keeps forever.
        let view = unsafe { AnyView::from_raw(cell.read()) };
        (!view.is_none()).then_some(view)
    }

    /// Sets the attribute of type `at`, which had none. The caller holds the writer's lock.
    pub(super) fn set_attribute(&self, at: usize, value: Any) {
        let published = self.cells();
        if let Some(cell) = published.get(at) {
            return cell.set(value);
        }
        // Readers keep the old list. A longer list is a new one with twice the room.
        let room = (at + 1).next_power_of_two();
        let mut list: Vec<AttributeCell> = Vec::with_capacity(room);
        list.resize_with(room, AttributeCell::none);
        for (cell, known) in list.iter().zip(published) {
            // SAFETY: published values are kept forever, so a second cell may hold the same.
            cell.set(unsafe { Any::from_raw(known.read()) });
        }
        list[at].set(value);
        // The list is published before its size: a reader that sees the new size has a list with that many cells.
        self.data
            .store(Vec::leak(list).as_mut_ptr(), Ordering::Release);
        self.size.store(room as i32, Ordering::Release);
    }
}
