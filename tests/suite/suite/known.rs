//! Known failures, which excuse and must be true.

use super::check;
use serde_json::Value;
use std::fs;
use tvmspec::conformance::adapter::{Identity, InProcess, Reply, Testee};
use tvmspec::conformance::case::{Case, Suite};
use tvmspec::conformance::known::{self, KnownFailures, glob};
use tvmspec::conformance::runner::{Run, run};

#[test]
fn known_failures_excuse_and_must_be_true() {
    let folder = tempfile::tempdir().unwrap();
    let known = |name: &str, text: &str| {
        let file = folder.path().join(name);
        fs::write(&file, text).unwrap();
        file.to_str().unwrap().to_owned()
    };
    let entry = |case: &str, verdict: &str, more: &str| {
        format!(
            "[[known]]\ncase = \"{case}\"\nverdict = \"{verdict}\"\nreason = \"it lies\"\n{more}\n"
        )
    };
    let code = |file: &str, implementation: &str| {
        check(&[
            "--impl",
            implementation,
            "--chapter",
            "wire",
            "--known",
            file,
        ])
        .status
        .code()
    };
    let all = known(
        "all.toml",
        &entry("wire/*", "crash", "expires = 2999-12-31"),
    );
    assert_eq!(code(&all, "liar:crash"), Some(0));
    assert_eq!(
        code(&all, "liar:garbage"),
        Some(1),
        "another verdict is not excused"
    );
    assert_eq!(code(&all, "builtin"), Some(1), "a pass was not expected");
    let none = known("none.toml", &entry("wire/nothing-*", "crash", ""));
    assert_eq!(code(&none, "builtin"), Some(1), "an entry matches nothing");
    let old = known(
        "old.toml",
        &entry("wire/*", "crash", "expires = \"2001-01-01\""),
    );
    assert_eq!(code(&old, "liar:crash"), Some(1), "the excuse has expired");
    let broken = known("broken.toml", "[[known]]\ncase = 1\n");
    assert_eq!(code(&broken, "builtin"), Some(2));
}

/// Of 0.8, and wrong in everything.
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
        run(Suite::embedded(), &mut InProcess(Old), &order)
            .unwrap()
            .is_good()
    };
    assert!(good(""));
    assert!(good("releases = \"..0.8\""));
    assert!(!good("releases = \"0.9..\""));
}

/// What is about releases that were not run is checked here alone.
#[test]
fn every_known_failure_names_a_case_of_its_releases() {
    for (file, known) in known::embedded() {
        assert!(!known.entries.is_empty(), "{file}");
        for entry in &known.entries {
            let mut cases = Suite::embedded().cases.iter();
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
