//! The devices of this build, by name, and their timers.

#[cfg(any(feature = "cuda", feature = "hip"))]
use crate::device::backend::events::EventTimer;
use crate::device::timer::{DefaultTimer, Timer};
use crate::device::{Device, DeviceApi, Result, cpu};

/// Returns a device API without loading its driver.
pub(super) type Api = fn() -> &'static dyn DeviceApi;

/// The devices of this build, by name. The table loads no driver.
pub(super) const OWN: &[(&str, Api)] = &[
    ("cpu", || cpu::cpu()),
    #[cfg(feature = "opencl")]
    ("opencl", || crate::device::opencl::opencl()),
    #[cfg(feature = "vulkan")]
    ("vulkan", || crate::device::vulkan::vulkan()),
    #[cfg(feature = "cuda")]
    ("cuda", || crate::device::cuda::cuda()),
    #[cfg(feature = "hip")]
    ("rocm", || crate::device::hip::hip()),
];

/// The API of remote devices, which is set when the first session is created.
#[cfg(feature = "rpc")]
static REMOTE_DEVICES: std::sync::OnceLock<&'static dyn DeviceApi> = std::sync::OnceLock::new();

/// Sets the API of the devices of all sessions (DEV-03). A later chapter implements it.
#[cfg(feature = "rpc")]
pub(crate) fn bring_remote(api: &'static dyn DeviceApi) {
    REMOTE_DEVICES.get_or_init(|| api);
}

/// Returns the device of this build with the registry name `device_api.<name>`.
pub(super) fn find_built_in(name: &str) -> Option<&'static dyn DeviceApi> {
    // DEV-03: `OWN` contains only devices of this process. Remote devices exist only after a session was opened.
    #[cfg(feature = "rpc")]
    if name == "rpc" {
        return REMOTE_DEVICES.get().copied();
    }
    OWN.iter()
        .find_map(|(known, api)| (*known == name).then(api))
}

/// The type of devices that CUDA events can time.
#[cfg(feature = "cuda")]
const CUDA: i32 = Device::cuda(0).kind;
#[cfg(feature = "hip")]
const ROCM: i32 = Device::rocm(0).kind;

/// Returns the best timer of `device`: its own clock if it has one, otherwise the host's.
///
/// # Errors
///
/// Returns the error of CUDA or HIP if an event cannot be created. Other devices never fail.
pub fn timer(api: &'static dyn DeviceApi, device: Device) -> Result<Box<dyn Timer>> {
    #[cfg(feature = "cuda")]
    if device.kind == CUDA {
        let timer = EventTimer::<crate::device::cuda::Cuda>::new(device.id)?;
        return Ok(Box::new(timer));
    }
    #[cfg(feature = "hip")]
    if device.kind == ROCM {
        let timer = EventTimer::<crate::device::hip::Hip>::new(device.id)?;
        return Ok(Box::new(timer));
    }
    // DEV-44: this also applies to OpenCL, although upstream has a timer for it. Upstream has none for Vulkan.
    Ok(Box::new(DefaultTimer::new(api, device)))
}
