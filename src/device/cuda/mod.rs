//! CUDA, through the driver that is found when the first question comes. No toolkit is needed, here or at build time.
//!
//! The binding panics where the driver library is missing, so nothing of it is touched before `Inner::devices` has seen
//! the library. Every device is used through its primary context, as the CUDA runtime does.

mod program;
mod timer;

pub(crate) use program::CudaCode;
pub(crate) use timer::CudaTimer;

use crate::device::error::refuse;
use crate::device::pool::{SpaceSource, WorkspacePools};
use crate::device::stream::set_current_device;
use crate::device::{
    Attribute, Copy, DEV_12, DEV_40, DEV_41, DEV_42, Device, DeviceApi, Dtype, Error, Result,
    Space, Stream, Value,
};
use crate::rule::Kind;
use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys::{self, CUdevice_attribute_enum as Ask};
use std::sync::{Arc, OnceLock};

/// The CUDA devices of this process, in the order of the driver.
pub struct Cuda {
    inner: Arc<Inner>,
    pools: WorkspacePools,
}

/// The one CUDA API of this process. Nothing is loaded by asking for it.
pub fn cuda() -> &'static Cuda {
    static CUDA: OnceLock<Cuda> = OnceLock::new();
    CUDA.get_or_init(|| {
        let inner = Arc::new(Inner {
            devices: OnceLock::new(),
        });
        Cuda {
            pools: WorkspacePools::new(inner.clone()),
            inner,
        }
    })
}

struct Inner {
    devices: OnceLock<std::result::Result<Vec<Opened>, Error>>,
}

/// A device and its primary context.
struct Opened {
    device: sys::CUdevice,
    context: sys::CUcontext,
}

// SAFETY: a context of the driver may be used from any thread that makes it current, as `enter` does.
unsafe impl Send for Opened {}
// SAFETY: a context of the driver may be used from any thread that makes it current, as `enter` does.
unsafe impl Sync for Opened {}

/// `result`, or an error that names the call.
fn checked<T>(call: &str, result: std::result::Result<T, DriverError>) -> Result<T> {
    result.map_err(|error| {
        let code = error.0;
        let meaning = error
            .error_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();
        Error::driver("cuda", call, code as i64, meaning)
    })
}

impl Inner {
    fn devices(&self) -> Result<&[Opened]> {
        let devices = self.devices.get_or_init(|| {
            // SAFETY: looks for the library, and runs its initialisers if it is there.
            if !unsafe { sys::is_culib_present() } {
                return Err(Error::Absent(
                    "no CUDA here: the driver library (libcuda.so.1) was not found".into(),
                ));
            }
            let absent = |what: &str, DriverError(code): DriverError| {
                Error::Absent(format!(
                    "the CUDA driver is here, but no device: {what} gave {code:?}"
                ))
            };
            result::init().map_err(|code| absent("cuInit", code))?;
            let count =
                result::device::get_count().map_err(|code| absent("cuDeviceGetCount", code))?;
            if count == 0 {
                return Err(Error::Absent(
                    "the CUDA driver is here, but no device".into(),
                ));
            }
            (0..count).map(open).collect()
        });
        devices.as_deref().map_err(Clone::clone)
    }

    /// Device `id`, its context current on this thread.
    fn enter(&self, id: i32) -> Result<&Opened> {
        let devices = self.devices()?;
        let Some(opened) = usize::try_from(id).ok().and_then(|id| devices.get(id)) else {
            return refuse(
                DEV_42,
                Kind::Missing,
                format!("Invalid device id {id}: {} are here", devices.len()),
            );
        };
        // SAFETY: `open` retained the context, which is never released.
        let entered = unsafe { result::ctx::set_current(opened.context) };
        checked("cuCtxSetCurrent", entered)?;
        Ok(opened)
    }
}

fn open(ordinal: i32) -> Result<Opened> {
    let device = checked("cuDeviceGet", result::device::get(ordinal))?;
    // SAFETY: the driver just gave this device. The context is kept for ever.
    let context = unsafe { result::primary_ctx::retain(device) };
    let context = checked("cuDevicePrimaryCtxRetain", context)?;
    Ok(Opened { device, context })
}

fn address(space: Space, offset: usize) -> sys::CUdeviceptr {
    (space.address() as sys::CUdeviceptr).wrapping_add(offset as sys::CUdeviceptr)
}

fn queue(stream: Stream) -> sys::CUstream {
    stream.handle().cast()
}

