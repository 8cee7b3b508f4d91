//! Case files: a single edit makes a valid case invalid.
#![cfg(feature = "suite")]

use serde_json::{Value, json};
use tvmspec::conformance::case::{Expect, Suite, golden};
use tvmspec::release::ParseError;
use tvmspec::rule::Kind;
use tvmspec::spec;

const GOOD: &str = r#"{"id":"wire/a","rules":["WIRE-02"],"releases":"..","op":"wire.decode",
    "input":{"hex":"01 00"},"args":{"type":"u16"},"expect":{"accept":1},"why":"w","origin":{"hand":"h"}}"#;
const BAD: &str = r#"{"id":"wire/b","rules":["WIRE-01"],"releases":"..","op":"wire.decode","parent":"wire/a",
    "input":{"hex":"01"},"args":{"type":"u16"},"expect":{"reject":{"kind":"truncated","rule":"WIRE-01","offset":0}},"why":"w","origin":{"hand":"h"}}"#;

fn load(cases: &[String]) -> Result<Suite, ParseError> {
    Suite::load(&[("wire/cases/numbers.json", &format!("[{}]", cases.join(",")))])
}

/// Loads both cases with one text replaced. The only problem must contain `problem`.
fn rejected(from: &str, to: &str, problem: &str) {
    let edited = [GOOD.replace(from, to), BAD.replace(from, to)];
    assert_ne!(edited, [GOOD, BAD], "nothing was replaced");
    let problems = load(&edited).unwrap_err();
    assert!(problems.to_string().contains(problem), "{problems:?}");
}

#[test]
fn an_accepted_decode_is_run_backwards() {
    let suite = load(&[GOOD.into(), BAD.into()]).unwrap();
    let ids: Vec<&str> = suite.cases.iter().map(|case| case.id.as_str()).collect();
    assert_eq!(ids, ["wire/a", "wire/a#encode", "wire/b"]);
    let back = &suite.cases[1];
    assert_eq!(back.op, "wire.encode");
    assert_eq!(back.request(), json!({"type": "u16", "value": 1}));
    assert_eq!(back.expect, Expect::Accept("AQA=".into()));
    let once = load(&[GOOD.replace("\"why\"", "\"encode\":false,\"why\"")]).unwrap();
    assert_eq!(once.cases.len(), 1);
}

#[test]
fn a_group_states_what_its_cases_leave_out() {
    let alone = [GOOD.into(), BAD.into()];
    let group = r#"{"op":"wire.decode","rules":["WIRE-01"],"releases":"..","args":{"type":"u16"},"why":"w","origin":{"hand":"h"},"cases":[
        {"id":"wire/a","rules":["WIRE-02"],"input":{"hex":"01 00"},"expect":{"accept":1}},
        {"id":"wire/b","parent":"wire/a","input":{"hex":"01"},"expect":{"reject":{"kind":"truncated","rule":"WIRE-01","offset":0}}}]}"#;
    assert_eq!(
        load(&[group.into()]).unwrap().cases,
        load(&alone).unwrap().cases
    );
    for (from, to, problem) in [
        ("{\"op\"", "{\"id\":\"wire/c\",\"op\"", "or an `id`"),
        ("\"cases\":[", "\"cases\":[1,", "not a list of objects"),
        ("\"why\"", "\"wye\"", "wire/a: there is no key `wye`"),
    ] {
        let problems = load(&[group.replace(from, to)]).unwrap_err().to_string();
        assert!(problems.contains(problem), "{problems}");
    }
}

