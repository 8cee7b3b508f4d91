//! The cases of the chapters with unsafe code, chapter by chapter, in this process: for whoever watches its memory.
//!
//! `rule_off` runs all cases as well, but in one test behind the hash of the suite.

use super::adapter::builtin::Builtin;
use super::adapter::{Adapter, InProcess};
use super::case::cases_of;
use super::verdict::{Verdict, judge};
use crate::spec;

fn all_pass(chapter: &str) {
    let name = format!("{chapter}/cases.json");
    let file = spec::CASES.iter().find(|(file, _)| *file == name).unwrap();
    let cases = cases_of(&[*file]).unwrap();
    assert!(!cases.is_empty());
    for case in &cases {
        let verdict = judge(case, InProcess(Builtin).call(&case.op, &case.request()));
        assert!(
            verdict == Verdict::Pass,
            "{}: {}",
            case.id,
            verdict.reason()
        );
    }
}

macro_rules! chapters {
    ($($name:ident)*) => {$(
        #[test]
        #[cfg_attr(miri, ignore = "an interpreter does not finish reading the rules and registering every function")]
        fn $name() {
            all_pass(stringify!($name));
        }
    )*};
}

chapters! { value function object module device graph vm }
