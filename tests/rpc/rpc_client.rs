//! The client against servers of this test, whose answers the test chooses.

#![cfg(all(feature = "rpc", feature = "runtime"))]

mod connections;

use std::net::TcpListener;
use std::thread::JoinHandle;
use std::time::Duration;
use tvmspec::device::{Device, Manager};
use tvmspec::function::ErrorKind;
use tvmspec::release::Release;
use tvmspec::rpc::client::{Session, SessionOptions};
use tvmspec::rpc::transport::Transport;
use tvmspec::rpc::{HelloAnswer, PackedValue as V, Packet, Protocol, RpcCode, Speaker};
use tvmspec::rule::Findings;

/// Starts a server that answers each request with the result of `answer`. Returns its port and its thread.
fn server(
    mut answer: impl FnMut(&Packet<'_>) -> Option<Packet<'static>> + Send + 'static,
) -> (u16, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let serve = move || {
        let (stream, _) = listener.accept().expect("a client");
        let release = Release::of(27);
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

fn connect(port: u16) -> Session {
    let mut options = SessionOptions::default();
    options.release = Some(Release::of(27));
    options.timeout = Some(Duration::from_millis(300));
    Session::connect("127.0.0.1", port, "key", &options).expect("a session")
}

#[test]
fn a_late_answer_ends_the_session_and_nothing_else() {
    let (port, _) = server(|_| None);
    let session = connect(port);
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
        let (port, served) = server(move |request| match request {
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
    let (port, served) = server(|_| Some(Packet::Return(vec![V::None])));
    let session = connect(port);
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
