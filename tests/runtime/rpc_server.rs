//! The server's half of RPC: sessions over a pair of sockets, by packets of both encodings; and processes of `tvmspec serve` under
//! everything that a client can do to them.
#![cfg(all(unix, feature = "rpc", feature = "runtime"))]

#[path = "../support/skip.rs"]
mod skip;

use skip::skipped;
use std::borrow::Cow;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Once};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tvmspec::function::{Error, Function, registry};
use tvmspec::object::{Array, Tensor};
use tvmspec::release::Release;
use tvmspec::rpc::server::{ServerOptions, SessionEnd, SessionGauge, SessionReport, serve};
use tvmspec::rpc::transport::Transport;
use tvmspec::rpc::{
    CopyTarget, Hello, HelloAnswer, PackedValue, Packet, Protocol, RpcCode, Speaker, TensorBlock,
};
use tvmspec::rule::Findings;
use tvmspec::tensor::{Device, Dtype};
use tvmspec::value::{Any, AnyView, DLDataType};

use PackedValue as V;

/// One release of each encoding, and those where something else changes.
const RELEASES: [u8; 6] = [8, 16, 20, 21, 22, 27];

/// Functions of this process that clients call.
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
                        0 => Tensor::empty(&[3], DLDataType::from(FLOAT))?.into(),
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

const FLOAT: Dtype = Dtype::scalar(2, 32);

/// What a server answers.
#[derive(Debug, PartialEq)]
enum Answer {
    Values(Vec<V<'static>>),
    Content(Vec<u8>),
}

/// A client that writes packets by hand.
struct Client {
    transport: Transport,
    release: Release,
    /// The same connection, for bytes that no packet is written as.
    raw: UnixStream,
    session: JoinHandle<SessionReport>,
    _directory: tempfile::TempDir,
}

/// Options that allow the functions of this file.
fn options(directory: &tempfile::TempDir) -> ServerOptions {
    register();
    ServerOptions {
        allow: vec!["rpc_server.*".to_owned()],
        ..ServerOptions::new(directory.path())
    }
}

impl Client {
    /// A session that has begun; the server is not started for the release.
    fn of(release: u8) -> Client {
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

    /// The answer to a packet, or the text of an exception.
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

    /// Ends the session; what it came to.
    fn end(mut self) -> SessionReport {
        let spoken = Protocol::new(self.release, Speaker::Client);
        self.transport
            .write_packet(&Packet::Shutdown, &spoken)
            .expect("written");
        self.session.join().expect("no panic")
    }

    /// What the session came to, which ends by itself.
    fn ended(self) -> SessionReport {
        self.session.join().expect("no panic")
    }
}

/// A value that borrows nothing.
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

fn from(data: u64, shape: &[i64], offset: u64, nbytes: u64) -> Packet<'static> {
    Packet::CopyFromRemote(CopyTarget::Block(block(data, shape, offset)), nbytes)
}

fn to<'a>(data: u64, shape: &[i64], offset: u64, bytes: &'a [u8]) -> Packet<'a> {
    Packet::CopyToRemote(
        CopyTarget::Block(block(data, shape, offset)),
        Cow::Borrowed(bytes),
    )
}

/// A packet of any code and body.
fn framed(code: i32, body: &[u8]) -> Vec<u8> {
    let length = 4 + body.len() as u64;
    [&length.to_le_bytes()[..], &code.to_le_bytes(), body].concat()
}

/// Asserts that an answer is an exception over a rule.
#[track_caller]
fn breaks<T: std::fmt::Debug>(answer: Result<T, String>, rule: &str) {
    let text = answer.expect_err(rule);
    assert!(text.contains(rule), "{text}");
}

#[test]
fn rpc_84_a_client_of_any_release_is_understood_without_a_word_about_it() {
    for release in [7].into_iter().chain(RELEASES) {
        let mut client = Client::of(release);
        let result = client.call("rpc.test.addone", vec![V::Int(41)]);
        let of_int = if release < 21 { 0 } else { 1 };
        assert_eq!(result, Ok(vec![V::Int(of_int), V::Int(42)]), "{release}");
        let report = client.end();
        assert!(matches!(report.end, SessionEnd::Shutdown), "{}", report.end);
        assert_eq!(report.requests, 3);
        let found = match release {
            7 => 7,
            8..21 => 20,
            _ => 27,
        };
        assert_eq!(report.release, Some(Release::of(found)));
    }
}

