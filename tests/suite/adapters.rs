//! The adapters to foreign runtimes: `ffi:` and `legacy:`.
//!
//! Our own library exports both interfaces and is judged through them. The released tvm-ffi is judged if the Python in
//! `TVMSPEC_PYTHON` has it.
#![cfg(feature = "cli")]

use crate::support::cargo;
use crate::support::skip::skipped;
use crate::support::test_scale::is_thorough;
use std::path::PathBuf;
use std::process::Command;
use tvmspec::conformance::adapter::exec::Exec;
use tvmspec::conformance::adapter::{Adapter, Limits};
use tvmspec::conformance::case::Suite;
use tvmspec::conformance::known_failures::KnownFailures;
use tvmspec::conformance::runner::{Report, Run, run};

/// Runs the suite against `tvmspec worker SPEC`.
fn judged(spec: &str, cases: &[&str], known: KnownFailures) -> Report<'static> {
    let words = [env!("CARGO_BIN_EXE_tvmspec"), "worker", spec];
    let words = words.map(Into::into).to_vec();
    let mut order = Run::default();
    order.selection.cases = cases.iter().map(|case| (*case).to_owned()).collect();
    order.known = known;
    // Memory: released loaders allocate a vector with the number of dimensions that a file declares. Time: without optimization,
    // our own library needs longer than the default for a chain of 16,384 modules.
    let mut limits = Limits::default();
    limits.memory = Some(8192);
    limits.timeout = std::time::Duration::from_secs(120);
    run(
        Suite::expect_ours(),
        &mut Exec::worker(words, limits),
        &order,
    )
    .unwrap()
}

#[test]
fn a_request_is_alone_until_the_second_after_a_start() {
    let words = [env!("CARGO_BIN_EXE_tvmspec"), "worker", "builtin"];
    let mut testee = Exec::worker(words.map(Into::into).to_vec(), Limits::default());
    testee.hello(&Suite::expect_ours().hash).unwrap();
    let ask = |testee: &mut Exec| {
        testee.call("wire.decode", &serde_json::Value::Null);
        testee.was_alone()
    };
    assert_eq!([ask(&mut testee), ask(&mut testee)], [true, false]);
    testee.restart();
    assert_eq!([ask(&mut testee), ask(&mut testee)], [true, false]);
}

/// Builds a library of our own C interface, if cargo can build it.
fn own_library() -> Option<PathBuf> {
    cargo::c_library().map_err(skipped).ok()
}

fn failures(report: &Report<'_>) -> Vec<String> {
    let failures = report.failures();
    failures
        .map(|outcome| format!("{}: {}", outcome.case.id, outcome.verdict.reason()))
        .chain(report.problems.iter().cloned())
        .collect()
}

#[test]
fn our_library_passes_as_a_runtime_of_today() {
    let Some(library) = own_library() else { return };
    let cases = [
        "blob/*",
        "import_tree/*",
        "value/*",
        "function/*",
        "object/*",
        "module/*",
        "tensor/dtype*",
        "vm/*",
    ];
    let spec = format!("ffi:{}", library.display());
    let report = judged(&spec, &cases, KnownFailures::default());
    assert_eq!(failures(&report), Vec::<String>::new());
    let passed = |chapter: &str| {
        let own = report
            .results
            .iter()
            .filter(|one| one.case.id.starts_with(chapter));
        own.filter(|one| one.verdict.name() == "pass").count()
    };
    for (chapter, least) in [
        ("value/", 65),
        ("function/", 20),
        ("object/", 220),
        ("module/", 35),
        ("vm/", 80),
    ] {
        assert!(passed(chapter) >= least, "{chapter}: {}", passed(chapter));
    }
}

#[test]
fn our_library_passes_as_a_runtime_of_0_20() {
    let Some(library) = own_library() else { return };
    let spec = format!("legacy:{}", library.display());
    let report = judged(&spec, &[], KnownFailures::default());
    assert_eq!(failures(&report), Vec::<String>::new());
    // One case for each kind of request: loads and rejections, lookups, echoes, callbacks, and the registry.
    for (case, asked) in [
        ("blob/opencl-root", "pass"),
        ("import_tree/diamond", "pass"),
        ("import_tree/mutual-import", "pass"),
        ("module/find/depth-first", "pass"),
        ("module/import/three", "pass"),
        ("value/legacy/null-with-rubbish", "pass"),
        ("value/legacy/object", "unsupported"),
        ("function/legacy/own-function", "pass"),
        ("function/legacy/failure", "pass"),
        ("graph/script/run", "pass"),
        ("graph/script/factory-debug", "pass"),
        // The library has no mark of a release, so it stands for all releases, and these differ here.
        ("tensor/print-bool-0.8", "unsupported"),
    ] {
        assert_eq!(verdict(&report, case), asked, "{case}");
    }
    assert!(report.totals().count("pass") > 150, "{:?}", report.totals());
}

