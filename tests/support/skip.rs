//! Reports why a test did nothing.
//!
//! A test that lacks a requirement passes, and names the requirement. If everything was installed, this is a failure: with
//! `TVMSPEC_SKIPS=fail`, which the gate sets, only [`EXCUSED`] reasons are allowed.

use std::fmt::Display;

/// Requirements that no package provides: parts of reasons, and why they are excused.
const EXCUSED: [(&str, &str); 10] = [
    ("no address but its own", "a gate need not have a network"),
    ("no CUDA here", "a GPU cannot be installed"),
    ("HIP is here, but no device", "a GPU cannot be installed"),
    ("names no libtvm_runtime of", "no package has one any more"),
    (
        "names no Python with TVM 0.8",
        "no package has one any more",
    ),
    (
        "names no Python with TVM 0.19",
        "no package has a compiler of it any more",
    ),
    (
        "names no Python with TVM 0.21",
        "its package needs Python 3.10 and a package of LLVM",
    ),
    (
        "TVMSPEC_PYTHON_0_16 names no Python",
        "the one package of 0.16 is a vendor's, and needs libraries of its time",
    ),
    (
        "TVMSPEC_UPSTREAM names no folder",
        "the whole history of upstream is too much for a gate",
    ),
    (
        "`ld64.lld-14` is not installed",
        "Debian names it by the release of LLVM",
    ),
];

/// Reports that the test of this thread does nothing, and why.
#[track_caller]
pub(crate) fn skipped(why: impl Display) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    println!("{test}: skipped, because {why}");
    if std::env::var_os("TVMSPEC_SKIPS").is_none_or(|wish| wish != "fail") {
        return;
    }
    let why = why.to_string();
    let excused = EXCUSED.iter().any(|(part, _)| why.contains(part));
    assert!(excused, "{test} is skipped, because {why}");
}
