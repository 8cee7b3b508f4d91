//! Certificates, keys and tokens in files.

use super::{client, file, golden, identity, path, server, serving, sockets, soon, token};
use crate::support::skip;
use std::process::{Command, Output};
use tvmspec::function::ErrorKind;
use tvmspec::rpc::client::RemoteAddress;
use tvmspec::rpc::tls::{self, TlsClientOptions, TlsIdentity, TlsSource};

#[test]
fn a_file_that_is_wrong_is_named() {
    let pem = |certificates: &str, key: &str| {
        let mut options = server();
        options.identity = TlsIdentity::new(file(certificates), file(key));
        options
    };
    let tokens = |content: &str| {
        let mut options = server();
        options.token = token(content);
        options
    };
    assert_eq!(tls::check(&server()).err(), None);
    for (options, why) in [
        (pem("absent.pem", "end.key"), "absent.pem`: No such file"),
        (pem("server.pem", "absent.key"), "absent.key`: No such file"),
        (
            pem("make.sh", "end.key"),
            "make.sh`: it has no certificate in PEM",
        ),
        (
            pem("server.pem", "server.pem"),
            "server.pem`: it has no private key in PEM",
        ),
        (
            pem("server.pem", "other.key"),
            "other.key`: it is not the key of `",
        ),
        (
            pem("self.pem", "end.key"),
            "self.pem`: no client accepts it: it is that of an authority (CA:TRUE)",
        ),
        (
            pem("client.pem", "end.key"),
            "client.pem`: no client accepts it: it is for another use",
        ),
        (
            pem("nameless.pem", "end.key"),
            "nameless.pem`: no client accepts it: it has no name",
        ),
        (
            {
                let mut options = server();
                options.client_authorities = Some(file("end.key"));
                options
            },
            "end.key`: it has no certificate in PEM",
        ),
        (tokens(" \n"), "has no token"),
    ] {
        let error = tls::check(&options).expect_err(why).to_string();
        assert!(error.contains(why), "{error}");
    }
    // Before a port is listened at.
    let started = Command::new(env!("CARGO_BIN_EXE_tvmspec"))
        .args(["serve", "--port=0", "--tls-key", &path("other.key")])
        .args(["--tls-cert", &path("server.pem")])
        .output()
        .expect("a process");
    assert_eq!(
        (started.status.code(), &*started.stdout),
        (Some(2), &b""[..])
    );
    let printed = String::from_utf8_lossy(&started.stderr).into_owned();
    assert!(
        printed.contains("other.key`: it is not the key of"),
        "{printed}"
    );
    // And those of a client.
    let (one, _other) = sockets();
    let mut options = client();
    options.authorities = file("end.key");
    let error = tls::connect(one, ("127.0.0.1", 1), &options, soon()).err();
    let text = error.expect("no authority").to_string();
    assert!(
        text.contains("end.key`: it has no certificate in PEM"),
        "{text}"
    );
    let (one, _other) = sockets();
    let error = tls::connect(one, ("no name", 1), &client(), soon()).err();
    assert_eq!(error.expect("no name").kind(), ErrorKind::Value);
}

/// What clients judge alone: when a certificate is valid, and who signed it. The clock of a board may be the one that is wrong.
#[test]
fn a_server_starts_with_what_a_client_may_accept() {
    for certificate in [
        "server.pem",
        "chain.pem",
        "elsewhere.pem",
        "expired.pem",
        "future.pem",
    ] {
        let mut options = server();
        options.identity = identity(certificate);
        assert_eq!(tls::check(&options).err(), None, "{certificate}");
    }
}

/// Certificates that a server has exchanged behind its start, and those of another program: the words of a client.
#[test]
fn a_client_says_what_is_wrong_with_a_certificate() {
    for (certificate, authority, why) in [
        (
            "self.pem",
            "self.pem",
            "it is that of an authority (CA:TRUE)",
        ),
        ("client.pem", "authority.pem", "it is for another use"),
        (
            "nameless.pem",
            "authority.pem",
            "it is of no name, and not of `localhost`",
        ),
    ] {
        let (one, other) = sockets();
        let mut options = server();
        options.identity = identity(certificate);
        let serving = std::thread::spawn(move || tls::accept(other, &options, soon()).err());
        let mut options = client();
        options.authorities = file(authority);
        let error = tls::connect(one, ("localhost", 1), &options, soon()).err();
        let text = error.expect(why).to_string();
        let begin = "the certificate of the server is not accepted: ";
        assert!(text.contains(&format!("{begin}{why}")), "{text}");
        assert!(!text.contains("Other"), "{text}");
        let there = serving.join().expect("no panic").expect(why).to_string();
        assert!(there.contains(certificate), "{there}");
    }
}

