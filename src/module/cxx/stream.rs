//! The stream from which loaders of 0.2 to 0.21 read their payload: a C++ object whose vtable begins with `read`.
//!
//! MOD-11: a loader that was registered from C++ calls it as its `dmlc::Stream`; one in C calls `(**stream)(stream, buffer, bytes)`.

use crate::value::AnyView;
use std::ffi::c_void;

#[repr(C)]
struct StreamVirtuals {
    read: unsafe extern "C-unwind" fn(*mut PayloadStream<'_>, *mut u8, usize) -> usize,
    write: unsafe extern "C-unwind" fn(*mut PayloadStream<'_>, *const u8, usize) -> usize,
    complete_destructor: unsafe extern "C-unwind" fn(*mut c_void),
    deleting_destructor: unsafe extern "C-unwind" fn(*mut c_void),
}

/// A stream that returns `bytes` from the front; a read beyond the end returns the rest.
#[repr(C)]
pub(in crate::module) struct PayloadStream<'a> {
    table: &'static StreamVirtuals,
    bytes: &'a [u8],
}

impl<'a> PayloadStream<'a> {
    pub(in crate::module) fn new(bytes: &'a [u8]) -> PayloadStream<'a> {
        PayloadStream {
            table: &TABLE,
            bytes,
        }
    }

    /// Returns the stream as the argument of a loader. The view must not outlive `self`.
    pub(in crate::module) fn handle(&mut self) -> AnyView<'_> {
        debug_assert!(std::ptr::eq(self.table, &TABLE));
        // SAFETY: loaders use the pointer as a stream that begins with its vtable, as this one does.
        unsafe { AnyView::handle(std::ptr::from_mut(self).cast()) }
    }
}

static TABLE: StreamVirtuals = StreamVirtuals {
    read,
    write,
    // The stream is on the stack of the loader's caller, so that destructors free nothing.
    complete_destructor: delete_nothing,
    deleting_destructor: delete_nothing,
};

/// Returns fewer bytes than requested at the end of the payload, like every stream of a loader.
unsafe extern "C-unwind" fn read(this: *mut PayloadStream<'_>, to: *mut u8, count: usize) -> usize {
    // SAFETY: a loader calls this with the stream that it received, while the loader runs.
    let stream = unsafe { &mut *this };
    let count = count.min(stream.bytes.len());
    let (now, later) = stream.bytes.split_at(count);
    // SAFETY: a loader calls this with room for `count` bytes at `to`.
    unsafe { std::ptr::copy_nonoverlapping(now.as_ptr(), to, count) };
    stream.bytes = later;
    count
}

unsafe extern "C-unwind" fn write(_: *mut PayloadStream<'_>, _: *const u8, _: usize) -> usize {
    0
}

unsafe extern "C-unwind" fn delete_nothing(_: *mut c_void) {}
