//! Compilers that a command starts: a signal that ends the command ends them too, and leaves no files of theirs.

use std::io;

/// Calls `link`, which starts compilers and removes their files when they fail.
#[cfg(unix)]
pub(crate) fn link<T>(link: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Arc, Mutex, PoisonError};
    use std::thread;
    use std::time::Duration;
    use tvmspec::conformance::adapter::family;

    let is_signalled = Arc::new(AtomicBool::new(false));
    let links = Arc::new(Mutex::new(()));
    for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&is_signalled))?;
    }
    // A compiler starts others, which are ours once it is killed.
    family::adopt();
    let cleaned = Arc::clone(&links);
    family::end_on_signals(move || drop(cleaned.lock().unwrap_or_else(PoisonError::into_inner)))?;
    let held = links.lock().unwrap_or_else(PoisonError::into_inner);
    let linked = link();
    drop(held);
    if linked.is_err() && is_signalled.load(Ordering::SeqCst) {
        // The compiler was killed, and the signal is about to end this process: its error is no message.
        thread::sleep(Duration::from_secs(3));
    }
    linked
}

/// Elsewhere a signal ends the command alone.
#[cfg(not(unix))]
pub(crate) fn link<T>(link: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    link()
}
