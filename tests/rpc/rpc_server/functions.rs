//! Functions that a server has for its clients: time evaluators, files, uploaded code.

use super::{Answer, Client, block, breaks, copy_from_packet, copy_to_packet};
use crate::support::skip::skipped;
use tvmspec::rpc::{PackedValue as V, RpcCode};

#[test]
fn rpc_89_functions_beyond_those_of_servers_are_allowed_by_name() {
    let mut client = Client::with(27, |options| options.allow.clear());
    let look = |client: &mut Client, name: &'static str| {
        client.system(RpcCode::GetGlobalFunc, vec![V::Str(name.as_bytes().into())])
    };
    breaks(look(&mut client, "rpc_server.echo"), "RPC-89");
    assert_eq!(look(&mut client, "rpc_server.none"), Ok(vec![V::Handle(0)]));
    // RPC-91: not through an evaluator either.
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
    let mut client = Client::begin_session(27);
    let made = client.call(
        "runtime.RPCTimeEvaluator",
        evaluate("rpc_server.echo", "rpc_server.echo"),
    );
    made.expect("a function");
}

#[test]
fn rpc_91_a_time_evaluator_returns_seconds_in_the_form_of_every_release() {
    for number in [8, 10, 11, 12] {
        let mut client = Client::begin_session(if number == 8 { 8 } else { 27 });
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
    let mut client = Client::begin_session(27);
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
    // All uploads count, even if one replaces another.
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
    let mut client = Client::begin_session(27);
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
        client
            .ask(&copy_to_packet(a, &[4], 0, &ones))
            .expect("written");
        let args = vec![V::Tensor(block(a, &[4], 0)), V::Tensor(block(b, &[4], 0))];
        client.call_handle(add, args).expect("called");
        let twos: Vec<u8> = [2.0_f32; 4]
            .iter()
            .flat_map(|two| two.to_le_bytes())
            .collect();
        assert_eq!(
            client.ask(&copy_from_packet(b, &[4], 0, 16)),
            Ok(Answer::Content(twos))
        );
        // A compiled function that gets other arguments returns its error.
        client
            .call_handle(add, vec![V::Int(1)])
            .expect_err("one argument");
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
