//! OpenCL, through the library that is found when the first question comes.
//!
//! The raw calls of opencl3 are used, not its objects: those panic when a release fails, and a release fails when a device
//! is lost. One in-order queue per device; there are no other streams, as in every release.

mod program;

use crate::device::error::refuse;
use crate::device::handles::Handles;
use crate::device::pool::{SpaceSource, WorkspacePools};
use crate::device::stream::set_current_device;
use crate::device::{
    Attribute, Copy, DEV_21, DEV_40, DEV_41, DEV_42, Device, DeviceApi, Dtype, Error, Result,
    Space, Stream, Value,
};
use crate::rule::Kind;
use opencl3::command_queue::{
    create_command_queue, enqueue_copy_buffer, enqueue_read_buffer, enqueue_write_buffer, finish,
};
use opencl3::context::context::create_context;
use opencl3::device::{
    CL_DEVICE_GLOBAL_MEM_CACHE_SIZE, CL_DEVICE_GLOBAL_MEM_SIZE, CL_DEVICE_LOCAL_MEM_SIZE,
    CL_DEVICE_MAX_CLOCK_FREQUENCY, CL_DEVICE_MAX_COMPUTE_UNITS, CL_DEVICE_MAX_WORK_GROUP_SIZE,
    CL_DEVICE_MAX_WORK_ITEM_SIZES, CL_DEVICE_NAME, CL_DEVICE_TYPE_ACCELERATOR, CL_DEVICE_TYPE_CPU,
    CL_DEVICE_TYPE_GPU, CL_DEVICE_VERSION, CL_DRIVER_VERSION, get_device_data, get_device_ids,
};
use opencl3::error_codes::error_text;
use opencl3::event::release_event;
use opencl3::memory::{CL_MEM_READ_WRITE, create_buffer, release_mem_object};
use opencl3::platform::platform::get_platform_ids;
use std::ffi::c_void;
use std::ptr;
use std::sync::{Arc, OnceLock};

pub(crate) use program::OpenClCode;

/// The OpenCL devices of this process: GPUs of all platforms first, then accelerators, then CPUs.
pub struct OpenCl {
    inner: Arc<Inner>,
    pools: WorkspacePools,
}

/// The one OpenCL API of this process. Nothing is loaded by asking for it.
pub fn opencl() -> &'static OpenCl {
    static OPENCL: OnceLock<OpenCl> = OnceLock::new();
    OPENCL.get_or_init(|| {
        let inner = Arc::new(Inner {
            devices: OnceLock::new(),
            buffers: Handles::new("OpenCL"),
        });
        OpenCl {
            pools: WorkspacePools::new(inner.clone()),
            inner,
        }
    })
}

struct Inner {
    devices: OnceLock<std::result::Result<Vec<Opened>, Error>>,
    buffers: Handles<Buffer>,
}

/// A device with a context and a queue of its own.
struct Opened {
    id: *mut c_void,
    context: *mut c_void,
    queue: *mut c_void,
}

// SAFETY: OpenCL objects may be used from any thread; only setting arguments of a kernel may not, and that is locked.
unsafe impl Send for Opened {}
// SAFETY: OpenCL objects may be used from any thread; only setting arguments of a kernel may not, and that is locked.
unsafe impl Sync for Opened {}

#[derive(Clone, Copy)]
struct Buffer {
    memory: *mut c_void,
    device: i32,
}

// SAFETY: as for `Opened`.
unsafe impl Send for Buffer {}

/// `result`, or an error that names the call.
fn checked<T>(call: &str, result: std::result::Result<T, i32>) -> Result<T> {
    result.map_err(|code| Error::driver("opencl", call, code.into(), error_text(code)))
}

/// Events are how OpenCL tells that something is done; the queue is in order, so none is needed.
fn forget(event: *mut c_void) {
    if !event.is_null() {
        // SAFETY: the event was just made, and is released once. A failure changes nothing.
        let _ = unsafe { release_event(event) };
    }
}

