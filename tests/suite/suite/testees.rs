//! Implementations that crash, answer in part, or do not answer.

use crate::support::schema::{conforms, schema};
use serde_json::Value;
use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::thread::{self, ThreadId};
use tvmspec::conformance::adapter::builtin::BuiltinTestee;
use tvmspec::conformance::adapter::{Adapter, Identity, InProcess, Rejection, Reply, Testee};
use tvmspec::conformance::answer_parts::Parts;
use tvmspec::conformance::case::{Breach, Case, Expect, Suite};
use tvmspec::conformance::known_failures::KnownFailures;
use tvmspec::conformance::report::{ReportFormat, render};
use tvmspec::conformance::runner::{Run, Selection, run, run_parallel, select};
use tvmspec::conformance::truncated::Cut;
use tvmspec::conformance::verdict::{Judgement, Verdict, judge};
use tvmspec::rule::Kind;

/// Testee that supports no operation and reports so.
struct Modest;

impl Testee for Modest {
    fn identity(&self) -> Identity {
        Identity::default()
    }

    fn answer(&mut self, op: &str, args: &Value) -> Reply {
        if args["type"] == "u32" {
            Reply::Unsupported("no words of 32 bits".into())
        } else {
            BuiltinTestee.answer(op, args)
        }
    }
}

#[test]
fn a_complete_run_has_an_answer_to_every_case() {
    let judged = |complete: bool, known: &str| {
        let mut order = Run::default();
        order.selection.chapters = vec!["wire".into()];
        order.known = KnownFailures::parse(known).unwrap();
        order.complete = complete;
        run(Suite::expect_ours(), &mut InProcess(Modest), &order).unwrap()
    };
    let entry = |case: &str| {
        format!("[[known]]\ncase = \"{case}\"\nverdict = \"unsupported\"\nreason = \"16 bits\"\n")
    };
    assert!(judged(false, "").is_good());
    let report = judged(true, "");
    assert!(!report.is_good());
    let failures: Vec<&str> = report.failures().map(|one| one.case.id.as_str()).collect();
    assert!(failures.contains(&"wire/u32#encode"));
    assert!(
        failures
            .iter()
            .all(|id| id.starts_with("wire/u32") || id.starts_with("wire/trailing"))
    );
    for (_, form) in ReportFormat::ALL {
        assert!(render(form, &report).contains("no words of 32 bits"));
    }
    let all: String = failures.iter().map(|id| entry(id)).collect();
    assert!(judged(true, &all).is_good());
    assert!(!judged(true, &entry("wire/u32")).is_good());
    // An unnecessary excuse is reported as untrue, like any other.
    let useless = judged(true, &(all + &entry("wire/u16")));
    assert!(!useless.is_good() && useless.problems.len() == 1);
}

/// Testee that crashes on one case. It also answers the second request after the restart wrong, although that case alone is right.
struct Poisoned {
    bad: &'static str,
    starts: u32,
    requests: Option<u64>,
    poisoned: bool,
    asked: Vec<String>,
}

impl Adapter for Poisoned {
    fn hello(&mut self, _suite: &str) -> Result<Identity, String> {
        self.start();
        Ok(Identity::default())
    }

    fn call(&mut self, op: &str, args: &Value) -> Reply {
        if self.requests.is_none() {
            self.start();
        }
        self.requests = self.requests.map(|requests| requests + 1);
        self.asked.push(args.to_string());
        if args["data"] == self.bad {
            self.requests = None;
            return Reply::Crash("SIGSEGV".into());
        }
        if self.poisoned && self.requests == Some(2) {
            return Reply::Ok {
                value: Value::Null,
                findings: None,
            };
        }
        InProcess(tvmspec::conformance::adapter::builtin::BuiltinTestee).call(op, args)
    }

    fn since_restart(&self) -> Option<u64> {
        (self.starts > 1).then(|| self.requests.unwrap_or_default())
    }

    fn restart(&mut self) {
        self.requests = None;
        self.poisoned = false;
    }
}

impl Poisoned {
    fn start(&mut self) {
        self.poisoned = self.starts == 1;
        self.starts += 1;
        self.requests = Some(0);
    }
}

