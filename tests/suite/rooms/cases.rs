//! Cases: each rule has one, each names what exists, and all files have one layout.

use super::{root, skipped};
use std::collections::BTreeSet;
use std::process::Command;
use tvmspec::conformance::CHAPTERS;
use tvmspec::conformance::case::{Expect, Suite};
use tvmspec::rule::Level;
use tvmspec::spec;

#[test]
fn every_must_has_a_case() {
    let shown: BTreeSet<&str> = Suite::embedded()
        .cases
        .iter()
        .flat_map(|case| &case.rules)
        .map(String::as_str)
        .collect();
    let bare: Vec<&str> = spec::rules()
        .iter()
        .filter(|rule| CHAPTERS.iter().any(|chapter| chapter.name == rule.chapter))
        .filter(|rule| rule.level.binds() && !shown.contains(rule.id.as_str()))
        .map(|rule| rule.id.as_str())
        .collect();
    assert!(bare.is_empty(), "no case shows {bare:?}");
}

#[test]
fn every_disputed_rule_has_a_case_that_takes_either_answer() {
    for rule in spec::rules()
        .iter()
        .filter(|rule| rule.level == Level::Disputed)
    {
        if !CHAPTERS.iter().any(|chapter| chapter.name == rule.chapter) {
            continue;
        }
        let shown = Suite::embedded()
            .cases
            .iter()
            .any(|case| case.rules.contains(&rule.id));
        assert!(shown, "no case shows the disputed {}", rule.id);
    }
}

#[test]
fn every_case_names_an_operation_that_exists() {
    let ops: BTreeSet<&str> = CHAPTERS
        .iter()
        .flat_map(|chapter| chapter.ops())
        .map(|op| op.name)
        .collect();
    for case in &Suite::embedded().cases {
        assert!(
            ops.contains(case.op.as_str()),
            "{}: there is no `{}`",
            case.id,
            case.op
        );
    }
}

/// What reject cases are worth: each differs from its parent, and expects a rejection of the rule that it names.
#[test]
fn a_reject_case_is_not_its_parent() {
    let suite = Suite::embedded();
    for case in &suite.cases {
        let (Some(parent), Expect::Reject(..)) = (&case.parent, &case.expect) else {
            continue;
        };
        let parent = suite.case(parent).unwrap();
        assert_ne!(
            case.request(),
            parent.request(),
            "{} equals its parent",
            case.id
        );
    }
}

/// A case is read, changed and compared as lines.
#[test]
fn every_case_file_has_the_one_layout() {
    let script = root().join("conformance/cases.py");
    let Ok(ran) = Command::new("python3").arg(script).arg("--check").output() else {
        return skipped("there is no python3");
    };
    let (stale, errors) = (
        String::from_utf8_lossy(&ran.stdout),
        String::from_utf8_lossy(&ran.stderr),
    );
    assert!(
        ran.status.success(),
        "`python3 conformance/cases.py` formats these anew:\n{stale}{errors}"
    );
}
