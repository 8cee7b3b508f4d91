//! Kernels of CUDA modules.

use super::{Cuda, CudaDevice};
use crate::device::backend::Driver;
use crate::device::backend::code::{FormattedCode, KernelDriver, c_name};
use crate::device::error::{driver_error, missing_driver, reject};
use crate::device::launch::{Packed, WorkSizes};
use crate::device::module::KernelDescription;
use crate::device::{DEV_47, DEV_54, DEV_59, Result, Stream};
use crate::rule::Kind;
use cudarc::driver::{result, sys};
use std::ffi::CStr;
use std::sync::{Arc, Mutex, PoisonError};

/// A module on one device.
pub(crate) struct CudaModule(sys::CUmodule);

// SAFETY: modules of the driver may be used from any thread.
unsafe impl Send for CudaModule {}
// SAFETY: modules of the driver may be used from any thread.
unsafe impl Sync for CudaModule {}

/// A function of a module, and the dynamic shared memory that it may use.
pub(crate) struct CudaFunction {
    /// The driver's handle of the function. Its module keeps it alive.
    function: sys::CUfunction,
    /// The bytes of dynamic shared memory that the driver allows the function so far (DEV-48).
    allowed: Mutex<usize>,
}

// SAFETY: functions of the driver may be used from any thread.
unsafe impl Send for CudaFunction {}
// SAFETY: functions of the driver may be used from any thread.
unsafe impl Sync for CudaFunction {}

/// The variable in which a kernel counts the blocks that arrived at its barrier (DEV-59).
const BARRIER_STATE: &CStr = c"__tvm_global_barrier_state";

/// The bytes of dynamic shared memory that every kernel may use without an attribute.
const FREE_SHARED: usize = 48 << 10;

impl KernelDriver for Cuda {
    type Code = FormattedCode;
    type Program = CudaModule;
    type Kernel = CudaFunction;

    fn load(on: &CudaDevice, code: &FormattedCode) -> Result<CudaModule> {
        let mut image = match code.format.as_str() {
            "ptx" | "cubin" | "fatbin" => code.data.clone(),
            // Upstream leaves source code to a callback of its frontend (`tvm_callback_cuda_compile`), which does not exist here.
            "cuda" | "cu" => compile(&code.data, on.device)?,
            other => {
                return reject(
                    DEV_54,
                    Kind::UnknownKind,
                    format!("CUDA code of format `{other}`"),
                );
            }
        };
        // PTX is a text that ends with a NUL.
        image.push(0);
        // SAFETY: a context is current, and the image is complete and ends with a NUL; the driver validates the image itself.
        let module = unsafe { result::module::load_data(image.as_ptr().cast()) };
        let module = Cuda::checked(format!("cuModuleLoadData ({})", code.format), module)?;
        Ok(CudaModule(module))
    }

    fn kernel(
        _: &CudaDevice,
        program: &CudaModule,
        info: &KernelDescription,
    ) -> Result<CudaFunction> {
        // SAFETY: the module is unloaded after the last launch (`KernelDriver::unload`).
        let found = unsafe { result::module::get_function(program.0, c_name(info)?) };
        let function = Cuda::checked(format!("cuModuleGetFunction `{}`", info.name), found)?;
        Ok(CudaFunction {
            function,
            allowed: Mutex::new(FREE_SHARED),
        })
    }

    unsafe fn launch(
        _: (i32, &CudaDevice),
        kernel: &CudaFunction,
        info: &KernelDescription,
        args: &mut Packed,
        sizes: &WorkSizes,
        stream: Stream,
    ) -> Result<()> {
        // DEV-47: `cuLaunchKernel` does not support clusters; they need the extended launch.
        if sizes.cluster != [1; 3] {
            return reject(
                DEV_47,
                Kind::Unsupported,
                "this backend does not launch clusters of blocks",
            );
        }
        kernel.allow(info, sizes.shared)?;
        let mut addresses = args.addresses();
        let (grid, block) = (sizes.grid_u32(), sizes.block_u32());
        let shared = sizes.shared_u32();
        // A programmatic launch may begin early but need not, so the tag changes nothing here.
        let launch = if sizes.cooperative {
            result::launch_cooperative_kernel
        } else {
            result::launch_kernel
        };
        let (grid, block, queue) = (grid.into(), block.into(), stream.handle().cast());
        // SAFETY: the addresses are those of the packed arguments, which the driver copies before it returns; the kernel is
        // called as it was compiled, with memory that stays (`LoadedCode::launch`).
        let launched =
            unsafe { launch(kernel.function, grid, block, shared, queue, &mut addresses) };
        let call = || {
            format!(
                "CUDALaunch Error: `{}` grid={grid:?}, block={block:?}, shared={shared}",
                info.name
            )
        };
        launched.map_err(|failure| Cuda::failure(call(), failure))
    }

