//! Vulkan compute, through the loader that is found when the first question comes.
//!
//! One queue per device. Work is recorded and submitted when a caller waits, as released runtimes do: copies and
//! launches cost no trip to the driver each. There are no other streams.

mod instance;
mod memory;
mod pipeline;
mod properties;
mod queue;

pub(crate) use pipeline::{Shader, VulkanCode};

use crate::device::error::refuse;
use crate::device::handles::Handles;
use crate::device::pool::{SpaceSource, WorkspacePools};
use crate::device::stream::set_current_device;
use crate::device::{
    Attribute, Copy, DEV_21, DEV_40, DEV_41, DEV_42, Device, DeviceApi, Dtype, Error, Result,
    Space, Stream, Value,
};
use crate::rule::Kind;
use ash::vk;
use instance::Opened;
use memory::Buffer;
use std::sync::{Arc, OnceLock};

/// The Vulkan devices of this process, in the order of the loader.
pub struct Vulkan {
    inner: Arc<Inner>,
    pools: WorkspacePools,
}

/// The one Vulkan API of this process. Nothing is loaded by asking for it.
pub fn vulkan() -> &'static Vulkan {
    static VULKAN: OnceLock<Vulkan> = OnceLock::new();
    VULKAN.get_or_init(|| {
        let inner = Arc::new(Inner {
            devices: OnceLock::new(),
            buffers: Handles::new("Vulkan"),
        });
        Vulkan {
            pools: WorkspacePools::new(inner.clone()),
            inner,
        }
    })
}

struct Inner {
    devices: OnceLock<std::result::Result<Vec<Opened>, Error>>,
    buffers: Handles<(i32, Buffer)>,
}

/// `result`, or an error that names the call.
fn checked<T>(call: &str, result: ash::prelude::VkResult<T>) -> Result<T> {
    result.map_err(|code| Error::driver("vulkan", call, code.as_raw().into(), code.to_string()))
}

impl Inner {
    fn devices(&self) -> Result<&[Opened]> {
        let devices = self.devices.get_or_init(instance::open_all);
        devices.as_deref().map_err(Clone::clone)
    }

    fn device(&self, id: i32) -> Result<&Opened> {
        let devices = self.devices()?;
        match usize::try_from(id).ok().and_then(|id| devices.get(id)) {
            Some(opened) => Ok(opened),
            None => refuse(
                DEV_42,
                Kind::Missing,
                format!("Invalid device id {id}: {} are here", devices.len()),
            ),
        }
    }

    /// The buffer behind a handle, and its device.
    fn buffer(&self, space: Space) -> Result<(i32, Buffer)> {
        self.buffers.with(space, |buffer| *buffer)
    }
}

impl SpaceSource for Inner {
    fn alloc(&self, device: Device, nbytes: usize, _: usize, _: Dtype) -> Result<Space> {
        let opened = self.device(device.id)?;
        let usage = vk::BufferUsageFlags::STORAGE_BUFFER
            | vk::BufferUsageFlags::TRANSFER_SRC
            | vk::BufferUsageFlags::TRANSFER_DST;
        let buffer = opened.buffer(nbytes, usage, opened.device_memory)?;
        Ok(self.buffers.insert((device.id, buffer)))
    }

    unsafe fn free(&self, _: Device, space: Space) -> Result<()> {
        let (id, buffer) = self.buffers.remove(space)?;
        let opened = self.device(id)?;
        // Recorded work still names the buffer: it has to run first (DEV-46).
        let synced = opened.queue().sync(opened);
        opened.destroy(buffer);
        synced
    }
}

/// Releases refuse any other stream than null.
fn only_default(stream: Stream) -> Result<()> {
    if stream == Stream::DEFAULT {
        return Ok(());
    }
    refuse(
        DEV_21,
        Kind::Unsupported,
        "Vulkan has only the default stream",
    )
}

impl Vulkan {
    /// # Safety
    ///
    /// The source is valid for the bytes of the copy.
    unsafe fn upload(&self, copy: &Copy) -> Result<()> {
        let (id, to) = self.inner.buffer(copy.to)?;
        check_end(to, copy.to_offset, copy.nbytes)?;
        let opened = self.inner.device(id)?;
        let staging = opened.staging(copy.nbytes)?;
        let source = copy.from.0.cast::<u8>().wrapping_add(copy.from_offset);
        // SAFETY: staging memory is mapped and has these bytes; the source is valid for them.
        unsafe { std::ptr::copy_nonoverlapping(source, staging.mapped.cast(), copy.nbytes) };
        let mut queue = opened.queue();
        queue.keep(staging);
        queue.copy(opened, (staging, 0), (to, copy.to_offset), copy.nbytes)
    }