#[test]
fn rpc_84_what_shows_no_encoding_is_answered_so_that_both_read_it() {
    for release in [8, 27] {
        let mut client = Client::of(release);
        let answer = client.system(RpcCode::DevSetDevice, vec![V::Device(Device::CPU)]);
        assert_eq!(answer, Ok(vec![V::Device(Device::CPU)]));
        client
            .call("rpc.test.addone", vec![V::Int(1)])
            .expect("a number");
        let answer = client.system(RpcCode::DevSetDevice, vec![V::Device(Device::CPU)]);
        assert_eq!(answer, Ok(vec![V::None]));
    }
}

#[test]
fn rpc_88_every_value_comes_back_with_its_type() {
    // What is echoed, and its type up to 0.20 and from 0.21 on.
    let values: [(V<'static>, i64, i64); 8] = [
        (V::None, 4, 0),
        (V::Int(-3), 0, 1),
        (V::Float(2.5), 2, 3),
        (V::Dtype(Dtype::scalar(1, 8), 0), 5, 5),
        (V::Device(Device::new(1, 0)), 6, 6),
        (V::Str("a longer text".as_bytes().into()), 11, 65),
        (
            V::Bytes((&[0_u8, 1, 2, 3, 4, 5, 6, 7, 8][..]).into()),
            12,
            66,
        ),
        (V::Handle(0), 4, 0),
    ];
    for release in RELEASES {
        let mut client = Client::with(release, |options| {
            options.release = Some(Release::of(release))
        });
        for (value, old, new) in &values {
            let result = client.call("rpc_server.echo", vec![value.clone()]);
            let tag = if release < 21 { *old } else { *new };
            // A null pointer is none.
            let expected = match value {
                V::Handle(_) => V::None,
                value => value.clone(),
            };
            assert_eq!(
                result,
                Ok(vec![V::Int(tag), expected]),
                "{release} {value:?}"
            );
        }
        let bools = client.call("rpc_server.make", vec![V::Int(4)]);
        let expected = match release {
            ..18 => vec![V::Int(0), V::Int(1)],
            18..21 => vec![V::Int(15), V::Bool(1)],
            _ => vec![V::Int(2), V::Bool(1)],
        };
        assert_eq!(bools, Ok(expected), "{release}");
        // RPC-44: up to the NUL.
        let text = client
            .call("rpc_server.make", vec![V::Int(3)])
            .expect("a string");
        assert_eq!(text[1], V::Str("a".as_bytes().into()));
    }
}

#[test]
fn rpc_88_objects_stay_and_a_handle_goes() {
    for release in RELEASES {
        let mut client = Client::with(release, |options| {
            options.release = Some(Release::of(release))
        });
        let function = client
            .call("rpc_server.make", vec![V::Int(1)])
            .expect("a function");
        let [V::Int(tag), V::Handle(double)] = function[..] else {
            panic!("{function:?}")
        };
        assert_eq!(tag, if release < 21 { 10 } else { 68 });
        let result = client
            .call_handle(double, vec![V::Int(21)])
            .expect("a number");
        assert_eq!(result[1], V::Int(42));
        // A function is an argument too, and comes back as another handle of the same.
        let again = client
            .call("rpc_server.echo", vec![V::Function(double)])
            .expect("a function");
        assert_eq!(again[0], V::Int(tag));

        let array = client.call("rpc_server.make", vec![V::Int(2)]);
        match release {
            ..16 => breaks(array, "RPC-88"),
            _ => {
                let array = array.expect("an object");
                let expected = match release {
                    ..21 => 8,
                    21 => 69,
                    _ => 71,
                };
                assert_eq!(array[0], V::Int(expected), "{release}");
            }
        }
        client.free_handle(double, 10).expect("freed");
        breaks(client.call_handle(double, vec![V::Int(1)]), "RPC-85");
        breaks(client.free_handle(double, 10), "RPC-85");
        assert_eq!(client.free_handle(0, 10), Ok(vec![V::None]));
    }
}

#[test]
fn rpc_88_a_tensor_is_a_block_and_a_handle() {
    for release in RELEASES {
        let mut client = Client::with(release, |options| {
            options.release = Some(Release::of(release))
        });
        let made = client
            .call("rpc_server.make", vec![V::Int(0)])
            .expect("a tensor");
        let [V::Int(tag), V::Tensor(tensor), V::Handle(token)] = &made[..] else {
            panic!("{made:?}")
        };
        let expected = match release {
            ..21 => 13,
            21 => 72,
            _ => 70,
        };
        assert_eq!(*tag, expected);
        assert_eq!((tensor.shape.as_slice(), tensor.dtype), (&[3][..], FLOAT));
        let written = client.ask(&to(tensor.data, &[3], 0, &[7; 12]));
        assert_eq!(written, Ok(Answer::Values(vec![V::None])));
        assert_eq!(
            client.ask(&from(tensor.data, &[3], 4, 8)),
            Ok(Answer::Content(vec![7; 8]))
        );
        // It is not the client's to free as memory.
        let free = vec![V::Device(Device::CPU), V::Handle(tensor.data)];
        breaks(client.system(RpcCode::DevFreeData, free), "RPC-86");
        // Clients of 0.21 to 0.23 free it by its data.
        let by = if matches!(release, 21..24) {
            tensor.data
        } else {
            *token
        };
        client.free_handle(by, 13).expect("freed");
        breaks(client.ask(&from(tensor.data, &[3], 0, 12)), "RPC-86");
        breaks(client.free_handle(*token, 13), "RPC-85");
    }
}

#[test]
fn rpc_86_memory_is_the_sessions_own() {
    for release in RELEASES {
        let mut client = Client::of(release);
        let data = client.alloc(16).expect("memory");
        // It begins as zeros.
        assert_eq!(
            client.ask(&from(data, &[4], 0, 16)),
            Ok(Answer::Content(vec![0; 16]))
        );
        client.ask(&to(data, &[4], 0, &[9; 16])).expect("written");
        let other = client.alloc(16).expect("memory");
        let copy = vec![
            V::Tensor(block(data, &[2], 8)),
            V::Tensor(block(other, &[2], 0)),
            V::Handle(0),
        ];
        client
            .system(RpcCode::CopyAmongRemote, copy)
            .expect("copied");
        let mut half = vec![9; 8];
        half.resize(16, 0);
        assert_eq!(
            client.ask(&from(other, &[4], 0, 16)),
            Ok(Answer::Content(half))
        );

        // RPC-87: not a byte beyond, whichever way it is sent.
        breaks(client.ask(&from(data, &[4], 0, 17)), "RPC-87");
        breaks(client.ask(&from(data, &[4], 1, 16)), "RPC-87");
        breaks(client.ask(&from(data, &[4], u64::MAX, 16)), "RPC-87");
        breaks(client.ask(&from(data, &[4], 0, u64::MAX)), "RPC-87");
        breaks(client.ask(&from(data + 8, &[4], 0, 16)), "RPC-87");
        breaks(client.ask(&to(data, &[4], 12, &[0; 5])), "RPC-87");
        breaks(
            client.call("rpc_server.sum", vec![V::Tensor(block(data, &[5], 0))]),
            "RPC-87",
        );
        breaks(
            client.call(
                "rpc_server.sum",
                vec![V::Tensor(block(data, &[i64::MAX, 4], 0))],
            ),
            "RPC-87",
        );
        breaks(
            client.call("rpc_server.sum", vec![V::Tensor(block(data, &[-1], 0))]),
            "RPC-87",
        );
        // Not what a client made up.
        breaks(client.ask(&from(0x7fff_0000_0000, &[1], 0, 4)), "RPC-86");
        breaks(client.ask(&from(0, &[1], 0, 4)), "RPC-86");
        let elsewhere = TensorBlock {
            device: Device::new(3, 0),
            ..block(data, &[4], 0)
        };
        breaks(
            client.ask(&Packet::CopyFromRemote(CopyTarget::Block(elsewhere), 16)),
            "RPC-86",
        );

        let free = vec![V::Device(Device::CPU), V::Handle(data)];
        client
            .system(RpcCode::DevFreeData, free.clone())
            .expect("freed");
        breaks(client.system(RpcCode::DevFreeData, free), "RPC-86");
        breaks(client.ask(&from(data, &[4], 0, 16)), "RPC-86");
        breaks(client.alloc(-1), "RPC-86");
        breaks(client.alloc(1 << 62), "RPC-86");
    }
}

#[test]
fn rpc_86_allocations_have_a_limit_together() {
    let mut client = Client::with(27, |options| options.memory = 100);
    let first = client.alloc(60).expect("memory");
    breaks(client.alloc(60), "RPC-86");
    let free = vec![V::Device(Device::CPU), V::Handle(first)];
    client.system(RpcCode::DevFreeData, free).expect("freed");
    client.alloc(100).expect("memory");
}

#[test]
fn devices_answer_by_every_request() {
    for release in [16, 27] {
        let mut client = Client::of(release);
        let cpu = V::Device(Device::CPU);
        let exist = |client: &mut Client, kind| {
            client.system(
                RpcCode::DevGetAttr,
                vec![V::Device(Device::new(kind, 0)), V::Int(0)],
            )
        };
        assert_eq!(exist(&mut client, 1), Ok(vec![V::Int(1)]));
        // RPC-86: none of these is a device of a server; asked whether they are there, it says no.
        for kind in [99, 129, -1, 0] {
            assert_eq!(exist(&mut client, kind), Ok(vec![V::Int(0)]), "{kind}");
            let set = client.system(RpcCode::DevSetDevice, vec![V::Device(Device::new(kind, 0))]);
            set.expect_err("no such device");
        }
        client
            .system(RpcCode::DevSetDevice, vec![cpu.clone()])
            .expect("set");
        let made = client.system(RpcCode::DevCreateStream, vec![cpu.clone()]);
        assert_eq!(made, Ok(vec![V::Handle(0)]));
        let now = client.system(RpcCode::DevGetCurrentStream, vec![cpu.clone()]);
        assert_eq!(now, Ok(vec![V::Handle(0)]));
        for code in [
            RpcCode::DevSetStream,
            RpcCode::DevStreamSync,
            RpcCode::DevFreeStream,
        ] {
            let done = client.system(code, vec![cpu.clone(), V::Handle(0)]);
            assert_eq!(done, Ok(vec![V::None]), "{code:?}");
            breaks(
                client.system(code, vec![cpu.clone(), V::Handle(64)]),
                "RPC-85",
            );
        }
        let scoped = vec![V::Tensor(block(0, &[4], 0)), V::None];
        let made = client
            .system(RpcCode::DevAllocDataWithScope, scoped)
            .expect("memory");
        let [V::Handle(data)] = made[..] else {
            panic!("{made:?}")
        };
        assert_eq!(
            client.ask(&from(data, &[4], 0, 16)),
            Ok(Answer::Content(vec![0; 16]))
        );
    }
}

#[test]
fn rpc_81_a_session_begins_once_and_first() {
    let mut client = Client::greet(27, "client:", |_| {});
    client
        .transport
        .read_answer(Release::of(27))
        .expect("an answer");
    let early = client.system(RpcCode::GetGlobalFunc, vec![V::Str("a".as_bytes().into())]);
    breaks(early, "RPC-81");
    breaks(client.ask(&Packet::CallFunc(1, Vec::new())), "RPC-81");
    // RPC-80: a session is of this process.
    let hop = |name: &'static [u8]| {
        Packet::InitServer(Cow::Borrowed(b"0.8.0"), vec![V::Str(name.into())])
    };
    breaks(client.ask(&hop(b"rpc.CreatePipeClient")), "RPC-80");
    client.ask(&hop(b"rpc.LocalSession")).expect("a session");
    breaks(client.ask(&hop(b"rpc.LocalSession")), "RPC-81");
    client
        .call("rpc.test.addone", vec![V::Int(1)])
        .expect("it goes on");
}

