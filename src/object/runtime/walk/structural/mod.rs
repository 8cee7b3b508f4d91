//! Structural equality and hash: by contents, up to the names of bound variables.
//!
//! A type says how it takes part: 0 not at all, 1 as a tree, 2 as a variable, 3 as a node of a graph (shared or not
//! matters), 4 as a tree that is the same when it is the same object, 5 by identity. A variable is bound where a field
//! defines it; elsewhere it is itself.

mod equal;
mod hash;
mod scope;
mod shared;

pub use equal::equal;
#[cfg(feature = "frontend")]
pub(crate) use equal::{first_mismatch, mismatch_value};
pub use hash::hash;

use crate::function::{Error, ErrorKind, Result};
use crate::object::Tensor;
use crate::value::types::{self, TypeInfo};

/// The structural kind of a type, 1 to 5.
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
    // Kind 0 is what a type has that states none, so that equality by fields would be a guess.
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

/// What this process knows of a type.
fn described_type(type_index: i32) -> Result<&'static TypeInfo> {
    types::info(type_index).ok_or_else(|| {
        Error::new(
            ErrorKind::Internal,
            format!("unknown type index {type_index}"),
        )
    })
}

/// The elements of a tensor, by which it is compared and hashed (OBJ-11).
fn tensor_bytes(tensor: &Tensor) -> Result<Vec<u8>> {
    // Apart from `to_bytes`, which rejects it as well: upstream has a message for each.
    if tensor.dl().device.device_type != 1 {
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
