//! Names of implementations for `--impl`, and the identities that they report.
#![cfg(all(unix, feature = "suite"))]

use std::ffi::OsString;
use tvmspec::conformance::adapter::exec::Exec;
use tvmspec::conformance::adapter::{Adapter, Identity, Limits, worker};

/// Returns the reason why no testee of this name can be created.
fn problem(name: &str) -> String {
    match worker(name) {
        Ok(_) => panic!("{name} is there"),
        Err(problem) => problem.to_string(),
    }
}

#[test]
fn a_server_has_a_port_and_perhaps_a_key_and_a_release() {
    // Nothing listens at port 1, so a well-formed name fails later.
    for name in [
        "rpc:127.0.0.1:1",
        "rpc:127.0.0.1:1/key:1@0.8",
        "rpc:[::1]:1@0.27",
        "rpc:127.0.0.1:1/k?wait=5",
    ] {
        let problem = problem(name);
        assert!(
            !problem.contains("needs a host") && !problem.contains("is not a release"),
            "{problem}"
        );
    }
    for name in ["rpc:", "rpc:a", "rpc::9090", "rpc:a:b", "rpc:a:70000"] {
        assert!(problem(name).contains("needs a host and a port"), "{name}");
    }
    for name in ["rpc:a:9090@0.6", "rpc:a:9090@next"] {
        assert!(
            problem(name).contains("is not a release with this protocol"),
            "{name}"
        );
    }
}

#[test]
fn a_tracker_has_a_key_and_perhaps_a_time() {
    for name in [
        "rpc-tracker:127.0.0.1:1/k",
        "rpc-tracker:127.0.0.1:1/k?wait=5@0.8",
    ] {
        let problem = problem(name);
        assert!(
            !problem.contains("needs the host") && !problem.contains("`wait` is"),
            "{problem}"
        );
    }
    for name in [
        "rpc-tracker:",
        "rpc-tracker:a:70000/k",
        "rpc-tracker:a:1",
        "rpc-tracker:a:1/",
    ] {
        assert!(
            problem(name).contains("needs the host and port of a tracker"),
            "{name}"
        );
    }
    for name in ["rpc-tracker:a:1/k?wait=0", "rpc-tracker:a:1/k?wait=soon"] {
        assert!(
            problem(name).contains("`wait` is a number of seconds"),
            "{name}"
        );
    }
}

#[test]
fn a_release_and_a_target_stand_behind_the_libraries() {
    for (name, missing) in [
        ("legacy:./a.so", "./a.so"),
        ("legacy:./a.so,./b.so@0.12", "./a.so"),
        ("legacy:/x@0.12/a.so", "/x@0.12/a.so"),
        ("legacy:./a@b/c.so@v0.7.0", "./a@b/c.so"),
        (
            "legacy:./a.so@0.16#llvm -mtriple=x86_64-linux-gnu",
            "./a.so",
        ),
        ("ffi:./a.so#llvm", "./a.so"),
        ("ffi:/x#1/a.so", "/x#1/a.so"),
        ("ffi:./a.so#", "./a.so#"),
    ] {
        let problem = problem(name);
        let end = format!("no library at `{missing}`");
        assert!(problem.contains(&end), "{name}: {problem}");
    }
    for name in [
        "legacy:./a.so@0.6",
        "legacy:./a.so@0.21",
        "legacy:./a.so@new",
        "legacy:./a.so@",
    ] {
        assert!(problem(name).contains("there are 0.7 to 0.20"), "{name}");
    }
}

/// Returns the identity that a testee with this command line reports.
fn hello(command: Exec) -> Result<Identity, String> {
    let mut testee = command;
    testee.hello("the hash of the suite")
}

#[test]
fn quotes_keep_words_together() {
    // `printf` builds the name from its arguments.
    let line = r#"sh -c 'read line; printf "$0" "$1" "$2" "$3"; echo; read line' '{"id":0,"ok":{"name":"%s|%s|%s","version":"1"}}' 'my testee' --flag="a b" ''"#;
    let testee = Exec::command(line, Limits::default()).unwrap();
    assert_eq!(hello(testee).unwrap().name, "my testee|--flag=a b|");
    assert!(Exec::command("'open", Limits::default()).is_err());
}

/// Returns the identity that a testee reports by writing `line`.
fn introduced(line: &str) -> Result<Identity, String> {
    let script = r#"read line; printf '%s\n' "$0"; read line"#;
    let words: Vec<OsString> = ["sh", "-c", script, line].map(Into::into).to_vec();
    hello(Exec::new(words, Limits::default()))
}

#[test]
fn a_hello_says_only_what_there_is() {
    let of = |members: &str| {
        introduced(&format!(
            r#"{{"id":0,"ok":{{"name":"n","version":"1"{members}}}}}"#
        ))
    };
    let identity = of(r#","releases":["0.8"],"ops":["blob.decode"]"#).unwrap();
    assert_eq!((identity.releases.len(), identity.ops.len()), (1, 1));
    assert_eq!(of("").unwrap().ops, [""; 0]);
    for (members, wrong) in [
        (
            r#","op":["blob.decode"]"#,
            "an unknown member `op`; near is `ops`",
        ),
        (
            r#","release":["0.8"]"#,
            "an unknown member `release`; near is `releases`",
        ),
        (r#","answers":"all""#, "an unknown member `answers`"),
        (
            r#","releases":["0.99"]"#,
            "the release `0.99`, which there is not",
        ),
        (
            r#","releases":["8"]"#,
            "the release `8`, which there is not",
        ),
        (
            r#","releases":["0.8,0.9"]"#,
            "the release `0.8,0.9`, which there is not",
        ),
        (r#","releases":"0.8""#, "`releases` that is not a list"),
        (
            r#","ops":["blob.decod"]"#,
            "the operation `blob.decod`, which no chapter documents; near is `blob.decode`",
        ),
        (r#","ops":["blob.decode",1]"#, "`ops` that is not a list"),
        (r#","ops":{"blob.decode":true}"#, "`ops` that is not a list"),
        (r#","ops":[]"#, "nothing in `ops`"),
        (r#","releases":[]"#, "nothing in `releases`"),
    ] {
        let problem = of(members).unwrap_err();
        assert!(problem.contains(wrong), "{members}: {problem}");
    }
    for line in [
        r#"{"id":0,"ok":"n"}"#,
        r#"{"id":0,"ok":{"name":"n"}}"#,
        r#"{"id":0,"ok":{"name":1,"version":"1"}}"#,
        r#"{"id":0,"ok":{"name":"","version":"1"}}"#,
        r#"{"id":0,"ok":{"name":"n","version":" "}}"#,
    ] {
        assert!(introduced(line).is_err(), "{line}");
    }
}
