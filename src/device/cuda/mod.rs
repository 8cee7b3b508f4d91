//! CUDA, through the driver library, which the first call opens. No toolkit is needed at build time or at run time.
//!
//! The binding panics if the driver library is missing. The binding is therefore not used before `Driver::open_all` has found the
//! library. Every device is used through its primary context, as the CUDA runtime does.

mod program;

use crate::device::backend::events::{self, EventDriver};
use crate::device::backend::spaces::Addresses;
use crate::device::backend::{Backend, Driver, SpacePart};
use crate::device::error::{missing_driver, no_driver, out_of_memory};
use crate::device::{Attribute, AttributeValue, Device, DeviceApi, Result};
use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys::{self, CUdevice_attribute_enum as Question};
use std::ffi::c_void;
use std::sync::LazyLock;

/// Returns the one CUDA API of this process. This loads no library.
pub fn cuda() -> &'static dyn DeviceApi {
    Cuda::backend()
}

/// The CUDA driver.
pub(crate) struct Cuda;

/// A device and its primary context.
pub(crate) struct CudaDevice {
    /// The driver's handle of the device.
    device: sys::CUdevice,
    /// The primary context. It is retained for the life of the process and shared with other libraries of the process.
    context: sys::CUcontext,
}

// SAFETY: a context of the driver may be used from any thread that makes it current, as `enter` does.
unsafe impl Send for CudaDevice {}
// SAFETY: a context of the driver may be used from any thread that makes it current, as `enter` does.
unsafe impl Sync for CudaDevice {}

impl CudaDevice {
    /// Opens the device of this number in the driver's order, with its primary context.
    fn open(ordinal: i32) -> Result<CudaDevice> {
        let device = Cuda::checked("cuDeviceGet", result::device::get(ordinal))?;
        // SAFETY: the driver just returned this device. The context is kept forever.
        let context = unsafe { result::primary_ctx::retain(device) };
        let context = Cuda::checked("cuDevicePrimaryCtxRetain", context)?;
        Ok(CudaDevice { device, context })
    }

    /// Returns a number from the driver. A number that is not positive counts as no answer.
    fn number(&self, question: Question) -> Option<i64> {
        // SAFETY: the device came from the driver.
        let answer = unsafe { result::device::get_attribute(self.device, question) };
        answer.ok().map(i64::from).filter(|answer| *answer > 0)
    }
}

/// Returns the driver's address of the first byte.
fn start(part: &SpacePart<Cuda>) -> sys::CUdeviceptr {
    part.memory.wrapping_add(part.offset) as sys::CUdeviceptr
}

impl Driver for Cuda {
    type Opened = CudaDevice;
    type Memory = usize;
    type Spaces = Addresses;
    type Failure = DriverError;

    const NAME: &'static str = "CUDA";
    const KEY: &'static str = "cuda";
    const DEVICE: Device = Device::cuda(0);
    const HAS_STREAMS: bool = true;