#[test]
fn rpc_80_another_key_is_another_server() {
    for key in ["client:b", "server:a", "client:", "client:a:b", "a"] {
        let mut client = Client::greet(27, key, |options| options.keys = vec!["a".to_owned()]);
        let answer = client.transport.read_answer(Release::of(27));
        assert_eq!(answer, Ok(HelloAnswer::Mismatch), "{key}");
        assert!(matches!(client.ended().end, SessionEnd::Mismatch));
    }
    let mut client = Client::greet(27, "client:a:0.5 -other -timeout=9", |options| {
        options.keys = vec!["b".to_owned(), "a:0.5".to_owned()];
        options.name = "a".to_owned();
    });
    let answer = client.transport.read_answer(Release::of(27));
    assert_eq!(answer, Ok(HelloAnswer::Success("server:a".into())));
}

#[test]
fn rpc_83_the_time_of_a_session_ends_it() {
    let mut client = Client::greet(27, "client: -timeout=0.05", |_| {});
    client
        .transport
        .read_answer(Release::of(27))
        .expect("an answer");
    let spoken = Protocol::new(Release::of(27), Speaker::Server);
    let mut findings = Findings::default();
    let reply = client
        .transport
        .read_packet(&spoken, &mut findings)
        .expect("a packet");
    let Some(Packet::Exception(values)) = reply else {
        panic!("{reply:?}")
    };
    let [V::Str(text)] = &values[..] else {
        panic!("{values:?}")
    };
    assert!(text.starts_with(b"RPCSessionTimeoutError: Your 0.05s session"));
    assert!(matches!(client.ended().end, SessionEnd::Expired));
}

