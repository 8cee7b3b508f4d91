//! A client that writes RPC packets itself, so that it can write any of them, and a process may have any number of clients.

use std::borrow::Cow;
use std::fmt::Display;
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};
use tvmspec::function::ErrorKind;
use tvmspec::release::Release;
use tvmspec::rpc::transport::Transport;
use tvmspec::rpc::{Hello, HelloAnswer, PackedValue, Packet, Protocol, RpcCode, Speaker};
use tvmspec::rule::Findings;

/// A client whose session has begun.
pub(crate) struct Peer {
    pub(crate) transport: Transport,
    pub(crate) own: Protocol,
    other: Protocol,
}

/// The result of a request.
#[derive(Debug, PartialEq)]
pub(crate) enum PeerAnswer {
    /// The last value.
    Value(PackedValue<'static>),
    /// The text of an exception.
    Raised(String),
    /// The connection has ended.
    Gone,
    /// Something else, in words.
    Other(String),
}

impl Peer {
    /// Begins a session.
    ///
    /// # Errors
    ///
    /// The reason why there is no session.
    pub(crate) fn begin(
        address: impl ToSocketAddrs,
        key: &str,
        release: u8,
    ) -> Result<Peer, String> {
        let text = |error: &dyn Display| error.to_string();
        let stream = TcpStream::connect(address).map_err(|error| text(&error))?;
        let mut transport = Transport::tcp(stream).map_err(|error| text(&error))?;
        transport.set_deadline(Some(Instant::now() + Duration::from_secs(60)));
        let key = Cow::Owned(format!("client:{key}"));
        let hello = transport.write_hello(&Hello { key });
        hello.map_err(|error| text(&error))?;
        let release = Release::of(release);
        let answer = transport.read_answer(release);
        if !matches!(&answer, Ok(HelloAnswer::Success(_))) {
            return Err(format!("{answer:?}"));
        }
        let mut peer = Peer {
            transport,
            own: Protocol::new(release, Speaker::Client),
            other: Protocol::new(release, Speaker::Server),
        };
        match peer.ask(&Packet::InitServer(Cow::Borrowed(b"0.8.0"), Vec::new())) {
            PeerAnswer::Value(PackedValue::None) => Ok(peer),
            other => Err(format!("{other:?}")),
        }
    }

    pub(crate) fn ask(&mut self, packet: &Packet<'_>) -> PeerAnswer {
        match self.transport.write_packet(packet, &self.own) {
            Ok(()) => self.read(),
            Err(error) => PeerAnswer::Other(error.to_string()),
        }
    }

    pub(crate) fn read(&mut self) -> PeerAnswer {
        let mut findings = Findings::default();
        match self.transport.read_packet(&self.other, &mut findings) {
            Ok(None) => PeerAnswer::Gone,
            Err(error) if error.kind() == ErrorKind::Connection => PeerAnswer::Gone,
            Ok(Some(Packet::Return(values))) => PeerAnswer::Value(match values.last() {
                Some(PackedValue::Handle(token)) => PackedValue::Handle(*token),
                Some(PackedValue::Int(value)) => PackedValue::Int(*value),
                Some(PackedValue::Str(text)) => PackedValue::Str(text.to_vec().into()),
                _ => PackedValue::None,
            }),
            Ok(Some(Packet::Exception(values))) => match &values[..] {
                [PackedValue::Str(text)] => {
                    PeerAnswer::Raised(String::from_utf8_lossy(text).into_owned())
                }
                other => PeerAnswer::Other(format!("{other:?}")),
            },
            other => PeerAnswer::Other(format!("{other:?}")),
        }
    }

    fn find(&mut self, name: &str) -> PeerAnswer {
        let name = PackedValue::Str(name.as_bytes().to_vec().into());
        self.ask(&Packet::SystemCall(RpcCode::GetGlobalFunc, vec![name]))
    }

    #[track_caller]
    pub(crate) fn look_up(&mut self, name: &str) -> u64 {
        handle(self.find(name))
    }

    pub(crate) fn call(&mut self, name: &str, args: Vec<PackedValue<'static>>) -> PeerAnswer {
        match self.find(name) {
            PeerAnswer::Value(PackedValue::Handle(function)) => {
                self.ask(&Packet::CallFunc(function, args))
            }
            other => other,
        }
    }
}

#[track_caller]
pub(crate) fn handle(outcome: PeerAnswer) -> u64 {
    match outcome {
        PeerAnswer::Value(PackedValue::Handle(token)) => token,
        other => panic!("{other:?}"),
    }
}
