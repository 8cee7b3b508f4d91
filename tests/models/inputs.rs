//! Inputs of `run` and `pack` in addition to a model: duplicates, and invalid files.
#![cfg(all(feature = "cli", target_os = "linux", target_arch = "x86_64"))]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const GRAPH: &str = "golden/graph/models/v0.8/mlp";
const VM: &str = "golden/vm/vm-0.21";

fn tvmspec(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tvmspec"));
    command.current_dir(env!("CARGO_MANIFEST_DIR"));
    command.args(args).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Creates an `.npy` file with any header, including headers that numpy would not write. `length` overrides the header's length.
fn array(version: u8, header: &str, length: Option<u32>, data: &[u8]) -> Vec<u8> {
    let mut bytes = b"\x93NUMPY".to_vec();
    bytes.extend([version, 0]);
    let length = length.unwrap_or(u32::try_from(header.len()).unwrap());
    match version {
        1 => bytes.extend(u16::try_from(length).unwrap().to_le_bytes()),
        _ => bytes.extend(length.to_le_bytes()),
    }
    bytes.extend(header.as_bytes());
    bytes.extend(data);
    bytes
}

fn header(descr: &str, order: &str, shape: &str) -> String {
    format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}\n")
}

/// Creates an array of zeros.
fn zeros(folder: &Path, name: &str, shape: &str, count: usize) -> PathBuf {
    let header = header("<f4", "False", &format!("({shape})"));
    let bytes = array(1, &header, None, &vec![0; 4 * count]);
    let path = folder.join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

#[test]
fn an_input_of_its_own_goes_before_the_archive() {
    let folder = tempfile::tempdir().unwrap();
    for (model, name, shape, count) in [(GRAPH, "x", "1, 16", 16), (VM, "x", "2, 4", 8)] {
        let file = zeros(folder.path(), "zeros.npy", shape, count);
        let (library, archive) = (format!("{model}.so"), format!("{model}.io.npz"));
        let input = format!("{name}={}", file.display());
        let both = tvmspec(&["run", &library, "--inputs", &archive, "--input", &input]);
        let turned = tvmspec(&["run", &library, "--input", &input, "--inputs", &archive]);
        let archive_alone = tvmspec(&["run", &library, "--inputs", &archive]);
        assert!(both.status.success(), "{}", text(&both.stderr));
        assert!(
            archive_alone.status.success(),
            "{}",
            text(&archive_alone.stderr)
        );
        assert_eq!(text(&both.stdout), text(&turned.stdout));
        assert_ne!(text(&both.stdout), text(&archive_alone.stdout), "{model}");
    }
}

#[test]
fn a_name_that_is_passed_twice_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let file = zeros(folder.path(), "zeros.npy", "1, 16", 16);
    let input = format!("x={}", file.display());
    let library = format!("{GRAPH}.so");
    let twice = tvmspec(&["run", &library, "--input", &input, "--input", &input]);
    assert_eq!(twice.status.code(), Some(2));
    assert!(text(&twice.stderr).contains("--input names `x` twice"));

    let archive = folder.path().join("two.npz");
    let mut zip = zip::ZipWriter::new(std::fs::File::create(&archive).unwrap());
    for name in ["x.npy", "in_x.npy"] {
        let options = zip::write::SimpleFileOptions::default();
        zip.start_file(name, options).unwrap();
        std::io::Write::write_all(&mut zip, &std::fs::read(&file).unwrap()).unwrap();
    }
    zip.finish().unwrap();
    let twice = tvmspec(&["run", &library, "--inputs", archive.to_str().unwrap()]);
    assert_eq!(twice.status.code(), Some(2));
    let message = text(&twice.stderr);
    assert!(
        message.contains("--inputs has two arrays for input `x`"),
        "{message}"
    );
}

/// If an archive has two members of one name, readers of zip show only one of them.
#[test]
fn an_archive_with_a_name_twice_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let file = zeros(folder.path(), "zeros.npy", "1, 16", 16);
    let archive = folder.path().join("two.npz");
    let mut zip = zip::ZipWriter::new(std::fs::File::create(&archive).unwrap());
    for name in ["x.npy", "y.npy"] {
        let options = zip::write::SimpleFileOptions::default();
        zip.start_file(name, options).unwrap();
        std::io::Write::write_all(&mut zip, &std::fs::read(&file).unwrap()).unwrap();
    }
    zip.finish().unwrap();
    let mut bytes = std::fs::read(&archive).unwrap();
    for at in 0..bytes.len() - 5 {
        if &bytes[at..at + 5] == b"y.npy" {
            bytes[at] = b'x';
        }
    }
    std::fs::write(&archive, bytes).unwrap();
    let library = format!("{GRAPH}.so");
    let twice = tvmspec(&["run", &library, "--inputs", archive.to_str().unwrap()]);
    assert_eq!(twice.status.code(), Some(2));
    let message = text(&twice.stderr);
    assert!(message.contains("2 members have 1 names"), "{message}");
}

