//! ROCm (device type 10, `rocm`; kinds `hip` and `hsaco`), through the HIP driver library, which the first call looks for. No
//! toolkit is needed at build time or at run time: `library` declares the functions by hand.

mod library;
mod program;

use crate::device::backend::events::{self, EventDriver};
use crate::device::backend::spaces::Addresses;
use crate::device::backend::{Backend, Driver, SpacePart};
use crate::device::error::{missing_driver, out_of_memory};
use crate::device::{Attribute, AttributeValue, Device, DeviceApi, Result};
use library::{HipCode, HipLibrary, HipQuestion, SUCCESS};
use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::LazyLock;

/// Returns the one ROCm API of this process, with the devices in the driver's order. This loads no library.
pub fn hip() -> &'static dyn DeviceApi {
    Hip::backend()
}

/// The HIP driver.
pub(crate) struct Hip;

/// A device, which the driver identifies by a number.
pub(crate) struct HipDevice {
    /// The number of the device in the driver's order.
    id: c_int,
    /// The functions of the driver, loaded for the life of the process.
    library: &'static HipLibrary,
}

/// The error code of a failed driver call, with its name.
pub(crate) struct HipFailure {
    /// `hipError_t`.
    code: HipCode,
    /// The name of the code, such as `hipErrorNoDevice`; empty if the driver has none.
    meaning: String,
}

impl HipLibrary {
    /// Returns `Ok` for `hipSuccess`, otherwise the failure with its name.
    fn ok(&self, code: HipCode) -> std::result::Result<(), HipFailure> {
        if code == SUCCESS {
            return Ok(());
        }
        let meaning = self.meaning(code);
        Err(HipFailure { code, meaning })
    }
}

impl HipDevice {
    /// Returns the result of [`HipLibrary::ok`], with an error that names the call.
    fn checked(&self, call: &str, code: HipCode) -> Result<()> {
        Hip::checked(call, self.library.ok(code))
    }

    /// Returns a number from the driver. A number that is not positive counts as no answer.
    fn number(&self, question: HipQuestion) -> Option<i64> {
        let mut answer = 0;
        // SAFETY: `answer` is an out pointer for the answer.
        let code =
            unsafe { (self.library.device_attribute)(&raw mut answer, question as c_int, self.id) };
        (code == SUCCESS && answer > 0).then_some(answer.into())
    }

    /// Queues a copy of `kind`.
    ///
    /// # Safety
    ///
    /// Both sides are valid for the bytes, and a side on the host stays valid until a sync. The stream is as for [`Driver::sync`].
    unsafe fn copy(
        &self,
        to: *mut c_void,
        from: *const c_void,
        nbytes: usize,
        kind: c_int,
        stream: *mut c_void,
    ) -> Result<()> {
        // SAFETY: the caller keeps the requirements of this function, which are the same.
        let code = unsafe { (self.library.copy)(to, from, nbytes, kind, stream) };
        self.checked("hipMemcpyAsync", code)
    }
}

/// Returns the driver's address of the first byte.
fn start(part: &SpacePart<Hip>) -> *mut c_void {
    ptr::without_provenance_mut(part.memory.wrapping_add(part.offset))
}

impl Driver for Hip {
    type Opened = HipDevice;
    type Memory = usize;
    type Spaces = Addresses;
    type Failure = HipFailure;

    const NAME: &'static str = "HIP";
    const KEY: &'static str = "rocm";
    const DEVICE: Device = Device::rocm(0);
    const HAS_STREAMS: bool = true;