impl Inner {
    /// The devices. All of the start is behind one lock: some platforms do not survive two threads in it.
    fn devices(&self) -> Result<&[Opened]> {
        let devices = self.devices.get_or_init(|| {
            let platforms = get_platform_ids().map_err(|code| {
                Error::Absent(format!("no OpenCL here: {} ({code})", error_text(code)))
            })?;
            let mut found = Vec::new();
            for kind in [
                CL_DEVICE_TYPE_GPU,
                CL_DEVICE_TYPE_ACCELERATOR,
                CL_DEVICE_TYPE_CPU,
            ] {
                for platform in &platforms {
                    // A platform that fails is as good as none.
                    found.extend(get_device_ids(*platform, kind).unwrap_or_default());
                }
            }
            if found.is_empty() {
                return Err(Error::Absent("OpenCL is here, but no device".into()));
            }
            found.into_iter().map(open).collect()
        });
        devices.as_deref().map_err(Clone::clone)
    }

    fn device(&self, device: Device) -> Result<&Opened> {
        let devices = self.devices()?;
        let opened = usize::try_from(device.id)
            .ok()
            .and_then(|id| devices.get(id));
        match opened {
            Some(opened) => Ok(opened),
            None => refuse(
                DEV_42,
                Kind::Missing,
                format!(
                    "Invalid device id {}: {} are here",
                    device.id,
                    devices.len()
                ),
            ),
        }
    }

    /// The buffer behind a handle.
    fn buffer(&self, space: Space) -> Result<Buffer> {
        self.buffers.with(space, |buffer| *buffer)
    }
}

fn open(id: *mut c_void) -> Result<Opened> {
    let context = checked(
        "clCreateContext",
        create_context(&[id], ptr::null(), None, ptr::null_mut()),
    )?;
    // SAFETY: both were just given to us, and 0 is a queue in order.
    let queue = checked("clCreateCommandQueue", unsafe {
        create_command_queue(context, id, 0)
    })?;
    Ok(Opened { id, context, queue })
}

impl SpaceSource for Inner {
    fn alloc(&self, device: Device, nbytes: usize, _: usize, _: Dtype) -> Result<Space> {
        let opened = self.device(device)?;
        // OpenCL has no buffer of no bytes.
        let created = unsafe {
            // SAFETY: the context is ours, and no host pointer is given.
            create_buffer(
                opened.context,
                CL_MEM_READ_WRITE,
                nbytes.max(1),
                ptr::null_mut(),
            )
        };
        let memory = created.map_err(|code| Error::OutOfMemory {
            nbytes,
            by: format!("clCreateBuffer: {} ({code})", error_text(code)),
        })?;
        Ok(self.buffers.insert(Buffer {
            memory,
            device: device.id,
        }))
    }

    unsafe fn free(&self, _: Device, space: Space) -> Result<()> {
        let buffer = self.buffers.remove(space)?;
        // Work that is queued still has the buffer: OpenCL keeps what a command uses until the command is done.
        // SAFETY: the buffer is ours and no longer in use.
        checked("clReleaseMemObject", unsafe {
            release_mem_object(buffer.memory)
        })
    }
}

impl OpenCl {
    /// What OpenCL says of a device in raw bytes; nothing if it says nothing.
    fn info(&self, opened: &Opened, name: u32) -> Option<Vec<u8>> {
        get_device_data(opened.id, name).ok()
    }

    fn number(&self, opened: &Opened, name: u32) -> Value {
        let bytes = self.info(opened, name).unwrap_or_default();
        let number = match *bytes.as_slice() {
            [a, b, c, d] => Some(i64::from(u32::from_ne_bytes([a, b, c, d]))),
            [a, b, c, d, e, f, g, h] => {
                i64::try_from(u64::from_ne_bytes([a, b, c, d, e, f, g, h])).ok()
            }
            _ => None,
        };
        number
            .filter(|number| *number > 0)
            .map_or(Value::None, Value::Int)
    }

