//! The calls of a machine, as an embedder observes them.

use crate::value::AnyView;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// One finished call, as an [`Observer`] sees it.
#[derive(Debug)]
#[non_exhaustive]
pub struct ObservedCall<'a> {
    /// The VM function that contains the instruction.
    pub function: &'a str,
    /// The number of the instruction in the table.
    pub instruction: usize,
    /// The function that was called.
    pub callee: &'a str,
    /// The arguments of the call.
    pub args: &'a [AnyView<'a>],
    /// The start of the call.
    pub started: Instant,
    /// The duration of the call, which includes the calls that a VM function makes.
    pub took: Duration,
}

/// A function that sees every call of a machine.
pub type Observer = Arc<dyn Fn(&ObservedCall<'_>) + Send + Sync>;
