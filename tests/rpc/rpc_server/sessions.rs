//! The start of a session, its continuation after an exception, and its end.

use super::{Client, RELEASES, breaks};
use std::borrow::Cow;
use std::io::Write;
use tvmspec::function::Error;
use tvmspec::release::Release;
use tvmspec::rpc::server::SessionEnd;
use tvmspec::rpc::{HelloAnswer, PackedValue as V, Packet, Protocol, RpcCode, Speaker};
use tvmspec::rule::Findings;

/// Returns a packet of any code and body.
fn framed(code: i32, body: &[u8]) -> Vec<u8> {
    let length = 4 + body.len() as u64;
    [&length.to_le_bytes()[..], &code.to_le_bytes(), body].concat()
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
    // RPC-80: a session runs in this process.
    let hop = |name: &'static [u8]| {
        Packet::InitServer(Cow::Borrowed(b"0.8.0"), vec![V::Str(name.into())])
    };
    breaks(client.ask(&hop(b"rpc.CreatePipeClient")), "RPC-80");
    client.ask(&hop(b"rpc.LocalSession")).expect("a session");
    breaks(client.ask(&hop(b"rpc.LocalSession")), "RPC-81");
    client
        .call("rpc.test.addone", vec![V::Int(1)])
        .expect("the session continues");
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
        let mut client = Client::begin_session(release);
        let text = client.call("rpc.test.except", vec![V::Str("abc".as_bytes().into())]);
        assert!(
            text.clone()
                .expect_err("raised")
                .starts_with("ValueError: abc"),
            "{text:?}"
        );
        // RPC-28, RPC-23: invalid requests in valid packets: DevSetDevice without arguments, and another version.
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
            .expect("the session continues");
    }
}

#[test]
fn bytes_that_are_no_packet_end_the_session_with_the_rule() {
    let mut client = Client::begin_session(27);
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

/// An answer is bounded, for any error of a function.
#[test]
fn the_text_of_an_exception_is_cut_between_two_letters() {
    let most = 64 << 10;
    let mut client = Client::begin_session(27);
    let mut raised = |text: String| {
        let raised = client.call("rpc.test.except", vec![V::Str(text.into_bytes().into())]);
        raised.expect_err("raised").len()
    };
    assert_eq!(raised("a".repeat(most)), most);
    assert_eq!(raised("é".repeat(most)), most);
    assert_eq!(raised(format!("a{}", "é".repeat(most))), most - 1);
}