    fn backend() -> &'static Backend<Hip> {
        static HIP: LazyLock<Backend<Hip>> = LazyLock::new(Backend::new);
        &HIP
    }

    fn explain(failure: HipFailure) -> (i64, String) {
        (failure.code.into(), failure.meaning)
    }

    fn open_all() -> Result<Vec<HipDevice>> {
        // The library is never unloaded, because threads of the driver may still run its code.
        let library: &'static HipLibrary = Box::leak(Box::new(HipLibrary::load()?));
        let no_device = |call: &str, failure: HipFailure| {
            let HipFailure { code, meaning } = failure;
            missing_driver(format!(
                "HIP is here, but no device: {call} returned {code} ({meaning})"
            ))
        };
        let mut count = 0;
        // SAFETY: `count` is an out pointer for the answer. The count is read first, because `hipInit` without a device returns the
        // code for an invalid one.
        let counted = unsafe { (library.device_count)(&raw mut count) };
        let counted = library.ok(counted);
        counted.map_err(|failure| no_device("hipGetDeviceCount", failure))?;
        // SAFETY: the function only accepts 0, and any thread may call it at any time.
        let started = library.ok(unsafe { (library.init)(0) });
        started.map_err(|failure| no_device("hipInit", failure))?;
        Ok((0..count).map(|id| HipDevice { id, library }).collect())
    }

    fn enter(on: &HipDevice) -> Result<()> {
        // SAFETY: the function accepts any number, and rejects one that is not a device.
        on.checked("hipSetDevice", unsafe { (on.library.set_device)(on.id) })
    }

    fn attribute(on: &HipDevice, attribute: Attribute) -> Result<AttributeValue> {
        let number = |question| AttributeValue::number_or_none(on.number(question));
        Ok(match attribute {
            Attribute::MaxThreadsPerBlock => number(HipQuestion::MaxThreadsPerBlock),
            Attribute::WarpSize => number(HipQuestion::WarpSize),
            Attribute::MaxSharedMemoryPerBlock => number(HipQuestion::MaxSharedMemoryPerBlock),
            Attribute::ComputeVersion => AttributeValue::version(
                on.number(HipQuestion::ComputeCapabilityMajor),
                on.number(HipQuestion::ComputeCapabilityMinor),
            ),
            Attribute::DeviceName => {
                let mut name = [0u8; 256];
                let room = name.len() as c_int;
                // SAFETY: the driver writes at most `room` bytes.
                let code =
                    unsafe { (on.library.device_name)(name.as_mut_ptr().cast(), room, on.id) };
                on.checked("hipDeviceGetName", code)?;
                library::text(&name).map_or(AttributeValue::None, AttributeValue::Text)
            }
            Attribute::MaxClockRate => number(HipQuestion::ClockRate),
            Attribute::MultiProcessorCount => number(HipQuestion::MultiprocessorCount),
            Attribute::MaxThreadDimensions => AttributeValue::dimensions([
                on.number(HipQuestion::MaxBlockDimX),
                on.number(HipQuestion::MaxBlockDimY),
                on.number(HipQuestion::MaxBlockDimZ),
            ]),
            Attribute::MaxRegistersPerBlock => number(HipQuestion::MaxRegistersPerBlock),
            // DEV-08: a text, as since 0.18; it was a number before.
            Attribute::GcnArch => {
                let name = on.library.arch_name(on.id);
                let name = Hip::checked("hipGetDeviceProperties", name)?;
                name.map_or(AttributeValue::None, AttributeValue::Text)
            }
            // DEV-08: upstream answers with the constant of the headers that it was built with. There are no headers here.
            Attribute::ApiVersion => {
                let mut version = 0;
                // SAFETY: `version` is an out pointer for the answer.
                let code = unsafe { (on.library.runtime_version)(&raw mut version) };
                on.checked("hipRuntimeGetVersion", code)?;
                AttributeValue::Int(version.into())
            }
            Attribute::L2CacheSizeBytes => number(HipQuestion::L2CacheSize),
            Attribute::TotalGlobalMemory => {
                let mut total = 0;
                // SAFETY: `total` is an out pointer for the answer.
                let code = unsafe { (on.library.device_memory)(&raw mut total, on.id) };
                on.checked("hipDeviceTotalMem", code)?;
                AttributeValue::int(total)?
            }
            // DEV-08: driver_version and available_global_memory are null in every release.
            _ => AttributeValue::None,
        })
    }

    fn alloc(on: &HipDevice, nbytes: usize) -> Result<usize> {
        // For 0 bytes `hipMalloc` returns null, but an empty space is also a space. At least one byte is therefore allocated.
        let mut memory = ptr::null_mut();
        // SAFETY: `memory` is an out pointer for the address, and the device is this thread's (`Driver::enter`).
        let code = unsafe { (on.library.malloc)(&raw mut memory, nbytes.max(1)) };
        if code == library::OUT_OF_MEMORY {
            return Err(out_of_memory(nbytes, "hipMalloc"));
        }
        on.checked("hipMalloc", code)?;
        Ok(memory.addr())
    }

    unsafe fn free(on: &HipDevice, memory: usize) -> Result<()> {
        // SAFETY: memory of `alloc`, freed once (`Driver::free`); the call waits for work that is queued (DEV-46).
        let code = unsafe { (on.library.free)(ptr::without_provenance_mut(memory)) };
        on.checked("hipFree", code)
    }

    unsafe fn upload(
        on: &HipDevice,
        from: *const c_void,
        to: SpacePart<Hip>,
        stream: *mut c_void,
    ) -> Result<()> {
        let kind = library::HOST_TO_DEVICE;
        // SAFETY: both sides hold the bytes, and the host side stays until a sync (`Driver::upload`).
        unsafe { on.copy(start(&to), from, to.nbytes, kind, stream) }
    }

    unsafe fn download(
        on: &HipDevice,
        from: SpacePart<Hip>,
        to: *mut c_void,
        stream: *mut c_void,
    ) -> Result<()> {
        let kind = library::DEVICE_TO_HOST;
        // SAFETY: both sides hold the bytes, and the host side stays until a sync (`Driver::download`).
        unsafe { on.copy(to, start(&from), from.nbytes, kind, stream) }
    }

    unsafe fn copy_within_device(
        on: &HipDevice,
        from: SpacePart<Hip>,
        to: SpacePart<Hip>,
        stream: *mut c_void,
    ) -> Result<()> {
        let kind = library::DEVICE_TO_DEVICE;
        // SAFETY: both spaces hold the bytes, which do not overlap (`Driver::within`).
        unsafe { on.copy(start(&to), start(&from), to.nbytes, kind, stream) }
    }

    unsafe fn copy_across_devices(
        (source, from): (&HipDevice, SpacePart<Hip>),
        (target, to): (&HipDevice, SpacePart<Hip>),
        stream: *mut c_void,
    ) -> Result<()> {
        // Both devices are named, so that the driver can connect them or copy through the host itself.
        let (into, out_of, nbytes) = (target.id, source.id, to.nbytes);
        let (to, from) = (start(&to), start(&from));
        // SAFETY: both spaces hold the bytes (`Driver::across`).
        let code = unsafe { (source.library.copy_peer)(to, into, from, out_of, nbytes, stream) };
        source.checked("hipMemcpyPeerAsync", code)
    }

    unsafe fn sync(on: &HipDevice, stream: *mut c_void) -> Result<()> {
        // SAFETY: null, or a stream of `create_stream` that is not freed (`Driver::sync`).
        let code = unsafe { (on.library.sync_stream)(stream) };
        on.checked("hipStreamSynchronize", code)
    }

    fn create_stream(on: &HipDevice) -> Result<*mut c_void> {
        let mut stream = ptr::null_mut();
        // SAFETY: `stream` is an out pointer for the handle, and the device is this thread's (`Driver::enter`).
        let code =
            unsafe { (on.library.create_stream)(&raw mut stream, library::STREAM_NON_BLOCKING) };
        on.checked("hipStreamCreateWithFlags", code)?;
        Ok(stream)
    }

    unsafe fn free_stream(on: &HipDevice, stream: *mut c_void) -> Result<()> {
        // SAFETY: a stream of `create_stream`, freed once (`Driver::free_stream`).
        let code = unsafe { (on.library.destroy_stream)(stream) };
        on.checked("hipStreamDestroy", code)
    }

    unsafe fn order(on: &HipDevice, before: *mut c_void, after: *mut c_void) -> Result<()> {
        // SAFETY: the caller keeps the requirements of this function, which are the same.
        unsafe { events::order::<Hip>(on, before, after) }
    }
}

