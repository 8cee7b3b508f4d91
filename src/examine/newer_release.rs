//! Recognition of files from releases of TVM after 0.27, by their first bytes.

use crate::payload::{LATER, relay_vm};
use crate::tensor::{Params, TensorRecord};

/// Describes a file whose magic is higher than that of a known form, because TVM increments it when a form changes. Returns `None` for
/// any other file.
pub(super) fn later_magic(bytes: &[u8]) -> Option<String> {
    let known = [
        ("parameter file", Params::MAGIC),
        ("tensor file", TensorRecord::MAGIC),
        ("file of Relay VM code", relay_vm::MAGIC),
    ];
    let magic = u64::from_le_bytes(*bytes.first_chunk()?);
    let (form, _) = known
        .into_iter()
        .find(|(_, known)| magic > *known && magic >> 8 == *known >> 8)?;
    Some(format!(
        "a {form} with an unknown magic, {magic:#018x}{LATER}"
    ))
}
