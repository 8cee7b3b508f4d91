//! What an embedder sees of the calls that a machine makes.

use crate::value::AnyView;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// One call, as an [`Observer`] sees it when it is over.
#[non_exhaustive]
pub struct ObservedCall<'a> {
    /// The VM function that the instruction is in.
    pub function: &'a str,
    /// Number of the instruction in the table.
    pub instruction: usize,
    /// The function that was called.
    pub callee: &'a str,
    /// Its arguments.
    pub args: &'a [AnyView<'a>],
    /// When it began.
    pub started: Instant,
    /// How long it took; of a VM function, with everything that it called.
    pub took: Duration,
}

/// Sees every call of a machine.
pub type Observer = Arc<dyn Fn(&ObservedCall<'_>) + Send + Sync>;
