//! The tensor record: the form of one tensor in files and in payloads, in every release.
//!
//! | field | bytes | rule |
//! |---|---|---|
//! | `magic` | u64, 0xDD5E40F096B4A13F | TEN-20 |
//! | `reserved` | u64, 0 | TEN-21, TEN-22 |
//! | `device` | i32 type 1, i32 id 0 | TEN-10, TEN-23, TEN-24 |
//! | `ndim` | i32 | TEN-21, TEN-25 |
//! | `dtype` | u8 code, u8 bits, u16 lanes | TEN-01, TEN-28, TEN-33, TEN-34 |
//! | `shape` | ndim times i64 | TEN-21, TEN-26, TEN-27 |
//! | `data_byte_size` | i64 | TEN-21, TEN-29, TEN-30, TEN-31 |
//! | `data` | that many bytes | TEN-32, TEN-35 |

use super::packing::{self, Packing};
use super::sizing::Sizing;
use super::{
    Device, Dtype, TEN_20, TEN_21, TEN_22, TEN_23, TEN_24, TEN_25, TEN_26, TEN_27, TEN_28, TEN_32,
    TEN_33, TEN_34, TEN_35,
};
use crate::rule::{Findings, Kind, Violation};
use crate::wire::{Cursor, ReadValue, Writer};
use std::borrow::Cow;

/// One stored tensor. Its data are row-major and little endian, and borrow the bytes of the file if the record was read.
///
/// The fields depend on each other, so only the data can be replaced alone ([`TensorRecord::with_values`], [`TensorRecord::with_data`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorRecord<'a> {
    /// The reserved word; 0 in every record that a release wrote (TEN-22).
    pub(super) reserved: u64,
    /// The stored device: the CPU from 0.4 on (TEN-23).
    pub(super) device: Device,
    /// Element type (TEN-01).
    pub(super) dtype: Dtype,
    /// Dimensions, outermost first (TEN-21).
    pub(super) shape: Vec<i64>,
    /// As many bytes as the sizing counts, which may be less than the whole tensor (TEN-35).
    pub(super) data: Cow<'a, [u8]>,
}

impl<'a> TensorRecord<'a> {
    /// The first eight bytes of every record, as a little-endian integer.
    pub const MAGIC: u64 = 0xDD5E_40F0_96B4_A13F;

    /// Size in bytes of the smallest record, a scalar without data (TEN-21): magic 8, reserved 8, device 8, ndim 4, dtype 4, size 8.
    pub(crate) const SMALLEST: usize = 40;