impl SpaceSource for Inner {
    fn alloc(&self, device: Device, nbytes: usize, alignment: usize, _: Dtype) -> Result<Space> {
        // What the driver gives is aligned to 256 bytes; more cannot be had.
        if alignment == 0 || !256usize.is_multiple_of(alignment) {
            return refuse(
                DEV_12,
                Kind::Unsupported,
                format!("CUDA space is aligned at 256 bytes, not at {alignment}"),
            );
        }
        self.enter(device.id)?;
        // SAFETY: a context is current.
        let given = unsafe { result::malloc_sync(nbytes.max(1)) };
        let data = given.map_err(|DriverError(code)| match code {
            sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY => Error::OutOfMemory {
                nbytes,
                by: "cuMemAlloc".into(),
            },
            other => Error::driver("cuda", "cuMemAlloc", other as i64, format!("{other:?}")),
        })?;
        Ok(Space(std::ptr::without_provenance_mut(data as usize)))
    }

    unsafe fn free(&self, device: Device, space: Space) -> Result<()> {
        self.enter(device.id)?;
        // SAFETY: `space` came from `alloc`, was not freed, and it is not used afterwards; the call waits for work that is
        // queued (DEV-46).
        checked("cuMemFree", unsafe { result::free_sync(address(space, 0)) })
    }
}

impl Cuda {
    fn ask(&self, opened: &Opened, question: Ask) -> Option<i64> {
        // SAFETY: the device came from the driver.
        let answer = unsafe { result::device::get_attribute(opened.device, question) };
        answer.ok().map(i64::from).filter(|answer| *answer > 0)
    }
}

impl DeviceApi for Cuda {
    fn set_device(&self, device: Device) -> Result<()> {
        self.inner.enter(device.id)?;
        set_current_device(Device::cuda(device.id));
        Ok(())
    }

