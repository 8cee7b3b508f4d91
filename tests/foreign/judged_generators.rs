//! Code generators of real releases, judged by `check --impl` with their compiler. Each gets the cases for a host or for a device,
//! as appropriate. conformance/known/generators.toml lists their deviations, conformance/reports/generators.md the verdicts.
//!
//! `TVMSPEC_PYTHON` is a Python with apache-tvm 0.27. `TVMSPEC_PYTHON_0_16` is one with the package `hhb-tvm` 3.2.3, which is
//! 0.16.dev0. `BLESS=1 cargo test --test foreign judged_generators` writes the rows of the available ones.
#![cfg(all(feature = "cli", target_os = "linux", target_env = "gnu"))]

use crate::support::skip::skipped;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// Package with a compiler.
struct Package {
    release: &'static str,
    /// Environment variable with its Python.
    python: &'static str,
    scheme: &'static str,
    /// Paths of the libraries in the packages `tvm` and `tvm_ffi`, in load order.
    libraries: &'static [&'static str],
    /// Suffix after the libraries in the name of the implementation.
    behind: &'static str,
    /// Targets whose generators are judged.
    targets: &'static [&'static str],
}

const WHEEL: Package = Package {
    release: "0.27",
    python: "TVMSPEC_PYTHON",
    scheme: "ffi",
    libraries: &[
        "tvm_ffi/lib/libtvm_ffi.so",
        "tvm/lib/libtvm_runtime.so",
        "tvm/lib/libtvm_compiler.so",
    ],
    behind: "",
    targets: &[
        "c",
        "cuda_host",
        "llvm",
        "opencl",
        "metal",
        "webgpu",
        "nvptx",
    ],
};

const HHB: Package = Package {
    release: "0.16",
    python: "TVMSPEC_PYTHON_0_16",
    scheme: "legacy",
    libraries: &["tvm/libtvm.so"],
    behind: "@0.16",
    targets: &[
        "c",
        // Its LLVM is for RISC-V, and assumes a RISC-V host if the target does not state one.
        "llvm -mtriple=x86_64-unknown-linux-gnu",
        "stackvm",
        "opencl",
        "metal",
        "webgpu",
    ],
};

const REPORT: &str = "conformance/reports/generators.md";
const KNOWN: &str = "conformance/known/generators.toml";

/// Verdicts that count as failures in the table.
const BAD: [&str; 5] = ["fail", "crash", "hang", "out-of-memory", "protocol-error"];

/// Results of `check` for a generator, without the cases for the other side, host or device.
struct Judged {
    target: &'static str,
    results: Vec<Value>,
    /// Failures that the list of known failures does not contain.
    wrong: Vec<String>,
}

#[test]
fn the_generators_of_the_wheel_keep_the_contract() {
    judge(&WHEEL);
}

#[test]
fn the_generators_of_0_16_dev0_keep_the_contract() {
    judge(&HHB);
}

fn judge(package: &Package) {
    let Some(libraries) = libraries(package) else {
        return skipped(format!(
            "{} names no Python with TVM {}",
            package.python, package.release
        ));
    };
    let judged = package
        .targets
        .iter()
        .map(|target| check(package, &libraries, target));
    let judged: Vec<Judged> = judged.collect();
    for generator in &judged {
        for result in &generator.results {
            println!(
                "{} {} {}: {} {}",
                package.release,
                generator.target,
                result["case"].as_str().expect("an id"),
                result["verdict"].as_str().expect("a verdict"),
                reason(result)
            );
        }
    }
    let wrong: Vec<&String> = judged.iter().flat_map(|one| &one.wrong).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    hold(package.release, &section(package, &judged));
}