/// No release shows the same functions as our library, so only the user's option determines the release.
#[test]
fn our_library_is_of_the_release_that_the_user_says() {
    let Some(library) = own_library() else { return };
    let cases = ["tensor/print-*", "graph/script/in-place*"];
    let release = |spec: &str| judged(spec, &cases, KnownFailures::default());
    let all = release(&format!("legacy:{}", library.display()));
    assert_eq!(all.identity.releases.len(), 13);
    assert!(
        all.identity.version.contains("@RELEASE"),
        "{}",
        all.identity.version
    );
    assert_eq!(verdict(&all, "tensor/print-bool-0.8"), "unsupported");
    assert_eq!(verdict(&all, "graph/script/in-place-through-nop"), "pass");
    let one = release(&format!("legacy:{}@0.8", library.display()));
    assert_eq!(one.identity.releases, ["0.8"]);
    assert_eq!(one.identity.version, "C interface of 0.8");
    assert_eq!(verdict(&one, "tensor/print-bool-0.8"), "pass");
    assert_eq!(
        verdict(&one, "graph/script/in-place-through-nop"),
        "skipped"
    );
    let late = release(&format!("legacy:{}@0.14", library.display()));
    assert_eq!(verdict(&late, "tensor/print-bool-0.8"), "skipped");
    assert_eq!(verdict(&late, "graph/script/in-place-through-nop"), "pass");
}