#[test]
fn rpc_82_an_exception_has_kind_and_message_and_the_session_goes_on() {
    for release in RELEASES {
        let mut client = Client::of(release);
        let text = client.call("rpc.test.except", vec![V::Str("abc".as_bytes().into())]);
        assert!(
            text.clone()
                .expect_err("raised")
                .starts_with("ValueError: abc"),
            "{text:?}"
        );
        // RPC-28, RPC-23: a request that is wrong, in a packet that is whole: DevSetDevice of nothing, and another version.
        let version = Packet::InitServer(Cow::Borrowed(b"0.8.0"), Vec::new());
        for (bytes, rule) in [
            (framed(11, &0_i32.to_le_bytes()), "RPC-28"),
            (
                framed(2, &[&5_u64.to_le_bytes(), &b"0.8.1"[..], &[0; 4]].concat()),
                "RPC-23",
            ),
        ] {
            client.raw.write_all(&bytes).expect("written");
            breaks(client.answer(), rule);
        }
        breaks(client.ask(&version), "RPC-81");
        client
            .call("rpc.test.addone", vec![V::Int(1)])
            .expect("it goes on");
    }
}

#[test]
fn rpc_89_functions_beyond_those_of_servers_are_allowed_by_name() {
    let mut client = Client::with(27, |options| options.allow.clear());
    let look = |client: &mut Client, name: &'static str| {
        client.system(RpcCode::GetGlobalFunc, vec![V::Str(name.as_bytes().into())])
    };
    breaks(look(&mut client, "rpc_server.echo"), "RPC-89");
    assert_eq!(look(&mut client, "rpc_server.none"), Ok(vec![V::Handle(0)]));
    // RPC-91: not by another's name either.
    let evaluate = |name: &'static str, first: &'static str| {
        let text = |text: &'static str| V::Str(text.as_bytes().into());
        vec![
            V::None,
            text(name),
            V::Int(1),
            V::Int(0),
            V::Int(1),
            V::Int(1),
            V::Int(0),
            text(first),
        ]
    };
    let made = client.call("runtime.RPCTimeEvaluator", evaluate("rpc_server.echo", ""));
    breaks(made, "RPC-89");
    let mut client = Client::of(27);
    let made = client.call(
        "runtime.RPCTimeEvaluator",
        evaluate("rpc_server.echo", "rpc_server.echo"),
    );
    made.expect("a function");
}

