//! Ctrl-C for commands that serve: the first ends them in order, the second at once.

/// Calls `then` at the first SIGINT or SIGTERM; another one ends the process. Elsewhere than on Unix Ctrl-C ends it at once.
pub(crate) fn on_interrupt(then: impl FnOnce() + Send + 'static) {
    #[cfg(unix)]
    {
        use signal_hook::consts::{SIGINT, SIGTERM};
        use signal_hook::iterator::Signals;
        use signal_hook::low_level::emulate_default_handler;
        // Without a handler the signal ends the process, as it does elsewhere.
        let Ok(mut signals) = Signals::new([SIGINT, SIGTERM]) else {
            return;
        };
        // In a thread: hardly anything may be called in the handler of a signal itself.
        std::thread::spawn(move || {
            let mut then = Some(then);
            for signal in signals.forever() {
                match then.take() {
                    Some(then) => then(),
                    None => {
                        let _ = emulate_default_handler(signal);
                    }
                }
            }
        });
    }
    #[cfg(not(unix))]
    drop(then);
}
