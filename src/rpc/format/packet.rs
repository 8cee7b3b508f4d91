//! Packets: a length, a code and a body; up to 0.6 without the length.
//!
//! | code | body | rule |
//! |---|---|---|
//! | InitServer | version string, values | RPC-22, RPC-23 |
//! | CallFunc | u64 function, values | RPC-24 |
//! | CopyFromRemote | tensor block, u64 bytes | RPC-25 |
//! | CopyToRemote | tensor block, u64 bytes, the bytes | RPC-25 |
//! | Return, Exception | values | RPC-26 |
//! | CopyAck | the bytes | RPC-27 |
//! | Shutdown | nothing | RPC-14 |
//! | all others | values | RPC-28 |

use super::super::{
    RPC_10, RPC_12, RPC_13, RPC_14, RPC_20, RPC_21, RPC_22, RPC_23, RPC_24, RPC_25, RPC_26, RPC_27,
};
use super::code::RpcCode;
use super::packed::PackedValue;
use super::protocol::{Progress, Protocol, peek_value};
use super::system_call;
use super::tensor_block::TensorBlock;
use crate::release::Release;
use crate::rule::{Findings, Kind, Violation};
use crate::tensor::{Device, Dtype};
use crate::wire::{Cursor, Writer, show};
use std::borrow::Cow;

