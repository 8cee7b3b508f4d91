//! The server side of RPC: sessions over a pair of sockets, with packets of both encodings.
#![cfg(all(unix, feature = "rpc", feature = "runtime"))]

mod eras;
mod functions;
mod memory;
mod sessions;
mod values;

use std::borrow::Cow;
use std::os::unix::net::UnixStream;
use std::sync::Once;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tvmspec::function::{Function, registry};
use tvmspec::object::{Array, Tensor};
use tvmspec::release::Release;
use tvmspec::rpc::server::{ServerOptions, SessionReport, serve};
use tvmspec::rpc::transport::Transport;
use tvmspec::rpc::{
    CopyTarget, Hello, HelloAnswer, PackedValue as V, Packet, Protocol, RpcCode, Speaker,
    TensorBlock,
};
use tvmspec::rule::Findings;
use tvmspec::tensor::{Device, Dtype};
use tvmspec::value::{Any, AnyView};

/// Releases of both encodings, and those with other changes.
const RELEASES: [u8; 6] = [8, 16, 20, 21, 22, 27];

/// Registers the functions of this process that clients call.
fn register() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let functions: [(&str, Function); 3] = [
            (
                "rpc_server.echo",
                Function::from_packed(|args: &[AnyView<'_>]| {
                    Ok(args.first().map_or_else(Any::none, |arg| arg.to_any()))
                }),
            ),
            (
                "rpc_server.make",
                Function::from_packed(|args: &[AnyView<'_>]| {
                    Ok(match i64::try_from(args[0])? {
                        0 => Tensor::empty(&[3], FLOAT)?.into(),
                        1 => Function::from_typed(|value: i64| value * 2)
                            .into_object()
                            .into(),
                        2 => Array::from_iter([Any::from(1_i64)]).into(),
                        3 => Any::from("a\0b"),
                        _ => Any::from(true),
                    })
                }),
            ),
            (
                "rpc_server.sum",
                Function::from_packed(|args: &[AnyView<'_>]| {
                    let tensor = Tensor::try_from(args[0].to_any());
                    Ok(Any::from(tensor.is_ok()))
                }),
            ),
        ];
        for (name, function) in functions {
            registry::register(name, function, false).expect("a free name");
        }
    });
}

const FLOAT: Dtype = Dtype::FLOAT32;

/// The answer of a server.
#[derive(Debug, PartialEq)]
enum Answer {
    Values(Vec<V<'static>>),
    Content(Vec<u8>),
}

/// A client that writes packets by hand.
struct Client {
    transport: Transport,
    release: Release,
    /// Second writer to the connection, for bytes that are not packets.
    raw: UnixStream,
    session: JoinHandle<SessionReport>,
    _directory: tempfile::TempDir,
}

/// Returns options that allow the functions of this file.
fn options(directory: &tempfile::TempDir) -> ServerOptions {
    register();
    let mut options = ServerOptions::new(directory.path());
    options.allow = vec!["rpc_server.*".to_owned()];
    options
}

impl Client {
    /// Begins a session with a server that was not started for the release.
    fn begin_session(release: u8) -> Client {
        Client::with(release, |_| {})
    }

    fn with(release: u8, change: impl FnOnce(&mut ServerOptions)) -> Client {
        let mut client = Client::greet(release, "client:", change);
        let answer = client.transport.read_answer(client.release);
        assert_eq!(answer, Ok(HelloAnswer::Success("server:".into())));
        let version: &[u8] = if release == 7 { b"0.7.0" } else { b"0.8.0" };
        let init = Packet::InitServer(Cow::Borrowed(version), Vec::new());
        client.ask(&init).expect("a session");
        client
    }

    fn greet(release: u8, key: &str, change: impl FnOnce(&mut ServerOptions)) -> Client {
        let directory = tempfile::tempdir().expect("a directory");
        let mut options = options(&directory);
        change(&mut options);
        let (own, other) = UnixStream::pair().expect("a pair");
        let session = std::thread::spawn(move || serve(other, &options));
        let raw = own.try_clone().expect("a second");
        let mut transport = Transport::new(own);
        transport.set_deadline(Some(Instant::now() + Duration::from_secs(20)));
        let key = Cow::Owned(key.to_owned());
        transport.write_hello(&Hello { key }).expect("written");
        Client {
            transport,
            release: Release::of(release),
            raw,
            session,
            _directory: directory,
        }
    }

