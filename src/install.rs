//! What upper rooms bring into lower ones.

use std::cell::Cell;
use std::sync::Once;

/// Whether [`install`] has run.
static INSTALLED: Once = Once::new();

/// Puts what upper rooms bring into the tables of lower ones, once: the C interface into that of `module`, functions into the
/// registry of `function`.
///
/// A lookup of a name must find what upper rooms bring without a call of the user's, and Rust has no constructors. So the two
/// lower rooms call this at the first lookup (`function::registry`, `module::exports`, `module::load`); everything else in the
/// library points down.
///
/// A lookup from within, such as one of the program's allocator, finds what is there so far: it would wait for itself. After a panic
/// in here the next lookup begins anew, and finds the names that are taken.
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

/// Whether [`install`] has run to its end.
#[inline]
pub(crate) fn is_complete() -> bool {
    INSTALLED.is_completed()
}
