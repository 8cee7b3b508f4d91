//! The connection of a session: one request at a time, its answer, and handles that wait to be freed.

use super::super::transport::Transport;
use super::super::{PackedValue, Packet, Protocol, RpcCode, Speaker};
use super::exception;
use super::session_place::SessionPlace;
use crate::device::Device;
use crate::function::{Error, ErrorKind, Result};
use crate::lock::lock;
use crate::release::Release;
use crate::rule::Findings;
use std::borrow::Cow;
use std::sync::{Arc, Mutex, OnceLock, TryLockError};
use std::time::{Duration, Instant};

/// Time that closing a session waits for its socket.
const FAREWELL: Duration = Duration::from_secs(1);

/// A session, as its functions, modules and tensors share it. The session ends when the last of them is dropped.
pub(super) struct Link {
    channel: Mutex<Channel>,
    /// The second handle of the stream, with which another thread ends the stream while a request holds `channel`; `None` if the stream
    /// has no duplicate. It is locked for no other purpose.
    duplicate: Mutex<Option<Transport>>,
    /// Reason why `duplicate` ended the stream: the error of the request in progress and of all later ones.
    ended: OnceLock<Error>,
    /// Protocol of both sides.
    pub(super) era: SpokenEra,
    /// Time limit of a request; `None` for no limit.
    timeout: Option<Duration>,
    /// Its place in the table of sessions, which is part of its device types (DEV-57).
    pub(super) place: SessionPlace,
    /// The server's name for itself: `server:` and its key.
    pub(super) server: String,
    /// Handles that were dropped during a request.
    freed: Mutex<Vec<(u64, HandleKind)>>,
    /// Handles of global functions that the session calls repeatedly, by name; 0 for one that the server does not have. Their references
    /// are freed with the session.
    known: Mutex<Vec<(&'static str, u64)>>,
    /// Maximum number of content bytes in a packet to the server, after it was requested.
    pub(super) content: OnceLock<usize>,
}

/// The stream, or the reason why it was closed.
enum Channel {
    Open(Transport),
    Closed(Error),
}

impl Channel {
    /// Closes the stream, also for the duplicate, which would keep the socket open.
    fn end(&mut self, why: Error) {
        if let Channel::Open(transport) = self {
            transport.end();
            *self = Channel::Closed(why);
        }
    }
}

/// The protocol of a session.
///
/// RPC-23: a server does not state its release. If the user stated no release, the first answer only shows whether the server is older than
/// 0.21. `stated` is then false, and the client writes only what all releases of that era accept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::rpc) struct SpokenEra {
    /// The stated release, or the newest one of the era.
    pub(super) release: Release,
    /// True if the user stated the release.
    pub(super) stated: bool,
}

impl SpokenEra {
    /// Returns whether values are encoded as in tvm-ffi (RPC-42).
    pub(super) fn is_ffi(self) -> bool {
        self.release.minor() >= 21
    }

    /// Returns the protocol of `speaker` in this session.
    pub(super) fn protocol(self, speaker: Speaker) -> Protocol {
        Protocol::new(self.release, speaker)
    }

    /// Returns whether every release that the server may have is `minor` or later.
    pub(super) fn has(self, minor: u8) -> bool {
        let oldest = match (self.stated, self.is_ffi()) {
            (true, _) => self.release.minor(),
            (false, true) => 21,
            (false, false) => 8,
        };
        oldest >= minor
    }
}

/// The kind of object of a handle: up to 0.20 the client states it when the handle is freed (RPC-28).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HandleKind {
    Function,
    Module,
    Tensor,
    Object,
}

impl HandleKind {
    /// Returns its type code up to 0.20.
    const fn legacy_code(self) -> i64 {
        match self {
            HandleKind::Object => 8,
            HandleKind::Module => 9,
            HandleKind::Function => 10,
            // RPC-28: the code for freeing a returned tensor. No value of a packet has it (RPC-43).
            HandleKind::Tensor => 13,
        }
    }
}

/// A reference that the server counts for this client, and that is released on drop.
pub(super) struct RemoteHandle {
    pub(super) link: Arc<Link>,
    /// Number by which the server knows the object.
    pub(super) handle: u64,
    kind: HandleKind,
}

impl RemoteHandle {
    /// Takes over a reference that the server has counted.
    pub(super) fn new(link: &Arc<Link>, handle: u64, kind: HandleKind) -> RemoteHandle {
        RemoteHandle {
            link: Arc::clone(link),
            handle,
            kind,
        }
    }
}

impl Drop for RemoteHandle {
    fn drop(&mut self) {
        self.link.free(self.handle, self.kind);
    }
}