#[test]
fn what_is_no_file_is_rejected_where_a_file_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let manifest = folder.path().join("lib.toml");
    let out = folder.path().join("lib.bin");
    let (library, kernels) = (format!("{GRAPH}.so"), format!("{GRAPH}.kernels.so"));
    let pipe = pipe.to_str().unwrap();
    for endless in ["/dev/zero", pipe, "/dev"] {
        let text_of = format!(
            "layout = \"0.22\"\n[[modules]]\nkind = \"_lib\"\nimports = [1]\n[[modules]]\nkind = \"opencl\"\nfile = \"{endless}\"\n"
        );
        std::fs::write(&manifest, text_of).unwrap();
        let input = format!("x={endless}");
        let commands: [&[&str]; 5] = [
            &[
                "pack",
                manifest.to_str().unwrap(),
                "-o",
                out.to_str().unwrap(),
            ],
            &["run", &library, "--input", &input],
            &["run", &library, "--inputs", endless],
            &["run", "--graph", endless, "--lib", &kernels],
            &[
                "run",
                "--graph",
                "golden/graph/mlp.json",
                "--lib",
                &kernels,
                "--params",
                endless,
            ],
        ];
        for command in commands {
            let ran = tvmspec(command);
            let message = text(&ran.stderr);
            assert_eq!(ran.status.code(), Some(2), "{command:?}: {message}");
            assert!(
                message.contains("it is not a regular file"),
                "{command:?}: {message}"
            );
        }
        assert!(!out.exists());
    }
    // A pipe without an end is read only up to the size limit of a library.
    let ran = tvmspec(&["verify", "/dev/zero"]);
    assert_eq!(ran.status.code(), Some(2));
    assert!(
        text(&ran.stderr).contains("has no end within 256 MiB"),
        "{}",
        text(&ran.stderr)
    );
}

#[test]
fn an_array_that_cannot_be_read_is_named_with_its_reason() {
    let plain = header("<f4", "False", "(1, 16)");
    let other = |descr: &str, order: &str, shape: &str| header(descr, order, shape);
    let cases: [(Vec<u8>, &str); 11] = [
        // The header declares 4 GiB, but no memory is allocated for them.
        (
            array(2, &plain, Some(u32::MAX), &[0; 8]),
            "its header has 4294967295 bytes",
        ),
        (
            array(1, &plain, None, &[0; 7]),
            "it ends before its data does",
        ),
        (
            array(1, &plain, Some(200), &[]),
            "it ends inside its header",
        ),
        (array(9, &plain, None, &[0; 8]), "unsupported version"),
        (
            array(1, &other("|O", "False", "(2,)"), None, &[0; 8]),
            "pickled",
        ),
        (
            array(1, &other("<U4", "False", "(2,)"), None, &[0; 32]),
            "its type is `<U4`",
        ),
        (
            array(1, &other("<f4", "True", "(1, 2)"), None, &[0; 8]),
            "column-major",
        ),
        // 2^62 elements of four bytes: the product overflows 64 bits.
        (
            array(
                1,
                &other("<f4", "False", "(4611686018427387904,)"),
                None,
                &[],
            ),
            "no memory holds",
        ),
        (
            array(1, &other("<f4", "False", "(1000,)"), None, &[0; 4000]),
            "is float32 [1, 16], not float32 [1000]",
        ),
        // A recursive parser would exhaust the stack.
        (
            array(2, &other("<f4", "False", &"(".repeat(4000)), None, &[]),
            "an extent",
        ),
        (
            b"PK\x03\x04 and some more".to_vec(),
            "it is not an .npy array",
        ),
    ];
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.npy");
    let (library, input) = (format!("{GRAPH}.so"), format!("x={}", path.display()));
    for (bytes, reason) in cases {
        std::fs::write(&path, bytes).unwrap();
        let ran = tvmspec(&["run", &library, "--input", &input]);
        let message = text(&ran.stderr);
        assert_eq!(ran.status.code(), Some(2), "{reason}: {message}");
        assert!(message.contains(reason), "{reason}: {message}");
    }
    // Every version and byte order is accepted.
    for version in [1, 2, 3] {
        for descr in ["<f4", ">f4", "=f4"] {
            let header = other(descr, "False", "(1, 16)");
            std::fs::write(&path, array(version, &header, None, &[0; 64])).unwrap();
            let ran = tvmspec(&["run", &library, "--input", &input]);
            assert!(
                ran.status.success(),
                "{version} {descr}: {}",
                text(&ran.stderr)
            );
        }
    }
}
