//! The queue of a Vulkan device: a command buffer that is submitted when a caller waits.

use super::Vulkan;
use super::memory::VulkanBuffer;
use crate::device::Result;
use crate::device::backend::Driver;
use ash::vk;

/// The queue of a device, its recorded work, and the objects that this work needs.
pub(super) struct VulkanQueue {
    /// The queue of the family that was chosen when the device was opened.
    queue: vk::Queue,
    /// The only command buffer, recorded again after each wait.
    commands: vk::CommandBuffer,
    /// The fence, signalled when submitted work is complete.
    fence: vk::Fence,
    /// True if the command buffer contains work that was not submitted.
    recording: bool,
    /// The error of a failed wait. The submitted work may still run, so none of its objects is used or freed any more.
    lost: Option<vk::Result>,
    /// The number of recorded pieces of work. Above a limit they are run, so that staging buffers do not pile up.
    recorded: usize,
    /// The host-visible buffers that recorded work reads or writes.
    staging: Vec<VulkanBuffer>,
    /// The pools of the descriptor sets in recorded work; only the last one has room.
    descriptors: Vec<vk::DescriptorPool>,
}

/// The number of pieces of work after which a queue runs without a wait.
const MOST_RECORDED: usize = 512;
/// The bytes of staging after which a queue runs without a wait.
const MOST_STAGING: usize = 256 << 20;

impl VulkanQueue {
    /// Creates the first queue of `family`, with nothing recorded.
    pub(super) fn new(device: &ash::Device, family: u32) -> Result<VulkanQueue> {
        // SAFETY: the device is alive, and was created with one queue of this family.
        let queue = unsafe { device.get_device_queue(family, 0) };
        let create = vk::CommandPoolCreateInfo::default()
            .queue_family_index(family)
            .flags(vk::CommandPoolCreateFlags::RESET_COMMAND_BUFFER);
        // SAFETY: the device is alive, and has a queue of this family.
        let pool = Vulkan::checked("vkCreateCommandPool", unsafe {
            device.create_command_pool(&create, None)
        })?;
        let allocate = vk::CommandBufferAllocateInfo::default()
            .command_pool(pool)
            .level(vk::CommandBufferLevel::PRIMARY)
            .command_buffer_count(1);
        // SAFETY: the device is alive, and the pool was just made on it.
        let commands = Vulkan::checked("vkAllocateCommandBuffers", unsafe {
            device.allocate_command_buffers(&allocate)
        })?;
        // SAFETY: the device is alive, and the struct lives for the call.
        let fence = Vulkan::checked("vkCreateFence", unsafe {
            device.create_fence(&vk::FenceCreateInfo::default(), None)
        })?;
        Ok(VulkanQueue {
            queue,
            commands: commands.first().copied().unwrap_or_default(),
            fence,
            recording: false,
            lost: None,
            recorded: 0,
            staging: Vec::new(),
            descriptors: Vec::new(),
        })
    }

    /// Keeps a buffer until the recorded work is complete.
    pub(super) fn keep(&mut self, staging: VulkanBuffer) {
        self.staging.push(staging);
    }

    /// Records a copy. The buffers must hold the bytes.
    pub(super) fn copy(
        &mut self,
        device: &ash::Device,
        from: (VulkanBuffer, usize),
        to: (VulkanBuffer, usize),
        nbytes: usize,
    ) -> Result<()> {
        let region = [vk::BufferCopy {
            src_offset: from.1 as u64,
            dst_offset: to.1 as u64,
            size: nbytes as u64,
        }];
        self.record(device, |device, commands| {
            // SAFETY: the record is recording; both buffers are alive until the queue has run, and hold the bytes.
            unsafe { device.cmd_copy_buffer(commands, from.0.handle, to.0.handle, &region) };
        })
    }

    /// Records work after a barrier, so that it sees the results of all work that was recorded earlier (DEV-37).
    pub(super) fn record(
        &mut self,
        device: &ash::Device,
        work: impl FnOnce(&ash::Device, vk::CommandBuffer),
    ) -> Result<()> {
        self.check()?;
        if !self.recording {
            let begin = vk::CommandBufferBeginInfo::default()
                .flags(vk::CommandBufferUsageFlags::ONE_TIME_SUBMIT);
            // SAFETY: the command buffer is not in use, because its submitted work was waited for (`submit`, `check`).
            Vulkan::checked("vkBeginCommandBuffer", unsafe {
                device.begin_command_buffer(self.commands, &begin)
            })?;
            self.recording = true;
        }
        // DEV-37: one barrier between any two pieces of work. Dependencies are unknown here, because kernels do not state their
        // accesses.
        let both = vk::PipelineStageFlags::TRANSFER
            | vk::PipelineStageFlags::COMPUTE_SHADER
            | vk::PipelineStageFlags::HOST;
        let wrote = vk::AccessFlags::TRANSFER_WRITE
            | vk::AccessFlags::SHADER_WRITE
            | vk::AccessFlags::HOST_WRITE;
        let reads = vk::AccessFlags::TRANSFER_READ
            | vk::AccessFlags::SHADER_READ
            | vk::AccessFlags::UNIFORM_READ
            | vk::AccessFlags::HOST_READ;
        let barrier = [vk::MemoryBarrier::default()
            .src_access_mask(wrote)
            .dst_access_mask(reads | wrote)];
        // SAFETY: the record is recording.
        unsafe {
            device.cmd_pipeline_barrier(
                self.commands,
                both,
                both,
                vk::DependencyFlags::empty(),
                &barrier,
                &[],
                &[],
            );
        }
        work(device, self.commands);
        self.recorded += 1;
        let staged: usize = self.staging.iter().map(|buffer| buffer.nbytes).sum();
        if self.recorded >= MOST_RECORDED || staged > MOST_STAGING {
            self.sync(device)?;
        }
        Ok(())
    }

