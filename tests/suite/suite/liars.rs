//! Our own implementation passes, and every liar fails.

use super::{PROGRAM, check, json, verdicts};
use crate::support::test_scale::is_thorough;
use tvmspec::conformance::adapter::builtin::BuiltinTestee;
use tvmspec::conformance::adapter::liar::Liar;
use tvmspec::conformance::case::{Case, Expect};
use tvmspec::rule::{Kind, Level};
use tvmspec::spec;

#[test]
fn our_own_implementation_passes_in_process_and_over_the_protocol() {
    let complete = json(&["--complete"]);
    assert_eq!(complete["good"], true, "{}", complete["totals"]);
    // Over the protocol only these chapters run, because they have every form of a request.
    let few = [
        "--chapter",
        "wire",
        "--chapter",
        "tensor",
        "--chapter",
        "value",
    ];
    let few = if is_thorough() { &[][..] } else { &few[..] };
    let spec = format!("exec:'{PROGRAM}' testee");
    let protocol = ["--complete", "--impl", &spec, "--timeout", "60"];
    let outside = json(&[&protocol, few].concat());
    assert_eq!(outside["good"], true, "{}", outside["totals"]);
    let inside = json(&[&["--complete"], few].concat());
    assert_eq!(outside["totals"], inside["totals"]);
    // Cases for generators are for other implementations, so ours skips them. All other cases pass.
    for (case, verdict) in verdicts(&complete) {
        let expected = if is_foreign(case) { "skipped" } else { "pass" };
        assert_eq!(verdict, expected, "{}", case.id);
    }
}

#[test]
fn a_compiler_is_called_in_a_complete_run_or_for_a_case_by_name() {
    let verdict = |args: &[&str]| -> Vec<String> {
        let report = json(&[&["--chapter", "blob"], args].concat());
        let linked = verdicts(&report).filter(|(case, _)| case.op == "blob.pack_shared");
        linked.map(|(_, verdict)| verdict.to_owned()).collect()
    };
    assert_eq!(verdict(&[]), ["skipped"; 6]);
    assert_eq!(verdict(&["--complete"]), ["pass"; 6]);
    assert_eq!(verdict(&["--case", "blob/shared/alone"]), ["pass"]);
}

fn is_foreign(case: &Case) -> bool {
    let op = BuiltinTestee::op(&case.op);
    op.is_some_and(|op| op.is_foreign())
}

#[test]
fn every_liar_fails_as_built_in_and_as_command() {
    for liar in Liar::ALL {
        // Each hang costs its timeout, so only chapter wire is run.
        let rest = ["--chapter", "wire", "--timeout", "2", "--max-hangs", "1"];
        let spec = format!("liar:{}", liar.name());
        let command = format!("exec:'{PROGRAM}' testee --liar {}", liar.name());
        for spec in [spec, command] {
            let out = check(&[&["--impl", &spec], &rest[..]].concat());
            assert_eq!(
                out.status.code(),
                Some(1),
                "{spec}: {}",
                String::from_utf8_lossy(&out.stdout)
            );
        }
    }
}

#[test]
fn each_liar_fails_where_it_lies() {
    // One chapter has cases of every kind.
    let chapter = ["--chapter", "blob"];
    let chapter = if is_thorough() { &[][..] } else { &chapter[..] };
    let judged = |liar: &str| json(&[&["--impl", liar], chapter].concat());
    for (case, verdict) in verdicts(&judged("liar:accept-all")) {
        if matches!(case.expect, Expect::Reject(..)) {
            let is_bound = |id: &String| spec::rule(id).unwrap().level == Level::Limit;
            let expected = if case.own || case.rules.iter().all(is_bound) {
                "unsupported"
            } else {
                "fail"
            };
            assert_eq!(verdict, expected, "accept-all, {}", case.id);
        }
    }
    for (case, verdict) in verdicts(&judged("liar:reject-all")) {
        if matches!(case.expect, Expect::Accept(_)) {
            let expected = if case.own { "unsupported" } else { "fail" };
            assert_eq!(verdict, expected, "reject-all, {}", case.id);
        }
    }
    for (case, verdict) in verdicts(&judged("liar:misplace")) {
        let placed = match &case.expect {
            Expect::Reject(breach) => breach.offset.is_some(),
            _ => !case.findings.is_empty(),
        };
        let expected = match placed {
            _ if is_foreign(case) => "unsupported",
            true if case.own => "unsupported",
            true => "fail",
            false => "pass",
        };
        assert_eq!(verdict, expected, "misplace, {}", case.id);
    }
    for (case, verdict) in verdicts(&judged("liar:vague")) {
        let expected = match &case.expect {
            _ if is_foreign(case) => "unsupported",
            Expect::Reject(breach) if breach.kind != Kind::Truncated => "fail",
            _ => "pass",
        };
        assert_eq!(verdict, expected, "vague, {}", case.id);
    }
    let wire = |liar: &str| json(&["--impl", liar, "--chapter", "wire", "--timeout", "1"]);
    for (liar, expected) in [
        ("liar:crash", "crash"),
        ("liar:hang", "hang"),
        ("liar:garbage", "protocol-error"),
    ] {
        for (case, verdict) in verdicts(&wire(liar)) {
            assert_eq!(verdict, expected, "{liar}, {}", case.id);
        }
    }
}
