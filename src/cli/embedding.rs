//! Commands in the process of another program, such as the interpreter of Python.
//!
//! Such a command leaves the signals and the streams of the process alone: `-` stands for memory of the program, and warnings are collected.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes that the program and the command share.
pub(crate) type SharedBytes = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// The values that a command gets from the program, and those that it leaves for it.
#[derive(Default)]
pub(crate) struct Exchange {
    /// The name and the bytes of the input `-`.
    pub(crate) input: Option<(String, SharedBytes)>,
    /// The files that the manifest in `input` names.
    pub(crate) files: HashMap<String, Vec<u8>>,
    /// The bytes of the output `-`.
    pub(crate) output: Vec<u8>,
    /// Texts that a command of its own process writes to stderr.
    pub(crate) warnings: Vec<String>,
    /// The name of an input that became shorter while it was read.
    pub(crate) shortened: Option<String>,
}

thread_local! {
    /// The exchange of the command that runs in this thread, if it is embedded.
    static EXCHANGE: RefCell<Option<Exchange>> = const { RefCell::new(None) };
}

/// Set if the process was started for one command.
static OWNS_PROCESS: AtomicBool = AtomicBool::new(false);

/// States that the process was started for one command, which may end it.
pub(crate) fn take_process() {
    OWNS_PROCESS.store(true, Ordering::Relaxed);
}

/// Returns whether the process was started for one command.
pub(crate) fn owns_process() -> bool {
    OWNS_PROCESS.load(Ordering::Relaxed)
}

/// Calls `work` as an embedded command, and returns its result with the exchange.
pub(crate) fn embed<T>(exchange: Exchange, work: impl FnOnce() -> T) -> (T, Exchange) {
    let outer = EXCHANGE.replace(Some(exchange));
    let done = work();
    let exchange = EXCHANGE.replace(outer).unwrap_or_default();
    (done, exchange)
}

/// Returns whether the command of this thread is embedded.
pub(crate) fn is_embedded() -> bool {
    with_exchange(|_| ()).is_some()
}

/// Calls `work` with the exchange. Returns `None` if the command is not embedded.
pub(crate) fn with_exchange<T>(work: impl FnOnce(&mut Exchange) -> T) -> Option<T> {
    EXCHANGE.with_borrow_mut(|exchange| exchange.as_mut().map(work))
}
