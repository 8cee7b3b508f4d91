//! The cases of the chapters with unsafe code, in this process, one test for each operation: for tools that watch memory accesses.
#![cfg(feature = "suite")]

use crate::serialized::run_serialized;
use std::collections::BTreeSet;
use tvmspec::conformance::adapter::builtin::BuiltinTestee;
use tvmspec::conformance::adapter::{Adapter, InProcess};
use tvmspec::conformance::case::{Case, Suite};
use tvmspec::conformance::verdict::{Verdict, judge};

/// Returns the cases of an operation, without the truncated inputs.
fn cases(op: &str) -> impl Iterator<Item = &'static Case> {
    let cases = Suite::expect_ours().cases.iter();
    cases.filter(move |case| case.op == op && case.cuts.is_empty())
}

fn all_pass(chapter: &str, op: &str) {
    let op = format!("{chapter}.{op}");
    let mut count = 0;
    for case in cases(&op) {
        let verdict = run_serialized(|| {
            let reply = InProcess(BuiltinTestee).call(&case.op, &case.request());
            judge(case, &reply).in_full(case).verdict
        });
        assert!(
            verdict == Verdict::Pass,
            "{}: {}",
            case.id,
            verdict.reason()
        );
        count += 1;
    }
    assert!(count > 0);
}

macro_rules! operations {
    ($($chapter:ident: $($op:ident)*;)*) => {
        const OPERATIONS: &[(&str, &[&str])] = &[$((stringify!($chapter), &[$(stringify!($op)),*])),*];

        $(mod $chapter {$(
            #[test]
            fn $op() {
                super::all_pass(stringify!($chapter), stringify!($op));
            }
        )*})*
    };
}

operations! {
    value: cell convert own life types dtype device extension legacy legacy_code;
    function: call raw_call error raised registry script legacy compiled;
    object: hash equal hooked layout element dict repr recursive_hash structural_hash recursive_equal structural_equal
        recursive_compare make dlpack json_parse json_print to_graph from_graph decode encode from_legacy_graph
        to_legacy_graph walk rewrite script;
    module: load symbols call find import environment properties life constants launch barrier once workspace system open
        script;
    graph: decode script;
    vm: decode run;
}

/// The operations of the device chapter that run devices of this crate.
mod device {
    #[test]
    fn simulate() {
        super::all_pass("device", "simulate");
    }

    #[test]
    fn pool() {
        super::all_pass("device", "pool");
    }

    #[test]
    fn program() {
        super::all_pass("device", "program");
    }
}

#[test]
fn no_operation_is_left_out() {
    for (chapter, named) in OPERATIONS {
        let mut cases = Suite::expect_ours().cases.iter();
        let mut used: BTreeSet<&str> = cases
            .by_ref()
            .filter(|case| case.chapter == *chapter && case.cuts.is_empty())
            .map(|case| case.op.as_str())
            .collect();
        let named: BTreeSet<String> = named.iter().map(|op| format!("{chapter}.{op}")).collect();
        used.retain(|op| !named.contains(*op));
        assert_eq!(used, BTreeSet::new());
    }
}
