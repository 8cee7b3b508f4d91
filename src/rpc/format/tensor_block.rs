//! A tensor as packets hold it: where its data is on the server, and what it is; the data itself is copied by packets of its own.
//!
//! | field | bytes | rule |
//! |---|---|---|
//! | `data` | u64 | RPC-30 |
//! | `device.type`, `device.id` | i32 each | TEN-10 |
//! | `ndim` | i32 | RPC-31 |
//! | `dtype` | 4 | TEN-01 |
//! | `shape` | i64 each | RPC-30 |
//! | `byte_offset` | u64, from 0.8 on | RPC-30 |

use super::super::{RPC_30, RPC_31};
use super::protocol::Protocol;
use crate::rule::{Kind, Violation};
use crate::tensor::{Device, Dtype};
use crate::wire::{Cursor, Writer};

/// A tensor without its data, and without strides: it is contiguous.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorBlock {
    /// What the server knows the data by.
    ///
    /// Upstream it is an address that the server follows without a check.
    pub data: u64,
    /// The device on the server's side.
    pub device: Device,
    /// The type of an element.
    pub dtype: Dtype,
    /// The extents, outermost first.
    pub shape: Vec<i64>,
    /// Where the first element is, in bytes behind `data`. Always 0 up to 0.7.
    pub byte_offset: u64,
}

impl TensorBlock {
    /// Reads a block: 32 bytes and 8 for each dimension, 8 less up to 0.7.
    ///
    /// # Errors
    ///
    /// WIRE-01 when there are fewer bytes; RPC-31 for a number of dimensions that is none.
    ///
    /// The shape begins 24 bytes behind the start in every release.
    pub fn read(cursor: &mut Cursor<'_>, spoken: &Protocol) -> Result<TensorBlock, Violation> {
        let data = *cursor.u64("data", RPC_30)?;
        let device = Device::read(cursor)?;
        let ndim = cursor.i32("ndim", RPC_31)?.require(
            RPC_31,
            |ndim| *ndim >= 0,
            |ndim| format!("a tensor of {ndim} dimensions"),
        )?;
        let dtype = Dtype::read(cursor)?;
        let ndim = u64::try_from(ndim).unwrap_or_default();
        let bytes = ndim.saturating_mul(8);
        // All of the shape is there before room is made for it. Released readers reserve 8 times what `ndim` promises.
        let mut extents = cursor.split(bytes, "shape")?;
        let mut shape = Vec::with_capacity(extents.remaining() / 8);
        for at in 0..ndim {
            shape.push(extents.within("shape", at, |cursor| Ok(*cursor.i64("shape", RPC_30)?))?);
        }
        let byte_offset = match spoken.release.minor() {
            // RPC-30: 0.7 and before sent no offset, and rejected a tensor that has one.
            ..=7 => 0,
            _ => *cursor.u64("byte_offset", RPC_30)?,
        };
        Ok(TensorBlock {
            data,
            device,
            dtype,
            shape,
            byte_offset,
        })
    }

    /// Writes the block.
    ///
    /// # Errors
    ///
    /// RPC-30 of kind unsupported for an offset up to 0.7; RPC-31 of kind limit for more dimensions than an i32 counts.
    pub fn write(&self, spoken: &Protocol, out: &mut Writer) -> Result<(), Violation> {
        out.u64(self.data);
        self.device.write(out);
        // RPC-31: the number is an i32, and a negative one would be rejected by its reader.
        let ndim = i32::try_from(self.shape.len()).map_err(|_| {
            RPC_31.rejected(Kind::Limit, format!("{} dimensions", self.shape.len()))
        })?;
        out.i32(ndim);
        self.dtype.write(out);
        self.shape.iter().for_each(|extent| out.i64(*extent));
        if spoken.release.minor() >= 8 {
            out.u64(self.byte_offset);
        } else if self.byte_offset != 0 {
            // RPC-30: dropped without an error, the offset would make the peer read another place.
            let message = format!("release {} sends no offset", spoken.release);
            return Err(RPC_30.rejected(Kind::Unsupported, message));
        }
        Ok(())
    }
}
