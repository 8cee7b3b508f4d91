//! Devices, their memory and their modules.

mod device;
mod device_library;
mod device_modules;
#[path = "../support/mod.rs"]
mod support;
