//! Transcripts of the command line: every file in `tests/cli/` is one.
//!
//! A transcript holds one or more runs. `#` lines at its top describe its purpose.
//!
//! ```text
//! # Why this is worth a transcript.
//! RUN: tvmspec inspect golden/blob/host.so > $TMP/out
//! what stdout holds
//! ! what stderr holds
//! exit: 1
//! ```
//!
//! `< FILE` is stdin, `> FILE` keeps stdout, and `$TMP` is a separate folder for each transcript. Exit code 0 is not written. `RUN:
//! cat FILE` shows a file. `BLESS=1 cargo test --test suite cli` records the program's current output.
#![cfg(feature = "cli")]

mod output_format;
mod terminal;

use crate::support::schema;
use crate::support::skip;
use serde_json::Value;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

#[test]
fn transcripts_hold() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let bless = std::env::var_os("BLESS").is_some();
    let mut files: Vec<PathBuf> = fs::read_dir(root.join("tests/cli"))
        .expect("tests/cli is there")
        .map(|entry| entry.expect("a readable folder").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "txt"))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "no transcript in tests/cli");
    // The called libraries are code for x86-64 Linux.
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        println!(
            "skipped: call.txt and what explain says of this machine are for x86-64 Linux only"
        );
        files.retain(|file| {
            let name = file.file_name().and_then(|name| name.to_str());
            !name.is_some_and(|name| name.starts_with("call") || name.starts_with("explain"))
        });
    }
    let mut wrong = Vec::new();
    for file in &files {
        let expected = fs::read_to_string(file).expect("a readable transcript");
        let actual = replay(root, &expected);
        if actual == expected {
            continue;
        }
        if bless {
            fs::write(file, actual).expect("a writable transcript");
        } else {
            wrong.push(format!(
                "{}\n{}",
                file.display(),
                difference(&expected, &actual)
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {} transcripts differ (BLESS=1 rewrites them):\n\n{}",
        wrong.len(),
        files.len(),
        wrong.join("\n")
    );
}

/// Runs a transcript and returns it with the current output.
fn replay(root: &Path, transcript: &str) -> String {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folder = folder.path().to_str().expect("a path in UTF-8");
    let mut out = String::new();
    for line in transcript.lines() {
        if line.starts_with('#') && !out.contains("RUN:") {
            let _ = writeln!(out, "{line}");
        }
        if let Some(command) = line.strip_prefix("RUN: ") {
            let _ = writeln!(out, "{line}");
            out.push_str(&run(root, &command.replace("$TMP", folder)).replace(folder, "$TMP"));
        }
    }
    out
}

fn run(root: &Path, command: &str) -> String {
    let mut words = split(command).into_iter();
    let program = words.next().expect("a program after RUN:");
    let (mut arguments, mut stdin, mut stdout) = (Vec::new(), None, None);
    while let Some(word) = words.next() {
        match word.as_str() {
            "<" => stdin = words.next(),
            ">" => stdout = words.next(),
            _ => arguments.push(word),
        }
    }
    if program == "cat" {
        let text = fs::read_to_string(&arguments[0]).expect("a file to show");
        return lines("", &text);
    }
    assert_eq!(program, "tvmspec", "RUN: knows tvmspec and cat");
    let stdin = match stdin {
        Some(path) => Stdio::from(fs::File::open(root.join(path)).expect("a file for stdin")),
        None => Stdio::null(),
    };
    let output = Command::new(env!("CARGO_BIN_EXE_tvmspec"))
        .args(&arguments)
        .current_dir(root)
        .env("COLUMNS", "100")
        .env("NO_COLOR", "1")
        .stdin(stdin)
        .output()
        .expect("tvmspec runs");
    let mut shown = String::new();
    match stdout {
        Some(path) => fs::write(path, &output.stdout).expect("a writable file for stdout"),
        None => shown.push_str(&lines("", &String::from_utf8_lossy(&output.stdout))),
    }
    shown.push_str(&lines("! ", &String::from_utf8_lossy(&output.stderr)));
    match output.status.code() {
        Some(0) => {}
        Some(code) => {
            let _ = writeln!(shown, "exit: {code}");
        }
        None => shown.push_str("exit: by a signal\n"),
    }
    shown
}

/// Prefixes every line and removes trailing blanks, because editors remove them too.
fn lines(prefix: &str, text: &str) -> String {
    text.lines()
        .map(|line| format!("{}\n", format!("{prefix}{line}").trim_end()))
        .collect()
}

/// Splits a command into words at blanks. Single quotes keep blanks together.
fn split(command: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (index, part) in command.split('\'').enumerate() {
        if index % 2 == 1 {
            words.push(part.to_owned());
        } else {
            words.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    words
}

/// Shows the first lines that differ, expected before actual.
fn difference(expected: &str, actual: &str) -> String {
    let (expected, actual): (Vec<_>, Vec<_>) =
        (expected.lines().collect(), actual.lines().collect());
    let first = expected
        .iter()
        .zip(&actual)
        .position(|(expected, actual)| expected != actual)
        .unwrap_or(expected.len().min(actual.len()));
    let mut out = format!("  from line {}:\n", first + 1);
    for (sign, lines) in [('-', &expected), ('+', &actual)] {
        for line in lines.iter().skip(first).take(8) {
            let _ = writeln!(out, "  {sign} {line}");
        }
    }
    out
}

#[test]
fn inspect_keeps_to_its_schema() {
    let schema = schema::schema(include_str!("../../spec/schema/inspect.json"));
    let files = [
        "blob/containers/tree3-0.8.so",
        "blob/containers/system_lib-0.8.tar",
        "blob/containers/c_opencl-0.6.devc.c",
        "blob/containers/relax_vm-0.27.so",
        "blob/containers/elf-cut.o",
        "blob/graph-factory.bin",
        "blob/const-loader-c.bin",
        "blob/relay-vm.bin",
        "blob/unknown-kind-0.8.bin",
        "tensor/all_dtypes-0.8.params",
        "object/0.8/irmodule-relay.json",
        "object/array-beyond.json",
        "object/map.json",
    ];
    for file in files {
        let output = Command::new(env!("CARGO_BIN_EXE_tvmspec"))
            .args(["inspect", "--json"])
            .arg(
                Path::new(env!("CARGO_MANIFEST_DIR"))
                    .join("golden")
                    .join(file),
            )
            .output()
            .unwrap();
        let report: Value = serde_json::from_slice(&output.stdout).expect(file);
        schema::conforms(&schema, &report, file);
    }
}

/// Creates an object file that defines one function and needs another.
fn object_file(function: &str, needs: &str) -> Vec<u8> {
    use object::write::{Object, Symbol, SymbolSection};
    use object::{Architecture, BinaryFormat, Endianness, SymbolFlags, SymbolKind, SymbolScope};
    let mut file = Object::new(BinaryFormat::Elf, Architecture::X86_64, Endianness::Little);
    let text = file.section_id(object::write::StandardSection::Text);
    file.append_section_data(text, &[0xc3], 1);
    for (name, section) in [
        (function, SymbolSection::Section(text)),
        (needs, SymbolSection::Undefined),
    ] {
        file.add_symbol(Symbol {
            name: name.into(),
            value: 0,
            size: 0,
            kind: SymbolKind::Text,
            scope: SymbolScope::Dynamic,
            weak: false,
            section,
            flags: SymbolFlags::None,
        });
    }
    file.write().unwrap()
}

/// A function alone does not identify a TVM library, because every program has functions.
#[test]
fn a_program_is_not_taken_for_a_library() {
    let folder = tempfile::tempdir().unwrap();
    for (needs, inspected, explained) in [
        ("malloc", "holds no TVM library", "It holds no TVM library"),
        (
            "TVMAPISetLastError",
            "era        tvm 0.2 to 0.20",
            "tvm 0.2 to 0.20  loads it",
        ),
    ] {
        let path = folder.path().join(needs);
        std::fs::write(&path, object_file("start_engine", needs)).unwrap();
        for (command, wanted) in [("inspect", inspected), ("explain", explained)] {
            let mut program = std::process::Command::new(env!("CARGO_BIN_EXE_tvmspec"));
            let output = program.arg(command).arg(&path).output().unwrap();
            let reply = String::from_utf8(output.stdout).unwrap();
            assert!(reply.contains(wanted), "{command}: {reply}");
        }
    }
}

/// A function that never returns is called in a separate process. A signal to the first process does not reach it.
#[test]
#[cfg(target_os = "linux")]
fn a_call_ends_with_the_command() {
    use std::time::{Duration, Instant};
    let folder = tempfile::tempdir().expect("a folder");
    let (source, library) = (folder.path().join("a.c"), folder.path().join("a.so"));
    let code = "int pause(void);\nint __tvm_ffi_wait(void* s, const void* a, int n, void* r) { for (;;) pause(); }\n";
    fs::write(&source, code).expect("written");
    let compiler = Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .args([&library, &source])
        .status();
    if !compiler.is_ok_and(|status| status.success()) {
        return skip::skipped("`cc` compiles nothing here");
    }
    let mut outer = Command::new(env!("CARGO_BIN_EXE_tvmspec"))
        .arg("call")
        .arg(&library)
        .arg("wait")
        .spawn()
        .expect("a process");
    let children = format!("/proc/{0}/task/{0}/children", outer.id());
    // The process has loaded the library once it is mapped.
    let calls = || -> Option<PathBuf> {
        let inner = fs::read_to_string(&children).ok()?;
        let inner = Path::new("/proc").join(inner.split_whitespace().next()?);
        let maps = fs::read_to_string(inner.join("maps")).ok()?;
        maps.contains(library.to_str()?).then_some(inner)
    };
    let until = Instant::now() + Duration::from_secs(60);
    let inner = loop {
        if let Some(inner) = calls() {
            break inner;
        }
        assert!(Instant::now() < until, "it calls nothing");
        std::thread::yield_now();
    };
    let pid = rustix::process::Pid::from_child(&outer);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("a signal");
    outer.wait().expect("an end");
    let runs = || {
        let stat = fs::read_to_string(inner.join("stat"));
        stat.is_ok_and(|stat| !stat.contains(") Z "))
    };
    while runs() {
        assert!(Instant::now() < until, "{} runs on", inner.display());
        std::thread::yield_now();
    }
}