    fn text(&self, opened: &Opened, name: u32) -> Option<String> {
        let bytes = self.info(opened, name)?;
        let text = String::from_utf8_lossy(&bytes);
        let text = text.trim_end_matches('\0').trim();
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// Copies through the host, for two devices that share no context.
    ///
    /// # Safety
    ///
    /// As for `copy`.
    unsafe fn copy_across(&self, copy: &Copy, from: Buffer, to: Buffer) -> Result<()> {
        let (source, target) = (
            self.inner.device(copy.from_device)?,
            self.inner.device(copy.to_device)?,
        );
        let mut bytes = vec![0u8; copy.nbytes];
        let data = bytes.as_mut_ptr().cast();
        // SAFETY: `bytes` holds as many, and the call blocks until it is done with them; OpenCL checks the ends of buffers.
        let event = unsafe {
            enqueue_read_buffer(
                source.queue,
                from.memory,
                1,
                copy.from_offset,
                copy.nbytes,
                data,
                0,
                ptr::null(),
            )
        };
        forget(checked("clEnqueueReadBuffer", event)?);
        // SAFETY: `bytes` holds as many, and the call blocks until it is done with them; OpenCL checks the ends of buffers.
        let event = unsafe {
            enqueue_write_buffer(
                target.queue,
                to.memory,
                1,
                copy.to_offset,
                copy.nbytes,
                data,
                0,
                ptr::null(),
            )
        };
        forget(checked("clEnqueueWriteBuffer", event)?);
        Ok(())
    }
}

/// Releases have one queue per device, and refuse any other stream than null.
fn only_default(stream: Stream) -> Result<()> {
    if stream == Stream::DEFAULT {
        return Ok(());
    }
    refuse(
        DEV_21,
        Kind::Unsupported,
        "OpenCL has only the default stream",
    )
}

impl DeviceApi for OpenCl {
    fn set_device(&self, device: Device) -> Result<()> {
        self.inner.device(device)?;
        set_current_device(Device::opencl(device.id));
        Ok(())
    }

