//! The codes before packed values: the meaning of each number in each release (RPC-43, RPC-48).

use super::super::{RPC_43, RPC_48};
use super::protocol::{Protocol, Speaker};
use crate::rule::{Kind, Rule, Violation};
use crate::wire::Cursor;

/// The kind of value that follows a code (RPC-43), independent of the numbers that the releases use.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum StoredValue {
    None,
    Int,
    Uint,
    Bool,
    Float,
    Handle,
    Dtype,
    Device,
    Tensor,
    Str,
    Bytes,
    Module,
    Function,
    /// A second type index, which determines the encoding of the value after it (RPC-47).
    Object,
    /// A value that the releases know but never put into a packet.
    Never,
}

use StoredValue as S;

/// Values of the codes up to 0.20, from code 0 on.
///
/// `stored` removes those that a release does not have yet.
#[rustfmt::skip]
const LEGACY: [StoredValue; 16] = [
    S::Int, S::Uint, S::Float, S::Handle, S::None, S::Dtype, S::Device, S::Tensor,
    S::Object, S::Module, S::Function, S::Str, S::Bytes, S::Never, S::Never, S::Bool,
];

/// Values of the type indices from 0.21 on, from index 0 on.
///
/// `stored` handles the indices of objects, from 64 on.
#[rustfmt::skip]
const FFI: [StoredValue; 13] = [
    S::None, S::Int, S::Bool, S::Float, S::Handle, S::Dtype, S::Device, S::Tensor,
    S::Str, S::Bytes, S::Never, S::Object, S::Object,
];

/// Returns the kind of value that follows `code`, or `None` for a code without a meaning.
///
/// A code without a meaning is rejected as unknown-kind, `Never` as unsupported (RPC-43).
pub(super) fn stored(code: i32, spoken: &Protocol) -> Option<StoredValue> {
    let minor = spoken.release.minor();
    let place = usize::try_from(code).ok()?;
    if !spoken.is_ffi() {
        return match (LEGACY.get(place).copied()?, minor) {
            // RPC-43: before 0.18 a bool is an integer, and code 15 has no meaning: it ends the session.
            (S::Bool, ..=17) => None,
            // RPC-47: the hook for objects in 0.14 and 0.15 always throws.
            (S::Object, ..=15) => Some(S::Never),
            (stored, _) => Some(stored),
        };
    }
    match (code, minor) {
        // RPC-43: strings and bytes that are stored inline came with 0.22.
        (11 | 12, 21) => None,
        (0..64, _) => FFI.get(place).copied(),
        // Objects have indices from 64 on. Two of them are written as handles and are therefore checked first.
        (68, _) => Some(S::Function),
        (73, _) => Some(S::Module),
        // RPC-43: 0.22 renumbered the objects: the index of the tensor in 0.21 is that of the map in 0.22.
        (72, 21) | (70, 22..) => Some(S::Never),
        // RPC-47: after any other object index, the inner index determines the encoding.
        _ => Some(S::Object),
    }
}

/// A code, and the kind of value that follows it.
#[derive(Clone, Copy)]
pub(super) struct PackedCode {
    /// The number as it was read: an object keeps it as its outer type index.
    pub(super) number: i32,
    /// The kind of value that follows.
    pub(super) stored: StoredValue,
}

impl PackedCode {
    /// Reads a code, under `rule` (RPC-41 or RPC-42).
    pub(super) fn read(
        cursor: &mut Cursor<'_>,
        rule: Rule,
        spoken: &Protocol,
    ) -> Result<PackedCode, Violation> {
        let code = cursor.i32("code", rule)?;
        let number = *code;
        let stored = match stored(number, spoken) {
            // RPC-43: unsupported, not unknown-kind: the releases have this value, but no writer puts it into a packet.
            Some(S::Never) => {
                let message = format!(
                    "a value of code {number} is in no packet of {}",
                    spoken.release
                );
                return Err(code.broken(RPC_43, Kind::Unsupported, message));
            }
            Some(stored) => stored,
            None => {
                let message = format!("release {} has no value of code {number}", spoken.release);
                return Err(code.broken(RPC_43, Kind::UnknownKind, message));
            }
        };
        if matches!(stored, S::Module | S::Function) {
            code.require(
                RPC_48,
                |_| spoken.speaker == sender_of_handles(spoken),
                |_| wrong_direction_message(spoken),
            )?;
        }
        Ok(PackedCode { number, stored })
    }
}

/// Returns the side that writes the codes of modules and functions (RPC-48). From 0.7 on a result contains a plain handle, and its first
/// value states the kind.
pub(super) fn sender_of_handles(spoken: &Protocol) -> Speaker {
    // RPC-48: up to 0.6 a server returned modules and functions with their own codes.
    if spoken.is_framed() {
        Speaker::Client
    } else {
        Speaker::Server
    }
}

/// Returns the message of a violation of RPC-48.
pub(super) fn wrong_direction_message(spoken: &Protocol) -> String {
    let (speaker, release) = (spoken.speaker.name(), spoken.release);
    format!("a {speaker} of {release} writes no module and no function by its own code")
}
