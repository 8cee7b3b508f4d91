//! Testees with wrong answers. A useful suite must fail each of them.

use super::builtin::BuiltinTestee;
use super::{Identity, Rejection, Reply, Testee};
use crate::release::ParseError;
use crate::rule::Kind;
use serde_json::{Value, json};
use std::str::FromStr;
use std::time::Duration;

/// A kind of wrong behaviour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Liar {
    /// Accepts everything, without any content.
    AcceptAll,
    /// Rejects everything, without a reason.
    RejectAll,
    /// Always returns the same value.
    Constant,
    /// Returns its input.
    Echo,
    /// Crashes without an answer.
    Crash,
    /// Never answers.
    Hang,
    /// Answers with text that is not JSON.
    Garbage,
    /// Answers correctly, except that every offset is larger by one.
    Misplace,
    /// Answers correctly, but states the fault only for truncated input.
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

    /// Returns the name on the command line.
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
    /// Returns an identity without operations and releases, so that it gets every case.
    fn identity(&self) -> Identity {
        Identity {
            name: format!("liar:{}", self.name()),
            version: "0".to_owned(),
            ..Identity::default()
        }
    }

    /// Answers wrongly. The last two liars take the correct answer and change one part, which a comparison of verdicts alone does
    /// not notice.
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
            // Not a panic, which `InProcess` survives: this must end the process.
            Liar::Crash => std::process::abort(),
            Liar::Hang => loop {
                std::thread::sleep(Duration::from_secs(3600));
            },
            Liar::Garbage => Reply::ProtocolError("<html>502 Bad Gateway</html>".to_owned()),
            Liar::Misplace => misplaced(BuiltinTestee.answer(op, args)),
            Liar::Vague => remove_fault(BuiltinTestee.answer(op, args)),
        }
    }
}

/// Increases every offset of a reply by one.
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

/// Removes the stated fault from a reply, unless the input was truncated.
fn remove_fault(reply: Reply) -> Reply {
    match reply {
        // A testee that states a part once must state it in every answer. This liar states the parts only here.
        Reply::Reject(rejection) if rejection.kind.as_deref() != Some(Kind::Truncated.name()) => {
            Reply::Reject(Rejection {
                message: rejection.message,
                ..Rejection::default()
            })
        }
        reply => reply,
    }
}
