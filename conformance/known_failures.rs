//! Known failures of implementations, each with a reason and an expiry date.
//!
//! ```toml
//! [[known]]
//! case = "blob/opencl-*"          # id or glob
//! verdict = "crash"
//! reason = "reads past the index vector"
//! url = "https://github.com/apache/tvm/issues/1"
//! expires = "2030-01-01"
//! ```
//!
//! `verdict` may also be `unsupported` or `skipped`, which a run that must be complete counts as failures.
//!
//! `url` and `expires` are optional. The file must stay correct: an entry that matches no case, a case that passes despite an
//! entry, and an expired entry are errors of the run.
//!
//! With `releases = "0.8..0.13"` an entry applies only to an implementation of one of these TVM releases, so that one file can
//! describe many.
//!
//! With `implementation = "* for llvm"` an entry applies only to implementations with such a name, given as a glob.
//!
//! With `versions = ["tvm-ffi 0.1.0"]` an entry applies only to implementations that state one of these versions.
//!
//! With `varies = true` the answer depends on memory that does not belong to the implementation: it may fail in any way, or pass by
//! chance.

use super::form::from_text_if_any;
use super::reply::Identity;
use super::verdict::Verdict;
use crate::release::{ParseError, Release, Releases};
use crate::spec;
use serde::{Deserialize, Deserializer, de::Error as _};
use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

/// The entries of one file.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct KnownFailures {
    /// The entries, in the order of the file.
    #[serde(default, rename = "known")]
    pub entries: Vec<KnownFailure>,
}

/// One known failure.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct KnownFailure {
    /// An id or a glob.
    pub case: String,
    /// The verdict that is expected instead of a pass.
    pub verdict: String,
    /// `true` if any other verdict, including a pass, is possible, because the result does not depend on the input alone.
    #[serde(default)]
    pub varies: bool,
    /// The releases of the implementations that the entry applies to; `None` for all.
    #[serde(default, deserialize_with = "from_text_if_any")]
    pub releases: Option<Releases>,
    /// The names of the implementations that the entry applies to, as a glob; `None` for all.
    pub implementation: Option<String>,
    /// The versions of the implementations that the entry applies to; empty for all.
    #[serde(default)]
    pub versions: Vec<String>,
    /// The reason of the failure.
    pub reason: String,
    /// The place of a discussion.
    pub url: Option<String>,
    /// The last day, `YYYY-MM-DD`, on which the failure is excused.
    #[serde(default, deserialize_with = "date")]
    pub expires: Option<String>,
}

/// Returns the lists in `conformance/known/`, by file name.
pub fn embedded() -> &'static [(&'static str, KnownFailures)] {
    static LISTS: OnceLock<Vec<(&str, KnownFailures)>> = OnceLock::new();
    LISTS.get_or_init(|| {
        // A test of `tests/suite` fails for a list that does not parse.
        let read = |text| KnownFailures::parse(text).unwrap_or_default();
        spec::KNOWN
            .iter()
            .map(|(file, text)| (*file, read(text)))
            .collect()
    })
}

/// The verdicts that fail every run.
const FAILURES: [&str; 5] = ["fail", "crash", "hang", "out-of-memory", "protocol-error"];

/// The verdicts that fail only a run that must be complete. An entry may also name them.
const GAPS: [&str; 2] = ["unsupported", "skipped"];

impl KnownFailures {
    /// Reads the TOML text of a known-failures file.
    ///
    /// # Errors
    ///
    /// A [`ParseError`] with the number of the entry and the missing or malformed member.
    pub fn parse(text: &str) -> Result<KnownFailures, ParseError> {
        let known: KnownFailures =
            toml::from_str(text).map_err(|error| ParseError::new(error.to_string()))?;
        for (entry, number) in known.entries.iter().zip(1..) {
            let wrong = |why: String| ParseError::new(format!("entry {number}: {why}"));
            let verdicts = [&FAILURES[..], &GAPS[..]].concat();
            if !verdicts.contains(&entry.verdict.as_str()) {
                let (verdict, verdicts) = (&entry.verdict, verdicts.join(", "));
                return Err(wrong(format!("`{verdict}` is not one of {verdicts}")));
            }
            if entry.case.trim().is_empty() || entry.reason.trim().is_empty() {
                return Err(wrong("`case` or `reason` is empty".to_owned()));
            }
        }
        Ok(known)
    }

