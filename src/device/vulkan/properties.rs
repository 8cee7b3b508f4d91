//! Attributes and target properties of a Vulkan device.

use super::instance::VulkanDevice;
use crate::device::{Attribute, AttributeValue};
use ash::vk;

/// Returns an attribute, from the properties that the device stated when it was opened (DEV-08).
pub(super) fn attribute(on: &VulkanDevice, attribute: Attribute) -> AttributeValue {
    let limits = &on.properties.limits;
    match attribute {
        Attribute::MaxThreadsPerBlock => int(limits.max_compute_work_group_invocations),
        Attribute::WarpSize => int(on.subgroup.subgroup_size),
        Attribute::MaxSharedMemoryPerBlock => int(limits.max_compute_shared_memory_size),
        // DEV-11: Vulkan has no compute version, so the version of its API is used, with the patch.
        Attribute::ComputeVersion => version(on.properties.api_version),
        Attribute::DeviceName => name(on),
        Attribute::MaxThreadDimensions => {
            let [x, y, z] = limits.max_compute_work_group_size;
            AttributeValue::Text(format!("[{x}, {y}, {z}]"))
        }
        // DEV-08: the constant of the headers, as upstream; here the headers that `ash` was generated from.
        Attribute::ApiVersion => int(vk::HEADER_VERSION),
        Attribute::DriverVersion => version(on.properties.driver_version),
        Attribute::TotalGlobalMemory => {
            let types = on.memory.memory_types_as_slice();
            // The size of the heap that buffers come from, not of all heaps together.
            let heap = types
                .get(on.device_memory as usize)
                .map(|of| of.heap_index as usize);
            let heap = heap.and_then(|heap| on.memory.memory_heaps_as_slice().get(heap));
            heap.and_then(|heap| i64::try_from(heap.size).ok())
                .map_or(AttributeValue::None, AttributeValue::Int)
        }
        // DEV-08: Vulkan has no query for clock, registers and caches, and free memory would need VK_EXT_memory_budget.
        _ => AttributeValue::None,
    }
}

/// Returns a property that code generators ask for by name; null for an unknown name.
pub(super) fn target_property(on: &VulkanDevice, property: &str) -> AttributeValue {
    let (limits, features) = (&on.properties.limits, &on.features);
    let [x, y, z] = limits.max_compute_work_group_size;
    let flag = |flag: bool| AttributeValue::Int(flag.into());
    match property {
        "supports_float32" | "supports_int32" | "supports_storage_buffer_storage_class" => {
            flag(true)
        }
        "supports_float16" => flag(features.float16),
        "supports_float64" => flag(features.float64),
        "supports_int8" => flag(features.int8),
        "supports_int16" => flag(features.int16),
        "supports_int64" => flag(features.int64),
        "supports_8bit_buffer" => flag(features.storage8),
        "supports_16bit_buffer" => flag(features.storage16),
        "supports_push_descriptor" => flag(features.push_descriptor),
        "supports_dedicated_allocation" => flag(features.dedicated_allocation),
        "supported_subgroup_operations" => int(on.subgroup.supported_operations.as_raw()),
        "max_num_threads" => int(limits.max_compute_work_group_invocations),
        "thread_warp_size" => int(on.subgroup.subgroup_size),
        "max_block_size_x" => int(x),
        "max_block_size_y" => int(y),
        "max_block_size_z" => int(z),
        "max_push_constants_size" => int(limits.max_push_constants_size),
        "max_uniform_buffer_range" => int(limits.max_uniform_buffer_range),
        "max_storage_buffer_range" => int(limits.max_storage_buffer_range),
        "max_per_stage_descriptor_storage_buffer" => {
            int(limits.max_per_stage_descriptor_storage_buffers)
        }
        "max_shared_memory_per_block" => int(limits.max_compute_shared_memory_size),
        "device_name" => name(on),
        "device_type" => AttributeValue::Text(
            match on.properties.device_type {
                vk::PhysicalDeviceType::DISCRETE_GPU => "discrete",
                vk::PhysicalDeviceType::INTEGRATED_GPU => "integrated",
                vk::PhysicalDeviceType::VIRTUAL_GPU => "virtual",
                vk::PhysicalDeviceType::CPU => "cpu",
                _ => "other",
            }
            .into(),
        ),
        "driver_name" => AttributeValue::Text(on.driver_name.clone()),
        "driver_version" => int(on.properties.driver_version),
        "vulkan_api_version" => int(on.properties.api_version),
        // SPIR-V 1.5 belongs to Vulkan 1.2, and 1.3 belongs to Vulkan 1.1.
        "max_spirv_version" => int(match on.properties.api_version {
            version if version >= vk::API_VERSION_1_2 => 0x1_0500,
            version if version >= vk::API_VERSION_1_1 => 0x1_0300,
            _ => 0x1_0000u32,
        }),
        // DEV-08: this includes `supports_integer_dot_product` and `supports_cooperative_matrix`, which 0.27 answers.
        _ => AttributeValue::None,
    }
}

/// Returns a Vulkan number as an answer.
fn int(number: u32) -> AttributeValue {
    AttributeValue::Int(number.into())
}

/// Returns the device's name; null if the text has no end.
fn name(on: &VulkanDevice) -> AttributeValue {
    let name = on.properties.device_name_as_c_str();
    name.map_or(AttributeValue::None, |name| {
        AttributeValue::Text(name.to_string_lossy().into_owned())
    })
}

/// Returns `major.minor.patch` of a version that Vulkan packs into 32 bits (DEV-11). Drivers may pack their own versions
/// differently.
fn version(packed: u32) -> AttributeValue {
    let (major, minor, patch) = (
        vk::api_version_major(packed),
        vk::api_version_minor(packed),
        vk::api_version_patch(packed),
    );
    AttributeValue::Text(format!("{major}.{minor}.{patch}"))
}
