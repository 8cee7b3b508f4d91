//! Compiled functions that report their own names.

use crate::function::{Error, Function};
use std::cell::RefCell;
use std::ffi::{c_int, c_void};

thread_local! {
    /// Name of the function that was called last on this thread.
    static CALLED: RefCell<Option<&'static str>> = const { RefCell::new(None) };
}

macro_rules! named {
    ($($function:ident $name:literal)*) => {
        $(
            /// Records its name, with either calling convention.
            unsafe extern "C-unwind" fn $function(_: *mut c_void, _: *const c_void, _: c_int, _: *mut c_void) -> c_int {
                CALLED.set(Some($name));
                0
            }
        )*

        /// Returns the address of a function that records `name`; names outside the list share one.
        pub(super) fn address(name: &str) -> *const c_void {
            match name {
                $($name => $function as *const c_void,)*
                _ => other as *const c_void,
            }
        }
    };
}

named! {
    f "f"
    tvm_ffi_f "__tvm_ffi_f"
    tvm_ffi_main "__tvm_ffi_main"
    main "main"
    tvm_main "__tvm_main__"
    p_f "p_f"
    tvm_ffi_p_f "__tvm_ffi_p_f"
}

/// Stands for every function whose name is outside the list.
unsafe extern "C-unwind" fn other(
    _: *mut c_void,
    _: *const c_void,
    _: c_int,
    _: *mut c_void,
) -> c_int {
    CALLED.set(Some("another"));
    0
}

/// Returns the name of the compiled function that `function` calls.
pub(super) fn name_of(function: &Function) -> Result<&'static str, Error> {
    // Cleared first, so that a function without a record does not show the name of the previous one.
    CALLED.set(None);
    function.call_packed(&[])?;
    Ok(CALLED.take().unwrap_or("nothing"))
}
