//! The connection of a session: one request, one answer, and the handles that are to be freed.

use super::super::transport::Transport;
use super::super::{PackedValue, Packet, Protocol, RpcCode, Speaker};
use super::exception;
use super::place::SessionPlace;
use crate::device::Device;
use crate::function::{Error, ErrorKind, Result};
use crate::release::Release;
use crate::rule::Findings;
use std::borrow::Cow;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::time::{Duration, Instant};

/// How long the end of a session waits for its socket.
const FAREWELL: Duration = Duration::from_secs(1);

/// A session as its functions, modules and tensors share it. When the last of them goes, the session ends.
pub(super) struct Link {
    channel: Mutex<Channel>,
    /// Ends the stream while a request holds `channel`; `None` for a stream that has no twin. It is locked for nothing else.
    twin: Mutex<Option<Transport>>,
    /// Why `twin` ended the stream: the error of the request that was under way, and of all that follow.
    ended: OnceLock<Error>,
    /// How both sides speak.
    pub(super) era: SpokenEra,
    /// How long a request may take; none for any time.
    timeout: Option<Duration>,
    /// Its place in the table of sessions, which device types are made of (DEV-57).
    pub(super) place: SessionPlace,
    /// What the server calls itself: `server:` and its key.
    pub(super) server: String,
    /// Handles that went while a request was under way.
    freed: Mutex<Vec<(u64, HandleKind)>>,
    /// Global functions that the session itself calls again and again, by name; 0 for one that the server does not have. Their
    /// references go with the session.
    known: Mutex<Vec<(&'static str, u64)>>,
    /// How many bytes of content a packet to the server has at most, as far as it was asked.
    pub(super) content: OnceLock<usize>,
}

/// The stream, or why there is none any more.
enum Channel {
    Open(Transport),
    Closed(Error),
}

impl Channel {
    /// Closes the stream, for the twin too, which would keep the socket open.
    fn end(&mut self, why: Error) {
        if let Channel::Open(transport) = self {
            transport.end();
            *self = Channel::Closed(why);
        }
    }
}

/// How a session is spoken.
///
/// RPC-23: a server does not say its release. Where none was stated, the first answer shows on which side of 0.21 it is, and no more:
/// then `stated` is false, and only what all releases of that side accept is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::rpc) struct SpokenEra {
    /// The release, or the newest one of the era.
    pub(super) release: Release,
    /// Whether the release was stated.
    pub(super) stated: bool,
}

impl SpokenEra {
    /// Whether values are those of tvm-ffi (RPC-42).
    pub(super) fn is_ffi(self) -> bool {
        self.release.minor() >= 21
    }

    /// How `speaker` of this session writes.
    pub(super) fn protocol(self, speaker: Speaker) -> Protocol {
        Protocol::new(self.release, speaker)
    }

    /// Whether every release that the server may be is `minor` or later.
    pub(super) fn has(self, minor: u8) -> bool {
        let oldest = match (self.stated, self.is_ffi()) {
            (true, _) => self.release.minor(),
            (false, true) => 21,
            (false, false) => 8,
        };
        oldest >= minor
    }
}

/// What a handle is of: up to 0.20 a server learns when it is freed (RPC-28).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HandleKind {
    Function,
    Module,
    Tensor,
    Object,
}

impl HandleKind {
    /// Its type code up to 0.20.
    const fn legacy_code(self) -> i64 {
        match self {
            HandleKind::Object => 8,
            HandleKind::Module => 9,
            HandleKind::Function => 10,
            // RPC-28: the code of a returned tensor when it is freed. No value of a packet has it (RPC-43).
            HandleKind::Tensor => 13,
        }
    }
}

