//! Small hostile files cost only what their size justifies, in every command. The peak is at most 64 MB and 30 bytes for each byte of
//! the file. There is no signal and no exit code above 2, and four times the bytes take at most eight times as long.
//!
//! `tests/formats/hostile/make.py` creates the files, `tests/formats/hostile/measure.py` runs the commands. At full size they write the
//! table of `conformance/reports/hostile-files.md`.
#![cfg(all(feature = "cli", target_os = "linux"))]

use crate::support::skip::skipped;
use crate::support::test_scale::is_thorough;
use std::path::Path;
use std::process::Command;

/// The divisors of sizes: for the larger files, and for files a quarter as large, which show how time grows.
const SCALES: [&str; 2] = ["16", "64"];
/// The divisors of thorough runs.
const THOROUGH_SCALES: [&str; 2] = ["1", "4"];

/// Every file of the table, in its order. A file that is no longer created or measured would be missing from the table.
const FILES: [&str; 86] = [
    "elf-suffixes.o",
    "elf-suffixes-long.o",
    "elf-needs.o",
    "elf-endless-names.o",
    "elf-blobs.o",
    "elf-sections.o",
    "elf-beyond.so",
    "elf-tails.so",
    "elf-needed.so",
    "elf-folders.so",
    "coff-suffixes.obj",
    "macho-suffixes.o",
    "pe-suffixes.dll",
    "ar-gnu-names.a",
    "ar-bsd-names.a",
    "ar-empty.a",
    "tar-below-a-long-name.tar",
    "tar-nested.tar",
    "tar-empty.tar.gz",
    "tar-long-names.tar.gz",
    "tar-pax.tar",
    "arrays.c",
    "functions.c",
    "modules.bin",
    "functions.bin",
    "argument-types.bin",
    "launch-tags.bin",
    "long-function-names.bin",
    "imports.bin",
    "names.params",
    "shape.tensor",
    "vm-functions.ro",
    "vm-constants.ro",
    "vm-operands.ro",
    "vm-operands-wide.ro",
    "vm-operands-escaped.ro",
    "vm-compiled.ro",
    "relay-name.ro",
    "relay-names.ro",
    "functions.stackvm",
    "vm-registers-27.so",
    "vm-registers-31.so",
    "vm-registers-32.so",
    "vm-lanes.so",
    "lanes.params",
    "nodes.graph.json",
    "members.graph.json",
    "deep.graph.json",
    "escapes.graph.json",
    "lists.ffi.json",
    "maps.ffi.json",
    "nodes.ffi.json",
    "nodes.object.json",
    "unknown.bin",
    "overlapping.npz",
    "large.npz",
    "unused.npz",
    "header.npy",
    "header-nested.npy",
    "shape.npy",
    "objects.npy",
    "keep-alives.client.bin",
    "calls.client.bin",
    "arguments.client.bin",
    "nothings.client.bin",
    "strings.client.bin",
    "string.client.bin",
    "truths.client.bin",
    "extents.client.bin",
    "flat-copies.client.bin",
    "tracker-keys.client.bin",
    "keys.target",
    "features.target",
    "letters.target",
    "libraries.target",
    "options.target",
    "option-words.target",
    "feature-members.target",
    "quotes.target",
    "repeats.manifest",
    "payload.manifest",
    "modules.manifest",
    "imports.manifest",
    "imports.toml",
    "names.toml",
    "long.manifest",
];

#[test]
fn no_file_costs_more_than_its_size_justifies() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = SCALES.map(|_| tempfile::tempdir().unwrap());
    let script = |name: &str| {
        let mut command = Command::new("python3");
        command.arg(root.join("tests/formats/hostile").join(name));
        command
            .current_dir(root)
            .env("PYTHONDONTWRITEBYTECODE", "1");
        command
    };
    let scales = if is_thorough() {
        THOROUGH_SCALES
    } else {
        SCALES
    };
    for (folder, scale) in folders.iter().zip(scales) {
        let made = script("make.py").arg(folder.path()).arg(scale).status();
        match made {
            Ok(status) => assert!(status.success(), "make.py: {status}"),
            Err(error) => return skipped(format_args!("there is no python3: {error}")),
        }
    }
    let [larger, smaller] = &folders;
    let mut measure = script("measure.py");
    measure
        .arg(env!("CARGO_BIN_EXE_tvmspec"))
        .arg(smaller.path())
        .arg("--larger")
        .arg(larger.path());
    // The models that are run are code for one machine.
    if cfg!(target_arch = "x86_64") {
        measure.envs([
            ("MODEL", "golden/graph/models/v0.8/mlp.so"),
            ("GRAPH", "golden/graph/mlp.json"),
            ("LIBRARY", "golden/graph/models/v0.8/mlp.kernels.so"),
            ("FUNCTION", "tvmgen_default_fused_nn_softmax"),
        ]);
    }
    let measured = measure.output().unwrap();
    let table = String::from_utf8_lossy(&measured.stdout);
    let reply = String::from_utf8_lossy(&measured.stderr);
    println!("{table}");
    assert!(measured.status.success(), "{table}\n{reply}");
    let rows: Vec<Vec<&str>> = table
        .lines()
        .filter(|line| line.starts_with("| `"))
        .map(|line| line.split('|').map(str::trim).collect())
        .collect();
    let names: Vec<&str> = rows.iter().map(|row| row[1].trim_matches('`')).collect();
    assert_eq!(names, FILES, "{reply}");
    for row in &rows {
        // After name, fault and size, at least one command was measured.
        let measured = row[4..].iter().any(|cell| cell.contains(" MB"));
        let for_models = row[1].contains(".np");
        assert!(
            measured || for_models && !cfg!(target_arch = "x86_64"),
            "{row:?}"
        );
    }
}
