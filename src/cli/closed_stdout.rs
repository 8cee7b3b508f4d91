//! Whether stdout was closed when the program started. Before `main` Rust's runtime opens `/dev/null` in its place, and what is written
//! there would be lost without an error.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

static WAS_CLOSED: AtomicBool = AtomicBool::new(false);

/// Fails where stdout was closed.
pub(crate) fn check() -> io::Result<()> {
    // Relaxed: it is written before any thread starts.
    match WAS_CLOSED.load(Ordering::Relaxed) {
        true => Err(io::Error::other("stdout: it is closed")),
        false => Ok(()),
    }
}

/// The system calls what is in this section before Rust's runtime looks at stdout.
#[cfg(unix)]
#[used]
// SAFETY: the section holds pointers to functions without arguments and result, as this one.
#[cfg_attr(
    target_vendor = "apple",
    unsafe(link_section = "__DATA,__mod_init_func")
)]
#[cfg_attr(not(target_vendor = "apple"), unsafe(link_section = ".init_array"))]
static AT_START: extern "C" fn() = look;

/// Asks for the flags of stdout. Nothing of Rust's runtime is used, which has not started.
#[cfg(unix)]
extern "C" fn look() {
    let is_closed = rustix::io::fcntl_getfd(rustix::stdio::stdout()).is_err();
    WAS_CLOSED.store(is_closed, Ordering::Relaxed);
}
