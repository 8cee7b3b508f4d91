//! What C needs to bring a device of its own, beside the registry: `include/tvmspec_device.h`.

use std::ffi::c_int;

/// Registers the devices of this library as `device_api.<name>`, for C that wants to call their tables. Names that
/// were registered before stay. Returns 0.
#[unsafe(no_mangle)]
pub extern "C" fn tvmspec_install_devices() -> c_int {
    // DEV-02: the manager finds the devices of this build without the registry; C has the registry alone.
    crate::device::install();
    0
}
