//! Tensor caches: TVM's loader reads the caches that we write, and we read those that TVM writes. Needs a Python with apache-tvm
//! 0.27: `TVMSPEC_PYTHON`, or a `python3` that has it.
#![cfg(feature = "cli")]

use crate::support::python::{python, run};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Prints every tensor of a cache, as both loaders of TVM read it.
const READ: &str = "
import sys, json, tvm
from tvm.contrib import tvmjs
load, get = (tvm.get_global_func('vm.builtin.tensor_cache.' + name) for name in ('load', 'get'))
tensors, _ = tvmjs.load_tensor_cache(sys.argv[1], tvm.cpu())
load(sys.argv[1], 1, 0)
for name in sorted(tensors):
    one, other = (value.numpy().tobytes().hex() for value in (tensors[name], get(name)))
    assert one == other, name
    print(name, tensors[name].dtype, list(tensors[name].shape), one)
";

/// Writes a cache of quantized weights in several shards, like that of a model.
const WRITE: &str = "
import sys, numpy as np, tvm
from tvm.contrib import tvmjs
random, params = np.random.RandomState(35), {}
for layer in range(4):
    params[f'model.layers.{layer}.q_weight'] = random.randint(0, 2**32, (64, 32), dtype='u4')
    params[f'model.layers.{layer}.q_scale'] = random.standard_normal((64, 8)).astype('f2')
    params[f'model.layers.{layer}.norm'] = random.standard_normal((64,)).astype('f4')
tvmjs.dump_tensor_cache(params, sys.argv[1], encode_format=sys.argv[2], meta_data={'ParamSize': 12}, shard_cap_mb=1/64, show_progress=False)
";

fn convert(from: &Path, to: &Path, options: &[&str]) {
    let output = Command::new(env!("CARGO_BIN_EXE_tvmspec"))
        .arg("convert")
        .arg(from)
        .arg("-o")
        .arg(to)
        .args(options)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn a_real_cache_becomes_a_parameter_file_and_comes_back() {
    let Some(python) = python("tvm, tvm.contrib.tvmjs, numpy") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for (encoding, options) in [("raw", [].as_slice()), ("f32-to-bf16", &["--bf16"])] {
        let (real, ours) = (
            at(&format!("{encoding}-real")),
            at(&format!("{encoding}-ours")),
        );
        run(&python, WRITE, &[&real, Path::new(encoding)]);
        let params = at(&format!("{encoding}.params"));
        convert(&real, &params, &[]);
        convert(&params, &ours.join("tensor-cache.json"), options);
        let [theirs, back] = [&real, &ours].map(|cache| run(&python, READ, &[cache]));
        assert_eq!(theirs.lines().count(), 12);
        assert_eq!(theirs, back, "{encoding}");
        // A parameter file does not have the metadata, so the limit on the size of shards differs.
        assert_eq!(fs::read_dir(&ours).unwrap().count(), 2, "{encoding}");
    }
}
