//! Testees that answer wrongly. The suite is worth something only if it fails each of them.

use super::builtin::BuiltinTestee;
use super::{Identity, Rejection, Reply, Testee};
use crate::release::ParseError;
use crate::rule::Kind;
use serde_json::{Value, json};
use std::str::FromStr;
use std::time::Duration;

/// A way to be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Liar {
    /// Accepts everything, and knows nothing of the content.
    AcceptAll,
    /// Rejects everything, without saying why.
    RejectAll,
    /// Always returns the same value.
    Constant,
    /// Returns its input.
    Echo,
    /// Ends without an answer.
    Crash,
    /// Never answers.
    Hang,
    /// Answers with something that is not JSON.
    Garbage,
    /// Is right, but for the place: every offset is the one behind it.
    Misplace,
    /// Is right, but states what is wrong only where the input ends too early.
    Vague,
}

impl Liar {
    /// Every liar.
    pub const ALL: [Liar; 9] = [
        Liar::AcceptAll,
        Liar::RejectAll,
        Liar::Constant,
        Liar::Echo,
        Liar::Crash,
        Liar::Hang,
        Liar::Garbage,
        Liar::Misplace,
        Liar::Vague,
    ];

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Liar::AcceptAll => "accept-all",
            Liar::RejectAll => "reject-all",
            Liar::Constant => "constant",
            Liar::Echo => "echo",
            Liar::Crash => "crash",
            Liar::Hang => "hang",
            Liar::Garbage => "garbage",
            Liar::Misplace => "misplace",
            Liar::Vague => "vague",
        }
    }
}

impl FromStr for Liar {
    type Err = ParseError;

    fn from_str(name: &str) -> Result<Liar, ParseError> {
        let names = Liar::ALL.map(Liar::name).join(", ");
        Liar::ALL
            .into_iter()
            .find(|liar| liar.name() == name)
            .ok_or_else(|| ParseError::new(format!("`{name}` is not a liar: there are {names}")))
    }
}

impl Testee for Liar {
    /// It states no operations and no releases, so that it is put every case.
    fn identity(&self) -> Identity {
        Identity {
            name: format!("liar:{}", self.name()),
            version: "0".to_owned(),
            ..Identity::default()
        }
    }

    /// The last two ask our own implementation, and spoil one part of its answer: who compares verdicts alone does not notice them.
    fn answer(&mut self, op: &str, args: &Value) -> Reply {
        let ok = |value| Reply::Ok {
            value,
            findings: None,
        };
        match self {
            Liar::AcceptAll => ok(Value::Null),
            Liar::RejectAll => Reply::Reject(Rejection {
                message: "no".to_owned(),
                ..Rejection::default()
            }),
            Liar::Constant => ok(json!({"layout": "0.22", "modules": [{"kind": "_lib"}]})),
            Liar::Echo => ok(args
                .get("data")
                .or_else(|| args.get("value"))
                .unwrap_or(args)
                .clone()),
            // No panic, which `InProcess` survives: this one ends its process.
            Liar::Crash => std::process::abort(),
            Liar::Hang => loop {
                std::thread::sleep(Duration::from_secs(3600));
            },
            Liar::Garbage => Reply::ProtocolError("<html>502 Bad Gateway</html>".to_owned()),
            Liar::Misplace => misplaced(BuiltinTestee.answer(op, args)),
            Liar::Vague => vague(BuiltinTestee.answer(op, args)),
        }
    }
}

/// The reply with every offset one further on.
fn misplaced(mut reply: Reply) -> Reply {
    let behind = |offset: &mut u64| *offset = offset.saturating_add(1);
    match &mut reply {
        Reply::Reject(rejection) => rejection.offset.iter_mut().for_each(behind),
        Reply::Ok { findings, .. } => {
            let findings = findings.iter_mut().flatten();
            findings
                .filter_map(|one| one.offset.as_mut())
                .for_each(behind);
        }
        _ => {}
    }
    reply
}

/// The reply without what it states, unless the input was truncated.
fn vague(reply: Reply) -> Reply {
    match reply {
        // A testee is held in every answer to the parts that it states in one: this liar states them in these alone.
        Reply::Reject(rejection) if rejection.kind.as_deref() != Some(Kind::Truncated.name()) => {
            Reply::Reject(Rejection {
                message: rejection.message,
                ..Rejection::default()
            })
        }
        reply => reply,
    }
}
