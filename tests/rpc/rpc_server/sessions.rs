//! The start of a session, and the length of its exceptions.

use super::Client;
use tvmspec::release::Release;
use tvmspec::rpc::server::SessionEnd;
use tvmspec::rpc::{HelloAnswer, PackedValue as V};

#[test]
fn rpc_80_another_key_is_another_server() {
    for key in ["client:b", "server:a", "client:", "client:a:b", "a"] {
        let mut client = Client::greet(27, key, |options| options.keys = vec!["a".to_owned()]);
        let answer = client.transport.read_answer(Release::of(27));
        assert_eq!(answer, Ok(HelloAnswer::Mismatch), "{key}");
        assert!(matches!(
            client.session.join().expect("no panic").end,
            SessionEnd::Mismatch
        ));
    }
    let mut client = Client::greet(27, "client:a:0.5 -other -timeout=9", |options| {
        options.keys = vec!["b".to_owned(), "a:0.5".to_owned()];
        options.name = "a".to_owned();
    });
    let answer = client.transport.read_answer(Release::of(27));
    assert_eq!(answer, Ok(HelloAnswer::Success("server:a".into())));
}

/// An answer is bounded, for any error of a function.
#[test]
fn the_text_of_an_exception_is_cut_between_two_letters() {
    let most = 64 << 10;
    let mut client = Client::with(27, |_| {});
    let mut raised = |text: String| {
        let raised = client.call("rpc.test.except", vec![V::Str(text.into_bytes().into())]);
        raised.expect_err("raised").len()
    };
    assert_eq!(raised("a".repeat(most)), most);
    assert_eq!(raised("é".repeat(most)), most);
    assert_eq!(raised(format!("a{}", "é".repeat(most))), most - 1);
}
