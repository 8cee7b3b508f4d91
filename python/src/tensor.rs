//! Tensors: memory that Python shares with compiled code, through DLPack in both directions.

use crate::array::{Array, MAX_ROOM};
use crate::errors;
use pyo3::exceptions::{PyBufferError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyDict, PyTuple};
use std::ffi::CStr;
use std::mem::{ManuallyDrop, MaybeUninit};
use tvmspec::object;
use tvmspec::tensor::{Device, Dtype};
use tvmspec::value::{DLManagedTensor, DLManagedTensorVersioned, device_to_text, dtype_to_text};

/// An array in memory that compiled code can use. numpy and every other library that knows DLPack read it without a copy.
#[pyclass(frozen, module = "tvmspec")]
pub(crate) struct Tensor(pub(crate) object::Tensor);

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

    /// Returns a capsule that owns a reference to the tensor, or to a copy of it. Does not wait for work on a device.
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
        if self.0.dtype().bits < 8 {
            // DLPack packs them, and compiled code does not.
            return Err(PyBufferError::new_err(format!(
                "DLPack has another form of {} elements; use tensor.numpy()",
                self.dtype()
            )));
        }
        let tensor = match copy {
            Some(true) => self.0.to_device(self.0.device()),
            _ => Ok(self.0.clone()),
        };
        let tensor = tensor.map_err(|error| errors::call_error(py, &error))?;
        let made = if max_version.is_some_and(|(major, _)| major >= 1) {
            capsule(tensor.to_dlpack_versioned())
        } else if tensor.is_read_only() {
            return Err(PyBufferError::new_err(
                "the tensor is read-only, which DLPack before 1.0 cannot state; pass max_version=(1, 0)",
            ));
        } else {
            capsule(tensor.to_dlpack())
        };
        // SAFETY: a new reference, or null with an exception.
        unsafe { Bound::from_owned_ptr_or_err(py, made) }
    }

    /// Returns the elements as an array of numpy, without a copy. Types that numpy lacks come from ml_dtypes. Elements of less than eight
    /// bits are copied.
    fn numpy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_numpy(py, &self.0)
    }

    /// Returns the array for `numpy.asarray`.
    #[pyo3(signature = (dtype = None, copy = None))]
    fn __array__<'py>(
        &self,
        py: Python<'py>,
        dtype: Option<Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let numpy = py.import("numpy")?;
        let array = to_numpy(py, &self.0)?;
        if copy == Some(true) {
            return numpy.call_method1("array", (array, dtype));
        }
        let converted = numpy.call_method1("asarray", (&array, dtype))?;
        if copy == Some(false) && !converted.is(&array) {
            return Err(PyValueError::new_err(
                "elements of another type need a copy; pass copy=None",
            ));
        }
        Ok(converted)
    }

    fn __repr__(&self) -> String {
        let shape: Vec<String> = self.0.shape().iter().map(i64::to_string).collect();
        format!("<Tensor {}[{}]>", self.dtype(), shape.join(", "))
    }
}

/// The memory of a tensor, for numpy. Its `from_dlpack` returns read-only arrays before 2.1, and does not know all element types.
#[pyclass(frozen)]
struct Memory {
    tensor: object::Tensor,
    /// The type of the elements in the form of numpy: `<f4`.
    kind: String,
}

#[pymethods]
impl Memory {
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dl = self.tensor.dl();
        let address = dl.data.addr() + usize::try_from(dl.byte_offset)?;
        let interface = PyDict::new(py);
        interface.set_item("version", 3)?;
        interface.set_item("shape", PyTuple::new(py, extents(&self.tensor))?)?;
        interface.set_item("typestr", &self.kind)?;
        interface.set_item("data", (address, self.tensor.is_read_only()))?;
        // SAFETY: a tensor has readable strides.
        if let Some(strides) = unsafe { dl.strides() } {
            let lane = i64::from(dl.dtype.bits / 8);
            let size = lane * i64::from(dl.dtype.lanes);
            let mut strides: Vec<i64> = strides.iter().map(|stride| stride * size).collect();
            if dl.dtype.lanes != 1 {
                strides.push(lane);
            }
            interface.set_item("strides", PyTuple::new(py, strides)?)?;
        }
        Ok(interface)
    }
}

