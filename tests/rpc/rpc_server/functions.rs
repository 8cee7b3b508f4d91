//! Functions that a server has for its clients: files, uploaded code.

use super::{Client, breaks};
use crate::support::skip::skipped;
use tvmspec::rpc::{PackedValue as V, Packet};

/// Uploaded code may replace a file by a link at any moment.
#[test]
#[cfg(unix)]
fn rpc_92_a_link_that_comes_and_goes_is_never_followed() {
    use std::sync::atomic::{AtomicBool, Ordering};

    let text = |text: &str| V::Str(text.as_bytes().to_vec().into());
    let bytes = || V::Bytes(b"own".to_vec().into());
    let outside = tempfile::tempdir().expect("a folder");
    let victim = outside.path().join("victim");
    std::fs::write(&victim, "precious").expect("written");
    let mut client = Client::with(27, |_| ());
    let place = client._directory.path().join("a.bin");
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let beside = place.with_file_name("beside");
            while !is_over.load(Ordering::Relaxed) {
                let _ = std::os::unix::fs::symlink(&victim, &beside);
                let _ = std::fs::rename(&beside, &place);
                let _ = std::fs::write(&beside, "own");
                let _ = std::fs::rename(&beside, &place);
            }
        });
        for _ in 0..300 {
            // Either call may be rejected.
            let _ = client.call("tvm.rpc.server.upload", vec![text("a.bin"), bytes()]);
            if let Ok(read) = client.call("tvm.rpc.server.download", vec![text("a.bin")]) {
                assert_ne!(read[1], V::Bytes(b"precious".to_vec().into()));
            }
        }
        is_over.store(true, Ordering::Relaxed);
    });
    let left = std::fs::read_to_string(&victim).expect("it is there");
    assert_eq!(left, "precious");
}

/// RPC-92: the number of empty files is bounded as well.
#[test]
fn rpc_92_a_session_has_so_many_files() {
    let text = |text: &str| V::Str(text.as_bytes().to_vec().into());
    let mut client = Client::with(27, |_| ());
    let upload = |client: &mut Client, number: usize| {
        let args = vec![text(&format!("{number}.bin")), V::Bytes(Vec::new().into())];
        client.call("tvm.rpc.server.upload", args)
    };
    for number in 0..4096 {
        upload(&mut client, number).expect("uploaded");
    }
    breaks(upload(&mut client, 4096), "RPC-92");
    // A file may be overwritten, and a new one may replace a removed one.
    upload(&mut client, 0).expect("written over");
    let removed = client.call("tvm.rpc.server.remove", vec![text("7.bin")]);
    removed.expect("removed");
    upload(&mut client, 4096).expect("uploaded");
    breaks(upload(&mut client, 4097), "RPC-92");
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
        let result = client.ask(&Packet::CallFunc(seven, Vec::new()));
        assert_eq!(result, Ok(vec![V::Int(1), V::Int(7)]), "{name}");
        let linked = client.call("tvm.rpc.server.download_linked_module", vec![text(name)]);
        match &linked.expect("a library")[..] {
            [_, V::Bytes(library)] => assert_eq!(library[..4], *b"\x7fELF", "{name}"),
            other => panic!("{other:?}"),
        }
    }
    // A file that the compiler must not see, one that is not an archive, one that is not gzip, and one that does not link.
    for (name, content, why) in [
        (
            "d.tar",
            archive("link.script", b"INCLUDE /etc/passwd"),
            "RPC-90",
        ),
        ("e.tar", b"no archive".to_vec(), "BLOB-56"),
        ("g.tar", b"\x1f\x8bno gzip".to_vec(), "not gzip"),
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