impl EventDriver for Hip {
    type Event = *mut c_void;

    fn create_event(on: &HipDevice, timing: bool) -> Result<*mut c_void> {
        let mut event = ptr::null_mut();
        let flags = if timing {
            library::EVENT_DEFAULT
        } else {
            library::EVENT_DISABLE_TIMING
        };
        // SAFETY: `event` is an out pointer for the handle, and the device is this thread's (`Driver::enter`).
        let code = unsafe { (on.library.create_event)(&raw mut event, flags) };
        on.checked("hipEventCreateWithFlags", code)?;
        Ok(event)
    }

    unsafe fn record(on: &HipDevice, event: *mut c_void, stream: *mut c_void) -> Result<()> {
        // SAFETY: the event is alive, and the stream one of HIP that is not freed (`EventDriver::record`).
        let code = unsafe { (on.library.record_event)(event, stream) };
        on.checked("hipEventRecord", code)
    }

    unsafe fn wait(on: &HipDevice, stream: *mut c_void, event: *mut c_void) -> Result<()> {
        // SAFETY: the event is alive, and the stream one of HIP that is not freed (`EventDriver::wait`).
        let code = unsafe { (on.library.wait_event)(stream, event, 0) };
        on.checked("hipStreamWaitEvent", code)
    }

    unsafe fn elapsed(on: &HipDevice, start: *mut c_void, stop: *mut c_void) -> Result<f32> {
        // SAFETY: the event is alive (`EventDriver::elapsed`).
        let code = unsafe { (on.library.sync_event)(stop) };
        on.checked("hipEventSynchronize", code)?;
        let mut milliseconds = 0.0;
        // SAFETY: both events are alive (`EventDriver::elapsed`), and there is an out pointer for the answer.
        let code = unsafe { (on.library.elapsed)(&raw mut milliseconds, start, stop) };
        on.checked("hipEventElapsedTime", code)?;
        Ok(milliseconds)
    }

    unsafe fn destroy(on: &HipDevice, event: *mut c_void) {
        // SAFETY: the event is alive, and no longer used (`EventDriver::destroy`). A failure changes nothing.
        let _ = unsafe { (on.library.destroy_event)(event) };
    }
}