#[test]
fn a_crash_costs_one_case_and_the_first_failure_after_it_is_run_again_alone() {
    let mut adapter = Poisoned {
        bad: "NBI=",
        starts: 0,
        requests: None,
        poisoned: false,
        asked: Vec::new(),
    };
    let mut selection = Selection::default();
    selection.chapters = vec!["wire".into()];
    let mut run_of = Run::default();
    run_of.selection = selection;
    let report = run(Suite::expect_ours(), &mut adapter, &run_of).unwrap();
    let failures: Vec<_> = report
        .failures()
        .map(|outcome| outcome.case.id.as_str())
        .collect();
    assert_eq!(failures, ["wire/u16"]);
    let noted: Vec<_> = report
        .results
        .iter()
        .filter(|outcome| outcome.note.is_some())
        .collect();
    assert_eq!(noted.len(), 1, "one case was run again");
    let steps = report.results.iter().map(|one| one.case.steps().count());
    assert_eq!(adapter.asked.len(), steps.sum::<usize>() + 1);
}

/// Testee that panics, like a library that was not written for hostile input.
struct Panics;

impl Testee for Panics {
    fn identity(&self) -> Identity {
        Identity::default()
    }

    fn answer(&mut self, _op: &str, _args: &Value) -> Reply {
        panic!("index out of bounds")
    }
}

#[test]
fn a_panic_is_a_crash_and_not_a_rejection() {
    let report = run(
        Suite::expect_ours(),
        &mut InProcess(Panics),
        &Run::default(),
    )
    .unwrap();
    assert_eq!(report.totals().count("crash"), report.results.len());
}

/// Testee that reports only the kind of a rejection.
struct Brief;

impl Testee for Brief {
    fn identity(&self) -> Identity {
        Identity::default()
    }

    fn answer(&mut self, op: &str, args: &Value) -> Reply {
        match BuiltinTestee.answer(op, args) {
            Reply::Reject(rejection) => Reply::Reject(Rejection {
                kind: rejection.kind,
                ..Rejection::default()
            }),
            Reply::Ok { value, .. } => Reply::Ok {
                value,
                findings: None,
            },
            reply => reply,
        }
    }
}

#[test]
fn uncompared_parts_are_counted_and_shown() {
    let suite = Suite::expect_ours();
    let mut order = Run::default();
    order.selection.chapters = ["tensor", "payload", "blob"].map(str::to_owned).into();
    let report = run(suite, &mut InProcess(Brief), &order).unwrap();
    let failed = report
        .failures()
        .map(|one| (&one.case.id, one.verdict.reason()));
    assert_eq!(failed.collect::<Vec<_>>(), []);
    let count = |has: fn(&Case) -> bool| {
        let cases = report.results.iter().map(|one| one.case);
        cases.filter(|case| has(case)).count()
    };
    let expected = [
        (
            "rule",
            count(|case| matches!(case.expect, Expect::Reject(_))),
        ),
        (
            "offset",
            count(|case| matches!(&case.expect, Expect::Reject(breach) if breach.offset.is_some())),
        ),
        (
            "field",
            count(|case| matches!(&case.expect, Expect::Reject(breach) if breach.field.is_some())),
        ),
        (
            "findings",
            count(|case| matches!(case.expect, Expect::Accept(_)) && !case.op.ends_with(".encode")),
        ),
    ];
    assert_eq!(report.unstated(), expected);
    let shown = format!(
        "rejections judged without rule: {}, offset: ",
        expected[0].1
    );
    for (name, form) in ReportFormat::ALL {
        let text = render(form, &report);
        match form {
            ReportFormat::Json => conforms(
                &schema(include_str!("../../../spec/schema/report.json")),
                &serde_json::from_str(&text).unwrap(),
                "$",
            ),
            _ => assert!(text.contains(&shown), "{name}"),
        }
    }
    let full = run(suite, &mut InProcess(BuiltinTestee), &order).unwrap();
    assert!(full.unstated().is_empty());
}

/// Our own implementation, with one part left out of all answers.
struct Without {
    part: Parts,
    in_full: bool,
}

impl Testee for Without {
    fn identity(&self) -> Identity {
        BuiltinTestee.identity()
    }

    fn answer(&mut self, op: &str, args: &Value) -> Reply {
        let mut reply = BuiltinTestee.answer(op, args);
        match &mut reply {
            Reply::Reject(rejection) => match self.part {
                Parts::KIND => rejection.kind = None,
                Parts::RULE => rejection.rule = None,
                Parts::OFFSET => rejection.offset = None,
                Parts::FIELD => rejection.field = None,
                _ => {}
            },
            Reply::Ok { findings, .. } => match (self.part, findings) {
                (Parts::FINDINGS, findings) => *findings = None,
                (part, Some(findings)) => {
                    for finding in findings {
                        match part {
                            Parts::FINDING_KINDS => finding.kind = None,
                            Parts::FINDING_OFFSETS => finding.offset = None,
                            _ => {}
                        }
                    }
                }
                _ => {}
            },
            _ => {}
        }
        reply
    }

