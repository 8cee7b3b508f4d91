//! Known failures, which excuse failures and must be accurate.

use super::check;
use serde_json::Value;
use std::fs;
use std::path::Path;
use tvmspec::conformance::adapter::{Identity, InProcess, Reply, Testee};
use tvmspec::conformance::case::{Case, Suite};
use tvmspec::conformance::known_failures::{self, KnownFailures, glob};
use tvmspec::conformance::runner::{Run, run};
use tvmspec::conformance::verdict::Verdict;

#[test]
fn known_failures_excuse_and_must_be_true() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("known.toml");
    let code = |text: &str, implementation: &str| {
        fs::write(&file, text).unwrap();
        let known = file.to_str().unwrap();
        let run = check(&[
            "--impl",
            implementation,
            "--chapter",
            "wire",
            "--known",
            known,
        ]);
        run.status.code()
    };
    let all = "[[known]]\ncase = \"wire/*\"\nverdict = \"crash\"\nreason = \"it lies\"\n";
    assert_eq!(code(all, "liar:crash"), Some(0));
    assert_eq!(code(all, "builtin"), Some(1), "a pass was not expected");
    assert_eq!(code("[[known]]\ncase = 1\n", "builtin"), Some(2));
}

/// Testee of release 0.8 that is always wrong.
struct Old;

impl Testee for Old {
    fn identity(&self) -> Identity {
        Identity {
            name: "old".to_owned(),
            releases: vec!["0.8".to_owned()],
            ..Identity::default()
        }
    }

    fn answer(&mut self, _op: &str, _args: &Value) -> Reply {
        Reply::Crash("as always".to_owned())
    }
}

#[test]
fn a_known_failure_of_another_release_excuses_nothing() {
    let good = |releases: &str| {
        let entry = format!(
            "[[known]]\ncase = \"wire/u8\"\nverdict = \"crash\"\nreason = \"r\"\n{releases}"
        );
        let mut order = Run::default();
        order.selection.cases = vec!["wire/u8".to_owned()];
        order.known = KnownFailures::parse(&entry).unwrap();
        run(Suite::expect_ours(), &mut InProcess(Old), &order)
            .unwrap()
            .is_good()
    };
    assert!(good(""));
    assert!(good("releases = \"..0.8\""));
    assert!(!good("releases = \"0.9..\""));
}

/// Known failures of releases that were not run are checked only here.
#[test]
fn every_known_failure_names_a_case_of_its_releases() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("conformance/known");
    let files: Vec<_> = fs::read_dir(folder).unwrap().flatten().collect();
    assert_eq!(files.len(), known_failures::embedded().len());
    for file in files.iter().map(fs::DirEntry::path) {
        let text = fs::read_to_string(&file).unwrap();
        let file = file.display();
        let known =
            KnownFailures::parse(&text).unwrap_or_else(|problem| panic!("{file}: {problem}"));
        assert!(!known.entries.is_empty(), "{file}");
        for entry in &known.entries {
            let mut cases = Suite::expect_ours().cases.iter();
            let holds = |case: &Case| {
                entry.releases.is_none_or(|range| {
                    case.releases.since <= range.until && range.since <= case.releases.until
                })
            };
            assert!(
                cases.any(|case| glob(&entry.case, &case.id) && holds(case)),
                "{file}: {} matches no case of its releases",
                entry.case
            );
        }
    }
}

const FILE: &str =
    "[[known]]\ncase = \"blob/*\"\nverdict = \"crash\"\nreason = \"r\"\nexpires = 2026-01-31\n";

fn crash() -> Verdict {
    Verdict::Crash("SIGSEGV".into())
}

#[test]
fn an_entry_excuses_its_verdict_until_it_expires() {
    let known = KnownFailures::parse(FILE).unwrap();
    assert!(known.excuse("blob/a", &crash(), "2026-01-31").is_some());
    assert!(known.excuse("blob/a", &crash(), "2026-02-01").is_none());
    assert!(known.excuse("wire/a", &crash(), "2026-01-01").is_none());
    let hang = Verdict::Hang(String::new());
    assert!(known.excuse("blob/a", &hang, "2026-01-01").is_none());
}

