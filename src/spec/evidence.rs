//! The evidence for each rule: `spec/evidence/`.

use crate::release::{ParseError, Release};
use std::collections::BTreeMap;

/// The sources of a rule, from `spec/evidence/<chapter>.toml`. `tests/project/evidence.rs` reads the probes in the same files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Evidence {
    /// Documents that state it.
    pub documented: Vec<String>,
    /// Source code that shows it: repository, tag and path.
    pub source: Vec<String>,
    /// The releases that were run, and their behaviour if it differs from the rule.
    pub observed: Vec<String>,
    /// The reason why the rule is assumed to hold without source or observation. This is an open point.
    pub inferred: Option<String>,
    /// The releases whose runtimes the suite tested, and that follow the rule.
    pub passed: Vec<Release>,
    /// The tested releases that break the rule in some case.
    pub failed: Vec<Release>,
}

/// Verdicts on runtimes of releases, which `spec/evidence/judged.py` writes.
pub(super) const JUDGED: &str = include_str!("../../spec/evidence/tables/judged.json");

/// Parses one file of evidence, `spec/evidence/<chapter>.toml`: a table for each rule id. Keys for the probes of a test are skipped.
pub(super) fn parse_evidence(text: &str) -> Result<BTreeMap<String, Evidence>, ParseError> {
    // Parsed without typed structs, because the same tables have probes of a test, whose keys are unknown here.
    let file: toml::Table = text
        .parse()
        .map_err(|error| ParseError::new(format!("{error}")))?;
    let mut all = BTreeMap::new();
    for (id, of) in &file {
        let of = of
            .as_table()
            .ok_or_else(|| ParseError::new(format!("{id} is not a table")))?;
        // Most rules have one or two sorts of evidence. A missing list is empty.
        let list = |name: &str| match of.get(name) {
            None => Ok(Vec::new()),
            Some(list) => list
                .as_array()
                .and_then(|list| {
                    list.iter()
                        .map(|one| one.as_str().map(str::to_owned))
                        .collect()
                })
                .ok_or_else(|| ParseError::new(format!("{id}: `{name}` is not a list of texts"))),
        };
        let evidence = Evidence {
            documented: list("documented")?,
            source: list("source")?,
            observed: list("observed")?,
            // Verdicts are in a separate table, which a script writes. These files are written by hand.
            passed: Vec::new(),
            failed: Vec::new(),
            inferred: match of.get("inferred") {
                None => None,
                Some(why) => Some(
                    why.as_str()
                        .ok_or_else(|| ParseError::new(format!("{id}: `inferred` is not a text")))?
                        .to_owned(),
                ),
            },
        };
        all.insert(id.clone(), evidence);
    }
    Ok(all)
}

/// Parses the releases that pass each rule, and those that fail it.
pub(super) fn parse_judged(text: &str) -> Result<BTreeMap<String, [Vec<Release>; 2]>, ParseError> {
    let table: BTreeMap<String, BTreeMap<String, Vec<String>>> =
        serde_json::from_str(text).map_err(|error| ParseError::new(error.to_string()))?;
    let judged = table.into_iter().map(|(id, of)| {
        let list = |name: &str| -> Result<Vec<Release>, ParseError> {
            let releases = of.get(name).into_iter().flatten();
            releases.map(|release| release.parse()).collect()
        };
        // The table leaves out rules that no runtime was tested with. One of the lists may be absent.
        Ok((id, [list("passed")?, list("failed")?]))
    });
    judged.collect()
}
