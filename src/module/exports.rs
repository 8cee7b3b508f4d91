//! The C interface by name, which compiled libraries of any release expect from the process that loads them (MOD-05, MOD-26).
//!
//! The functions are in a room above this one, which provides their addresses when the library is installed.

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

/// Makes `exports` the functions that libraries find. Of several calls the first counts.
pub(crate) fn provide(exports: &'static [Export]) {
    // MOD-05: slots and jumps hold the addresses of the first call for as long as the process lives.
    ALL.get_or_init(|| exports);
}

/// Every function, in the order of the rooms that they are in.
pub(crate) fn all() -> &'static [Export] {
    // MOD-26: before it no function is known, and a library that needs one would be rejected.
    crate::install();
    ALL.get().copied().unwrap_or_default()
}

/// The function `name`.
pub(crate) fn find(name: &str) -> Option<Export> {
    all().iter().find(|export| export.name == name).copied()
}
