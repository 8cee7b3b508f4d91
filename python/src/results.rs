//! Results of a call as Python objects.

use crate::errors;
use crate::function::{Function, Module};
use crate::tensor::Tensor;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyList, PyString, PyTuple};
use tvmspec::object;
use tvmspec::value::{Any, Bytes, Str, cast, index, types};

/// Returns the object for a value.
pub(crate) fn to_python<'py>(py: Python<'py>, value: Any) -> PyResult<Bound<'py, PyAny>> {
    let broken = |broken: tvmspec::rule::Violation| errors::broken(py, &broken);
    let view = value.view();
    Ok(match value.type_index() {
        index::NONE => py.None().into_bound(py),
        index::INT => {
            let int: i64 = cast(view).map_err(broken)?;
            int.into_pyobject(py)?.into_any()
        }
        index::BOOL => {
            let truth: bool = cast(view).map_err(broken)?;
            PyBool::new(py, truth).to_owned().into_any()
        }
        index::FLOAT => PyFloat::new(py, cast(view).map_err(broken)?).into_any(),
        index::STR | index::SMALL_STR => {
            let text: Str = cast(view).map_err(broken)?;
            PyString::from_bytes(py, text.as_bytes())?.into_any()
        }
        index::BYTES | index::SMALL_BYTES => {
            let bytes: Bytes = cast(view).map_err(broken)?;
            PyBytes::new(py, bytes.as_bytes()).into_any()
        }
        index::TENSOR | index::DLTENSOR_PTR => {
            let tensor: object::Tensor = cast(view).map_err(broken)?;
            Bound::new(py, Tensor(tensor))?.into_any()
        }
        index::FUNCTION => {
            let function = cast(view).map_err(broken)?;
            Bound::new(py, Function(function, false))?.into_any()
        }
        index::MODULE => {
            let module = cast(view).map_err(broken)?;
            Bound::new(py, Module(module))?.into_any()
        }
        index::SHAPE => {
            let extents = object::extents_of(view).unwrap_or_default();
            PyTuple::new(py, extents)?.into_any()
        }
        index::ARRAY | index::LIST => {
            let list = PyList::empty(py);
            for item in object::sequence_of(view).unwrap_or_default().iter() {
                list.append(to_python(py, item.clone())?)?;
            }
            list.into_any()
        }
        index::MAP | index::DICT => {
            let dict = PyDict::new(py);
            if let Some(pairs) = object::pairs_of(view) {
                for (key, item) in &pairs {
                    dict.set_item(to_python(py, key.clone())?, to_python(py, item.clone())?)?;
                }
            }
            dict.into_any()
        }
        other => {
            let key = types::key_of(other);
            return Err(PyTypeError::new_err(format!(
                "the result is an object of type {key}, which Python has no form for"
            )));
        }
    })
}
