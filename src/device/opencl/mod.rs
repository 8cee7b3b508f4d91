//! OpenCL, through the library that the first call opens.
//!
//! This module uses the raw calls of opencl3 and not its objects. The objects panic when a release fails, and a release fails when
//! a device is lost. Each device has one in-order queue and no other streams, as in every release (DEV-21).

mod program;

use crate::device::backend::spaces::Handles;
use crate::device::backend::{Backend, Driver, SpacePart};
use crate::device::error::{no_driver, out_of_memory};
use crate::device::{Attribute, AttributeValue, Device, DeviceApi, Result};
use opencl3::command_queue::{
    create_command_queue, enqueue_copy_buffer, enqueue_read_buffer, enqueue_write_buffer, finish,
};
use opencl3::context::context::create_context;
use opencl3::device::{
    CL_DEVICE_GLOBAL_MEM_CACHE_SIZE, CL_DEVICE_GLOBAL_MEM_SIZE, CL_DEVICE_IMAGE_PITCH_ALIGNMENT,
    CL_DEVICE_LOCAL_MEM_SIZE, CL_DEVICE_MAX_CLOCK_FREQUENCY, CL_DEVICE_MAX_COMPUTE_UNITS,
    CL_DEVICE_MAX_WORK_GROUP_SIZE, CL_DEVICE_MAX_WORK_ITEM_SIZES, CL_DEVICE_NAME,
    CL_DEVICE_TYPE_ACCELERATOR, CL_DEVICE_TYPE_CPU, CL_DEVICE_TYPE_GPU, CL_DEVICE_VERSION,
    CL_DRIVER_VERSION, get_device_data, get_device_ids,
};
use opencl3::error_codes::error_text;
use opencl3::event::release_event;
use opencl3::memory::{CL_MEM_READ_WRITE, create_buffer, release_mem_object};
use opencl3::platform::platform::get_platform_ids;
use std::ffi::c_void;
use std::ptr;
use std::sync::LazyLock;

/// Returns the one OpenCL API of this process, with the GPUs of all platforms first, then accelerators, then CPUs. This loads no
/// library.
pub fn opencl() -> &'static dyn DeviceApi {
    OpenCl::backend()
}

/// The OpenCL driver.
pub(crate) struct OpenCl;

/// A device with its own context and queue.
pub(crate) struct OpenClDevice {
    /// `cl_device_id`.
    id: *mut c_void,
    /// `cl_context`, for this device only.
    context: *mut c_void,
    /// `cl_command_queue`, in order (DEV-37).
    queue: *mut c_void,
}

// SAFETY: OpenCL objects may be used from any thread; only setting arguments of a kernel may not, and that is locked.
unsafe impl Send for OpenClDevice {}
// SAFETY: OpenCL objects may be used from any thread; only setting arguments of a kernel may not, and that is locked.
unsafe impl Sync for OpenClDevice {}

/// A memory object.
#[derive(Clone, Copy)]
pub(crate) struct OpenClBuffer(*mut c_void);

// SAFETY: OpenCL objects may be used from any thread.
unsafe impl Send for OpenClBuffer {}

impl OpenClDevice {
    /// Creates a context and a queue for a device.
    fn open(id: *mut c_void) -> Result<OpenClDevice> {
        let context = create_context(&[id], ptr::null(), None, ptr::null_mut());
        let context = OpenCl::checked("clCreateContext", context)?;
        // SAFETY: both were just made by OpenCL, and 0 is a queue in order.
        let queue = unsafe { create_command_queue(context, id, 0) };
        let queue = OpenCl::checked("clCreateCommandQueue", queue)?;
        Ok(OpenClDevice { id, context, queue })
    }

    /// Returns an answer of OpenCL as raw bytes, or `None` if OpenCL has no answer.
    fn info(&self, name: u32) -> Option<Vec<u8>> {
        get_device_data(self.id, name).ok()
    }

    /// Returns a number of 4 or 8 bytes. A number that is not positive counts as no answer.
    fn number(&self, name: u32) -> Option<i64> {
        let number = match *self.info(name)?.as_slice() {
            [a, b, c, d] => i64::from(u32::from_ne_bytes([a, b, c, d])),
            [a, b, c, d, e, f, g, h] => {
                i64::try_from(u64::from_ne_bytes([a, b, c, d, e, f, g, h])).ok()?
            }
            _ => return None,
        };
        (number > 0).then_some(number)
    }

