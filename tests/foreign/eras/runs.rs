//! Calls of the artifacts of an era, compared with the recorded outputs.

use super::{ALL, artifacts, is_not_run, tvmspec};
use crate::support::skip::skipped;
use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::process::Command;
use tvmspec::device::{Attribute, AttributeValue as Attr, Device, Manager};

#[test]
#[cfg_attr(not(all(target_os = "linux", target_arch = "x86_64")), ignore)]
fn era_models_return_recorded_outputs() {
    let mut ran: BTreeMap<String, usize> = BTreeMap::new();
    for artifact in artifacts() {
        let Some(run) = artifact.run() else { continue };
        let text = |key: &str| {
            run[key]
                .as_str()
                .unwrap_or_else(|| panic!("no {key} in {run}"))
        };
        let (library, io) = (
            artifact.path(text("library")),
            arrays(&artifact.path(text("io"))),
        );
        if is_not_run(&artifact) {
            let rejected = tvmspec()
                .arg("run")
                .arg(&library)
                .arg("--inputs")
                .arg(artifact.path(text("io")))
                .output()
                .unwrap();
            let reply = String::from_utf8_lossy(&rejected.stderr);
            assert_eq!(rejected.status.code(), Some(2), "{reply}");
            assert!(reply.contains("takes an array object"), "{reply}");
            continue;
        }
        if run["how"] == "run" {
            model(
                tvmspec().arg("run").arg(&library),
                &artifact.path(text("io")),
                &io,
            );
            if artifact.name == "graph" {
                let mut parts = tvmspec();
                parts
                    .arg("run")
                    .arg("--graph")
                    .arg(artifact.path("graph.json"));
                parts.arg("--params").arg(artifact.path("graph.params"));
                parts.arg("--lib").arg(artifact.path("graph-kernels.so"));
                model(&mut parts, &artifact.path(text("io")), &io);
            }
            *ran.entry(artifact.era).or_default() += 1;
            continue;
        }
        let device = text("device");
        if device == "cpu" || is_here(device) {
            call(&library, text("function"), device, &io);
            *ran.entry(artifact.era).or_default() += 1;
        }
    }
    println!("{ran:?}");
    for era in ALL {
        assert!(
            ran.get(*era).is_some_and(|count| *count >= 6),
            "{era}: {ran:?}"
        );
    }
}

fn is_here(name: &str) -> bool {
    let device = match name {
        "opencl:0" => Device::new(4, 0),
        "vulkan:0" => Device::new(7, 0),
        other => panic!("no device `{other}` in the test"),
    };
    let exists = Manager::global()
        .api(device.kind)
        .is_ok_and(|api| api.attribute(device, Attribute::Exist) == Ok(Attr::Int(1)));
    if !exists {
        skipped(format!("there is no device {name}"));
    }
    exists
}

/// Returns the arrays of an `.npz` file, each as an `.npy` file.
fn arrays(path: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut archive = zip::ZipArchive::new(fs::File::open(path).unwrap()).unwrap();
    let mut arrays = BTreeMap::new();
    for index in 0..archive.len() {
        let mut member = archive.by_index(index).unwrap();
        let name = member.name().unwrap().trim_end_matches(".npy").to_owned();
        let mut bytes = Vec::new();
        member.read_to_end(&mut bytes).unwrap();
        arrays.insert(name, bytes);
    }
    arrays
}

/// Returns the data after the header of an `.npy` file of version 1.
fn data(npy: &[u8]) -> &[u8] {
    assert_eq!(&npy[..8], b"\x93NUMPY\x01\0");
    &npy[10 + usize::from(u16::from_le_bytes([npy[8], npy[9]]))..]
}

/// Calls a function with two tensors, one input and one output.
fn call(library: &Path, function: &str, device: &str, io: &BTreeMap<String, Vec<u8>>) {
    let folder = tempfile::tempdir().unwrap();
    let (input, expected) = (folder.path().join("in.npy"), data(&io["out_B"]));
    fs::write(&input, &io["in_A"]).unwrap();
    let output = tvmspec()
        .args(["call", "--device", device, "--save"])
        .arg(folder.path())
        .arg(library)
        .arg(function)
        .arg(format!("@{}", input.display()))
        .arg(format!("out:float32[{}]", expected.len() / 4))
        .output()
        .unwrap();
    let reply = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {reply}", library.display());
    let answer = fs::read(folder.path().join("out_0.npy")).unwrap();
    assert!(
        data(&answer) == expected,
        "{} on {device}: another answer",
        library.display()
    );
}

/// Runs a model and checks that its outputs are bit-identical to those of the release.
fn model(command: &mut Command, inputs: &Path, io: &BTreeMap<String, Vec<u8>>) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("out.npz");
    let output = command
        .arg("--inputs")
        .arg(inputs)
        .arg("-o")
        .arg(&file)
        .output()
        .unwrap();
    let reply = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {reply}", inputs.display());
    let answers = arrays(&file);
    let expected: Vec<_> = io
        .iter()
        .filter(|(name, _)| name.starts_with("out_"))
        .collect();
    assert_eq!(answers.len(), expected.len(), "{}", inputs.display());
    for (index, (name, expected)) in expected.into_iter().enumerate() {
        let answer = &answers[&format!("out_{index}")];
        assert!(
            data(answer) == data(expected),
            "{}: {name} differs",
            inputs.display()
        );
    }
}
