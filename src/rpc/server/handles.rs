//! The objects of a session. A client has tokens of them: numbers that only this table makes something of (RPC-85).

use super::super::RPC_85;
use crate::device::{Device, Stream};
use crate::function::{Function, Result};
use crate::module::Module;
use crate::object::Tensor;
use crate::rule::Kind;
use crate::value::ObjectRef;
use std::collections::BTreeMap;
use std::ffi::c_void;

/// How many handles a session has at a time.
const MOST: usize = 1 << 20;

/// The first token. Tokens of memory are above, so that none is both.
const FIRST: u64 = 0x1000;

/// Steps between tokens: a number that a client made up by adding to one is none.
const STEP: u64 = 0x10;

/// What is behind a token.
pub(super) enum HandleContent {
    /// A function.
    Function(Function),
    /// A module.
    Module(Module),
    /// A tensor, and the token of its data.
    Tensor(Tensor, u64),
    /// Another object.
    Object(ObjectRef),
    /// A pointer that a function returned. It only goes back into functions.
    Opaque(*mut c_void),
    /// A stream of a device.
    Stream(Device, Stream),
}

/// The objects of a session by token; a token is never used twice.
pub(super) struct HandleTable {
    next: u64,
    held: BTreeMap<u64, HandleContent>,
    /// The tokens of tensors by those of their data.
    of_data: BTreeMap<u64, u64>,
}

impl HandleTable {
    /// Without an entry.
    pub(super) fn new() -> HandleTable {
        HandleTable {
            next: FIRST,
            held: BTreeMap::new(),
            of_data: BTreeMap::new(),
        }
    }

    /// Enters `held`, under a token that was never used before.
    pub(super) fn insert(&mut self, held: HandleContent) -> Result<u64> {
        // RPC-85: what a client never frees costs the server memory, also where the objects themselves are small.
        RPC_85.demand(Kind::Limit, self.held.len() < MOST, || {
            format!("a session has {MOST} handles at most: free some")
        })?;
        let token = self.next;
        // RPC-85: upward alone: a client that kept a token for too long must not reach what came later.
        self.next = token.saturating_add(STEP);
        if let HandleContent::Tensor(_, data) = &held {
            self.of_data.insert(*data, token);
        }
        self.held.insert(token, held);
        Ok(token)
    }

    /// What is behind `token`.
    pub(super) fn get(&self, token: u64) -> Result<&HandleContent> {
        match self.held.get(&token) {
            Some(held) => Ok(held),
            None => Err(unknown(token)),
        }
    }

    /// Takes `token` out.
    pub(super) fn remove(&mut self, token: u64) -> Result<HandleContent> {
        let held = self.held.remove(&token).ok_or_else(|| unknown(token))?;
        if let HandleContent::Tensor(_, data) = &held {
            self.of_data.remove(data);
        }
        Ok(held)
    }

    /// The token of the tensor whose data has this one.
    pub(super) fn of_data(&self, data: u64) -> Option<u64> {
        self.of_data.get(&data).copied()
    }

    /// The function behind `token`.
    pub(super) fn function(&self, token: u64) -> Result<&Function> {
        match self.get(token)? {
            HandleContent::Function(function) => Ok(function),
            _ => Err(other(token, "function")),
        }
    }

    /// The module behind `token`.
    pub(super) fn module(&self, token: u64) -> Result<&Module> {
        match self.get(token)? {
            HandleContent::Module(module) => Ok(module),
            _ => Err(other(token, "module")),
        }
    }

    /// The stream behind `token`; 0 is the default one of every device.
    pub(super) fn stream(&self, token: u64, device: Device) -> Result<Stream> {
        if token == 0 {
            return Ok(Stream::DEFAULT);
        }
        match self.get(token)? {
            // RPC-85: the number of the device counts too: a driver follows the handle for the device that it is asked about.
            HandleContent::Stream(of, stream) if *of == device => Ok(*stream),
            _ => Err(other(token, "stream of this device")),
        }
    }

    /// The token of a stream that this session made.
    pub(super) fn of_stream(&self, device: Device, stream: Stream) -> Option<u64> {
        let is = |held: &HandleContent| matches!(held, HandleContent::Stream(of, is) if (*of, *is) == (device, stream));
        self.held
            .iter()
            .find_map(|(token, held)| is(held).then_some(*token))
    }
}

/// RPC-85: upstream follows any number as an address.
fn unknown(token: u64) -> crate::function::Error {
    let message = format!("{token:#x} is not a handle of this session, or was freed");
    RPC_85.rejected(Kind::Missing, message).into()
}

/// RPC-85: a handle of something else.
fn other(token: u64, wanted: &str) -> crate::function::Error {
    let message = format!("handle {token:#x} is not a {wanted}");
    RPC_85.rejected(Kind::Type, message).into()
}
