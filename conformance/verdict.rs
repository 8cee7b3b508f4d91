//! The verdict of one case, and how an answer is compared with what was expected: values in `sameness`, findings in
//! `findings`, a rejection here; `judgement` has how much of it there was to compare.

mod findings;
mod judgement;
mod sameness;

use super::adapter::{Rejection, Reply, view};
use super::case::{Breach, Case, Expect};
use super::parts::Parts;
use super::plain_text::plain;
use super::target::driver::declines;
use crate::rule::Level;
use crate::spec;
use findings::{judge_findings, listed};
pub use judgement::Judgement;
use sameness::difference;
pub use sameness::{same, short};

/// The word for one case.
///
/// ```
/// use tvmspec::conformance::adapter::{Identity, InProcess, Reply, Testee};
/// use tvmspec::conformance::case::Suite;
/// use tvmspec::conformance::runner::{Run, run};
/// use tvmspec::conformance::verdict::{AnswerMismatch, Verdict};
///
/// struct Null;
/// impl Testee for Null {
///     fn identity(&self) -> Identity {
///         Identity::default()
///     }
///     fn answer(&mut self, _op: &str, _args: &serde_json::Value) -> Reply {
///         Reply::Ok { value: serde_json::Value::Null, findings: None }
///     }
/// }
///
/// let mut order = Run::default();
/// order.selection.chapters = vec!["wire".into()];
/// let report = run(Suite::embedded(), &mut InProcess(Null), &order).unwrap();
/// assert!(report.was_judged() && !report.is_good());
/// for outcome in report.results.iter().filter(|outcome| outcome.is_failure()) {
///     assert!(outcome.verdict.is_failure());
///     if let Verdict::Fail(AnswerMismatch { expected, actual, .. }) = &outcome.verdict {
///         println!("{}: expected {expected}, got {actual}", outcome.case.id);
///     }
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// The answer is the expected one.
    Pass,
    /// The answer is another.
    Fail(AnswerMismatch),
    /// The implementation does not do this.
    Unsupported(String),
    /// It ended, or panicked. Never a rejection.
    Crash(String),
    /// It did not answer in time.
    Hang(String),
    /// It ran out of memory.
    OutOfMemory(String),
    /// It answered with something that is no answer.
    ProtocolError(String),
    /// The case was not put to it.
    Skipped(String),
}

/// Expected against actual, for people.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AnswerMismatch {
    /// What was expected.
    pub expected: String,
    /// What came.
    pub actual: String,
    /// The byte of the input (or, for `encode`, of the output) that it is about.
    pub offset: Option<u64>,
}

impl Verdict {
    /// The names of all verdicts, in the order in which reports count them.
    pub const NAMES: [&str; 8] = [
        "pass",
        "fail",
        "unsupported",
        "crash",
        "hang",
        "out-of-memory",
        "protocol-error",
        "skipped",
    ];

    /// The name: `pass`, `fail`, ...
    pub const fn name(&self) -> &'static str {
        match self {
            Verdict::Pass => "pass",
            Verdict::Fail(_) => "fail",
            Verdict::Unsupported(_) => "unsupported",
            Verdict::Crash(_) => "crash",
            Verdict::Hang(_) => "hang",
            Verdict::OutOfMemory(_) => "out-of-memory",
            Verdict::ProtocolError(_) => "protocol-error",
            Verdict::Skipped(_) => "skipped",
        }
    }

    /// Whether it counts against the implementation.
    pub const fn is_failure(&self) -> bool {
        !matches!(
            self,
            Verdict::Pass | Verdict::Unsupported(_) | Verdict::Skipped(_)
        )
    }

    /// The same of a part of the input.
    pub(super) fn of(self, part: &str) -> Verdict {
        match self {
            Verdict::Fail(mismatch) => Verdict::Fail(AnswerMismatch {
                expected: format!("of {part}: {}", mismatch.expected),
                ..mismatch
            }),
            Verdict::Crash(how) => Verdict::Crash(format!("on {part}: {how}")),
            Verdict::Hang(how) => Verdict::Hang(format!("on {part}: {how}")),
            Verdict::OutOfMemory(how) => Verdict::OutOfMemory(format!("on {part}: {how}")),
            // The reason of a line that came late is recognised by how it begins.
            other => other,
        }
    }

    /// The reason beside the name; empty for a pass.
    pub fn reason(&self) -> String {
        match self {
            Verdict::Pass => String::new(),
            Verdict::Fail(mismatch) => {
                format!("expected {}, got {}", mismatch.expected, mismatch.actual)
            }
            Verdict::Unsupported(why)
            | Verdict::Crash(why)
            | Verdict::Hang(why)
            | Verdict::OutOfMemory(why)
            | Verdict::ProtocolError(why)
            | Verdict::Skipped(why) => why.clone(),
        }
    }
}