    /// # Safety
    ///
    /// The destination is valid for the bytes of the copy.
    unsafe fn download(&self, copy: &Copy) -> Result<()> {
        let (id, from) = self.inner.buffer(copy.from)?;
        check_end(from, copy.from_offset, copy.nbytes)?;
        let opened = self.inner.device(id)?;
        let staging = opened.staging(copy.nbytes)?;
        let mut queue = opened.queue();
        // The host's side of the copy cannot be recorded: wait, then move the bytes.
        let ran = queue
            .copy(opened, (from, copy.from_offset), (staging, 0), copy.nbytes)
            .and_then(|()| queue.sync(opened));
        if ran.is_ok() {
            let to = copy.to.0.cast::<u8>().wrapping_add(copy.to_offset);
            // SAFETY: staging memory is mapped and has these bytes; the destination is valid for them.
            unsafe { std::ptr::copy_nonoverlapping(staging.mapped.cast(), to, copy.nbytes) };
        }
        opened.destroy(staging);
        ran
    }

    fn between(&self, copy: &Copy) -> Result<()> {
        let ((source, from), (target, to)) =
            (self.inner.buffer(copy.from)?, self.inner.buffer(copy.to)?);
        check_end(from, copy.from_offset, copy.nbytes)?;
        check_end(to, copy.to_offset, copy.nbytes)?;
        if source != target {
            let mut bytes = vec![0u8; copy.nbytes];
            let host = Space(bytes.as_mut_ptr().cast());
            let down = Copy {
                to: host,
                to_offset: 0,
                ..*copy
            };
            let up = Copy {
                from: host,
                from_offset: 0,
                ..*copy
            };
            // SAFETY: `bytes` holds as many, and `download` returns when they are there.
            unsafe { self.download(&down) }?;
            // SAFETY: staging has taken them when `upload` returns.
            return unsafe { self.upload(&up) };
        }
        let (first, second, nbytes) = (copy.from_offset, copy.to_offset, copy.nbytes);
        if from.handle == to.handle && first < second + nbytes && second < first + nbytes {
            return refuse(
                DEV_40,
                Kind::Unsupported,
                format!("{nbytes} bytes from {first} to {second} of one buffer overlap"),
            );
        }
        let opened = self.inner.device(source)?;
        opened
            .queue()
            .copy(opened, (from, first), (to, second), nbytes)
    }
}

/// Vulkan does not look where a copy ends: this does (DEV-41).
fn check_end(buffer: Buffer, offset: usize, nbytes: usize) -> Result<()> {
    if offset
        .checked_add(nbytes)
        .is_some_and(|end| end <= buffer.nbytes)
    {
        return Ok(());
    }
    refuse(
        DEV_41,
        Kind::Limit,
        format!(
            "{nbytes} bytes from {offset} of a buffer of {}",
            buffer.nbytes
        ),
    )
}

impl DeviceApi for Vulkan {
    fn set_device(&self, device: Device) -> Result<()> {
        self.inner.device(device.id)?;
        set_current_device(Device::vulkan(device.id));
        Ok(())
    }

    fn attribute(&self, device: Device, attribute: Attribute) -> Result<Value> {
        if attribute == Attribute::Exist {
            return Ok(Value::Int(self.inner.device(device.id).is_ok().into()));
        }
        Ok(properties::attribute(
            self.inner.device(device.id)?,
            attribute,
        ))
    }

    fn target_property(&self, device: Device, name: &str) -> Result<Value> {
        Ok(properties::target_property(
            self.inner.device(device.id)?,
            name,
        ))
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
        match (copy.from_device.is_host(), copy.to_device.is_host()) {
            // SAFETY: a side of the host is valid for the bytes.
            (true, false) => unsafe { self.upload(copy) },
            // SAFETY: a side of the host is valid for the bytes.
            (false, true) => unsafe { self.download(copy) },
            (false, false) => self.between(copy),
            (true, true) => refuse(
                DEV_41,
                Kind::Type,
                "a copy between two places of the host was given to Vulkan",
            ),
        }
    }

    fn sync(&self, device: Device, stream: Stream) -> Result<()> {
        only_default(stream)?;
        let opened = self.inner.device(device.id)?;
        opened.queue().sync(opened)
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
