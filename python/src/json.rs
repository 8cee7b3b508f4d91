//! JSON values as Python objects, and back.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use serde_json::{Map, Number, Value};

/// Returns the object for a value: a dictionary, a list, a text, a number, a truth value or None.
pub(crate) fn to_python<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Null => py.None().into_bound(py),
        Value::Bool(value) => PyBool::new(py, *value).to_owned().into_any(),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(int), _) => int.into_pyobject(py)?.into_any(),
            (None, Some(int)) => int.into_pyobject(py)?.into_any(),
            (None, None) => PyFloat::new(py, number.as_f64().unwrap_or(f64::NAN)).into_any(),
        },
        Value::String(text) => PyString::new(py, text).into_any(),
        Value::Array(items) => {
            let list = PyList::empty(py);
            for item in items {
                list.append(to_python(py, item)?)?;
            }
            list.into_any()
        }
        Value::Object(members) => {
            let dict = PyDict::new(py);
            for (name, member) in members {
                dict.set_item(name, to_python(py, member)?)?;
            }
            dict.into_any()
        }
    })
}

/// Returns the value of an object. Bytes become base64, as everywhere in the JSON of the suite.
pub(crate) fn from_python(object: &Bound<'_, PyAny>) -> PyResult<Value> {
    if object.is_none() {
        return Ok(Value::Null);
    }
    if let Ok(value) = object.cast::<PyBool>() {
        return Ok(value.is_true().into());
    }
    if object.is_instance_of::<PyInt>() {
        if let Ok(int) = object.extract::<i64>() {
            return Ok(int.into());
        }
        return Ok(object.extract::<u64>()?.into());
    }
    if let Ok(float) = object.cast::<PyFloat>() {
        return Ok(Number::from_f64(float.extract()?).map_or(Value::Null, Value::Number));
    }
    if let Ok(text) = object.cast::<PyString>() {
        return Ok(text.to_string_lossy().into_owned().into());
    }
    if let Ok(bytes) = object.cast::<PyBytes>() {
        return Ok(BASE64_STANDARD.encode(bytes.as_bytes()).into());
    }
    if let Ok(dict) = object.cast::<PyDict>() {
        let mut members = Map::new();
        for (name, member) in dict {
            members.insert(name.extract()?, from_python(&member)?);
        }
        return Ok(Value::Object(members));
    }
    if object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() {
        let items: PyResult<Vec<Value>> =
            object.try_iter()?.map(|item| from_python(&item?)).collect();
        return Ok(items?.into());
    }
    let name = object.get_type().name()?;
    Err(PyTypeError::new_err(format!(
        "JSON has no value for an object of type {name}"
    )))
}
