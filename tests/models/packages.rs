//! `run` on files other than a model library: packages of tvmc, archives, and models of other executors.
#![cfg(all(feature = "cli", target_os = "linux", target_arch = "x86_64"))]

use super::commands::{text, tvmspec};
use std::path::{Path, PathBuf};

/// Creates a tar of these files under these names.
fn tar(folder: &Path, members: &[(&str, &str)]) -> PathBuf {
    let path = folder.join("model.tar");
    let mut archive = tar::Builder::new(std::fs::File::create(&path).unwrap());
    for (name, file) in members {
        archive.append_path_with_name(file, name).unwrap();
    }
    archive.finish().unwrap();
    path
}

const MODELS: &str = "golden/graph/models/v0.8";

#[test]
fn a_tvmc_package_runs_like_its_members() {
    let folder = tempfile::tempdir().unwrap();
    let (lib, params) = (
        format!("{MODELS}/mlp.kernels.so"),
        format!("{MODELS}/mlp.params"),
    );
    let graph = "golden/graph/mlp.json";
    let path = tar(
        folder.path(),
        &[
            ("mod.so", &lib),
            ("./mod.json", graph),
            ("mod.params", &params),
        ],
    );
    let inputs = format!("{MODELS}/mlp.io.npz");
    let parts = tvmspec(&[
        "run", "--graph", graph, "--params", &params, "--lib", &lib, "--inputs", &inputs,
    ]);
    let package = tvmspec(&["run", path.to_str().unwrap(), "--inputs", &inputs]);
    assert!(package.status.success(), "{}", text(&package.stderr));
    assert!(text(&package.stdout).starts_with("out_0 = [["));
    assert_eq!(text(&package.stdout), text(&parts.stdout));
    // Package written by tvmc 0.19.
    let package = tvmspec(&["run", "golden/graph/tvmc-package-0.19.tar"]);
    assert!(package.status.success(), "{}", text(&package.stderr));
    assert!(text(&package.stdout).starts_with("out_0 = "));
}

#[test]
fn unrunnable_file_error_states_format_and_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let lib = format!("{MODELS}/mlp.kernels.so");
    let params = format!("{MODELS}/mlp.params");
    let run = |path: &str| {
        let done = tvmspec(&["run", path]);
        assert_eq!(
            done.status.code(),
            Some(2),
            "{path}: {}",
            text(&done.stdout)
        );
        text(&done.stderr)
    };
    for (path, says) in [
        (
            "golden/graph/graph-0.19.tar",
            "it is an archive of object files or sources for x86_64, 64 bits. Unpack it and link",
        ),
        (
            "golden/blob/containers/static.a",
            "no linker makes one library of them",
        ),
        (
            "golden/graph/mlp.json",
            "its form is graph JSON, and it is no library: `tvmspec run --graph",
        ),
        (
            "golden/tensor/cache-0.27",
            "its form is tensor cache, and it is no library: `tvmspec convert",
        ),
        (
            "golden/blob/posted/riscv64-0.16.tar",
            "`riscv64-linux-gnu-gcc -shared -fPIC -o lib.so`",
        ),
        (
            "golden/blob/posted/c-host-0.19.tar",
            "(and `-I` for the folders of TVM's headers)",
        ),
        (
            "golden/vm/basic.vmexec",
            "its form is Relax VM executable, and it is no library: it has no kernels",
        ),
        (
            "golden/eras/0.16/relay-vm.so",
            "a model of the Relay VM (0.6 to 0.19)",
        ),
        (
            "golden/eras/0.16/aot.so",
            "golden/eras/0.16/aot.so tvmgen_default___tvm_main__`",
        ),
        (
            "golden/eras/0.13/aot.so",
            "golden/eras/0.13/aot.so tvmgen_default___tvm_main__`",
        ),
    ] {
        let said = run(path);
        assert!(said.contains(says), "{path}: {said}");
    }
    for (members, says) in [
        (
            &[
                ("metadata.json", "golden/graph/mlp.json"),
                ("codegen/lib.c", "golden/graph/mlp.json"),
            ][..],
            "Model Library Format",
        ),
        (
            &[("mod.tar", &*lib), ("mod.json", "golden/graph/mlp.json")][..],
            "Python links that archive itself; elsewhere unpack and link it first",
        ),
        // The library can run, but it has no model.
        (&[("lib.so", &*lib)][..], "no model"),
        (
            &[("lib.so", "golden/eras/0.16/relay-vm.so")][..],
            "a model of the Relay VM (0.6 to 0.19), which does not run here",
        ),
        (
            &[
                ("model/mod.json", "golden/graph/mlp.json"),
                ("model/mod.params", &*params),
            ][..],
            "whose library, `mod.so` or `mod.tar`, is missing",
        ),
        (
            &[("mod.so", &*lib), ("mod.params", &*params)][..],
            "whose graph, `mod.json`, is missing",
        ),
        (
            &[("mlp.json", "golden/graph/mlp.json")][..],
            "an archive without code",
        ),
    ] {
        let path = tar(folder.path(), members);
        let said = run(path.to_str().unwrap());
        assert!(said.contains(says), "{said}");
    }
    // A directory has no content, so the package consists only of its named files.
    let path = tar(
        folder.path(),
        &[
            ("mod.so", &lib),
            ("other/mod.json", "golden/graph/mlp.json"),
        ],
    );
    assert!(run(path.to_str().unwrap()).contains("Unpack it, `tar -xf FILE.tar`, and load"));
    // A truncated archive.
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    let said = run(path.to_str().unwrap());
    assert!(said.contains("container itself is broken"), "{said}");
    // `call` does not pass other files than libraries to the system's loader either.
    let called = tvmspec(&["call", &params, "f"]);
    let said = text(&called.stderr);
    assert!(
        said.contains("its form is parameter file, and it is no library"),
        "{said}"
    );
}