/// Returns the elements of a tensor as an array of numpy.
pub(crate) fn to_numpy<'py>(
    py: Python<'py>,
    tensor: &object::Tensor,
) -> PyResult<Bound<'py, PyAny>> {
    let numpy = py.import("numpy")?;
    // Several lanes become one more axis.
    let lane = Dtype {
        lanes: 1,
        ..tensor.dtype()
    };
    let name = dtype_to_text(lane).unwrap_or_else(|broken| broken.to_string());
    let kind = match lane.code {
        _ if lane.bits < 8 => None,
        Dtype::INT => Some('i'),
        Dtype::UINT => Some('u'),
        Dtype::FLOAT => Some('f'),
        Dtype::COMPLEX => Some('c'),
        Dtype::BOOL => Some('b'),
        _ => None,
    };
    let class = match (kind, &*name) {
        (Some(_), _) => None,
        // The bool of 0.5 to 0.22.
        (None, "uint1") => Some(numpy.getattr("bool_")?),
        (None, name) => Some(py.import("ml_dtypes")?.getattr(name).map_err(|_| {
            PyTypeError::new_err(format!(
                "neither numpy nor ml_dtypes has elements of type {name}"
            ))
        })?),
    };
    let array = if lane.bits < 8 {
        let shape = PyTuple::new(py, extents(tensor))?;
        let bytes = PyByteArray::new(py, &unpacked(py, tensor)?);
        let array = numpy.call_method1("frombuffer", (bytes, "uint8"))?;
        array.call_method1("reshape", (shape,))?
    } else if is_cpu(tensor.device()) {
        let memory = Memory {
            tensor: tensor.clone(),
            kind: format!("={}{}", kind.unwrap_or('u'), lane.bits / 8),
        };
        numpy.call_method1("asarray", (memory,))?
    } else {
        return Err(PyBufferError::new_err(format!(
            "the tensor is on {}, and an array of numpy is on the CPU",
            device_to_text(tensor.device())
        )));
    };
    match class {
        Some(class) => array.call_method1("view", (class,)),
        None => Ok(array),
    }
}

/// Returns whether the CPU can read memory of the device: its own memory, pinned memory of CUDA and ROCm, managed memory of CUDA.
fn is_cpu(device: Device) -> bool {
    matches!(device.kind, 1 | 3 | 11 | 13)
}

/// Returns the extents, with the number of lanes as the last one if there are several.
fn extents(tensor: &object::Tensor) -> Vec<i64> {
    let mut extents = tensor.shape().to_vec();
    if tensor.dtype().lanes != 1 {
        extents.push(i64::from(tensor.dtype().lanes));
    }
    extents
}

/// Returns the elements of less than eight bits with a byte for each, as compiled code for the CPU and ml_dtypes store them.
fn unpacked(py: Python<'_>, tensor: &object::Tensor) -> PyResult<Vec<u8>> {
    if let Ok(bytes) = tensor.to_whole_bytes() {
        return Ok(bytes);
    }
    // A tensor of another library, which packs them from the lowest bit on.
    let packed = tensor.to_bytes();
    let packed = packed.map_err(|error| errors::call_error(py, &error))?;
    let bits = usize::from(tensor.dtype().bits);
    let count = usize::try_from(extents(tensor).iter().product::<i64>()).unwrap_or(0);
    let element = |index: usize| {
        (0..bits).fold(0, |element, bit| {
            let at = index * bits + bit;
            let byte = packed.get(at / 8).copied().unwrap_or_default();
            element | (byte >> (at % 8) & 1) << bit
        })
    };
    Ok((0..count).map(element).collect())
}

/// Creates a tensor with a copy of the elements, aligned to 64 bytes as compiled code expects. `array` is an array, a tensor of any
/// library, or a list of numbers.
#[pyfunction]
pub(crate) fn tensor(array: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    let py = array.py();
    let numpy = || py.import("numpy");
    let array = if Array::from_object(array)?.is_some() {
        array.clone()
    } else if let Some(tensor) = to_tensor(array)? {
        to_numpy(py, &tensor)?
    } else {
        numpy()?.call_method1("asarray", (array,))?
    };
    copy_of(&array).map(Tensor)
}

