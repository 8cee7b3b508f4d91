//! Tests that `explain` is right. Single bits are flipped in libraries of every era. The result is compared with `verify`, which finds
//! faults, and with the loader of the real 0.27, which shows what loads.
//!
//! `TVMSPEC_FLIPS=1000 cargo test --test formats explain -- --nocapture` flips more bits, and prints the tables.
#![cfg(feature = "cli")]

mod element_types;
mod exports;
mod first_use;
mod forms;
mod opening;
mod real_runtimes;
mod registered_names;
mod regressions;
mod remedies;
mod upstream;
mod user_files;
mod verdicts;

use crate::support::skip::skipped;
use serde_json::Value;
use std::fs;
use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Returns the number of bits to flip.
fn flips(usual: usize) -> usize {
    match std::env::var("TVMSPEC_FLIPS") {
        Ok(count) => count.parse().expect("TVMSPEC_FLIPS is a number"),
        Err(_) => usual,
    }
}

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("golden")
        .join(name)
}

/// Runs the program and returns its JSON; `None` if it could not read the file at all.
fn ask(words: &[&str], file: &Path) -> Option<Value> {
    let output = Command::new(env!("CARGO_BIN_EXE_tvmspec"))
        .args(words)
        .arg(file)
        .output()
        .unwrap();
    let code = output.status.code();
    assert!(
        matches!(code, Some(0..=2)),
        "{words:?} of {} ends with {code:?}: {}",
        file.display(),
        String::from_utf8_lossy(&output.stderr)
    );
    (code != Some(2)).then(|| serde_json::from_slice(&output.stdout).unwrap())
}

/// Returns every outcome of `explain`, with its reason.
fn outcomes(explained: &Value) -> Vec<(String, String)> {
    let accounts = explained.as_array().unwrap();
    accounts
        .iter()
        .flat_map(|account| account["loads"].as_array().unwrap())
        .map(|load| {
            let text = |key: &str| load[key].as_str().unwrap().to_owned();
            (text("outcome"), text("why"))
        })
        .collect()
}

/// Returns bits spread over `bits`, always the same ones.
fn spread(bits: usize, count: usize) -> impl Iterator<Item = usize> {
    let mut state = 27_u64;
    (0..count).map(move |_| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % bits
    })
}

fn flipped(bytes: &[u8], bit: usize) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[bit / 8] ^= 1 << (bit % 8);
    bytes
}

/// A Python program that imports TVM once, and loads each library that a line names in a separate process.
const SERVER: &str = "
import os, resource, signal, sys
import tvm, tvm_ffi
print(tvm.__version__.split('.')[1], flush=True)
for line in sys.stdin:
    path = line.rstrip('\\n')
    child = os.fork()
    if child == 0:
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, 1)
        os.dup2(nothing, 2)
        resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.alarm(20)
        try:
            tvm_ffi.load_module(path)
        except BaseException:
            os._exit(1)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    print('loads' if status == 0 else 'rejects' if os.WIFEXITED(status) else 'dies', flush=True)
";

/// The wheel of `TVMSPEC_PYTHON`, as a process that loads libraries.
struct Wheel {
    process: Child,
    questions: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
    release: String,
}

impl Wheel {
    /// Starts the wheel. Without a wheel, prints a reason and returns `None`.
    fn start() -> Option<Wheel> {
        let named = std::env::var("TVMSPEC_PYTHON").unwrap_or_else(|_| "python3".into());
        if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
            skipped("the wheel's loader is asked on x86-64 Linux only");
            return None;
        }
        let mut process = match Command::new(&named)
            .args(["-c", SERVER])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
        {
            Ok(process) => process,
            Err(error) => {
                skipped(format_args!("`{named}` cannot be started: {error}"));
                return None;
            }
        };
        let mut answers = BufReader::new(process.stdout.take().unwrap()).lines();
        let Some(Ok(minor)) = answers.next() else {
            let _ = process.wait();
            skipped(format_args!(
                "`{named}` cannot import tvm and tvm_ffi; set TVMSPEC_PYTHON to a Python that can"
            ));
            return None;
        };
        Some(Wheel {
            questions: process.stdin.take().unwrap(),
            process,
            answers,
            release: format!("0.{minor}"),
        })
    }

    /// Returns the result of loading a library: `loads`, `rejects` or `dies`.
    fn ask(&mut self, path: &Path) -> String {
        writeln!(self.questions, "{}", path.display()).unwrap();
        self.answers.next().unwrap().unwrap()
    }

    fn stop(self) {
        let Wheel {
            mut process,
            questions,
            ..
        } = self;
        drop(questions);
        let _ = process.wait();
    }
}

/// Compiles `source` with the C compiler. Prints a message if no compiler is installed.
fn compile(source: &str, output: &Path, words: &[&str]) {
    let text = output.with_extension("c");
    fs::write(&text, source).unwrap();
    let status = Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .arg(output)
        .arg(&text)
        .args(words)
        .status()
        .unwrap();
    assert!(status.success(), "{}", output.display());
}

/// Runs `explain --release R` and returns its exit code and its output.
fn reply(release: &str, file: &Path) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_tvmspec"))
        .args(["explain", "--release", release])
        .arg(file)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let words: Vec<&str> = text.split_whitespace().collect();
    (output.status.code(), words.join(" "))
}