    /// Writes a packet. Returns its answer, or the text of an exception.
    fn ask(&mut self, packet: &Packet<'_>) -> Result<Answer, String> {
        let spoken = Protocol::new(self.release, Speaker::Client);
        self.transport
            .write_packet(packet, &spoken)
            .expect("written");
        self.answer()
    }

    fn answer(&mut self) -> Result<Answer, String> {
        let spoken = Protocol::new(self.release, Speaker::Server);
        let read = self
            .transport
            .read_packet(&spoken, &mut Findings::default());
        match read.expect("an answer").expect("a packet") {
            Packet::Return(values) => Ok(Answer::Values(values.iter().map(own).collect())),
            Packet::CopyAck(bytes) => Ok(Answer::Content(bytes.into_owned())),
            Packet::Exception(values) => match values.as_slice() {
                [V::Str(text)] => Err(String::from_utf8(text.to_vec()).expect("UTF-8")),
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }

    fn system(&mut self, code: RpcCode, args: Vec<V<'static>>) -> Result<Vec<V<'static>>, String> {
        match self.ask(&Packet::SystemCall(code, args))? {
            Answer::Values(values) => Ok(values),
            other => panic!("{other:?}"),
        }
    }

    fn function(&mut self, name: &'static str) -> u64 {
        let found = self.system(RpcCode::GetGlobalFunc, vec![V::Str(name.as_bytes().into())]);
        match found.as_deref() {
            Ok([V::Handle(token)]) => *token,
            other => panic!("{name}: {other:?}"),
        }
    }

    fn call(
        &mut self,
        name: &'static str,
        args: Vec<V<'static>>,
    ) -> Result<Vec<V<'static>>, String> {
        let function = self.function(name);
        self.call_handle(function, args)
    }

    fn call_handle(
        &mut self,
        function: u64,
        args: Vec<V<'static>>,
    ) -> Result<Vec<V<'static>>, String> {
        match self.ask(&Packet::CallFunc(function, args))? {
            Answer::Values(values) => Ok(values),
            other => panic!("{other:?}"),
        }
    }

    fn alloc(&mut self, nbytes: i64) -> Result<u64, String> {
        let args = vec![
            V::Device(Device::CPU),
            V::Int(nbytes),
            V::Int(64),
            V::Dtype(FLOAT, 0),
        ];
        match self.system(RpcCode::DevAllocData, args)?.as_slice() {
            [V::Handle(token)] => Ok(*token),
            other => panic!("{other:?}"),
        }
    }

    fn free_handle(&mut self, token: u64, code: i64) -> Result<Vec<V<'static>>, String> {
        let mut args = vec![V::Handle(token)];
        if self.release.minor() < 21 {
            args.push(V::Int(code));
        }
        self.system(RpcCode::FreeHandle, args)
    }

    /// Ends the session, and returns its report.
    fn end(mut self) -> SessionReport {
        let spoken = Protocol::new(self.release, Speaker::Client);
        self.transport
            .write_packet(&Packet::Shutdown, &spoken)
            .expect("written");
        self.session.join().expect("no panic")
    }

    /// Returns the report of a session that ends by itself.
    fn ended(self) -> SessionReport {
        self.session.join().expect("no panic")
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

fn block(data: u64, shape: &[i64], byte_offset: u64) -> TensorBlock {
    TensorBlock {
        data,
        device: Device::CPU,
        dtype: FLOAT,
        shape: shape.to_vec(),
        byte_offset,
    }
}

fn copy_from_packet(data: u64, shape: &[i64], offset: u64, nbytes: u64) -> Packet<'static> {
    Packet::CopyFromRemote(CopyTarget::Block(block(data, shape, offset)), nbytes)
}

fn copy_to_packet<'a>(data: u64, shape: &[i64], offset: u64, bytes: &'a [u8]) -> Packet<'a> {
    Packet::CopyToRemote(
        CopyTarget::Block(block(data, shape, offset)),
        Cow::Borrowed(bytes),
    )
}

/// Asserts that an answer is an exception that names a rule.
#[track_caller]
fn breaks<T: std::fmt::Debug>(answer: Result<T, String>, rule: &str) {
    let text = answer.expect_err(rule);
    assert!(text.contains(rule), "{text}");
}
