//! Access to thread-local values, even while the thread ends.

use std::cell::RefCell;
use std::thread::LocalKey;

/// Runs `body` with the thread-local value of `key`. If the thread is ending and the value is already destroyed, runs it with a new
/// one.
///
/// Destructors of other thread-local values may still call this library: a tensor that is freed at the end of a thread sets its device.
/// A panic there would end the process.
pub(crate) fn with_kept<T: Default, R>(
    key: &'static LocalKey<RefCell<T>>,
    mut body: impl FnMut(&mut T) -> R,
) -> R {
    key.try_with(|kept| body(&mut kept.borrow_mut()))
        .unwrap_or_else(|_| body(&mut T::default()))
}