    fn attribute(&self, device: Device, attribute: Attribute) -> Result<Value> {
        if attribute == Attribute::Exist {
            return Ok(Value::Int(self.inner.enter(device.id).is_ok().into()));
        }
        let opened = self.inner.enter(device.id)?;
        let number = |question| self.ask(opened, question).map_or(Value::None, Value::Int);
        Ok(match attribute {
            Attribute::MaxThreadsPerBlock => number(Ask::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK),
            Attribute::WarpSize => number(Ask::CU_DEVICE_ATTRIBUTE_WARP_SIZE),
            Attribute::MaxSharedMemoryPerBlock => {
                number(Ask::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK)
            }
            Attribute::ComputeVersion => {
                let major = self.ask(opened, Ask::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
                // A minor version may be zero, which is no answer elsewhere.
                let minor = self
                    .ask(opened, Ask::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)
                    .unwrap_or(0);
                major.map_or(Value::None, |major| Value::Text(format!("{major}.{minor}")))
            }
            Attribute::DeviceName => {
                let name = checked("cuDeviceGetName", result::device::get_name(opened.device))?;
                Value::Text(name)
            }
            Attribute::MaxClockRate => number(Ask::CU_DEVICE_ATTRIBUTE_CLOCK_RATE),
            Attribute::MultiProcessorCount => number(Ask::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
            Attribute::MaxThreadDimensions => {
                let axes = [
                    Ask::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X,
                    Ask::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y,
                    Ask::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z,
                ];
                match axes.map(|axis| self.ask(opened, axis)) {
                    [Some(x), Some(y), Some(z)] => Value::Text(format!("[{x}, {y}, {z}]")),
                    _ => Value::None,
                }
            }
            Attribute::MaxRegistersPerBlock => {
                number(Ask::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK)
            }
            Attribute::ApiVersion => {
                let mut version = 0;
                // SAFETY: `version` is a place for the answer.
                let given = unsafe { sys::cuDriverGetVersion(&raw mut version) }.result();
                checked("cuDriverGetVersion", given)?;
                Value::Int(version.into())
            }
            Attribute::L2CacheSizeBytes => number(Ask::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE),
            Attribute::TotalGlobalMemory => {
                // SAFETY: the device came from the driver.
                let total = unsafe { result::device::total_mem(opened.device) };
                Value::int(checked("cuDeviceTotalMem", total)?)?
            }
            Attribute::AvailableGlobalMemory => {
                Value::int(checked("cuMemGetInfo", result::mem_get_info())?.0)?
            }
            _ => Value::None,
        })
    }

    fn alloc(&self, device: Device, nbytes: usize, alignment: usize, hint: Dtype) -> Result<Space> {
        self.inner.alloc(device, nbytes, alignment, hint)
    }

    unsafe fn free(&self, device: Device, space: Space) -> Result<()> {
        // SAFETY: `space` came from `alloc`, was not freed, and it is not used afterwards.
        unsafe { self.inner.free(device, space) }
    }

    unsafe fn copy(&self, copy: &Copy, stream: Stream) -> Result<()> {
        if copy.nbytes == 0 {
            return Ok(());
        }
        let stream = queue(stream);
        let (from, to, nbytes) = (
            address(copy.from, copy.from_offset),
            address(copy.to, copy.to_offset),
            copy.nbytes,
        );
        match (copy.from_device.is_host(), copy.to_device.is_host()) {
            (true, true) => refuse(
                DEV_41,
                Kind::Type,
                "a copy between two places of the host was given to CUDA",
            ),
            (true, false) => {
                self.inner.enter(copy.to_device.id)?;
                let from = copy.from.0.wrapping_byte_add(copy.from_offset);
                // SAFETY: both spaces hold the bytes, and the side of the host stays until a sync.
                checked(
                    "cuMemcpyHtoDAsync",
                    unsafe { sys::cuMemcpyHtoDAsync_v2(to, from, nbytes, stream) }.result(),
                )
            }
            (false, true) => {
                self.inner.enter(copy.from_device.id)?;
                let to = copy.to.0.wrapping_byte_add(copy.to_offset);
                // SAFETY: both spaces hold the bytes, and the side of the host stays until a sync.
                checked(
                    "cuMemcpyDtoHAsync",
                    unsafe { sys::cuMemcpyDtoHAsync_v2(to, from, nbytes, stream) }.result(),
                )
            }
            (false, false) if copy.from_device.id == copy.to_device.id => {
                self.inner.enter(copy.from_device.id)?;
                let bytes = nbytes as sys::CUdeviceptr;
                if from < to.wrapping_add(bytes) && to < from.wrapping_add(bytes) {
                    return refuse(
                        DEV_40,
                        Kind::Unsupported,
                        format!("{nbytes} bytes from {from:#x} to {to:#x} overlap"),
                    );
                }
                // SAFETY: both spaces hold the bytes, which do not overlap, as checked above.
                checked(
                    "cuMemcpyDtoDAsync",
                    unsafe { sys::cuMemcpyDtoDAsync_v2(to, from, nbytes, stream) }.result(),
                )
            }
            (false, false) => {
                let target = self.inner.enter(copy.to_device.id)?.context;
                let source = self.inner.enter(copy.from_device.id)?.context;
                // SAFETY: both spaces hold the bytes; both contexts live as long as the process.
                let done =
                    unsafe { sys::cuMemcpyPeerAsync(to, target, from, source, nbytes, stream) };
                checked("cuMemcpyPeerAsync", done.result())
            }
        }
    }

    fn sync(&self, device: Device, stream: Stream) -> Result<()> {
        self.inner.enter(device.id)?;
        let queue = stream.on(device)?.cast();
        // SAFETY: a stream of CUDA, as just checked, that is not freed (`Stream::from_handle`).
        let synced = unsafe { result::stream::synchronize(queue) };
        checked("cuStreamSynchronize", synced)
    }

    fn create_stream(&self, device: Device) -> Result<Stream> {
        self.inner.enter(device.id)?;
        let made = checked(
            "cuStreamCreate",
            result::stream::create(result::stream::StreamKind::NonBlocking),
        )?;
        // SAFETY: a stream of CUDA; who frees it answers for its end.
        Ok(unsafe { Stream::from_handle(device, made.cast()) })
    }

    unsafe fn free_stream(&self, device: Device, stream: Stream) -> Result<()> {
        self.inner.enter(device.id)?;
        let queue = stream.on(device)?.cast();
        // SAFETY: the stream was made here, is not freed yet, and not used afterwards.
        checked("cuStreamDestroy", unsafe { result::stream::destroy(queue) })
    }

    fn sync_streams(&self, device: Device, before: Stream, after: Stream) -> Result<()> {
        self.inner.enter(device.id)?;
        let (before, after) = (before.on(device)?.cast(), after.on(device)?.cast());
        let event = result::event::create(sys::CUevent_flags::CU_EVENT_DISABLE_TIMING);
        let event = checked("cuEventCreate", event)?;
        // SAFETY: the event was just made; a stream of CUDA, as checked, that is not freed (`Stream::from_handle`).
        let recorded = unsafe { result::event::record(event, before) };
        let flags = sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
        let waits = recorded.and_then(|()| {
            // SAFETY: the event was just made; a stream of CUDA, as checked, that is not freed (`Stream::from_handle`).
            unsafe { result::stream::wait_event(after, event, flags) }
        });
        // SAFETY: the event is ours alone; one that is destroyed still ends the waits on it.
        let _ = unsafe { result::event::destroy(event) };
        checked("cuStreamWaitEvent", waits)
    }

    fn alloc_workspace(&self, device: Device, nbytes: usize, _: Dtype) -> Result<Space> {
        self.pools.alloc(device, nbytes)
    }

    unsafe fn free_workspace(&self, device: Device, space: Space) -> Result<()> {
        self.pools.free(device, space)
    }

    fn pools_workspace(&self) -> bool {
        true
    }

    fn supports_pointer_arithmetic(&self) -> bool {
        true
    }
}