/// Compares the reply with what the case expects.
///
/// A rejection passes when one was expected and everything that the testee states of it is right: kind, rule, offset and field.
/// A value where a LIMIT is broken and nothing else is unsupported: that bound is this crate's. A value passes when it is equal
/// (see [`same`]) and the findings, if stated, are those of the case, each with its kind and offset if these are stated.
pub fn judge(case: &Case, reply: &Reply) -> Judgement {
    let verdict = match (reply, &case.expect) {
        // Answers that are none come first: whatever the case expects, they are never a pass.
        (Reply::Unsupported(why), _) => Verdict::Unsupported(plain(why)),
        (Reply::Skipped(why), _) => Verdict::Skipped(plain(why)),
        (Reply::Crash(how), _) => Verdict::Crash(plain(how)),
        (Reply::Hang(how), _) => Verdict::Hang(plain(how)),
        (Reply::OutOfMemory(how), _) => Verdict::OutOfMemory(plain(how)),
        (Reply::ProtocolError(how), _) => Verdict::ProtocolError(plain(how)),
        // What a case leaves open is that the testee lives through it: a crash is a failure all the same.
        (Reply::Ok { .. } | Reply::Shown { .. } | Reply::Reject(_), Expect::Either) => {
            Verdict::Pass
        }
        (Reply::Shown { view, value }, Expect::Accept(expected)) => {
            match view::view(view, expected) {
                Some(expected) => match difference(&expected, value, false) {
                    Some(mismatch) => Verdict::Fail(mismatch),
                    None => Verdict::Pass,
                },
                None => {
                    // Only a worker of this program sends views; a name that is unknown here is a fault of the two, not of the runtime.
                    let wrong = format!("`{view}` is not a view of what is expected");
                    Verdict::ProtocolError(plain(&wrong))
                }
            }
        }
        (Reply::Ok { value, findings }, Expect::Accept(expected)) => {
            match difference(expected, value, is_encode(case)) {
                Some(mismatch) => Verdict::Fail(mismatch),
                // A writer may note oddities of the value that it writes, or not.
                None if is_encode(case) => Verdict::Pass,
                None => return judge_findings(case, findings.as_deref()),
            }
        }
        // TGT-88: a generator that names the operator which it has no code for leaves that out, and is not wrong about it.
        (Reply::Reject(rejection), Expect::Accept(_)) if declines(&case.op, rejection) => {
            Verdict::Unsupported(plain(&rejection.message))
        }
        (Reply::Reject(rejection), Expect::Accept(_)) => {
            fail("acceptance".to_owned(), worded(rejection), rejection.offset)
        }
        // A LIMIT binds this crate alone: who accepts more has no bound, and breaks nothing.
        (Reply::Ok { .. } | Reply::Shown { .. }, Expect::Reject(_)) if is_bound(case) => {
            Verdict::Unsupported(format!("has no bound of {}", case.rules.join(", ")))
        }
        (Reply::Ok { value, .. } | Reply::Shown { value, .. }, Expect::Reject(breach)) => fail(
            expected(case),
            format!("acceptance: {}", short(value)),
            breach.offset,
        ),
        (Reply::Reject(rejection), Expect::Reject(breach)) => {
            return judge_rejection(case, breach, rejection);
        }
    };
    Judgement::bare(verdict)
}

/// A rejection of what must be rejected: each part that the testee states is compared, and a wrong one fails the case.
fn judge_rejection(case: &Case, breach: &Breach, rejection: &Rejection) -> Judgement {
    let mut judgement = Judgement::bare(Verdict::Pass);
    let mut right = true;
    let kind = Some(breach.kind.name());
    let field = breach.field.as_deref();
    let rule = Some(breach.rule.as_str());
    // Every part is compared, also behind a wrong one: which were stated is counted for the report.
    right &= judgement.part(Parts::KIND, kind, rejection.kind.as_deref());
    right &= judgement.part(Parts::RULE, rule, rejection.rule.as_deref());
    right &= judgement.part(Parts::OFFSET, breach.offset, rejection.offset);
    right &= judgement.part(Parts::FIELD, field, rejection.field.as_deref());
    if !right {
        let at = rejection.offset.or(breach.offset);
        judgement.verdict = fail(expected(case), worded(rejection), at);
    }
    judgement
}

/// Whether a case shows nothing but bounds of this crate, which another implementation need not have.
fn is_bound(case: &Case) -> bool {
    let mut rules = case.rules.iter().map(|id| spec::rule(id));
    // All of them: a case that shows a MUST beside a LIMIT is to be rejected by every implementation.
    rules.all(|rule| rule.is_some_and(|rule| rule.level == Level::Limit))
}

fn is_encode(case: &Case) -> bool {
    case.op.ends_with(".encode")
}

/// A wrong answer. What the testee wrote is escaped before it is kept, as reports show it.
fn fail(expected: String, actual: String, offset: Option<u64>) -> Verdict {
    Verdict::Fail(AnswerMismatch {
        expected,
        actual: plain(&actual),
        offset,
    })
}

/// What is expected, in words.
pub(super) fn expected(case: &Case) -> String {
    match &case.expect {
        Expect::Accept(_) if case.findings.is_empty() => "acceptance".to_owned(),
        Expect::Accept(_) => format!("acceptance with {}", listed(&case.findings)),
        Expect::Either => "any answer".to_owned(),
        Expect::Reject(breach) => {
            let tags = format!("{}, {}", breach.kind, breach.rule);
            let place = placed(breach.offset, breach.field.as_deref());
            format!("rejection ({tags}){place}")
        }
    }
}

/// A rejection in words, as the testee stated it.
fn worded(rejection: &Rejection) -> String {
    let kind = rejection.kind.as_deref().into_iter();
    let rule = rejection.rule.as_deref().into_iter();
    let tags: Vec<&str> = kind.chain(rule).collect();
    let tags = if tags.is_empty() {
        String::new()
    } else {
        format!(" ({})", tags.join(", "))
    };
    let place = placed(rejection.offset, rejection.field.as_deref());
    format!("rejection{tags}{place}: {}", rejection.message)
}

/// Where something is, in words; empty without a place.
fn placed(offset: Option<u64>, field: Option<&str>) -> String {
    let at = offset.map_or(String::new(), |offset| format!(" at byte {offset:#x}"));
    field.map_or(at.clone(), |field| format!("{at} in {field}"))
}
