//! Complete models of real releases: recorded inputs produce the recorded outputs, bit for bit.
#![cfg(feature = "cli")]

mod debug;
mod memory;

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;
use tvmspec::function::Error;
use tvmspec::graph::Model;
use tvmspec::object::Tensor;
use tvmspec::tensor::{Device, Dtype};
use tvmspec::value::dtype_from_text;

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("golden/graph")
        .join(name)
}

/// Models with the graph that each was exported from. The last field is unset for the model of which only parts exist.
const MODELS: [(&str, &str, bool); 7] = [
    ("v0.8/mlp", "mlp.json", true),
    ("v0.8/multi_out", "multi-out.json", true),
    ("v0.8/dtypes", "dtypes.json", true),
    ("v0.19/mlp", "mlp-0.19.json", true),
    ("v0.19/multi_out", "multi-out-0.19.json", true),
    ("v0.19/dtypes", "dtypes-0.19.json", true),
    ("v0.8/resnet8", "resnet8.json", false),
];

#[test]
#[cfg_attr(not(all(target_os = "linux", target_arch = "x86_64")), ignore)]
fn models_give_the_recorded_outputs_from_one_library() {
    for (name, _, whole) in MODELS {
        if whole {
            // SAFETY: a golden of a release, with the graph that it was compiled for.
            let model = unsafe { Model::load(golden(&format!("models/{name}.so"))) }.unwrap();
            check(name, model);
        }
    }
}

#[test]
#[cfg_attr(not(all(target_os = "linux", target_arch = "x86_64")), ignore)]
fn models_give_the_recorded_outputs_from_graph_params_and_kernels() {
    for (name, graph, _) in MODELS {
        check(name, in_parts(name, graph));
    }
}

fn in_parts(name: &str, graph: &str) -> Model {
    let graph = std::fs::read_to_string(golden(graph)).unwrap();
    let params = std::fs::read(golden(&format!("models/{name}.params"))).unwrap();
    let kernels = golden(&format!("models/{name}.kernels.so"));
    // SAFETY: a golden of a release, with the graph that it was compiled for.
    unsafe { Model::from_parts(&graph, &params, kernels, &[Device::CPU]) }.unwrap()
}

/// Runs the model twice, because the second run reuses the memory of the first.
fn check(name: &str, mut model: Model) {
    let io = recorded(name);
    let inputs: Vec<(&str, &Tensor)> = io
        .iter()
        .filter_map(|(name, tensor)| Some((name.strip_prefix("in_")?, tensor)))
        .collect();
    for _ in 0..2 {
        let outputs = model.run(&inputs).unwrap();
        assert_eq!(outputs.len(), io.len() - inputs.len(), "{name}");
        for (index, output) in outputs.iter().enumerate() {
            let expected = &io[&format!("out_{index}")];
            assert_eq!(output.shape(), expected.shape(), "{name}, output {index}");
            let same = output.to_bytes().unwrap() == expected.to_bytes().unwrap();
            assert!(same, "{name}: output {index} differs from the recorded one");
        }
    }
}

#[test]
#[cfg_attr(not(all(target_os = "linux", target_arch = "x86_64")), ignore)]
fn the_program_prints_the_recorded_outputs() {
    let folder = tempfile::tempdir().unwrap();
    for (name, graph, whole) in MODELS {
        let model = |end: &str| golden(&format!("models/{name}{end}"));
        let out = folder.path().join(name.replace('/', "-") + ".npz");
        let mut parts = Command::new(env!("CARGO_BIN_EXE_tvmspec"));
        parts.arg("run").arg("--graph").arg(golden(graph));
        parts.arg("--params").arg(model(".params"));
        parts.arg("--lib").arg(model(".kernels.so"));
        let mut one = Command::new(env!("CARGO_BIN_EXE_tvmspec"));
        one.arg("run").arg(model(".so"));
        for mut command in [Some(parts), whole.then_some(one)].into_iter().flatten() {
            command.arg("--inputs").arg(model(".io.npz"));
            let ran = command.arg("-o").arg(&out).output().unwrap();
            let message = String::from_utf8_lossy(&ran.stderr);
            assert!(ran.status.success(), "{name}: {message}");
            let (wrote, io) = (read_npz(&out), recorded(name));
            for (output, expected) in io.iter().filter(|(name, _)| name.starts_with("out_")) {
                let same = wrote[output].to_bytes().unwrap() == expected.to_bytes().unwrap();
                assert!(same, "{name}: {output} differs from the recorded one");
            }
        }
    }
}

