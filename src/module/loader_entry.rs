//! The argument and the result of the loader of a kind (MOD-11).

use super::{Module, Symbols};
use crate::function::Error;
use crate::release::Layout;
use std::sync::Arc;

/// One module of a library, as its loader receives it.
#[non_exhaustive]
pub struct LoaderEntry<'a> {
    /// The kind, such as `cuda`.
    pub kind: &'a str,
    /// Payload without its length. It obeys every rule of chapter payload.
    pub payload: &'a [u8],
    /// Layout in which it was stored, which decides the form of function information.
    pub layout: Layout,
    /// Library that contains `payload`. A module that keeps this may continue to read the payload in place.
    pub library: &'a Arc<dyn Symbols>,
}

debug_fields!(LoaderEntry<'_>: kind, layout);

/// Creates a module from an entry.
pub type Loader = fn(&LoaderEntry<'_>) -> Result<Module, Error>;
