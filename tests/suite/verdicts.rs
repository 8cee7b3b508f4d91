//! Verdicts: the compared parts of an answer, and the display of a mismatch.
#![cfg(feature = "suite")]

use serde_json::{Value, json};
use tvmspec::conformance::adapter::{Oddity, Rejection, Reply};
use tvmspec::conformance::answer_parts::Parts;
use tvmspec::conformance::case::{Breach, Case, Expect, Suite};
use tvmspec::conformance::verdict::{AnswerMismatch, Verdict, judge, values_equal};
use tvmspec::rule::Kind;

fn case(expect: Expect) -> Case {
    let mut case = Suite::expect_ours().cases[0].clone();
    case.expect = expect;
    case.rules = vec!["WIRE-01".into(), "WIRE-02".into()];
    case.findings = vec![];
    case
}

/// Returns a truncation at byte 8, in field `count`.
fn breach() -> Breach {
    let mut cases = Suite::expect_ours().cases.iter();
    let mut breach = cases
        .find_map(|case| match &case.expect {
            Expect::Reject(breach) => Some(breach.clone()),
            _ => None,
        })
        .expect("a rejection");
    breach.kind = Kind::Truncated;
    breach.rule = "WIRE-01".into();
    breach.offset = Some(8);
    breach.field = Some("count".into());
    breach
}

/// Creates a rejection of this kind, rule, offset and field, with a message.
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
        judgement.require_parts(&case, part).verdict
    };
    assert_eq!(held(Parts::KIND), Verdict::Pass);
    assert!(held(Parts::OFFSET).reason().contains("without offset"));
}

#[test]
fn case_without_bytes_has_no_offset() {
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
    let either = self::case(Expect::Either);
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
    assert!(values_equal(
        &json!({"a": 1, "b": [2]}),
        &json!({"b": [2], "a": 1})
    ));
    assert!(values_equal(&json!(1), &json!(1.0)));
    assert!(!values_equal(&json!(0.0), &json!(-0.0)));
    assert!(!values_equal(&json!(u64::MAX), &json!(u64::MAX - 1)));
    assert!(!values_equal(&json!({"a": 1}), &json!({"a": 1, "b": null})));
    assert!(!values_equal(&json!([1, 2]), &json!([2, 1])));
}

/// Returns the mismatch of `actual` with the expected answer of an operation.
fn mismatch(op: &str, expected: Value, actual: Value) -> AnswerMismatch {
    let mut case = case(Expect::Accept(expected));
    case.op = op.into();
    let reply = Reply::Ok {
        value: actual,
        findings: None,
    };
    match judge(&case, &reply).verdict {
        Verdict::Fail(mismatch) => mismatch,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_mismatch_names_the_place() {
    let expected = json!({"modules": [{"kind": "_lib"}, {"kind": "cuda"}]});
    let actual = json!({"modules": [{"kind": "_lib"}, {"kind": "hip"}]});
    let other = mismatch("blob.decode", expected, actual);
    assert_eq!(other.expected, "modules[1].kind = \"cuda\"");
    assert_eq!(other.actual, "modules[1].kind = \"hip\"");
    // Base64 is decoded, and the bytes are compared.
    let other = mismatch("wire.encode", json!("AQID"), json!("AQMD"));
    assert_eq!(other.offset, Some(1));
}

/// Returns the verdict on an adapter that shows a part of the expected result.
fn shown(view: &str, expected: &Value, value: Value) -> &'static str {
    let case = case(Expect::Accept(expected.clone()));
    let view = view.to_owned();
    judge(&case, &Reply::Shown { view, value }).verdict.name()
}

#[test]
fn the_place_of_the_library_does_not_show() {
    let library = |place: usize| {
        let mut modules = vec![
            json!({"kind": "a", "payload": ""}),
            json!({"kind": "b", "payload": ""}),
        ];
        modules.insert(place, json!({"kind": "_lib"}));
        modules
    };
    let first =
        json!({"modules": library(0), "import_tree": {"indptr": [0, 2, 2, 2], "indices": [1, 2]}});
    let second =
        json!({"modules": library(1), "import_tree": {"indptr": [0, 1, 2, 2], "indices": [1, 2]}});
    let payload =
        |kind: &str, imports: Value| json!({"kind": kind, "payload": "", "imports": imports});
    let first_seen = json!({"root": "library 0", "libraries": [["module 0", "module 1"]],
        "modules": [payload("a", json!([])), payload("b", json!([]))]});
    let second_seen = json!({"root": "module 0", "libraries": [["module 1"]],
        "modules": [payload("a", json!(["library 0"])), payload("b", json!([]))]});
    assert_eq!(shown("modules", &first, first_seen.clone()), "pass");
    assert_eq!(shown("modules", &second, second_seen), "pass");
    assert_eq!(shown("modules", &second, first_seen), "fail");
}

#[test]
fn rows_are_what_indptr_cuts_out() {
    let late = json!({"indptr": [1, 2, 2], "indices": [1, 1]});
    assert_eq!(shown("rows", &late, json!([[1], []])), "pass");
    let beyond = json!({"indptr": [0, 3], "indices": []});
    assert_eq!(shown("rows", &beyond, json!([[]])), "protocol-error");
}

#[test]
fn an_operator_without_code_is_declined_by_who_states_no_rule() {
    let verdict = |op: &str, message: &str, rule: Option<&str>| {
        let mut case = case(Expect::Accept(json!(1)));
        case.op = op.into();
        let rejection = Rejection {
            message: message.into(),
            rule: rule.map(str::to_owned),
            ..Rejection::default()
        };
        judge(&case, &Reply::Reject(rejection)).verdict.name()
    };
    let unresolved = "InternalError: Unresolved call Op(tir.exp)";
    assert_eq!(verdict("target.generate", unresolved, None), "unsupported");
    assert_eq!(verdict("target.judge", unresolved, None), "fail");
    assert_eq!(
        verdict("target.generate", unresolved, Some("TGT-88")),
        "fail"
    );
    assert_eq!(verdict("target.generate", "not implemented", None), "fail");
}

#[test]
fn own_decisions_do_not_bind_other_testees() {
    let mut own = case(Expect::Accept(json!(1)));
    own.own = true;
    let other = Reply::Ok {
        value: json!(2),
        findings: None,
    };
    assert_eq!(judge(&own, &other).verdict.name(), "unsupported");
    assert_eq!(
        judge(&own, &reject([None; 3], None)).verdict.name(),
        "unsupported"
    );
    let same = Reply::Ok {
        value: json!(1),
        findings: None,
    };
    assert_eq!(judge(&own, &same).verdict, Verdict::Pass);
    // A crash is not a decision.
    let crash = Reply::Crash("it ended".into());
    assert_eq!(judge(&own, &crash).verdict.name(), "crash");
    own.own = false;
    assert_eq!(judge(&own, &other).verdict.name(), "fail");
}
