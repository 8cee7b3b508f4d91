//! Arguments of a call: conversion of Python objects to values that live for the call.

use crate::array::{Array, DimensionRoom};
use crate::errors;
use crate::function::{Function, Module};
use crate::results::{self, Object, next_depth};
use crate::tensor::{Tensor, copy_of, over_array, to_numpy, to_tensor};
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyByteArray, PyBytes, PyDict, PyFloat, PyInt, PyList, PyMemoryView, PyString, PyTuple,
};
use std::mem::{self, MaybeUninit};
use tvmspec::function::Error;
use tvmspec::object::{self, Array as ObjectArray, Map};
use tvmspec::value::{Any, AnyView, Bytes, DLTensor, cast, index};

/// The number of arguments that need no allocation.
const FEW: usize = 8;

/// The number of extents and strides for which an argument has room on average. More need an allocation.
const USUAL_ROOM: usize = 8;

/// The alignment below which an array is copied for compiled code. Compiled code expects 64 (FUN-29), but numpy promises only this, and
/// code for any processor of the architecture needs no more.
const LEAST_ALIGNMENT: usize = 16;

/// The memory that the values of arguments borrow: a description and a value for each, and the extents and strides of all.
struct Room<'r> {
    described: &'r mut [MaybeUninit<DLTensor>],
    owned: &'r mut [Any],
    dimensions: &'r mut DimensionRoom,
}