#[test]
fn rpc_91_a_time_evaluator_returns_seconds_in_the_form_of_every_release() {
    for number in [8, 10, 11, 12] {
        let mut client = Client::of(if number == 8 { 8 } else { 27 });
        let text = |text: &'static str| V::Str(text.as_bytes().into());
        let mut args = vec![
            V::None,
            text("rpc_server.echo"),
            V::Int(1),
            V::Int(0),
            V::Int(5),
            V::Int(3),
            V::Int(0),
        ];
        args.resize(number - 1, V::Int(0));
        args.push(text(""));
        let made = client
            .call("runtime.RPCTimeEvaluator", args)
            .expect("a function");
        let V::Handle(evaluator) = made[1] else {
            panic!("{made:?}")
        };
        let timed = client
            .call_handle(evaluator, vec![V::Int(1)])
            .expect("times");
        let V::Bytes(bytes) = &timed[1] else {
            panic!("{timed:?}")
        };
        let seconds: Vec<f64> = bytes
            .chunks_exact(8)
            .map(|bytes| f64::from_ne_bytes(bytes.try_into().expect("eight")))
            .collect();
        assert_eq!(seconds.len(), 3);
        assert!(
            seconds.iter().all(|seconds| (0.0..1.0).contains(seconds)),
            "{seconds:?}"
        );
    }
    let mut client = Client::of(27);
    breaks(
        client.call("runtime.RPCTimeEvaluator", vec![V::None; 9]),
        "RPC-91",
    );
}

