//! What this build brings: its devices by name, and the clocks that they have.

#[cfg(any(feature = "cuda", feature = "hip"))]
use crate::device::backend::events::EventTimer;
use crate::device::timer::{DefaultTimer, Timer};
use crate::device::{Device, DeviceApi, Result, cpu};

/// Returns a device API without loading its driver.
pub(super) type Api = fn() -> &'static dyn DeviceApi;

/// The devices of this build, by name. No driver is loaded by naming them.
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

/// The API of remote devices, once a session has been made.
#[cfg(feature = "rpc")]
static REMOTE_DEVICES: std::sync::OnceLock<&'static dyn DeviceApi> = std::sync::OnceLock::new();

/// Brings the API of the devices of all sessions (DEV-03), which is of an upper chapter.
#[cfg(feature = "rpc")]
pub(crate) fn bring_remote(api: &'static dyn DeviceApi) {
    REMOTE_DEVICES.get_or_init(|| api);
}

/// The device of this build that the registry would know as `device_api.<name>`.
pub(super) fn own(name: &str) -> Option<&'static dyn DeviceApi> {
    // DEV-03: not in `OWN`, whose rows are devices of this process: those of servers come with the first session.
    #[cfg(feature = "rpc")]
    if name == "rpc" {
        return REMOTE_DEVICES.get().copied();
    }
    OWN.iter()
        .find_map(|(known, api)| (*known == name).then(api))
}

/// The types of devices that have a clock of their own.
#[cfg(feature = "cuda")]
const CUDA: i32 = Device::cuda(0).kind;
#[cfg(feature = "hip")]
const ROCM: i32 = Device::rocm(0).kind;

/// The best timer of `device`: its own clock where it has one, else the host's.
///
/// # Errors
///
/// What CUDA or HIP answers when an event is created; none for other devices.
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
    // DEV-44: for OpenCL as well, which has a timer of its own upstream; Vulkan has none there either.
    Ok(Box::new(DefaultTimer::new(api, device)))
}