    fn backend() -> &'static Backend<Cuda> {
        static CUDA: LazyLock<Backend<Cuda>> = LazyLock::new(Backend::new);
        &CUDA
    }

    fn explain(failure: DriverError) -> (i64, String) {
        let meaning = failure.error_name();
        let meaning = meaning.map(|name| name.to_string_lossy().into_owned());
        (failure.0 as i64, meaning.unwrap_or_default())
    }

    fn open_all() -> Result<Vec<CudaDevice>> {
        // SAFETY: looks for the library, and runs its initialisers if it is there.
        if !unsafe { sys::is_culib_present() } {
            return Err(no_driver(
                "CUDA",
                "the driver library (libcuda.so.1) was not found",
            ));
        }
        let no_device = |call: &str, DriverError(code): DriverError| {
            missing_driver(format!(
                "CUDA is here, but no device: {call} returned {code:?}"
            ))
        };
        // With a driver but without a card, one of these calls fails. The result is a missing device and not a failed call (DEV-07).
        result::init().map_err(|code| no_device("cuInit", code))?;
        let count = result::device::get_count();
        let count = count.map_err(|code| no_device("cuDeviceGetCount", code))?;
        (0..count).map(CudaDevice::open).collect()
    }

    fn enter(on: &CudaDevice) -> Result<()> {
        // SAFETY: `open` retained the context, which is never released.
        let entered = unsafe { result::ctx::set_current(on.context) };
        Cuda::checked("cuCtxSetCurrent", entered)
    }

    fn attribute(on: &CudaDevice, attribute: Attribute) -> Result<AttributeValue> {
        let number = |question| AttributeValue::number_or_none(on.number(question));
        Ok(match attribute {
            Attribute::MaxThreadsPerBlock => {
                number(Question::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)
            }
            Attribute::WarpSize => number(Question::CU_DEVICE_ATTRIBUTE_WARP_SIZE),
            Attribute::MaxSharedMemoryPerBlock => {
                number(Question::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK)
            }
            Attribute::ComputeVersion => AttributeValue::version(
                on.number(Question::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
                on.number(Question::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR),
            ),
            Attribute::DeviceName => AttributeValue::Text(Cuda::checked(
                "cuDeviceGetName",
                result::device::get_name(on.device),
            )?),
            Attribute::MaxClockRate => number(Question::CU_DEVICE_ATTRIBUTE_CLOCK_RATE),
            Attribute::MultiProcessorCount => {
                number(Question::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
            }
            Attribute::MaxThreadDimensions => AttributeValue::dimensions([
                on.number(Question::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X),
                on.number(Question::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y),
                on.number(Question::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z),
            ]),
            Attribute::MaxRegistersPerBlock => {
                number(Question::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK)
            }
            // DEV-08: upstream answers with the constant of its headers. This crate has no headers and answers with the driver's
            // version, the newest that code may be compiled for.
            Attribute::ApiVersion => {
                let mut version = 0;
                // SAFETY: `version` is an out pointer for the answer.
                let code = unsafe { sys::cuDriverGetVersion(&raw mut version) }.result();
                Cuda::checked("cuDriverGetVersion", code)?;
                AttributeValue::Int(version.into())
            }
            Attribute::L2CacheSizeBytes => number(Question::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE),
            Attribute::TotalGlobalMemory => {
                // SAFETY: the device came from the driver.
                let total = unsafe { result::device::total_mem(on.device) };
                AttributeValue::int(Cuda::checked("cuDeviceTotalMem", total)?)?
            }
            Attribute::AvailableGlobalMemory => {
                let (free, _) = Cuda::checked("cuMemGetInfo", result::mem_get_info())?;
                AttributeValue::int(free)?
            }
            // DEV-08: gcn_arch belongs to AMD; driver_version and image_pitch_alignment are null for CUDA in every release.
            _ => AttributeValue::None,
        })
    }

    fn alloc(_: &CudaDevice, nbytes: usize) -> Result<usize> {
        // SAFETY: a context is current.
        let data = unsafe { result::malloc_sync(nbytes.max(1)) };
        // Only this failure becomes a MemoryError (DEV-07).
        let data = data.map_err(|failure| match failure.0 {
            sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY => out_of_memory(nbytes, "cuMemAlloc"),
            _ => Cuda::failure("cuMemAlloc", failure),
        })?;
        Ok(data as usize)
    }

    unsafe fn free(_: &CudaDevice, memory: usize) -> Result<()> {
        // SAFETY: memory of `alloc`, freed once (`Driver::free`); the call waits for work that is queued (DEV-46).
        let freed = unsafe { result::free_sync(memory as sys::CUdeviceptr) };
        Cuda::checked("cuMemFree", freed)
    }

    unsafe fn upload(
        _: &CudaDevice,
        from: *const c_void,
        to: SpacePart<Cuda>,
        stream: *mut c_void,
    ) -> Result<()> {
        // SAFETY: both sides hold the bytes, and the host side stays until a sync (`Driver::upload`).
        let queued =
            unsafe { sys::cuMemcpyHtoDAsync_v2(start(&to), from, to.nbytes, stream.cast()) };
        Cuda::checked("cuMemcpyHtoDAsync", queued.result())
    }

    unsafe fn download(
        _: &CudaDevice,
        from: SpacePart<Cuda>,
        to: *mut c_void,
        stream: *mut c_void,
    ) -> Result<()> {
        // SAFETY: both sides hold the bytes, and the host side stays until a sync (`Driver::download`).
        let queued =
            unsafe { sys::cuMemcpyDtoHAsync_v2(to, start(&from), from.nbytes, stream.cast()) };
        Cuda::checked("cuMemcpyDtoHAsync", queued.result())
    }

    unsafe fn copy_within_device(
        _: &CudaDevice,
        from: SpacePart<Cuda>,
        to: SpacePart<Cuda>,
        stream: *mut c_void,
    ) -> Result<()> {
        // SAFETY: both spaces hold the bytes, which do not overlap (`Driver::within`).
        let queued = unsafe {
            sys::cuMemcpyDtoDAsync_v2(start(&to), start(&from), to.nbytes, stream.cast())
        };
        Cuda::checked("cuMemcpyDtoDAsync", queued.result())
    }

    unsafe fn copy_across_devices(
        (source, from): (&CudaDevice, SpacePart<Cuda>),
        (target, to): (&CudaDevice, SpacePart<Cuda>),
        stream: *mut c_void,
    ) -> Result<()> {
        // Both contexts are named, so that the driver can connect the devices or copy through the host itself.
        let (nbytes, stream) = (to.nbytes, stream.cast());
        let (to, from) = (start(&to), start(&from));
        let (into, out_of) = (target.context, source.context);
        // SAFETY: both spaces hold the bytes (`Driver::across`); both contexts live as long as the process.
        let queued = unsafe { sys::cuMemcpyPeerAsync(to, into, from, out_of, nbytes, stream) };
        Cuda::checked("cuMemcpyPeerAsync", queued.result())
    }

    unsafe fn sync(_: &CudaDevice, stream: *mut c_void) -> Result<()> {
        // SAFETY: null, or a stream of `create_stream` that is not freed (`Driver::sync`).
        let synced = unsafe { result::stream::synchronize(stream.cast()) };
        Cuda::checked("cuStreamSynchronize", synced)
    }

    fn create_stream(_: &CudaDevice) -> Result<*mut c_void> {
        // Without this flag the default stream of CUDA waits for every other stream.
        let made = result::stream::create(result::stream::StreamKind::NonBlocking);
        Ok(Cuda::checked("cuStreamCreate", made)?.cast())
    }

    unsafe fn free_stream(_: &CudaDevice, stream: *mut c_void) -> Result<()> {
        // SAFETY: a stream of `create_stream`, freed once (`Driver::free_stream`).
        let freed = unsafe { result::stream::destroy(stream.cast()) };
        Cuda::checked("cuStreamDestroy", freed)
    }

    unsafe fn order(on: &CudaDevice, before: *mut c_void, after: *mut c_void) -> Result<()> {
        // SAFETY: the caller keeps the requirements of this function, which are the same.
        unsafe { events::order::<Cuda>(on, before, after) }
    }
}

impl EventDriver for Cuda {
    type Event = sys::CUevent;

    fn create_event(_: &CudaDevice, timing: bool) -> Result<sys::CUevent> {
        let flags = if timing {
            sys::CUevent_flags::CU_EVENT_DEFAULT
        } else {
            sys::CUevent_flags::CU_EVENT_DISABLE_TIMING
        };
        Cuda::checked("cuEventCreate", result::event::create(flags))
    }

    unsafe fn record(_: &CudaDevice, event: sys::CUevent, stream: *mut c_void) -> Result<()> {
        // SAFETY: the event is alive, and the stream one of CUDA that is not freed (`EventDriver::record`).
        let recorded = unsafe { result::event::record(event, stream.cast()) };
        Cuda::checked("cuEventRecord", recorded)
    }

    unsafe fn wait(_: &CudaDevice, stream: *mut c_void, event: sys::CUevent) -> Result<()> {
        let flags = sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
        // SAFETY: the event is alive, and the stream one of CUDA that is not freed (`EventDriver::wait`).
        let waits = unsafe { result::stream::wait_event(stream.cast(), event, flags) };
        Cuda::checked("cuStreamWaitEvent", waits)
    }

    unsafe fn elapsed(_: &CudaDevice, start: sys::CUevent, stop: sys::CUevent) -> Result<f32> {
        // SAFETY: the event is alive (`EventDriver::elapsed`).
        let waited = unsafe { result::event::synchronize(stop) };
        Cuda::checked("cuEventSynchronize", waited)?;
        // SAFETY: both events are alive (`EventDriver::elapsed`).
        let milliseconds = unsafe { result::event::elapsed(start, stop) };
        Cuda::checked("cuEventElapsedTime", milliseconds)
    }

    unsafe fn destroy(_: &CudaDevice, event: sys::CUevent) {
        // SAFETY: the event is alive, and no longer used (`EventDriver::destroy`). A failure changes nothing.
        let _ = unsafe { result::event::destroy(event) };
    }
}
