//! Tensors: memory that Python shares with compiled code, through DLPack in both directions.

use crate::array::Array;
use crate::errors;
use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::ffi::{CStr, c_void};
use std::ptr;
use tvmspec::object;
use tvmspec::tensor::Dtype;
use tvmspec::value::{DLManagedTensor, DLManagedTensorVersioned, DLTensor, dtype_to_text};

/// An array in memory that compiled code can use. numpy and every other library that knows DLPack read it without a copy.
#[pyclass(frozen, module = "tvmspec")]
pub(crate) struct Tensor(pub(crate) object::Tensor);

/// The names of a capsule with a tensor, before and after a consumer has taken it.
const PLAIN: (&CStr, &CStr) = (c"dltensor", c"used_dltensor");
const VERSIONED: (&CStr, &CStr) = (c"dltensor_versioned", c"used_dltensor_versioned");

#[pymethods]
impl Tensor {
    /// The extents.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.0.shape())
    }

    /// The element type, as TVM writes it.
    #[getter]
    fn dtype(&self) -> String {
        let dtype = self.0.dl().dtype;
        dtype_to_text(dtype).unwrap_or_else(|broken| broken.to_string())
    }

    /// Returns the type and the number of the device in the numbering of DLPack.
    fn __dlpack_device__(&self) -> (i32, i32) {
        let device = self.0.dl().device;
        (device.kind, device.id)
    }

    /// Returns a capsule that owns a reference to the tensor. Does not wait for work on a device.
    #[pyo3(signature = (*, stream = None, max_version = None, dl_device = None, copy = None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<Bound<'py, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let _ = stream;
        if dl_device.is_some_and(|device| device != self.__dlpack_device__()) {
            return Err(PyBufferError::new_err("the tensor is on another device"));
        }
        if copy == Some(true) {
            return Err(PyBufferError::new_err(
                "a tensor is exported without a copy",
            ));
        }
        let made = if max_version.is_some_and(|(major, _)| major >= 1) {
            capsule(self.0.to_dlpack_versioned())
        } else {
            capsule(self.0.to_dlpack())
        };
        // SAFETY: a new reference, or null with an exception.
        unsafe { Bound::from_owned_ptr_or_err(py, made) }
    }

    /// Returns a tensor over the same memory with unsigned integers of the same size. This is for element types that numpy lacks.
    fn _bits(&self) -> PyResult<Tensor> {
        let dtype = self.0.dl().dtype;
        let bits = match dtype.bits {
            8 | 16 | 32 | 64 if dtype.lanes == 1 => dtype.bits,
            _ => {
                return Err(PyTypeError::new_err(format!(
                    "numpy has no {}",
                    self.dtype()
                )));
            }
        };
        let dl = DLTensor {
            dtype: Dtype::scalar(Dtype::UINT, bits),
            ..*self.0.dl()
        };
        let owner = self.0.clone();
        // SAFETY: the memory of this tensor, which `finish` keeps alive, as elements of the same size; all bits are integers.
        Ok(Tensor(unsafe {
            object::Tensor::over(dl, Box::new(move || drop(owner)))
        }))
    }

    /// Returns the elements as an array of numpy, without a copy. Types that numpy lacks come from ml_dtypes.
    fn numpy<'py>(slf: &Bound<'py, Tensor>) -> PyResult<Bound<'py, PyAny>> {
        let (py, tensor) = (slf.py(), slf.get());
        let numpy = py.import("numpy")?;
        let dtype = tensor.0.dl().dtype;
        // Integers, floats, complex numbers, booleans.
        if matches!(dtype.code, 0 | 1 | 2 | 5 | 6) && dtype.bits >= 8 {
            return numpy.call_method1("from_dlpack", (slf,));
        }
        let bits = Bound::new(py, tensor._bits()?)?;
        let array = numpy.call_method1("from_dlpack", (bits,))?;
        let kind = py.import("ml_dtypes")?.getattr(tensor.dtype())?;
        array.call_method1("view", (kind,))
    }

    fn __repr__(&self) -> String {
        let shape: Vec<String> = self.0.shape().iter().map(i64::to_string).collect();
        format!("<Tensor {}[{}]>", self.dtype(), shape.join(", "))
    }
}

/// Creates a tensor with a copy of the elements of an array, aligned to 64 bytes as compiled code expects.
#[pyfunction]
pub(crate) fn tensor(array: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    let py = array.py();
    let Some(source) = Array::of(array)? else {
        return Err(PyTypeError::new_err("an array of numpy is expected"));
    };
    copied(py, source).map(Tensor)
}

/// Copies the elements of a compact array.
fn copied(py: Python<'_>, array: Array<'_>) -> PyResult<object::Tensor> {
    let dl = array.describe(py, &mut Vec::new())?;
    if !array.is_compact() {
        return Err(PyTypeError::new_err(
            "the array is not compact; pass numpy.ascontiguousarray(array)",
        ));
    }
    let fail = |error: tvmspec::function::Error| errors::raised(py, &error);
    let tensor = object::Tensor::empty(array.shape(), dl.dtype).map_err(fail)?;
    let length = tensor.nbytes();
    if length > 0 {
        // SAFETY: a compact array has all its elements there, as many as the tensor; nobody writes while this thread holds the lock.
        let bytes = unsafe { std::slice::from_raw_parts(array.data().cast::<u8>(), length) };
        tensor.fill(bytes).map_err(fail)?;
    }
    Ok(tensor)
}

