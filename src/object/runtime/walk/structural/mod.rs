//! Structural equality and hash: by content, independent of the names of bound variables.
//!
//! A type states its structural kind: 0 unsupported, 1 tree, 2 variable, 3 graph node (sharing matters), 4 tree that equals itself without
//! inspection, 5 by identity. A variable is bound where a field defines it. Elsewhere it equals only itself.

mod equal;
mod hash;
mod result_cache;

pub use equal::equal;
#[cfg(feature = "frontend")]
pub(crate) use equal::{first_mismatch, mismatch_value};
pub use hash::hash;

use super::region::Region;
use crate::function::{Error, ErrorKind, Result};
use crate::object::Tensor;
use crate::value::types::{self, TypeInfo};

/// Returns the structural kind of a type, 1 to 5.
fn structural_kind(info: &TypeInfo) -> Result<i32> {
    let Some(metadata) = info.metadata() else {
        return Err(Error::new(
            ErrorKind::Type,
            format!(
                "Type metadata is not set for type `{}`, so StructuralHash is not supported for this type",
                info.key()
            ),
        ));
    };
    // Kind 0 means that the type states none, so equality by fields would be a guess.
    if metadata.structural_kind == 0 {
        return Err(Error::new(
            ErrorKind::Type,
            format!(
                "_type_s_eq_hash_kind is not set for type `{}`, so StructuralHash is not supported for this type",
                info.key()
            ),
        ));
    }
    Ok(metadata.structural_kind)
}

/// Creates the region in which a walk begins: a pattern with `map_free_vars`, so that every variable may be bound.
const fn root_region(map_free_vars: bool) -> Region {
    Region::of(if map_free_vars {
        Region::PATTERN
    } else {
        Region::NONE
    })
}

/// Runs `body` in the region that a type's hook passes. 0 keeps the current region.
fn run_in_hook_region<T>(
    region: &Region,
    kind: i64,
    body: impl FnOnce() -> Result<T>,
) -> Result<T> {
    let kind = i32::try_from(kind)
        .map_err(|_| Error::new(ErrorKind::Value, format!("there is no region {kind}")))?;
    match kind {
        Region::NONE => body(),
        wanted => region.run_in_region(wanted, body),
    }
}

/// Returns the description of a type in this process.
fn described_type(type_index: i32) -> Result<&'static TypeInfo> {
    types::info(type_index).ok_or_else(|| {
        Error::new(
            ErrorKind::Internal,
            format!("unknown type index {type_index}"),
        )
    })
}

/// Returns the elements of a tensor for comparison and hash (OBJ-11).
fn tensor_bytes(tensor: &Tensor) -> Result<Vec<u8>> {
    // Checked separately from `to_bytes`, which also rejects it, because upstream has a message for each case.
    if tensor.dl().device.kind != 1 {
        return Err(Error::new(
            ErrorKind::Internal,
            "can only compare CPU tensor",
        ));
    }
    match tensor.to_bytes() {
        Ok(bytes) => Ok(bytes),
        Err(_) => Err(Error::new(
            ErrorKind::Internal,
            "Can only compare contiguous tensor",
        )),
    }
}
