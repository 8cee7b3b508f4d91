//! What every release makes of what names a target.

use super::Target;
use super::kind::Targets;
use crate::release::{Release, Releases};
use crate::rule::Violation;
use serde_json::{Value, json};

/// What each release makes of what names a target: the target, or the rule that it breaks there.
///
/// ```
/// use tvmspec::release::Release;
/// use tvmspec::target::account;
///
/// let account = account("llvm -mcpu=skylake");
/// let rows = account.rows();
/// // TGT-30: the command line ended with 0.23.
/// assert_eq!(rows.last().expect("a release").0.since, Release::of(24));
/// assert!(rows.last().expect("a release").1.is_err());
/// assert_eq!(account.newest().expect("0.23 reads it").release, Release::of(23));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct TargetAccount {
    /// By release, ascending.
    readings: Vec<(Release, Result<Target, Violation>)>,
}

/// What each release makes of `text`, with its own kinds and tags, on a machine without devices and without LLVM.
pub fn account(text: &str) -> TargetAccount {
    TargetAccount::of(|release| Targets::new(release).read(text))
}

impl TargetAccount {
    /// What `read` returns for each release: with kinds of a process, on a machine, or of a device.
    pub fn of(read: impl Fn(Release) -> Result<Target, Violation>) -> TargetAccount {
        TargetAccount {
            readings: Release::all()
                .map(|release| (release, read(release)))
                .collect(),
        }
    }

    /// The target of the newest release that accepts it; `None` where all reject it.
    pub fn newest(&self) -> Option<&Target> {
        let newest_first = self.readings.iter().rev();
        newest_first
            .filter_map(|(_, reading)| reading.as_ref().ok())
            .next()
    }

    /// Ascending ranges of releases that make the same of it, each with what its first one makes of it.
    pub fn rows(&self) -> Vec<(Releases, &Result<Target, Violation>)> {
        let mut rows: Vec<(Releases, &Result<Target, Violation>)> = Vec::new();
        for (release, reading) in &self.readings {
            match rows.last_mut() {
                Some((releases, before)) if is_same(before, reading) => releases.until = *release,
                _ => rows.push((
                    Releases {
                        since: *release,
                        until: *release,
                    },
                    reading,
                )),
            }
        }
        rows
    }

    /// The rows: `[{"releases": "0.7..0.23", "target": {..}}, {"releases": "0.24..", "rejected": {"rule", "kind", "message"}}]`.
    pub fn to_json(&self) -> Value {
        let rows = self.rows().into_iter().map(|(releases, reading)| {
            let releases = releases.short();
            match reading {
                Ok(target) => json!({"releases": releases, "target": target.export()}),
                Err(broken) => {
                    json!({"releases": releases, "rejected": TargetAccount::rejection(broken)})
                }
            }
        });
        rows.collect()
    }

    /// The JSON form of a rejection: `{"rule", "kind", "message"}`.
    pub fn rejection(broken: &Violation) -> Value {
        json!({"rule": broken.rule().id(), "kind": broken.kind().name(), "message": broken.message()})
    }
}

/// Whether two releases make the same of it: the release is in the target, and no difference.
fn is_same(left: &Result<Target, Violation>, right: &Result<Target, Violation>) -> bool {
    match (left, right) {
        (Ok(left), Ok(right)) => {
            // TGT-60: the device type is no member of what is exported, so that it is compared beside it.
            left.export() == right.export() && left.device_type == right.device_type
        }
        (Err(left), Err(right)) => left.rule() == right.rule() && left.message() == right.message(),
        _ => false,
    }
}
