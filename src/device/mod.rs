//! Devices: memory, copies, streams, workspace and kernels, with one common contract.
//!
//! | file            | content                                                              | rules            |
//! |-----------------|----------------------------------------------------------------------|------------------|
//! | `api`           | [`DeviceApi`], the contract, with its defaults                       | DEV-12 .. DEV-18, DEV-20 .. DEV-22, DEV-24 |
//! | `handle`        | handles of memory and of queues, which only their device can interpret | DEV-38         |
//! | `attribute`     | the attributes of a device, by release                               | DEV-08 .. DEV-11 |
//! | `device_type`   | the types of device and their names; remote devices                  | DEV-06, DEV-57   |
//! | `manager`       | finding the API of a device; operations common to all devices        | DEV-01 .. DEV-07, DEV-19, DEV-20, DEV-34 |
//! | `built_in`      | the devices of this build by name, and their timers                  | DEV-03           |
//! | `install`       | the device functions in the global registry                          | DEV-42, DEV-43   |
//! | `stream`        | the current device and the current streams of a thread               | DEV-22, DEV-23, DEV-55 |
//! | `shape`         | the size of a tensor in bytes, and whether it is contiguous          | DEV-15, DEV-17   |
//! | `pool`          | the workspace pool                                                   | DEV-25 .. DEV-33, DEV-35 |
//! | `launch`        | thread axes, dynamic shared memory, argument packing                 | DEV-47 .. DEV-53 |
//! | `module`        | device modules: loaded late, once per device                         | DEV-54 .. DEV-56 |
//! | `load`          | device modules from payloads, and their loaders                      | DEV-54           |
//! | `tensor`        | tensors on a device, and copies between them and the host            |                  |
//! | `timer`         | timers and the time evaluator                                        | DEV-44, DEV-45   |
//! | `error`         | constructors of [`Error`] for the calls of this crate's devices       |                  |
//! | `c_table`       | a device as a table of C functions, in both directions               | DEV-02           |
//! | `cpu`           | the host                                                             |                  |
//! | `simulated`     | an asynchronous device without hardware, for tests                   |                  |
//! | `opencl`, `vulkan`, `cuda`, `hip` | hardware devices; the first call loads the driver  | DEV-51, DEV-52   |
//! | `backend`       | the common part of the hardware devices                              |                  |
//!
//! To add a device, implement [`DeviceApi`]. `tvmspec::conformance::device::contract` checks it against every rule of the chapter,
//! with the cases of the source tree or of the feature `embed`.
//!
//! ```
//! use tvmspec::device::{Attribute, AttributeValue, Device, DeviceApi, cpu};
//!
//! let cpu = cpu::cpu();
//! assert!(matches!(cpu.attribute(Device::CPU, Attribute::Exist)?, AttributeValue::Int(1)));
//! # Ok::<(), tvmspec::Error>(())
//! ```

pub mod api;
pub mod attribute;
#[cfg(any(
    feature = "cuda",
    feature = "hip",
    feature = "opencl",
    feature = "vulkan"
))]
pub(crate) mod backend;
mod built_in;
pub mod c_table;
pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
pub mod device_type;
pub(crate) mod error;
mod handle;
#[cfg(feature = "hip")]
pub mod hip;
mod install;
pub mod launch;
pub mod load;
pub mod manager;
pub mod module;
#[cfg(feature = "opencl")]
pub mod opencl;
pub mod pool;
mod shape;
pub mod simulated;
pub mod stream;
pub(crate) mod tensor;
pub mod timer;
#[cfg(feature = "vulkan")]
pub mod vulkan;

crate::rule::chapter_rules!("device");
pub(crate) use rules::*;

pub(crate) use crate::function::{Error, Result};
pub use crate::tensor::{Device, Dtype};
pub use api::{CopyRequest, DeviceApi};
pub use attribute::{Attribute, AttributeValue};
#[cfg(feature = "rpc")]
pub(crate) use built_in::bring_remote;
pub use built_in::timer;
pub use handle::{Space, Stream};
pub(crate) use install::install;
pub(crate) use install::provide;
pub use manager::{Manager, existing_devices};
pub use shape::{TensorRef, byte_size, is_contiguous};

/// The alignment of ordinary allocations in bytes (DEV-14): 64 (128 in 0.7 to 0.9).
pub(crate) const ALIGNMENT: usize = 64;
/// The alignment of workspace in bytes (DEV-24), also 64.
pub(crate) const WORKSPACE_ALIGNMENT: usize = 64;
