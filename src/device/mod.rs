//! Devices: memory, copies, streams, workspace and kernels behind one contract.
//!
//! | file           | what                                                              | rules            |
//! |----------------|-------------------------------------------------------------------|------------------|
//! | `api`          | [`DeviceApi`], the contract, with its defaults                    | DEV-12 .. DEV-24 |
//! | `attribute`    | what a device can be asked                                        | DEV-08 .. DEV-11 |
//! | `manager`      | finding the API of a device                                       | DEV-01 .. DEV-07 |
//! | `pool`         | the workspace pool                                                | DEV-25 .. DEV-35 |
//! | `launch`       | thread axes, dynamic shared memory, argument packing              | DEV-47 .. DEV-53 |
//! | `module`       | device modules: loaded late, once per device                      | DEV-54 .. DEV-56 |
//! | `timer`        | timers and the time evaluator                                     | DEV-44, DEV-45   |
//! | `cpu`          | the host                                                          |                  |
//! | `simulated`    | an asynchronous device without hardware, for tests                |                  |
//! | `opencl`, `vulkan`, `cuda` | real devices; their drivers are loaded when first asked for |                |
//!
//! A device of your own is a type that implements [`DeviceApi`]; `tvmspec::conformance::device::contract` holds it to
//! every rule of the chapter.

pub mod api;
pub mod attribute;
pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
mod error;
#[cfg(any(feature = "opencl", feature = "vulkan"))]
pub(crate) mod handles;
mod install;
pub mod kind;
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
pub mod table;
pub mod timer;
#[cfg(feature = "vulkan")]
pub mod vulkan;

pub use crate::tensor::{Device, Dtype};
pub use api::{Copy, DeviceApi, Space, Stream};
pub use attribute::{Attribute, Value};
pub use error::Error;
pub(crate) use install::install;
pub(crate) use install::provide;
pub use manager::Manager;
pub use shape::{TensorRef, byte_size, is_contiguous};

/// What every fallible call of a device gives.
pub type Result<T> = std::result::Result<T, Error>;

/// Alignment of ordinary allocations in bytes: 64 (128 in 0.7 to 0.9).
pub(crate) const ALIGNMENT: usize = 64;
/// Alignment of workspace in bytes: the same.
pub(crate) const WORKSPACE_ALIGNMENT: usize = 64;
crate::rule::rules! {
    DEV_01 "DEV-01"
    DEV_02 "DEV-02"
    DEV_03 "DEV-03"
    DEV_04 "DEV-04"
    DEV_05 "DEV-05"
    DEV_06 "DEV-06"
    DEV_07 "DEV-07"
    DEV_08 "DEV-08"
    DEV_09 "DEV-09"
    DEV_10 "DEV-10"
    DEV_11 "DEV-11"
    DEV_12 "DEV-12"
    DEV_13 "DEV-13"
    DEV_14 "DEV-14"
    DEV_15 "DEV-15"
    DEV_16 "DEV-16"
    DEV_17 "DEV-17"
    DEV_18 "DEV-18"
    DEV_19 "DEV-19"
    DEV_20 "DEV-20"
    DEV_21 "DEV-21"
    DEV_22 "DEV-22"
    DEV_23 "DEV-23"
    DEV_24 "DEV-24"
    DEV_25 "DEV-25"
    DEV_26 "DEV-26"
    DEV_27 "DEV-27"
    DEV_28 "DEV-28"
    DEV_29 "DEV-29"
    DEV_30 "DEV-30"
    DEV_31 "DEV-31"
    DEV_32 "DEV-32"
    DEV_33 "DEV-33"
    DEV_34 "DEV-34"
    DEV_35 "DEV-35"
    DEV_36 "DEV-36"
    DEV_37 "DEV-37"
    DEV_38 "DEV-38"
    DEV_39 "DEV-39"
    DEV_40 "DEV-40"
    DEV_41 "DEV-41"
    DEV_42 "DEV-42"
    DEV_43 "DEV-43"
    DEV_44 "DEV-44"
    DEV_45 "DEV-45"
    DEV_46 "DEV-46"
    DEV_47 "DEV-47"
    DEV_48 "DEV-48"
    DEV_49 "DEV-49"
    DEV_50 "DEV-50"
    DEV_51 "DEV-51"
    DEV_52 "DEV-52"
    DEV_53 "DEV-53"
    DEV_54 "DEV-54"
    DEV_55 "DEV-55"
    DEV_56 "DEV-56"
    DEV_57 "DEV-57"
    DEV_58 "DEV-58"
}
