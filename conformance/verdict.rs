//! The verdict of one case, and the comparison of an answer with the expected one. `equality` compares values, `findings` compares
//! findings, and this file compares rejections. `judgement` tells how much could be compared.

mod equality;
mod findings;
mod judgement;

use super::adapter::{Rejection, Reply, view};
use super::answer_parts::Parts;
use super::case::{Breach, Case, Expect};
use super::sanitized_text::sanitize;
use super::target::driver::declines;
use crate::rule::Level;
use crate::spec;
use equality::difference;
pub use equality::{short, values_equal};
use findings::{judge_findings, listed};
pub use judgement::Judgement;

/// The verdict of one case.
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
/// let report = run(Suite::expect_ours(), &mut InProcess(Null), &order).unwrap();
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
    /// The answer is correct.
    Pass,
    /// The answer is wrong.
    Fail(AnswerMismatch),
    /// The implementation does not support the operation.
    Unsupported(String),
    /// The implementation crashed or panicked. This never counts as a rejection.
    Crash(String),
    /// The implementation did not answer in time.
    Hang(String),
    /// The implementation ran out of memory.
    OutOfMemory(String),
    /// The answer was malformed.
    ProtocolError(String),
    /// The case was not run.
    Skipped(String),
}

/// The expected and the actual answer, in words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AnswerMismatch {
    /// The expected answer.
    pub expected: String,
    /// The actual answer.
    pub actual: String,
    /// The offset in the input (or, for `encode`, in the output) of the difference.
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

    /// Returns the name: `pass`, `fail`, ...
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

    /// Returns whether it counts against the implementation.
    pub const fn is_failure(&self) -> bool {
        !matches!(
            self,
            Verdict::Pass | Verdict::Unsupported(_) | Verdict::Skipped(_)
        )
    }

    /// Returns this verdict for one part of a case with several inputs.
    pub(super) fn for_part(self, part: &str) -> Verdict {
        match self {
            Verdict::Fail(mismatch) => Verdict::Fail(AnswerMismatch {
                expected: format!("of {part}: {}", mismatch.expected),
                ..mismatch
            }),
            Verdict::Crash(how) => Verdict::Crash(format!("on {part}: {how}")),
            Verdict::Hang(how) => Verdict::Hang(format!("on {part}: {how}")),
            Verdict::OutOfMemory(how) => Verdict::OutOfMemory(format!("on {part}: {how}")),
            // A late line is recognized by the beginning of its reason.
            other => other,
        }
    }

    /// Returns the reason in addition to the name; empty for a pass.
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

/// Compares the reply with the expectation of the case.
///
/// A rejection passes if one was expected and everything that the testee states about it is correct: kind, rule, offset and field.
/// If only a LIMIT is broken, a value is unsupported, because only this crate has that bound. A value passes if it is equal (see
/// [`values_equal`]) and the stated findings are those of the case. Stated kinds and offsets of findings are also compared. If the case
/// tests a decision under `Here:`, another answer is unsupported.
pub fn judge(case: &Case, reply: &Reply) -> Judgement {
    let mut judgement = compare(case, reply);
    if case.own && matches!(judgement.verdict, Verdict::Fail(_)) {
        let rules = case.rules.join(", ");
        let why = format!("does something else than this crate (`Here:` of {rules})");
        judgement.verdict = Verdict::Unsupported(why);
    }
    judgement
}

