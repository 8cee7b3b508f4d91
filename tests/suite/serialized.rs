//! Cases in the process of a test.
#![cfg(feature = "suite")]

use std::sync::{Mutex, PoisonError};
use std::thread;

/// Runs `work` under a lock, on a thread with the stack size of a main thread.
///
/// Cases compare the types, objects and devices of the process before and after. Test threads have too little stack for values that
/// are nested up to the limit, in a build without optimization (OBJ-41).
pub(crate) fn run_serialized<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    thread::scope(|scope| {
        let thread = thread::Builder::new().stack_size(8 << 20);
        let done = thread.spawn_scoped(scope, work).expect("a thread").join();
        done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