#[test]
fn the_file_must_stay_true() {
    let known = KnownFailures::parse(FILE).unwrap();
    let all = ["blob/a", "wire/b"];
    let problems = |all: &[&'static str], verdict: Verdict, today: &str| {
        let results = [("blob/a", &verdict)];
        known.problems(all.iter().copied(), results.into_iter(), today)
    };
    assert!(problems(&all, crash(), "2026-01-01").is_empty());
    assert!(problems(&all, Verdict::Pass, "2026-01-01")[0].contains("passes"));
    assert!(problems(&all[1..], crash(), "2026-01-01")[0].contains("no case"));
    assert!(problems(&all, crash(), "2026-03-01")[0].contains("expired"));
}

#[test]
fn varying_result_is_excused() {
    let varying = FILE.replace("reason", "varies = true\nreason");
    let known = KnownFailures::parse(&varying).unwrap();
    let hang = Verdict::Hang(String::new());
    assert!(known.excuse("blob/a", &hang, "2026-01-01").is_some());
    let passed = [("blob/a", &Verdict::Pass)].into_iter();
    let problems = known.problems(["blob/a"].into_iter(), passed, "2026-01-01");
    assert_eq!(problems, Vec::<String>::new());
    // `Unsupported` is not a result, so an entry for varying results does not excuse it.
    let unsupported = Verdict::Unsupported(String::new());
    assert!(known.excuse("blob/a", &unsupported, "2026-01-01").is_none());
    assert!(KnownFailures::parse(&varying.replace("= true", "= \"yes\"")).is_err());
}

#[test]
fn an_entry_may_be_about_some_releases_implementations_or_versions() {
    let releases = |names: &[&str]| Identity {
        releases: names.iter().map(|name| (*name).to_owned()).collect(),
        ..Identity::default()
    };
    let name = |name: &str| Identity {
        name: name.to_owned(),
        ..Identity::default()
    };
    let version = |version: &str| Identity {
        version: version.to_owned(),
        ..Identity::default()
    };
    let old = "releases = \"..0.8\"";
    let compiler = "implementation = \"* for llvm\"";
    let two = "versions = [\"a 0.1\", \"a 0.2\"]";
    for (line, identity, applies) in [
        (old, releases(&["0.7"]), true),
        (old, releases(&["0.8", "0.9"]), true),
        (old, releases(&[]), true),
        (old, releases(&["0.9"]), false),
        (compiler, name("a for llvm"), true),
        (compiler, name("a for c"), false),
        (compiler, name("a"), false),
        (two, version("a 0.1"), true),
        (two, version("a 0.2"), true),
        (two, version("a 0.3"), false),
        (two, version(""), false),
    ] {
        let known = FILE.replace("reason", &format!("{line}\nreason"));
        let known = KnownFailures::parse(&known).unwrap();
        let count = known.applicable_to(&identity).entries.len();
        assert_eq!(count, usize::from(applies), "{line} {identity:?}");
    }
}

#[test]
fn an_entry_is_complete() {
    assert_eq!(KnownFailures::parse("").unwrap(), KnownFailures::default());
    for (from, to) in [
        ("reason = \"r\"\n", ""),
        ("\"crash\"", "\"pass\""),
        ("\"crash\"", "\"panic\""),
        ("2026-01-31", "\"soon\""),
        ("case", "cases"),
        ("[[known]]", "[[knwon]]"),
        ("reason", "releases = [1]\nreason"),
        ("reason", "releases = \"old\"\nreason"),
        ("reason", "releases = \"0.9..0.7\"\nreason"),
    ] {
        assert!(
            KnownFailures::parse(&FILE.replace(from, to)).is_err(),
            "{from} -> {to}"
        );
    }
}

#[test]
fn globs_match_whole_ids() {
    for (pattern, text) in [
        ("a/*", "a/b"),
        ("*", ""),
        ("a?c*", "abcd"),
        ("*b*d", "abcd"),
    ] {
        assert!(glob(pattern, text), "{pattern} {text}");
    }
    for (pattern, text) in [("a", "ab"), ("a/*", "b/a"), ("?", ""), ("*b", "abc")] {
        assert!(!glob(pattern, text), "{pattern} {text}");
    }
}

#[test]
fn today_is_a_date_of_this_century() {
    let today = known_failures::current_date();
    assert!(today.len() == 10 && today.as_str() > "2024", "{today}");
}
