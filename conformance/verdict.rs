//! What is said of one case, and how an answer is compared with what was expected.

use super::adapter::{Rejection, Reply, view};
use super::case::{Case, Expect};
use super::said::plain;
use crate::rule::Level;
use crate::spec;
use serde_json::Value;
use std::collections::BTreeSet;

/// The word for one case.
///
/// ```
/// use tvmspec::conformance::adapter::{Identity, InProcess, Reply, Testee};
/// use tvmspec::conformance::case::Suite;
/// use tvmspec::conformance::runner::{Run, Selection, run};
/// use tvmspec::conformance::verdict::{Mismatch, Verdict};
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
/// let wire = Selection { chapters: vec!["wire".into()], ..Selection::default() };
/// let report = run(Suite::embedded(), &mut InProcess(Null), &Run { selection: wire, ..Run::default() }).unwrap();
/// assert!(report.was_judged() && !report.is_good());
/// for outcome in report.results.iter().filter(|outcome| outcome.is_failure()) {
///     assert!(outcome.verdict.is_failure());
///     if let Verdict::Fail(Mismatch { expected, actual, .. }) = &outcome.verdict {
///         println!("{}: expected {expected}, got {actual}", outcome.case.id);
///     }
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The answer is the expected one.
    Pass,
    /// The answer is another.
    Fail(Mismatch),
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
pub struct Mismatch {
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

    /// What is said beside the name; empty for a pass.
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
/// A rejection passes when one was expected and everything that the testee tells of it is right: the kind; the offset if
/// the case states one; the rule, which must be among the rules of the case. A value where a LIMIT is broken and nothing else
/// is unsupported: that bound is this crate's. A value passes when it is equal (see
/// [`same`]) and the findings, if told, are those of the case.
pub fn judge(case: &Case, reply: Reply) -> Verdict {
    match (reply, &case.expect) {
        (Reply::Unsupported(why), _) => Verdict::Unsupported(plain(&why)),
        (Reply::Skipped(why), _) => Verdict::Skipped(plain(&why)),
        (Reply::Crash(how), _) => Verdict::Crash(plain(&how)),
        (Reply::Hang(how), _) => Verdict::Hang(plain(&how)),
        (Reply::OutOfMemory(how), _) => Verdict::OutOfMemory(plain(&how)),
        (Reply::ProtocolError(how), _) => Verdict::ProtocolError(plain(&how)),
        (Reply::Ok { .. } | Reply::Seen { .. } | Reply::Reject(_), Expect::Either) => Verdict::Pass,
        (Reply::Seen { view, value }, Expect::Accept(expected)) => {
            match view::view(&view, expected) {
                Some(expected) => match difference(&expected, &value, false) {
                    Some(mismatch) => Verdict::Fail(mismatch),
                    None => Verdict::Pass,
                },
                None => {
                    let wrong = format!("`{view}` is no view of what is expected");
                    Verdict::ProtocolError(plain(&wrong))
                }
            }
        }
        (Reply::Ok { value, findings }, Expect::Accept(expected)) => {
            if let Some(mismatch) = difference(expected, &value, is_encode(case)) {
                return Verdict::Fail(mismatch);
            }
            match findings {
                // A writer may note what it was asked to write, or not.
                Some(findings) if !is_encode(case) => judge_findings(case, findings),
                _ => Verdict::Pass,
            }
        }
        (Reply::Reject(rejection), Expect::Accept(_)) => {
            fail("acceptance".to_owned(), told(&rejection), rejection.offset)
        }
        (Reply::Ok { .. } | Reply::Seen { .. }, Expect::Reject(..)) if is_bound(case) => {
            Verdict::Unsupported(format!("has no bound of {}", case.rules.join(", ")))
        }
        (Reply::Ok { value, .. } | Reply::Seen { value, .. }, Expect::Reject(kind, offset)) => {
            fail(
                wanted(case, kind.name(), *offset),
                format!("acceptance: {}", short(&value)),
                *offset,
            )
        }
        (Reply::Reject(rejection), Expect::Reject(kind, offset)) => {
            let expected = wanted(case, kind.name(), *offset);
            let at = rejection.offset.or(*offset);
            let right = rejection
                .kind
                .as_deref()
                .is_none_or(|told| told == kind.name())
                && (rejection.offset.is_none() || offset.is_none() || rejection.offset == *offset)
                && rejection
                    .rule
                    .as_ref()
                    .is_none_or(|rule| case.rules.contains(rule));
            if right {
                Verdict::Pass
            } else {
                fail(expected, told(&rejection), at)
            }
        }
    }
}

/// Whether a case shows nothing but bounds of this crate, which another implementation need not have.
fn is_bound(case: &Case) -> bool {
    let mut rules = case.rules.iter().map(|id| spec::rule(id));
    rules.all(|rule| rule.is_some_and(|rule| rule.level == Level::Limit))
}

/// Whether two values are equal: object keys in any order; integers exactly; a float and an integer by their number, two
/// floats by their bits.
pub fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one
                    .iter()
                    .all(|(key, one)| other.get(key).is_some_and(|other| same(one, other)))
        }
        (Value::Number(a), Value::Number(b)) => match (a.is_f64(), b.is_f64()) {
            (false, false) => a == b,
            (true, true) => a.as_f64().map(f64::to_bits) == b.as_f64().map(f64::to_bits),
            _ => a.as_f64() == b.as_f64(),
        },
        _ => one == other,
    }
}

