//! JSON values as Python objects, and back.

use crate::buffer::Buffer;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use pyo3::exceptions::{PyRecursionError, PyTypeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use serde_json::{Map, Number, Value};

/// The largest number of lists and dictionaries inside each other, which is that of JSON readers.
const MAX_DEPTH: usize = 128;

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

/// Returns the value of an object. As everywhere in the JSON of the suite, bytes become base64, and a float that is not finite becomes its
/// bits in hex.
pub(crate) fn from_python(object: &Bound<'_, PyAny>) -> PyResult<Value> {
    convert(object, MAX_DEPTH)
}

/// Returns the value of an object with at most `depth` lists and dictionaries inside each other.
fn convert(object: &Bound<'_, PyAny>, depth: usize) -> PyResult<Value> {
    let py = object.py();
    if object.is_none() {
        return Ok(Value::Null);
    }
    if let Ok(value) = object.cast::<PyBool>() {
        return Ok(value.is_true().into());
    }
    if let Ok(float) = object.cast::<PyFloat>() {
        let float: f64 = float.extract()?;
        let bits = || Value::String(format!("{:#018x}", float.to_bits()));
        return Ok(Number::from_f64(float).map_or_else(bits, Value::Number));
    }
    if let Ok(text) = object.cast::<PyString>() {
        return Ok(text.to_string_lossy().into_owned().into());
    }
    let Some(depth) = depth.checked_sub(1) else {
        return Err(PyRecursionError::new_err(format!(
            "an answer has at most {MAX_DEPTH} lists and dictionaries inside each other"
        )));
    };
    if let Ok(dict) = object.cast::<PyDict>() {
        let mut members = Map::new();
        for (name, member) in dict {
            members.insert(name.extract()?, convert(&member, depth)?);
        }
        return Ok(Value::Object(members));
    }
    if object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() {
        let items = object.try_iter()?;
        let items: PyResult<Vec<Value>> = items.map(|item| convert(&item?, depth)).collect();
        return Ok(items?.into());
    }
    // Scalars and arrays of numpy, before `__index__`, which some of them have.
    if object.hasattr(intern!(py, "dtype"))? && object.hasattr(intern!(py, "tolist"))? {
        return convert(&object.call_method0(intern!(py, "tolist"))?, depth);
    }
    if object.is_instance_of::<PyInt>() || object.hasattr(intern!(py, "__index__"))? {
        if let Ok(int) = object.extract::<i64>() {
            return Ok(int.into());
        }
        if let Ok(int) = object.extract::<u64>() {
            return Ok(int.into());
        }
        // As a JSON reader does with more digits.
        return Ok(object.extract::<f64>()?.into());
    }
    if let Ok(bytes) = Buffer::from_object(object) {
        return Ok(BASE64_STANDARD.encode(bytes.as_ref()).into());
    }
    let name = object.get_type().name()?;
    Err(PyTypeError::new_err(format!(
        "the answer contains an object of type {name}: return dictionaries with texts as keys, lists, texts, numbers, bytes, True, False or None"
    )))
}
