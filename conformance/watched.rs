//! The cases of the chapters with unsafe code, chapter by chapter, in this process: for whoever watches its memory.
//!
//! `rule_off` runs all cases as well, but behind the hash of the suite and of every golden, which an interpreter does not
//! finish. `.ci/sanitize` runs these under Miri and the sanitizers.

use super::adapter::builtin::Builtin;
use super::adapter::{Adapter, InProcess};
use super::case::cases_of;
use super::verdict::{Verdict, judge};
use crate::spec;

/// Under Miri, cases that ask for what it does not have, or that would take it minutes: glob and reason.
const NOT_UNDER_MIRI: &[(&str, &str)] = &[];

fn left_out(id: &str) -> bool {
    let named = |(glob, _): &(&str, &str)| super::known::glob(glob, id);
    cfg!(miri) && NOT_UNDER_MIRI.iter().any(named)
}

fn all_pass(chapter: &str) {
    let name = format!("{chapter}/cases.json");
    let file = spec::CASES.iter().find(|(file, _)| *file == name).unwrap();
    let cases = cases_of(&[*file]).unwrap();
    let mut asked = 0;
    for case in cases.iter().filter(|case| !left_out(&case.id)) {
        if cfg!(miri) {
            // What stops Miri stops the process: the last line names the case.
            println!("{}", case.id);
        }
        let verdict = judge(case, InProcess(Builtin).call(&case.op, &case.request()));
        assert!(
            verdict == Verdict::Pass,
            "{}: {}",
            case.id,
            verdict.reason()
        );
        asked += 1;
    }
    println!("{chapter}: {asked} of {} cases", cases.len());
    assert!(asked > 0);
}

macro_rules! chapters {
    ($($name:ident)*) => {$(
        #[test]
        fn $name() {
            all_pass(stringify!($name));
        }
    )*};
}

chapters! { value function object module device graph vm }
