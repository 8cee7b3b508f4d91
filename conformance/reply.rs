//! What an implementation answers: a value, a rejection, or that there is no answer.

use serde_json::{Value, json};

/// Who answers, and what it can.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// Name of the implementation.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The TVM releases that it stands for, such as `0.8`; empty for all.
    pub releases: Vec<String>,
    /// The operations that it knows; empty for "ask me".
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
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Oddity {
    /// Id of the rule that is not kept.
    pub rule: String,
    /// A kind of [`crate::rule::Kind`], by name.
    pub kind: Option<String>,
    /// Byte offset from the start of the input.
    pub offset: Option<u64>,
}

impl Oddity {
    /// As an answer lists it: rule, kind and byte.
    pub(crate) fn to_json(&self) -> Value {
        let mut finding = json!({"rule": self.rule});
        if let Some(kind) = &self.kind {
            finding["kind"] = kind.as_str().into();
        }
        if let Some(offset) = self.offset {
            finding["offset"] = offset.into();
        }
        finding
    }
}

/// A rejection. Everything but the message is optional: what is stated is compared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rejection {
    /// A kind of [`crate::rule::Kind`], by name.
    pub kind: Option<String>,
    /// For people.
    pub message: String,
    /// Byte offset from the start of the input.
    pub offset: Option<u64>,
    /// Id of the rule that is broken.
    pub rule: Option<String>,
    /// Path of the field that breaks it, such as `modules[1].kind`.
    pub field: Option<String>,
}