    /// Allocates a descriptor set that lives until the recorded work is complete.
    pub(super) fn descriptor_set(
        &mut self,
        device: &ash::Device,
        layout: vk::DescriptorSetLayout,
    ) -> Result<vk::DescriptorSet> {
        let layouts = [layout];
        for fresh in [false, true] {
            if fresh {
                self.descriptors.push(descriptor_pool(device)?);
            }
            let Some(pool) = self.descriptors.last() else {
                continue;
            };
            let allocate = vk::DescriptorSetAllocateInfo::default()
                .descriptor_pool(*pool)
                .set_layouts(&layouts);
            // SAFETY: the pool belongs to this queue, whose lock is held.
            match unsafe { device.allocate_descriptor_sets(&allocate) } {
                Ok(sets) => return Ok(sets.first().copied().unwrap_or_default()),
                Err(code) if fresh => {
                    return Vulkan::checked("vkAllocateDescriptorSets", Err(code));
                }
                // The pool is full: the next round creates a new one.
                Err(_) => {}
            }
        }
        Vulkan::checked(
            "vkAllocateDescriptorSets",
            Err(vk::Result::ERROR_OUT_OF_POOL_MEMORY),
        )
    }

    /// Runs the recorded work, waits for it, and releases its objects (DEV-36).
    pub(super) fn sync(&mut self, device: &ash::Device) -> Result<()> {
        self.check()?;
        let ran = self.submit(device);
        // DEV-46: if the wait failed, the device may still use staging and descriptor sets, so they are not released.
        if self.lost.is_none() {
            self.release(device);
        }
        ran
    }

    /// Rejects work for a queue after a failed wait.
    fn check(&self) -> Result<()> {
        Vulkan::checked("vkWaitForFences", self.lost.map_or(Ok(()), Err))
    }

    /// Releases staging and descriptor sets. Nothing may be recorded.
    fn release(&mut self, device: &ash::Device) {
        for buffer in self.staging.drain(..) {
            buffer.destroy(device);
        }
        // One pool is kept for reuse.
        for pool in self.descriptors.drain(1.min(self.descriptors.len())..) {
            // SAFETY: its sets are no longer used.
            unsafe { device.destroy_descriptor_pool(pool, None) };
        }
        if let Some(pool) = self.descriptors.first() {
            // SAFETY: the sets of the pool are no longer used.
            let _ = unsafe {
                device.reset_descriptor_pool(*pool, vk::DescriptorPoolResetFlags::empty())
            };
        }
    }

    /// Submits the recorded work and waits for it. Returns at once if nothing is recorded.
    fn submit(&mut self, device: &ash::Device) -> Result<()> {
        if !self.recording {
            return Ok(());
        }
        // DEV-36: a fence alone does not make the device's writes visible to the host.
        let to_host = [vk::MemoryBarrier::default()
            .src_access_mask(vk::AccessFlags::TRANSFER_WRITE | vk::AccessFlags::SHADER_WRITE)
            .dst_access_mask(vk::AccessFlags::HOST_READ)];
        let commands = [self.commands];
        let submits = [vk::SubmitInfo::default().command_buffers(&commands)];
        let fences = [self.fence];
        // SAFETY: the command buffer is recording, by the check of `recording` above.
        unsafe {
            device.cmd_pipeline_barrier(
                self.commands,
                vk::PipelineStageFlags::TRANSFER | vk::PipelineStageFlags::COMPUTE_SHADER,
                vk::PipelineStageFlags::HOST,
                vk::DependencyFlags::empty(),
                &to_host,
                &[],
                &[],
            );
        }
        // SAFETY: the command buffer is recording, by the check of `recording` above.
        let ended = unsafe { device.end_command_buffer(self.commands) };
        // Recording has ended, even if a call below fails: the next work starts a new recording.
        self.recording = false;
        self.recorded = 0;
        Vulkan::checked("vkEndCommandBuffer", ended)?;
        // SAFETY: the recorded objects are alive until the queue has run (`keep`). The lock protects queue and fence, and the fence
        // is not in use, because it is waited for below.
        let submitted = unsafe { device.queue_submit(self.queue, &submits, self.fence) };
        Vulkan::checked("vkQueueSubmit", submitted)?;
        // SAFETY: the fence is ours.
        let waited = unsafe { device.wait_for_fences(&fences, true, u64::MAX) };
        self.lost = waited.err();
        Vulkan::checked("vkWaitForFences", waited)?;
        // SAFETY: the queue is done with the fence.
        let reset = unsafe { device.reset_fences(&fences) };
        // A fence that stays signalled would end the next wait at once.
        self.lost = reset.err();
        Vulkan::checked("vkResetFences", reset)
    }
}

/// Creates a pool of 256 sets, with eight buffers each on average. A set that does not fit gets a new pool.
fn descriptor_pool(device: &ash::Device) -> Result<vk::DescriptorPool> {
    const SETS: u32 = 256;
    let sizes = [
        vk::DescriptorPoolSize {
            ty: vk::DescriptorType::STORAGE_BUFFER,
            descriptor_count: SETS * 8,
        },
        vk::DescriptorPoolSize {
            ty: vk::DescriptorType::UNIFORM_BUFFER,
            descriptor_count: SETS,
        },
    ];
    let create = vk::DescriptorPoolCreateInfo::default()
        .max_sets(SETS)
        .pool_sizes(&sizes);
    // SAFETY: the device is alive.
    Vulkan::checked("vkCreateDescriptorPool", unsafe {
        device.create_descriptor_pool(&create, None)
    })
}