fn is_encode(case: &Case) -> bool {
    case.op.ends_with(".encode")
}

/// How many findings are listed.
const MOST_FINDINGS: usize = 20;

fn judge_findings(case: &Case, findings: Vec<String>) -> Verdict {
    let expected: BTreeSet<&str> = case.findings.iter().map(String::as_str).collect();
    let actual: BTreeSet<&str> = findings.iter().map(String::as_str).collect();
    if expected == actual {
        return Verdict::Pass;
    }
    let list = |rules: BTreeSet<&str>| match rules.len() {
        0 => "no finding".to_owned(),
        _ => format!("findings {}", Vec::from_iter(rules).join(", ")),
    };
    let actual = match actual.len() {
        0..=MOST_FINDINGS => list(actual),
        more => format!("findings of {more} rules"),
    };
    fail(list(expected), actual, None)
}

fn fail(expected: String, actual: String, offset: Option<u64>) -> Verdict {
    Verdict::Fail(Mismatch {
        expected,
        actual: plain(&actual),
        offset,
    })
}

fn wanted(case: &Case, kind: &str, offset: Option<u64>) -> String {
    let at = offset.map_or(String::new(), |offset| format!(" at byte {offset:#x}"));
    format!("rejection ({kind}, {}{at})", case.rules.join(" or "))
}

fn told(rejection: &Rejection) -> String {
    let kind = rejection.kind.as_deref().into_iter();
    let rule = rejection.rule.as_deref().into_iter();
    let tags: Vec<&str> = kind.chain(rule).collect();
    let tags = if tags.is_empty() {
        String::new()
    } else {
        format!(" ({})", tags.join(", "))
    };
    let at = rejection
        .offset
        .map_or(String::new(), |offset| format!(" at byte {offset:#x}"));
    format!("rejection{tags}{at}: {}", rejection.message)
}

/// The first place where two values differ; `None` when they are the same.
fn difference(expected: &Value, actual: &Value, bytes: bool) -> Option<Mismatch> {
    if same(expected, actual) {
        return None;
    }
    if bytes && let Some(mismatch) = byte_difference(expected, actual) {
        return Some(mismatch);
    }
    let mut path = String::new();
    let (expected, actual) = first_difference(expected, actual, &mut path);
    let place = if path.is_empty() {
        String::new()
    } else {
        format!("{path} = ")
    };
    // The place may be a key that the testee made up.
    Some(Mismatch {
        expected: plain(&format!("{place}{expected}")),
        actual: plain(&format!("{place}{actual}")),
        offset: None,
    })
}

fn byte_difference(expected: &Value, actual: &Value) -> Option<Mismatch> {
    use base64::prelude::{BASE64_STANDARD, Engine as _};
    let bytes = |value: &Value| BASE64_STANDARD.decode(value.as_str()?).ok();
    let (expected, actual) = (bytes(expected)?, bytes(actual)?);
    let common = expected
        .iter()
        .zip(&actual)
        .take_while(|(one, other)| one == other)
        .count();
    let say = |bytes: &[u8]| match bytes.get(common) {
        Some(byte) => format!("{} bytes, byte {common:#x} is {byte:02x}", bytes.len()),
        None => format!("{} bytes", bytes.len()),
    };
    Some(Mismatch {
        expected: say(&expected),
        actual: say(&actual),
        offset: Some(common as u64),
    })
}