    /// Creates a record on the CPU for `data`, whose length must be the one that `sizing` counts for the shape.
    ///
    /// # Errors
    ///
    /// Returns TEN-25 to TEN-28 for a shape or type without a size; the rule of `sizing` (TEN-29 to TEN-31) for another number of
    /// bytes.
    pub fn new(
        dtype: Dtype,
        shape: &[i64],
        data: impl Into<Cow<'a, [u8]>>,
        sizing: Sizing,
    ) -> Result<TensorRecord<'a>, Violation> {
        let data = data.into();
        // TEN-26 is checked before TEN-27, because a product with a negative dimension has no meaning.
        let negative = shape.iter().find(|dim| **dim < 0);
        if let Some(dim) = negative {
            return Err(TEN_26.rejected(Kind::Malformed, format!("dimension {dim} is negative")));
        }
        // TEN-25: the file stores the number of dimensions as an i32.
        if i32::try_from(shape.len()).is_err() {
            return Err(TEN_25.rejected(Kind::Limit, "more dimensions than an i32 counts"));
        }
        if dtype.bits == 0 || dtype.lanes == 0 {
            return Err(TEN_28.rejected(
                Kind::Type,
                format!("{} bits in {} lanes hold nothing", dtype.bits, dtype.lanes),
            ));
        }
        let Some(bytes) = sizing.data_bytes(dtype, shape) else {
            let message = format!("a tensor of shape {shape:?} has no size that fits into an i64");
            return Err(TEN_27.rejected(Kind::Limit, message));
        };
        if bytes != data.len() as u64 {
            let message = format!(
                "shape {shape:?} takes {bytes} bytes, there are {}",
                data.len()
            );
            return Err(sizing.rule().rejected(Kind::Malformed, message));
        }
        Ok(TensorRecord {
            reserved: 0,
            device: Device::CPU,
            dtype,
            shape: shape.to_vec(),
            data,
        })
    }

    /// Reads one record and checks every rule, with sizes counted by `sizing`.
    ///
    /// # Errors
    ///
    /// Returns, at the byte of the field: TEN-20; TEN-23 for sizings of 0.4 and later; TEN-25 to TEN-28; the rule of `sizing` (TEN-29
    /// to TEN-31); WIRE-01 if the input ends early. Under strict findings, also returns TEN-22, TEN-24 and TEN-33 to TEN-35.
    pub fn read(
        cursor: &mut Cursor<'a>,
        sizing: Sizing,
        findings: &mut Findings,
    ) -> Result<TensorRecord<'a>, Violation> {
        // TEN-20: a parameter file has another magic (TEN-40), and is rejected here.
        cursor.u64("magic", TEN_20)?.require(
            TEN_20,
            |magic| *magic == TensorRecord::MAGIC,
            |magic| {
                let expected = TensorRecord::MAGIC;
                format!("{magic:#018x} does not start a tensor, {expected:#018x} does")
            },
        )?;
        // TEN-22: no released reader checks it.
        let reserved = cursor.u64("reserved", TEN_21)?.expect(
            findings,
            TEN_22,
            Kind::Malformed,
            |reserved| *reserved == 0,
            |reserved| format!("the reserved word of a tensor is {reserved:#x}, not 0"),
        )?;
        let device = read_device(cursor, sizing, findings)?;
        let ndim = read_ndim(cursor)?;
        let dtype = read_dtype(cursor, sizing, findings)?;
        let shape = cursor.read("shape", |cursor| read_shape(cursor, ndim))?;
        let size_at = cursor.offset();
        let (shape, data) = read_data(cursor, sizing, dtype, shape)?;
        // TEN-35: the smaller count is used. A record that contains the whole tensor only in packed form can be used by a runtime from
        // 0.21 on. For a runtime up to 0.20, `elements` counts again.
        let needed = Packing::Packed.bytes(dtype, &shape);
        let whole = needed.is_some_and(|needed| needed <= data.len() as u64);
        findings.expect_usable(TEN_35, Kind::Truncated, whole, size_at, || {
            packing::missing(dtype, &shape, data.len(), needed)
        })?;
        Ok(TensorRecord {
            reserved,
            device,
            dtype,
            shape,
            data: Cow::Borrowed(data),
        })
    }

    /// Writes the record: the bytes that were read, or those that a release of its sizing writes.
    pub fn write(&self, out: &mut Writer) {
        out.u64(TensorRecord::MAGIC);
        out.u64(self.reserved);
        self.device.write(out);
        // TEN-25: `new` and `read` accept only numbers of dimensions that fit into an i32.
        out.i32(i32::try_from(self.shape.len()).unwrap_or(i32::MAX));
        self.dtype.write(out);
        for &dim in &self.shape {
            out.i64(dim);
        }
        // TEN-29 to TEN-31: `new` and `read` have checked the size by the sizing, so a record of 0.4 is written as it was read.
        out.u64(self.data.len() as u64);
        out.raw(&self.data);
    }

    /// Replaces the data with other data of the same length. Type, shape, device and reserved word stay the same.
    ///
    /// # Errors
    ///
    /// Returns the rule of the newest sizing that fits the old data (TEN-31, TEN-30 or TEN-29), if the number of bytes is different.
    pub fn with_data(
        mut self,
        data: impl Into<Cow<'a, [u8]>>,
    ) -> Result<TensorRecord<'a>, Violation> {
        let data = data.into();
        let bytes = self.data.len();
        if data.len() != bytes {
            // The record does not store its sizing, so the rule is the one of the newest sizing that fits the old bytes.
            let counts =
                |sizing: &Sizing| sizing.data_bytes(self.dtype, &self.shape) == Some(bytes as u64);
            let sizing = Sizing::ALL.into_iter().rev().find(counts);
            let message = format!(
                "shape {:?} takes {bytes} bytes, there are {}",
                self.shape,
                data.len()
            );
            let rule = sizing.unwrap_or(Sizing::V0_7).rule();
            return Err(rule.rejected(Kind::Malformed, message));
        }
        self.data = data;
        Ok(self)
    }

    /// Sets the word that is 0 in records of releases. Use it only to write back a record that was read.
    #[must_use]
    pub fn with_reserved(mut self, reserved: u64) -> TensorRecord<'a> {
        self.reserved = reserved;
        self
    }

    /// Sets the device. Use it only to write back a record that was read: releases write the CPU, index 0.
    #[must_use]
    pub fn with_device(mut self, device: Device) -> TensorRecord<'a> {
        self.device = device;
        self
    }

    /// Returns the reserved word, which is 0 in records of releases (TEN-22).
    pub fn reserved(&self) -> u64 {
        self.reserved
    }

    /// Returns the stored device, which is the CPU in records of releases from 0.4 on (TEN-23).
    pub fn device(&self) -> Device {
        self.device
    }

    /// Returns the element type.
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// Returns the dimensions, outermost first; empty for a scalar.
    pub fn shape(&self) -> &[i64] {
        &self.shape
    }

    /// Returns the elements: row-major, little endian.
    pub fn data(&self) -> &[u8] {
        &self.data
    }
}

/// Reads the device of a record: its type must be 1 from 0.4 on (TEN-23); an id other than 0 is a finding (TEN-24).
fn read_device(
    cursor: &mut Cursor<'_>,
    sizing: Sizing,
    findings: &mut Findings,
) -> Result<Device, Violation> {
    let device = cursor.read("device.type", Device::read)?;
    device.require(
        TEN_23,
        // 0.2 and 0.3 wrote the device of the tensor, and did not check it.
        |device| device.kind == Device::CPU_KIND || sizing == Sizing::V0_2,
        |device| {
            let kind = device.kind;
            format!("a stored tensor is on the CPU, this one has device type {kind}")
        },
    )?;
    findings.expect(
        TEN_24,
        Kind::Malformed,
        device.id == 0,
        // TEN-24 is a finding, because no released reader checks the id, which is the second of two i32 (TEN-10).
        device.offset().saturating_add(4),
        || format!("a stored tensor is on device 0, this one has {}", device.id),
    )?;
    Ok(*device)
}