#[test]
fn rpc_92_files_stay_in_the_directory_of_the_session() {
    let text = |text: &str| V::Str(text.as_bytes().to_vec().into());
    let bytes = || V::Bytes(vec![1, 2, 3].into());
    let mut client = Client::with(27, |options| options.uploads = 6);
    client
        .call("tvm.rpc.server.upload", vec![text("a.bin"), bytes()])
        .expect("uploaded");
    let read = client
        .call("tvm.rpc.server.download", vec![text("a.bin")])
        .expect("bytes");
    assert_eq!(read[1], bytes());
    let names = client
        .call("tvm.rpc.server.listdir", vec![text("")])
        .expect("names");
    assert_eq!(names[1], text("a.bin,"));
    let path = client
        .call("tvm.rpc.server.workpath", vec![text("a.bin")])
        .expect("a path");
    assert!(matches!(&path[1], V::Str(path) if path.ends_with(b"/a.bin")));
    for name in ["../a", "/tmp/a", "..", ".", "", "a/b", "a/../../b", "a/"] {
        for function in ["upload", "download", "remove", "workpath", "load_module"] {
            let function: &'static str = format!("tvm.rpc.server.{function}").leak();
            breaks(client.call(function, vec![text(name), bytes()]), "RPC-92");
        }
    }
    let within = client._directory.path().join("link");
    std::os::unix::fs::symlink("/etc/hostname", within).expect("a link");
    breaks(
        client.call("tvm.rpc.server.download", vec![text("link")]),
        "RPC-92",
    );
    // All uploads count, whether or not one took the place of another.
    client
        .call("tvm.rpc.server.upload", vec![text("a.bin"), bytes()])
        .expect("uploaded");
    breaks(
        client.call("tvm.rpc.server.upload", vec![text("b"), bytes()]),
        "RPC-92",
    );
    client
        .call("tvm.rpc.server.remove", vec![text("a.bin")])
        .expect("removed");
    client
        .call("tvm.rpc.server.remove", vec![text("a.bin")])
        .expect("not there, no error");
    client
        .call("tvm.rpc.server.download", vec![text("a.bin")])
        .expect_err("not there");
}

#[test]
fn rpc_90_uploaded_code_runs_only_where_it_is_allowed() {
    let library = std::fs::read("golden/eras/0.26/host.so").expect("a library");
    let text = |text: &'static str| V::Str(text.as_bytes().into());
    for allowed in [false, true] {
        let mut client = Client::with(27, |options| options.allow_load = allowed);
        let upload = vec![text("host.so"), V::Bytes(library.clone().into())];
        client
            .call("tvm.rpc.server.upload", upload)
            .expect("uploaded");
        let loaded = client.call("tvm.rpc.server.load_module", vec![text("host.so")]);
        if !allowed {
            breaks(loaded, "RPC-90");
            continue;
        }
        breaks(
            client.call("tvm.rpc.server.load_module", vec![text("host.o")]),
            "RPC-90",
        );
        let loaded = loaded.expect("a module");
        let [V::Int(73), V::Handle(module)] = loaded[..] else {
            panic!("{loaded:?}")
        };
        let look = |name: &'static str| vec![V::Module(module), text(name), V::Bool(1)];
        let none = client.call("tvm.rpc.server.ModuleGetFunction", look("none"));
        assert_eq!(none, Ok(vec![V::Int(0), V::None]));
        let add = client
            .call("tvm.rpc.server.ModuleGetFunction", look("add1"))
            .expect("a function");
        let V::Handle(add) = add[1] else {
            panic!("{add:?}")
        };
        let (a, b) = (
            client.alloc(16).expect("memory"),
            client.alloc(16).expect("memory"),
        );
        let ones: Vec<u8> = [1.0_f32; 4]
            .iter()
            .flat_map(|one| one.to_le_bytes())
            .collect();
        client.ask(&to(a, &[4], 0, &ones)).expect("written");
        let args = vec![V::Tensor(block(a, &[4], 0)), V::Tensor(block(b, &[4], 0))];
        client.call_handle(add, args).expect("called");
        let twos: Vec<u8> = [2.0_f32; 4]
            .iter()
            .flat_map(|two| two.to_le_bytes())
            .collect();
        assert_eq!(client.ask(&from(b, &[4], 0, 16)), Ok(Answer::Content(twos)));
        // A function of other arguments than it was compiled for is an exception of its own.
        client
            .call_handle(add, vec![V::Int(1)])
            .expect_err("one argument");
    }
}