    fn attribute(&self, device: Device, attribute: Attribute) -> Result<Value> {
        if attribute == Attribute::Exist {
            return Ok(Value::Int(self.inner.device(device).is_ok().into()));
        }
        let opened = self.inner.device(device)?;
        Ok(match attribute {
            Attribute::MaxThreadsPerBlock => self.number(opened, CL_DEVICE_MAX_WORK_GROUP_SIZE),
            // OpenCL does not say; one is what upstream assumes unless the environment says otherwise.
            Attribute::WarpSize => {
                let told = std::env::var("TVM_OPENCL_WARP_SIZE")
                    .ok()
                    .and_then(|text| text.parse().ok());
                Value::Int(told.filter(|size| *size > 0).unwrap_or(1))
            }
            Attribute::MaxSharedMemoryPerBlock => self.number(opened, CL_DEVICE_LOCAL_MEM_SIZE),
            Attribute::ComputeVersion => self
                .text(opened, CL_DEVICE_VERSION)
                .and_then(|text| Some(text.strip_prefix("OpenCL ")?.split(' ').next()?.to_owned()))
                .map_or(Value::None, Value::Text),
            Attribute::DeviceName => self
                .text(opened, CL_DEVICE_NAME)
                .map_or(Value::None, Value::Text),
            Attribute::MaxClockRate => match self.number(opened, CL_DEVICE_MAX_CLOCK_FREQUENCY) {
                Value::Int(megahertz) => Value::Int(megahertz * 1000),
                other => other,
            },
            Attribute::MultiProcessorCount => self.number(opened, CL_DEVICE_MAX_COMPUTE_UNITS),
            Attribute::MaxThreadDimensions => {
                let bytes = self
                    .info(opened, CL_DEVICE_MAX_WORK_ITEM_SIZES)
                    .unwrap_or_default();
                let words = bytes.chunks_exact(size_of::<usize>());
                let axes: Vec<String> = words
                    .take(3)
                    .map(|word| {
                        usize::from_ne_bytes(word.try_into().unwrap_or_default()).to_string()
                    })
                    .collect();
                if axes.len() == 3 {
                    Value::Text(format!("[{}]", axes.join(", ")))
                } else {
                    Value::None
                }
            }
            Attribute::ApiVersion => Value::Int(120),
            Attribute::DriverVersion => self
                .text(opened, CL_DRIVER_VERSION)
                .map_or(Value::None, Value::Text),
            Attribute::L2CacheSizeBytes => self.number(opened, CL_DEVICE_GLOBAL_MEM_CACHE_SIZE),
            Attribute::TotalGlobalMemory => self.number(opened, CL_DEVICE_GLOBAL_MEM_SIZE),
            Attribute::ImagePitchAlignment => {
                self.number(opened, opencl3::device::CL_DEVICE_IMAGE_PITCH_ALIGNMENT)
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
        only_default(stream)?;
        if copy.nbytes == 0 {
            return Ok(());
        }
        let (from_host, to_host) = (copy.from_device.is_host(), copy.to_device.is_host());
        let Copy {
            from_offset,
            to_offset,
            nbytes,
            ..
        } = *copy;
        if from_host && to_host {
            return refuse(
                DEV_41,
                Kind::Type,
                "a copy between two places of the host was given to OpenCL",
            );
        }
        let event = if from_host {
            let to = self.inner.buffer(copy.to)?;
            let queue = self.inner.device(Device::opencl(to.device))?.queue;
            let data = copy.from.0.wrapping_byte_add(from_offset);
            // SAFETY: a side of the host stays until a sync, by the contract of `copy`; OpenCL checks the ends of buffers.
            let event = unsafe {
                enqueue_write_buffer(queue, to.memory, 0, to_offset, nbytes, data, 0, ptr::null())
            };
            checked("clEnqueueWriteBuffer", event)?
        } else if to_host {
            let from = self.inner.buffer(copy.from)?;
            let queue = self.inner.device(Device::opencl(from.device))?.queue;
            let data = copy.to.0.wrapping_byte_add(to_offset);
            // SAFETY: a side of the host stays until a sync, by the contract of `copy`; OpenCL checks the ends of buffers.
            let event = unsafe {
                enqueue_read_buffer(
                    queue,
                    from.memory,
                    0,
                    from_offset,
                    nbytes,
                    data,
                    0,
                    ptr::null(),
                )
            };
            checked("clEnqueueReadBuffer", event)?
        } else {
            let (from, to) = (self.inner.buffer(copy.from)?, self.inner.buffer(copy.to)?);
            if from.device != to.device {
                // SAFETY: as for this function.
                return unsafe { self.copy_across(copy, from, to) };
            }
            let overlap = from_offset < to_offset.saturating_add(nbytes)
                && to_offset < from_offset.saturating_add(nbytes);
            if from.memory == to.memory && overlap {
                let message = format!(
                    "{nbytes} bytes from {from_offset} to {to_offset} of one buffer overlap"
                );
                return refuse(DEV_40, Kind::Unsupported, message);
            }
            let queue = self.inner.device(Device::opencl(from.device))?.queue;
            // SAFETY: a side of the host stays until a sync, by the contract of `copy`; OpenCL checks the ends of buffers.
            let event = unsafe {
                enqueue_copy_buffer(
                    queue,
                    from.memory,
                    to.memory,
                    from_offset,
                    to_offset,
                    nbytes,
                    0,
                    ptr::null(),
                )
            };
            checked("clEnqueueCopyBuffer", event)?
        };
        forget(event);
        Ok(())
    }

    fn sync(&self, device: Device, stream: Stream) -> Result<()> {
        only_default(stream)?;
        checked("clFinish", finish(self.inner.device(device)?.queue))
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
}
