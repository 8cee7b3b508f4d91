//! The cases of the chapters with unsafe code, operation by operation, in this process: for a tool that watches its memory.
//!
//! `rule_off` runs all cases as well, but in one test behind the hash of the suite.

use super::adapter::builtin::BuiltinTestee;
use super::adapter::{Adapter, InProcess};
use super::case::Case;
use super::case::entry::{expanded, read};
use super::files;
use super::rule_off::with_the_stack_of_a_program;
use super::verdict::{Verdict, judge};
use std::collections::BTreeSet;

/// Cases that an interpreter does not end in minutes, or cannot run: it loads no libraries.
const TOO_LONG: [&str; 0] = [];

/// The texts of a chapter's groups. In the one layout of all files only a group begins a line with `{`.
fn texts(chapter: &str) -> impl Iterator<Item = &'static str> {
    let files = files::case_files(&format!("{chapter}/cases/")).unwrap();
    files.into_iter().flat_map(|(_, text)| {
        let groups = text.trim_start_matches("[\n{").trim_end_matches("\n]\n");
        groups.split(",\n{")
    })
}

/// The cases of a group, and those that are derived of them. Only its own text is read, and its rules are not looked up: what an
/// interpreter takes for a text grows with the square of the length, and the prose of the rules is longer still.
fn read_text(chapter: &str, text: &str) -> Vec<Case> {
    let entries = expanded(&format!("[{{{text}]")).unwrap();
    let cases = entries
        .iter()
        .map(|entry| read(chapter, entry, |_| true).unwrap());
    cases
        .flat_map(|case| {
            let backwards = case.backwards();
            [case].into_iter().chain(backwards)
        })
        .collect()
}

fn all_pass(chapter: &str, op: &str) {
    let quoted = format!("\"op\": \"{chapter}.{op}\"");
    let mut count = 0;
    for text in texts(chapter).filter(|text| text.contains(&quoted)) {
        for case in read_text(chapter, text) {
            if cfg!(miri) && TOO_LONG.contains(&case.id.as_str()) {
                continue;
            }
            let verdict = with_the_stack_of_a_program(|| {
                let reply = InProcess(BuiltinTestee).call(&case.op, &case.request());
                judge(&case, &reply).in_full(&case).verdict
            });
            assert!(
                verdict == Verdict::Pass,
                "{}: {}",
                case.id,
                verdict.reason()
            );
            count += 1;
        }
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
    function: call raw_call error raised registry script legacy;
    object: hash equal hooked layout element dict repr recursive_hash structural_hash recursive_equal structural_equal
        recursive_compare make dlpack json_parse json_print to_graph from_graph decode encode from_legacy_graph
        to_legacy_graph walk rewrite script;
    module: load symbols call find import environment properties life constants launch barrier once workspace system open
        script;
    graph: decode script;
    vm: decode run;
}

#[test]
#[cfg_attr(
    miri,
    ignore = "reads all cases, which an interpreter does not end in minutes"
)]
fn no_operation_is_left_out() {
    for (chapter, named) in OPERATIONS {
        let used: BTreeSet<String> = texts(chapter)
            .flat_map(|text| read_text(chapter, text))
            .filter(|case| case.backwards().is_some() || !case.id.ends_with("#encode"))
            .map(|case| case.op)
            .collect();
        let named: BTreeSet<String> = named.iter().map(|op| format!("{chapter}.{op}")).collect();
        assert_eq!(used, named);
    }
}
