//! The evidence of a chapter, from `spec/evidence/<chapter>.toml`.

use super::boundary;
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;

/// The evidence of each rule of a chapter.
pub(crate) type Chapter = BTreeMap<String, Evidence>;

/// The evidence of one rule.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Evidence {
    pub(crate) since: Option<Proof>,
    pub(crate) until: Option<Proof>,
    /// Proofs of boundaries in the text, by the minor of the release.
    #[serde(deserialize_with = "by_minor")]
    pub(crate) says: BTreeMap<u8, Proof>,
    /// Proofs of universal claims, by words of the rule that make them.
    pub(crate) claims: BTreeMap<String, Proof>,
    // `tvmspec rule` prints these; `spec::evidence` parses them.
    #[serde(rename = "documented")]
    _documented: Vec<String>,
    #[serde(rename = "source")]
    _source: Vec<String>,
    #[serde(rename = "observed")]
    _observed: Vec<String>,
    #[serde(rename = "inferred")]
    _inferred: String,
}

/// The proof of one boundary, or of one claim.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Proof {
    #[serde(deserialize_with = "probes")]
    pub(crate) present: Vec<Probe>,
    #[serde(deserialize_with = "probes")]
    pub(crate) absent: Vec<Probe>,
    #[serde(rename = "as")]
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
}

impl Proof {
    pub(crate) fn probes(&self) -> impl Iterator<Item = &Probe> {
        self.present.iter().chain(&self.absent)
    }
}

/// Parses the evidence of a chapter.
pub(crate) fn read(toml: &str) -> Result<Chapter, toml::de::Error> {
    toml::from_str(toml)
}

/// Reads proofs by words with a release, as a map by its minor.
fn by_minor<'v, D: Deserializer<'v>>(form: D) -> Result<BTreeMap<u8, Proof>, D::Error> {
    let mut says = BTreeMap::new();
    for (words, proof) in BTreeMap::<String, Proof>::deserialize(form)? {
        let minor = boundary::named(&words).ok_or_else(|| {
            D::Error::custom(format!("{words}: neither a minor nor words with one"))
        })?;
        if says.insert(minor, proof).is_some() {
            return Err(D::Error::custom(format!("0.{minor} has evidence already")));
        }
    }
    Ok(says)
}

/// Reads one probe, or a list of them. A probe is repository, tag, path, text.
fn probes<'v, D: Deserializer<'v>>(form: D) -> Result<Vec<Probe>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "a probe is a list of four texts")]
    enum Form {
        One([String; 4]),
        Several(Vec<[String; 4]>),
    }
    let all = match Form::deserialize(form)? {
        Form::One(probe) => vec![probe],
        Form::Several(all) => all,
    };
    let probe = |[repository, tag, path, text]: [String; 4]| Probe {
        repository,
        tag,
        path,
        text,
    };
    Ok(all.into_iter().map(probe).collect())
}
