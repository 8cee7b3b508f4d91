//! Helpers that several tests share.

// Each program uses only some of them.
#![allow(dead_code)]

pub(crate) mod cargo;
pub(crate) mod cases;
#[cfg(feature = "suite")]
pub(crate) mod device_memory;
pub(crate) mod folder;
#[cfg(feature = "suite")]
pub(crate) mod goldens;
#[cfg(feature = "target")]
pub(crate) mod observed_targets;
pub(crate) mod python;
#[cfg(all(unix, feature = "rpc", feature = "runtime"))]
pub(crate) mod rpc_maker;
#[cfg(all(unix, feature = "rpc", feature = "runtime"))]
pub(crate) mod rpc_peer;
pub(crate) mod schema;
pub(crate) mod separate_process;
#[cfg(feature = "cli")]
pub(crate) mod serving;
pub(crate) mod skip;
pub(crate) mod source;
pub(crate) mod test_scale;
