//! The tensor record of packets: the place of the data on the server, its type and its shape. Other packets copy the data itself.
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

/// A contiguous tensor, without its data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorBlock {
    /// Number by which the server knows the data.
    ///
    /// Upstream it is an address that the server dereferences without a check.
    pub data: u64,
    /// Device of the server.
    pub device: Device,
    /// Element type.
    pub dtype: Dtype,
    /// Extents, outermost first.
    pub shape: Vec<i64>,
    /// Offset of the first element from `data`, in bytes. Always 0 up to 0.7.
    pub byte_offset: u64,
}

impl TensorBlock {
    /// Reads a block: 32 bytes and 8 for each dimension; up to 0.7, 8 bytes less.
    ///
    /// # Errors
    ///
    /// Returns WIRE-01 if there are fewer bytes; RPC-31 for a negative number of dimensions.
    ///
    /// The shape begins 24 bytes after the start in every release.
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
        // `split` requires that the whole shape has arrived before memory is reserved for it. Released readers reserve 8 times `ndim`
        // bytes.
        let mut extents = cursor.split(bytes, "shape")?;
        let mut shape = Vec::with_capacity(extents.remaining() / 8);
        for at in 0..ndim {
            shape.push(
                extents.read_within("shape", at, |cursor| Ok(*cursor.i64("shape", RPC_30)?))?,
            );
        }
        let byte_offset = match spoken.release.minor() {
            // RPC-30: releases up to 0.7 sent no offset, and rejected a tensor that has one.
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
    /// Returns RPC-30 of kind unsupported for an offset up to 0.7; RPC-31 of kind limit if the number of dimensions exceeds an i32.
    pub fn write(&self, spoken: &Protocol, out: &mut Writer) -> Result<(), Violation> {
        out.u64(self.data);
        self.device.write(out);
        // RPC-31: the number is an i32, and its reader would reject a negative one.
        let ndim = i32::try_from(self.shape.len()).map_err(|_| {
            RPC_31.rejected(Kind::Limit, format!("{} dimensions", self.shape.len()))
        })?;
        out.i32(ndim);
        self.dtype.write(out);
        self.shape.iter().for_each(|extent| out.i64(*extent));
        if spoken.release.minor() >= 8 {
            out.u64(self.byte_offset);
        } else if self.byte_offset != 0 {
            // RPC-30: if the offset were dropped without an error, the peer would read from the wrong address.
            let message = format!("release {} sends no offset", spoken.release);
            return Err(RPC_30.rejected(Kind::Unsupported, message));
        }
        Ok(())
    }
}