    /// Returns a text without the NULs and spaces at its end, or `None` if it is empty (DEV-08).
    fn text(&self, name: u32) -> Option<String> {
        let bytes = self.info(name)?;
        let text = String::from_utf8_lossy(&bytes);
        let text = text.trim_end_matches('\0').trim();
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// Returns the largest block as DEV-10 writes it. OpenCL answers with a `size_t` for each axis.
    fn dimensions(&self) -> AttributeValue {
        let bytes = self.info(CL_DEVICE_MAX_WORK_ITEM_SIZES).unwrap_or_default();
        let (words, _) = bytes.as_chunks();
        let axis = |at: usize| i64::try_from(usize::from_ne_bytes(*words.get(at)?)).ok();
        AttributeValue::dimensions([axis(0), axis(1), axis(2)])
    }
}

/// Releases an event, with which OpenCL reports the end of a command. The queue is in order, so no event is needed.
fn forget(event: *mut c_void) {
    if !event.is_null() {
        // SAFETY: the event was just made, and is released once. A failure changes nothing.
        let _ = unsafe { release_event(event) };
    }
}

/// Returns the result of a call that queues work, and releases its event.
fn queued(call: &str, event: std::result::Result<*mut c_void, i32>) -> Result<()> {
    forget(OpenCl::checked(call, event)?);
    Ok(())
}

impl Driver for OpenCl {
    type Opened = OpenClDevice;
    type Memory = OpenClBuffer;
    type Spaces = Handles<OpenClBuffer>;
    type Failure = i32;

    const NAME: &'static str = "OpenCL";
    const KEY: &'static str = "opencl";
    const DEVICE: Device = Device::opencl(0);

    fn backend() -> &'static Backend<OpenCl> {
        static OPENCL: LazyLock<Backend<OpenCl>> = LazyLock::new(Backend::new);
        &OPENCL
    }

    fn explain(failure: i32) -> (i64, String) {
        (failure.into(), error_text(failure).to_owned())
    }

    fn open_all() -> Result<Vec<OpenClDevice>> {
        let platforms = get_platform_ids()
            .map_err(|code| no_driver("OpenCL", format_args!("{} ({code})", error_text(code))))?;
        // The loop over kinds is outside of the loop over platforms, so that index 0 is a GPU if there is one.
        let mut devices = Vec::new();
        for kind in [
            CL_DEVICE_TYPE_GPU,
            CL_DEVICE_TYPE_ACCELERATOR,
            CL_DEVICE_TYPE_CPU,
        ] {
            for platform in &platforms {
                // A platform that fails counts as one without devices.
                devices.extend(get_device_ids(*platform, kind).unwrap_or_default());
            }
        }
        devices.into_iter().map(OpenClDevice::open).collect()
    }

    fn attribute(on: &OpenClDevice, attribute: Attribute) -> Result<AttributeValue> {
        let number = |name| AttributeValue::number_or_none(on.number(name));
        let text = |text: Option<String>| text.map_or(AttributeValue::None, AttributeValue::Text);
        Ok(match attribute {
            Attribute::MaxThreadsPerBlock => number(CL_DEVICE_MAX_WORK_GROUP_SIZE),
            // DEV-08: OpenCL has no such query. Upstream assumes 1 unless the environment variable has another number.
            Attribute::WarpSize => {
                let size = std::env::var("TVM_OPENCL_WARP_SIZE").ok();
                let size = size.and_then(|size| size.parse().ok());
                AttributeValue::Int(size.filter(|size| *size > 0).unwrap_or(1))
            }
            Attribute::MaxSharedMemoryPerBlock => number(CL_DEVICE_LOCAL_MEM_SIZE),
            // DEV-11: of a text such as `OpenCL 3.0 vendor's text`, only the number is returned.
            Attribute::ComputeVersion => text(on.text(CL_DEVICE_VERSION).and_then(|text| {
                Some(text.strip_prefix("OpenCL ")?.split(' ').next()?.to_owned())
            })),
            Attribute::DeviceName => text(on.text(CL_DEVICE_NAME)),
            // OpenCL answers in MHz, but the attribute is in kHz.
            Attribute::MaxClockRate => {
                let megahertz = on.number(CL_DEVICE_MAX_CLOCK_FREQUENCY);
                AttributeValue::number_or_none(megahertz.and_then(|mhz| mhz.checked_mul(1000)))
            }
            Attribute::MultiProcessorCount => number(CL_DEVICE_MAX_COMPUTE_UNITS),
            Attribute::MaxThreadDimensions => on.dimensions(),
            // DEV-08: `CL_TARGET_OPENCL_VERSION` in the headers that upstream is built with.
            Attribute::ApiVersion => AttributeValue::Int(120),
            Attribute::DriverVersion => text(on.text(CL_DRIVER_VERSION)),
            Attribute::L2CacheSizeBytes => number(CL_DEVICE_GLOBAL_MEM_CACHE_SIZE),
            Attribute::TotalGlobalMemory => number(CL_DEVICE_GLOBAL_MEM_SIZE),
            Attribute::ImagePitchAlignment => number(CL_DEVICE_IMAGE_PITCH_ALIGNMENT),
            // DEV-08: OpenCL has no query for registers or free memory, and gcn_arch belongs to AMD.
            _ => AttributeValue::None,
        })
    }

