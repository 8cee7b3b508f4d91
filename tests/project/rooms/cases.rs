//! Cases: each rule has one, each names what exists, and all files have one layout.

use super::{name_below, root, walk};
use std::collections::BTreeSet;
use std::fs;
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

/// One case is read, changed and compared as lines: keys stand one a line, in one order.
#[test]
fn every_case_file_has_the_one_layout() {
    const KEYS: [&str; 12] = [
        "id", "rules", "releases", "op", "parent", "input", "args", "expect", "findings", "encode",
        "why", "origin",
    ];
    let mut wrong = Vec::new();
    for chapter in CHAPTERS {
        let mut files = Vec::new();
        let room = root().join("conformance").join(chapter.name).join("cases");
        walk(&room, &mut files);
        assert!(!files.is_empty(), "{} has no cases", chapter.name);
        for file in files {
            let (text, name) = (
                fs::read_to_string(&file).unwrap(),
                name_below(&root(), &file),
            );
            let mut last = 0;
            for (line, number) in text.lines().zip(1..) {
                let key = line
                    .strip_prefix("  \"")
                    .and_then(|rest| rest.split('"').next());
                let place = key.map(|key| KEYS.iter().position(|known| *known == key));
                let disordered = match (line, place) {
                    ("{", _) => std::mem::replace(&mut last, 0) != 0,
                    ("}" | "},", _) => std::mem::replace(&mut last, 0) == 0,
                    (_, Some(place)) => {
                        let before =
                            std::mem::replace(&mut last, place.map_or(0, |place| place + 1));
                        last <= before
                    }
                    // Brackets, and what a key holds, which stands further in.
                    _ => {
                        !line.starts_with("   ")
                            && !["[", "]", "  ]", "  },", "  ],", "  }"].contains(&line)
                    }
                };
                if disordered {
                    wrong.push(format!("{name}:{number}"));
                }
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "not in the layout of conformance/cases.py: {wrong:?}"
    );
}