/// Edits of the two cases, and a part of the problem that each makes.
const EDITS: &str = r#"
wire/b => wire/a => there twice
wire/a => blob/a => `wire/` and a name
wire/a => wire/7 => is a number
"parent":"wire/a" => "parent":"wire/c" => there is no case `wire/c`
"parent":"wire/a" => "parent":"wire/b" => is not accepted
"parent":"wire/a", =>  => names its `parent`
WIRE-02 => WIRE-99 => there is no rule `WIRE-99`
["WIRE-02"] => [] => `rules` is empty
{"hex":"01"} => {"file":"wire/none.bin"} => no file golden/wire/none.bin
{"accept":1} => {"accept_file":"none.json"} => no file golden/none.json
"why":"w" => "why":" " => `why` is missing
{"hand":"h"} => {} => `origin` is not
,"origin":{"hand":"h"} =>  => `origin` is not
"why" => "wye" => there is no key `wye`
truncated => too-short => there is no kind
"offset":0 => "ofset":0 => `reject` is not
"rule":"WIRE-01","o => "rule":"WIRE-03","o => which `rules` does not
{"hex":"01"} => {"value":1} => `offset` in an input that is not bytes
"01" => "0" => half a byte
".." => "0.9..0.3" => runs backwards
"why" => "own":true,"why" => no rule of the case has
"why" => "own":1,"why" => `own` is not a bool
"#;

#[test]
fn one_edit_makes_a_case_invalid() {
    for edit in EDITS.trim().lines() {
        let [from, to, problem] = edit.split(" => ").collect::<Vec<_>>()[..] else {
            panic!("{edit}");
        };
        rejected(from, to, problem);
    }
}

#[test]
fn releases_lie_inside_those_of_the_rules() {
    // TREE-03 holds from 0.7 on, TEN-29 up to 0.3.
    let of = |rule: &str, releases: &str| {
        let case = GOOD.replace("WIRE-02", rule);
        load(&[case.replace("\"..\"", &format!("\"{releases}\""))])
    };
    assert!(of("TREE-03", "0.7..").is_ok());
    assert!(of("TREE-03", "0.9..0.20").is_ok());
    for (rule, releases, held) in [
        ("TREE-03", "..", "0.7.."),
        ("TREE-03", "0.6..", "0.7.."),
        ("TEN-29", "0.2..0.4", "..0.3"),
        ("TEN-29", "0.4", "..0.3"),
    ] {
        let problems = of(rule, releases).unwrap_err();
        let held = format!("{rule} holds in `{held}`");
        assert!(problems.to_string().contains(&held), "{problems:?}");
    }
}

#[test]
fn a_line_can_be_seen_whole() {
    let long = |letters: usize| {
        let case = GOOD.replace("\"w\"", &format!("\n\"{}\"\n", "w".repeat(letters)));
        load(&[case])
    };
    // The length includes the quotes and the comma.
    assert!(long(317).is_ok());
    let problems = long(318).unwrap_err();
    assert!(
        problems.to_string().contains("numbers.json:3: 320"),
        "{problems:?}"
    );
}

#[test]
fn the_hash_follows_the_cases() {
    let one = load(&[GOOD.into()]).unwrap();
    let other = load(&[GOOD.replace("\"w\"", "\"v\"")]).unwrap();
    assert_ne!(one.hash, other.hash);
    assert_eq!(one.hash.len(), 64);
}

/// Returns the input bytes of a case that is built from `input`.
fn input(input: Value) -> Result<Vec<u8>, String> {
    let case = GOOD.replace("{\"hex\":\"01 00\"}", &input.to_string());
    let suite = load(&[case]).map_err(|problems| problems.to_string())?;
    Ok(suite.cases[0].bytes().unwrap().to_vec())
}

#[test]
fn bytes_are_replaced_and_cut_off() {
    let name = "blob/library-alone-0.8.bin";
    let whole = golden(name).unwrap();
    let put = input(json!({"file": name, "put": [[1, "ab cd"], [15, "ef"]]})).unwrap();
    assert_eq!(put.len(), whole.len());
    assert_eq!(put[..3], [whole[0], 0xab, 0xcd]);
    assert_eq!(put[15], 0xef);
    let cut = input(json!({"file": name, "put": [[1, "ab"]], "cut": 2})).unwrap();
    assert_eq!(cut, [whole[0], 0xab]);
}