#[test]
fn bytes_that_are_no_packet_end_the_session_with_the_rule() {
    let mut client = Client::of(27);
    let spoken = Protocol::new(Release::of(27), Speaker::Server);
    client
        .transport
        .write_packet(&Packet::Return(Vec::new()), &spoken)
        .expect("written");
    let mut findings = Findings::default();
    let last = client
        .transport
        .read_packet(&spoken, &mut findings)
        .expect("a packet");
    let Some(Packet::Exception(values)) = last else {
        panic!("{last:?}")
    };
    assert!(matches!(&values[..], [V::Str(text)] if text.windows(6).any(|part| part == b"RPC-21")));
    let SessionEnd::Failed(error) = client.ended().end else {
        panic!("not failed")
    };
    let error: Error = error;
    assert_eq!(
        error.violation().map(|broken| broken.rule().id()),
        Some("RPC-21")
    );
}

/// RPC-87, DEV-15: up to 0.20 an element of one bit has a byte, and what a client of these allocates has as many.
#[test]
fn rpc_87_memory_of_bits_has_the_size_that_its_client_takes_it_to_have() {
    for (release, nbytes) in [(8, 4096), (20, 4096), (27, 512)] {
        let mut client = Client::with(release, |options| {
            options.release = Some(Release::of(release));
        });
        let mut block = TensorBlock {
            data: 0,
            device: Device::CPU,
            dtype: Dtype::scalar(0, 1),
            shape: vec![4096],
            byte_offset: 0,
        };
        let ask = vec![V::Tensor(block.clone()), V::None];
        let made = client.ask(&Packet::SystemCall(RpcCode::DevAllocDataWithScope, ask));
        let Ok(Answer::Values(values)) = made else {
            panic!("{made:?}")
        };
        let [V::Handle(token)] = values[..] else {
            panic!("{values:?}")
        };
        block.data = token;
        let whole = Packet::CopyFromRemote(CopyTarget::Block(block.clone()), nbytes);
        let zeros = vec![0; nbytes as usize];
        assert_eq!(client.ask(&whole), Ok(Answer::Content(zeros)), "{release}");
        let beyond = Packet::CopyFromRemote(CopyTarget::Block(block.clone()), nbytes + 1);
        assert!(client.ask(&beyond).is_err(), "{release}");
        // Texture memory has no such elements.
        let scoped = vec![V::Tensor(block), V::Str(Cow::Borrowed(b"global.texture"))];
        let scoped = Packet::SystemCall(RpcCode::DevAllocDataWithScope, scoped);
        assert!(client.ask(&scoped).is_err(), "{release}");
    }
}

