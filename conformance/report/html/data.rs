//! The cases and rules of a report as data for its script.

use crate::conformance::report::{Obligation, quoted};
use crate::conformance::runner::Report;
use crate::conformance::verdict::Verdict;
use crate::release::Release;
use crate::spec;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::Write;

/// The maximum number of bytes for the data. A run of 11,000 cases needs about 350,000.
const MOST_BYTES: usize = 600_000;

/// The maximum lengths, in characters, for the reason of a case that does not fail. A shorter one is used if the data is too large.
const REASON_LENGTHS: [usize; 3] = [400, 100, 30];

/// Returns the cases and rules as JSON, compressed with zlib, in base64.
pub(super) fn packed(report: &Report<'_>) -> String {
    let mut packed = String::new();
    for longest in REASON_LENGTHS {
        packed = compressed(&data(report, longest).to_string());
        if packed.len() <= MOST_BYTES {
            break;
        }
    }
    packed
}

fn compressed(text: &str) -> String {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    let written = encoder.write_all(text.as_bytes());
    let bytes = written.and_then(|()| encoder.finish());
    BASE64_STANDARD.encode(bytes.expect("writing to a vector cannot fail"))
}

/// Returns the cases and rules. Equal texts and equal groups of members are stored once.
///
/// A case is a list: its id, verdict and group, then the reason if it neither passes nor fails, or 1 for a failure and 2 for a known
/// one after an empty place. The page contains the reason of a failure.
fn data(report: &Report<'_>, longest: usize) -> Value {
    let releases: Vec<String> = Release::all().map(|release| release.to_string()).collect();
    let place = |release: Release| Release::all().position(|one| one == release);
    let (mut texts, mut groups, mut rules) = (Interned::new(), Interned::new(), Interned::new());
    let mut cases = Vec::new();
    for outcome in &report.results {
        let case = outcome.case;
        let ids = case.rules.iter();
        let ids: Vec<usize> = ids.map(|id| rules.intern_value(json!(id))).collect();
        let group = groups.intern_value(json!([
            ids,
            place(case.releases.since),
            place(case.releases.until),
            texts.intern_value(json!(case.why)),
            texts.intern_value(json!(case.origin)),
        ]));
        let mut names = Verdict::NAMES.iter();
        let verdict = names.position(|name| *name == outcome.verdict.name());
        cases.push(if outcome.fails {
            let kind = if outcome.is_failure() { 1 } else { 2 };
            json!([case.id, verdict, group, null, kind])
        } else if outcome.verdict == Verdict::Pass {
            json!([case.id, verdict, group])
        } else {
            let reason = shortened(&outcome.verdict.reason(), longest);
            json!([case.id, verdict, group, texts.intern_value(json!(reason))])
        });
    }
    let rules: Vec<Value> = rules
        .values
        .iter()
        .map(|id| {
            let text = id.as_str().and_then(spec::rule);
            let title = text.map_or("", |rule| rule.title.as_str());
            json!([id, title, text.map(|rule| Obligation::of(rule).gist)])
        })
        .collect();
    json!({
        "releases": releases,
        "verdicts": Verdict::NAMES,
        "texts": texts.values,
        "groups": groups.values,
        "rules": rules,
        "cases": cases,
        "again": format!("tvmspec check --impl {}", quoted(&report.implementation)),
    })
}

/// Returns at most `longest` characters of `text`. An ellipsis marks the cut.
fn shortened(text: &str, longest: usize) -> String {
    match text.char_indices().nth(longest) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Distinct values, each with its position.
struct Interned {
    values: Vec<Value>,
    places: HashMap<String, usize>,
}

impl Interned {
    fn new() -> Interned {
        Interned {
            values: Vec::new(),
            places: HashMap::new(),
        }
    }

    /// Returns the position of `value`, which is added if it is new.
    fn intern_value(&mut self, value: Value) -> usize {
        let next = self.values.len();
        let place = *self.places.entry(value.to_string()).or_insert(next);
        if place == next {
            self.values.push(value);
        }
        place
    }
}