#[test]
#[cfg_attr(not(all(target_os = "linux", target_arch = "x86_64")), ignore)]
fn what_is_handed_in_is_checked() {
    // SAFETY: a golden of a release, with the graph that it was compiled for.
    let mut model = unsafe { Model::load(golden("models/v0.8/mlp.so")) }.unwrap();
    let x = recorded("v0.8/mlp").remove("in_x").unwrap();
    let float = x.dl().dtype;
    let message = |result: Result<Vec<Tensor>, Error>| result.map(drop).unwrap_err().to_string();
    let unset = message(model.run(&[]));
    assert!(unset.contains("never set: x"), "{unset}");
    let name = message(model.run(&[("data", &x)]));
    assert!(name.contains("no input `data`; it has 4: x, "), "{name}");
    let int = Dtype { code: 0, ..float };
    let int = Tensor::empty(x.shape(), int).unwrap();
    let dtype = message(model.run(&[("x", &int)]));
    assert!(dtype.contains("input `x` is float32"), "{dtype}");
    assert!(dtype.contains("not int32"), "{dtype}");
    let flat = Tensor::empty(&[x.shape().iter().product()], float).unwrap();
    let shape = message(model.run(&[("x", &flat)]));
    assert!(shape.starts_with("TypeError: input `x` is"), "{shape}");
    // The model still works after these errors.
    check("v0.8/mlp", model);
}

#[test]
#[cfg_attr(not(all(target_os = "linux", target_arch = "x86_64")), ignore)]
fn a_library_without_functions_is_rejected_with_all_names() {
    let graph = std::fs::read_to_string(golden("resnet8.json")).unwrap();
    let library = golden("models/v0.8/mlp.kernels.so");
    // SAFETY: a golden of a release; nothing of it is called.
    let made = unsafe { Model::from_parts(&graph, &[], library, &[Device::CPU]) };
    let Err(error) = made else {
        panic!("ran resnet8 on the kernels of mlp")
    };
    let missing = error.message().matches("tvmgen_default_fused").count();
    assert!(missing > 5, "{error}");
}

fn recorded(model: &str) -> BTreeMap<String, Tensor> {
    read_npz(&golden(&format!("models/{model}.io.npz")))
}

fn read_npz(path: &Path) -> BTreeMap<String, Tensor> {
    let mut archive = zip::ZipArchive::new(std::fs::File::open(path).unwrap()).unwrap();
    let mut arrays = BTreeMap::new();
    for index in 0..archive.len() {
        let mut member = archive.by_index(index).unwrap();
        let name = member.name().unwrap().trim_end_matches(".npy").to_owned();
        let mut bytes = Vec::new();
        member.read_to_end(&mut bytes).unwrap();
        let mut data = bytes.as_slice();
        let header = npyz::NpyHeader::from_reader(&mut data).unwrap();
        let npyz::DType::Plain(kind) = header.dtype() else {
            panic!("{name} holds records")
        };
        let kind = kind.to_string();
        let (code, width) = kind.trim_start_matches(['<', '|']).split_at(1);
        let bits = 8 * width.parse::<u32>().unwrap();
        let dtype = match code {
            "b" => "bool".to_owned(),
            "f" => format!("float{bits}"),
            "i" => format!("int{bits}"),
            _ => format!("uint{bits}"),
        };
        let shape: Vec<i64> = header.shape().iter().map(|extent| *extent as i64).collect();
        let tensor = Tensor::empty(&shape, dtype_from_text(&dtype).unwrap()).unwrap();
        tensor.fill(data).unwrap();
        arrays.insert(name, tensor);
    }
    arrays
}
