//! Findings, by as much of them as an answer states.

use super::{Judgement, Verdict, fail};
use crate::conformance::case::Case;
use crate::conformance::parts::Parts;
use crate::conformance::reply::Oddity;
use std::collections::BTreeSet;

/// Findings are compared by as much of each as the testee states of all of them: rules alone, each once, or every one in full.
pub(super) fn judge_findings(case: &Case, findings: Option<&[Oddity]>) -> Judgement {
    let mut judgement = Judgement::bare(Verdict::Pass);
    // No list is not an empty one: who reports no findings at all does not state that there are none.
    let Some(findings) = findings else {
        judgement.unstated.add(Parts::FINDINGS);
        return judgement;
    };
    judgement.stated.add(Parts::FINDINGS);
    let all = |has: fn(&Oddity) -> bool| findings.iter().all(has);
    let kinds = all(|oddity| oddity.kind.is_some());
    let offsets = all(|oddity| oddity.offset.is_some());
    // An empty list states neither kinds nor offsets, although `all` is true of it.
    if !findings.is_empty() {
        for (part, stated) in [
            (Parts::FINDING_KINDS, kinds),
            (Parts::FINDING_OFFSETS, offsets),
        ] {
            if stated {
                judgement.stated.add(part)
            } else {
                judgement.unstated.add(part)
            }
        }
    }
    let compared = |list: &[Oddity]| {
        let mut list: Vec<Oddity> = list
            .iter()
            .map(|oddity| Oddity {
                rule: oddity.rule.clone(),
                kind: oddity.kind.clone().filter(|_| kinds),
                offset: oddity.offset.filter(|_| offsets),
            })
            .collect();
        list.sort();
        // Without offsets two findings of one rule look the same, and who reports each rule once is right as well.
        if !offsets {
            list.dedup();
        }
        list
    };
    let (expected, actual) = (compared(&case.findings), compared(findings));
    if expected != actual {
        judgement.verdict = fail(listed(&expected), listed(&actual), None);
    }
    judgement
}

/// Rule, kind and byte of each finding, for a message.
pub(super) fn listed(findings: &[Oddity]) -> String {
    let one = |oddity: &Oddity| {
        let mut text = oddity.rule.clone();
        if let Some(kind) = &oddity.kind {
            text.push_str(&format!(" {kind}"));
        }
        if let Some(offset) = oddity.offset {
            text.push_str(&format!(" at byte {offset:#x}"));
        }
        text
    };
    match findings.len() {
        0 => "no finding".to_owned(),
        1..=MOST_FINDINGS => {
            let list: Vec<String> = findings.iter().map(one).collect();
            format!("findings {}", list.join(", "))
        }
        more => {
            let rules: BTreeSet<&str> = findings.iter().map(|one| one.rule.as_str()).collect();
            format!("{more} findings of {} rules", rules.len())
        }
    }
}

/// How many findings are listed.
const MOST_FINDINGS: usize = 20;
