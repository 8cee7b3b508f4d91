//! The rule-off check: if any single MUST is switched off in our implementation, at least one case must notice.
//!
//! A rule that no case notices is either not enforced or not tested. A rule that describes a behaviour has no check to switch off.
//! It has a mutant instead, and `conformance/mutants/run` verifies that a case notices it.

// A release build has no switch.
#![cfg(all(feature = "suite", debug_assertions))]

use crate::mutants;
use crate::serialized::run_serialized;
use tvmspec::conformance::adapter::builtin::BuiltinTestee;
use tvmspec::conformance::adapter::{Adapter, InProcess, Reply};
use tvmspec::conformance::case::{Case, Suite};
use tvmspec::conformance::verdict::{Verdict, judge};
use tvmspec::conformance::{CHAPTERS, Op};
use tvmspec::rule::{Rule, off};
use tvmspec::spec::{self, Party};

/// Switches off every MUST with a check, one at a time.
#[test]
fn with_any_must_switched_off_a_case_fails() {
    run_serialized(hold_every_must);
}

/// Prints the case that notices each rule. It must belong to the rule's chapter or to a later one that builds on it.
fn hold_every_must() {
    let suite = Suite::expect_ours();
    let mutants = mutants::lists().expect("lists that parse");
    let (mut table, mut unnoticed) = (String::new(), Vec::new());
    for (place, chapter) in CHAPTERS.iter().enumerate() {
        // A rule may first have an effect in a later chapter that builds on this one.
        let later: Vec<&Case> = CHAPTERS[place..]
            .iter()
            .flat_map(|chapter| {
                suite.cases.iter().filter(|case| {
                    case.chapter == chapter.name && case.cuts.is_empty() && !is_foreign(case)
                })
            })
            .collect();
        for rule in chapter.rules() {
            let Some(text) = spec::rule(rule.id()).filter(|text| text.level.is_binding()) else {
                continue;
            };
            let has_mutant = mutants.values().flatten().any(|one| one.rule == rule.id());
            // Cases that name the rule come first, because they notice most rules. A rule that has a mutant, or only cases for others, has
            // no check. The other cases are skipped for it.
            let names = |case: &Case| case.rules.iter().any(|id| id == rule.id());
            let (named, others): (Vec<&Case>, Vec<&Case>) =
                later.iter().partition(|case| names(case));
            let binds_others = {
                let mut named = suite.cases.iter().filter(|case| names(case)).peekable();
                // If a rule binds only callers, the cases act as the caller, and compiled code judges them.
                named.peek().is_some() && (text.who == [Party::Caller] || named.all(is_foreign))
            };
            let others = others.into_iter().filter(|_| !has_mutant && !binds_others);
            let noticed = named.into_iter().chain(others).find_map(|case| {
                let verdict = verdict_without(rule, case);
                (verdict != Verdict::Pass).then(|| format!("{} of {}", verdict.name(), case.id))
            });
            let by = match &noticed {
                Some(by) => by.as_str(),
                None if binds_others => {
                    table.push_str(&format!("{:<10} cases for others\n", rule.id()));
                    continue;
                }
                None if has_mutant => "its mutants",
                None => "nothing",
            };
            table.push_str(&format!("{:<10} {by}\n", rule.id()));
            if noticed.is_none() && !has_mutant {
                unnoticed.push(rule.id());
            }
        }
    }
    println!("{table}");
    assert!(
        unnoticed.is_empty(),
        "no case notices that these are off, and they have no mutant: {unnoticed:?}"
    );
}

/// Checks whether the case is only for other implementations. Ours has nothing to switch off for it.
fn is_foreign(case: &Case) -> bool {
    BuiltinTestee::op(&case.op).is_some_and(Op::is_foreign)
}

/// The specification states the kind of each rejection for other implementers.
#[test]
fn every_rejection_is_of_a_kind_that_its_rule_states() {
    let unstated = run_serialized(unstated_rejections);
    assert!(unstated.is_empty(), "{}", unstated.join("\n"));
}

/// Returns our rejections that name no rule, or whose kind the rule's line in the specification does not list.
fn unstated_rejections() -> Vec<String> {
    let mut unstated = Vec::new();
    for case in &Suite::expect_ours().cases {
        let Reply::Reject(rejection) = InProcess(BuiltinTestee).call(&case.op, &case.request())
        else {
            continue;
        };
        let (Some(kind), Some(rule)) = (rejection.kind, rejection.rule) else {
            unstated.push(format!(
                "nothing is named in {}: {}",
                case.id, rejection.message
            ));
            continue;
        };
        let text = spec::rule(&rule).unwrap_or_else(|| panic!("{}: {rule}", case.id));
        if !text.kinds.iter().any(|stated| stated.name() == kind) {
            unstated.push(format!("{rule} answers {kind} in {}", case.id));
        }
    }
    unstated
}

/// Returns the verdict of a case while one rule is switched off on this thread.
fn verdict_without(rule: Rule, case: &Case) -> Verdict {
    let args = case.request();
    off::run_without(rule, || {
        let reply = InProcess(BuiltinTestee).call(&case.op, &args);
        judge(case, &reply).in_full(case).verdict
    })
}