impl Link {
    /// Creates the session of a connection after its first answer has arrived.
    pub(super) fn new(
        transport: Transport,
        era: SpokenEra,
        timeout: Option<Duration>,
        place: SessionPlace,
        server: String,
    ) -> Result<Link> {
        Ok(Link {
            duplicate: Mutex::new(transport.duplicate()?),
            ended: OnceLock::new(),
            channel: Mutex::new(Channel::Open(transport)),
            era,
            timeout,
            place,
            server,
            freed: Mutex::default(),
            known: Mutex::default(),
            content: OnceLock::new(),
        })
    }

    /// Writes `request` and passes the answer to `read`.
    pub(super) fn request<T>(
        &self,
        request: &Packet<'_>,
        read: impl FnOnce(Packet<'_>) -> Result<T>,
    ) -> Result<T> {
        let mut channel = lock(&self.channel);
        // RPC-85: dropped handles are freed first, because the request may need one more handle and a server limits them.
        self.give_back(&mut channel);
        self.exchange(&mut channel, request, read)
    }

    /// Implements [`Link::request`] with a locked channel.
    fn exchange<T>(
        &self,
        channel: &mut Channel,
        request: &Packet<'_>,
        read: impl FnOnce(Packet<'_>) -> Result<T>,
    ) -> Result<T> {
        let transport = match channel {
            Channel::Open(transport) => transport,
            Channel::Closed(why) => return Err(why.clone()),
        };
        // Another thread may have ended the stream meanwhile: a failed write would not state the reason.
        if let Some(why) = self.ended.get() {
            channel.end(why.clone());
            return Err(why.clone());
        }
        transport.set_deadline(self.timeout.map(|timeout| Instant::now() + timeout));
        let spoken = self.era.protocol(Speaker::Client);
        let answered = transport
            .write_packet(request, &spoken)
            .map_err(RequestFailure::Broken)
            .and_then(|()| answer(transport, &self.era.protocol(Speaker::Server), read));
        match answered {
            Ok(value) => Ok(value),
            Err(RequestFailure::Answered(error)) => {
                // The server ends the session after this exception.
                if error.kind() == exception::EXPIRED {
                    channel.end(error.clone());
                }
                Err(error)
            }
            Err(RequestFailure::Broken(error)) => {
                if let Some(why) = self.ended.get() {
                    channel.end(why.clone());
                    return Err(why.clone());
                }
                let text = format!("the session has ended: {error}");
                channel.end(Error::new(ErrorKind::Connection, text));
                Err(error)
            }
        }
    }

    /// Calls a function of the session itself, which answers with one value.
    pub(super) fn system<T>(
        &self,
        code: RpcCode,
        args: Vec<PackedValue<'_>>,
        read: impl FnOnce(&PackedValue<'_>) -> Option<T>,
    ) -> Result<T> {
        self.request(&Packet::SystemCall(code, args), |packet| {
            let value = match &packet {
                Packet::Return(values) if values.len() == 1 => values.first().and_then(read),
                _ => None,
            };
            value.ok_or_else(|| unexpected(code.name(), &packet))
        })
    }

    /// Calls a function of the session itself, and ignores the value of its answer.
    pub(super) fn command(&self, code: RpcCode, args: Vec<PackedValue<'_>>) -> Result<()> {
        // RPC-84: a server that does not know the encoding yet returns a value that both encodings have.
        self.system(code, args, |_| Some(()))
    }

    /// Returns the handle of a global function of the server; 0 if there is no such function.
    pub(super) fn global(&self, name: &str) -> Result<u64> {
        let name = PackedValue::Str(Cow::Borrowed(name.as_bytes()));
        self.system(RpcCode::GetGlobalFunc, vec![name], handle_of)
    }

    /// Returns the handle of a global function that the session calls repeatedly, and caches it.
    pub(super) fn cached_global(&self, name: &'static str) -> Result<Option<u64>> {
        let found = lock(&self.known)
            .iter()
            .find(|(of, _)| *of == name)
            .copied();
        let handle = match found {
            Some((_, handle)) => handle,
            None => {
                let handle = self.global(name)?;
                lock(&self.known).push((name, handle));
                handle
            }
        };
        Ok((handle != 0).then_some(handle))
    }

    /// Releases a reference: at once if no request is in progress, otherwise before the next request.
    fn free(&self, handle: u64, kind: HandleKind) {
        lock(&self.freed).push((handle, kind));
        // This thread may hold the session's lock already, for example when it drops a handle of a rejected answer.
        if let Ok(mut channel) = self.channel.try_lock() {
            self.give_back(&mut channel);
        }
    }

    /// Releases the waiting references. There is no caller to report an error to. If an error ends the session, the next request
    /// reports it.
    fn give_back(&self, channel: &mut Channel) {
        let freed = std::mem::take(&mut *lock(&self.freed));
        for (handle, kind) in freed {
            let mut args = vec![PackedValue::Handle(handle)];
            // RPC-28: from 0.21 on an object knows its own type.
            if !self.era.is_ffi() {
                args.push(PackedValue::Int(kind.legacy_code()));
            }
            let request = Packet::SystemCall(RpcCode::FreeHandle, args);
            let _ = self.exchange(channel, &request, |_| Ok(()));
        }
    }

    /// Ends the session, and writes Shutdown to the server. A request in progress is ended as well, because its answer may never come.
    pub(super) fn close(&self) {
        let why = || Error::new(ErrorKind::Connection, "the session was closed");
        let mut channel = match self.channel.try_lock() {
            Ok(channel) => channel,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) if self.end(why()) => return,
            // Without a duplicate, nothing can end the request in progress, so Shutdown is written after its answer.
            Err(TryLockError::WouldBlock) => lock(&self.channel),
        };
        if let Some(why) = self.ended.get() {
            channel.end(why.clone());
        }
        if let Channel::Open(transport) = &mut *channel {
            transport.set_deadline(Some(Instant::now() + FAREWELL));
            let spoken = self.era.protocol(Speaker::Client);
            // Errors are ignored: a server that is gone needs no Shutdown.
            let _ = transport.write_packet(&Packet::Shutdown, &spoken);
            channel.end(why());
        }
    }

    /// Ends the session at once, without a packet, even during a request.
    pub(super) fn cancel(&self) {
        self.end(Error::new(
            ErrorKind::Connection,
            "the session was cancelled",
        ));
    }

    /// Ends the stream while a request may be using it. The request then fails with `why`. If the stream has no duplicate, returns false and
    /// lets the request continue.
    fn end(&self, why: Error) -> bool {
        // Set before the stream ends, because the request that notices the end reads the reason.
        let _ = self.ended.set(why);
        lock(&self.duplicate).as_ref().map(Transport::end).is_some()
    }

    /// Converts a device of the server to one of this process (DEV-57).
    pub(super) fn masked(&self, device: Device) -> Result<Device> {
        device.in_session(self.place.number())
    }

    /// Converts a device of this process to one of the server: removes this session from it, and keeps a plain device unchanged.
    pub(super) fn unmasked(&self, device: Device) -> Result<Device> {
        match device.session() {
            Some(session) if session != self.place.number() => Err(Error::new(
                ErrorKind::Value,
                format!(
                    "a device of session {session} cannot be used in session {}",
                    self.place.number()
                ),
            )),
            _ => Ok(device.without_session()),
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.close();
    }
}

/// The reason why a request has no result.
enum RequestFailure {
    /// The server answered with an exception, or with an answer that is unusable. The next answer belongs to the next request.
    Answered(Error),
    /// The stream can no longer be used.
    Broken(Error),
}

/// Waits for the answer, and passes it to `read`.
fn answer<T>(
    transport: &mut Transport,
    spoken: &Protocol,
    read: impl FnOnce(Packet<'_>) -> Result<T>,
) -> std::result::Result<T, RequestFailure> {
    loop {
        let packet = transport.read_packet(spoken, &mut Findings::default());
        let gone = || Error::new(ErrorKind::Connection, "the server has ended the session");
        match packet.map_err(RequestFailure::Broken)? {
            // RPC-11: a keep-alive packet has no answer.
            Some(Packet::KeepAlive) => {}
            Some(Packet::Exception(values)) => {
                return Err(RequestFailure::Answered(exception::far_error(&values)));
            }
            // RPC-20: failing servers of TVM write Shutdown instead of an answer; others close the connection.
            Some(Packet::Shutdown) | None => return Err(RequestFailure::Broken(gone())),
            Some(packet) => return read(packet).map_err(RequestFailure::Answered),
        }
    }
}

/// Returns the handle in an answer: null may also be written as none.
pub(super) fn handle_of(value: &PackedValue<'_>) -> Option<u64> {
    match value {
        PackedValue::Handle(handle) => Some(*handle),
        PackedValue::None => Some(0),
        _ => None,
    }
}

/// Creates the error for an answer that does not fit the request.
pub(super) fn unexpected(request: &str, packet: &Packet<'_>) -> Error {
    let text = format!("the server answers {request} with {packet:?}");
    Error::new(ErrorKind::Runtime, text)
}