fn first_difference(expected: &Value, actual: &Value, path: &mut String) -> (String, String) {
    match (expected, actual) {
        (Value::Array(one), Value::Array(other)) => {
            let differs = one
                .iter()
                .zip(other)
                .position(|(one, other)| !same(one, other));
            if let Some(index) = differs {
                path.push_str(&format!("[{index}]"));
                return first_difference(&one[index], &other[index], path);
            }
            (
                format!("{} elements", one.len()),
                format!("{} elements", other.len()),
            )
        }
        (Value::Object(one), Value::Object(other)) => {
            let keys = one
                .keys()
                .chain(other.keys().filter(|key| !one.contains_key(*key)));
            for key in keys {
                let dot = if path.is_empty() { "" } else { "." };
                match (one.get(key), other.get(key)) {
                    (Some(one), Some(other)) if !same(one, other) => {
                        path.push_str(&format!("{dot}{key}"));
                        return first_difference(one, other, path);
                    }
                    (Some(_), Some(_)) => {}
                    (one, other) => {
                        path.push_str(&format!("{dot}{key}"));
                        let say = |side: Option<&Value>| side.map_or("nothing".to_owned(), short);
                        return (say(one), say(other));
                    }
                }
            }
            (short(expected), short(actual))
        }
        _ => (short(expected), short(actual)),
    }
}

/// A value as JSON, shortened.
pub fn short(value: &Value) -> String {
    const LONGEST: usize = 200;
    let text = value.to_string();
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}... ({} bytes of JSON)", &text[..end], text.len()),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::case::{Input, Suite};
    use crate::rule::Kind;
    use serde_json::json;

    fn case(expect: Expect) -> Case {
        Case {
            expect,
            rules: vec!["WIRE-01".into()],
            input: Input::Hex(vec![]),
            findings: vec![],
            ..Suite::embedded().cases[0].clone()
        }
    }

    fn reject(kind: Option<&str>, offset: Option<u64>, rule: Option<&str>) -> Reply {
        Reply::Reject(Rejection {
            kind: kind.map(str::to_owned),
            message: String::new(),
            offset,
            rule: rule.map(str::to_owned),
        })
    }

    #[test]
    fn a_rejection_is_held_to_what_it_tells() {
        let case = case(Expect::Reject(Kind::Truncated, Some(8)));
        let verdict = |kind, offset, rule| judge(&case, reject(kind, offset, rule)).name();
        assert_eq!(verdict(None, None, None), "pass");
        assert_eq!(verdict(Some("truncated"), Some(8), Some("WIRE-01")), "pass");
        assert_eq!(verdict(Some("malformed"), None, None), "fail");
        assert_eq!(verdict(None, Some(9), None), "fail");
        assert_eq!(verdict(None, None, Some("WIRE-02")), "fail");
    }

    #[test]
    fn a_crash_is_never_a_rejection() {
        let case = case(Expect::Reject(Kind::Truncated, None));
        for reply in [
            Reply::Crash(String::new()),
            Reply::Hang(String::new()),
            Reply::OutOfMemory(String::new()),
            Reply::ProtocolError(String::new()),
        ] {
            assert!(judge(&case, reply).is_failure());
        }
        let either = super::tests::case(Expect::Either);
        assert_eq!(judge(&either, Reply::Crash(String::new())).name(), "crash");
        assert_eq!(judge(&either, reject(None, None, None)).name(), "pass");
    }

    #[test]
    fn findings_count_only_when_they_are_told() {
        let mut case = case(Expect::Accept(json!(1)));
        case.findings = vec!["WIRE-08".into()];
        let verdict = |findings: Option<Vec<String>>| {
            judge(
                &case,
                Reply::Ok {
                    value: json!(1),
                    findings,
                },
            )
            .name()
        };
        assert_eq!(verdict(None), "pass");
        assert_eq!(verdict(Some(vec!["WIRE-08".into()])), "pass");
        assert_eq!(verdict(Some(vec![])), "fail");
    }

    #[test]
    fn values_are_the_same_by_content() {
        assert!(same(&json!({"a": 1, "b": [2]}), &json!({"b": [2], "a": 1})));
        assert!(same(&json!(1), &json!(1.0)));
        assert!(!same(&json!(0.0), &json!(-0.0)));
        assert!(!same(&json!(u64::MAX), &json!(u64::MAX - 1)));
        assert!(!same(&json!({"a": 1}), &json!({"a": 1, "b": null})));
        assert!(!same(&json!([1, 2]), &json!([2, 1])));
    }

    #[test]
    fn a_mismatch_names_the_place() {
        let expected = json!({"modules": [{"kind": "_lib"}, {"kind": "cuda"}]});
        let actual = json!({"modules": [{"kind": "_lib"}, {"kind": "hip"}]});
        let mismatch = difference(&expected, &actual, false).unwrap();
        assert_eq!(mismatch.expected, "modules[1].kind = \"cuda\"");
        assert_eq!(mismatch.actual, "modules[1].kind = \"hip\"");
        let mismatch = difference(&json!("AQID"), &json!("AQMD"), true).unwrap();
        assert_eq!(mismatch.offset, Some(1));
    }
}
