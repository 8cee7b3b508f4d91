//! Outputs are complete or absent, if the disk is full and if several processes write the same output.

use super::{command_after, content, succeed, tvmspec};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tvmspec::conformance::adapter::family::is_ignored;

/// A limit of 2 KiB for each file. Writing beyond it is an error and not a signal.
const FULL: &str = "trap '' XFSZ; ulimit -f 4; ";

const SMALL: &str = "golden/blob/opencl-0.6.bin";
const LARGE: &str = "golden/blob/containers/tree3-0.8.so";

/// Runs `command` for the small and then, without space, for the large input, both with `OUT` for the output.
fn keeps_the_older(small: &[&str], large: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let args = |words: &[&str]| -> Vec<String> {
        let out = out.display().to_string();
        words.iter().map(|word| word.replace("OUT", &out)).collect()
    };
    succeed(tvmspec().args(args(small)));
    let older = content(folder.path());
    assert!(!older.is_empty(), "{small:?}");
    let full = command_after(FULL).args(args(large)).output().unwrap();
    let message = String::from_utf8_lossy(&full.stderr);
    assert_eq!(full.status.code(), Some(2), "{large:?}: {message}");
    assert!(message.contains("error: "), "{large:?}: {message}");
    assert!(content(folder.path()) == older, "{large:?}");
    // A failed command does not create a missing file.
    let empty = tempfile::tempdir().unwrap();
    let new = empty.path().join("new/out").display().to_string();
    std::fs::create_dir(empty.path().join("new")).unwrap();
    let words = large.iter().map(|word| word.replace("OUT", &new));
    let full = command_after(FULL).args(words).output().unwrap();
    assert_eq!(full.status.code(), Some(2), "{large:?}");
    let left = std::fs::read_dir(empty.path().join("new")).unwrap().count();
    assert_eq!(left, 0, "{large:?}");
}

#[test]
fn a_full_disk_leaves_the_older_output() {
    keeps_the_older(
        &["unpack", SMALL, "-o", "OUT"],
        &["unpack", "--force", "--whole", LARGE, "-o", "OUT"],
    );
    keeps_the_older(
        &["inspect", SMALL, "--html", "OUT"],
        &["inspect", LARGE, "--html", "OUT"],
    );
    keeps_the_older(
        &["convert", SMALL, "-o", "OUT.c"],
        &["convert", LARGE, "-o", "OUT.c"],
    );
    keeps_the_older(
        &["convert", SMALL, "-o", "OUT.so"],
        &["convert", LARGE, "-o", "OUT.so"],
    );
    keeps_the_older(
        &["check", "--list", "--case", "wire/*", "-o", "OUT"],
        &["check", "--list", "-o", "OUT"],
    );
    let models = "golden/graph/models/v0.8";
    let (mlp, chain) = (format!("{models}/mlp.so"), format!("{models}/chain1000.so"));
    keeps_the_older(
        &["run", &mlp, "--dump", "OUT"],
        &["run", &chain, "--dump", "OUT"],
    );
    keeps_the_older(
        &["run", &mlp, "-o", "OUT"],
        &["run", &chain, "--profile", "--trace", "OUT"],
    );
}

#[test]
fn concurrent_writers_leave_one_complete_file() {
    let folder = tempfile::tempdir().unwrap();
    let reference = |input: &str, name: &str| {
        let out = folder.path().join(name);
        succeed(tvmspec().args(["unpack", input, "-o"]).arg(&out));
        content(&out)
    };
    let wanted = [reference(SMALL, "small"), reference(LARGE, "large")];
    for round in 0..3 {
        let out = folder.path().join(format!("out{round}"));
        let file = folder.path().join(format!("{round}.bin"));
        let start = |index: usize| {
            let input = if index.is_multiple_of(2) {
                SMALL
            } else {
                LARGE
            };
            let mut unpack = tvmspec();
            unpack.args(["unpack", "--force", input, "-o"]).arg(&out);
            let mut convert = tvmspec();
            convert.args(["convert", input, "-o"]).arg(&file);
            [unpack, convert].map(|mut command| command.stderr(Stdio::piped()).spawn().unwrap())
        };
        let running: Vec<_> = (0..12).flat_map(start).collect();
        for child in running {
            let ended = child.wait_with_output().unwrap();
            let message = String::from_utf8_lossy(&ended.stderr);
            assert!(ended.status.success(), "round {round}: {message}");
        }
        assert!(
            wanted.contains(&content(&out)),
            "round {round}: {:?}",
            content(&out).keys()
        );
        let either = [SMALL, LARGE].map(|input| {
            let output = succeed(tvmspec().args(["convert", input, "-o", "-"]));
            output.stdout
        });
        assert!(
            either.contains(&std::fs::read(&file).unwrap()),
            "round {round}"
        );
    }
}

/// Waits for `is_so`, at most ten seconds.
fn await_that(what: &str, is_so: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(10);
    while !is_so() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_signal_ends_the_compiler_and_leaves_nothing() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let (compiler, numbers) = (folder.path().join("cc"), folder.path().join("numbers"));
    // Two processes: the compiler and one that it waits for.
    let script = format!(
        "#!/bin/sh\nsleep 60 &\necho $$ $! > {0}.new\nmv {0}.new {0}\nwait\n",
        numbers.display()
    );
    std::fs::write(&compiler, script).unwrap();
    std::fs::set_permissions(&compiler, PermissionsExt::from_mode(0o755)).unwrap();
    // A signal that this process ignores stays ignored, such as SIGINT of a job in the background.
    for signal in [1, 2, 15].into_iter().filter(|signal| !is_ignored(*signal)) {
        let out = folder.path().join("out");
        std::fs::create_dir(&out).unwrap();
        let mut command = tvmspec();
        command
            .args(["convert", LARGE, "--cc"])
            .arg(&compiler)
            .arg("-o")
            .arg(out.join("x.so"));
        let mut child = command.stderr(Stdio::null()).spawn().unwrap();
        await_that("the compiler starts", || numbers.exists());
        let number = child.id().to_string();
        succeed(Command::new("kill").args([&format!("-{signal}"), &number]));
        let status = child.wait().unwrap();
        assert_eq!(status.signal(), Some(signal), "{status}");
        assert_eq!(std::fs::read_dir(&out).unwrap().count(), 0);
        for number in std::fs::read_to_string(&numbers)
            .unwrap()
            .split_whitespace()
        {
            let process = Path::new("/proc").join(number);
            await_that("the compiler ends", || !process.exists());
        }
        std::fs::remove_file(&numbers).unwrap();
        std::fs::remove_dir(&out).unwrap();
    }
}
