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
use std::mem::MaybeUninit;
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

/// `NPY_ARRAY_WRITEABLE`.
const WRITEABLE: c_int = 0x400;

/// The largest number of dimensions of an array, in numpy 2.
const MAX_RANK: usize = 64;

/// An array, as long as the reference to it lives.
#[derive(Clone, Copy)]
pub(crate) struct Array<'a>(&'a ArrayObject);

/// The memory for a copy of extents and strides. Another thread may replace those of an array while a function runs.
pub(crate) type DimensionRoom = [MaybeUninit<i64>];

/// Room for the extents and strides of any array.
pub(crate) const MAX_ROOM: usize = 2 * MAX_RANK;

/// The type `numpy.ndarray`; null until it is found. A static reference keeps it alive.
static NDARRAY: AtomicPtr<ffi::PyTypeObject> = AtomicPtr::new(ptr::null_mut());

/// Returns the type `numpy.ndarray`. Returns null if the program has not imported numpy, because it then has no array.
#[inline]
fn ndarray(py: Python<'_>) -> PyResult<*mut ffi::PyTypeObject> {
    let class = NDARRAY.load(Ordering::Relaxed);
    if class.is_null() {
        return find_ndarray(py);
    }
    Ok(class)
}

#[cold]
fn find_ndarray(py: Python<'_>) -> PyResult<*mut ffi::PyTypeObject> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let modules = py.import("sys")?.getattr("modules")?;
    if modules.contains("numpy")? {
        let class = CLASS.import(py, "numpy", "ndarray")?;
        NDARRAY.store(class.as_type_ptr(), Ordering::Relaxed);
    }
    Ok(NDARRAY.load(Ordering::Relaxed))
}

/// Returns an error for an array with a mask, which compiled code would ignore.
#[cold]
fn reject_mask(object: &Bound<'_, PyAny>) -> PyResult<()> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let class = CLASS.import(object.py(), "numpy.ma", "MaskedArray")?;
    if object.is_instance(class)? {
        return Err(PyTypeError::new_err(
            "a masked array has no form in TVM; pass array.filled(value), or array.data without the mask",
        ));
    }
    Ok(())
}

impl<'a> Array<'a> {
    /// Returns `object` as an array, if its type is exactly `numpy.ndarray`.
    #[inline]
    pub(crate) fn from_exact(object: &'a Bound<'_, PyAny>) -> PyResult<Option<Array<'a>>> {
        // SAFETY: a live object, whose type is set when it is created.
        let class = unsafe { ffi::Py_TYPE(object.as_ptr()) };
        if !ptr::eq(class, ndarray(object.py())?) {
            return Ok(None);
        }
        // SAFETY: the type is numpy's array, whose instances begin with this structure.
        Ok(Some(Array(unsafe { &*object.as_ptr().cast() })))
    }

    /// Returns `object` as an array, also of a subclass. Returns `None` if it is not an array.
    pub(crate) fn from_object(object: &'a Bound<'_, PyAny>) -> PyResult<Option<Array<'a>>> {
        if let Some(array) = Array::from_exact(object)? {
            return Ok(Some(array));
        }
        let ndarray = ndarray(object.py())?;
        if ndarray.is_null() {
            return Ok(None);
        }
        // `isinstance` would believe `__class__`, which any object may define.
        // SAFETY: a live object, whose type is set when it is created.
        let class = unsafe { ffi::Py_TYPE(object.as_ptr()) };
        // SAFETY: two live types.
        if unsafe { ffi::PyType_IsSubtype(class, ndarray) } == 0 {
            return Ok(None);
        }
        reject_mask(object)?;
        // SAFETY: the type is a subclass of numpy's array, whose instances begin with this structure.
        Ok(Some(Array(unsafe { &*object.as_ptr().cast() })))
    }

    /// Returns the extents.
    #[inline]
    pub(crate) fn shape(&self) -> &'a [i64] {
        self.list(self.0.shape)
    }

    /// Returns the address of the first element.
    #[inline]
    pub(crate) fn data(&self) -> *mut c_char {
        self.0.data
    }

    /// Returns whether the elements are compact and row-major.
    #[inline]
    pub(crate) fn is_compact(&self) -> bool {
        self.0.flags & COMPACT != 0
    }

    /// Returns whether numpy allows writes to the elements.
    pub(crate) fn is_writeable(&self) -> bool {
        self.0.flags & WRITEABLE != 0
    }

    /// Returns the number of extents and strides of a description.
    #[inline]
    pub(crate) fn room(&self) -> usize {
        self.shape().len() * if self.is_compact() { 1 } else { 2 }
    }

    /// Returns a description of the elements, whose extents and strides are in `room`. A compact array has no strides.
    ///
    /// # Panics
    /// If `room` is smaller than [`Array::room`].
    #[inline]
    pub(crate) fn describe(&self, py: Python<'_>, room: &mut DimensionRoom) -> PyResult<DLTensor> {
        let dtype = dtype_of(py, self.0.descr)?;
        let (shape, strides) = room[..self.room()].split_at_mut(self.shape().len());
        for (place, extent) in shape.iter_mut().zip(self.shape()) {
            place.write(*extent);
        }
        let size = i64::from(dtype.bits).div_euclid(8).max(1);
        for (place, stride) in strides.iter_mut().zip(self.list(self.0.strides)) {
            if stride % size != 0 {
                return Err(PyValueError::new_err(
                    "the strides of the array are not multiples of its elements; pass numpy.ascontiguousarray(array)",
                ));
            }
            place.write(stride / size);
        }
        let strides = match self.is_compact() {
            true => ptr::null_mut(),
            false => strides.as_mut_ptr().cast(),
        };
        Ok(DLTensor {
            data: self.0.data.cast(),
            device: Device::CPU,
            ndim: self.0.ndim,
            dtype,
            shape: shape.as_mut_ptr().cast(),
            strides,
            byte_offset: 0,
        })
    }

    #[inline]
    fn list(&self, first: *const isize) -> &'a [i64] {
        let count = usize::try_from(self.0.ndim).unwrap_or(0);
        if count == 0 || count > MAX_RANK {
            return &[];
        }
        // SAFETY: an array has `ndim` extents and strides, which other threads change only with the interpreter's lock, which this one
        // holds. No caller keeps the slice without the lock. This library is for 64-bit machines, where both types are the same.
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
static KNOWN_TYPES: [OnceLock<KnownType>; 32] = [const { OnceLock::new() }; 32];

/// Returns the type of the elements of an array.
#[inline]
fn dtype_of(py: Python<'_>, descr: *mut ffi::PyObject) -> PyResult<Dtype> {
    for known in &KNOWN_TYPES {
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
    if KNOWN_TYPES
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
    // Elements of less than eight bits take a byte each, in numpy as in the memory of compiled code for the CPU.
    let size: usize = descr.getattr("itemsize")?.extract()?;
    let dtype = dtype_from_text(&name).ok();
    // A long double has padding, and its name is that of a wider type.
    let is_padded = matches!(&*name, "float96" | "float128" | "complex192" | "complex256");
    dtype
        .filter(|dtype| !is_padded && dtype.lanes == 1)
        .filter(|dtype| usize::from(dtype.bits).div_ceil(8) == size)
        .ok_or_else(|| PyTypeError::new_err(format!("TVM has no elements of numpy's type {name}")))
}
