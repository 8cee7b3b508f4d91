//! Compiled functions that report their arguments.

use crate::function::{Error, Function};
use std::cell::RefCell;
use std::ffi::{c_int, c_void};

thread_local! {
    /// The name of the function that was called last on this thread.
    static CALLED: RefCell<Option<&'static str>> = const { RefCell::new(None) };
}

macro_rules! named {
    ($($function:ident $name:literal)*) => {
        $(
            /// Says its name, whichever way it is called.
            unsafe extern "C-unwind" fn $function(_: *mut c_void, _: *const c_void, _: c_int, _: *mut c_void) -> c_int {
                CALLED.set(Some($name));
                0
            }
        )*

        /// The address of a function that says that it is `name`; names outside the list share one.
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

/// For every name outside of the list.
unsafe extern "C-unwind" fn other(
    _: *mut c_void,
    _: *const c_void,
    _: c_int,
    _: *mut c_void,
) -> c_int {
    CALLED.set(Some("another"));
    0
}

/// Which of the functions above `function` calls.
pub(super) fn name_of(function: &Function) -> Result<&'static str, Error> {
    // A function that is none of these must not show the name of the one before.
    CALLED.set(None);
    function.call(&[])?;
    Ok(CALLED.take().unwrap_or("nothing"))
}
