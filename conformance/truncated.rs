//! Truncated inputs: every accepted decode has a derived case that tests beginnings of its input, and counts once.
//!
//! `golden/<chapter>/truncated.json` states for each case and each range of lengths the broken rule and its place.
//! `conformance/truncated.py` writes it from the answers of this crate.

use super::case::{Breach, Case, CaseInput, Expect};
use super::golden::golden;
use crate::release::Releases;
use crate::rule::Kind;
use crate::spec;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::OnceLock;

/// A truncated input, and its rejection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The number of bytes that remain.
    pub length: usize,
    /// The content of the rejection.
    pub breach: Breach,
}

impl Cut {
    /// Returns the case with this truncated input.
    pub(super) fn step(&self, case: &Case, bytes: &[u8]) -> Case {
        // Field by field, because a copy of the case would contain all its cuts, of which a long input has thousands.
        Case {
            id: case.id.clone(),
            chapter: case.chapter.clone(),
            rules: case.rules.clone(),
            releases: case.releases,
            op: case.op.clone(),
            parent: case.parent.clone(),
            input: CaseInput::Hex(bytes[..self.length.min(bytes.len())].to_vec()),
            args: case.args.clone(),
            expect: Expect::Reject(self.breach.clone()),
            findings: case.findings.clone(),
            encode: case.encode,
            own: case.own,
            why: case.why.clone(),
            origin: case.origin.clone(),
            cuts: Vec::new(),
        }
    }
}

/// A range of lengths with the same rejection.
#[derive(Clone, Debug)]
struct CutRange {
    first: usize,
    last: usize,
    rule: String,
    /// The offset; `None` for the end of the truncated input.
    offset: Option<u64>,
    field: Option<String>,
}

impl CutRange {
    /// Returns every length of a short range, and both ends and the middle of a long one.
    fn lengths(&self) -> Vec<usize> {
        const SHORT: usize = 8;
        let span = self.last - self.first;
        match (span, self.offset) {
            (..=SHORT, _) => (self.first..=self.last).collect(),
            (_, Some(_)) => vec![self.first, self.first + 1, self.first + span / 2, self.last],
            // The offset changes with the length.
            (_, None) => {
                let mut lengths: Vec<usize> = (0..=2 * SHORT)
                    .map(|part| self.first + span * part / (2 * SHORT))
                    .collect();
                lengths.dedup();
                lengths
            }
        }
    }

    /// Returns each length with its rejection: the rule of the truncated field, at its beginning or at the end of the input.
    fn cuts(&self) -> impl Iterator<Item = Cut> {
        self.lengths().into_iter().map(|length| Cut {
            length,
            breach: Breach {
                kind: Kind::Truncated,
                rule: self.rule.clone(),
                offset: Some(self.offset.unwrap_or(length as u64)),
                field: self.field.clone(),
            },
        })
    }
}

/// Returns the case for the truncated inputs of an accepted input.
pub(super) fn derive_truncated_case(case: &Case) -> Option<Case> {
    let Expect::Accept(_) = case.expect else {
        return None;
    };
    let runs = table().get(&case.id)?;
    let cuts: Vec<Cut> = runs.iter().flat_map(CutRange::cuts).collect();
    let mut rules: Vec<String> = cuts.iter().map(|cut| cut.breach.rule.clone()).collect();
    rules.sort();
    rules.dedup();
    let held = rules.iter().filter_map(|id| spec::rule(id));
    // A rule that holds in fewer releases than the case narrows the range. Otherwise a testee could be judged by a rule that its
    // release lacks.
    let releases = held.fold(case.releases, |range, rule| Releases {
        since: range.since.max(rule.releases.since),
        until: range.until.min(rule.releases.until),
    });
    Some(Case {
        id: format!("{}#truncated", case.id),
        rules,
        releases,
        expect: Expect::Reject(cuts.first()?.breach.clone()),
        // A rejection states no findings, even if there were oddities before the cut.
        findings: Vec::new(),
        encode: false,
        why: "a reader that does not notice the end of a file reads bytes after it".to_owned(),
        cuts,
        ..case.clone()
    })
}

/// Returns the ranges of each case, by its id.
fn table() -> &'static HashMap<String, Vec<CutRange>> {
    static TABLE: OnceLock<HashMap<String, Vec<CutRange>>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let chapters = super::CHAPTERS.iter();
        let rows =
            chapters.filter_map(|chapter| golden(&format!("{}/truncated.json", chapter.name)));
        rows.flat_map(|text| match parse(text) {
            Ok(rows) => rows,
            Err(problem) => panic!("the table of truncated inputs is broken: {problem}"),
        })
        .collect()
    })
}

/// A row: first, last, rule, offset, field.
type Row = (usize, usize, String, Value, String);

/// Parses `{id: [[first, last, rule, offset or "end", field]]}`; a field without a name is empty.
fn parse(text: &[u8]) -> Result<HashMap<String, Vec<CutRange>>, String> {
    let table: HashMap<String, Vec<Row>> =
        serde_json::from_slice(text).map_err(|error| error.to_string())?;
    let run = |(first, last, rule, offset, field): Row| {
        if first > last {
            return Err(format!("{first} to {last} bytes"));
        }
        let offset = match &offset {
            Value::String(end) if end == "end" => None,
            offset => Some(
                offset
                    .as_u64()
                    .ok_or_else(|| format!("{offset} is not an offset"))?,
            ),
        };
        let field = Some(field).filter(|field| !field.is_empty());
        Ok(CutRange {
            first,
            last,
            rule,
            offset,
            field,
        })
    };
    let entry = |(id, runs): (String, Vec<_>)| {
        let runs: Result<Vec<CutRange>, String> = runs.into_iter().map(run).collect();
        Ok((id, runs?))
    };
    table.into_iter().map(entry).collect()
}