/// Returns the verdict of one case.
fn verdict(report: &Report<'_>, case: &str) -> &'static str {
    let mut outcomes = report.results.iter();
    let outcome = outcomes.find(|outcome| outcome.case.id == case);
    outcome.map_or("not asked", |outcome| outcome.verdict.name())
}

/// Returns the runtime of `release` from the folder that `conformance/suites/legacy-runtimes.sh` fills. No package contains one any
/// more.
fn legacy_runtime(release: &str) -> Option<String> {
    let folder = std::env::var_os("TVMSPEC_LEGACY").map(PathBuf::from);
    let library = folder.map(|folder| folder.join(release).join("libtvm_runtime.so"));
    let library = library.filter(|library| library.is_file());
    if library.is_none() {
        skipped(format_args!(
            "TVMSPEC_LEGACY names no libtvm_runtime of {release}"
        ));
    }
    Some(library?.display().to_string())
}

/// Each release with the minimum number of cases that it passes.
const LEGACY: [(&str, usize); 14] = [
    ("0.7", 80),
    ("0.8", 190),
    ("0.9", 190),
    ("0.10", 190),
    ("0.11", 190),
    ("0.12", 190),
    ("0.13", 190),
    ("0.14", 190),
    ("0.15", 190),
    ("0.16", 190),
    ("0.17", 190),
    ("0.18", 190),
    ("0.19", 190),
    ("0.20", 150),
];

#[test]
fn released_runtimes_of_old_fail_only_where_they_are_known_to() {
    let known = include_str!("../../conformance/known/apache-tvm-0.7-0.20.toml");
    for (release, passes) in LEGACY {
        let Some(library) = legacy_runtime(release) else {
            continue;
        };
        let spec = format!("legacy:{library}@{release}");
        let report = judged(&spec, &[], KnownFailures::parse(known).unwrap());
        assert_eq!(report.identity.releases, [release]);
        assert_eq!(failures(&report), Vec::<String>::new(), "{release}");
        let passed = report.totals().count("pass");
        assert!(passed >= passes, "{release}: {:?}", report.totals());
    }
}

#[test]
fn released_runtimes_of_old_show_which_release_they_are() {
    for (index, (release, _)) in LEGACY.iter().enumerate() {
        let Some(library) = legacy_runtime(release) else {
            continue;
        };
        let hello = |spec: &str| {
            let words = [env!("CARGO_BIN_EXE_tvmspec"), "worker", spec];
            let mut worker = Exec::worker(words.map(Into::into).to_vec(), Limits::default());
            worker.hello("")
        };
        let shown = hello(&format!("legacy:{library}")).unwrap();
        assert_eq!(shown.releases, [*release]);
        for (other, _) in LEGACY
            .iter()
            .skip(index.saturating_sub(1))
            .step_by(2)
            .take(2)
        {
            if other == release {
                continue;
            }
            let error = hello(&format!("legacy:{library}@{other}")).unwrap_err();
            assert!(
                error.contains(&format!("it is not of {other}: it ")),
                "{error}"
            );
        }
    }
}

/// Returns the libraries of the released wheel: tvm-ffi, and the runtime if the wheel has it.
fn wheel() -> Option<String> {
    let Some(python) = std::env::var_os("TVMSPEC_PYTHON") else {
        skipped("TVMSPEC_PYTHON names no Python with apache-tvm-ffi");
        return None;
    };
    let script = "import importlib.util as u, pathlib\n\
        for package, library in (('tvm_ffi', 'libtvm_ffi'), ('tvm', 'libtvm_runtime'), ('tvm_ffi', 'libtvm_ffi_testing')):\n\
        \x20   spec = u.find_spec(package)\n\
        \x20   found = sorted(pathlib.Path(spec.origin).parent.glob(f'lib/{library}.*')) if spec else []\n\
        \x20   if found: print(found[0])";
    let reply = Command::new(&python).args(["-c", script]).output();
    let reply = reply.map(|reply| String::from_utf8_lossy(&reply.stdout).into_owned());
    let libraries: Vec<String> = reply
        .unwrap_or_default()
        .lines()
        .map(str::to_owned)
        .collect();
    if !libraries
        .first()
        .is_some_and(|first| first.contains("libtvm_ffi"))
    {
        skipped(format_args!("{} has no tvm_ffi", python.to_string_lossy()));
        return None;
    }
    Some(libraries.join(","))
}

#[test]
fn the_released_runtime_fails_only_where_it_is_known_to() {
    let Some(libraries) = wheel() else { return };
    if !libraries.contains("libtvm_runtime") {
        skipped("the known failures are those of tvm-ffi with libtvm_runtime");
        return;
    }
    // The gate runs the complete suite on it, in a release build.
    let few = ["value/*", "function/*", "module/*"];
    let cases = if is_thorough() { &[][..] } else { &few[..] };
    let known = include_str!("../../conformance/known/apache-tvm-ffi-0.1.toml");
    let report = judged(
        &format!("ffi:{libraries}"),
        cases,
        KnownFailures::parse(known).unwrap(),
    );
    assert_eq!(failures(&report), Vec::<String>::new());
    assert!(report.totals().count("pass") > 400, "{:?}", report.totals());
}

/// A crash counts against the case that caused it. The next case gets a new process.
#[test]
fn a_crash_costs_one_case() {
    let Some(libraries) = wheel() else { return };
    let cases = [
        "import_tree/indptr-of-one",
        "import_tree/diamond",
        "import_tree/two-imports",
    ];
    let report = judged(
        &format!("ffi:{libraries}"),
        &cases,
        KnownFailures::default(),
    );
    assert_eq!(report.totals().count("crash"), 1);
    assert_eq!(report.totals().count("pass"), 2);
}

#[test]
fn what_cannot_be_judged_has_a_plain_error() {
    let check = |spec: &str| {
        let reply = Command::new(env!("CARGO_BIN_EXE_tvmspec"))
            .args(["check", "--impl", spec])
            .output()
            .unwrap();
        assert_eq!(reply.status.code(), Some(2), "{spec}");
        String::from_utf8_lossy(&reply.stderr).into_owned()
    };
    assert!(check("ffi:").contains("needs the path of a library"));
    assert!(check("legacy:/no/such/libtvm_runtime.so").contains("there is no library at"));
    assert!(check("legacy:libtvm_runtime.so@0.21").contains("there are 0.7 to 0.20"));
    assert!(check("legacy:libtvm_runtime.so@").contains("is not a release with this interface"));
    assert!(check("ffi:libtvm_ffi_that_is_not_there.so").contains("cannot load"));
    if cfg!(all(target_os = "linux", target_env = "gnu")) {
        assert!(check("ffi:libm.so.6").contains("is not a tvm-ffi library"));
        assert!(check("legacy:libm.so.6").contains("is not a TVM runtime of 0.20 or before"));
    }
}
