//! Vulkan kernels.

use super::kernel_adds_one;
use tvmspec::device::Device;
use tvmspec::device::launch::Arg;
use tvmspec::release::Layout;

#[test]
fn vulkan_kernel_with_push_constants() {
    for (file, layout) in [
        ("vulkan-0.8.payload", Layout::V0_7),
        ("vulkan-0.27.payload", Layout::V0_22),
    ] {
        let extra = [Arg::Float(1.0)];
        kernel_adds_one(
            "vulkan",
            file,
            layout,
            Device::vulkan(0),
            &extra,
            "vulkan_kernel_with_push_constants",
        );
    }
}

#[test]
fn vulkan_kernel_with_a_uniform_buffer() {
    let (file, extra) = ("vulkan-uniform-0.27.payload", [Arg::Float(1.0)]);
    kernel_adds_one(
        "vulkan",
        file,
        Layout::V0_22,
        Device::vulkan(0),
        &extra,
        "vulkan_kernel_with_a_uniform_buffer",
    );
}
