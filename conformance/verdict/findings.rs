//! Comparison of findings, as far as an answer states them.

use super::{Judgement, Verdict, fail};
use crate::conformance::answer_parts::Parts;
use crate::conformance::case::Case;
use crate::conformance::reply::Oddity;
use std::collections::BTreeSet;

/// Compares findings by the parts that the testee states for all of them: only the rules, each once, or every finding in full.
pub(super) fn judge_findings(case: &Case, findings: Option<&[Oddity]>) -> Judgement {
    let mut judgement = Judgement::without_parts(Verdict::Pass);
    // A missing list differs from an empty one: it does not claim that the input has no findings.
    let Some(findings) = findings else {
        judgement.unstated.add(Parts::FINDINGS);
        return judgement;
    };
    judgement.stated.add(Parts::FINDINGS);
    let all = |has: fn(&Oddity) -> bool| findings.iter().all(has);
    let kinds = all(|oddity| oddity.kind.is_some());
    let offsets = all(|oddity| oddity.offset.is_some());
    // An empty list states neither kinds nor offsets, although `all` is true for it.
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
        // Without offsets two findings of one rule look equal, so a testee that reports each rule once is also right.
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

/// Lists rule, kind and offset of each finding, for a message.
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

/// The maximum number of findings in a message.
const MOST_FINDINGS: usize = 20;
