//! The tensor record: how every release stores one tensor, in files and inside payloads.
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

/// One stored tensor. Its data are row-major and little endian; those of a read record are the file's own bytes.
///
/// The fields agree with each other; that is why none can be changed alone, but for the data ([`TensorRecord::with_data`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorRecord<'a> {
    /// 0 in every record that a release wrote (TEN-22).
    reserved: u64,
    /// As stored: the CPU from 0.4 on (TEN-23).
    device: Device,
    /// Element type (TEN-01).
    dtype: Dtype,
    /// Dimensions, outermost first (TEN-21).
    shape: Vec<i64>,
    /// As many bytes as the sizing counts, which need not be all of a tensor (TEN-35).
    data: Cow<'a, [u8]>,
}

impl<'a> TensorRecord<'a> {
    /// The first eight bytes of every record, as a little-endian integer.
    pub const MAGIC: u64 = 0xDD5E_40F0_96B4_A13F;

    /// Bytes of the smallest record: a scalar without data (TEN-21): magic 8, reserved 8, device 8, ndim 4, dtype 4, size 8.
    pub(crate) const SMALLEST: usize = 40;

    /// A record on the CPU for `data`, which is as many bytes as `sizing` counts for the shape.
    ///
    /// # Errors
    ///
    /// TEN-25 to TEN-28 for a shape or type of no size; TEN-29 to TEN-31, which `sizing` names, for another number of bytes.
    pub fn new(
        dtype: Dtype,
        shape: &[i64],
        data: impl Into<Cow<'a, [u8]>>,
        sizing: Sizing,
    ) -> Result<TensorRecord<'a>, Violation> {
        let data = data.into();
        // TEN-26 before TEN-27: of a negative dimension no product means anything.
        let negative = shape.iter().find(|dim| **dim < 0);
        if let Some(dim) = negative {
            return Err(TEN_26.rejected(Kind::Malformed, format!("dimension {dim} is negative")));
        }
        // TEN-25: the count is an i32 in the file.
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

    /// Reads one record and holds it to every rule, sizes counted by `sizing`.
    ///
    /// # Errors
    ///
    /// At the byte of the field: TEN-20, TEN-23 where sizes are of 0.4 on, TEN-25 to TEN-28, the rule of `sizing` (TEN-29 to
    /// TEN-31), and WIRE-01 where the input ends. Under strict findings also TEN-22, TEN-24 and TEN-33 to TEN-35.
    pub fn read(
        cursor: &mut Cursor<'a>,
        sizing: Sizing,
        findings: &mut Findings,
    ) -> Result<TensorRecord<'a>, Violation> {
        // TEN-20: a parameter file has another (TEN-40), and is rejected here.
        cursor.u64("magic", TEN_20)?.require(
            TEN_20,
            |magic| *magic == TensorRecord::MAGIC,
            |magic| {
                let expected = TensorRecord::MAGIC;
                format!("{magic:#018x} does not start a tensor, {expected:#018x} does")
            },
        )?;
        // TEN-22: no released reader looks at it.
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
        // TEN-35: the smaller of the two counts. A record that is whole only where memory packs is one that a runtime from 0.21 on
        // can use; one up to 0.20 counts again (`elements`).
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

    /// Writes the record: the bytes that were read, or that a release of its sizing writes.
    pub fn write(&self, out: &mut Writer) {
        out.u64(TensorRecord::MAGIC);
        out.u64(self.reserved);
        self.device.write(out);
        // TEN-25: `new` and `read` accept no more dimensions than an i32 counts.
        out.i32(i32::try_from(self.shape.len()).unwrap_or(i32::MAX));
        self.dtype.write(out);
        for &dim in &self.shape {
            out.i64(dim);
        }
        // TEN-29 to TEN-31: what `new` and `read` have checked by the sizing; a record of 0.4 is written as it was read.
        out.u64(self.data.len() as u64);
        out.raw(&self.data);
    }

    /// The same record with other data, as many bytes as it has.
    ///
    /// Type, shape, device and reserved word stay.
    ///
    /// # Errors
    ///
    /// TEN-31 for another number of bytes; TEN-30 or TEN-29 of a record whose data only an older release counts so.
    pub fn with_data(
        mut self,
        data: impl Into<Cow<'a, [u8]>>,
    ) -> Result<TensorRecord<'a>, Violation> {
        let data = data.into();
        let bytes = self.data.len();
        if data.len() != bytes {
            // The record does not keep its sizing, and the newest that counts these bytes has the rule.
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

    /// The same record with another word where releases write 0. Only for writing back what was read.
    #[must_use]
    pub fn with_reserved(mut self, reserved: u64) -> TensorRecord<'a> {
        self.reserved = reserved;
        self
    }

