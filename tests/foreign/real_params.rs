//! Parameter files: TVM reads the files that we write, and we read those that TVM writes. Needs a Python with apache-tvm 0.27:
//! `TVMSPEC_PYTHON`, or a `python3` that has it.

use crate::support::python::{python, run};
use std::path::Path;
use tvmspec::rule::Findings;
use tvmspec::tensor::{Dtype, Params, Sizing, TensorRecord};
use tvmspec::wire::{Cursor, Writer};

const READ: &str = "
import sys, tvm, tvm_ffi
params = tvm_ffi.get_global_func('runtime.LoadParams')(open(sys.argv[1], 'rb').read())
for name in sorted(params.keys()):
    array = params[name].numpy()
    print(name, array.dtype, array.shape, array.tobytes().hex())
";

const COPY: &str = "
import sys, pathlib, tvm, tvm_ffi
load, save = (tvm_ffi.get_global_func('runtime.' + name) for name in ('LoadParams', 'SaveParams'))
folder, *files = map(pathlib.Path, sys.argv[1:])
for file in files: (folder / file.name).write_bytes(bytes(save(load(file.read_bytes()))))
";

fn record(code: u8, bits: u8, shape: &[i64], data: &'static [u8]) -> TensorRecord<'static> {
    TensorRecord::new(Dtype::scalar(code, bits), shape, data, Sizing::V0_7).unwrap()
}

#[test]
fn the_real_runtime_reads_what_we_write() {
    let Some(python) = python("tvm, tvm_ffi, numpy") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ours.params");
    let params = Params::new(vec![
        (
            "a".into(),
            record(Dtype::FLOAT, 32, &[2, 1], &[0, 0, 128, 63, 0, 0, 0, 64]),
        ),
        (
            "b".into(),
            record(Dtype::INT, 64, &[], &[7, 0, 0, 0, 0, 0, 0, 0]),
        ),
        ("c".into(), record(Dtype::BOOL, 8, &[2], &[1, 0])),
        ("d".into(), record(Dtype::UINT, 8, &[0, 3], &[])),
    ]);
    let mut out = Writer::new();
    params.write(&mut out);
    std::fs::write(&file, out.into_bytes()).unwrap();
    let reply = run(&python, READ, &[&file]);
    let lines: Vec<&str> = reply.lines().map(str::trim).collect();
    assert_eq!(
        lines,
        [
            "a float32 (2, 1) 0000803f00000040",
            "b int64 () 0700000000000000",
            "c bool (2,) 0100",
            "d uint8 (0, 3)",
        ]
    );
}

#[test]
fn the_real_runtime_writes_what_we_write() {
    let Some(python) = python("tvm, tvm_ffi, numpy") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/tensor");
    // wheel-0.27 is missing: it holds a tensor of shape [2, 0, 3], which 0.27 writes but cannot read (TEN-32).
    let names = [
        "all_dtypes-0.8",
        "all_dtypes-0.19",
        "mlp-0.8",
        "graph-0.8",
        "small-0.27",
    ];
    let sources = names.map(|name| golden.join(format!("{name}.params")));
    let arguments: Vec<&Path> = [folder.path()]
        .into_iter()
        .chain(sources.iter().map(|path| path.as_path()))
        .collect();
    run(&python, COPY, &arguments);
    for source in &sources {
        let name = source.display();
        let theirs = std::fs::read(folder.path().join(source.file_name().unwrap())).unwrap();
        let read = |bytes| {
            Params::read(
                &mut Cursor::new(bytes),
                Sizing::V0_7,
                &mut Findings::default(),
            )
        };
        let ours = std::fs::read(source).unwrap();
        let (ours, theirs_read) = (read(&ours).unwrap(), read(&theirs).unwrap());
        assert_eq!(ours.len(), theirs_read.len(), "{name}");
        for (tensor, record) in ours.iter() {
            assert_eq!(theirs_read.get(tensor), Some(record), "{name}: {tensor}");
        }
        let mut out = Writer::new();
        theirs_read.write(&mut out);
        assert!(
            out.into_bytes() == theirs,
            "{name} as written by 0.27 changes"
        );
    }
}
