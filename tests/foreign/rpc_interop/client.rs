//! Our client with TVM's servers.

use super::{Peer, ServerProcess, golden, our_server};
#[cfg(feature = "cli")]
use std::path::Path;
#[cfg(feature = "cli")]
use std::process::Command;
use std::time::Duration;
use tvmspec::device::{Attribute, AttributeValue, Device, Manager};
use tvmspec::function::{Error, Function};
use tvmspec::object::Tensor;
use tvmspec::release::Release;
use tvmspec::rpc::client::{RemoteHop, RemoteTiming, Session, SessionOptions};
use tvmspec::value::{Any, dtype_from_text};

fn options(release: Option<u8>) -> SessionOptions {
    let mut options = SessionOptions::default();
    options.release = release.map(Release::of);
    options.connect_timeout = Duration::from_secs(60);
    options.timeout = Some(Duration::from_secs(60));
    options
}

/// Runs the steps of `tests/interop/real_client.py` with our client, on any server.
fn steps(session: &Session, library: &str, function: &str) -> Result<Vec<String>, Error> {
    let mut done = Vec::new();
    let content = std::fs::read(golden(library)).expect("a library");
    session.upload("a-library.so", &content)?;
    assert!(
        session.download("a-library.so")? == content,
        "the upload comes back"
    );
    done.push("upload".to_owned());
    let module = session.load_module("a-library.so")?;
    assert!(module.function("no such function", true)?.is_none());
    let kernel = module.require(function)?;
    done.push("load".to_owned());
    let sum = session.call("rpc.test.addone", (41,))?;
    assert_eq!(i64::try_from(&sum)?, 42);
    let text = session.call("rpc.test.strcat", ("abc", 11))?;
    assert_eq!(String::try_from(&text)?, "abc:11");
    done.push("numbers and texts".to_owned());
    let input: Vec<f32> = (0..12).map(|at| at as f32).collect();
    let output: Vec<f32> = input.iter().map(|x| x + 1.0).collect();
    let here = Tensor::from_slice(&input, &[12])?;
    let there = session.send(&here, Device::CPU)?;
    let result = session.empty(
        &[12],
        dtype_from_text("float32").expect("a type"),
        Device::CPU,
    )?;
    kernel.call((there.clone(), result.clone()))?;
    assert_eq!(session.fetch(&result)?.to_vec::<f32>()?, output);
    let copied = Tensor::from_slice(&[0.0_f32; 12], &[12])?;
    kernel.call((here, copied.clone()))?;
    assert_eq!(copied.to_vec::<f32>()?, output);
    done.push("tensors".to_owned());
    let timing = RemoteTiming::default();
    let args = [(&there).into(), (&result).into()];
    let times = session.time(Some(&module), function, Device::CPU, &timing, &args)?;
    assert!(times.len() == 1 && times[0] > 0.0, "{times:?}");
    done.push("time_evaluator".to_owned());
    let failed = session.call("rpc.test.except", ("why not",));
    let failed = failed.expect_err("it raises");
    // The C++ code of such a server loses the message of a Python exception: it passes on an exception with an empty message.
    let is_lost = matches!(session.release().minor(), 16..=20);
    assert!(is_lost || failed.message().contains("why not"), "{failed}");
    // The session continues after the failure.
    assert_eq!(i64::try_from(&session.call("rpc.test.addone", (1,))?)?, 2);
    done.push(format!("exception ({})", failed.kind()));
    let bytes: Vec<u8> = (0..16 << 20).map(|at| (at % 251) as u8).collect();
    let large = Tensor::from_slice(&bytes, &[16 << 20])?;
    let remote = session.send(&large, Device::CPU)?;
    assert!(
        session.fetch(&remote)?.to_vec::<u8>()? == bytes,
        "16 MiB come back"
    );
    done.push("copy of 16 MiB".to_owned());
    let cpu = session.device(Device::CPU)?;
    let exist = Manager::global().attribute(cpu, Attribute::Exist)?;
    assert_eq!(exist, AttributeValue::Int(1));
    assert_eq!(session.devices(Device::CPU.kind)?, [cpu]);
    assert!(session.devices(Device::cuda(0).kind)?.is_empty());
    done.push("devices".to_owned());
    // A function of the server that another function of the server returned, and a tensor that it returns in turn. Our server has
    // no function of this name.
    if let Some(make) = session.function("rpc.test.remote_return_nd")? {
        let get = Function::try_from(make.call(("get_arr",))?)?;
        let array = Tensor::try_from(get.call(())?)?;
        assert_eq!(session.fetch(&array)?.to_vec::<f32>()?, [0.0; 10]);
        done.push("returned tensor".to_owned());
    }
    Ok(done)
}

