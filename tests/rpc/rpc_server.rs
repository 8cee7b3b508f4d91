//! The server side of RPC: sessions over a pair of sockets, with packets of both encodings.
#![cfg(all(unix, feature = "rpc", feature = "runtime"))]

mod eras;
mod functions;
mod memory;
mod sessions;

use std::borrow::Cow;
use std::os::unix::net::UnixStream;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tvmspec::release::Release;
use tvmspec::rpc::server::{ServerOptions, SessionReport, serve};
use tvmspec::rpc::transport::Transport;
use tvmspec::rpc::{Hello, HelloAnswer, PackedValue as V, Packet, Protocol, RpcCode, Speaker};
use tvmspec::rule::Findings;

/// A client that writes packets by hand.
struct Client {
    transport: Transport,
    release: Release,
    session: JoinHandle<SessionReport>,
    _directory: tempfile::TempDir,
}

impl Client {
    /// Begins a session.
    fn with(release: u8, change: impl FnOnce(&mut ServerOptions)) -> Client {
        let mut client = Client::greet(release, "client:", change);
        let answer = client.transport.read_answer(client.release);
        assert_eq!(answer, Ok(HelloAnswer::Success("server:".into())));
        let init = Packet::InitServer(Cow::Borrowed(b"0.8.0"), Vec::new());
        client.ask(&init).expect("a session");
        client
    }

    fn greet(release: u8, key: &str, change: impl FnOnce(&mut ServerOptions)) -> Client {
        let directory = tempfile::tempdir().expect("a directory");
        let mut options = ServerOptions::new(directory.path());
        change(&mut options);
        let (own, other) = UnixStream::pair().expect("a pair");
        let session = std::thread::spawn(move || serve(other, &options));
        let mut transport = Transport::new(own);
        transport.set_deadline(Some(Instant::now() + Duration::from_secs(100)));
        let key = Cow::Owned(key.to_owned());
        transport.write_hello(&Hello { key }).expect("written");
        Client {
            transport,
            release: Release::of(release),
            session,
            _directory: directory,
        }
    }

    /// Writes a packet. Returns the values of its answer, or the text of an exception.
    fn ask(&mut self, packet: &Packet<'_>) -> Result<Vec<V<'static>>, String> {
        let [own_rules, rules] =
            [Speaker::Client, Speaker::Server].map(|speaker| Protocol::new(self.release, speaker));
        let written = self.transport.write_packet(packet, &own_rules);
        written.expect("written");
        let mut findings = Findings::default();
        let read = self.transport.read_packet(&rules, &mut findings);
        match read.expect("an answer").expect("a packet") {
            Packet::Return(values) => Ok(values.iter().map(own).collect()),
            Packet::CopyAck(bytes) => Ok(vec![V::Bytes(bytes.into_owned().into())]),
            Packet::Exception(values) => match values.as_slice() {
                [V::Str(text)] => Err(String::from_utf8(text.to_vec()).expect("UTF-8")),
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }

    fn call(
        &mut self,
        name: &'static str,
        args: Vec<V<'static>>,
    ) -> Result<Vec<V<'static>>, String> {
        let name = vec![V::Str(name.as_bytes().into())];
        match self.ask(&Packet::SystemCall(RpcCode::GetGlobalFunc, name))?[..] {
            [V::Handle(function)] => self.ask(&Packet::CallFunc(function, args)),
            ref other => panic!("{other:?}"),
        }
    }
}

/// Copies a value so that it borrows nothing.
fn own(value: &V<'_>) -> V<'static> {
    match value {
        V::Str(bytes) => V::Str(bytes.to_vec().into()),
        V::Bytes(bytes) => V::Bytes(bytes.to_vec().into()),
        V::StrObject(bytes, outer) => V::StrObject(bytes.to_vec().into(), *outer),
        V::BytesObject(bytes, outer) => V::BytesObject(bytes.to_vec().into(), *outer),
        V::None => V::None,
        V::Int(value) => V::Int(*value),
        V::Uint(value) => V::Uint(*value),
        V::Bool(value) => V::Bool(*value),
        V::Float(value) => V::Float(*value),
        V::Handle(value) => V::Handle(*value),
        V::Dtype(dtype, padding) => V::Dtype(*dtype, *padding),
        V::Device(device) => V::Device(*device),
        V::Tensor(block) => V::Tensor(block.clone()),
        V::Module(value) => V::Module(*value),
        V::Function(value) => V::Function(*value),
        V::Object(value, outer) => V::Object(*value, *outer),
    }
}

/// Asserts that an answer is an exception that names a rule.
#[track_caller]
fn breaks<T: std::fmt::Debug>(answer: Result<T, String>, rule: &str) {
    let text = answer.expect_err(rule);
    assert!(text.contains(rule), "{text}");
}
