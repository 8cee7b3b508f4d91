//! The C interface by name, which compiled libraries of any release expect from the process that loads them (MOD-05, MOD-26).
//!
//! The functions are defined in a higher layer, which provides their addresses when the library is installed.

use std::ffi::c_void;
use std::sync::OnceLock;

static ALL: OnceLock<&[Export]> = OnceLock::new();

/// A function of the C interface.
#[derive(Clone, Copy)]
pub(crate) struct Export {
    pub(crate) name: &'static str,
    address: *const c_void,
}

// SAFETY: the address of code, which is never written.
unsafe impl Sync for Export {}

impl Export {
    pub(crate) const fn new(name: &'static str, address: *const c_void) -> Export {
        Export { name, address }
    }

    pub(crate) fn address(self) -> *mut c_void {
        self.address.cast_mut()
    }
}

/// Sets the functions that libraries find. Only the first call has an effect.
pub(crate) fn provide(exports: &'static [Export]) {
    // MOD-05: slots and trampolines keep the addresses of the first call for the life of the process.
    ALL.get_or_init(|| exports);
}

/// Returns all functions, in the order of the files that define them.
pub(crate) fn all() -> &'static [Export] {
    // MOD-26: without it no function would be known, and a library that needs one would be rejected.
    crate::install();
    ALL.get().copied().unwrap_or_default()
}

/// Returns the function `name`.
pub(crate) fn find(name: &str) -> Option<Export> {
    all().iter().find(|export| export.name == name).copied()
}
