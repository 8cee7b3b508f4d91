//! Signal handling for commands that serve: the first signal ends them in an orderly way.

/// The time for which sessions continue after a signal of the system, which later sends one that cannot be caught.
#[cfg(unix)]
pub(super) const GRACE: std::time::Duration = std::time::Duration::from_secs(1);

/// Calls `then` at the first signal. A second Ctrl-C ends the process. SIGTERM and SIGHUP end it after [`GRACE`] in any case. On
/// systems other than Unix, Ctrl-C ends it at once.
pub(crate) fn on_interrupt(then: impl FnOnce() + Send + 'static) {
    #[cfg(unix)]
    {
        // Without a handler the signal ends the process, as on other systems.
        let Ok(mut signals) = signals() else {
            return;
        };
        // In a thread, because a signal handler may call only few functions.
        std::thread::spawn(move || {
            let mut then = Some(then);
            for signal in signals.forever() {
                let is_first = then.take().map(|then| then()).is_some();
                if signal != signal_hook::consts::SIGINT {
                    std::thread::sleep(GRACE);
                    std::process::exit(0);
                }
                if !is_first {
                    let _ = signal_hook::low_level::emulate_default_handler(signal);
                }
            }
        });
    }
    #[cfg(not(unix))]
    drop(then);
}

/// Registers SIGINT, SIGTERM, and SIGHUP unless it is ignored, as under `nohup`.
#[cfg(unix)]
pub(super) fn signals() -> std::io::Result<signal_hook::iterator::Signals> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    use tvmspec::conformance::adapter::family::is_ignored;
    let hangup = (!is_ignored(SIGHUP)).then_some(SIGHUP);
    signal_hook::iterator::Signals::new([SIGINT, SIGTERM].into_iter().chain(hangup))
}
