//! What libraries and modules register and look up.

use super::enter;
use crate::module::system;
use std::ffi::{CStr, c_char, c_void};

/// Registers a symbol of the system library; another address for a known name replaces it with a warning.
///
/// # Safety
/// `name` is a C string; `symbol` stays for the life of the process.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn TVMFFIEnvModRegisterSystemLibSymbol(
    name: *const c_char,
    symbol: *mut c_void,
) -> i32 {
    enter(|| {
        // SAFETY: says the caller.
        let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
        if system::register(&name, symbol) {
            eprintln!("Warning: SystemLib symbol {name} is overridden with a different address");
        }
        Ok(())
    })
}
