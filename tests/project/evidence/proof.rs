//! The evidence of a chapter, from `spec/evidence/<chapter>.toml`.

use super::boundary;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The evidence of each rule of a chapter.
pub(crate) type Chapter = BTreeMap<String, Evidence>;

/// The evidence of one rule.
#[derive(Debug, Default)]
pub(crate) struct Evidence {
    pub(crate) since: Option<Proof>,
    pub(crate) until: Option<Proof>,
    /// Proofs of boundaries in the text, by the minor of the release.
    pub(crate) says: BTreeMap<u8, Proof>,
    /// Proofs of universal claims, by words of the rule that make them.
    pub(crate) claims: BTreeMap<String, Proof>,
}

/// The proof of one boundary, or of one claim.
#[derive(Debug, Default)]
pub(crate) struct Proof {
    pub(crate) present: Vec<Probe>,
    pub(crate) absent: Vec<Probe>,
    pub(crate) same_as: Option<String>,
    pub(crate) run: Option<String>,
    pub(crate) inferred: Option<String>,
}

/// A text that is present or absent in a file of a release.
#[derive(Debug)]
pub(crate) struct Probe {
    pub(crate) repository: String,
    /// A tag or a commit; for a claim, also a range of releases, `0.7..0.20` or `0.16..`.
    pub(crate) tag: String,
    pub(crate) path: String,
    pub(crate) text: String,
}

impl Evidence {
    pub(crate) fn proofs(&self) -> impl Iterator<Item = &Proof> {
        let sides = self.since.iter().chain(&self.until);
        sides.chain(self.says.values()).chain(self.claims.values())
    }

    fn read(value: Value) -> Result<Evidence, String> {
        let mut evidence = Evidence::default();
        for (key, value) in table(value)? {
            let within = |error: String| format!("{key}: {error}");
            match key.as_str() {
                "since" => evidence.since = Some(Proof::read(value).map_err(within)?),
                "until" => evidence.until = Some(Proof::read(value).map_err(within)?),
                "says" => {
                    for (words, proof) in table(value).map_err(within)? {
                        let minor = boundary::named(&words).ok_or_else(|| {
                            format!("says.{words}: neither a minor of a release nor words with one")
                        })?;
                        let proof =
                            Proof::read(proof).map_err(|error| format!("says.{words}: {error}"))?;
                        if evidence.says.insert(minor, proof).is_some() {
                            return Err(format!("says.{words}: 0.{minor} has evidence already"));
                        }
                    }
                }
                "claims" => {
                    for (words, proof) in table(value).map_err(within)? {
                        let proof = Proof::read(proof)
                            .map_err(|error| format!("claims.\"{words}\": {error}"))?;
                        evidence.claims.insert(words, proof);
                    }
                }
                // `tvmspec rule` prints these; `spec::evidence` parses them.
                "documented" | "source" | "observed" => drop(texts(value).map_err(within)?),
                "inferred" => drop(text(value).map_err(within)?),
                _ => return Err(format!("there is no `{key}`")),
            }
        }
        Ok(evidence)
    }
}

impl Proof {
    fn read(value: Value) -> Result<Proof, String> {
        let mut proof = Proof::default();
        for (key, value) in table(value)? {
            match key.as_str() {
                "present" => proof.present = probes(value)?,
                "absent" => proof.absent = probes(value)?,
                "as" => proof.same_as = Some(text(value)?),
                "run" => proof.run = Some(text(value)?),
                "inferred" => proof.inferred = Some(text(value)?),
                _ => return Err(format!("there is no `{key}`")),
            }
        }
        Ok(proof)
    }

    pub(crate) fn probes(&self) -> impl Iterator<Item = &Probe> {
        self.present.iter().chain(&self.absent)
    }
}

/// Parses the evidence of a chapter.
pub(crate) fn read(toml: &str) -> Result<Chapter, String> {
    let rules: Map<String, Value> = toml::from_str(toml).map_err(|error| error.to_string())?;
    let read = |(id, value): (String, Value)| match Evidence::read(value) {
        Ok(evidence) => Ok((id, evidence)),
        Err(error) => Err(format!("{id}: {error}")),
    };
    rules.into_iter().map(read).collect()
}

/// Parses one probe, or a list of them.
fn probes(value: Value) -> Result<Vec<Probe>, String> {
    let Value::Array(items) = value else {
        return Err("a probe is a list of four texts".to_owned());
    };
    match items.first() {
        Some(Value::Array(_)) => items.into_iter().map(probe).collect(),
        _ => Ok(vec![probe(Value::Array(items))?]),
    }
}

fn probe(value: Value) -> Result<Probe, String> {
    let four: Result<[String; 4], _> = texts(value)?.try_into();
    let [repository, tag, path, text] =
        four.map_err(|_| "a probe is repository, tag, path, text".to_owned())?;
    Ok(Probe {
        repository,
        tag,
        path,
        text,
    })
}

fn table(value: Value) -> Result<Map<String, Value>, String> {
    match value {
        Value::Object(table) => Ok(table),
        other => Err(format!("{other} is not a table")),
    }
}

fn texts(value: Value) -> Result<Vec<String>, String> {
    match value {
        Value::Array(items) => items.into_iter().map(text).collect(),
        other => Err(format!("{other} is not a list")),
    }
}

fn text(value: Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text),
        other => Err(format!("{other} is not a text")),
    }
}
