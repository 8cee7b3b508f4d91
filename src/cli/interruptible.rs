//! Compilers that a command starts: a signal that ends the command ends them too, and leaves no files of theirs.

use std::io;

/// Calls `link`, which starts compilers and removes their files when they fail.
#[cfg(unix)]
pub(crate) fn link<T>(link: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    use signal_hook::low_level::emulate_default_handler;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
    use tvmspec::conformance::adapter::family;

    let is_linking = Arc::new(AtomicBool::new(true));
    // The number of the signal; 0 before one came.
    let caught = Arc::new(AtomicI32::new(0));
    // A compiler starts others, which are ours once it is killed.
    family::adopt();
    let (is_busy, noted) = (Arc::clone(&is_linking), Arc::clone(&caught));
    family::end_on_signals(move |signal| {
        noted.store(signal, Ordering::SeqCst);
        if !is_busy.load(Ordering::SeqCst) {
            let _ = emulate_default_handler(signal);
        }
    })?;
    let linked = link();
    is_linking.store(false, Ordering::SeqCst);
    match caught.load(Ordering::SeqCst) {
        0 => linked,
        // The compiler was killed, and its files are gone: its error is no message.
        signal => emulate_default_handler(signal).and(linked),
    }
}

/// Elsewhere a signal ends the command alone.
#[cfg(not(unix))]
pub(crate) fn link<T>(link: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    link()
}
