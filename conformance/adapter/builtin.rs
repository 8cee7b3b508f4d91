//! The implementation of this crate, in this process.

use super::{Identity, Oddity, Rejection, Reply, Testee};
use crate::conformance::CHAPTERS;
use crate::conformance::op::{Answer, Handler, Op, OpError};
use crate::conformance::runtime::{ffi_api_of_this_crate, legacy_api_of_this_crate};
use crate::release::Release;
use crate::rule::Violation;
use serde_json::Value;

/// The built-in implementation: the operations of every chapter.
#[derive(Clone, Copy, Debug, Default)]
pub struct BuiltinTestee;

impl BuiltinTestee {
    /// Returns the operation with this name.
    pub fn op(name: &str) -> Option<&'static Op> {
        CHAPTERS
            .iter()
            .flat_map(|chapter| chapter.ops())
            .find(|op| op.name == name)
    }
}

impl Testee for BuiltinTestee {
    /// Returns every release, because an operation takes the release as an argument and none is excluded.
    fn identity(&self) -> Identity {
        Identity {
            name: env!("CARGO_PKG_NAME").to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            releases: Release::all().map(|release| release.to_string()).collect(),
            ops: CHAPTERS
                .iter()
                .flat_map(|chapter| chapter.ops())
                .filter(|op| !op.is_foreign())
                .map(|op| op.name.to_owned())
                .collect(),
        }
    }

    /// Answers with the handler of the operation, in this thread. Drivers see the exports of this crate like those of another
    /// runtime.
    fn answer(&mut self, op: &str, args: &Value) -> Reply {
        match BuiltinTestee::op(op) {
            Some(Op {
                // This crate is called through the Rust interface, which shows the whole value. The other half is for runtimes in
                // C.
                run: Handler::Here(run) | Handler::Partly(run, _) | Handler::Compiled(run),
                ..
            }) => run(args).into(),
            Some(Op {
                run: Handler::Driven(drive),
                ..
            }) => complete_findings(drive(ffi_api_of_this_crate(), args)),
            Some(Op {
                run: Handler::Legacy(drive),
                ..
            }) => complete_findings(drive(legacy_api_of_this_crate(), args)),
            Some(Op {
                run: Handler::Foreign(_),
                ..
            }) => Reply::Unsupported(format!("`{op}` is for other implementations")),
            None => Reply::Unsupported(format!("there is no operation `{op}`")),
        }
    }

    /// Returns true: this crate knows rule, kind and place of every rejection, and a missing one is a failure.
    fn answers_in_full(&self) -> bool {
        true
    }
}

/// Completes an answer that came through a C interface, which has no findings. For this crate, a missing list means that there are
/// none.
fn complete_findings(reply: Result<Reply, Reply>) -> Reply {
    match reply {
        Ok(Reply::Ok {
            value,
            findings: None,
        }) => Reply::Ok {
            value,
            findings: Some(Vec::new()),
        },
        Ok(other) | Err(other) => other,
    }
}

// An empty field is omitted. A case with a field then fails, and one without passes.
impl From<Violation> for Rejection {
    fn from(broken: Violation) -> Rejection {
        Rejection {
            kind: Some(broken.kind().name().to_owned()),
            message: broken.to_string(),
            offset: broken.offset(),
            rule: Some(broken.rule().id().to_owned()),
            field: Some(broken.field().to_owned()).filter(|field| !field.is_empty()),
        }
    }
}

impl From<Result<Answer, OpError>> for Reply {
    fn from(result: Result<Answer, OpError>) -> Reply {
        match result {
            Ok(answer) => Reply::Ok {
                value: answer.value,
                findings: Some(
                    answer
                        .findings
                        .iter()
                        .map(|finding| Oddity {
                            rule: finding.rule.id().to_owned(),
                            kind: Some(finding.kind.name().to_owned()),
                            offset: Some(finding.offset),
                        })
                        .collect(),
                ),
            },
            Err(OpError::Rejected(broken)) => Reply::Reject(broken.into()),
            Err(OpError::Unsupported(why)) => Reply::Unsupported(why),
        }
    }
}
