//! What is in a file, what is wrong with it, and who reads it, without running it.
//!
//! A [`Subject`] is a file that was looked into: its container, and its *units*, runs of bytes of one format each. Every function
//! here answers one question about it, as plain data with a JSON form, whose schema is in `spec/schema/`:
//!
//! | function | what it returns | JSON |
//! |---|---|---|
//! | [`inspect`](inspect::inspect) | what is in it | `inspect.json` |
//! | [`verify`](verify::verify) | every rule that it breaks, and every oddity | `verify.json` |
//! | [`explain`](explain::explain) | what the loader of each release makes of it | `explain.json` |
//! | [`dump`](dump::dump) | every byte with its field and its rule | `dump.json` |
//! | [`unpack`](unpack::unpack) | the manifest and the payloads that its library binary is packed from | `manifest.json` |
//!
//! [`pack`](unpack::pack) is the inverse of the last. An inspection is JSON by design, with no struct behind it: its members are those of
//! the kinds of module and of file that there are, and grow with them, and who prints it need not know each.
//!
//! [`runtime`] holds a file against what one runtime registers. [`answer`] has the first four by name. The command line prints them and the C interface returns them; neither computes anything of its own.
//! [`loading`] is beneath `explain`: what the loader of each release makes of a library, whether or not the library keeps the rules.
//!
//! ```
//! use tvmspec::examine::{Subject, verify::verify};
//!
//! let file = std::fs::read("golden/blob/containers/tree3-0.8.so")?;
//! let subject = Subject::open("tree3-0.8.so", &file, None)?;
//! let verification = verify(&subject, |_| {})?;
//! assert!(verification.violations.is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod answer;
pub mod document;
pub mod dump;
pub mod explain;
pub mod inspect;
pub mod loading;
pub mod manifest;
mod named;
mod nothing;
mod objects;
mod other_format;
pub mod runtime;
mod shards;
mod subject;
mod unit;
pub mod unpack;
pub mod verify;

pub use answer::{answer, answer_of_files};
pub use subject::Subject;
pub use unit::{Format, Reading, Unit};

use crate::rule::{Finding, Violation};
use crate::wire::json::object;
use serde_json::Value;
use std::fmt;

/// The last part of a path, whichever system wrote it.
fn base_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or_default()
}

/// Why a file has no answer: it has nothing that any rule is about, or not what was asked for.
///
/// It displays as one line that names the file and says what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotExaminable(String);

impl NotExaminable {
    /// Of the file of this name, whose container itself is broken.
    ///
    /// For commands that read units, of which a file has none then; `verify` and `inspect` report the violation itself.
    pub fn broken(name: &str, broken: &Violation) -> NotExaminable {
        NotExaminable(format!(
            "{name}: the container itself is broken, {broken}; `tvmspec verify` shows where"
        ))
    }
}

impl fmt::Display for NotExaminable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NotExaminable {}

/// The JSON form of a violation: `{"rule", "kind", "offset", "field", "message"}`. The offset is null where no byte is at fault.
pub(crate) fn violation(broken: &Violation) -> Value {
    object([
        ("rule", broken.rule().id().into()),
        ("kind", broken.kind().name().into()),
        ("offset", broken.offset().into()),
        ("field", broken.field().into()),
        ("message", broken.message().into()),
    ])
}

/// The JSON form of an oddity: `{"rule", "offset", "message"}`.
fn finding(finding: &Finding) -> Value {
    object([
        ("rule", finding.rule.id().into()),
        ("offset", finding.offset.into()),
        ("message", finding.message.as_str().into()),
    ])
}
