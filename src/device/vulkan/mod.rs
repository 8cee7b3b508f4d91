//! Vulkan compute, through the loader that the first call opens.
//!
//! Each device has one queue. As in upstream's releases, work is recorded first, and submitted when a caller waits. Most copies and
//! launches therefore need no driver call. There are no other streams (DEV-21).

mod instance;
mod memory;
mod pipeline;
mod properties;
mod queue;

pub(crate) use pipeline::SpirvShader;

use crate::device::backend::spaces::Handles;
use crate::device::backend::{Backend, Driver, SpacePart};
use crate::device::error::reject;
use crate::device::{Attribute, AttributeValue, DEV_41, Device, DeviceApi, Result};
use crate::rule::Kind;
use ash::vk;
use instance::VulkanDevice;
use memory::VulkanBuffer;
use std::ffi::c_void;
use std::sync::LazyLock;

/// Returns the one Vulkan API of this process, with the devices in the loader's order. This loads no library.
pub fn vulkan() -> &'static dyn DeviceApi {
    Vulkan::backend()
}

/// The Vulkan driver.
pub(crate) struct Vulkan;

impl Driver for Vulkan {
    type Opened = VulkanDevice;
    type Memory = VulkanBuffer;
    type Spaces = Handles<VulkanBuffer>;
    type Failure = vk::Result;

    const NAME: &'static str = "Vulkan";
    const KEY: &'static str = "vulkan";
    const DEVICE: Device = Device::vulkan(0);

    fn backend() -> &'static Backend<Vulkan> {
        static VULKAN: LazyLock<Backend<Vulkan>> = LazyLock::new(Backend::new);
        &VULKAN
    }

    fn explain(failure: vk::Result) -> (i64, String) {
        (failure.as_raw().into(), failure.to_string())
    }

    fn open_all() -> Result<Vec<VulkanDevice>> {
        instance::open_all()
    }

    fn attribute(on: &VulkanDevice, attribute: Attribute) -> Result<AttributeValue> {
        Ok(properties::attribute(on, attribute))
    }

    fn target_property(on: &VulkanDevice, name: &str) -> Result<AttributeValue> {
        Ok(properties::target_property(on, name))
    }

    fn alloc(on: &VulkanDevice, nbytes: usize) -> Result<VulkanBuffer> {
        let usage = vk::BufferUsageFlags::STORAGE_BUFFER
            | vk::BufferUsageFlags::TRANSFER_SRC
            | vk::BufferUsageFlags::TRANSFER_DST;
        VulkanBuffer::new(&on.device, nbytes, usage, on.device_memory)
    }

    unsafe fn free(on: &VulkanDevice, memory: VulkanBuffer) -> Result<()> {
        // DEV-46: recorded work still uses the buffer, so it has to run first. If the wait fails, work may still use the buffer, so
        // the buffer is leaked.
        on.queue().sync(&on.device)?;
        memory.destroy(&on.device);
        Ok(())
    }

    /// Checks that the part ends inside its buffer, because Vulkan does not check it.
    fn check(part: &SpacePart<Vulkan>) -> Result<()> {
        let has = part.memory.nbytes;
        let end = part.offset.checked_add(part.nbytes);
        if end.is_some_and(|end| end <= has) {
            return Ok(());
        }
        let SpacePart { offset, nbytes, .. } = part;
        let message = format!("{nbytes} bytes from {offset} of a buffer of {has}");
        reject(DEV_41, Kind::Limit, message)
    }

    unsafe fn upload(
        on: &VulkanDevice,
        from: *const c_void,
        to: SpacePart<Vulkan>,
        _: *mut c_void,
    ) -> Result<()> {
        // The bytes are copied now, so that the caller's bytes may change before the recorded copy runs.
        let staging = on.staging(to.nbytes)?;
        // SAFETY: staging memory is mapped and has these bytes; the source is valid for them (`Driver::upload`).
        unsafe { std::ptr::copy_nonoverlapping(from.cast(), staging.mapped_bytes(), to.nbytes) };
        let mut queue = on.queue();
        queue.keep(staging);
        queue.copy(&on.device, (staging, 0), (to.memory, to.offset), to.nbytes)
    }

    unsafe fn download(
        on: &VulkanDevice,
        from: SpacePart<Vulkan>,
        to: *mut c_void,
        _: *mut c_void,
    ) -> Result<()> {
        let (source, nbytes) = ((from.memory, from.offset), from.nbytes);
        let staging = on.staging(nbytes)?;
        let mut queue = on.queue();
        // The host's side of the copy cannot be recorded, so this waits and then moves the bytes.
        let ran = queue
            .copy(&on.device, source, (staging, 0), nbytes)
            .and_then(|()| queue.sync(&on.device));
        if ran.is_ok() {
            // SAFETY: staging memory is mapped and has these bytes; the destination is valid for them (`Driver::download`).
            unsafe { std::ptr::copy_nonoverlapping(staging.mapped_bytes(), to.cast(), nbytes) };
            staging.destroy(&on.device);
        }
        ran
    }

    unsafe fn copy_within_device(
        on: &VulkanDevice,
        from: SpacePart<Vulkan>,
        to: SpacePart<Vulkan>,
        _: *mut c_void,
    ) -> Result<()> {
        let (source, target) = ((from.memory, from.offset), (to.memory, to.offset));
        on.queue().copy(&on.device, source, target, to.nbytes)
    }

    unsafe fn sync(on: &VulkanDevice, _: *mut c_void) -> Result<()> {
        on.queue().sync(&on.device)
    }
}