/// Returns the paths of the libraries, separated by commas, as `--impl` expects them.
fn libraries(package: &Package) -> Option<String> {
    let python = env::var_os(package.python)?;
    let find = "import importlib.util as u, pathlib, sys\n\
        for name in sys.argv[1:]:\n\
        \x20   package, _, rest = name.partition('/')\n\
        \x20   print(pathlib.Path(u.find_spec(package).origin).parent / rest)";
    let ran = Command::new(python)
        .args(["-c", find])
        .args(package.libraries)
        .output()
        .expect("Python runs");
    assert!(ran.status.success(), "{ran:?}");
    let text = String::from_utf8(ran.stdout).expect("paths");
    Some(text.lines().collect::<Vec<_>>().join(","))
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn check(package: &Package, libraries: &str, target: &'static str) -> Judged {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("report.json");
    let spec = format!("{}:{libraries}{}#{target}", package.scheme, package.behind);
    let ran = Command::new(env!("CARGO_BIN_EXE_tvmspec"))
        .args(["check", "--impl", &spec, "--case", "target/generate/*"])
        .args(["--release", package.release, "--timeout", "20"])
        .args(["--memory", "8192", "--max-crashes", "0", "--report", "json"])
        .arg("--known")
        .arg(root().join(KNOWN))
        .arg("-o")
        .arg(&out)
        .output()
        .expect("check runs");
    let errors = String::from_utf8_lossy(&ran.stderr);
    let report = fs::read_to_string(&out).unwrap_or_else(|error| panic!("{error}: {errors}"));
    let report: Value = serde_json::from_str(&report).expect("JSON");
    let all = report["results"].as_array().expect("results");
    let is_there = |result: &&Value| {
        let why = result["reason"].as_str().unwrap_or_default();
        !why.ends_with("` is for hosts") && !why.ends_with("` is for devices")
    };
    let unsorted = all.iter().filter(|result| {
        BAD.contains(&result["verdict"].as_str().unwrap_or_default()) && result["known"].is_null()
    });
    let unsorted = unsorted.map(|result| {
        format!(
            "{target} {}: {} {}",
            result["case"],
            result["verdict"],
            reason(result)
        )
    });
    let problems = report["problems"].as_array().expect("problems");
    let problems = problems
        .iter()
        .map(|problem| format!("{target}: {problem}"));
    Judged {
        target,
        wrong: unsorted.chain(problems).collect(),
        results: all.iter().filter(is_there).cloned().collect(),
    }
}

/// Returns the reason of a result. For a known failure, this is the reason in the list.
fn reason(result: &Value) -> &str {
    let known = result["known"]["reason"].as_str();
    known.or(result["reason"].as_str()).unwrap_or_default()
}

/// Formats the table of a package, with the reasons below it.
fn section(package: &Package, judged: &[Judged]) -> String {
    let rules: BTreeSet<&str> = judged
        .iter()
        .flat_map(|one| &one.results)
        .flat_map(rules_of)
        .collect();
    let names: Vec<&str> = rules.iter().copied().collect();
    let mut text = format!("| {} | {} | cases |\n", package.release, names.join(" | "));
    let _ = writeln!(text, "|---|{}---|", "---|".repeat(names.len()));
    let mut reasons: BTreeMap<(&str, &str, &str), usize> = BTreeMap::new();
    for one in judged {
        let kind = one.target.split(' ').next().unwrap_or_default();
        let cell = |rule: Option<&str>| {
            let named =
                |result: &&Value| rule.is_none_or(|rule| rules_of(result).any(|id| id == rule));
            let of = |verdict: fn(&str) -> bool| {
                let results = one.results.iter().filter(named);
                let verdicts = results.filter_map(|result| result["verdict"].as_str());
                verdicts.filter(|name| verdict(name)).count()
            };
            let pass = of(|name| name == "pass");
            let fail = of(|name| BAD.contains(&name));
            let rest = of(|name| name != "pass" && !BAD.contains(&name));
            format!("{pass} / {fail} / {rest}")
        };
        let cells: Vec<String> = names.iter().map(|rule| cell(Some(rule))).collect();
        let _ = writeln!(
            text,
            "| `{kind}` | {} | {} |",
            cells.join(" | "),
            cell(None)
        );
        for result in one
            .results
            .iter()
            .filter(|result| result["verdict"] != "pass")
        {
            let verdict = match result["verdict"].as_str().unwrap_or_default() {
                // Which of the two comes first depends on the machine.
                "hang" | "out-of-memory" => "hang or out-of-memory",
                other => other,
            };
            *reasons.entry((kind, verdict, reason(result))).or_default() += 1;
        }
    }
    text.push('\n');
    for ((kind, verdict, why), count) in reasons {
        let why: String = why
            .lines()
            .next()
            .unwrap_or_default()
            .chars()
            .take(300)
            .collect();
        let cases = if count == 1 { "case" } else { "cases" };
        let _ = writeln!(text, "* `{kind}`, {count} {cases}, {verdict}: {why}");
    }
    text
}

fn rules_of(result: &Value) -> impl Iterator<Item = &str> {
    let rules = result["rules"].as_array().into_iter().flatten();
    rules.filter_map(Value::as_str)
}

/// Compares the section of a release with the report.
fn hold(release: &str, text: &str) {
    let path: PathBuf = root().join(REPORT);
    let page = fs::read_to_string(&path).expect("the report");
    let (begin, end) = (
        format!("<!-- {release} -->\n"),
        format!("<!-- end of {release} -->\n"),
    );
    let (before, rest) = page.split_once(&begin).expect("the section");
    let (there, behind) = rest.split_once(&end).expect("the end of the section");
    if env::var_os("BLESS").is_some() {
        fs::write(&path, [before, &begin, text, &end, behind].concat()).expect("the report");
        return;
    }
    assert!(
        there == text,
        "{REPORT} differs: BLESS=1 rewrites it:\n{text}"
    );
}
