//! Access, without a copy, to the bytes of any Python object that has the buffer protocol.
//!
//! The two C functions are in the stable interface of Python since 3.11, and PyO3 declares them only for these versions. Older versions
//! have the same functions with the same structure, which is declared here.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMemoryView};
use std::ffi::{c_char, c_int, c_void};
use std::ptr;

/// `Py_buffer`.
#[repr(C)]
struct RawBuffer {
    data: *const u8,
    owner: *mut pyo3::ffi::PyObject,
    length: isize,
    item_size: isize,
    is_read_only: c_int,
    ndim: c_int,
    format: *mut c_char,
    shape: *mut isize,
    strides: *mut isize,
    suboffsets: *mut isize,
    internal: *mut c_void,
}

unsafe extern "C" {
    fn PyObject_GetBuffer(
        object: *mut pyo3::ffi::PyObject,
        buffer: *mut RawBuffer,
        flags: c_int,
    ) -> c_int;
    fn PyBuffer_Release(buffer: *mut RawBuffer);
}

/// `PyBUF_SIMPLE`: compact bytes.
const SIMPLE: c_int = 0;

/// The bytes of an object, which stay where they are while this value lives.
pub(crate) struct Buffer(Box<RawBuffer>);

// SAFETY: the structure is only read. `drop` attaches to the interpreter before it returns the bytes.
unsafe impl Send for Buffer {}
// SAFETY: as above.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// Borrows the bytes of `object`. Fails with `TypeError` if it has none, and with `BufferError` if they are not compact.
    pub(crate) fn from_object(object: &Bound<'_, PyAny>) -> PyResult<Buffer> {
        let mut raw = Box::new(RawBuffer {
            data: ptr::null(),
            owner: ptr::null_mut(),
            length: 0,
            item_size: 0,
            is_read_only: 0,
            ndim: 0,
            format: ptr::null_mut(),
            shape: ptr::null_mut(),
            strides: ptr::null_mut(),
            suboffsets: ptr::null_mut(),
            internal: ptr::null_mut(),
        });
        // SAFETY: the object is alive and this thread is attached. The function fills the structure, which does not move: some
        // exporters keep its address.
        if unsafe { PyObject_GetBuffer(object.as_ptr(), &mut *raw, SIMPLE) } != 0 {
            return Err(PyErr::fetch(object.py()));
        }
        Ok(Buffer(raw))
    }

    /// Returns whether nobody can write the bytes of `object`, so that they may be read without the interpreter's lock: those of `bytes`,
    /// and of a map for reading. A read-only view of other bytes does not suffice, because the owner of the bytes may write them.
    pub(crate) fn is_constant(object: &Bound<'_, PyAny>) -> PyResult<bool> {
        let owner = match object.cast::<PyMemoryView>() {
            Ok(view) => view.getattr("obj")?,
            Err(_) => object.clone(),
        };
        if owner.is_instance_of::<PyBytes>() {
            return Ok(true);
        }
        let class = owner.get_type();
        let is_map = class.name()? == "mmap" && class.module()? == "mmap";
        Ok(is_map && Buffer::from_object(&owner)?.0.is_read_only != 0)
    }
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        match usize::try_from(self.0.length) {
            Ok(length) if length > 0 => {
                // SAFETY: the exporter keeps that many bytes in place until the buffer is released. The caller holds the lock, or the
                // bytes are constant.
                unsafe { std::slice::from_raw_parts(self.0.data, length) }
            }
            _ => &[],
        }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // When the interpreter ends, the bytes are leaked.
        let _ = Python::try_attach(|_| {
            // SAFETY: `from_object` filled it, and this is the only release.
            unsafe { PyBuffer_Release(&mut *self.0) }
        });
    }
}
