//! The objects of a session. A client knows them by tokens: numbers that only this table can resolve (RPC-85).

use super::super::RPC_85;
use crate::device::{Device, Stream};
use crate::function::{Function, Result};
use crate::module::Module;
use crate::object::Tensor;
use crate::rule::Kind;
use crate::value::ObjectRef;
use std::collections::BTreeMap;
use std::ffi::c_void;

/// Maximum number of handles of a session at a time.
const MOST: usize = 1 << 20;

/// First token. Tokens of memory are larger, so that no number is both.
const FIRST: u64 = 0x1000;

/// Distance between tokens, so that a client that adds one to a token gets an invalid one.
const STEP: u64 = 0x10;

/// The object of a token.
pub(super) enum HandleContent {
    /// A function.
    Function(Function),
    /// A module.
    Module(Module),
    /// A tensor, and the token of its data.
    Tensor(Tensor, u64),
    /// Another object.
    Object(ObjectRef),
    /// A pointer that a function returned. It can only be passed to functions again.
    Opaque(*mut c_void),
    /// A stream of a device.
    Stream(Device, Stream),
}

/// The objects of a session by token. A token is never used twice.
pub(super) struct HandleTable {
    next: u64,
    held: BTreeMap<u64, HandleContent>,
    /// Tokens of tensors by the tokens of their data.
    of_data: BTreeMap<u64, u64>,
}

impl HandleTable {
    /// Creates an empty table.
    pub(super) fn new() -> HandleTable {
        HandleTable {
            next: FIRST,
            held: BTreeMap::new(),
            of_data: BTreeMap::new(),
        }
    }

    /// Adds `held` under a new token.
    pub(super) fn insert(&mut self, held: HandleContent) -> Result<u64> {
        // RPC-85: objects that a client never frees cost the server memory, even if they are small.
        RPC_85.demand(Kind::Limit, self.held.len() < MOST, || {
            format!("a session has {MOST} handles at most: free some")
        })?;
        let token = self.next;
        // RPC-85: tokens only increase: a client that kept an old token must not reach a later object.
        self.next = token.saturating_add(STEP);
        if let HandleContent::Tensor(_, data) = &held {
            self.of_data.insert(*data, token);
        }
        self.held.insert(token, held);
        Ok(token)
    }

    /// Returns the object of `token`.
    pub(super) fn get(&self, token: u64) -> Result<&HandleContent> {
        match self.held.get(&token) {
            Some(held) => Ok(held),
            None => Err(unknown(token)),
        }
    }

    /// Removes `token`, and returns its object.
    pub(super) fn remove(&mut self, token: u64) -> Result<HandleContent> {
        let held = self.held.remove(&token).ok_or_else(|| unknown(token))?;
        if let HandleContent::Tensor(_, data) = &held {
            self.of_data.remove(data);
        }
        Ok(held)
    }

    /// Returns the token of the tensor whose data has the token `data`.
    pub(super) fn of_data(&self, data: u64) -> Option<u64> {
        self.of_data.get(&data).copied()
    }

    /// Returns the function of `token`.
    pub(super) fn function(&self, token: u64) -> Result<&Function> {
        match self.get(token)? {
            HandleContent::Function(function) => Ok(function),
            _ => Err(wrong_kind(token, "function")),
        }
    }

    /// Returns the module of `token`.
    pub(super) fn module(&self, token: u64) -> Result<&Module> {
        match self.get(token)? {
            HandleContent::Module(module) => Ok(module),
            _ => Err(wrong_kind(token, "module")),
        }
    }

    /// Returns the stream of `token`; 0 is the default stream of every device.
    pub(super) fn stream(&self, token: u64, device: Device) -> Result<Stream> {
        if token == 0 {
            return Ok(Stream::DEFAULT);
        }
        match self.get(token)? {
            // RPC-85: the number of the device must match as well, because a driver uses the handle on the device of the call.
            HandleContent::Stream(of, stream) if *of == device => Ok(*stream),
            _ => Err(wrong_kind(token, "stream of this device")),
        }
    }

    /// Returns the token of a stream that this session created.
    pub(super) fn of_stream(&self, device: Device, stream: Stream) -> Option<u64> {
        let is = |held: &HandleContent| matches!(held, HandleContent::Stream(of, is) if (*of, *is) == (device, stream));
        self.held
            .iter()
            .find_map(|(token, held)| is(held).then_some(*token))
    }
}

/// Creates the error for an unknown token (RPC-85). Upstream would use any number as an address.
fn unknown(token: u64) -> crate::function::Error {
    let message = format!("{token:#x} is not a handle of this session, or was freed");
    RPC_85.rejected(Kind::Missing, message).into()
}

/// Creates the error for a token of another kind of object (RPC-85).
fn wrong_kind(token: u64, wanted: &str) -> crate::function::Error {
    let message = format!("handle {token:#x} is not a {wanted}");
    RPC_85.rejected(Kind::Type, message).into()
}
