//! Operations of devices: programs that are spelled out, and the cases that are written of them.

use super::{cases, root, section};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use tvmspec::conformance::case::Suite;
use tvmspec::conformance::device::{DEFECTS, Defect, Program, programs};

/// What `device.behaviour` names is no data: each program is spelled out, in the words that are beside its code.
#[test]
fn every_program_of_a_device_is_spelled_out() {
    let programs: BTreeMap<&str, Program> =
        programs().map(|program| (program.id, program)).collect();
    let mut text = String::new();
    let cases = Suite::embedded().cases.iter();
    let mut count = 0;
    for case in cases.filter(|case| case.op == "device.behaviour") {
        if case.args.contains_key("defect") {
            continue;
        }
        count += 1;
        let Program {
            id,
            rules,
            why,
            steps,
            ..
        } = programs.get(&*case.id).unwrap_or_else(|| {
            panic!("{} names no program", case.id);
        });
        assert_eq!(case.request(), json!({ "value": id }), "{id}");
        assert_eq!(&case.rules, rules, "{id}");
        assert!(!steps.is_empty(), "{id}");
        write!(text, "\n### `{id}`\n\n{}: {why}.\n\n", rules.join(", ")).unwrap();
        for (step, number) in steps.iter().zip(1..) {
            writeln!(text, "{number}. {step}").unwrap();
        }
    }
    assert_eq!(count, programs.len(), "a program without a case");
    text.push_str("\n## Defects\n\nWith `defect` in the arguments the device is a simulated one that has it, and the program must not hold.\n\n| `defect` | program | the device |\n|---|---|---|\n");
    for defect in DEFECTS {
        let Defect {
            name,
            program,
            words,
            ..
        } = defect;
        writeln!(text, "| `{name}` | `{program}` | {words} |").unwrap();
    }
    section("spec/device-programs.md", &text);
}

/// The cases of `device.behaviour` are the programs, and the defects that they must notice: written once, beside the code.
#[test]
fn the_cases_of_devices_are_those_of_their_programs() {
    let programs: BTreeMap<&str, Program> =
        programs().map(|program| (program.id, program)).collect();
    let case = |id: &str, program: &Program, defect: Option<&str>, why: &str, origin: &str| {
        let mut case = json!({
            "id": id,
            "rules": program.rules,
            "releases": program.releases,
            "op": "device.behaviour",
            "input": {"value": program.id},
            "expect": {"accept": {"holds": defect.is_none()}},
            "why": why,
            "origin": {"hand": origin},
        });
        if let Some(defect) = defect {
            case["args"] = json!({"defect": defect});
        }
        case
    };
    let order = tvmspec::conformance::device::programs();
    let mut made: Vec<Value> = order
        .map(|program| {
            let origin = "drives the interface; nothing is stored";
            case(program.id, &program, None, program.why, origin)
        })
        .collect();
    made.extend(DEFECTS.iter().map(|defect| {
        let program = &programs[defect.program];
        let why = "a testee that answers without a look at its device answers the same here";
        let id = format!("device/defect-{}", defect.name);
        case(&id, program, Some(defect.name), why, defect.words)
    }));
    let path = root("conformance/device/cases/behaviour.json");
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, format!("{:#}", Value::from(made))).unwrap();
    } else {
        assert!(
            cases::cases(&path) == made,
            "BLESS=1 cargo test --test project operations, then python3 conformance/cases.py, writes {} anew",
            path.display()
        );
    }
}