/// One packet.
#[derive(Clone, Debug, PartialEq)]
pub enum Packet<'a> {
    /// An empty packet, whose length is 0. It has no answer (RPC-11). It exists from 0.7 on.
    KeepAlive,
    /// The end of the session.
    Shutdown,
    /// First packet of a session, from 0.7 on. It has the version, and optionally the name and arguments of a function that creates the
    /// session.
    InitServer(Cow<'a, [u8]>, Vec<PackedValue<'a>>),
    /// A call: the handle of a function, and its arguments.
    CallFunc(u64, Vec<PackedValue<'a>>),
    /// A result.
    Return(Vec<PackedValue<'a>>),
    /// An error message: one string.
    Exception(Vec<PackedValue<'a>>),
    /// A request for data: its place on the server, and the number of bytes.
    CopyFromRemote(CopyTarget, u64),
    /// Data to store: its place on the server, and the bytes.
    CopyToRemote(CopyTarget, Cow<'a, [u8]>),
    /// The answer to [`Packet::CopyFromRemote`]: the bytes.
    CopyAck(Cow<'a, [u8]>),
    /// A call that the session itself answers, and its arguments.
    ///
    /// Up to 0.6 the arguments are not checked (RPC-28).
    SystemCall(RpcCode, Vec<PackedValue<'a>>),
}

/// The place on the server that a copy reads or writes.
///
/// No server compares the number of bytes with the tensor (RPC-25): the code that executes the copy does that.
#[derive(Clone, Debug, PartialEq)]
pub enum CopyTarget {
    /// From 0.8 on: a tensor.
    Block(TensorBlock),
    /// Up to 0.7: an allocation, an offset into it, its device and the type of its elements.
    Flat(u64, u64, Device, Dtype),
}

impl<'a> Packet<'a> {
    /// Reads one packet, once all of its bytes have come in.
    ///
    /// # Errors
    ///
    /// Returns RPC-12 and RPC-13 for an invalid length, as soon as the length has arrived. Then returns RPC-20, RPC-21 and the rules of
    /// the body. A field that goes beyond the packet's length is a violation of WIRE-01, even if more of the stream follows.
    pub fn read(
        cursor: &mut Cursor<'a>,
        spoken: &Protocol,
        findings: &mut Findings,
    ) -> Result<Progress<Packet<'a>>, Violation> {
        if !spoken.is_framed() {
            return Packet::read_unframed(cursor, spoken, findings);
        }
        let length = match peek_value(cursor, "length", u64::from_le_bytes) {
            Progress::Short(more) => return Ok(Progress::Short(more)),
            Progress::Whole(length) => length,
        };
        // RPC-13: a server of 0.27 reserves and clears 1.2 times the stated length, before the packet has arrived.
        length.require_as(
            Kind::Limit,
            RPC_13,
            |length| *length <= spoken.largest,
            |length| format!("a packet of {length} bytes, {} are read", spoken.largest),
        )?;
        // RPC-12: a server of 0.27 ends its session here, and with it its listener.
        let length = length.require(
            RPC_12,
            |length| *length == 0 || *length >= 4,
            |length| format!("a packet of {length} bytes has no code"),
        )?;
        // The 8 bytes of the length are not consumed yet: an incomplete packet leaves the cursor before its length (RPC-16).
        let there = (cursor.remaining() as u64).saturating_sub(8);
        if length > there {
            return Ok(Progress::Short(length.saturating_sub(there)));
        }
        cursor.u64("length", RPC_10)?;
        // RPC-11: otherwise the client would treat an answer to it as the answer to its next request.
        if length == 0 {
            return Ok(Progress::Whole(Packet::KeepAlive));
        }
        // The window ends with the packet. A field that goes beyond it is invalid, even if more bytes follow in the stream.
        let mut body = cursor.split(length, "body")?;
        let packet = Packet::read_body(&mut body, spoken, findings)?;
        // RPC-14: upstream servers answer first, and then end the session because of the remaining bytes.
        let left = body.remaining();
        RPC_14.require_as(Kind::Trailing, left == 0, body.offset(), || {
            format!("{left} bytes follow the end of the body")
        })?;
        Ok(Progress::Whole(packet))
    }

    /// Reads a packet without a length (RPC-15). It ends with its last field, and missing bytes may still arrive.
    fn read_unframed(
        cursor: &mut Cursor<'a>,
        spoken: &Protocol,
        findings: &mut Findings,
    ) -> Result<Progress<Packet<'a>>, Violation> {
        // No length shows where the packet ends. The first pass checks that it is complete, and the second collects its findings.
        let attempt = Packet::read_body(&mut cursor.look_ahead(), spoken, &mut Findings::default());
        if attempt.is_err_and(|broken| broken.kind() == Kind::Truncated) {
            let there = cursor.remaining() as u64;
            // RPC-13: without a length the bound applies to the bytes that have come in so far.
            RPC_13.require_as(
                Kind::Limit,
                there <= spoken.largest,
                cursor.offset(),
                || format!("a packet of more than {there} bytes"),
            )?;
            // A code has four bytes; after it, only the next field can tell how many more bytes follow.
            return Ok(Progress::Short(4_u64.saturating_sub(there).max(1)));
        }
        Packet::read_body(cursor, spoken, findings).map(Progress::Whole)
    }

    /// Reads the code and the body after it.
    fn read_body(
        cursor: &mut Cursor<'a>,
        spoken: &Protocol,
        findings: &mut Findings,
    ) -> Result<Packet<'a>, Violation> {
        let number = cursor.i32("code", RPC_20)?;
        let Some(code) = RpcCode::from_number(*number, spoken.release) else {
            let message = format!(
                "release {} has no packet of code {}",
                spoken.release, *number
            );
            return Err(number.broken(RPC_20, Kind::UnknownKind, message));
        };
        // RPC-21: up to 0.6 one table served both directions, and a server could call back.
        let mine = code
            .speaker()
            .is_none_or(|speaker| speaker == spoken.speaker);
        number.require(
            RPC_21,
            |_| mine || !spoken.is_framed(),
            |_| format!("a {} writes no {}", spoken.speaker.name(), code.name()),
        )?;
        Ok(match code {
            // RPC-14: bytes after it are detected at the end of the packet.
            RpcCode::Shutdown => Packet::Shutdown,
            RpcCode::InitServer => {
                let start = cursor.offset();
                let version = cursor.bytes("version", RPC_22)?;
                // RPC-23: checked before the arguments, because a peer of another version may encode them differently.
                check_version(version, spoken.release, start)
                    .map_err(|broken| broken.in_field("version"))?;
                let args = PackedValue::read_all(cursor, spoken, findings)?;
                Packet::InitServer(Cow::Borrowed(version), args)
            }
            RpcCode::CallFunc => {
                let function = *cursor.u64("function", RPC_24)?;
                Packet::CallFunc(function, PackedValue::read_all(cursor, spoken, findings)?)
            }
            RpcCode::Return => Packet::Return(PackedValue::read_all(cursor, spoken, findings)?),
            RpcCode::Exception => {
                let start = cursor.offset();
                let values = PackedValue::read_all(cursor, spoken, findings)?;
                check_exception(&values, start)?;
                Packet::Exception(values)
            }
            // RPC-25: the number of bytes is not compared with the tensor here: only the server knows the allocation.
            RpcCode::CopyFromRemote => {
                let (from, bytes) = CopyTarget::read(cursor, spoken)?;
                Packet::CopyFromRemote(from, bytes)
            }
            // RPC-25: the number states how many bytes follow in the same packet.
            RpcCode::CopyToRemote => {
                let (to, bytes) = CopyTarget::read(cursor, spoken)?;
                Packet::CopyToRemote(to, Cow::Borrowed(cursor.take(bytes, "content", RPC_25)?))
            }
            RpcCode::CopyAck => {
                let bytes = copied(cursor, spoken)?;
                Packet::CopyAck(Cow::Borrowed(cursor.take(bytes, "content", RPC_27)?))
            }
            code => {
                let start = cursor.offset();
                let args = PackedValue::read_all(cursor, spoken, findings)?;
                system_call::check(code, &args, spoken.release, start)?;
                Packet::SystemCall(code, args)
            }
        })
    }

    /// Returns the code; `None` for [`Packet::KeepAlive`].
    pub fn code(&self) -> Option<RpcCode> {
        Some(match self {
            Packet::KeepAlive => return None,
            Packet::Shutdown => RpcCode::Shutdown,
            Packet::InitServer(..) => RpcCode::InitServer,
            Packet::CallFunc(..) => RpcCode::CallFunc,
            Packet::Return(_) => RpcCode::Return,
            Packet::Exception(_) => RpcCode::Exception,
            Packet::CopyFromRemote(..) => RpcCode::CopyFromRemote,
            Packet::CopyToRemote(..) => RpcCode::CopyToRemote,
            Packet::CopyAck(_) => RpcCode::CopyAck,
            Packet::SystemCall(code, _) => *code,
        })
    }

    /// Writes the packet.
    ///
    /// # Errors
    ///
    /// * RPC-20 of kind unsupported for a code that the release does not have.
    /// * RPC-21 for a code of the other side.
    /// * The rules of the values, and every rule that a reader of the packet checks.
    pub fn write(&self, spoken: &Protocol, out: &mut Writer) -> Result<(), Violation> {
        let Some(code) = self.code() else {
            if !spoken.is_framed() {
                // RPC-15: up to 0.6 there is no length that could be 0.
                let message = format!("release {} has no packet of nothing", spoken.release);
                return Err(RPC_20.rejected(Kind::Unsupported, message));
            }
            // RPC-11: a length of 0, without a code.
            out.u64(0);
            return Ok(());
        };
        let number = code.number(spoken.release).ok_or_else(|| {
            let message = format!("release {} has no {}", spoken.release, code.name());
            RPC_20.rejected(Kind::Unsupported, message)
        })?;
        let mine = code
            .speaker()
            .is_none_or(|speaker| speaker == spoken.speaker);
        // RPC-21: a writer obeys it like a reader; up to 0.6 one table serves both directions.
        RPC_21.demand(Kind::Malformed, mine || !spoken.is_framed(), || {
            format!("a {} writes no {}", spoken.speaker.name(), code.name())
        })?;
        // A separate buffer, because the length comes first, and a packet that cannot be written must leave no bytes in `out`.
        let mut body = Writer::new();
        body.i32(number);
        // A violation in a value has no offset here: no bytes were read.
        self.write_body(spoken, &mut body)
            .map_err(|broken| broken.rule().rejected(broken.kind(), broken.message()))?;
        let body = body.into_bytes();
        if spoken.is_framed() {
            out.u64(body.len() as u64);
        }
        out.raw(&body);
        Ok(())
    }

    /// Writes the body that follows the code.
    fn write_body(&self, spoken: &Protocol, out: &mut Writer) -> Result<(), Violation> {
        match self {
            Packet::KeepAlive | Packet::Shutdown => Ok(()),
            Packet::InitServer(version, args) => {
                // RPC-22: checked here as in the reader, so that nothing is written that a server of this crate rejects.
                check_version(version, spoken.release, 0)?;
                out.bytes(version);
                PackedValue::write_all(args, spoken, out)
            }
            Packet::CallFunc(function, args) => {
                out.u64(*function);
                PackedValue::write_all(args, spoken, out)
            }
            Packet::Return(values) => PackedValue::write_all(values, spoken, out),
            Packet::Exception(values) => {
                check_exception(values, 0)?;
                PackedValue::write_all(values, spoken, out)
            }
            Packet::CopyFromRemote(from, bytes) => from.write(*bytes, spoken, out),
            Packet::CopyToRemote(to, content) => {
                to.write(content.len() as u64, spoken, out)?;
                out.raw(content);
                Ok(())
            }
            Packet::CopyAck(content) => {
                out.raw(content);
                Ok(())
            }
            Packet::SystemCall(code, args) => {
                system_call::check(*code, args, spoken.release, 0)?;
                PackedValue::write_all(args, spoken, out)
            }
        }
    }
}

impl CopyTarget {
    /// Reads the target of a copy and the number of bytes.
    fn read(cursor: &mut Cursor<'_>, spoken: &Protocol) -> Result<(CopyTarget, u64), Violation> {
        // RPC-25: in 0.8 a tensor replaced handle and offset.
        if spoken.release.minor() >= 8 {
            let block =
                cursor.read_within("tensor", None, |cursor| TensorBlock::read(cursor, spoken))?;
            return Ok((CopyTarget::Block(block), *cursor.u64("bytes", RPC_25)?));
        }
        // Up to 0.7 the number of bytes is between the offset and the device; from 0.8 on it follows the tensor.
        let handle = *cursor.u64("handle", RPC_25)?;
        let offset = *cursor.u64("offset", RPC_25)?;
        let bytes = *cursor.u64("bytes", RPC_25)?;
        let device = Device::read(cursor)?;
        let dtype = Dtype::read(cursor)?;
        Ok((CopyTarget::Flat(handle, offset, device, dtype), bytes))
    }

    /// Writes the target of a copy and the number of bytes.
    fn write(&self, bytes: u64, spoken: &Protocol, out: &mut Writer) -> Result<(), Violation> {
        match (self, spoken.release.minor()) {
            // RPC-25: the two forms are not converted: a flat copy has no shape, and a tensor of 0.8 may have several dimensions.
            (CopyTarget::Block(block), 8..) => {
                block.write(spoken, out)?;
                out.u64(bytes);
            }
            (CopyTarget::Flat(handle, offset, device, dtype), ..=7) => {
                out.u64(*handle);
                out.u64(*offset);
                out.u64(bytes);
                device.write(out);
                dtype.write(out);
            }
            _ => {
                let message = format!("release {} copies otherwise", spoken.release);
                return Err(RPC_25.rejected(Kind::Unsupported, message));
            }
        }
        Ok(())
    }
}

/// Returns the length of an answer to a copy. It is the rest of the packet or, without a packet length, the number of bytes that was
/// requested.
fn copied(cursor: &Cursor<'_>, spoken: &Protocol) -> Result<u64, Violation> {
    if spoken.is_framed() {
        return Ok(cursor.remaining() as u64);
    }
    // RPC-27: up to 0.6 only the client knows the length, because it requested the bytes.
    spoken.awaited.ok_or_else(|| {
        let message = "how many bytes were asked for is not known".to_owned();
        RPC_27
            .broken(Kind::Missing, cursor.offset(), message)
            .in_field("content")
    })
}

/// Checks the version (RPC-23). It changed only between 0.7 and 0.8, although the protocol changed later as well.
fn check_version(version: &[u8], release: Release, place: u64) -> Result<(), Violation> {
    // RPC-22: InitServer came with 0.7, so that no earlier release reaches this line.
    let own: &[u8] = if release.minor() == 7 {
        b"0.7.0"
    } else {
        b"0.8.0"
    };
    RPC_23.require_as(Kind::Unsupported, version == own, place, || {
        format!(
            "version `{}`, release {release} has `{}`",
            show(version),
            show(own)
        )
    })
}

/// Checks that an exception is one string (RPC-26).
fn check_exception(values: &[PackedValue<'_>], place: u64) -> Result<(), Violation> {
    // Upstream writes a C string; a string by value carries the same message.
    let one = matches!(values, [PackedValue::Str(_) | PackedValue::StrObject(..)]);
    RPC_26.require_as(Kind::Type, one, place, || {
        format!("an exception of {} values is one string", values.len())
    })
}
