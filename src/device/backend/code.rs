//! Modules of a driver: code is loaded once per device, and a kernel is looked up once per module.

use super::Driver;
use crate::device::error::reject;
use crate::device::launch::{Packed, WorkSizes};
use crate::device::module::{KernelDescription, LoadedCode, ModuleCode};
use crate::device::{DEV_54, DEV_59, Result, Stream};
use crate::rule::Kind;
use std::collections::HashMap;
use std::ffi::CString;
use std::sync::{Arc, Mutex, PoisonError};

/// A driver that launches kernels (DEV-47 to DEV-56).
pub(crate) trait KernelDriver: Driver {
    /// The code in a module's payload, as this driver needs it.
    type Code: Send + Sync;
    /// Code that is loaded on a device.
    type Program: Send + Sync;
    /// A kernel of a program. Several threads may launch it at once.
    type Kernel: Send + Sync;

    /// Loads code on a device.
    fn load(on: &Self::Opened, code: &Self::Code) -> Result<Self::Program>;

    /// Looks up a kernel, or creates it.
    fn kernel(
        on: &Self::Opened,
        program: &Self::Program,
        info: &KernelDescription,
    ) -> Result<Self::Kernel>;

    /// Launches a kernel on device `id`, as [`LoadedCode::launch`] does.
    ///
    /// # Safety
    ///
    /// As for [`LoadedCode::launch`].
    unsafe fn launch(
        on: (i32, &Self::Opened),
        kernel: &Self::Kernel,
        info: &KernelDescription,
        args: &mut Packed,
        sizes: &WorkSizes,
        stream: Stream,
    ) -> Result<()>;

    /// True if the driver's modules have a barrier of all blocks (DEV-59). Only CUDA modules have one, because code generators of other
    /// devices never write one.
    const HAS_BARRIER: bool = false;

    /// Resets the barrier, as [`LoadedCode::reset_barrier`] does. It is called only if [`KernelDriver::HAS_BARRIER`] is true.
    fn reset_barrier(_: &Self::Opened, _: &Self::Program, _: Stream) -> Result<()> {
        reject(
            DEV_59,
            Kind::Missing,
            "this driver has no barrier of all blocks",
        )
    }

    /// Unloads code that no thread launches any more, before the program and its kernels are dropped.
    fn unload(
        _: &Self::Opened,
        _: &mut Self::Program,
        _kernels: impl Iterator<Item = Arc<Self::Kernel>>,
    ) {
    }
}

/// The code of a module in the form that most payloads have.
#[cfg(any(feature = "opencl", feature = "cuda", feature = "hip"))]
pub(crate) struct FormattedCode {
    /// The format of the code: `cl`, `ptx`, `hsaco`, ...
    pub(crate) format: String,
    /// The source text or the binary.
    pub(crate) data: Vec<u8>,
}

/// The code of a module, for one driver.
pub(crate) struct BackendCode<D: KernelDriver>(pub(crate) D::Code);

impl<D: KernelDriver> ModuleCode for BackendCode<D> {
    fn device_kind(&self) -> i32 {
        D::DEVICE.kind
    }

    fn load(&self, id: i32) -> Result<Arc<dyn LoadedCode>> {
        let program = D::load(D::backend().enter(id)?, &self.0)?;
        Ok(Arc::new(DeviceCode::<D> {
            id,
            kernels: Mutex::default(),
            program,
        }))
    }

    fn has_barrier(&self) -> bool {
        D::HAS_BARRIER
    }
}

/// A module on one device. [`LoadedCode::launch`] starts its kernels.
struct DeviceCode<D: KernelDriver> {
    /// The id of the device.
    id: i32,
    /// The kernels by name. They are dropped before the program that they belong to.
    kernels: Mutex<HashMap<String, Arc<D::Kernel>>>,
    /// The program that [`KernelDriver::load`] returned.
    program: D::Program,
}

impl<D: KernelDriver> LoadedCode for DeviceCode<D> {
    unsafe fn launch(
        &self,
        info: &KernelDescription,
        args: &mut Packed,
        sizes: &WorkSizes,
        stream: Stream,
    ) -> Result<()> {
        // DEV-55: this thread may have entered another device since the code was loaded. CUDA and HIP launch on the device entered
        // last.
        let on = D::backend().enter(self.id)?;
        let kernel = self.kernel(on, info)?;
        // SAFETY: the caller keeps the requirements of this function, which are the same.
        unsafe { D::launch((self.id, on), &kernel, info, args, sizes, stream) }
    }

    fn reset_barrier(&self, stream: Stream) -> Result<()> {
        D::reset_barrier(D::backend().enter(self.id)?, &self.program, stream)
    }
}

impl<D: KernelDriver> DeviceCode<D> {
    /// Returns the kernel of this name. The table is locked only to find or create the kernel, not to launch it. Otherwise a driver
    /// that waits in a launch would block the launches of other threads.
    fn kernel(&self, on: &D::Opened, info: &KernelDescription) -> Result<Arc<D::Kernel>> {
        let mut kernels = self.kernels.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kernel) = kernels.get(&info.name) {
            return Ok(Arc::clone(kernel));
        }
        // Created under the lock. Otherwise two threads could create the same kernel, and the one that is replaced in the table would
        // never be unloaded.
        let kernel = Arc::new(D::kernel(on, &self.program, info)?);
        kernels.insert(info.name.clone(), Arc::clone(&kernel));
        Ok(kernel)
    }
}

impl<D: KernelDriver> Drop for DeviceCode<D> {
    fn drop(&mut self) {
        // At the end of the process the driver may be gone. An error could not be reported to a caller here.
        let Ok(on) = D::backend().enter(self.id) else {
            return;
        };
        let kernels = self.kernels.get_mut();
        let kernels = std::mem::take(kernels.unwrap_or_else(PoisonError::into_inner));
        D::unload(on, &mut self.program, kernels.into_values());
    }
}

/// Returns the name of a kernel as a C string.
pub(crate) fn c_name(info: &KernelDescription) -> Result<CString> {
    match CString::new(info.name.as_str()) {
        Ok(name) => Ok(name),
        Err(_) => reject(
            DEV_54,
            Kind::Malformed,
            format!("no driver has a kernel called {:?}", info.name),
        ),
    }
}
