//! Arguments of a call: conversion of Python objects to values that live for the call.

use crate::array::Array;
use crate::errors;
use crate::function::{Function, Module};
use crate::results;
use crate::tensor::{Tensor, to_tensor};
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use std::mem::MaybeUninit;
use tvmspec::object::{Array as ObjectArray, Map};
use tvmspec::value::{Any, AnyView, Bytes, DLTensor};

/// The number of arguments that need no allocation.
const FEW: usize = 8;

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
        let mut described = [const { MaybeUninit::<DLTensor>::uninit() }; FEW];
        let mut owned = [const { Any::none() }; FEW];
        return with_room(args, is_compiled, &mut described, &mut owned, work);
    }
    let mut described: Vec<_> = (0..count).map(|_| MaybeUninit::uninit()).collect();
    let mut owned: Vec<_> = (0..count).map(|_| Any::none()).collect();
    with_room(args, is_compiled, &mut described, &mut owned, work)
}

/// Does the work of [`with_arguments`], with a buffer that has a place for each argument.
#[inline]
fn with_room<R>(
    args: &Bound<'_, PyTuple>,
    is_compiled: bool,
    described: &mut [MaybeUninit<DLTensor>],
    owned: &mut [Any],
    work: impl FnOnce(&[AnyView<'_>]) -> R,
) -> PyResult<R> {
    let py = args.py();
    let count = args.len();
    let mut few = [const { AnyView::none() }; FEW];
    let mut many = Vec::new();
    let views = if count <= FEW {
        &mut few[..count]
    } else {
        many.resize_with(count, AnyView::none);
        &mut many[..]
    };
    // The strides of arrays that are not compact. An inner vector stays where it is when the outer one grows.
    let mut kept = Vec::new();
    let rooms = described.iter_mut().zip(owned);
    for ((view, object), (described, owned)) in
        views.iter_mut().zip(args.iter_borrowed()).zip(rooms)
    {
        if is_compiled && let Some(array) = Array::known(&object) {
            let mut strides = Vec::new();
            let described = described.write(array.describe(py, &mut strides)?);
            if !array.is_compact() {
                kept.push(strides);
            }
            // SAFETY: the tuple keeps the array, whose extents and elements stay for the call: nothing resizes an array that has
            // another reference. Its elements may be written, as everywhere in numpy.
            *view = unsafe { AnyView::dltensor(described) };
            continue;
        }
        if let Ok(tensor) = object.cast_exact::<Tensor>() {
            let value = AnyView::from(tensor.get().0.as_object());
            // SAFETY: the tuple keeps the tensor for the call, and a frozen class never replaces its value.
            *view = unsafe { AnyView::from_raw(*value.as_raw()) };
            continue;
        }
        *owned = to_any(&object, is_compiled)?;
        *view = owned.view();
    }
    Ok(work(views))
}

/// Returns the value of an object. An array becomes a tensor over its memory.
pub(crate) fn to_any(object: &Bound<'_, PyAny>, is_compiled: bool) -> PyResult<Any> {
    if object.is_none() {
        return Ok(Any::none());
    }
    if let Ok(tensor) = object.cast::<Tensor>() {
        return Ok(tensor.get().0.clone().into());
    }
    if let Ok(value) = object.cast::<PyBool>() {
        return Ok(value.is_true().into());
    }
    if let Ok(float) = object.cast::<PyFloat>() {
        return Ok(float.extract::<f64>()?.into());
    }
    if object.is_instance_of::<PyInt>() {
        let int = object.extract::<i64>();
        let int = int.map_err(|_| PyOverflowError::new_err("an integer of TVM has 64 bits"))?;
        return Ok(int.into());
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
    if is_compiled && let Some(array) = Array::of(object)? {
        return array_in_place(object, array);
    }
    if let Some(tensor) = to_tensor(object)? {
        return Ok(tensor.into());
    }
    if object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() {
        let items: PyResult<Vec<Any>> = object
            .try_iter()?
            .map(|item| to_any(&item?, false))
            .collect();
        return Ok(ObjectArray::new(items?).into());
    }
    if let Ok(dict) = object.cast::<PyDict>() {
        let pairs: PyResult<Vec<(Any, Any)>> = dict
            .iter()
            .map(|(key, value)| Ok((to_any(&key, false)?, to_any(&value, false)?)))
            .collect();
        let map = Map::from_pairs(pairs?);
        let map = map.map_err(|error| errors::raised(object.py(), &error))?;
        return Ok(map.into());
    }
    // SAFETY: a live object.
    if unsafe { ffi::PyCallable_Check(object.as_ptr()) } != 0 {
        return Ok(callback(object.clone().unbind()).into());
    }
    let name = object.get_type().name()?;
    Err(PyTypeError::new_err(format!(
        "TVM has no value for an object of type {name}"
    )))
}

/// Returns a tensor over the elements of an array without a copy, even if they are not aligned, because compiled code may write to them.
fn array_in_place(object: &Bound<'_, PyAny>, array: Array<'_>) -> PyResult<Any> {
    let mut strides = Vec::new();
    let described = array.describe(object.py(), &mut strides)?;
    let owner = object.clone().unbind();
    // SAFETY: extents and strides are copied; the array keeps its elements as long as `finish` owns a reference to it.
    let tensor = unsafe {
        tvmspec::object::Tensor::over(described, Box::new(move || Python::attach(|_| drop(owner))))
    };
    Ok(tensor.into())
}

/// Returns a function that calls a Python function.
fn callback(function: Py<PyAny>) -> tvmspec::function::Function {
    tvmspec::function::Function::from_packed(move |args| {
        Python::attach(|py| {
            let called = || -> PyResult<Any> {
                let args: PyResult<Vec<_>> = args
                    .iter()
                    .map(|arg| results::to_python(py, arg.to_any()))
                    .collect();
                let result = function.bind(py).call1(PyTuple::new(py, args?)?)?;
                to_any(&result, false)
            };
            called().map_err(|error| {
                let kind = error.get_type(py).name().map(|name| name.to_string());
                let kind = kind.unwrap_or_else(|_| "RuntimeError".to_owned());
                tvmspec::function::Error::new(&*kind, error.value(py).to_string())
            })
        })
    })
}
