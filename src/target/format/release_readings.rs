//! The reading of one target by every release.

use super::Target;
use super::kind::Targets;
use crate::release::{Release, Releases};
use crate::rule::{Rule, Violation};
use serde_core::ser::{Serialize, Serializer};
use serde_json::{Value, json};
use std::fmt;

/// The reading of a target by one release: the target, or the broken rule.
type Reading = Result<Target, Violation>;

/// The readings of a target by every release: for each release the target, or the rule that it breaks in that release.
///
/// The JSON form is that of the rows: `[{"releases": "0.7..0.23", "target": {..}}, {"releases": "0.24..", "rejected": {"rule",
/// "kind", "message"}}]`.
///
/// ```
/// use tvmspec::release::Release;
/// use tvmspec::target::readings_by_release;
///
/// let account = readings_by_release("llvm -mcpu=skylake");
/// // TGT-30: the command line ended with 0.23.
/// let (releases, reading) = account.rows().last().expect("a release");
/// assert_eq!(releases.since, Release::of(24));
/// assert!(reading.is_err());
/// assert_eq!(account.newest().expect("0.23 reads it").release, Release::of(23));
/// ```
// Targets are read again when needed, because a target takes many times the memory of its text.
pub struct TargetAccount<R> {
    /// Returns the reading of a release.
    read: R,
    /// The ascending ranges of releases with the same reading.
    spans: Vec<Releases>,
    /// The newest release that accepts the target.
    newest: Option<Release>,
}

/// Returns the readings of `text` by every release, with its own kinds and tags, on a machine without devices and without LLVM.
pub fn readings_by_release(text: &str) -> TargetAccount<impl Fn(Release) -> Reading> {
    TargetAccount::of(|release| Targets::new(release).read(text))
}

impl<R: Fn(Release) -> Reading> TargetAccount<R> {
    /// Collects the results of `read` for each release. `read` must return the same each time. It may use registered kinds, a
    /// machine or a device.
    pub fn of(read: R) -> TargetAccount<R> {
        let (mut spans, mut newest, mut before) = (Vec::<Releases>::new(), None, None);
        for release in Release::all() {
            let reading = read(release);
            if reading.is_ok() {
                newest = Some(release);
            }
            let form = Some(ReadingForm::of(&reading));
            match spans.last_mut() {
                Some(releases) if form == before => releases.until = release,
                _ => spans.push(Releases {
                    since: release,
                    until: release,
                }),
            }
            before = form;
        }
        TargetAccount {
            read,
            spans,
            newest,
        }
    }

    /// Returns the target of the newest release that accepts it, or `None` if all reject it.
    pub fn newest(&self) -> Option<Target> {
        (self.read)(self.newest?).ok()
    }

    /// Returns the ascending ranges of releases with the same reading, each with the reading of its first release.
    pub fn rows(&self) -> impl Iterator<Item = (Releases, Reading)> {
        let spans = self.spans.iter();
        spans.map(|releases| (*releases, (self.read)(releases.since)))
    }
}

impl<R: Fn(Release) -> Reading> Serialize for TargetAccount<R> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.rows().map(|(releases, reading)| {
            let releases = releases.short();
            match reading {
                Ok(target) => json!({"releases": releases, "target": target}),
                Err(broken) => json!({"releases": releases, "rejected": rejection(&broken)}),
            }
        }))
    }
}

impl<R> fmt::Debug for TargetAccount<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TargetAccount")
            .field("spans", &self.spans)
            .field("newest", &self.newest)
            .finish_non_exhaustive()
    }
}

/// Returns the JSON form of a rejection: `{"rule", "kind", "message"}`.
pub fn rejection(broken: &Violation) -> Value {
    json!({"rule": broken.rule().id(), "kind": broken.kind().name(), "message": broken.message()})
}

/// The part of a reading that is compared between releases. It excludes the release, which the target contains.
#[derive(PartialEq)]
enum ReadingForm {
    // TGT-60: the export does not contain the device type, so that is compared separately.
    Read(String, i64),
    Broken(Rule, String),
}

impl ReadingForm {
    fn of(reading: &Reading) -> ReadingForm {
        match reading {
            Ok(target) => ReadingForm::Read(target.export_text(), target.device_type),
            Err(broken) => ReadingForm::Broken(broken.rule(), broken.message().to_owned()),
        }
    }
}