    /// Returns the entries that apply to an implementation. One that names no release may belong to any.
    #[must_use]
    pub fn applicable_to(&self, identity: &Identity) -> KnownFailures {
        let Identity {
            name,
            version,
            releases,
            ..
        } = identity;
        let named = || {
            releases
                .iter()
                .filter_map(|name| name.parse::<Release>().ok())
        };
        // An implementation that names no release may belong to any, so no entry is excluded.
        let has_name = |entry: &&KnownFailure| match &entry.implementation {
            None => true,
            Some(pattern) => glob(pattern, name),
        };
        let has_version =
            |entry: &&KnownFailure| entry.versions.is_empty() || entry.versions.contains(version);
        let is_about = |entry: &&KnownFailure| match entry.releases {
            None => true,
            Some(range) => releases.is_empty() || named().any(|release| range.contains(release)),
        };
        KnownFailures {
            entries: self
                .entries
                .iter()
                .filter(has_name)
                .filter(has_version)
                .filter(is_about)
                .cloned()
                .collect(),
        }
    }

    /// Returns the entry that excuses `verdict` for the case `id` on the day `today`.
    pub fn excuse(&self, id: &str, verdict: &Verdict, today: &str) -> Option<&KnownFailure> {
        self.entries
            .iter()
            // An expired entry excuses nothing: its failures count again, and `problems` names it.
            .filter(|entry| entry.is_valid(today) && glob(&entry.case, id))
            .find(|entry| {
                // An entry with `varies` excuses every kind of failure, but not a missing operation, which does not depend on
                // memory.
                entry.verdict == verdict.name()
                    || entry.varies && FAILURES.contains(&verdict.name())
            })
    }

    /// Returns the errors of the file: entries that match none of `all` cases or have expired, and cases of `results` that pass
    /// despite an entry.
    pub fn problems<'a>(
        &self,
        all: impl Iterator<Item = &'a str> + Clone,
        results: impl Iterator<Item = (&'a str, &'a Verdict)> + Clone,
        today: &str,
    ) -> Vec<String> {
        let mut problems = Vec::new();
        for entry in &self.entries {
            if !all.clone().any(|id| glob(&entry.case, id)) {
                problems.push(format!("known failure `{}` matches no case", entry.case));
            }
            if !entry.is_valid(today) {
                let expiry = entry.expires.as_deref().unwrap_or_default();
                problems.push(format!(
                    "known failure `{}` expired on {expiry}",
                    entry.case
                ));
            }
            for (id, verdict) in results.clone().filter(|_| !entry.varies) {
                if *verdict == Verdict::Pass && glob(&entry.case, id) {
                    problems.push(format!(
                        "{id} passes, but `{}` says that it is known to {}",
                        entry.case, entry.verdict
                    ));
                }
            }
        }
        problems
    }
}

impl KnownFailure {
    fn is_valid(&self, today: &str) -> bool {
        // ISO dates sort as text.
        self.expires
            .as_deref()
            .is_none_or(|expires| today <= expires)
    }
}

/// Reads a date `YYYY-MM-DD`, with or without quotes. Such texts sort by time.
fn date<'v, D: Deserializer<'v>>(form: D) -> Result<Option<String>, D::Error> {
    let date = match toml::Value::deserialize(form)? {
        toml::Value::String(text) => text,
        toml::Value::Datetime(date) => date.to_string(),
        _ => String::new(),
    };
    let is_date = date.len() == 10
        && date.bytes().enumerate().all(|(index, byte)| match index {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        });
    if is_date {
        Ok(Some(date))
    } else {
        Err(D::Error::custom("not a date YYYY-MM-DD"))
    }
}

/// Returns whether `text` matches `pattern`, in which `*` stands for any text and `?` for one character.
pub fn glob(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut at, mut from) = (0, 0);
    // Backtracking only to the last star is enough. With all stars, a pattern of many takes exponential time.
    let mut star: Option<(usize, usize)> = None;
    while from < text.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, from));
                at += 1;
            }
            Some(letter) if *letter == b'?' || *letter == text[from] => {
                at += 1;
                from += 1;
            }
            _ => match star {
                // The last star takes one more character.
                Some((place, taken)) => {
                    star = Some((place, taken + 1));
                    (at, from) = (place + 1, taken + 1);
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|letter| *letter == b'*')
}

/// Returns the present day in UTC as `YYYY-MM-DD`.
pub fn current_date() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let days = since.map_or(0, |since| since.as_secs() / 86_400);
    let (mut year, mut left) = (1970, days);
    let leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    while left >= 365 + u64::from(leap(year)) {
        left -= 365 + u64::from(leap(year));
        year += 1;
    }
    let february = 28 + u64::from(leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if left < length {
            break;
        }
        left -= length;
        month += 1;
    }
    format!("{year:04}-{month:02}-{:02}", left + 1)
}
