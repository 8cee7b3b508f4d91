//! Vulkan buffers.

use super::Vulkan;
use crate::device::Result;
use crate::device::backend::Driver;
use crate::device::error::out_of_memory;
use ash::vk;
use std::ffi::c_void;

/// A buffer with its own memory allocation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VulkanBuffer {
    /// The handle that commands use.
    pub(super) handle: vk::Buffer,
    /// The memory, allocated for this buffer only.
    memory: vk::DeviceMemory,
    /// The number of requested bytes; the buffer has at least one.
    pub(super) nbytes: usize,
    /// The host's address of the memory; null if the host cannot access it.
    mapped: *mut c_void,
}

// SAFETY: handles are numbers, and the mapped memory is written by its one owner.
unsafe impl Send for VulkanBuffer {}
// SAFETY: handles are numbers, and the mapped memory is written by its one owner.
unsafe impl Sync for VulkanBuffer {}

impl VulkanBuffer {
    /// Returns the host's address of a staging buffer.
    pub(super) fn mapped_bytes(self) -> *mut u8 {
        self.mapped.cast()
    }
}

impl VulkanBuffer {
    /// Creates a buffer of at least one byte in memory of type `memory_type`.
    pub(super) fn new(
        device: &ash::Device,
        nbytes: usize,
        usage: vk::BufferUsageFlags,
        memory_type: u32,
    ) -> Result<VulkanBuffer> {
        // Vulkan copies may have any size, but an allocation needs at least one byte.
        let create = vk::BufferCreateInfo::default()
            .size(nbytes.max(1) as u64)
            .usage(usage);
        // SAFETY: the device is alive as long as the process; the same applies below.
        let handle = Vulkan::checked("vkCreateBuffer", unsafe {
            device.create_buffer(&create, None)
        })?;
        // SAFETY: the buffer was just made.
        let needs = unsafe { device.get_buffer_memory_requirements(handle) };
        // A driver may forbid a memory type for buffers of this usage. Then the first type that it accepts is used.
        let fits = |of: u32| needs.memory_type_bits & (1 << of) != 0;
        let memory_type = if fits(memory_type) {
            memory_type
        } else {
            needs.memory_type_bits.trailing_zeros()
        };
        let allocate = vk::MemoryAllocateInfo::default()
            .allocation_size(needs.size)
            .memory_type_index(memory_type);
        // SAFETY: the device is alive as long as the process, and the struct through the call.
        let memory = match unsafe { device.allocate_memory(&allocate, None) } {
            Ok(memory) => memory,
            Err(code) => {
                // SAFETY: nothing else has the buffer yet.
                unsafe { device.destroy_buffer(handle, None) };
                return Err(out_of_memory(nbytes, format!("vkAllocateMemory: {code}")));
            }
        };
        let buffer = VulkanBuffer {
            handle,
            memory,
            nbytes,
            mapped: std::ptr::null_mut(),
        };
        // SAFETY: buffer and memory were just made for each other.
        if let Err(error) = Vulkan::checked("vkBindBufferMemory", unsafe {
            device.bind_buffer_memory(handle, memory, 0)
        }) {
            buffer.destroy(device);
            return Err(error);
        }
        Ok(buffer)
    }

    /// Creates a buffer that the host can access, for the host's side of a copy.
    pub(super) fn staging(
        device: &ash::Device,
        nbytes: usize,
        memory_type: u32,
    ) -> Result<VulkanBuffer> {
        let usage = vk::BufferUsageFlags::TRANSFER_SRC
            | vk::BufferUsageFlags::TRANSFER_DST
            | vk::BufferUsageFlags::UNIFORM_BUFFER;
        let mut buffer = VulkanBuffer::new(device, nbytes, usage, memory_type)?;
        let whole = (0, vk::WHOLE_SIZE);
        // SAFETY: the memory was just made, is of a type that the host sees, and is mapped once.
        let mapped = unsafe {
            device.map_memory(buffer.memory, whole.0, whole.1, vk::MemoryMapFlags::empty())
        };
        match Vulkan::checked("vkMapMemory", mapped) {
            Ok(mapped) => buffer.mapped = mapped,
            Err(error) => {
                buffer.destroy(device);
                return Err(error);
            }
        }
        Ok(buffer)
    }

    /// Destroys a buffer. No recorded or running work may use it.
    pub(super) fn destroy(self, device: &ash::Device) {
        // SAFETY: `new` created the buffer, and the caller has waited for the work that was recorded with it.
        unsafe { device.destroy_buffer(self.handle, None) };
        // SAFETY: nothing is bound to the memory now; freeing it unmaps it.
        unsafe { device.free_memory(self.memory, None) };
    }
}