    const HAS_BARRIER: bool = true;

    fn reset_barrier(_: &CudaDevice, program: &CudaModule, stream: Stream) -> Result<()> {
        // SAFETY: the module is unloaded after the last call (`KernelDriver::unload`).
        let found = unsafe { result::module::get_global(program.0, BARRIER_STATE.into()) };
        let call = format!("cuModuleGetGlobal {}", BARRIER_STATE.to_string_lossy());
        let address = match found {
            Ok((address, 4)) => address,
            Ok((_, bytes)) => {
                let message = format!("{call}: the variable has {bytes} bytes, not 4");
                return reject(DEV_59, Kind::Missing, message);
            }
            Err(failure) if failure.0 == sys::CUresult::CUDA_ERROR_NOT_FOUND => {
                let (_, name) = Cuda::explain(failure);
                let message = format!("CUDAError: {call} failed with error: {name}");
                return reject(DEV_59, Kind::Missing, message);
            }
            Err(failure) => return Err(Cuda::failure(call, failure)),
        };
        // DEV-59: upstream writes on the default stream of the driver, and the default stream orders its other streams. It does not
        // order the streams of this crate (see `create_stream`), so the write is queued on the stream of the launch, before the
        // launch.
        // SAFETY: the address is that of a variable of 4 bytes in a loaded module. The stream is this thread's current one, which
        // `DeviceApi::free_stream` may not be called with.
        let queued = unsafe { sys::cuMemsetD32Async(address, 0, 1, stream.handle().cast()) };
        Cuda::checked("cuMemsetD32Async", queued.result())
    }

    fn unload(
        _: &CudaDevice,
        program: &mut CudaModule,
        _: impl Iterator<Item = Arc<CudaFunction>>,
    ) {
        // SAFETY: only this function unloads the module, and none of its functions is still in use (`KernelDriver::unload`).
        let _ = unsafe { result::module::unload(program.0) };
    }
}

impl CudaFunction {
    /// Allows the kernel to use `wanted` bytes of dynamic shared memory (DEV-48).
    fn allow(&self, info: &KernelDescription, wanted: usize) -> Result<()> {
        // The lock is held until the driver has the value, so that another thread's smaller value cannot overwrite a larger one.
        let mut allowed = self.allowed.lock().unwrap_or_else(PoisonError::into_inner);
        if wanted <= *allowed {
            return Ok(());
        }
        let attribute =
            sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        let bytes = i32::try_from(wanted).unwrap_or(i32::MAX);
        // SAFETY: the function is one of a module that is loaded.
        let set =
            unsafe { result::function::set_function_attribute(self.function, attribute, bytes) };
        let name = &info.name;
        let call = format!("cuFuncSetAttribute `{name}`: {wanted} bytes of shared memory");
        Cuda::checked(call, set)?;
        *allowed = wanted;
        Ok(())
    }
}

/// Compiles source code to PTX for the device, with NVRTC if it is installed.
fn compile(source: &[u8], device: sys::CUdevice) -> Result<Vec<u8>> {
    use cudarc::nvrtc::{CompileOptions, compile_ptx_with_opts};
    // SAFETY: looks for the library, and runs its initialisers if it is there.
    if !unsafe { cudarc::nvrtc::sys::is_culib_present() } {
        return Err(missing_driver(
            "the module is CUDA source, and NVRTC, which compiles it, is not here",
        ));
    }
    let Ok(source) = std::str::from_utf8(source) else {
        return reject(DEV_54, Kind::Malformed, "the CUDA source is not UTF-8");
    };
    use sys::CUdevice_attribute_enum as Question;
    let version = |question| {
        // SAFETY: the device came from the driver.
        let answer = unsafe { result::device::get_attribute(device, question) };
        Cuda::checked("cuDeviceGetAttribute", answer)
    };
    let major = version(Question::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
    let minor = version(Question::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
    // Source code from TVM includes headers of the toolkit, such as `cuda_fp16.h`. NVRTC finds them only in named directories.
    let toolkit = ["CUDA_HOME", "CUDA_PATH"]
        .into_iter()
        .filter_map(|name| std::env::var(name).ok());
    let options = CompileOptions {
        options: vec![format!("--gpu-architecture=compute_{major}{minor}")],
        include_paths: toolkit.map(|root| format!("{root}/include")).collect(),
        ..CompileOptions::default()
    };
    // NVRTC takes a C string, which a NUL would end.
    let ptx = compile_ptx_with_opts(source.replace('\0', " "), options);
    let ptx = ptx.map_err(|error| {
        driver_error(Cuda::KEY, "nvrtcCompileProgram", -1, format!("{error:?}"))
    })?;
    Ok(ptx.to_src().into_bytes())
}
