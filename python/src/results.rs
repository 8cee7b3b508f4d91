//! Results of a call as Python objects.

use crate::errors;
use crate::function::{Function, Module};
use crate::tensor::Tensor;
use pyo3::exceptions::{PyRecursionError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyList, PyString, PyTuple};
use tvmspec::object;
use tvmspec::value::{Any, Bytes, ObjectRef, Str, cast, dtype_to_text, index, types};

/// The largest number of lists and dictionaries inside each other, in arguments and results. A list may contain itself.
const MAX_DEPTH: usize = 100;

/// An object without a form in Python, such as a cache of the Relax VM. Only functions use it.
#[pyclass(frozen, module = "tvmspec")]
pub(crate) struct Object(pub(crate) ObjectRef);

#[pymethods]
impl Object {
    fn __repr__(&self) -> String {
        format!("<Object {}>", types::key_of(self.0.type_index()))
    }
}

/// Returns the depth of the items of a list or dictionary at `depth`.
pub(crate) fn next_depth(depth: usize) -> PyResult<usize> {
    if depth == MAX_DEPTH {
        return Err(PyRecursionError::new_err(format!(
            "a value has more than {MAX_DEPTH} lists and dictionaries inside each other, or contains itself"
        )));
    }
    Ok(depth + 1)
}

/// Returns the object for a value. A data type becomes its text, a device its type and number, and a pointer its address.
pub(crate) fn to_python<'py>(py: Python<'py>, value: Any) -> PyResult<Bound<'py, PyAny>> {
    nested_to_python(py, value, 0)
}

fn nested_to_python<'py>(py: Python<'py>, value: Any, depth: usize) -> PyResult<Bound<'py, PyAny>> {
    let broken = |broken: tvmspec::rule::Violation| errors::violation_error(py, &broken);
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
        index::DATA_TYPE => {
            let text = dtype_to_text(view.as_raw().dtype()).map_err(broken)?;
            PyString::new(py, &text).into_any()
        }
        index::DEVICE => {
            let device = view.as_raw().device();
            (device.kind, device.id).into_pyobject(py)?.into_any()
        }
        index::OPAQUE => view.as_raw().ptr().addr().into_pyobject(py)?.into_any(),
        index::TENSOR => {
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
            let depth = next_depth(depth)?;
            let list = PyList::empty(py);
            for item in object::sequence_of(view).unwrap_or_default().iter() {
                list.append(nested_to_python(py, item.clone(), depth)?)?;
            }
            list.into_any()
        }
        index::MAP | index::DICT => {
            let depth = next_depth(depth)?;
            let dict = PyDict::new(py);
            if let Some(pairs) = object::pairs_of(view) {
                for (key, item) in &pairs {
                    let key = nested_to_python(py, key.clone(), depth)?;
                    dict.set_item(key, nested_to_python(py, item.clone(), depth)?)?;
                }
            }
            dict.into_any()
        }
        other => match value.into_object() {
            Ok(object) => Bound::new(py, Object(object))?.into_any(),
            Err(_) => {
                let key = types::key_of(other);
                return Err(PyTypeError::new_err(format!(
                    "a value of type {key} has no form in Python"
                )));
            }
        },
    })
}
