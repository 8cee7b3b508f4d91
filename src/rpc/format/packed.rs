//! Packed values: the arguments of calls, and results, in the encodings of both eras.
//!
//! | part | bytes | rule |
//! |---|---|---|
//! | count | i32 | RPC-40 |
//! | up to 0.20: all codes, then all values | i32 each | RPC-41 |
//! | from 0.21 on: code and value alternate | i32 each | RPC-42 |

use super::super::{
    RPC_40, RPC_41, RPC_42, RPC_43, RPC_44, RPC_45, RPC_46, RPC_47, RPC_48, RPC_49,
};
use super::packed_code::{
    PackedCode, StoredValue, sender_of_handles, stored, wrong_direction_message,
};
use super::protocol::Protocol;
use super::tensor_block::TensorBlock;
use crate::rule::{Findings, Kind, Violation};
use crate::tensor::{Device, Dtype};
use crate::wire::{Cursor, Writer};
use std::borrow::Cow;

/// One argument or result of a call.
///
/// RPC-43 defines the code and the bytes of each. Numbers are encoded as in WIRE-02. A handle is a number that the server chose for an
/// object. Upstream uses addresses, and a client can only pass them back.
#[derive(Clone, Debug, PartialEq)]
pub enum PackedValue<'a> {
    /// Nothing.
    None,
    /// An integer. Up to 0.17 also a bool.
    Int(i64),
    /// An unsigned integer. It exists up to 0.20, and no released peer writes it.
    Uint(u64),
    /// A bool, as the 64 bits that encode it: 0 or 1 (RPC-46). It exists from 0.18 on; before, a bool is an integer.
    Bool(i64),
    /// A float.
    Float(f64),
    /// A number by which the server knows something: a stream, an allocation, an object.
    Handle(u64),
    /// An element type, and the four bytes of padding after it (RPC-45).
    Dtype(Dtype, i32),
    /// A device of the server.
    Device(Device),
    /// A tensor without its data.
    Tensor(TensorBlock),
    /// A C string, without its terminating NUL; a NUL inside is odd (RPC-44).
    Str(Cow<'a, [u8]>),
    /// Bytes.
    Bytes(Cow<'a, [u8]>),
    /// A module of the server, by its handle; only one side writes it (RPC-48).
    Module(u64),
    /// A function of the server, by its handle; only one side writes it (RPC-48).
    Function(u64),
    /// Another object of the server, from 0.16 on, and the type index before it.
    Object(u64, i32),
    /// A string object by value, from 0.22 on, and the type index before it: 65, or 11 if it was stored inline.
    StrObject(Cow<'a, [u8]>, i32),
    /// A byte object by value, from 0.22 on, and the type index before it: 66, or 12 if it was stored inline.
    BytesObject(Cow<'a, [u8]>, i32),
}

use StoredValue as S;

/// Inner type index of an object up to 0.20: a reference to an object of the server (RPC-47).
const INNER_LEGACY: i32 = 9;
/// Inner type index from 0.22 on: a string by value.
const INNER_STR: i32 = 65;
/// Inner type index from 0.22 on: bytes by value.
const INNER_BYTES: i32 = 66;
/// Inner type index from 0.21 on: a reference to an object of the server.
const INNER_REFERENCE: i32 = 115;

impl<'a> PackedValue<'a> {
    /// Reads a sequence, as `field`.
    pub(super) fn read_all(
        cursor: &mut Cursor<'a>,
        spoken: &Protocol,
        findings: &mut Findings,
    ) -> Result<Vec<PackedValue<'a>>, Violation> {
        let counted = cursor.i32("count", RPC_40)?;
        // RPC-40: with a negative count, a server of 0.27 calls the function with arguments that an earlier packet left in memory.
        counted.require(
            RPC_40,
            |count| *count >= 0,
            |count| format!("{count} values"),
        )?;
        // Each value has a code of at least 4 bytes, so the remaining bytes limit the capacity of the list.
        let room = cursor.remaining() / 4;
        let count = usize::try_from(*counted).unwrap_or_default();
        if count > room {
            let message = format!("{count} values, and {} bytes follow", cursor.remaining());
            return Err(counted.broken(RPC_40, Kind::Truncated, message));
        }
        // RPC-41: up to 0.20 all codes come first, and are kept until their values are read.
        let mut codes = Vec::with_capacity(if spoken.is_ffi() { 0 } else { count });
        if !spoken.is_ffi() {
            for at in 0..count {
                codes.push(cursor.read_within("args", at as u64, |cursor| {
                    PackedCode::read(cursor, RPC_41, spoken)
                })?);
            }
        }
        let mut values = Vec::with_capacity(count);
        for at in 0..count {
            // RPC-42: from 0.21 on no code was kept, because each comes directly before its value.
            let code = codes.get(at).copied();
            values.push(cursor.read_within("args", at as u64, |cursor| {
                let code = match code {
                    Some(code) => code,
                    None => PackedCode::read(cursor, RPC_42, spoken)?,
                };
                PackedValue::read(cursor, code, spoken, findings)
            })?);
        }
        Ok(values)
    }

    /// Reads the value that follows `code`.
    fn read(
        cursor: &mut Cursor<'a>,
        code: PackedCode,
        spoken: &Protocol,
        findings: &mut Findings,
    ) -> Result<PackedValue<'a>, Violation> {
        Ok(match code.stored {
            S::None => PackedValue::None,
            S::Int => PackedValue::Int(*cursor.i64("value", RPC_43)?),
            // RPC-43: it has a code only up to 0.20.
            S::Uint => PackedValue::Uint(*cursor.u64("value", RPC_43)?),
            S::Float => PackedValue::Float(*cursor.f64("value", RPC_43)?),
            S::Handle => PackedValue::Handle(*cursor.u64("value", RPC_43)?),
            // RPC-48: the direction was checked with the code.
            S::Module => PackedValue::Module(*cursor.u64("value", RPC_43)?),
            S::Function => PackedValue::Function(*cursor.u64("value", RPC_43)?),
            S::Device => PackedValue::Device(Device::read(cursor)?),
            S::Tensor => PackedValue::Tensor(TensorBlock::read(cursor, spoken)?),
            S::Bytes => PackedValue::Bytes(Cow::Borrowed(cursor.bytes("value", RPC_43)?)),
            // RPC-46: the value is kept, so that odd bytes are written as they were read.
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
            // RPC-45: writers that copy whole unions leave arbitrary bytes in the padding. The type itself is valid, so that this is only a
            // finding.
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
            // `PackedCode::read` rejects codes that no packet contains.
            S::Object | S::Never => {
                PackedValue::read_object(cursor, code.number, spoken, findings)?
            }
        })
    }

    /// Reads the object that follows the type index `outer`: its inner index, and the content that this index defines (RPC-47).
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
        // RPC-49: released readers use the inner index and never look at the outer one again.
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
            // RPC-41, RPC-42: the value is the same in both encodings.
            value.write(spoken, out)?;
        }
        Ok(())
    }

    /// Writes the value that follows its code.
    fn write(&self, spoken: &Protocol, out: &mut Writer) -> Result<(), Violation> {
        match self {
            PackedValue::None => {}
            // RPC-46: a bool has 64 bits like an integer; only the code differs.
            PackedValue::Int(value) | PackedValue::Bool(value) => out.i64(*value),
            PackedValue::Uint(value)
            | PackedValue::Handle(value)
            | PackedValue::Module(value)
            | PackedValue::Function(value) => out.u64(*value),
            PackedValue::Float(value) => out.f64(*value),
            // RPC-45: the value is written as it was read, including its padding.
            PackedValue::Dtype(dtype, padding) => {
                dtype.write(out);
                out.i32(*padding);
            }
            PackedValue::Device(device) => device.write(out),
            PackedValue::Tensor(block) => block.write(spoken, out)?,
            PackedValue::Str(bytes) | PackedValue::Bytes(bytes) => out.bytes(bytes),
            // RPC-49: the outer index was written as the code; the inner one follows.
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

    /// Returns the code of the value in its release; for an object, the index that it was read with.
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
            // RPC-47: strings and bytes by value came with 0.22; earlier releases have no code for them.
            PackedValue::StrObject(_, outer) | PackedValue::BytesObject(_, outer) => (
                S::Object,
                Some(*outer).filter(|_| spoken.release.minor() >= 22),
            ),
        };
        // The table of the reader is used, so that the two cannot differ. The largest code of a value that is not an object is 73.
        let mut known = (0..=73).filter(|code| stored(*code, spoken) == Some(wanted));
        let code = match outer {
            Some(outer) => Some(outer).filter(|outer| stored(*outer, spoken) == Some(S::Object)),
            // Many codes mean an object, so the value cannot be written without the index that was read.
            None if wanted == S::Object => None,
            None => known.next(),
        };
        let code = code.ok_or_else(|| {
            let message = format!("release {} has no code for {self:?}", spoken.release);
            RPC_43.rejected(Kind::Unsupported, message)
        })?;
        // RPC-48: upstream dereferences the number as a pointer.
        if matches!(wanted, S::Module | S::Function) {
            let kept = spoken.speaker == sender_of_handles(spoken);
            RPC_48.demand(Kind::Malformed, kept, || wrong_direction_message(spoken))?;
        }
        Ok(code)
    }
}
