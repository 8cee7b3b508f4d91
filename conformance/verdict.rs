//! What is said of one case, and how an answer is compared with what was expected.

use super::adapter::{Oddity, Rejection, Reply, view};
use super::case::{Breach, Case, Expect};
use super::parts::Parts;
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

    /// The same of a part of the input.
    pub(super) fn of(self, part: &str) -> Verdict {
        match self {
            Verdict::Fail(mismatch) => Verdict::Fail(Mismatch {
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

/// What is said of one answer, and how much of it there was to compare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// By what the answer states.
    pub verdict: Verdict,
    /// What it states.
    pub stated: Parts,
    /// What the case states and the answer does not.
    pub unstated: Parts,
    /// What the answer states of something that has none: a field where the case has no field.
    pub surplus: Parts,
}

impl Judgement {
    /// A verdict on what has no parts to compare.
    pub(super) fn bare(verdict: Verdict) -> Judgement {
        Judgement {
            verdict,
            stated: Parts::default(),
            unstated: Parts::default(),
            surplus: Parts::default(),
        }
    }

    /// This and the judgement of what was put next, for one case that puts several inputs.
    pub(super) fn with(mut self, next: Judgement) -> Judgement {
        self.verdict = next.verdict;
        self.stated.add(next.stated);
        self.unstated.add(next.unstated);
        self.surplus.add(next.surplus);
        self
    }

    /// The same for an implementation that must state these parts wherever a case does: a pass that does not is none.
    pub fn held_to(mut self, case: &Case, parts: Parts) -> Judgement {
        // Who leaves findings out where there are none states that there are none.
        if parts.has(Parts::FINDINGS) && case.findings.is_empty() {
            self.unstated.remove(Parts::FINDINGS);
        }
        let missing = self.unstated.and(parts);
        if self.verdict == Verdict::Pass && !missing.is_empty() {
            let actual = match &case.expect {
                Expect::Reject(_) => format!("rejection without {missing}"),
                _ => format!("acceptance without {missing}"),
            };
            self.verdict = fail(expected(case), actual, None);
        }
        self
    }

    /// The same for an implementation that states everything, and nothing that is not there.
    pub fn in_full(self, case: &Case) -> Judgement {
        let mut judgement = self.held_to(case, Parts::ALL);
        let surplus = judgement.surplus;
        if judgement.verdict == Verdict::Pass && !surplus.is_empty() {
            let actual = format!("rejection with {surplus}");
            judgement.verdict = fail(expected(case), actual, None);
        }
        judgement
    }
}

/// Compares the reply with what the case expects.
///
/// A rejection passes when one was expected and everything that the testee states of it is right: kind, rule, offset and field.
/// A value where a LIMIT is broken and nothing else is unsupported: that bound is this crate's. A value passes when it is equal
/// (see [`same`]) and the findings, if stated, are those of the case, each with its kind and offset if these are stated.
pub fn judge(case: &Case, reply: &Reply) -> Judgement {
    let verdict = match (reply, &case.expect) {
        (Reply::Unsupported(why), _) => Verdict::Unsupported(plain(why)),
        (Reply::Skipped(why), _) => Verdict::Skipped(plain(why)),
        (Reply::Crash(how), _) => Verdict::Crash(plain(how)),
        (Reply::Hang(how), _) => Verdict::Hang(plain(how)),
        (Reply::OutOfMemory(how), _) => Verdict::OutOfMemory(plain(how)),
        (Reply::ProtocolError(how), _) => Verdict::ProtocolError(plain(how)),
        (Reply::Ok { .. } | Reply::Seen { .. } | Reply::Reject(_), Expect::Either) => Verdict::Pass,
        (Reply::Seen { view, value }, Expect::Accept(expected)) => {
            match view::view(view, expected) {
                Some(expected) => match difference(&expected, value, false) {
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
            match difference(expected, value, is_encode(case)) {
                Some(mismatch) => Verdict::Fail(mismatch),
                // A writer may note what it was asked to write, or not.
                None if is_encode(case) => Verdict::Pass,
                None => return judge_findings(case, findings.as_deref()),
            }
        }
        (Reply::Reject(rejection), Expect::Accept(_)) => {
            fail("acceptance".to_owned(), worded(rejection), rejection.offset)
        }
        (Reply::Ok { .. } | Reply::Seen { .. }, Expect::Reject(_)) if is_bound(case) => {
            Verdict::Unsupported(format!("has no bound of {}", case.rules.join(", ")))
        }
        (Reply::Ok { value, .. } | Reply::Seen { value, .. }, Expect::Reject(breach)) => fail(
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

fn judge_rejection(case: &Case, breach: &Breach, rejection: &Rejection) -> Judgement {
    let mut judgement = Judgement::bare(Verdict::Pass);
    let mut right = true;
    let kind = Some(breach.kind.name());
    let field = breach.field.as_deref();
    let rule = Some(breach.rule.as_str());
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

impl Judgement {
    /// Compares one part, and notes who states it. Whether it is right, as far as both do.
    fn part<T: PartialEq>(&mut self, part: Parts, expected: Option<T>, actual: Option<T>) -> bool {
        match (expected, actual) {
            (None, None) => true,
            (Some(_), None) => {
                self.unstated.add(part);
                true
            }
            (None, Some(_)) => {
                self.surplus.add(part);
                true
            }
            (Some(expected), Some(actual)) => {
                self.stated.add(part);
                expected == actual
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

/// Findings are compared by as much of each as the testee states of all of them: rules alone, each once, or every one in full.
fn judge_findings(case: &Case, findings: Option<&[Oddity]>) -> Judgement {
    let mut judgement = Judgement::bare(Verdict::Pass);
    let Some(findings) = findings else {
        judgement.unstated.add(Parts::FINDINGS);
        return judgement;
    };
    judgement.stated.add(Parts::FINDINGS);
    let all = |has: fn(&Oddity) -> bool| findings.iter().all(has);
    let kinds = all(|oddity| oddity.kind.is_some());
    let offsets = all(|oddity| oddity.offset.is_some());
    if !findings.is_empty() {
        for (part, stated) in [
            (Parts::FINDING_KINDS, kinds),
            (Parts::FINDING_OFFSETS, offsets),
        ] {
            match stated {
                true => judgement.stated.add(part),
                false => judgement.unstated.add(part),
            }
        }
    }
    let compared = |list: &[Oddity]| {
        let mut list: Vec<Oddity> = list
            .iter()
            .map(|oddity| Oddity {
                rule: oddity.rule.clone(),
                kind: oddity.kind.clone().filter(|_| kinds),
                offset: oddity.offset.filter(|_| offsets),
            })
            .collect();
        list.sort();
        if !offsets {
            list.dedup();
        }
        list
    };
    let (expected, actual) = (compared(&case.findings), compared(findings));
    if expected != actual {
        judgement.verdict = fail(listed(&expected), listed(&actual), None);
    }
    judgement
}

fn listed(findings: &[Oddity]) -> String {
    let one = |oddity: &Oddity| {
        let mut text = oddity.rule.clone();
        if let Some(kind) = &oddity.kind {
            text.push_str(&format!(" {kind}"));
        }
        if let Some(offset) = oddity.offset {
            text.push_str(&format!(" at byte {offset:#x}"));
        }
        text
    };
    match findings.len() {
        0 => "no finding".to_owned(),
        1..=MOST_FINDINGS => {
            let list: Vec<String> = findings.iter().map(one).collect();
            format!("findings {}", list.join(", "))
        }
        more => {
            let rules: BTreeSet<&str> = findings.iter().map(|one| one.rule.as_str()).collect();
            format!("{more} findings of {} rules", rules.len())
        }
    }
}

fn fail(expected: String, actual: String, offset: Option<u64>) -> Verdict {
    Verdict::Fail(Mismatch {
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

fn placed(offset: Option<u64>, field: Option<&str>) -> String {
    let at = offset.map_or(String::new(), |offset| format!(" at byte {offset:#x}"));
    field.map_or(at.clone(), |field| format!("{at} in {field}"))
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
            rules: vec!["WIRE-01".into(), "WIRE-02".into()],
            input: Input::Hex(vec![]),
            findings: vec![],
            ..Suite::embedded().cases[0].clone()
        }
    }

    fn breach() -> Breach {
        Breach {
            kind: Kind::Truncated,
            rule: "WIRE-01".into(),
            offset: Some(8),
            field: Some("count".into()),
        }
    }

    /// Kind, rule, offset and field, and a message.
    fn reject(text: [Option<&str>; 3], offset: Option<u64>) -> Reply {
        let [kind, rule, field] = text.map(|text| text.map(str::to_owned));
        Reply::Reject(Rejection {
            kind,
            message: String::new(),
            offset,
            rule,
            field,
        })
    }

    #[test]
    fn a_rejection_is_held_to_what_it_states() {
        let case = case(Expect::Reject(breach()));
        let verdict = |text, offset| judge(&case, &reject(text, offset)).verdict.name();
        let full = [Some("truncated"), Some("WIRE-01"), Some("count")];
        assert_eq!(verdict([None; 3], None), "pass");
        assert_eq!(verdict(full, Some(8)), "pass");
        assert_eq!(verdict([Some("malformed"), None, None], None), "fail");
        assert_eq!(verdict([None, Some("WIRE-02"), None], None), "fail");
        assert_eq!(verdict([None, None, Some("size")], None), "fail");
        assert_eq!(verdict([None; 3], Some(9)), "fail");
    }

    #[test]
    fn what_must_be_stated_is_missed_where_it_is_not() {
        let case = case(Expect::Reject(breach()));
        let full = [Some("truncated"), Some("WIRE-01"), Some("count")];
        let [kind, rule, field] = full;
        let named = |reply| judge(&case, &reply).in_full(&case).verdict.name();
        assert_eq!(named(reject(full, Some(8))), "pass");
        assert_eq!(named(reject([None, rule, field], Some(8))), "fail");
        assert_eq!(named(reject([kind, None, field], Some(8))), "fail");
        assert_eq!(named(reject([kind, rule, None], Some(8))), "fail");
        assert_eq!(named(reject(full, None)), "fail");
        let held = |part| {
            let judgement = judge(&case, &reject([kind, None, None], None));
            judgement.held_to(&case, part).verdict
        };
        assert_eq!(held(Parts::KIND), Verdict::Pass);
        assert!(held(Parts::OFFSET).reason().contains("without offset"));
    }

    #[test]
    fn what_was_never_bytes_has_no_offset() {
        let mut bare = breach();
        (bare.offset, bare.field) = (None, None);
        let case = case(Expect::Reject(bare));
        let text = [Some("truncated"), Some("WIRE-01"), None];
        let judged = |offset| judge(&case, &reject(text, offset));
        assert_eq!(judged(Some(0)).verdict, Verdict::Pass);
        assert_eq!(judged(Some(0)).in_full(&case).verdict.name(), "fail");
        assert_eq!(judged(None).in_full(&case).verdict, Verdict::Pass);
    }

    #[test]
    fn a_crash_is_never_a_rejection() {
        let case = case(Expect::Reject(breach()));
        for reply in [
            Reply::Crash(String::new()),
            Reply::Hang(String::new()),
            Reply::OutOfMemory(String::new()),
            Reply::ProtocolError(String::new()),
        ] {
            assert!(judge(&case, &reply).verdict.is_failure());
        }
        let either = super::tests::case(Expect::Either);
        let named = |reply| judge(&either, &reply).verdict.name();
        assert_eq!(named(Reply::Crash(String::new())), "crash");
        assert_eq!(named(reject([None; 3], None)), "pass");
    }

    #[test]
    fn findings_count_as_far_as_they_are_stated() {
        let oddity = |rule: &str, kind: Option<&str>, offset| Oddity {
            rule: rule.to_owned(),
            kind: kind.map(str::to_owned),
            offset,
        };
        let mut case = case(Expect::Accept(json!(1)));
        case.findings = [8, 16]
            .map(|offset| oddity("WIRE-08", Some("trailing"), Some(offset)))
            .into();
        let judged = |findings: Option<Vec<Oddity>>| {
            let value = json!(1);
            let judgement = judge(&case, &Reply::Ok { value, findings });
            let in_full = judgement.clone().in_full(&case).verdict.name();
            (judgement.verdict.name(), in_full)
        };
        let list = |kind, offsets: [Option<u64>; 2]| {
            Some(offsets.map(|offset| oddity("WIRE-08", kind, offset)).into())
        };
        let (kind, right) = (Some("trailing"), [Some(16), Some(8)]);
        assert_eq!(judged(None), ("pass", "fail"));
        assert_eq!(judged(Some(vec![])), ("fail", "fail"));
        assert_eq!(judged(list(None, [None, None])), ("pass", "fail"));
        assert_eq!(judged(list(kind, right)), ("pass", "pass"));
        assert_eq!(judged(list(None, right)), ("pass", "fail"));
        assert_eq!(judged(list(Some("malformed"), right)), ("fail", "fail"));
        assert_eq!(judged(list(kind, [Some(8), Some(9)])), ("fail", "fail"));
        assert_eq!(judged(list(kind, [Some(8), Some(8)])), ("fail", "fail"));
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