    fn alloc(on: &OpenClDevice, nbytes: usize) -> Result<OpenClBuffer> {
        // SAFETY: the context is ours, and no host pointer is passed.
        let created = unsafe {
            create_buffer(
                on.context,
                CL_MEM_READ_WRITE,
                nbytes.max(1),
                ptr::null_mut(),
            )
        };
        // Context and flags are valid, so a failure means that there is not enough memory, or that the buffer is too large.
        let memory = created.map_err(|code| {
            out_of_memory(
                nbytes,
                format!("clCreateBuffer: {} ({code})", error_text(code)),
            )
        })?;
        Ok(OpenClBuffer(memory))
    }

    unsafe fn free(_: &OpenClDevice, memory: OpenClBuffer) -> Result<()> {
        // DEV-46: OpenCL keeps the memory of a queued command until the command is complete.
        // SAFETY: a buffer of `alloc`, released once (`Driver::free`).
        OpenCl::checked("clReleaseMemObject", unsafe {
            release_mem_object(memory.0)
        })
    }

    unsafe fn upload(
        on: &OpenClDevice,
        from: *const c_void,
        to: SpacePart<OpenCl>,
        _: *mut c_void,
    ) -> Result<()> {
        // DEV-36: the 0 after the buffer makes the call non-blocking: it returns when the copy is queued.
        let (memory, offset, nbytes) = (to.memory.0, to.offset, to.nbytes);
        // SAFETY: the host side stays until a sync (`Driver::upload`); OpenCL checks the ends of buffers.
        let event = unsafe {
            enqueue_write_buffer(on.queue, memory, 0, offset, nbytes, from, 0, ptr::null())
        };
        queued("clEnqueueWriteBuffer", event)
    }

    unsafe fn download(
        on: &OpenClDevice,
        from: SpacePart<OpenCl>,
        to: *mut c_void,
        _: *mut c_void,
    ) -> Result<()> {
        // The call does not block, like an upload.
        let (memory, offset, nbytes) = (from.memory.0, from.offset, from.nbytes);
        // SAFETY: the host side stays until a sync (`Driver::download`); OpenCL checks the ends of buffers.
        let event =
            unsafe { enqueue_read_buffer(on.queue, memory, 0, offset, nbytes, to, 0, ptr::null()) };
        queued("clEnqueueReadBuffer", event)
    }

    unsafe fn copy_within_device(
        on: &OpenClDevice,
        from: SpacePart<OpenCl>,
        to: SpacePart<OpenCl>,
        _: *mut c_void,
    ) -> Result<()> {
        let (source, target, nbytes) = (from.memory.0, to.memory.0, to.nbytes);
        let (skip, begin) = (from.offset, to.offset);
        // SAFETY: both buffers are alive (`Handles`); OpenCL checks the ends of buffers.
        let event = unsafe {
            enqueue_copy_buffer(
                on.queue,
                source,
                target,
                skip,
                begin,
                nbytes,
                0,
                ptr::null(),
            )
        };
        queued("clEnqueueCopyBuffer", event)
    }

    unsafe fn sync(on: &OpenClDevice, _: *mut c_void) -> Result<()> {
        OpenCl::checked("clFinish", finish(on.queue))
    }
}