/// Calls `work` with the values of `args`. For compiled code (`is_compiled`), an array of numpy becomes a description on the stack,
/// because compiled code keeps no argument. Other functions may keep their arguments, and get a tensor.
#[inline]
pub(crate) fn with_arguments<R>(
    args: &Bound<'_, PyTuple>,
    is_compiled: bool,
    work: impl FnOnce(&[AnyView<'_>]) -> R,
) -> PyResult<R> {
    let count = args.len();
    if count <= FEW {
        let room = Room {
            described: &mut [const { MaybeUninit::uninit() }; FEW],
            owned: &mut [const { Any::none() }; FEW],
            dimensions: &mut [const { MaybeUninit::uninit() }; FEW * USUAL_ROOM],
        };
        let mut views = [const { AnyView::none() }; FEW];
        return with_room(args, is_compiled, room, &mut views[..count], work);
    }
    let room = Room {
        described: &mut vec![MaybeUninit::uninit(); count],
        owned: &mut vec![Any::none(); count],
        dimensions: &mut vec![MaybeUninit::uninit(); count * USUAL_ROOM],
    };
    let mut views = vec![AnyView::none(); count];
    with_room(args, is_compiled, room, &mut views, work)
}

/// Does the work of [`with_arguments`].
#[inline]
fn with_room<'r, R>(
    args: &Bound<'_, PyTuple>,
    is_compiled: bool,
    room: Room<'r>,
    views: &mut [AnyView<'r>],
    work: impl FnOnce(&[AnyView<'_>]) -> R,
) -> PyResult<R> {
    let py = args.py();
    let mut copies = Vec::new();
    let mut dimensions = room.dimensions;
    let places = views
        .iter_mut()
        .zip(room.described.iter_mut().zip(room.owned));
    for (number, (object, (view, (described, owned)))) in
        args.iter_borrowed().zip(places).enumerate()
    {
        let failed = |error: PyErr| name_argument(py, number, error);
        if let Ok(tensor) = object.cast_exact::<Tensor>() {
            let value = AnyView::from(tensor.get().0.as_object());
            // SAFETY: the tuple keeps the tensor for the call, and a frozen class never replaces its value.
            *view = unsafe { AnyView::from_raw(*value.as_raw()) };
        } else if is_compiled
            && let Some(array) = Array::from_exact(&object)?
            && (array.data().addr().is_multiple_of(LEAST_ALIGNMENT) || !array.is_compact())
            && array.room() <= dimensions.len()
        {
            let (own, others) = mem::take(&mut dimensions).split_at_mut(array.room());
            dimensions = others;
            let described = described.write(array.describe(py, own).map_err(failed)?);
            // SAFETY: the tuple keeps the array, which has the elements in place: nothing reallocates an array that has another reference.
            // Extents and strides are in the room. Compiled code may write to any argument, as the documentation says.
            *view = unsafe { AnyView::dltensor(described) };
        } else {
            *owned = to_any(&object, &mut copies).map_err(failed)?;
            *view = owned.view();
        }
    }
    let result = work(views);
    copies.iter().try_for_each(|copy| copy.write_back(py))?;
    Ok(result)
}

/// Returns the same exception with the number of the argument in its message, if its message describes an object.
#[cold]
fn name_argument(py: Python<'_>, number: usize, error: PyErr) -> PyErr {
    let class = error.get_type(py);
    let is_own = class.is(py.get_type::<PyTypeError>()) || class.is(py.get_type::<PyValueError>());
    if !is_own {
        return error;
    }
    let named = PyErr::from_type(class, format!("argument {number}: {}", error.value(py)));
    named.set_cause(py, Some(error));
    named
}

/// The copy of an array that is not compact or not aligned. A function gets the copy, and may write to it.
pub(crate) struct ArrayCopy {
    array: Py<PyAny>,
    tensor: object::Tensor,
    /// The bytes before the call.
    before: Vec<u8>,
}

impl ArrayCopy {
    /// Copies the elements back into the array, if the function changed them.
    #[cold]
    fn write_back(&self, py: Python<'_>) -> PyResult<()> {
        let after = self.tensor.to_whole_bytes();
        if after.map_err(|error| errors::call_error(py, &error))? == self.before {
            return Ok(());
        }
        let elements = to_numpy(py, &self.tensor)?;
        py.import("numpy")?
            .call_method1("copyto", (&self.array, elements))
            .map(drop)
    }
}

/// Returns the value of an object. An array becomes a tensor over its memory, or over one of `copies`.
pub(crate) fn to_any(object: &Bound<'_, PyAny>, copies: &mut Vec<ArrayCopy>) -> PyResult<Any> {
    nested_to_any(object, copies, 0)
}

fn nested_to_any(
    object: &Bound<'_, PyAny>,
    copies: &mut Vec<ArrayCopy>,
    depth: usize,
) -> PyResult<Any> {
    if object.is_none() {
        return Ok(Any::none());
    }
    if let Ok(value) = object.cast::<PyBool>() {
        return Ok(value.is_true().into());
    }
    if let Ok(float) = object.cast::<PyFloat>() {
        return Ok(float.extract::<f64>()?.into());
    }
    if object.is_instance_of::<PyInt>() {
        return int_to_any(object);
    }
    if let Ok(text) = object.cast::<PyString>() {
        return Ok(text.extract::<String>()?.into());
    }
    if let Ok(bytes) = object.cast::<PyBytes>() {
        return Ok(Bytes::new(bytes.as_bytes()).into());
    }
    if let Ok(function) = object.cast::<Function>() {
        return Ok(function.get().0.clone().into());
    }
    if let Ok(module) = object.cast::<Module>() {
        return Ok(module.get().0.clone().into());
    }
    if let Ok(object) = object.cast::<Object>() {
        return Ok(object.get().0.clone().into());
    }
    if let Some(tensor) = over_array(object)? {
        return Ok(tensor.into());
    }
    if Array::from_object(object)?.is_some() {
        return copy_to_any(object, copies);
    }
    if let Some(tensor) = to_tensor(object)? {
        return Ok(tensor.into());
    }
    if object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() {
        let depth = next_depth(depth)?;
        let items: PyResult<Vec<Any>> = object
            .try_iter()?
            .map(|item| nested_to_any(&item?, copies, depth))
            .collect();
        return Ok(ObjectArray::new(items?).into());
    }
    if let Ok(dict) = object.cast::<PyDict>() {
        let depth = next_depth(depth)?;
        let mut pairs = Vec::with_capacity(dict.len());
        for (key, value) in dict {
            let key = nested_to_any(&key, copies, depth)?;
            pairs.push((key, nested_to_any(&value, copies, depth)?));
        }
        let map = Map::from_pairs(pairs);
        let map = map.map_err(|error| errors::call_error(object.py(), &error))?;
        return Ok(map.into());
    }
    other_to_any(object)
}

/// Returns the value of an object of a class that only has the methods of a number, of bytes or of a function.
#[cold]
fn other_to_any(object: &Bound<'_, PyAny>) -> PyResult<Any> {
    if object.is_instance_of::<PyByteArray>() || object.is_instance_of::<PyMemoryView>() {
        let bytes = object.py().get_type::<PyBytes>().call1((object,))?;
        return Ok(Bytes::new(bytes.cast::<PyBytes>()?.as_bytes()).into());
    }
    let class = object.get_type();
    let name = class.name()?;
    // Called `bool_` before numpy 2. It has `__float__`, but it is no float.
    if class.module()? == "numpy" && (name == "bool" || name == "bool_") {
        return Ok(object.is_truthy()?.into());
    }
    if class.hasattr("__index__")? {
        let int = object
            .py()
            .import("operator")?
            .call_method1("index", (object,))?;
        return int_to_any(&int);
    }
    if class.hasattr("__float__")? {
        return Ok(object.call_method0("__float__")?.extract::<f64>()?.into());
    }
    // SAFETY: a live object.
    if unsafe { ffi::PyCallable_Check(object.as_ptr()) } != 0 {
        return Ok(callback(object.clone().unbind()).into());
    }
    Err(PyTypeError::new_err(format!(
        "expected a number, text, bytes, array, list, dictionary, function or None, found an object of type {name}"
    )))
}

fn int_to_any(object: &Bound<'_, PyAny>) -> PyResult<Any> {
    let int = object.extract::<i64>();
    let int = int.map_err(|_| {
        PyOverflowError::new_err(format!("an integer of TVM has 64 bits, found {object}"))
    })?;
    Ok(int.into())
}

/// Returns a tensor with a copy of an array, whose changes are written back after the call.
fn copy_to_any(array: &Bound<'_, PyAny>, copies: &mut Vec<ArrayCopy>) -> PyResult<Any> {
    let tensor = copy_of(array)?;
    let before = tensor.to_whole_bytes();
    copies.push(ArrayCopy {
        array: array.clone().unbind(),
        tensor: tensor.clone(),
        before: before.map_err(|error| errors::call_error(array.py(), &error))?,
    });
    Ok(tensor.into())
}

/// Returns a function that calls a Python function.
fn callback(function: Py<PyAny>) -> tvmspec::function::Function {
    tvmspec::function::Function::from_packed(move |args| {
        let called = Python::try_attach(|py| {
            call_python(function.bind(py), args)
                .map_err(|error| errors::error_of_callback(py, error))
        });
        called.unwrap_or_else(|| {
            Err(Error::new(
                "RuntimeError",
                "the Python interpreter has ended",
            ))
        })
    })
}

/// Calls a Python function with the arguments of a callback.
fn call_python(function: &Bound<'_, PyAny>, args: &[AnyView<'_>]) -> PyResult<Any> {
    let py = function.py();
    let mut lent = Vec::new();
    let mut objects = Vec::with_capacity(args.len());
    for arg in args {
        if arg.type_index() == index::DLTENSOR_PTR {
            let tensor = LentTensor::new(py, *arg)?;
            objects.push(Bound::new(py, Tensor(tensor.copy.clone()))?.into_any());
            lent.push(tensor);
        } else {
            objects.push(results::to_python(py, arg.to_any())?);
        }
    }
    let result = function.call1(PyTuple::new(py, objects)?)?;
    for tensor in lent {
        let written = tensor.write_back();
        written.map_err(|error| errors::call_error(py, &error))?;
    }
    to_any(&result, &mut Vec::new())
}

/// A tensor that compiled code lends to a callback. The callback gets a copy, because it may keep its arguments.
struct LentTensor {
    lent: object::Tensor,
    copy: object::Tensor,
    /// The bytes before the callback.
    before: Vec<u8>,
}

impl LentTensor {
    fn new(py: Python<'_>, arg: AnyView<'_>) -> PyResult<LentTensor> {
        let dl: *mut DLTensor = cast(arg).map_err(|broken| errors::violation_error(py, &broken))?;
        // SAFETY: the caller of the callback lends a description for the call.
        let dl = unsafe { *dl };
        // SAFETY: the description is true for the call, and this value ends before it.
        let lent = unsafe { object::Tensor::over(dl, Box::new(|| ())) };
        let copied = || {
            let before = lent.to_whole_bytes()?;
            let copy = object::Tensor::empty(lent.shape(), lent.dtype())?;
            copy.fill_whole_bytes(&before)?;
            Ok((copy, before))
        };
        let (copy, before) = copied().map_err(|error| errors::call_error(py, &error))?;
        Ok(LentTensor { lent, copy, before })
    }

    /// Copies the elements back, if the callback changed them. Otherwise the memory may be read-only.
    fn write_back(self) -> Result<(), Error> {
        let after = self.copy.to_whole_bytes()?;
        if after == self.before {
            return Ok(());
        }
        self.lent.fill_whole_bytes(&after)
    }
}