/// RPC-89: the test functions of a server do the same on ours as on TVM's servers. `modern` is set from 0.22 on.
fn test_functions(session: &Session, modern: bool) -> Result<(), Error> {
    let by_era = |old: &'static str, new: &'static str| if modern { new } else { old };
    let inner = |made: Any| -> Result<Function, Error> { Ok(Function::try_from(made)?) };
    let add = inner(session.call("rpc.test.add_to_lhs", (10,))?)?;
    assert_eq!(i64::try_from(&add.call((12_i64,))?)?, 22);
    let both = session.call("rpc.test.runtime_str_concat", ("abc", "def"))?;
    assert_eq!(String::try_from(&both)?, "abcdef");
    let echo = session.require("testing.echo")?;
    assert_eq!(i64::try_from(&echo.call((1_i64, 2_i64))?)?, 1);
    assert_eq!(String::try_from(&echo.call(("xyz",))?)?, "xyz");
    // A tensor of ones, and one with another value.
    let check = by_era("rpc.test.remote_array_func", "rpc.test.remote_tensor_func");
    let tensor =
        |value: f64| session.send(&Tensor::from_slice(&[value; 12], &[3, 4])?, Device::CPU);
    session.call(check, (tensor(1.0)?,))?;
    session.call(check, (tensor(2.0)?,)).expect_err("no ones");
    let nd = |name: &str| inner(session.call("rpc.test.remote_return_nd", (name,))?);
    let array = nd("get_arr")?.call(())?;
    for at in [0_i64, 9] {
        let element = nd("get_elem")?.call((at,))?;
        assert_eq!(f64::try_from(&element)?, 0.0);
        let element = nd("get_arr_elem")?.call([array.clone(), at.into()])?;
        assert_eq!(f64::try_from(&element)?, 0.0);
    }
    nd("get_elem")?.call((10_i64,)).expect_err("there are 10");
    let count = nd("ref_count")?;
    // Before 0.22 the function needs a module that no server imports.
    if modern {
        assert!(i64::try_from(&count.call(())?)? > 0);
    }
    session
        .call("rpc.test.remote_return_nd", ("other",))
        .expect_err("no such name");
    // An object that stays on the server.
    let make = session.require(by_era("runtime.ShapeTuple", "ffi.Shape"))?;
    let shape = make.call((2_i64, 3_i64))?;
    let size = session.require(by_era(
        "runtime.GetShapeTupleSize",
        "rpc.testing.GetShapeSize",
    ))?;
    assert_eq!(i64::try_from(&size.call([shape.clone()])?)?, 2);
    let element = session.require(by_era(
        "runtime.GetShapeTupleElem",
        "rpc.testing.GetShapeElem",
    ))?;
    for (at, extent) in [(0_i64, 2_i64), (1, 3)] {
        let got = element.call([shape.clone(), at.into()])?;
        assert_eq!(i64::try_from(&got)?, extent);
    }
    element
        .call([shape.clone(), 2_i64.into()])
        .expect_err("there are two");
    if modern {
        let raise = session.require("testing.test_raise_error")?;
        let error = raise.call(("RuntimeError", "why not"));
        assert!(error.expect_err("it raises").message().contains("why not"));
    } else {
        let made = session.call("testing.test_raise_error_callback", ("RuntimeError",))?;
        inner(made)?.call(()).expect_err("it raises");
    }
    Ok(())
}

#[test]
fn functions_for_tests_do_the_same_on_every_server() {
    let ours = our_server();
    for release in [27, 16] {
        let mut servers = vec![("ours", ours.port)];
        let real = Peer::find(release).map(|peer| ServerProcess::real(&peer.python));
        servers.extend(real.iter().map(|real| ("real", real.port)));
        for (name, port) in servers {
            let session = Session::connect("127.0.0.1", port, "", &options(Some(release)));
            let done = test_functions(&session.expect("a session"), release == 27);
            done.unwrap_or_else(|error| panic!("{name} 0.{release}: {error}"));
        }
    }
}

