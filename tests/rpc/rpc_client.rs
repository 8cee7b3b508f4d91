//! The client against servers of this test, whose answers the test chooses.

#![cfg(all(feature = "rpc", feature = "runtime"))]

mod connections;

use std::net::TcpListener;
use std::thread::JoinHandle;
use std::time::Duration;
use tvmspec::device::{Device, Manager};
use tvmspec::function::{Error, ErrorKind};
use tvmspec::object::Tensor;
use tvmspec::release::Release;
use tvmspec::rpc::client::{Session, SessionOptions};
use tvmspec::rpc::transport::Transport;
use tvmspec::rpc::{
    HelloAnswer, PackedValue as V, Packet, Protocol, RpcCode, Speaker, TensorBlock,
};
use tvmspec::rule::Findings;

/// Starts a server that answers each request with the result of `answer`. Returns its port and its thread.
fn server(
    release: u8,
    mut answer: impl FnMut(&Packet<'_>) -> Option<Packet<'static>> + Send + 'static,
) -> (u16, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let serve = move || {
        let (stream, _) = listener.accept().expect("a client");
        let release = Release::of(release);
        let mut transport = Transport::tcp(stream).expect("a socket");
        let hello = transport.read_hello().expect("a hello");
        let mut seen = vec![hello.key.into_owned()];
        let success = HelloAnswer::Success("server:test".into());
        transport.write_answer(&success, release).expect("written");
        let client = Protocol::new(release, Speaker::Client);
        let own = Protocol::new(release, Speaker::Server);
        loop {
            let mut findings = Findings::default();
            let Ok(Some(request)) = transport.read_packet(&client, &mut findings) else {
                return seen;
            };
            seen.push(match &request {
                Packet::SystemCall(code, args) => format!("{} {args:?}", code.name()),
                other => format!("{other:?}"),
            });
            let reply = match &request {
                Packet::Shutdown => return seen,
                Packet::InitServer(..) => Some(Packet::Return(vec![V::None])),
                other => answer(other),
            };
            match reply {
                Some(reply) => transport.write_packet(&reply, &own).expect("written"),
                // The server no longer answers, but keeps the connection.
                None => std::thread::sleep(Duration::from_secs(2)),
            }
        }
    };
    (port, std::thread::spawn(serve))
}

fn connect(port: u16, release: Option<u8>) -> Result<Session, Error> {
    let mut options = SessionOptions::default();
    options.release = release.map(Release::of);
    options.timeout = Some(Duration::from_millis(300));
    options.session_timeout = Some(2.5);
    Session::connect("127.0.0.1", port, "key", &options)
}

/// Returns the result of a remote function when the server answers the call with these values.
fn outcome(values: Vec<V<'static>>) -> Result<String, Error> {
    let (port, _) = server(27, move |request| {
        Some(match request {
            Packet::CallFunc(..) => Packet::Return(values.clone()),
            Packet::SystemCall(RpcCode::GetGlobalFunc, _) => Packet::Return(vec![V::Handle(7)]),
            _ => Packet::Return(vec![V::None]),
        })
    });
    let session = connect(port, None)?;
    Ok(format!("{:?}", session.call("f", ())?.type_index()))
}

#[test]
fn the_first_answer_shows_the_era() {
    for (release, stated, spoken) in [
        (27, None, Some(27)),
        (8, None, Some(20)),
        (8, Some(8), Some(8)),
        (19, Some(8), Some(8)),
        (8, Some(27), None),
        (27, Some(16), None),
    ] {
        let (port, served) = server(release, |_| Some(Packet::Return(vec![V::None])));
        let session = connect(port, stated);
        match spoken {
            Some(minor) => {
                let session = session.expect("a session");
                assert_eq!(session.release(), Release::of(minor));
                assert_eq!(session.server(), "server:test");
            }
            // RPC-100: an error, not an answer that is misread.
            None => {
                let error = session.expect_err("another era");
                let broken = error.violation().expect("a rule");
                assert_eq!(broken.rule().id(), "RPC-100", "{error}");
            }
        }
        let seen = served.join().expect("no panic");
        assert_eq!(seen[0], "client:key -timeout=2.5");
    }
}

#[test]
fn a_result_has_one_of_the_forms_of_its_code() {
    let good = [
        (vec![V::Int(0), V::None], 0),
        (vec![V::Int(1), V::Int(5)], 1),
        (vec![V::Int(2), V::Bool(1)], 2),
        (vec![V::Int(3), V::Float(0.5)], 3),
        (vec![V::Int(65), V::Str(b"a text"[..].into())], 11),
        (vec![V::Int(68), V::Handle(5)], 68),
        (vec![V::Int(73), V::Handle(5)], 73),
    ];
    for (values, index) in good {
        assert_eq!(outcome(values.clone()), Ok(index.to_string()), "{values:?}");
    }
    let block = TensorBlock {
        data: 64,
        device: Device::CPU,
        dtype: tvmspec::device::Dtype::FLOAT32,
        shape: vec![-1],
        byte_offset: 0,
    };
    for values in [
        vec![],
        vec![V::None],
        vec![V::Int(1)],
        vec![V::Int(1), V::Int(1), V::Int(1)],
        vec![V::Int(70), V::Tensor(block.clone()), V::Handle(1)],
        vec![V::Int(70), V::Tensor(block)],
        vec![V::Int(1 << 40), V::None],
    ] {
        let error = outcome(values.clone()).expect_err("RPC-101");
        let broken = error.violation().expect("a rule");
        assert_eq!(broken.rule().id(), "RPC-101", "{values:?}: {error}");
    }
}

#[test]
fn a_tensor_of_the_host_goes_there_and_comes_back() {
    let (port, served) = server(27, |request| {
        Some(match request {
            Packet::CallFunc(..) => Packet::Return(vec![V::Int(0), V::None]),
            Packet::SystemCall(RpcCode::GetGlobalFunc, _) => Packet::Return(vec![V::Handle(7)]),
            Packet::SystemCall(RpcCode::DevAllocData, _) => Packet::Return(vec![V::Handle(4096)]),
            Packet::CopyFromRemote(_, bytes) => {
                Packet::CopyAck(vec![1; usize::try_from(*bytes).expect("few")].into())
            }
            _ => Packet::Return(vec![V::None]),
        })
    });
    let session = connect(port, Some(27)).expect("a session");
    let tensor = Tensor::from_slice(&[7_u8; 3], &[3]).expect("a tensor");
    session.call("f", (tensor.clone(),)).expect("a result");
    assert_eq!(tensor.to_vec::<u8>().expect("bytes"), [1; 3]);
    // RPC-102: memory of another device of this process cannot be passed to a server.
    drop(session);
    let seen = served.join().expect("no panic").join("\n");
    let order = [
        "DevAllocData",
        "CopyToRemote",
        "CallFunc",
        "CopyFromRemote",
        "DevFreeData",
        "FreeHandle",
        "Shutdown",
    ];
    let places: Vec<_> = order.map(|word| seen.find(word)).into();
    assert!(
        places.is_sorted() && places.iter().all(Option::is_some),
        "{seen}"
    );
}

#[test]
fn a_late_answer_ends_the_session_and_nothing_else() {
    let (port, _) = server(27, |_| None);
    let session = connect(port, Some(27)).expect("a session");
    let late = session.function("f").expect_err("no answer");
    assert_eq!(late.kind(), ErrorKind::Timeout);
    let gone = session.function("f").expect_err("the session has ended");
    assert_eq!(gone.kind(), ErrorKind::Connection, "{gone}");
    let device = session.device(Device::CPU).expect("a device");
    drop(session);
    let api = Manager::global()
        .api(device.kind)
        .expect("the API of sessions");
    let error = api.set_device(device).expect_err("no session any more");
    assert!(error.message().contains("no session"), "{error}");
}

/// Without a timeout a call waits as long as its server takes. Another thread can end it.
#[test]
fn a_call_that_hangs_is_ended_by_another_thread() {
    for (end, reason) in [
        (Session::cancel as fn(&Session), "the session was cancelled"),
        (Session::close, "the session was closed"),
    ] {
        let (calls, called) = std::sync::mpsc::channel();
        let (finish, wait) = std::sync::mpsc::channel::<()>();
        let (port, served) = server(27, move |request| match request {
            Packet::SystemCall(RpcCode::GetGlobalFunc, _) => {
                Some(Packet::Return(vec![V::Handle(7)]))
            }
            Packet::CallFunc(..) => {
                calls.send(()).expect("the test runs");
                // Waits until the test is over.
                let _ = wait.recv();
                None
            }
            _ => Some(Packet::Return(vec![V::None])),
        });
        let options = SessionOptions::default();
        let session = Session::connect("127.0.0.1", port, "key", &options).expect("a session");
        let hanging = session.clone();
        let call = std::thread::spawn(move || hanging.call("f", ()));
        called.recv().expect("the call is there");
        end(&session);
        // The server answers only when this is dropped, so that the call did not wait for the answer.
        let error = call.join().expect("no panic").expect_err("no answer");
        assert_eq!(
            (error.kind(), error.message()),
            (ErrorKind::Connection, reason)
        );
        let next = session.call("f", ()).expect_err("it has ended");
        assert_eq!(
            (next.kind(), next.message()),
            (ErrorKind::Connection, reason)
        );
        drop(finish);
        drop(session);
        served.join().expect("the server sees the end");
    }
}

/// A session without a call in progress ends at the next use.
#[test]
fn a_cancelled_session_has_ended() {
    let (port, served) = server(27, |_| Some(Packet::Return(vec![V::None])));
    let session = connect(port, Some(27)).expect("a session");
    session.cancel();
    // The server sees the end while the session still exists.
    let seen = served.join().expect("no panic");
    assert!(!seen.contains(&"Shutdown".to_owned()), "{seen:?}");
    let error = session.call("f", ()).expect_err("it has ended");
    assert_eq!(error.kind(), ErrorKind::Connection);
    // Closing a cancelled session changes nothing.
    session.close();
    let again = session.call("f", ()).expect_err("it has ended");
    assert_eq!(again.message(), error.message());
}