/// Reads the number of dimensions, which must fit into the rest of the input (TEN-25).
fn read_ndim(cursor: &mut Cursor<'_>) -> Result<u64, Violation> {
    let stored = cursor.i32("ndim", TEN_21)?;
    stored.require(
        TEN_25,
        |ndim| *ndim >= 0,
        |ndim| format!("{ndim} dimensions"),
    )?;
    let ndim = u64::try_from(*stored).unwrap_or(0);
    // The dtype is between the count and the dimensions. TEN-25: released readers allocate before they check, and 2^31 - 1 dimensions
    // take 16 GiB.
    let remaining = cursor.remaining() as u64;
    let room = remaining.saturating_sub(Dtype::SIZE as u64) / 8;
    stored.require_as(
        Kind::Truncated,
        TEN_25,
        |_| ndim <= room,
        |_| {
            format!(
                "{ndim} dimensions of 8 bytes do not fit into the {remaining} bytes that follow"
            )
        },
    )?;
    Ok(ndim)
}

/// Reads the element type, which must have a width (TEN-28). A type without a meaning (TEN-33) or with several lanes (TEN-34) is a finding.
fn read_dtype(
    cursor: &mut Cursor<'_>,
    sizing: Sizing,
    findings: &mut Findings,
) -> Result<Dtype, Violation> {
    let dtype = cursor.read("dtype", Dtype::read)?;
    let at = dtype.offset();
    let dtype = dtype.require(
        TEN_28,
        |dtype| dtype.bits != 0 && dtype.lanes != 0,
        |dtype| format!("{} bits in {} lanes hold nothing", dtype.bits, dtype.lanes),
    )?;
    let meaningless = dtype.meaningless();
    findings.expect(TEN_33, Kind::UnknownKind, meaningless.is_none(), at, || {
        meaningless.unwrap_or_default()
    })?;
    findings.expect(
        TEN_34,
        Kind::Malformed,
        // TEN-34: from 0.4 on the size ignores lanes, so the file lacks most of a tensor with several lanes.
        dtype.lanes <= 1 || sizing == Sizing::V0_2,
        // The lanes come after code and bits (TEN-01).
        at.saturating_add(2),
        || {
            format!(
                "elements have {} lanes, but only one is stored",
                dtype.lanes
            )
        },
    )?;
    Ok(dtype)
}

/// Reads the dimensions.
fn read_shape(cursor: &mut Cursor<'_>, ndim: u64) -> Result<Vec<i64>, Violation> {
    // No memory is reserved: each dimension is read from its own bytes or found truncated.
    let mut shape = Vec::new();
    for index in 0..ndim {
        shape.push(cursor.read_within("shape", index, |cursor| {
            // TEN-26: released readers compare only the product: 0.27 reads [-1, -1] as one element.
            cursor.i64("shape", TEN_21)?.require(
                TEN_26,
                |dim| *dim >= 0,
                |dim| format!("dimension {index} is {dim}; a stored shape is concrete"),
            )
        })?);
    }
    Ok(shape)
}

/// Reads the size, which must be the one that `sizing` counts for `shape`, and that many bytes (TEN-27 to TEN-32). Returns the shape too.
fn read_data<'a>(
    cursor: &mut Cursor<'a>,
    sizing: Sizing,
    dtype: Dtype,
    shape: ReadValue<'_, Vec<i64>>,
) -> Result<(Vec<i64>, &'a [u8]), Violation> {
    let size = cursor.i64("data_byte_size", TEN_21)?;
    // TEN-27: the count is computed without wrapping. 0.27 reads float32 of [7, 0x6DB6DB6DB6DB6DB7] as 4 bytes.
    let counted = sizing.data_bytes(dtype, &shape);
    // TEN-27 concerns all dimensions together; the violation names the first.
    let shape = shape.require_as(
        Kind::Limit,
        TEN_27,
        |_| counted.is_some(),
        |shape| format!("a tensor of shape {shape:?} has no size that fits into an i64"),
    )?;
    let stored = u64::try_from(*size).ok();
    size.require(
        sizing.rule(),
        // Without a count there is nothing to compare, because TEN-27 has rejected the shape.
        |_| counted.is_none() || counted == stored,
        |size| {
            let counted = counted.unwrap_or(0);
            format!(
                "the data are {size} bytes, but shape {shape:?} takes {counted} as {sizing} counts"
            )
        },
    )?;
    // TEN-32: all bytes must be present. Released readers only check that one byte was read, so a truncated file loads with zeros as
    // its last weights. They also reject a tensor without elements that they wrote themselves, unless its first dimension is 0.
    let data = cursor.take(stored.unwrap_or(0), "data", TEN_32)?;
    Ok((shape, data))
}