/// Copies the elements of an array of numpy.
pub(crate) fn copy_of(object: &Bound<'_, PyAny>) -> PyResult<object::Tensor> {
    let py = object.py();
    let no_array = || PyTypeError::new_err("expected an array, a tensor or a list of numbers");
    let array = Array::from_object(object)?.ok_or_else(no_array)?;
    if !array.is_compact() {
        let compact = py
            .import("numpy")?
            .call_method1("ascontiguousarray", (object,))?;
        return copy_of(&compact);
    }
    let dl = array.describe(py, &mut [MaybeUninit::uninit(); MAX_ROOM])?;
    let fail = |error: tvmspec::function::Error| errors::call_error(py, &error);
    let tensor = object::Tensor::empty(array.shape(), dl.dtype).map_err(fail)?;
    let count: i64 = array.shape().iter().product();
    let length = usize::try_from(count).unwrap_or(0) * usize::from(dl.dtype.bits).div_ceil(8);
    if length > 0 {
        // SAFETY: a compact array has that many bytes in place. Other threads write to them only without the interpreter's lock, in
        // compiled code, whose callers pass no array that is in use.
        let bytes = unsafe { std::slice::from_raw_parts(array.data().cast::<u8>(), length) };
        tensor.fill_whole_bytes(bytes).map_err(fail)?;
    }
    Ok(tensor)
}

/// The alignment that compiled code expects (FUN-29), which numpy does not promise.
const ALIGNMENT: usize = 64;

/// Returns a tensor over the memory of an array, or `None` if it is not compact or not aligned.
pub(crate) fn over_array(object: &Bound<'_, PyAny>) -> PyResult<Option<object::Tensor>> {
    let Some(array) = Array::from_object(object)? else {
        return Ok(None);
    };
    if !array.is_compact() || !array.data().addr().is_multiple_of(ALIGNMENT) {
        return Ok(None);
    }
    let mut room = [MaybeUninit::uninit(); MAX_ROOM];
    let dl = array.describe(object.py(), &mut room)?;
    let owner = object.clone().unbind();
    let finish = Box::new(move || {
        // Attached, because an array may be large and other references wait for the next call. After the end of the interpreter, the
        // reference is lost.
        let mut owner = ManuallyDrop::new(owner);
        Python::try_attach(|_| {
            // SAFETY: the only drop, because `finish` is called once.
            unsafe { ManuallyDrop::drop(&mut owner) }
        });
    });
    if array.is_writeable() {
        // SAFETY: extents and strides are copied. The array has these elements in place as long as it lives, and `finish` owns a reference
        // to it. The caller of a function does not use its arrays meanwhile.
        return Ok(Some(unsafe { object::Tensor::over(dl, finish) }));
    }
    // SAFETY: as above.
    Ok(Some(unsafe { object::Tensor::over_constant(dl, finish) }))
}

