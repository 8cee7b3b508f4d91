//! The answer of an implementation: a value, a rejection, or the reason why there is no answer.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// The name and the abilities of a testee.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Identity {
    /// The name of the implementation.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The TVM releases that it stands for, such as `0.8`; empty for all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub releases: Vec<String>,
    /// The operations that it supports; empty if it must be asked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ops: Vec<String>,
}

/// The reply to one request.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// A value, and the tolerated oddities if the testee states them.
    Ok {
        /// The value in the chapter's JSON form.
        value: Value,
        /// The oddities: empty if the testee looked for them and found none, `None` if it does not look for any. Then they are not
        /// compared.
        findings: Option<Vec<Oddity>>,
    },
    /// Acceptance by a runtime whose interface does not show the whole value. Only adapters of this crate use it.
    Shown {
        /// The visible part: the name of a view, such as `kinds`.
        view: String,
        /// The value of that part.
        value: Value,
    },
    /// A rejection of the input.
    Reject(Rejection),
    /// An unsupported operation, with the reason.
    Unsupported(String),
    /// A case that cannot run here, with the reason. Only adapters use it, not testees.
    Skipped(String),
    /// A process that ended, or a panic, with a description.
    Crash(String),
    /// No answer in time, with the duration.
    Hang(String),
    /// A process that ran out of memory, with the evidence.
    OutOfMemory(String),
    /// A malformed answer, with its fault.
    ProtocolError(String),
}

/// A tolerated oddity, as a testee states it. Everything except the rule is optional; the stated parts are compared.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(from = "StatedOddity")]
pub struct Oddity {
    /// The id of the rule that is not kept.
    pub rule: String,
    /// The name of a kind of [`crate::rule::Kind`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The byte offset from the start of the input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
}

/// An oddity as an answer lists it: its parts, or only the id of the rule.
#[derive(Deserialize)]
#[serde(untagged)]
enum StatedOddity {
    Rule(String),
    Parts {
        rule: String,
        kind: Option<String>,
        offset: Option<u64>,
    },
}

impl From<StatedOddity> for Oddity {
    fn from(stated: StatedOddity) -> Oddity {
        let (rule, kind, offset) = match stated {
            StatedOddity::Rule(rule) => (rule, None, None),
            StatedOddity::Parts { rule, kind, offset } => (rule, kind, offset),
        };
        Oddity { rule, kind, offset }
    }
}

/// A rejection. Everything except the message is optional; the stated parts are compared.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
#[serde(default)]
pub struct Rejection {
    /// The name of a kind of [`crate::rule::Kind`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The message for people.
    #[serde(deserialize_with = "text_or_none")]
    pub message: String,
    /// The byte offset from the start of the input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// The id of the broken rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The path of the faulty field, such as `modules[1].kind`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
}

/// Reads a text, or null as an empty text.
fn text_or_none<'v, D: Deserializer<'v>>(form: D) -> Result<String, D::Error> {
    Option::deserialize(form).map(Option::unwrap_or_default)
}
