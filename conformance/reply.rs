//! What an implementation answers: a value, a rejection, or that there is no answer.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// Who answers, and what it can.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Identity {
    /// Name of the implementation.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The TVM releases that it stands for, such as `0.8`; empty for all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub releases: Vec<String>,
    /// The operations that it knows; empty for "ask me".
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ops: Vec<String>,
}

/// What came back for one request.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// A value, and the tolerated oddities if the testee states them.
    Ok {
        /// In the chapter's JSON form.
        value: Value,
        /// What was odd; `None` where the testee does not report any.
        findings: Option<Vec<Oddity>>,
    },
    /// Acceptance by a runtime whose interface does not show the whole value. Only our own adapters say this.
    Shown {
        /// Which part shows: the name of a view, such as `kinds`.
        view: String,
        /// That part.
        value: Value,
    },
    /// The input was rejected.
    Reject(Rejection),
    /// The testee does not do this; says why.
    Unsupported(String),
    /// The case cannot be put here; says why. Only adapters say this, not testees.
    Skipped(String),
    /// The process ended, or code panicked; says how.
    Crash(String),
    /// No answer in time; says how long.
    Hang(String),
    /// The process ran out of memory; says how we know.
    OutOfMemory(String),
    /// An answer that is not one; says what is wrong with it.
    ProtocolError(String),
}

/// A tolerated oddity, as a testee states it. Everything but the rule is optional: what is stated is compared.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(from = "StatedOddity")]
pub struct Oddity {
    /// Id of the rule that is not kept.
    pub rule: String,
    /// A kind of [`crate::rule::Kind`], by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Byte offset from the start of the input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
}

/// An oddity as an answer lists it: its parts, or the id of the rule alone.
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

/// A rejection. Everything but the message is optional: what is stated is compared.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
#[serde(default)]
pub struct Rejection {
    /// A kind of [`crate::rule::Kind`], by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// For people.
    #[serde(deserialize_with = "text_or_none")]
    pub message: String,
    /// Byte offset from the start of the input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// Id of the rule that is broken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Path of the field that breaks it, such as `modules[1].kind`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
}

/// Reads a text, or null for an empty one.
fn text_or_none<'v, D: Deserializer<'v>>(form: D) -> Result<String, D::Error> {
    Option::deserialize(form).map(Option::unwrap_or_default)
}
