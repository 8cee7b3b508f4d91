//! Examination of a file without running it: its content, its faults, and the releases that load it.
//!
//! A [`Subject`] is a file to examine. It has *units*: runs of bytes of one format each. Each of its methods answers one question, as
//! plain data with a JSON form. The schemas are in `spec/schema/`:
//!
//! | method | result | JSON |
//! |---|---|---|
//! | [`Subject::inspect`] | the content of the file | `inspect.json` |
//! | [`Subject::verify`] | every broken rule and every oddity | `verify.json` |
//! | [`Subject::explain`] | how the loader of each release treats the file | `explain.json` |
//! | [`Subject::dump`] | every byte with its field and its rule | `dump.json` |
//! | [`Subject::unpack`] | the manifest and the payloads that its library binary is packed from | `manifest.json` |
//!
//! [`pack`](unpack::pack) is the inverse of `unpack`. An inspection has structs for files, parts, library binaries and modules. The
//! content of a payload depends on its kind, and is JSON in `details`: a program that prints it need not know all kinds.
//!
//! [`runtime`] compares a file with the names that one runtime registers. [`answer`] runs the first four methods by name. The command
//! line prints the results, and the C interface returns them. Neither computes anything itself. `explain` is built on [`loading`],
//! which gives the verdict of each release's loader on a library, valid or not.
//!
//! ```
//! use tvmspec::examine::Subject;
//!
//! let file = std::fs::read("golden/blob/containers/tree3-0.8.so")?;
//! let subject = Subject::open("tree3-0.8.so", &file, None)?;
//! assert!(subject.verify()?.violations.is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod command;
pub mod document;
pub mod dump;
pub mod explain;
mod foreign_format;
pub mod inspect;
pub mod loading;
pub mod manifest;
mod named_file;
mod newer_release;
mod not_examinable;
mod objects;
pub mod runtime;
mod shards;
mod subject;
mod unit;
pub mod unpack;
pub mod verify;

pub use command::{answer, answer_of_files};
pub use subject::Subject;
pub use unit::{Format, Reading, Unit};

use crate::rule::{Finding, Violation};
use crate::wire::json::object;
use serde_json::Value;
use std::fmt;

/// Returns the last part of a path, with the separators of any system.
fn base_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or_default()
}

/// The reason why a file cannot be examined: no rule is about its content, or it lacks the requested content.
///
/// Displays as one line that names the file and says what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotExaminable(String);

impl NotExaminable {
    /// Creates the error for a file whose container cannot be parsed.
    ///
    /// For commands that read units, because such a file has none. `verify` and `inspect` report the violation itself.
    pub fn broken(name: &str, broken: &Violation) -> NotExaminable {
        NotExaminable(format!(
            "{name}: the container itself is broken: {broken}. `tvmspec verify` shows the place."
        ))
    }
}

impl fmt::Display for NotExaminable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NotExaminable {}

/// Returns the JSON form of a violation: `{"rule", "kind", "offset", "field", "message"}`. The offset is null if the fault is at no
/// particular byte.
pub(crate) fn violation(broken: &Violation) -> Value {
    object([
        ("rule", broken.rule().id().into()),
        ("kind", broken.kind().name().into()),
        ("offset", broken.offset().into()),
        ("field", broken.field().into()),
        ("message", broken.message().into()),
    ])
}

/// Returns the JSON form of an oddity: `{"rule", "offset", "message"}`.
fn finding(finding: &Finding) -> Value {
    object([
        ("rule", finding.rule.id().into()),
        ("offset", finding.offset.into()),
        ("message", finding.message.as_str().into()),
    ])
}
