//! What a thread keeps, also while the thread ends.

use std::cell::RefCell;
use std::thread::LocalKey;

/// Runs `body` with what this thread keeps under `key`, or with a new one where the thread is ending and has lost its own.
///
/// Destructors of a thread's other values may still call this library: a tensor that a thread keeps to its end sets its device when it is
/// freed. A panic there would end the process.
pub(crate) fn with_kept<T: Default, R>(
    key: &'static LocalKey<RefCell<T>>,
    mut body: impl FnMut(&mut T) -> R,
) -> R {
    key.try_with(|kept| body(&mut kept.borrow_mut()))
        .unwrap_or_else(|_| body(&mut T::default()))
}