/// The lines of `spec/rpc.md` make what a server and a client take.
#[test]
fn the_lines_of_openssl_make_a_tunnel() {
    if Command::new("openssl").arg("version").output().is_err() {
        return skip::skipped("`openssl` is not installed");
    }
    let chapter = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/spec/rpc.md"));
    let chapter = chapter.expect("a chapter");
    let (_, lines) = chapter.split_once("```sh\nopenssl req").expect("lines");
    let (lines, _) = lines.split_once("```").expect("their end");
    let folder = tempfile::tempdir().expect("a folder");
    let made = Command::new("sh")
        .args(["-ec", &format!("openssl req{lines}")])
        .current_dir(folder.path())
        .output()
        .expect("a shell");
    assert!(made.status.success(), "{made:?}");
    let made = |name: &str| TlsSource::File(folder.path().join(name));
    let mut options = server();
    options.identity = TlsIdentity::new(made("board.pem"), made("board.key"));
    assert_eq!(tls::check(&options).err(), None);
    for name in ["board", "192.168.7.2"] {
        let (one, other) = sockets();
        let options = options.clone();
        let serving = std::thread::spawn(move || tls::accept(other, &options, soon()).err());
        let mut options = client();
        options.authorities = made("authority.pem");
        let error = tls::connect(one, (name, 1), &options, soon()).err();
        assert_eq!((error, serving.join().expect("no panic")), (None, None));
    }
}

#[test]
fn an_address_in_a_tunnel_names_its_files() {
    for text in [
        "rpc+tls://a:1/k?tls-ca=x&tls-cert=y&tls-key=z&token-file=t&timeout=3#cpu:0",
        "rpc-tracker+tls://a:1/k?tls-ca=x&tls-cert=y&tls-key=z&token-file=t&wait=3#cpu:0",
    ] {
        let (scheme, has_tracker) = match text.starts_with(RemoteAddress::TLS_SCHEME) {
            true => (RemoteAddress::TLS_SCHEME, false),
            false => (RemoteAddress::TRACKER_TLS_SCHEME, true),
        };
        assert!(text.starts_with(scheme) && RemoteAddress::is_remote(text));
        let address = RemoteAddress::parse(text).expect("an address");
        let source = |name: &str| TlsSource::File(name.into());
        let mut expected = TlsClientOptions::new(source("x"));
        expected.identity = Some(TlsIdentity::new(source("y"), source("z")));
        expected.token = Some(source("t"));
        assert_eq!(address.options.tls, Some(expected));
        assert_eq!(address.tracker.is_some(), has_tracker);
    }
    let plain = RemoteAddress::parse("rpc://a:1").expect("an address");
    assert_eq!(plain.options.tls, None);
    for (text, why) in [
        ("rpc://a:1?tls-ca=x", "no option is called `tls-ca`"),
        ("rpc-tracker://a:1/k?token-file=x", "no option is called"),
        ("rpc+tls://a:1", "`tls-ca=FILE` or TVMSPEC_TLS_CA"),
        (
            "rpc+tls://a:1?tls-ca=x&tls-key=y",
            "`tls-cert` and `tls-key`",
        ),
        (
            "rpc+tls://a?tls-ca=x",
            "rpc+tls://HOST:PORT/KEY?tls-ca=FILE",
        ),
    ] {
        let error = RemoteAddress::parse(text).expect_err(text).to_string();
        assert!(error.contains(why), "{error}");
    }
}

/// The command line with these arguments, in an environment that names the files of a client.
fn tvmspec(arguments: &[&str]) -> Output {
    let output = Command::new(env!("CARGO_BIN_EXE_tvmspec"))
        .args(arguments)
        .env("TVMSPEC_TLS_CA", path("authority.pem"))
        .env("TVMSPEC_TLS_CERT", path("client.pem"))
        .env("TVMSPEC_TLS_KEY", path("end.key"))
        .output()
        .expect("a process");
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{arguments:?}: {printed}");
    output
}

#[test]
fn commands_run_on_a_server_in_a_tunnel() {
    let authority = format!("--tls-client-ca={}", path("authority.pem"));
    let server = serving("server.pem", &["--allow-load", "--key=board", &authority]);
    let device = format!("rpc+tls://localhost:{}/board#cpu:0", server.port());
    for model in ["eras/0.16/graph", "eras/0.27/relax-vm"] {
        let (library, inputs) = (format!("{model}.so"), format!("{model}.io.npz"));
        let [library, inputs] = [library, inputs].map(|name| golden(&name));
        let run =
            |device: &str| tvmspec(&["run", "--device", device, "--inputs", &inputs, &library]);
        assert!(run(&device).stdout == run("cpu").stdout, "{model}");
    }
    let place = device.trim_end_matches("#cpu:0");
    let devices = tvmspec(&["devices", "--device", place]);
    let text = String::from_utf8_lossy(&devices.stdout).into_owned();
    assert!(text.contains("cpu:0"), "{text}");
    let judged = tvmspec(&[
        "check",
        "--case",
        "device/copy*",
        "--impl",
        &format!("device:{device}"),
    ]);
    let text = String::from_utf8_lossy(&judged.stdout).into_owned();
    assert!(text.contains("0 fail") || text.contains("pass"), "{text}");
}
