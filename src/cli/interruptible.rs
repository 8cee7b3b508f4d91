//! Compilers that a command starts: a signal that ends the command ends them too, and leaves no files of theirs.

use std::io;

/// Calls `link`, which starts compilers and removes their files when they fail.
#[cfg(unix)]
pub(crate) fn link<T>(link: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
    use signal_hook::flag::register_usize;
    use signal_hook::low_level::emulate_default_handler;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use tvmspec::conformance::adapter::family;

    let signal = Arc::new(AtomicUsize::new(0));
    let is_linking = Arc::new(AtomicBool::new(true));
    for number in [SIGHUP, SIGINT, SIGQUIT, SIGTERM] {
        if !family::is_ignored(number) {
            register_usize(number, Arc::clone(&signal), number as usize)?;
        }
    }
    // A signal that was not caught is 0, and nothing.
    let end_process = move || match signal.load(Ordering::SeqCst) as i32 {
        0 => Ok(()),
        number => emulate_default_handler(number),
    };
    // A compiler starts others, which are ours once it is killed.
    family::adopt();
    let (end_at_once, is_busy) = (end_process.clone(), Arc::clone(&is_linking));
    family::end_on_signals(move |_| {
        if !is_busy.load(Ordering::SeqCst) {
            let _ = end_at_once();
        }
    })?;
    let linked = link();
    is_linking.store(false, Ordering::SeqCst);
    end_process()?;
    linked
}

/// Elsewhere a signal ends the command alone.
#[cfg(not(unix))]
pub(crate) fn link<T>(link: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    link()
}