    fn answers_in_full(&self) -> bool {
        self.in_full
    }
}

#[test]
fn who_answers_in_full_is_held_to_every_part() {
    let chapters = ["wire", "tensor", "payload"].map(str::to_owned).to_vec();
    let mut selection = Selection::default();
    selection.chapters = chapters;
    let mut selected = Run::default();
    selected.selection = selection;
    for (name, part) in Parts::NAMES {
        for in_full in [true, false] {
            let mut testee = InProcess(Without { part, in_full });
            let report = run(Suite::expect_ours(), &mut testee, &selected).unwrap();
            assert_eq!(report.is_good(), !in_full, "without {name}");
            if !in_full {
                let unstated = report.unstated();
                let left_out = unstated.iter().find(|(left, _)| *left == name);
                assert!(
                    left_out.is_some_and(|(_, count)| *count > 0),
                    "{name}: {unstated:?}"
                );
            }
        }
    }
}

#[test]
fn a_cut_is_judged_by_what_it_states() {
    let suite = Suite::expect_ours();
    let case = suite.case("wire/u32#truncated").unwrap();
    let Cut { length, breach } = &case.cuts[0];
    let Breach {
        kind, rule, offset, ..
    } = breach;
    assert_eq!(
        (*length, *kind, rule.as_str(), *offset),
        (0, Kind::Truncated, "WIRE-01", Some(0))
    );
    let wrong = Reply::Reject(Rejection {
        kind: Some(kind.name().to_owned()),
        offset: offset.map(|offset| offset + 1),
        ..Rejection::default()
    });
    let judgement: Judgement = judge(case, &wrong);
    assert!(matches!(judgement.verdict, Verdict::Fail(_)));
    let vague = Reply::Reject(Rejection::default());
    let judgement = judge(case, &vague);
    assert_eq!(judgement.verdict, Verdict::Pass);
    assert!(judgement.unstated.has(Parts::OFFSET) && judgement.surplus.is_empty());
    assert_eq!(
        judgement
            .clone()
            .require_parts(case, Parts::default())
            .verdict,
        Verdict::Pass
    );
    for strict in [
        judgement.clone().require_parts(case, Parts::RULE),
        judgement.in_full(case),
    ] {
        assert!(matches!(strict.verdict, Verdict::Fail(_)));
    }
}

/// Testee that records the requests of each thread. A call of a function waits until another thread has had a request.
struct Noted<'a>(&'a Mutex<Vec<(ThreadId, String)>>);

impl Testee for Noted<'_> {
    fn identity(&self) -> Identity {
        Identity::default()
    }

    fn answer(&mut self, op: &str, args: &Value) -> Reply {
        let own = thread::current().id();
        let is_alone = || self.0.lock().unwrap().iter().all(|(id, _)| *id == own);
        while op.starts_with("function.") && is_alone() {
            thread::yield_now();
        }
        self.0.lock().unwrap().push((own, format!("{op} {args}")));
        Reply::Unsupported("noted".into())
    }
}

#[test]
fn cases_that_share_state_are_put_in_turn() {
    let suite = Suite::expect_ours();
    let mut order = Run::default();
    order.selection.chapters = vec!["wire".into(), "function".into()];
    order.in_turn = vec!["function".into()];
    let selected = select(suite, &order.selection).unwrap();
    let noted: &Mutex<_> = Box::leak(Box::default());
    let report = run_parallel(
        suite,
        &|| Ok(Box::new(InProcess(Noted(noted)))),
        NonZeroUsize::new(4).unwrap(),
        &order,
        &mut |_| {},
    )
    .unwrap();
    let reported: Vec<&str> = report.results.iter().map(|one| &*one.case.id).collect();
    let ids: Vec<&str> = selected.iter().map(|case| &*case.id).collect();
    assert_eq!(reported, ids);
    let asked = noted.lock().unwrap();
    let in_turn = asked
        .iter()
        .filter(|(_, asked)| asked.starts_with("function."));
    let functions = selected.iter().filter(|case| case.chapter == "function");
    let expected = functions.map(|case| {
        (
            thread::current().id(),
            format!("{} {}", case.op, case.request()),
        )
    });
    assert!(in_turn.cloned().eq(expected));
}
