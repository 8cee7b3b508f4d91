//! Sessions through the global functions (RPC-103), which frontends call from Rust and from C.
#![cfg(all(unix, feature = "cli", feature = "rpc"))]

use crate::support::cargo;
use crate::support::serving::Serving;
use crate::support::skip::skipped;
use std::path::Path;
use std::process::Command;
use tvmspec::function::{Error, registry};
use tvmspec::module::Module;
use tvmspec::value::{Any, Bytes};

fn call<const N: usize>(name: &str, args: [Any; N]) -> Result<Any, Error> {
    registry::require(name)?.call(args)
}

fn connect<const N: usize>(server: &Serving, more: [Any; N]) -> Result<Module, Error> {
    let mut args: Vec<Any> = vec![
        "127.0.0.1".into(),
        i64::from(server.port()).into(),
        "".into(),
    ];
    args.extend(more);
    let views: Vec<_> = args.iter().map(Any::view).collect();
    let session = registry::require("rpc.Connect")?.call_packed(&views)?;
    Ok(Module::try_from(session)?)
}

fn golden(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("golden")
        .join(name)
}

#[test]
fn a_session_is_a_module_with_the_functions_of_the_server() {
    let server = Serving::server(&["--allow-load"]);
    // The logging flag came with 0.9.
    for session in [
        connect(&server, []),
        connect(&server, [false.into()]),
        connect(&server, [0_i64.into()]),
    ] {
        let session = session.expect("a session");
        assert_eq!(session.kind(), "rpc");
        let echo = session.require("testing.echo").expect("a function");
        let echoed = echo.call((42_i64,)).expect("a number");
        assert_eq!(i64::try_from(&echoed), Ok(42));
        assert!(
            session
                .function("no.such", false)
                .expect("an answer")
                .is_none()
        );
        let content = std::fs::read(golden("module/open-0.22.so")).expect("a library");
        let upload = session
            .require("tvm.rpc.server.upload")
            .expect("a function");
        upload
            .call(("open.so", Bytes::new(&content)))
            .expect("uploaded");
        let load = || {
            call(
                "rpc.LoadRemoteModule",
                [session.clone().into(), "open.so".into()],
            )
        };
        let [parent, child] = [load(), load()]
            .map(|loaded| Module::try_from(loaded.expect("loaded")).expect("a module"));
        parent
            .require("nothing")
            .expect("a function")
            .call(())
            .expect("called");
        call(
            "rpc.ImportRemoteModule",
            [parent.clone().into(), child.into()],
        )
        .expect("imported");
        let of = |module: &Module| {
            call("rpc.SessTableIndex", [module.clone().into()]).expect("a number")
        };
        assert_eq!(i64::try_from(&of(&session)), i64::try_from(&of(&parent)));
    }
}

#[test]
fn a_session_through_a_server_names_the_next_one_in_the_same_manner() {
    let last = Serving::server(&["--key", "last"]);
    let first = Serving::server(&["--allow-connect", "127.0.0.1"]);
    let next = || {
        [
            "rpc.Connect".into(),
            "127.0.0.1".into(),
            i64::from(last.port()).into(),
            "last".into(),
        ]
    };
    let [name, host, port, key] = next();
    let session =
        connect(&first, [false.into(), name, host, port, key, false.into()]).expect("a session");
    let echo = session.require("testing.echo").expect("a function");
    assert_eq!(
        i64::try_from(&echo.call((7_i64,)).expect("a number")),
        Ok(7)
    );
    // The form of 0.8.
    let session = connect(&first, next()).expect("a session");
    session.require("testing.echo").expect("a function");
}

#[test]
fn other_arguments_are_rejected() {
    let server = Serving::server(&[]);
    let fails = |answer: Result<Any, Error>| {
        let error = answer.expect_err("an error");
        (error.kind().to_string(), error.message().to_string())
    };
    let (kind, message) = fails(call("rpc.Connect", ["127.0.0.1".into()]));
    assert_eq!(
        (kind.as_str(), message.contains("a host, a port and a key")),
        ("TypeError", true),
        "{message}"
    );
    let (kind, message) = fails(call(
        "rpc.Connect",
        ["127.0.0.1".into(), "9090".into(), "".into()],
    ));
    assert_eq!(
        (kind.as_str(), message.contains("rpc.Connect")),
        ("TypeError", true),
        "{message}"
    );
    let made = connect(
        &server,
        [true.into(), "rpc.CreatePipeClient".into(), "sh".into()],
    );
    let (_, message) = fails(made.map(Any::from));
    assert!(message.contains("rpc.CreatePipeClient"), "{message}");
    let here = tvmspec::module::system_library("")
        .map(Any::from)
        .expect("a module");
    for name in ["rpc.LoadRemoteModule", "rpc.ImportRemoteModule"] {
        let second = if name.ends_with("LoadRemoteModule") {
            "a.so".into()
        } else {
            here.clone()
        };
        let (kind, message) = fails(call(name, [here.clone(), second]));
        assert_eq!(
            (kind.as_str(), message.contains("of no RPC session")),
            ("TypeError", true),
            "{message}"
        );
    }
    let session = connect(&server, []).expect("a session");
    let (_, message) = fails(call(
        "rpc.LoadRemoteModule",
        [session.into(), "none.so".into()],
    ));
    assert!(message.contains("allow-load"), "{message}");
}

/// Compiles `examples/c/remote.c` against the C library, built with the features of this test.
#[test]
fn a_c_program_uses_a_server() {
    let library = match cargo::c_library() {
        Ok(library) => library,
        Err(why) => return skipped(why),
    };
    let folder = library.parent().expect("a folder");
    let place = tempfile::tempdir().expect("a folder");
    let program = place.path().join("remote");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let compiled = Command::new("cc")
        .args(["-Wall", "-Werror", "-I"])
        .arg(root.join("include"))
        .arg(root.join("examples/c/remote.c"))
        .arg("-L")
        .arg(folder)
        .args(["-ltvmspec", "-o"])
        .arg(&program)
        .status();
    match compiled {
        Ok(status) => assert!(status.success()),
        Err(error) => return skipped(format_args!("there is no C compiler: {error}")),
    }
    let server = Serving::server(&["--allow-load"]);
    let ran = Command::new(&program)
        .arg(server.port().to_string())
        .arg(golden("module/open-0.22.so"))
        .env("LD_LIBRARY_PATH", folder)
        .output()
        .expect("it runs");
    let text = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{text}");
    assert!(
        text.contains("the library there has a function `nothing`"),
        "{text}"
    );
    assert!(text.contains("testing.echo(42) = 42"), "{text}");
    assert!(text.contains("missing.so: "), "{text}");
}
