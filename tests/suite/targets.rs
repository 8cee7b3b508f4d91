//! Cases of `target` in every release that they state.
#![cfg(feature = "suite")]

use tvmspec::conformance::adapter::builtin::BuiltinTestee;
use tvmspec::conformance::adapter::{Adapter, InProcess};
use tvmspec::conformance::case::Suite;
use tvmspec::conformance::verdict::{Verdict, judge};
use tvmspec::release::Release;

/// A case is judged at one release but states others. It could be wrong there because of default values, option names, or kinds
/// that were added or removed.
#[test]
fn a_case_holds_in_every_release_that_it_states() {
    const OPS: [&str; 4] = [
        "target.read",
        "target.render",
        "target.tag",
        "target.detect",
    ];
    let mut wrong = Vec::new();
    let mut judged = 0;
    let cases = Suite::expect_ours().cases.iter();
    for case in cases.filter(|case| OPS.contains(&case.op.as_str())) {
        for release in Release::all().filter(|release| case.releases.contains(*release)) {
            let mut args = case.request();
            args["release"] = release.to_string().into();
            let reply = InProcess(BuiltinTestee).call(&case.op, &args);
            judged += 1;
            if judge(case, &reply).verdict != Verdict::Pass {
                wrong.push(format!("{} at {release}", case.id));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(judged > 1000, "{judged} answers");
}
