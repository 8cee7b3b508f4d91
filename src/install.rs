//! Registration of functions of upper chapters in tables of lower ones.

use std::cell::Cell;
use std::sync::Once;

/// Completed when [`install`] has run.
static INSTALLED: Once = Once::new();

/// Registers the contributions of upper chapters in the tables of lower ones, once. The C interface goes into the table of `module`, and
/// global functions into the registry of `function`.
///
/// A look-up must find these names without a call by the user, and Rust has no constructors. Therefore the two lower chapters call this
/// at the first look-up (`function::registry`, `module::exports`, `module::load`). All other dependencies in the library point from
/// upper chapters to lower ones.
///
/// A look-up during installation, such as one of the program's allocator, finds the names that are registered so far. It must not wait,
/// because it would wait for itself. After a panic in here, the next look-up starts again, and finds that some names are already taken.
pub(crate) fn install() {
    thread_local! {
        static INSTALLING: Cell<bool> = const { Cell::new(false) };
    }
    struct Installing;
    impl Drop for Installing {
        fn drop(&mut self) {
            INSTALLING.set(false);
        }
    }
    const BROUGHT: &[fn()] = &[
        crate::capi::install,
        crate::device::provide,
        #[cfg(feature = "graph")]
        crate::graph::module::provide,
        #[cfg(feature = "vm")]
        crate::vm::provide,
        #[cfg(feature = "target")]
        crate::target::provide,
        #[cfg(feature = "rpc")]
        crate::rpc::client::provide,
    ];
    if INSTALLING.get() {
        return;
    }
    INSTALLED.call_once_force(|_| {
        INSTALLING.set(true);
        let _ends = Installing;
        BROUGHT.iter().for_each(|bring| bring());
    });
}

/// Returns whether [`install`] has completed.
#[inline]
pub(crate) fn is_complete() -> bool {
    INSTALLED.is_completed()
}
