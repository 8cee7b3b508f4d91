//! Packed values: the arguments of calls, and results, in the encodings of both eras.
//!
//! | part | bytes | rule |
//! |---|---|---|
//! | count | i32 | RPC-40 |
//! | up to 0.20: all codes, then all values | i32 each | RPC-41 |
//! | from 0.21 on: code and value by turns | i32 each | RPC-42 |

use super::super::{
    RPC_40, RPC_41, RPC_42, RPC_43, RPC_44, RPC_45, RPC_46, RPC_47, RPC_48, RPC_49,
};
use super::packed_code::{PackedCode, StoredValue, sender_of_handles, stored, wrong_way};
use super::protocol::Protocol;
use super::tensor_block::TensorBlock;
use crate::rule::{Findings, Kind, Violation};
use crate::tensor::{Device, Dtype};
use crate::wire::{Cursor, Writer};
use std::borrow::Cow;

/// One argument or result.
///
/// What it takes in bytes, and behind which code, is RPC-43. Numbers are those of WIRE-02. A handle is whatever the server made of an
/// object: upstream's are addresses, so that a client only passes them back.
#[derive(Clone, Debug, PartialEq)]
pub enum PackedValue<'a> {
    /// Nothing.
    None,
    /// An integer. Up to 0.17 a bool too.
    Int(i64),
    /// An unsigned integer: up to 0.20, and no released peer writes it.
    Uint(u64),
    /// A bool, as the 64 bits that stand for it: 0 or 1 (RPC-46). From 0.18 on; before, a bool is an integer.
    Bool(i64),
    /// A float.
    Float(f64),
    /// What the server knows something by: a stream, an allocation, an object.
    Handle(u64),
    /// An element type, and the four bytes of padding behind it (RPC-45).
    Dtype(Dtype, i32),
    /// A device of the server's side.
    Device(Device),
    /// A tensor without its data.
    Tensor(TensorBlock),
    /// A C string, without its NUL; one inside is odd (RPC-44).
    Str(Cow<'a, [u8]>),
    /// Bytes.
    Bytes(Cow<'a, [u8]>),
    /// A module of the server, by its handle; only one side writes it (RPC-48).
    Module(u64),
    /// A function of the server, by its handle; only one side writes it (RPC-48).
    Function(u64),
    /// Another object of the server, from 0.16 on, and the type index in front of it.
    Object(u64, i32),
    /// A string object by value, from 0.22 on, and the type index in front of it: 65, or 11 where it was stored inline.
    StrObject(Cow<'a, [u8]>, i32),
    /// A byte object by value, from 0.22 on, and the type index in front of it: 66, or 12 where it was stored inline.
    BytesObject(Cow<'a, [u8]>, i32),
}

use StoredValue as S;

/// The inner type index of an object (RPC-47): up to 0.20 a reference to an object of the server.
const INNER_LEGACY: i32 = 9;
/// From 0.22 on: a string by value.
const INNER_STR: i32 = 65;
/// From 0.22 on: bytes by value.
const INNER_BYTES: i32 = 66;
/// From 0.21 on: a reference to an object of the server.
const INNER_REFERENCE: i32 = 115;

impl<'a> PackedValue<'a> {
    /// Reads a sequence, as `field`.
    pub(super) fn read_all(
        cursor: &mut Cursor<'a>,
        spoken: &Protocol,
        findings: &mut Findings,
    ) -> Result<Vec<PackedValue<'a>>, Violation> {
        let counted = cursor.i32("count", RPC_40)?;
        // RPC-40: a negative count makes a server of 0.27 call the function with what an earlier packet left in its memory.
        counted.require(
            RPC_40,
            |count| *count >= 0,
            |count| format!("{count} values"),
        )?;
        // Each value has a code of 4 bytes at least; room for the list is made only for what can be there.
        let room = cursor.remaining() / 4;
        let count = usize::try_from(*counted).unwrap_or_default();
        if count > room {
            let message = format!("{count} values, and {} bytes follow", cursor.remaining());
            return Err(counted.broken(RPC_40, Kind::Truncated, message));
        }
        // RPC-41: all codes come first up to 0.20, and are kept until their values come.
        let mut codes = Vec::with_capacity(if spoken.is_ffi() { 0 } else { count });
        if !spoken.is_ffi() {
            for at in 0..count {
                codes.push(cursor.within("args", at as u64, |cursor| {
                    PackedCode::read(cursor, RPC_41, spoken)
                })?);
            }
        }
        let mut values = Vec::with_capacity(count);
        for at in 0..count {
            // RPC-42: none was kept from 0.21 on, where each comes before its value.
            let code = codes.get(at).copied();
            values.push(cursor.within("args", at as u64, |cursor| {
                let code = match code {
                    Some(code) => code,
                    None => PackedCode::read(cursor, RPC_42, spoken)?,
                };
                PackedValue::read(cursor, code, spoken, findings)
            })?);
        }
        Ok(values)
    }

    /// Reads the value behind `code`.
    fn read(
        cursor: &mut Cursor<'a>,
        code: PackedCode,
        spoken: &Protocol,
        findings: &mut Findings,
    ) -> Result<PackedValue<'a>, Violation> {
        Ok(match code.stored {
            S::None => PackedValue::None,
            S::Int => PackedValue::Int(*cursor.i64("value", RPC_43)?),
            // RPC-43: it has a code up to 0.20 only.
            S::Uint => PackedValue::Uint(*cursor.u64("value", RPC_43)?),
            S::Float => PackedValue::Float(*cursor.f64("value", RPC_43)?),
            S::Handle => PackedValue::Handle(*cursor.u64("value", RPC_43)?),
            // RPC-48: the direction was checked with the code.
            S::Module => PackedValue::Module(*cursor.u64("value", RPC_43)?),
            S::Function => PackedValue::Function(*cursor.u64("value", RPC_43)?),
            S::Device => PackedValue::Device(Device::read(cursor)?),
            S::Tensor => PackedValue::Tensor(TensorBlock::read(cursor, spoken)?),
            S::Bytes => PackedValue::Bytes(Cow::Borrowed(cursor.bytes("value", RPC_43)?)),
            // RPC-46: the value is kept as it is, so that odd bytes are written as they were read.
            S::Bool => {
                let value = cursor.i64("value", RPC_43)?;
                PackedValue::Bool(value.expect(
                    findings,
                    RPC_46,
                    Kind::Malformed,
                    |value| matches!(value, 0 | 1),
                    |value| format!("a bool is {value}"),
                )?)
            }
            // RPC-45: what wrote whole unions left in the padding what was there; the type itself is read all the same.
            S::Dtype => {
                let dtype = Dtype::read(cursor)?;
                let padding = cursor.i32("padding", RPC_45)?.expect(
                    findings,
                    RPC_45,
                    Kind::Malformed,
                    |padding| *padding == 0,
                    |padding| format!("the padding of an element type is {padding:#x}"),
                )?;
                PackedValue::Dtype(dtype, padding)
            }
            S::Str => {
                let text = cursor.read("value", |cursor| cursor.bytes("value", RPC_43))?;
                PackedValue::Str(Cow::Borrowed(text.expect(
                    findings,
                    RPC_44,
                    Kind::Malformed,
                    |text| !text.contains(&0),
                    |_| "a C string with a NUL inside: its receiver reads up to there".to_owned(),
                )?))
            }
            // `PackedCode::read` rejects what no packet holds.
            S::Object | S::Never => {
                PackedValue::read_object(cursor, code.number, spoken, findings)?
            }
        })
    }

    /// Reads an object behind the type index `outer`: its inner index, and what that says (RPC-47).
    fn read_object(
        cursor: &mut Cursor<'a>,
        outer: i32,
        spoken: &Protocol,
        findings: &mut Findings,
    ) -> Result<PackedValue<'a>, Violation> {
        let inner = cursor.i32("index", RPC_47)?;
        let value = match (*inner, spoken.is_ffi(), spoken.release.minor()) {
            (INNER_LEGACY, false, _) | (INNER_REFERENCE, true, _) => {
                PackedValue::Object(*cursor.u64("value", RPC_47)?, outer)
            }
            (INNER_STR, true, 22..) => {
                PackedValue::StrObject(Cow::Borrowed(cursor.bytes("value", RPC_47)?), outer)
            }
            (INNER_BYTES, true, 22..) => {
                PackedValue::BytesObject(Cow::Borrowed(cursor.bytes("value", RPC_47)?), outer)
            }
            _ => {
                let (release, index) = (spoken.release, *inner);
                let message =
                    format!("release {release} has no object of index {index} in a packet");
                return Err(inner.broken(RPC_47, Kind::UnknownKind, message));
            }
        };
        // RPC-49: released readers go by the inner index and never look at the outer one again.
        let agrees = |inner: &i32| match *inner {
            INNER_LEGACY => outer == 8,
            INNER_STR => matches!(outer, INNER_STR | 11),
            INNER_BYTES => matches!(outer, INNER_BYTES | 12),
            _ => outer == INNER_REFERENCE,
        };
        inner.expect(findings, RPC_49, Kind::Malformed, agrees, |inner| {
            format!("an object of index {inner} behind type index {outer}")
        })?;
        Ok(value)
    }

    /// Writes a sequence.
    pub(super) fn write_all(
        values: &[PackedValue<'_>],
        spoken: &Protocol,
        out: &mut Writer,
    ) -> Result<(), Violation> {
        // RPC-40: the count is an i32, and a negative one is malformed.
        let count = i32::try_from(values.len())
            .map_err(|_| RPC_40.rejected(Kind::Limit, format!("{} values", values.len())))?;
        out.i32(count);
        if !spoken.is_ffi() {
            for value in values {
                out.i32(value.code(spoken)?);
            }
        }
        for value in values {
            if spoken.is_ffi() {
                out.i32(value.code(spoken)?);
            }
            // RPC-41, RPC-42: the value is the same in both orders.
            value.write(spoken, out)?;
        }
        Ok(())
    }

    /// Writes the value behind its code.
    fn write(&self, spoken: &Protocol, out: &mut Writer) -> Result<(), Violation> {
        match self {
            PackedValue::None => {}
            // RPC-46: a bool is 64 bits as an integer is; only the code differs.
            PackedValue::Int(value) | PackedValue::Bool(value) => out.i64(*value),
            PackedValue::Uint(value)
            | PackedValue::Handle(value)
            | PackedValue::Module(value)
            | PackedValue::Function(value) => out.u64(*value),
            PackedValue::Float(value) => out.f64(*value),
            // RPC-45: what was read is written, padding included.
            PackedValue::Dtype(dtype, padding) => {
                dtype.write(out);
                out.i32(*padding);
            }
            PackedValue::Device(device) => device.write(out),
            PackedValue::Tensor(block) => block.write(spoken, out)?,
            PackedValue::Str(bytes) | PackedValue::Bytes(bytes) => out.bytes(bytes),
            // RPC-49: the outer index was written as the code; what follows is the inner one.
            PackedValue::Object(handle, _) => {
                out.i32(if spoken.is_ffi() {
                    INNER_REFERENCE
                } else {
                    INNER_LEGACY
                });
                out.u64(*handle);
            }
            PackedValue::StrObject(bytes, _) => {
                out.i32(INNER_STR);
                out.bytes(bytes);
            }
            PackedValue::BytesObject(bytes, _) => {
                out.i32(INNER_BYTES);
                out.bytes(bytes);
            }
        }
        Ok(())
    }

    /// The code in front of the value: the one that its release has for it, and of an object the index that it was read with.
    fn code(&self, spoken: &Protocol) -> Result<i32, Violation> {
        let (wanted, outer) = match self {
            PackedValue::None => (S::None, None),
            PackedValue::Int(_) => (S::Int, None),
            PackedValue::Uint(_) => (S::Uint, None),
            PackedValue::Bool(_) => (S::Bool, None),
            PackedValue::Float(_) => (S::Float, None),
            PackedValue::Handle(_) => (S::Handle, None),
            PackedValue::Dtype(..) => (S::Dtype, None),
            PackedValue::Device(_) => (S::Device, None),
            PackedValue::Tensor(_) => (S::Tensor, None),
            PackedValue::Str(_) => (S::Str, None),
            PackedValue::Bytes(_) => (S::Bytes, None),
            PackedValue::Module(_) => (S::Module, None),
            PackedValue::Function(_) => (S::Function, None),
            PackedValue::Object(_, outer) => (S::Object, Some(*outer)),
            // RPC-47: strings and bytes by value came with 0.22; before there is no code for them.
            PackedValue::StrObject(_, outer) | PackedValue::BytesObject(_, outer) => (
                S::Object,
                Some(*outer).filter(|_| spoken.release.minor() >= 22),
            ),
        };
        // From the table of the reader, so that the two cannot differ. The largest code of a value that is no object is 73.
        let mut known = (0..=73).filter(|code| stored(*code, spoken) == Some(wanted));
        let code = match outer {
            Some(outer) => Some(outer).filter(|outer| stored(*outer, spoken) == Some(S::Object)),
            // Many codes say that an object follows: without the one that it had there is none to choose.
            None if wanted == S::Object => None,
            None => known.next(),
        };
        let code = code.ok_or_else(|| {
            let message = format!("release {} has no code for {self:?}", spoken.release);
            RPC_43.rejected(Kind::Unsupported, message)
        })?;
        // RPC-48: upstream follows the number as a pointer.
        if matches!(wanted, S::Module | S::Function) {
            let kept = spoken.speaker == sender_of_handles(spoken);
            RPC_48.demand(Kind::Malformed, kept, || wrong_way(spoken))?;
        }
        Ok(code)
    }
}