    /// The same record with another device. Only for writing back what was read: releases write the CPU, index 0.
    #[must_use]
    pub fn with_device(mut self, device: Device) -> TensorRecord<'a> {
        self.device = device;
        self
    }

    /// The reserved word, 0 in all that releases write (TEN-22).
    pub fn reserved(&self) -> u64 {
        self.reserved
    }

    /// The device that is stored: the CPU in all that releases from 0.4 on write (TEN-23).
    pub fn device(&self) -> Device {
        self.device
    }

    /// The element type.
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// The dimensions, outermost first; none for a scalar.
    pub fn shape(&self) -> &[i64] {
        &self.shape
    }

    /// The elements: row-major, little endian.
    pub fn data(&self) -> &[u8] {
        &self.data
    }
}

/// The device of a record: type 1 from 0.4 on (TEN-23); another id than 0 is a finding (TEN-24).
fn read_device(
    cursor: &mut Cursor<'_>,
    sizing: Sizing,
    findings: &mut Findings,
) -> Result<Device, Violation> {
    let device = cursor.read("device.type", Device::read)?;
    device.require(
        TEN_23,
        // 0.2 and 0.3 neither wrote nor checked anything but what the tensor happened to have.
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
        // TEN-24: a finding, since no reader of a release looks at the id.
        // The id is the second of two i32 (TEN-10).
        device.offset().saturating_add(4),
        || format!("a stored tensor is on device 0, this one has {}", device.id),
    )?;
    Ok(*device)
}

/// The number of dimensions, as many as can follow (TEN-25).
fn read_ndim(cursor: &mut Cursor<'_>) -> Result<u64, Violation> {
    let stored = cursor.i32("ndim", TEN_21)?;
    stored.require(
        TEN_25,
        |ndim| *ndim >= 0,
        |ndim| format!("{ndim} dimensions"),
    )?;
    let ndim = u64::try_from(*stored).unwrap_or(0);
    // The dtype is between the count and the dimensions.
    // TEN-25: released readers resize to the number first: 2^31 - 1 dimensions allocate 16 GiB.
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

/// The element type: one of some width (TEN-28); one of no meaning (TEN-33) or of several lanes (TEN-34) is a finding.
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
        // TEN-34: from 0.4 on the size leaves lanes out, so that most of a tensor of several lanes is not in the file.
        dtype.lanes <= 1 || sizing == Sizing::V0_2,
        // Lanes are behind code and bits (TEN-01).
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

/// The dimensions.
fn read_shape(cursor: &mut Cursor<'_>, ndim: u64) -> Result<Vec<i64>, Violation> {
    // Not reserved: each dimension is met by its own bytes or found truncated.
    let mut shape = Vec::new();
    for index in 0..ndim {
        shape.push(cursor.within("shape", index, |cursor| {
            // TEN-26: released readers compare the product only: 0.27 takes [-1, -1] for one element.
            cursor.i64("shape", TEN_21)?.require(
                TEN_26,
                |dim| *dim >= 0,
                |dim| format!("dimension {index} is {dim}; a stored shape is concrete"),
            )
        })?);
    }
    Ok(shape)
}

/// The size, which is the one that `sizing` counts for `shape`, and that many bytes (TEN-27 to TEN-32). Returns the shape too.
fn read_data<'a>(
    cursor: &mut Cursor<'a>,
    sizing: Sizing,
    dtype: Dtype,
    shape: ReadValue<'_, Vec<i64>>,
) -> Result<(Vec<i64>, &'a [u8]), Violation> {
    let size = cursor.i64("data_byte_size", TEN_21)?;
    // TEN-27: computed without wrapping. 0.27 takes float32 of [7, 0x6DB6DB6DB6DB6DB7] for 4 bytes.
    let counted = sizing.data_bytes(dtype, &shape);
    // TEN-27: about all dimensions together, and named by the first.
    let shape = shape.require_as(
        Kind::Limit,
        TEN_27,
        |_| counted.is_some(),
        |shape| format!("a tensor of shape {shape:?} has no size that fits into an i64"),
    )?;
    let stored = u64::try_from(*size).ok();
    size.require(
        sizing.rule(),
        // Without a count there is nothing to compare with: TEN-27 has rejected it.
        |_| counted.is_none() || counted == stored,
        |size| {
            let counted = counted.unwrap_or(0);
            format!(
                "the data are {size} bytes, but shape {shape:?} takes {counted} as {sizing} counts"
            )
        },
    )?;
    // TEN-32: all of them. Released readers ask whether any byte was read, so that a file that is cut off loads with zeros as
    // its last weights; and they reject the tensor without elements that they wrote, unless its first dimension is 0.
    let data = cursor.take(stored.unwrap_or(0), "data", TEN_32)?;
    Ok((shape, data))
}