#[test]
fn a_package_in_a_folder_and_under_gzip_runs() {
    let folder = tempfile::tempdir().unwrap();
    let lib = format!("{MODELS}/mlp.kernels.so");
    let members = [("m/mod.so", &*lib), ("m/mod.json", "golden/graph/mlp.json")];
    let path = tar(folder.path(), &members);
    let zipped = folder.path().join("model.tar.gz");
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut gzip, &std::fs::read(&path).unwrap()).unwrap();
    std::fs::write(&zipped, gzip.finish().unwrap()).unwrap();
    for path in [path, zipped] {
        let done = tvmspec(&["run", path.to_str().unwrap()]);
        assert!(done.status.success(), "{}", text(&done.stderr));
        assert!(text(&done.stdout).starts_with("out_0 = "));
    }
    // Outputs are always a numpy archive, so another extension is an error.
    let done = tvmspec(&["run", "golden/graph/tvmc-package-0.19.tar", "-o", "out.npy"]);
    assert_eq!(done.status.code(), Some(2));
    assert!(text(&done.stderr).contains("whose name ends in .npz"));
}

#[test]
fn the_advice_for_an_aot_model_works() {
    let recorded = "golden/eras/0.16/aot.io.npz";
    let folder = tempfile::tempdir().unwrap();
    let mut archive = zip::ZipArchive::new(std::fs::File::open(recorded).unwrap()).unwrap();
    let mut names: Vec<String> = archive
        .file_names()
        .map(|name| name.unwrap().to_string())
        .collect();
    names.sort();
    let mut read = |name: &str| {
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut archive.by_name(name).unwrap(), &mut bytes).unwrap();
        bytes
    };
    let input = names.iter().find(|name| name.starts_with("in_")).unwrap();
    let output = names.iter().find(|name| name.starts_with("out_")).unwrap();
    let file = folder.path().join("x.npy");
    std::fs::write(&file, read(input)).unwrap();
    let expected = read(output);
    let shape = text(&expected);
    let shape = shape
        .split_once("'shape': (")
        .unwrap()
        .1
        .split_once(')')
        .unwrap()
        .0
        .replace(' ', "");
    let (input, output) = (
        format!("@{}", file.display()),
        format!("out:float32[{shape}]"),
    );
    let entry = "tvmgen_default___tvm_main__";
    let saved = folder.path().to_str().unwrap();
    let done = tvmspec(&[
        "call",
        "golden/eras/0.16/aot.so",
        entry,
        &input,
        &output,
        "--save",
        saved,
    ]);
    assert!(done.status.success(), "{}", text(&done.stderr));
    let written = std::fs::read(folder.path().join("out_0.npy")).unwrap();
    assert_eq!(written[128..], expected[128..]);
}
