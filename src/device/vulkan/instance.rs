//! The instance, and the devices that can compute.

use super::Vulkan;
use super::memory::VulkanBuffer;
use super::queue::VulkanQueue;
use crate::device::Result;
use crate::device::backend::Driver;
use crate::device::error::no_driver;
use ash::vk;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The newest Vulkan version that the instance requests.
const API_VERSION: u32 = vk::API_VERSION_1_2;

/// The maximum number of devices, as in every release.
const MOST_DEVICES: usize = 8;

/// A device, with everything that is needed to compute on it.
pub(crate) struct VulkanDevice {
    /// The logical device, which lives as long as the process.
    pub(super) device: ash::Device,
    /// The names, versions and limits of the device.
    pub(super) properties: vk::PhysicalDeviceProperties,
    /// The subgroup properties: the number of invocations that run in lockstep.
    pub(super) subgroup: vk::PhysicalDeviceSubgroupProperties<'static>,
    /// The name of the driver; empty if the driver states none (Vulkan 1.1 and before).
    pub(super) driver_name: String,
    pub(super) features: Features,
    /// The heaps of the device and their memory types.
    pub(super) memory: vk::PhysicalDeviceMemoryProperties,
    /// The index of the memory type of buffers.
    pub(super) device_memory: u32,
    /// The index of the memory type of staging.
    pub(super) host_memory: u32,
    /// The recorded work that is not yet submitted. It is in a lock, because Vulkan requires callers to synchronize the use of a
    /// queue.
    queue: Mutex<VulkanQueue>,
}

// SAFETY: Vulkan objects may be used from any thread unless the specification requires external synchronization. The objects that
// require it (queue, command buffers, descriptor pools) are in the lock. The property structs hold null chain pointers.
unsafe impl Send for VulkanDevice {}
// SAFETY: Vulkan objects may be used from any thread unless the specification requires external synchronization. The objects that
// require it (queue, command buffers, descriptor pools) are in the lock. The property structs hold null chain pointers.
unsafe impl Sync for VulkanDevice {}

/// The features that shaders may use on this device.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Features {
    pub(super) float64: bool,
    pub(super) int64: bool,
    pub(super) int16: bool,
    pub(super) float16: bool,
    pub(super) int8: bool,
    pub(super) storage8: bool,
    pub(super) storage16: bool,
    pub(super) push_descriptor: bool,
    pub(super) dedicated_allocation: bool,
}

impl VulkanDevice {
    /// Locks the queue for this thread until the guard is dropped.
    pub(super) fn queue(&self) -> MutexGuard<'_, VulkanQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Allocates memory that the host can access, for the host's side of a copy.
    pub(super) fn staging(&self, nbytes: usize) -> Result<VulkanBuffer> {
        VulkanBuffer::staging(&self.device, nbytes, self.host_memory)
    }
}

/// Loads Vulkan and opens every device with a compute queue. It is called once. Nothing is ever closed, because layers and drivers
/// may fail when they are closed while a process ends.
pub(super) fn open_all() -> Result<Vec<VulkanDevice>> {
    // SAFETY: loading a library runs its initialisers; the system's Vulkan loader is trusted with that.
    let entry = unsafe { ash::Entry::load() }.map_err(|error| no_driver("Vulkan", error))?;
    let application = vk::ApplicationInfo::default()
        .application_name(c"tvmspec")
        .api_version(API_VERSION);
    let create = vk::InstanceCreateInfo::default().application_info(&application);
    // SAFETY: the structs live through the call.
    let instance = unsafe { entry.create_instance(&create, None) }
        .map_err(|code| no_driver("Vulkan", format_args!("vkCreateInstance: {code}")))?;
    // SAFETY: the instance is alive, and stays so.
    let physical = Vulkan::checked("vkEnumeratePhysicalDevices", unsafe {
        instance.enumerate_physical_devices()
    })?;
    let devices: Vec<VulkanDevice> = physical
        .into_iter()
        .filter_map(|physical| open(&instance, physical).transpose())
        .take(MOST_DEVICES)
        .collect::<Result<_>>()?;
    // The entry is leaked, because devices still use the library that it loaded.
    std::mem::forget(entry);
    Ok(devices)
}

