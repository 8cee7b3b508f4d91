//! Kernels of CUDA modules.

use super::{checked, cuda, queue};
use crate::device::error::refuse;
use crate::device::launch::{Packed, WorkSizes};
use crate::device::module::{Driver, KernelInfo, Loaded};
use crate::device::{DEV_47, DEV_54, Device, Error, Result, Stream};
use crate::rule::Kind;
use cudarc::driver::result;
use cudarc::driver::sys;
use std::collections::HashMap;
use std::ffi::CString;
use std::sync::{Arc, Mutex, PoisonError};

/// Code of a CUDA module: what its payload holds.
pub(crate) struct CudaCode {
    /// `ptx`, `cubin`, `fatbin`, or `cuda` for source.
    pub format: String,
    /// The code.
    pub data: Vec<u8>,
}

impl Driver for CudaCode {
    fn device_kind(&self) -> i32 {
        Device::cuda(0).kind
    }

    fn load(&self, id: i32) -> Result<Arc<dyn Loaded>> {
        let opened = cuda().inner.enter(id)?;
        let mut image = match self.format.as_str() {
            "ptx" | "cubin" | "fatbin" => self.data.clone(),
            "cuda" | "cu" => compile(&self.data, opened.device)?,
            other => {
                return refuse(
                    DEV_54,
                    Kind::UnknownKind,
                    format!("CUDA code of format `{other}`"),
                );
            }
        };
        // PTX is a text that ends with a zero.
        image.push(0);
        // SAFETY: a context is current, and the image is whole; the driver checks what it reads as it always does.
        let module = unsafe { result::module::load_data(image.as_ptr().cast()) };
        let module = checked(&format!("cuModuleLoadData ({})", self.format), module)?;
        Ok(Arc::new(OnDevice {
            id,
            module,
            functions: Mutex::default(),
        }))
    }
}

/// Source to PTX for the device, through NVRTC where it is installed.
fn compile(source: &[u8], device: sys::CUdevice) -> Result<Vec<u8>> {
    use cudarc::nvrtc::{CompileOptions, compile_ptx_with_opts};
    // SAFETY: looks for the library, and runs its initialisers if it is there.
    if !unsafe { cudarc::nvrtc::sys::is_culib_present() } {
        return Err(Error::Absent(
            "the module is CUDA source, and NVRTC, which compiles it, is not here".into(),
        ));
    }
    let Ok(source) = std::str::from_utf8(source) else {
        return refuse(DEV_54, Kind::Malformed, "the CUDA source is not UTF-8");
    };
    use sys::CUdevice_attribute_enum as Ask;
    let version = |question| {
        // SAFETY: the device came from the driver.
        let answer = unsafe { result::device::get_attribute(device, question) };
        checked("cuDeviceGetAttribute", answer)
    };
    let major = version(Ask::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
    let minor = version(Ask::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
    let toolkit = ["CUDA_HOME", "CUDA_PATH"]
        .into_iter()
        .filter_map(|name| std::env::var(name).ok());
    let options = CompileOptions {
        options: vec![format!("--gpu-architecture=compute_{major}{minor}")],
        include_paths: toolkit.map(|root| format!("{root}/include")).collect(),
        ..CompileOptions::default()
    };
    let ptx = compile_ptx_with_opts(source.replace('\0', " "), options);
    let ptx = ptx
        .map_err(|error| Error::driver("cuda", "nvrtcCompileProgram", -1, format!("{error:?}")))?;
    Ok(ptx.to_src().into_bytes())
}

/// A module on one device.
struct OnDevice {
    id: i32,
    module: sys::CUmodule,
    /// Functions, and the dynamic shared memory that each was allowed.
    functions: Mutex<HashMap<String, (sys::CUfunction, usize)>>,
}

// SAFETY: modules and functions of the driver may be used from any thread.
unsafe impl Send for OnDevice {}
// SAFETY: modules and functions of the driver may be used from any thread.
unsafe impl Sync for OnDevice {}

/// Dynamic shared memory that every kernel may use without asking.
const FREE_SHARED: usize = 48 << 10;

impl OnDevice {
    fn function(&self, name: &str, shared: usize) -> Result<sys::CUfunction> {
        let mut functions = self
            .functions
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let (function, allowed) = match functions.get(name) {
            Some(known) => *known,
            None => {
                let text = CString::new(name).unwrap_or_default();
                // SAFETY: the module is alive.
                let found = unsafe { result::module::get_function(self.module, text) };
                (
                    checked(&format!("cuModuleGetFunction `{name}`"), found)?,
                    FREE_SHARED,
                )
            }
        };
        let wanted = shared.max(allowed);
        if wanted > allowed {
            let question =
                sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            // SAFETY: the function is alive.
            let set = unsafe {
                result::function::set_function_attribute(function, question, wanted as i32)
            };
            checked(
                &format!("cuFuncSetAttribute `{name}`: {wanted} bytes of shared memory"),
                set,
            )?;
        }
        functions.insert(name.to_owned(), (function, wanted));
        Ok(function)
    }
}

impl Loaded for OnDevice {
    unsafe fn launch(
        &self,
        kernel: &KernelInfo,
        args: &mut Packed,
        sizes: &WorkSizes,
        stream: Stream,
    ) -> Result<()> {
        cuda().inner.enter(self.id)?;
        if sizes.cluster != [1; 3] {
            return refuse(
                DEV_47,
                Kind::Unsupported,
                "this backend does not launch clusters of blocks",
            );
        }
        let function = self.function(&kernel.name, sizes.shared)?;
        let mut addresses = args.addresses();
        let grid = sizes
            .grid
            .map(|extent| u32::try_from(extent).unwrap_or(u32::MAX))
            .into();
        let block = sizes
            .block
            .map(|extent| u32::try_from(extent).unwrap_or(u32::MAX))
            .into();
        let shared = u32::try_from(sizes.shared).unwrap_or(u32::MAX);
        let launch = if sizes.cooperative {
            result::launch_cooperative_kernel
        } else {
            result::launch_kernel
        };
        // SAFETY: the addresses are those of the packed arguments, which the driver copies before it returns; what the
        // kernel does with the memory that they name is the business of who compiled it.
        let launched =
            unsafe { launch(function, grid, block, shared, queue(stream), &mut addresses) };
        launched.map_err(|error| {
            let code = error.0;
            let meaning = error
                .error_name()
                .map(|name| name.to_string_lossy().into_owned())
                .unwrap_or_default();
            let call = format!(
                "CUDALaunch Error: `{}` grid={grid:?}, block={block:?}, shared={shared}",
                kernel.name
            );
            Error::driver("cuda", call, code as i64, meaning)
        })
    }
}

impl Drop for OnDevice {
    fn drop(&mut self) {
        // At the end of the process the driver may be gone; no caller is left to report it to.
        if cuda().inner.enter(self.id).is_ok() {
            // SAFETY: ours, and none of its functions is in use any more.
            let _ = unsafe { result::module::unload(self.module) };
        }
    }
}