/// Returns `object` itself if it is a tensor. Otherwise returns a tensor over the memory of an array or of an object with `__dlpack__`, or
/// a copy of an array that is not compact or not aligned. Returns `None` for other objects.
pub(crate) fn to_tensor(object: &Bound<'_, PyAny>) -> PyResult<Option<object::Tensor>> {
    if let Ok(tensor) = object.cast::<Tensor>() {
        return Ok(Some(tensor.get().0.clone()));
    }
    if let Some(tensor) = over_array(object)? {
        return Ok(Some(tensor));
    }
    if Array::from_object(object)?.is_some() {
        return copy_of(object).map(Some);
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
    let fail = |error: tvmspec::function::Error| errors::call_error(py, &error);
    if let Some(managed) = managed_in::<DLManagedTensorVersioned>(&capsule) {
        // SAFETY: a capsule with this name holds such a tensor, whose version comes first in every version.
        let version = unsafe { &(*managed).version };
        if version.major != 1 {
            return Err(PyBufferError::new_err(format!(
                "expected a tensor of DLPack 1, found one of DLPack {}.{}",
                version.major, version.minor
            )));
        }
        // SAFETY: the capsule owns such a tensor. The new name below transfers ownership to this library.
        let tensor = unsafe { object::Tensor::from_dlpack_versioned(managed, 0, false) };
        let tensor = tensor.map_err(fail)?;
        rename_used::<DLManagedTensorVersioned>(&capsule);
        return Ok(tensor);
    }
    if let Some(managed) = managed_in::<DLManagedTensor>(&capsule) {
        // SAFETY: the capsule owns such a tensor. The new name below transfers ownership to this library.
        let tensor = unsafe { object::Tensor::from_dlpack(managed, 0, false) };
        let tensor = tensor.map_err(fail)?;
        rename_used::<DLManagedTensor>(&capsule);
        return Ok(tensor);
    }
    Err(PyTypeError::new_err(
        "`__dlpack__` returned no capsule with a tensor, or one that was used before",
    ))
}

/// Returns the tensor in a capsule that no consumer has taken.
fn managed_in<T: Managed>(capsule: &Bound<'_, PyAny>) -> Option<*mut T> {
    // SAFETY: a live object and a name.
    if unsafe { ffi::PyCapsule_IsValid(capsule.as_ptr(), T::NAME.as_ptr()) } == 0 {
        return None;
    }
    // SAFETY: a capsule of this name.
    let managed = unsafe { ffi::PyCapsule_GetPointer(capsule.as_ptr(), T::NAME.as_ptr()) };
    Some(managed.cast())
}

/// Marks the tensor of a capsule as taken, so that the capsule does not free it.
fn rename_used<T: Managed>(capsule: &Bound<'_, PyAny>) {
    // SAFETY: a capsule; a static name.
    unsafe { ffi::PyCapsule_SetName(capsule.as_ptr(), T::USED_NAME.as_ptr()) };
}

/// A tensor in a capsule, which owns it until a consumer takes it.
trait Managed: Sized {
    /// The name of the capsule.
    const NAME: &CStr;
    /// The name after a consumer has taken the tensor.
    const USED_NAME: &CStr;

    /// Returns the function that frees the tensor.
    fn deleter(&self) -> Option<unsafe extern "C-unwind" fn(*mut Self)>;
}

impl Managed for DLManagedTensor {
    const NAME: &CStr = c"dltensor";
    const USED_NAME: &CStr = c"used_dltensor";

    fn deleter(&self) -> Option<unsafe extern "C-unwind" fn(*mut Self)> {
        self.deleter
    }
}

impl Managed for DLManagedTensorVersioned {
    const NAME: &CStr = c"dltensor_versioned";
    const USED_NAME: &CStr = c"used_dltensor_versioned";

    fn deleter(&self) -> Option<unsafe extern "C-unwind" fn(*mut Self)> {
        self.deleter
    }
}

/// Creates the capsule of a new tensor. Returns a new reference, or null with an exception.
fn capsule<T: Managed>(managed: *mut T) -> *mut ffi::PyObject {
    // SAFETY: the name is static, and the destructor is for capsules of this name.
    let capsule =
        unsafe { ffi::PyCapsule_New(managed.cast(), T::NAME.as_ptr(), Some(drop_untaken::<T>)) };
    if capsule.is_null() {
        // SAFETY: a new tensor, which nothing else owns.
        unsafe { free(managed) }
    }
    capsule
}

/// Drops the tensor of a capsule that no consumer has taken. A consumer renames the capsule.
unsafe extern "C" fn drop_untaken<T: Managed>(capsule: *mut ffi::PyObject) {
    // SAFETY: Python calls a destructor with its capsule.
    if unsafe { ffi::PyCapsule_IsValid(capsule, T::NAME.as_ptr()) } == 0 {
        return;
    }
    // SAFETY: the capsule has this name.
    let managed = unsafe { ffi::PyCapsule_GetPointer(capsule, T::NAME.as_ptr()) };
    // SAFETY: `capsule` put the tensor there, no consumer has taken it, and the capsule ends here.
    unsafe { free(managed.cast::<T>()) }
}

/// Frees a tensor.
///
/// # Safety
/// `managed` is a live tensor, which the caller owns.
unsafe fn free<T: Managed>(managed: *mut T) {
    // SAFETY: a live tensor, by this contract.
    let deleter = unsafe { &*managed }.deleter();
    if let Some(deleter) = deleter {
        // SAFETY: the one call of the deleter, because the caller owns the tensor.
        unsafe { deleter(managed) }
    }
}
