//! The C function for a device implemented in C, in addition to the registry: `include/tvmspec_device.h`.

use std::ffi::c_int;

/// Registers the devices of this library as `device_api.<name>`, for C code that calls their tables. Names that were registered before
/// stay. Returns 0.
#[unsafe(no_mangle)]
pub extern "C" fn tvmspec_install_devices() -> c_int {
    // DEV-02: the manager finds the devices of this build without the registry, but C code needs the registry.
    crate::device::install();
    0
}
