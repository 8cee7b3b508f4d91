//! The exported C symbols. No logic of their own.

pub mod backend;
pub mod device;
pub mod extras;
pub mod ffi;
pub mod half;
#[cfg(feature = "inspect")]
pub mod inspect;
pub mod legacy;
pub mod legacy_device;

use std::ffi::c_void;

/// A function with a slot: its name, and its address.
type SlotFunction = (&'static str, fn() -> *mut c_void);

/// The address of an exported function that libraries reach through a slot.
pub(crate) fn function(name: &str) -> Option<*mut c_void> {
    let all = backend::SLOTS
        .iter()
        .chain(legacy::SLOTS)
        .chain(ffi::module::SLOTS);
    let mut found = all.filter(|(known, _)| *known == name);
    found.next().map(|(_, address)| address())
}
