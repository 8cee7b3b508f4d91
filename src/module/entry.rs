//! What the loader of a kind is passed, and returns (MOD-11).

use super::{Module, Symbols};
use crate::function::Error;
use crate::release::Layout;
use std::sync::Arc;

/// One module of a library, as its loader gets it.
#[non_exhaustive]
pub struct LoaderEntry<'a> {
    /// The kind, such as `cuda`.
    pub kind: &'a str,
    /// The payload, without a length. It has kept every rule of chapter payload.
    pub payload: &'a [u8],
    /// The layout that it was stored in, on which the form of function information depends.
    pub layout: Layout,
    /// The library that `payload` lies in. A module that keeps this may go on reading the payload in place.
    pub library: &'a Arc<dyn Symbols>,
}

/// Makes a module of an entry.
pub type Loader = fn(&LoaderEntry<'_>) -> Result<Module, Error>;