#[test]
fn an_edit_changes_what_is_there() {
    let name = "blob/library-alone-0.8.bin";
    for (edit, why) in [
        (
            json!({"file": name, "put": [[15, "abcd"]]}),
            "writes outside",
        ),
        (json!({"file": name, "put": [[-1, "ab"]]}), "writes outside"),
        (
            json!({"file": name, "put": [["1", 2]]}),
            "not a pair of an offset and hex digits",
        ),
        (json!({"file": name, "put": 1}), "not a list"),
        (json!({"file": name, "cut": 16}), "leaves all"),
        (json!({"file": name, "hex": "00"}), "is not one of"),
        (json!({"hex": "00", "cut": 0}), "is not one of"),
        (json!({"file": "blob/none.bin", "cut": 0}), "no file"),
    ] {
        let problem = input(edit).unwrap_err();
        assert!(problem.contains(why), "{problem}");
    }
}

/// A run of cuts: `[first, last, rule, offset or "end", field]`.
type CutRun = (usize, usize, String, Value, String);

/// Returns the runs of each case of `golden/<chapter>/truncated.json`.
fn runs() -> impl Iterator<Item = (String, Vec<CutRun>)> {
    let chapters = tvmspec::conformance::CHAPTERS.iter();
    let tables = chapters.filter_map(|chapter| golden(&format!("{}/truncated.json", chapter.name)));
    tables.flat_map(|text| {
        let table: Vec<_> = serde_json::from_slice::<serde_json::Map<String, Value>>(text)
            .unwrap()
            .into_iter()
            .map(|(id, runs)| (id, serde_json::from_value(runs).unwrap()))
            .collect();
        table
    })
}

#[test]
fn every_run_of_truncated_inputs_is_cut_at_both_ends_and_says_where_the_input_ends() {
    let suite = Suite::expect_ours();
    let mut count = 0;
    for (id, runs) in runs() {
        let whole = suite
            .case(&id)
            .unwrap_or_else(|| panic!("there is no case `{id}`"));
        let cut = suite.case(&format!("{id}#truncated"));
        let cuts = &cut.unwrap_or_else(|| panic!("{id}")).cuts;
        let size = whole.bytes().unwrap().len();
        for (first, last, rule, offset, field) in runs {
            assert!(first <= last && last < size, "{id}: {last} of {size} bytes");
            assert!(
                spec::rule(&rule).unwrap().kinds.contains(&Kind::Truncated),
                "{id}: {rule}"
            );
            for length in [first, last] {
                let cut = cuts.iter().find(|cut| cut.length == length);
                let breach = &cut.unwrap_or_else(|| panic!("{id} at {length}")).breach;
                let stated = offset.as_u64();
                assert!(stated.is_some() || offset == "end", "{id}: {offset}");
                assert!(stated.is_none_or(|offset| offset <= first as u64), "{id}");
                assert_eq!(breach.offset, Some(stated.unwrap_or(length as u64)), "{id}");
                assert_eq!(breach.field.as_deref().unwrap_or_default(), field, "{id}");
                assert_eq!(breach.rule, rule, "{id}");
            }
            let inside = cuts
                .iter()
                .filter(|cut| (first..=last).contains(&cut.length));
            assert!(inside.count() >= (last - first + 1).min(4), "{id}");
            count += 1;
        }
    }
    assert!(count > 1000, "{count} runs");
}

/// Cases that remain valid when they are truncated: every beginning of an opaque payload is one.
const WITHOUT_END: [&str; 1] = ["payload/unknown-kind-0.22"];

/// A new case must be in the table, or the table must state why it is not.
#[test]
fn every_accepted_decode_of_bytes_is_cut() {
    let suite = Suite::expect_ours();
    let missing: Vec<&str> = suite
        .cases
        .iter()
        .filter(|case| case.op.ends_with(".decode") && case.cuts.is_empty())
        .filter(|case| matches!(case.expect, Expect::Accept(_)))
        .filter(|case| case.bytes().is_some_and(|bytes| !bytes.is_empty()))
        .map(|case| case.id.as_str())
        .filter(|id| suite.case(&format!("{id}#truncated")).is_none() && !WITHOUT_END.contains(id))
        .collect();
    assert!(
        missing.is_empty(),
        "python3 conformance/truncated.py adds: {missing:?}"
    );
}
