//! Who is accepted at either end, and the error of who is not.

use super::{client, connect, file, identity, path, serving, token};
use crate::support::serving::Serving;
use std::io::{Read, Write};
use std::net::TcpStream;
use tvmspec::function::ErrorKind;
use tvmspec::rpc::client::Session;
use tvmspec::rpc::tls::TlsClientOptions;

/// A client that is rejected, what it reports, and what the server's line has.
struct Rejected<'a> {
    server: (&'a str, &'a [&'a str]),
    client: TlsClientOptions,
    reports: &'a str,
    logs: &'a str,
}

#[test]
fn rpc_110_an_end_that_is_not_accepted_is_named_at_both() {
    let secret = std::env::temp_dir().join(format!("tvmspec-other-{}", std::process::id()));
    std::fs::write(&secret, "a secret").expect("written");
    let token_file = format!("--token-file={}", secret.display());
    let authority = format!("--tls-client-ca={}", path("authority.pem"));
    let (with_token, with_authority): (&[&str], &[&str]) = (&[&token_file], &[&authority]);
    let of = |certificate: &str| {
        let mut options = client();
        options.identity = Some(identity(certificate));
        options
    };
    for Rejected {
        server: (certificate, arguments),
        client: options,
        reports,
        logs,
    } in [
        Rejected {
            server: ("server.pem", &[]),
            client: {
                let mut options = client();
                options.authorities = file("other-authority.pem");
                options
            },
            reports: "/other-authority.pem` has signed it",
            logs: "server.pem`: it knows no authority",
        },
        Rejected {
            server: ("expired.pem", &[]),
            client: client(),
            reports: "the certificate of the server is not accepted: it has expired",
            logs: "expired.pem`: it has expired",
        },
        Rejected {
            server: ("elsewhere.pem", &[]),
            client: client(),
            reports: "it is of board.example, and not of `localhost`",
            logs: "elsewhere.pem`: it is of another name",
        },
        Rejected {
            server: ("server.pem", with_authority),
            client: client(),
            reports: "the server wants a certificate of its clients: tls-cert and tls-key",
            logs: "the client has no certificate",
        },
        Rejected {
            server: ("server.pem", with_authority),
            client: of("stranger.pem"),
            reports: "stranger.pem`: it knows no authority that has signed it",
            logs: "no authority of `",
        },
        Rejected {
            server: ("server.pem", with_authority),
            client: of("old-client.pem"),
            reports: "old-client.pem`: it has expired",
            logs: "the certificate of the client is not accepted: it has expired",
        },
        // A certificate of a server is for servers alone.
        Rejected {
            server: ("server.pem", with_authority),
            client: of("server.pem"),
            reports: "does not accept the certificate",
            logs: "the certificate of the client is not accepted",
        },
        Rejected {
            server: ("server.pem", with_token),
            client: client(),
            reports: "the server wants a token of its clients: token-file",
            logs: "the client has no token",
        },
        Rejected {
            server: ("server.pem", with_token),
            client: {
                let mut options = client();
                options.token = token("A secret");
                options
            },
            reports: "the server has another token",
            logs: "RPC-111: the client shows another token",
        },
    ] {
        let mut server = serving(certificate, arguments);
        let error = connect(&server, Some(options)).expect_err("rejected");
        let text = error.to_string();
        assert!(text.contains(reports), "{text}");
        assert!(text.contains("localhost:"), "{text}");
        assert_eq!(error.kind(), ErrorKind::Connection);
        let line = server.line();
        assert!(
            line.contains(logs) && line.contains("TLS") || line.contains("RPC-111"),
            "{line}"
        );
    }
    std::fs::remove_file(secret).expect("removed");
}

#[test]
fn rpc_110_tls_and_plain_are_distinguished() {
    // A client in plain at a server in a tunnel.
    let mut server = serving("server.pem", &[]);
    let error = connect(&server, None).expect_err("no tunnel").to_string();
    assert!(error.contains("the server speaks TLS"), "{error}");
    let line = server.line();
    assert!(
        line.contains("RPC-110") && line.contains("the client speaks no TLS"),
        "{line}"
    );
    // Any other bytes.
    let mut stream = TcpStream::connect(server.address).expect("a connection");
    stream
        .write_all(b"GET / HTTP/1.1\r\n\r\n")
        .expect("written");
    stream.read_to_end(&mut Vec::new()).expect("an end");
    let line = server.line();
    assert!(line.contains("the client speaks no TLS"), "{line}");
    // A client that goes.
    let stream = TcpStream::connect(server.address).expect("a connection");
    drop(stream);
    let line = server.line();
    assert!(line.contains("the client ends the connection"), "{line}");
    use_addone(&connect(&server, Some(client())).expect("the next client"));

    // A client in a tunnel at a server in plain.
    let mut plain = Serving::server(&[]);
    let error = connect(&plain, Some(client())).expect_err("no tunnel");
    let text = error.to_string();
    assert!(text.contains("begins with rpc:// then"), "{text}");
    let line = plain.line();
    assert!(
        line.contains("RPC-01") && line.contains("the client speaks TLS"),
        "{line}"
    );
    use_addone(&connect(&plain, None).expect("the next client"));
}

fn use_addone(session: &Session) {
    let sum = session.call("rpc.test.addone", [1_i64.into()]).expect("2");
    assert_eq!(i64::try_from(&sum), Ok(2));
}
