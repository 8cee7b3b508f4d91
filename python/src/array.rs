//! Arrays of numpy, read through their C structure.
//!
//! A call of an array's methods takes as long as a small kernel. Therefore extents and address are read from the structure, as numpy's
//! macros do. The beginning of the structure is the same in numpy 1 and 2, whose compiled users depend on it.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;
use std::ffi::{c_char, c_int};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};
use tvmspec::tensor::{Device, Dtype};
use tvmspec::value::{DLTensor, dtype_from_text};

/// The beginning of `PyArrayObject_fields`.
#[repr(C)]
struct ArrayObject {
    base: ffi::PyObject,
    data: *mut c_char,
    ndim: c_int,
    shape: *mut isize,
    strides: *mut isize,
    owner: *mut ffi::PyObject,
    descr: *mut ffi::PyObject,
    flags: c_int,
}

/// `NPY_ARRAY_C_CONTIGUOUS`.
const COMPACT: c_int = 1;

/// The largest number of dimensions of an array, in numpy 2.
const MOST_DIMENSIONS: usize = 64;

/// An array, as long as the reference to it lives.
#[derive(Clone, Copy)]
pub(crate) struct Array<'a>(&'a ArrayObject);

/// Returns whether `object` is an array of exactly the type `numpy.ndarray`, if numpy has been seen before.
#[inline]
fn is_known_array(object: *mut ffi::PyObject) -> bool {
    // SAFETY: a live object, whose type is set when it is created.
    let class = unsafe { ffi::Py_TYPE(object) };
    ptr::eq(class, NDARRAY.load(Ordering::Relaxed))
}

/// The type `numpy.ndarray`; null until an array is seen. The reference in `is_array` keeps it alive.
static NDARRAY: AtomicPtr<ffi::PyTypeObject> = AtomicPtr::new(ptr::null_mut());

/// Returns whether `object` is an array of numpy, also of a subclass.
fn is_array(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let py = object.py();
    let class = match CLASS.get(py) {
        Some(class) => class.bind(py),
        None => {
            // Not imported here, because a caller that passes an array has imported numpy.
            let modules = py.import("sys")?.getattr("modules")?;
            if !modules.contains("numpy")? {
                return Ok(false);
            }
            let class = CLASS.import(py, "numpy", "ndarray")?;
            NDARRAY.store(class.as_type_ptr(), Ordering::Relaxed);
            class
        }
    };
    object.is_instance(class)
}

impl<'a> Array<'a> {
    /// Returns `object` as an array, if its type is exactly `numpy.ndarray` and an array has been seen before.
    #[inline]
    pub(crate) fn known(object: &'a Bound<'_, PyAny>) -> Option<Array<'a>> {
        // SAFETY: the type is numpy's array, whose instances begin with this structure.
        is_known_array(object.as_ptr()).then(|| Array(unsafe { &*object.as_ptr().cast() }))
    }

    /// Returns `object` as an array. Returns `None` if it is not an array.
    #[inline]
    pub(crate) fn of(object: &'a Bound<'_, PyAny>) -> PyResult<Option<Array<'a>>> {
        if !is_known_array(object.as_ptr()) && !is_array(object)? {
            return Ok(None);
        }
        // SAFETY: the type of the object is numpy's array or a subclass, whose instances begin with this structure.
        Ok(Some(Array(unsafe {
            &*object.as_ptr().cast::<ArrayObject>()
        })))
    }

    /// Returns the extents.
    #[inline]
    pub(crate) fn shape(&self) -> &'a [i64] {
        self.list(self.0.shape)
    }

    /// Returns the address of the first element.
    pub(crate) fn data(&self) -> *mut c_char {
        self.0.data
    }

    /// Returns whether the elements are compact and row-major.
    pub(crate) fn is_compact(&self) -> bool {
        self.0.flags & COMPACT != 0
    }

    /// Returns a description of the elements. The strides of an array that is not compact are written to `strides`, in elements.
    #[inline]
    pub(crate) fn describe(&self, py: Python<'_>, strides: &mut Vec<i64>) -> PyResult<DLTensor> {
        let dtype = dtype_of(py, self.0.descr)?;
        let mut tensor = DLTensor {
            data: self.0.data.cast(),
            device: Device::CPU,
            ndim: self.0.ndim,
            dtype,
            shape: self.0.shape.cast(),
            strides: ptr::null_mut(),
            byte_offset: 0,
        };
        if !self.is_compact() {
            let size = (i64::from(dtype.bits) + 7) / 8;
            strides.clear();
            let size = size.max(1);
            for stride in self.list(self.0.strides) {
                if stride % size != 0 {
                    return Err(PyValueError::new_err(
                        "the strides of the array are not multiples of its elements; pass numpy.ascontiguousarray(array)",
                    ));
                }
                strides.push(stride / size);
            }
            tensor.strides = strides.as_mut_ptr();
        }
        Ok(tensor)
    }

    #[inline]
    fn list(&self, first: *const isize) -> &'a [i64] {
        let count = usize::try_from(self.0.ndim).unwrap_or(0);
        if count == 0 || count > MOST_DIMENSIONS {
            return &[];
        }
        // SAFETY: an array has `ndim` extents and strides, which only its owner changes while this thread holds the lock. This
        // library is for 64-bit machines, where both types are the same.
        unsafe { std::slice::from_raw_parts(first.cast::<i64>(), count) }
    }
}

/// An element type of numpy: its description object, and the data type that it stands for.
struct KnownType {
    /// Its address. A reference is kept, so that no other description gets it.
    descr: usize,
    dtype: Dtype,
}

/// The element types that were seen. numpy has one description for each, except for those of other byte orders.
static KNOWN: [OnceLock<KnownType>; 32] = [const { OnceLock::new() }; 32];

/// Returns the type of the elements of an array.
#[inline]
fn dtype_of(py: Python<'_>, descr: *mut ffi::PyObject) -> PyResult<Dtype> {
    for known in &KNOWN {
        let Some(known) = known.get() else { break };
        if known.descr == descr.addr() {
            return Ok(known.dtype);
        }
    }
    read_dtype(py, descr)
}

#[cold]
fn read_dtype(py: Python<'_>, descr: *mut ffi::PyObject) -> PyResult<Dtype> {
    // SAFETY: a live object, which the array owns.
    let descr = unsafe { Bound::from_borrowed_ptr(py, descr) };
    let dtype = element_type(&descr)?;
    let known = KnownType {
        descr: descr.as_ptr().addr(),
        dtype,
    };
    if KNOWN
        .iter()
        .find(|slot| slot.get().is_none())
        .is_some_and(|slot| slot.set(known).is_ok())
    {
        std::mem::forget(descr.unbind());
    }
    Ok(dtype)
}

/// Returns the type that a `numpy.dtype` names.
fn element_type(descr: &Bound<'_, PyAny>) -> PyResult<Dtype> {
    let name: String = descr.getattr("name")?.extract()?;
    if !descr.getattr("isnative")?.extract::<bool>()? {
        return Err(PyTypeError::new_err(format!(
            "the elements of the array are {name} in another byte order; pass array.astype(\"{name}\")"
        )));
    }
    if name == "bool" {
        return Ok(Dtype::scalar(Dtype::BOOL, 8));
    }
    dtype_from_text(&name)
        .map_err(|_| PyTypeError::new_err(format!("TVM has no elements of numpy's type {name}")))
}