#[test]
fn rpc_90_objects_and_archives_are_linked_where_there_is_a_compiler() {
    let text = |text: &'static str| V::Str(text.as_bytes().into());
    let folder = tempfile::tempdir().expect("a folder");
    let (source, object) = (folder.path().join("a.c"), folder.path().join("a.o"));
    let code = "int __tvm_ffi_seven(void* self, const void* args, int count, int* result) \
        { result[0] = 1; result[1] = 0; *(long long*)(result + 2) = 7; return 0; }";
    std::fs::write(&source, code).expect("written");
    let compiled = std::process::Command::new("cc")
        .args(["-c", "-fPIC", "-o"])
        .args([&object, &source])
        .status();
    if !compiled.is_ok_and(|status| status.success()) {
        return skipped("`cc` compiles nothing here");
    }
    let object = std::fs::read(object).expect("an object");
    let archive = |name: &str, content: &[u8]| {
        tvmspec::blob::pack::tar(&[(name.to_owned(), content.to_vec())]).expect("an archive")
    };
    let uploads = [
        ("a.o", object.clone()),
        ("b.tar", archive("b.o", &object)),
        ("c.tar", archive("c.c", code.as_bytes())),
    ];
    let with = |compiler: Option<&'static str>| {
        Client::with(27, move |options| {
            options.allow_load = true;
            options.compiler = compiler.map(str::to_owned);
        })
    };
    let mut client = with(Some("cc"));
    for (name, content) in uploads {
        let upload = vec![text(name), V::Bytes(content.into())];
        client
            .call("tvm.rpc.server.upload", upload)
            .expect("uploaded");
        let loaded = client.call("tvm.rpc.server.load_module", vec![text(name)]);
        let loaded = loaded.expect("a module");
        let [V::Int(73), V::Handle(module)] = loaded[..] else {
            panic!("{loaded:?}")
        };
        let look = vec![V::Module(module), text("seven"), V::Bool(1)];
        let found = client.call("tvm.rpc.server.ModuleGetFunction", look);
        let [V::Int(68), V::Handle(seven)] = found.expect("a function")[..] else {
            panic!("{name}")
        };
        let result = client.call_handle(seven, vec![]);
        assert_eq!(result, Ok(vec![V::Int(1), V::Int(7)]), "{name}");
        let linked = client.call("tvm.rpc.server.download_linked_module", vec![text(name)]);
        match &linked.expect("a library")[..] {
            [_, V::Bytes(library)] => assert_eq!(library[..4], *b"\x7fELF", "{name}"),
            other => panic!("{other:?}"),
        }
    }
    // What no compiler is to see, what is no archive, and what does not compile.
    for (name, content, why) in [
        (
            "d.tar",
            archive("link.script", b"INCLUDE /etc/passwd"),
            "RPC-90",
        ),
        ("e.tar", b"no archive".to_vec(), "BLOB-56"),
        ("g.tar", b"\x1f\x8bno gzip".to_vec(), "no gzip"),
        ("f.o", b"no object".to_vec(), "is not linked"),
    ] {
        let upload = vec![text(name), V::Bytes(content.into())];
        client
            .call("tvm.rpc.server.upload", upload)
            .expect("uploaded");
        let failed = client.call("tvm.rpc.server.load_module", vec![text(name)]);
        let failed = failed.expect_err("not linked");
        assert!(failed.contains(why), "{name}: {failed}");
    }
    let mut client = with(None);
    let upload = vec![text("a.o"), V::Bytes(object.into())];
    client
        .call("tvm.rpc.server.upload", upload)
        .expect("uploaded");
    breaks(
        client.call("tvm.rpc.server.load_module", vec![text("a.o")]),
        "RPC-90",
    );
    client
        .call("tvm.rpc.server.download_linked_module", vec![text("a.o")])
        .expect_err("no compiler");
}

#[test]
fn a_gauge_shows_how_far_a_session_is() {
    let gauge = Arc::new(SessionGauge::default());
    let shown = gauge.clone();
    let mut client = Client::with(27, |options| options.gauge = Some(shown));
    let token = client.alloc(100).expect("memory");
    // What a request has changed is there before the next one is read.
    client.function("rpc.test.addone");
    let state = gauge.state();
    assert_eq!((&*state.key, state.memory), ("client:", 100));
    assert_eq!(state.release, Some(Release::of(27)));
    assert!(state.requests >= 2, "{state:?}");
    assert!(state.received > 100, "{state:?}");
    let args = vec![V::Device(Device::CPU), V::Handle(token)];
    client.system(RpcCode::DevFreeData, args).expect("freed");
    client.function("rpc.test.addone");
    assert_eq!(gauge.state().memory, 0);
}