/// Judges an answer, as if the case bound every implementation.
fn compare(case: &Case, reply: &Reply) -> Judgement {
    let verdict = match (reply, &case.expect) {
        // Missing answers come first, because they never pass.
        (Reply::Unsupported(why), _) => Verdict::Unsupported(sanitize(why)),
        (Reply::Skipped(why), _) => Verdict::Skipped(sanitize(why)),
        (Reply::Crash(how), _) => Verdict::Crash(sanitize(how)),
        (Reply::Hang(how), _) => Verdict::Hang(sanitize(how)),
        (Reply::OutOfMemory(how), _) => Verdict::OutOfMemory(sanitize(how)),
        (Reply::ProtocolError(how), _) => Verdict::ProtocolError(sanitize(how)),
        // Even if a case leaves the answer open, the testee must survive it, so a crash is a failure.
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
                    // Only a worker of this program sends views. An unknown name is a fault of the two programs, not of the
                    // runtime.
                    let wrong = format!("`{view}` is not a view of the expected answer");
                    Verdict::ProtocolError(sanitize(&wrong))
                }
            }
        }
        (Reply::Ok { value, findings }, Expect::Accept(expected)) => {
            match difference(expected, value, is_encode(case)) {
                Some(mismatch) => Verdict::Fail(mismatch),
                // The findings of a writer about the value that it writes are optional.
                None if is_encode(case) => Verdict::Pass,
                None => return judge_findings(case, findings.as_deref()),
            }
        }
        // TGT-88: a generator that names an operator without code does not support it, which is not wrong.
        (Reply::Reject(rejection), Expect::Accept(_)) if declines(&case.op, rejection) => {
            Verdict::Unsupported(sanitize(&rejection.message))
        }
        (Reply::Reject(rejection), Expect::Accept(_)) => fail(
            "acceptance".to_owned(),
            describe_rejection(rejection),
            rejection.offset,
        ),
        // A LIMIT binds only this crate. An implementation that accepts more has no such bound, and breaks nothing.
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
    Judgement::without_parts(verdict)
}

/// Judges the rejection of an invalid input: each part that the testee states is compared, and a wrong one fails the case.
fn judge_rejection(case: &Case, breach: &Breach, rejection: &Rejection) -> Judgement {
    let mut judgement = Judgement::without_parts(Verdict::Pass);
    let mut right = true;
    let kind = Some(breach.kind.name());
    let field = breach.field.as_deref();
    let rule = Some(breach.rule.as_str());
    // Every part is compared, even after a wrong one, because the report counts the stated parts.
    right &= judgement.compare_part(Parts::KIND, kind, rejection.kind.as_deref());
    right &= judgement.compare_part(Parts::RULE, rule, rejection.rule.as_deref());
    right &= judgement.compare_part(Parts::OFFSET, breach.offset, rejection.offset);
    right &= judgement.compare_part(Parts::FIELD, field, rejection.field.as_deref());
    if !right {
        let at = rejection.offset.or(breach.offset);
        judgement.verdict = fail(expected(case), describe_rejection(rejection), at);
    }
    judgement
}

/// Returns whether a case tests only bounds of this crate, which another implementation need not have.
fn is_bound(case: &Case) -> bool {
    let mut rules = case.rules.iter().map(|id| spec::rule(id));
    // All rules must be limits, because every implementation must reject a case that also tests a MUST.
    rules.all(|rule| rule.is_some_and(|rule| rule.level == Level::Limit))
}

fn is_encode(case: &Case) -> bool {
    case.op.ends_with(".encode")
}

/// Creates the verdict of a wrong answer. The testee's text is escaped before it is kept, for display in reports.
fn fail(expected: String, actual: String, offset: Option<u64>) -> Verdict {
    Verdict::Fail(AnswerMismatch {
        expected,
        actual: sanitize(&actual),
        offset,
    })
}

/// Describes the expected answer.
pub(super) fn expected(case: &Case) -> String {
    match &case.expect {
        Expect::Accept(_) if case.findings.is_empty() => "acceptance".to_owned(),
        Expect::Accept(_) => format!("acceptance with {}", listed(&case.findings)),
        Expect::Either => "any answer".to_owned(),
        Expect::Reject(breach) => {
            let tags = format!("{}, {}", breach.kind, breach.rule);
            let place = describe_location(breach.offset, breach.field.as_deref());
            format!("rejection ({tags}){place}")
        }
    }
}

/// Describes a rejection as the testee stated it.
fn describe_rejection(rejection: &Rejection) -> String {
    let kind = rejection.kind.as_deref().into_iter();
    let rule = rejection.rule.as_deref().into_iter();
    let tags: Vec<&str> = kind.chain(rule).collect();
    let tags = if tags.is_empty() {
        String::new()
    } else {
        format!(" ({})", tags.join(", "))
    };
    let place = describe_location(rejection.offset, rejection.field.as_deref());
    format!("rejection{tags}{place}: {}", rejection.message)
}

/// Describes a place; empty without a place.
fn describe_location(offset: Option<u64>, field: Option<&str>) -> String {
    let at = offset.map_or(String::new(), |offset| format!(" at byte {offset:#x}"));
    field.map_or(at.clone(), |field| format!("{at} in {field}"))
}