/// Opens a device, or returns `None` if it cannot compute.
fn open(instance: &ash::Instance, physical: vk::PhysicalDevice) -> Result<Option<VulkanDevice>> {
    // SAFETY: the instance is alive and the physical device belongs to it.
    let families = unsafe { instance.get_physical_device_queue_family_properties(physical) };
    // The first suitable family is chosen, because only one queue is used.
    let computes = families
        .iter()
        .position(|family| family.queue_flags.contains(vk::QueueFlags::COMPUTE));
    // SAFETY: the instance is alive and the physical device belongs to it.
    let memory = unsafe { instance.get_physical_device_memory_properties(physical) };
    let (Some(family), Some((device_memory, host_memory))) = (computes, memory_types(&memory))
    else {
        return Ok(None);
    };
    let family = family as u32;
    let mut subgroup = vk::PhysicalDeviceSubgroupProperties::default();
    let mut driver = vk::PhysicalDeviceDriverProperties::default();
    let mut properties = vk::PhysicalDeviceProperties2::default()
        .push_next(&mut subgroup)
        .push_next(&mut driver);
    // SAFETY: the instance is alive and the physical device belongs to it; the chain lives through the call.
    unsafe { instance.get_physical_device_properties2(physical, &mut properties) };
    let properties = properties.properties;

    let mut has11 = vk::PhysicalDeviceVulkan11Features::default();
    let mut has12 = vk::PhysicalDeviceVulkan12Features::default();
    let mut has = vk::PhysicalDeviceFeatures2::default();
    // A device of an older version must not get structs of a newer one in the chain.
    let newer = properties.api_version >= vk::API_VERSION_1_2;
    if newer {
        has = has.push_next(&mut has11).push_next(&mut has12);
    }
    // SAFETY: the instance is alive and the physical device belongs to it; the chain lives through the call.
    unsafe { instance.get_physical_device_features2(physical, &mut has) };
    let has = has.features;
    // SAFETY: the instance is alive and the physical device belongs to it.
    let extensions =
        unsafe { instance.enumerate_device_extension_properties(physical) }.unwrap_or_default();
    let extension = |name| {
        extensions
            .iter()
            .any(|known| known.extension_name_as_c_str() == Ok(name))
    };
    let yes = |flag: vk::Bool32| flag == vk::TRUE;
    let features = Features {
        float64: yes(has.shader_float64),
        int64: yes(has.shader_int64),
        int16: yes(has.shader_int16),
        float16: yes(has12.shader_float16),
        int8: yes(has12.shader_int8),
        storage8: yes(has12.storage_buffer8_bit_access),
        storage16: yes(has11.storage_buffer16_bit_access),
        push_descriptor: extension(c"VK_KHR_push_descriptor"),
        dedicated_allocation: properties.api_version >= vk::API_VERSION_1_1
            || extension(c"VK_KHR_dedicated_allocation"),
    };

    // All supported features are enabled: shaders may use only enabled features, and enabling them is free.
    let wanted = vk::PhysicalDeviceFeatures::default()
        .shader_float64(features.float64)
        .shader_int64(features.int64)
        .shader_int16(features.int16);
    let mut wanted11 = vk::PhysicalDeviceVulkan11Features::default()
        .storage_buffer16_bit_access(features.storage16);
    let mut wanted12 = vk::PhysicalDeviceVulkan12Features::default()
        .shader_float16(features.float16)
        .shader_int8(features.int8)
        .storage_buffer8_bit_access(features.storage8);
    let priorities = [1.0];
    let queues = [vk::DeviceQueueCreateInfo::default()
        .queue_family_index(family)
        .queue_priorities(&priorities)];
    let mut create = vk::DeviceCreateInfo::default()
        .queue_create_infos(&queues)
        .enabled_features(&wanted);
    if newer {
        create = create.push_next(&mut wanted11).push_next(&mut wanted12);
    }
    // SAFETY: the structs live through the call.
    let device = Vulkan::checked("vkCreateDevice", unsafe {
        instance.create_device(physical, &create, None)
    })?;
    let queue = Mutex::new(VulkanQueue::new(&device, family)?);
    let driver_name = driver
        .driver_name_as_c_str()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    let subgroup = vk::PhysicalDeviceSubgroupProperties {
        p_next: std::ptr::null_mut(),
        _marker: std::marker::PhantomData,
        ..subgroup
    };
    Ok(Some(VulkanDevice {
        device,
        properties,
        subgroup,
        driver_name,
        features,
        memory,
        device_memory,
        host_memory,
        queue,
    }))
}

/// Returns the best memory type for buffers, and the one for staging, which the host can access without flushing.
fn memory_types(memory: &vk::PhysicalDeviceMemoryProperties) -> Option<(u32, u32)> {
    let types = memory.memory_types_as_slice();
    let with = |flags| {
        types
            .iter()
            .position(|of| of.property_flags.contains(flags))
            .map(|at| at as u32)
    };
    let host =
        with(vk::MemoryPropertyFlags::HOST_VISIBLE | vk::MemoryPropertyFlags::HOST_COHERENT)?;
    // A device that shares the memory of the host may have no separate memory.
    let device = with(vk::MemoryPropertyFlags::DEVICE_LOCAL).unwrap_or(host);
    Some((device, host))
}
