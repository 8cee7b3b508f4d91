//! Detection of a closed stdout. Rust's runtime opens `/dev/null` in its place before `main`, so that output would be lost without an
//! error.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

static WAS_CLOSED: AtomicBool = AtomicBool::new(false);

/// Returns an error if stdout was closed when the program started.
pub(crate) fn check() -> io::Result<()> {
    // Relaxed is enough, because it is written before any thread starts.
    if WAS_CLOSED.load(Ordering::Relaxed) {
        Err(io::Error::other("stdout: it is closed"))
    } else {
        Ok(())
    }
}

/// The system calls the functions in this section before Rust's runtime opens stdout.
#[cfg(unix)]
#[used]
// SAFETY: the section holds pointers to functions without arguments and result, as this one.
#[cfg_attr(
    target_vendor = "apple",
    unsafe(link_section = "__DATA,__mod_init_func")
)]
#[cfg_attr(not(target_vendor = "apple"), unsafe(link_section = ".init_array"))]
static AT_START: extern "C" fn() = look;

/// Records whether stdout is closed. Uses nothing of Rust's runtime, which has not started yet.
#[cfg(unix)]
extern "C" fn look() {
    let is_closed = rustix::io::fcntl_getfd(rustix::stdio::stdout()).is_err();
    WAS_CLOSED.store(is_closed, Ordering::Relaxed);
}