/// Returns `object` itself if it is a tensor. Otherwise returns a tensor over its memory, if it is an array of numpy or has `__dlpack__`.
pub(crate) fn to_tensor(object: &Bound<'_, PyAny>) -> PyResult<Option<object::Tensor>> {
    if let Ok(tensor) = object.cast::<Tensor>() {
        return Ok(Some(tensor.get().0.clone()));
    }
    if let Some(array) = Array::of(object)? {
        // The function would turn a scalar into a list. A scalar is always compact.
        if !array.is_compact() {
            let numpy = object.py().import("numpy")?;
            let compact = numpy.call_method1("ascontiguousarray", (object,))?;
            let array = Array::of(&compact)?;
            return array.map(|array| copied(object.py(), array)).transpose();
        }
        // Models are compiled for aligned memory, which numpy does not promise.
        if !array.data().addr().is_multiple_of(64) {
            return copied(object.py(), array).map(Some);
        }
        let dl = array.describe(object.py(), &mut Vec::new())?;
        let owner = object.clone().unbind();
        // SAFETY: the array has these elements in place as long as it lives, and `finish` owns a reference to it. The caller must not
        // write to an array during a call of compiled code.
        return Ok(Some(unsafe {
            object::Tensor::over(dl, Box::new(move || Python::attach(|_| drop(owner))))
        }));
    }
    if !object.hasattr("__dlpack__")? {
        return Ok(None);
    }
    from_dlpack(object).map(Some)
}

/// Takes the tensor that `object` exports.
fn from_dlpack(object: &Bound<'_, PyAny>) -> PyResult<object::Tensor> {
    let py = object.py();
    let options = PyDict::new(py);
    options.set_item("max_version", (1, 0))?;
    let capsule = match object.call_method("__dlpack__", (), Some(&options)) {
        // Exporters from before DLPack 1.0 do not know the option.
        Err(error) if error.is_instance_of::<PyTypeError>(py) => {
            object.call_method0("__dlpack__")?
        }
        capsule => capsule?,
    };
    let take = |names: (&CStr, &CStr)| -> Option<*mut c_void> {
        // SAFETY: a live object and a name.
        if unsafe { ffi::PyCapsule_IsValid(capsule.as_ptr(), names.0.as_ptr()) } == 0 {
            return None;
        }
        // SAFETY: a capsule of this name.
        let managed = unsafe { ffi::PyCapsule_GetPointer(capsule.as_ptr(), names.0.as_ptr()) };
        Some(managed)
    };
    let used = |names: (&CStr, &CStr)| {
        // SAFETY: a capsule; a static name.
        unsafe { ffi::PyCapsule_SetName(capsule.as_ptr(), names.1.as_ptr()) }
    };
    let fail = |error: tvmspec::function::Error| errors::raised(py, &error);
    if let Some(managed) = take(VERSIONED) {
        // SAFETY: a capsule with this name holds such a tensor. The new name transfers ownership to this library.
        let tensor = unsafe {
            object::Tensor::from_dlpack_versioned(
                managed.cast::<DLManagedTensorVersioned>(),
                0,
                false,
            )
        };
        let tensor = tensor.map_err(fail)?;
        used(VERSIONED);
        return Ok(tensor);
    }
    if let Some(managed) = take(PLAIN) {
        // SAFETY: as above.
        let tensor =
            unsafe { object::Tensor::from_dlpack(managed.cast::<DLManagedTensor>(), 0, false) };
        let tensor = tensor.map_err(fail)?;
        used(PLAIN);
        return Ok(tensor);
    }
    Err(PyTypeError::new_err("`__dlpack__` returned no tensor"))
}

/// A tensor in a capsule, which owns it until a consumer takes it.
trait Managed: Sized {
    /// The name of the capsule.
    const NAME: &CStr;

    /// Frees the tensor.
    fn deleter(&self) -> Option<unsafe extern "C-unwind" fn(*mut Self)>;
}

impl Managed for DLManagedTensor {
    const NAME: &CStr = PLAIN.0;

    fn deleter(&self) -> Option<unsafe extern "C-unwind" fn(*mut Self)> {
        self.deleter
    }
}

impl Managed for DLManagedTensorVersioned {
    const NAME: &CStr = VERSIONED.0;

    fn deleter(&self) -> Option<unsafe extern "C-unwind" fn(*mut Self)> {
        self.deleter
    }
}

/// Creates the capsule of a new tensor. Returns a new reference, or null with an exception.
fn capsule<T: Managed>(managed: *mut T) -> *mut ffi::PyObject {
    // SAFETY: the capsule takes ownership of `managed`, and its destructor uses the same name.
    unsafe { ffi::PyCapsule_New(managed.cast(), T::NAME.as_ptr(), Some(drop_untaken::<T>)) }
}

/// Drops the tensor of a capsule that no consumer has taken. A consumer renames the capsule.
unsafe extern "C" fn drop_untaken<T: Managed>(capsule: *mut ffi::PyObject) {
    // SAFETY: Python calls a destructor with its capsule.
    if unsafe { ffi::PyCapsule_IsValid(capsule, T::NAME.as_ptr()) } == 0 {
        return;
    }
    // SAFETY: the capsule has this name.
    let managed = unsafe { ffi::PyCapsule_GetPointer(capsule, T::NAME.as_ptr()) };
    let managed = managed.cast::<T>();
    // SAFETY: `__dlpack__` put it there, and no consumer has taken it.
    if let Some(deleter) = unsafe { ptr::read(managed) }.deleter() {
        // SAFETY: the one call of the deleter, because the capsule dies with it.
        unsafe { deleter(managed) }
    }
}
