//! Compilers that a command starts. A signal that ends the command also ends them and removes their files.
//!
//! An embedded command leaves signals to its program, whose other children must survive.

use std::io;

/// Calls `link`, which starts compilers and removes their files when they fail.
#[cfg(unix)]
pub(crate) fn link<T>(link: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    use signal_hook::low_level::emulate_default_handler;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
    use tvmspec::conformance::adapter::family;

    if super::embedding::is_embedded() {
        return link();
    }
    let is_linking = Arc::new(AtomicBool::new(true));
    // The number of the signal; 0 before any signal.
    let caught = Arc::new(AtomicI32::new(0));
    // A compiler starts further processes, which this process adopts after the compiler is killed.
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
        // The compiler was killed and its files are removed, so that its error is not reported.
        signal => emulate_default_handler(signal).and(linked),
    }
}

/// On other systems a signal ends only the command.
#[cfg(not(unix))]
pub(crate) fn link<T>(link: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    link()
}
