//! What `run` and `pack` take besides a model: which of two inputs counts, and what is no file.
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

/// An array of zeros.
fn zeros(folder: &Path, name: &str, shape: &str, count: usize) -> PathBuf {
    let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({shape}), }}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend(u16::try_from(header.len()).unwrap().to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(vec![0; 4 * count]);
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

/// Two members of one name: the readers of zip show one of them.
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
    // A pipe without an end is read no further than any library is long.
    let ran = tvmspec(&["verify", "/dev/zero"]);
    assert_eq!(ran.status.code(), Some(2));
    assert!(
        text(&ran.stderr).contains("has no end within 256 MiB"),
        "{}",
        text(&ran.stderr)
    );
}