/// Runs our client with a server, also through another server of the same release.
fn our_client(release: u8) {
    let Some(peer) = Peer::find(release) else {
        return;
    };
    let (python, library, function) = (peer.python.as_str(), peer.library, peer.function);
    let server = ServerProcess::real(python);
    for stated in [None, Some(release)] {
        let options = options(stated);
        let session = Session::connect("127.0.0.1", server.port, "", &options).expect("a session");
        let done = steps(&session, library, function).expect("every step");
        let server = format!("0.{release}");
        println!(
            "| ours (release {stated:?}) | {server} | {} | |",
            done.join(", ")
        );
    }
    // A server of another era causes an error that names the era, and no misread answer.
    let other = if release >= 21 { 8 } else { 27 };
    let refused = Session::connect("127.0.0.1", server.port, "", &self::options(Some(other)));
    let refused = refused.expect_err("another era");
    assert_eq!(
        refused.violation().map(|broken| broken.rule().id()),
        Some("RPC-100"),
        "{refused}"
    );
    let second = ServerProcess::real(python);
    for stated in [None, Some(release)] {
        let mut options = options(stated);
        options.hops.push(RemoteHop {
            host: "127.0.0.1".to_owned(),
            port: second.port,
            key: String::new(),
        });
        let session = Session::connect("127.0.0.1", server.port, "", &options).expect("two hops");
        let done = steps(&session, library, function).expect("every step");
        let server = format!("0.{release}, 0.{release}");
        println!(
            "| ours (release {stated:?}) | {server} | {} | |",
            done.join(", ")
        );
    }
}

#[test]
fn our_client_uses_a_server_of_0_27() {
    our_client(27);
}

#[test]
fn our_client_uses_a_server_of_0_16() {
    our_client(16);
}

#[test]
fn our_client_uses_a_server_of_0_8() {
    our_client(8);
}

/// Checks that a model on a server has the same outputs as here, byte for byte. `library` is a path in `golden`, and the inputs are
/// in the same folder.
#[cfg(feature = "cli")]
fn same_outputs(server: &ServerProcess, library: &str) {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden");
    let inputs = library.replace(".so", ".io.npz");
    let run = |device: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_tvmspec"))
            .args(["run", "--device", device, "--inputs"])
            .args([golden.join(&inputs), golden.join(library)])
            .output();
        let output = output.expect("a process");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{library} on {device}: {stderr}");
        output.stdout
    };
    let there = run(&format!("rpc://127.0.0.1:{}#cpu:0", server.port));
    assert!(there == run("cpu"), "{library}");
    println!("{library} runs on the server");
}

#[test]
#[cfg(feature = "cli")]
fn models_run_on_servers_of_their_release() {
    let models: [(u8, &[&str]); 3] = [
        (27, &["eras/0.27/relax-vm.so"]),
        (16, &["eras/0.16/relax-vm.so", "eras/0.16/graph.so"]),
        (
            8,
            &[
                "graph/models/v0.8/mlp.so",
                "graph/models/v0.8/multi_out.so",
                "graph/models/v0.8/dtypes.so",
            ],
        ),
    ];
    for (release, libraries) in models {
        if let Some(peer) = Peer::find(release) {
            let server = ServerProcess::real(&peer.python);
            for library in libraries {
                same_outputs(&server, library);
            }
        }
    }
}

#[test]
#[cfg(feature = "cli")]
fn our_client_uses_our_server() {
    let server = our_server();
    for (release, library, function) in [
        (None, "module/host-0.27.so", "main"),
        (Some(27), "module/host-0.27.so", "main"),
        (Some(16), "eras/0.16/host.so", "add1"),
        (Some(8), "module/host-0.8.so", "add1"),
    ] {
        let options = options(release);
        let session = Session::connect("127.0.0.1", server.port, "", &options).expect("a session");
        let done = steps(&session, library, function).expect("every step");
        println!(
            "| ours (release {release:?}) | ours | {} | |",
            done.join(", ")
        );
    }
    for model in [
        "eras/0.27/relax-vm.so",
        "eras/0.16/relax-vm.so",
        "graph/models/v0.8/mlp.so",
    ] {
        same_outputs(&server, model);
    }
}