/// A reference that the server counts for this client. It is released when this is dropped.
pub(super) struct RemoteHandle {
    pub(super) link: Arc<Link>,
    /// What the server knows the thing by.
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
    /// The session of a connection whose first answer has come in.
    pub(super) fn new(
        transport: Transport,
        era: SpokenEra,
        timeout: Option<Duration>,
        place: SessionPlace,
        server: String,
    ) -> Result<Link> {
        Ok(Link {
            twin: Mutex::new(transport.twin()?),
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

    /// Writes `request` and hands the answer to `read`.
    pub(super) fn request<T>(
        &self,
        request: &Packet<'_>,
        read: impl FnOnce(Packet<'_>) -> Result<T>,
    ) -> Result<T> {
        let mut channel = lock(&self.channel);
        // RPC-85: first what went meanwhile: a server has a limit of handles, which the request may come to.
        self.give_back(&mut channel);
        self.exchange(&mut channel, request, read)
    }

    /// [`Link::request`] over a channel that is held.
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
        // Another thread may have ended the stream since: what a write to it fails with would not state why.
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
                // The server ends the session behind this exception.
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

    /// A call that the session itself answers, with one value.
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

    /// [`Link::system`] where nothing is answered.
    pub(super) fn command(&self, code: RpcCode, args: Vec<PackedValue<'_>>) -> Result<()> {
        // RPC-84: a server that does not know the encoding yet returns a value that both have.
        self.system(code, args, |_| Some(()))
    }

    /// The handle of a global function of the server; 0 where there is none.
    pub(super) fn global(&self, name: &str) -> Result<u64> {
        let name = PackedValue::Str(Cow::Borrowed(name.as_bytes()));
        self.system(RpcCode::GetGlobalFunc, vec![name], handle_of)
    }

    /// [`Link::global`] for one that the session calls again and again.
    pub(super) fn known(&self, name: &'static str) -> Result<Option<u64>> {
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

    /// Gives a reference back, at once where no request is under way, and in front of the next one otherwise.
    fn free(&self, handle: u64, kind: HandleKind) {
        lock(&self.freed).push((handle, kind));
        // A handle may go while its session is locked by this thread, such as one of an answer that is rejected.
        if let Ok(mut channel) = self.channel.try_lock() {
            self.give_back(&mut channel);
        }
    }

    /// Gives back what waits for it. An error has no caller to go to; one that ends the session meets the next request.
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

    /// Ends the session, with the packet that says so to the server. A request that is under way ends with it: its answer may never come.
    pub(super) fn close(&self) {
        let why = || Error::new(ErrorKind::Connection, "the session was closed");
        let mut channel = match self.channel.try_lock() {
            Ok(channel) => channel,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) if self.end(why()) => return,
            // Without a twin nothing ends the request that is under way: Shutdown is written behind its answer.
            Err(TryLockError::WouldBlock) => lock(&self.channel),
        };
        if let Some(why) = self.ended.get() {
            channel.end(why.clone());
        }
        if let Channel::Open(transport) = &mut *channel {
            transport.set_deadline(Some(Instant::now() + FAREWELL));
            let spoken = self.era.protocol(Speaker::Client);
            // A server that is gone need not know.
            let _ = transport.write_packet(&Packet::Shutdown, &spoken);
            channel.end(why());
        }
    }

    /// Ends the session at once, without a packet, whatever is under way.
    pub(super) fn cancel(&self) {
        self.end(Error::new(
            ErrorKind::Connection,
            "the session was cancelled",
        ));
    }

    /// Ends the stream under a request that may hold it, which then fails with `why`. Returns false, and lets the request go on, where
    /// the stream has no twin.
    fn end(&self, why: Error) -> bool {
        // Before the stream ends: the request that sees the end looks for the reason.
        let _ = self.ended.set(why);
        lock(&self.twin).as_ref().map(Transport::end).is_some()
    }

    /// A device of the server as this process knows it (DEV-57).
    pub(super) fn masked(&self, device: Device) -> Result<Device> {
        device.in_session(self.place.number())
    }

    /// A device of this process as the server knows it: one of this session without it, and a plain one as it is.
    pub(super) fn unmasked(&self, device: Device) -> Result<Device> {
        match device.session() {
            Some(session) if session != self.place.number() => Err(Error::new(
                ErrorKind::Value,
                format!(
                    "a device of session {session} is none of session {}",
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

/// Why a request has no result.
enum RequestFailure {
    /// The server answered so, or the answer is nothing to work with: the next answer is that of the next request.
    Answered(Error),
    /// The stream is of no use any more.
    Broken(Error),
}

/// Waits for the answer, and hands it to `read`.
fn answer<T>(
    transport: &mut Transport,
    spoken: &Protocol,
    read: impl FnOnce(Packet<'_>) -> Result<T>,
) -> std::result::Result<T, RequestFailure> {
    loop {
        let packet = transport.read_packet(spoken, &mut Findings::default());
        let gone = || Error::new(ErrorKind::Connection, "the server has ended the session");
        match packet.map_err(RequestFailure::Broken)? {
            // RPC-11: it answers nothing.
            Some(Packet::KeepAlive) => {}
            Some(Packet::Exception(values)) => {
                return Err(RequestFailure::Answered(exception::far_error(&values)));
            }
            // RPC-20: servers of TVM that fail write Shutdown in the place of an answer; others close the connection.
            Some(Packet::Shutdown) | None => return Err(RequestFailure::Broken(gone())),
            Some(packet) => return read(packet).map_err(RequestFailure::Answered),
        }
    }
}

/// The handle in an answer: null is also written as none.
pub(super) fn handle_of(value: &PackedValue<'_>) -> Option<u64> {
    match value {
        PackedValue::Handle(handle) => Some(*handle),
        PackedValue::None => Some(0),
        _ => None,
    }
}

/// An answer that is none to this request.
pub(super) fn unexpected(request: &str, packet: &Packet<'_>) -> Error {
    let text = format!("the server answers {request} with {packet:?}");
    Error::new(ErrorKind::Runtime, text)
}

/// A lock, whatever became of the thread that held it.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
