//! Tests that every operation of a case is described in its chapter, and that every request and expectation has the described form.
//!
//! `spec/schema/<chapter>.json` has a definition named after each operation, `{"args": .., "result": ..}`. The section "Operations" of
//! `spec/<chapter>.md` is generated from it: `BLESS=1 cargo test --test project operations` writes it.
#![cfg(feature = "suite")]

mod devices;
mod text;

use jsonschema::Validator;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use text::{explained, operations};
use tvmspec::conformance::CHAPTERS;
use tvmspec::conformance::case::{Expect, Suite};
use tvmspec::payload;
use tvmspec::release::Release;

const BEGIN: &str =
    "<!-- operations: written by BLESS=1 cargo test --test project operations -->\n";

const END: &str = "<!-- end of operations -->\n";

fn described() -> impl Iterator<Item = &'static str> {
    CHAPTERS.iter().map(|chapter| chapter.name)
}

fn root(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn read(path: &str) -> Value {
    let text = fs::read_to_string(root(path)).unwrap_or_else(|why| panic!("{path}: {why}"));
    serde_json::from_str(&text).unwrap_or_else(|why| panic!("{path}: {why}"))
}

fn schema(chapter: &str) -> Value {
    read(&format!("spec/schema/{chapter}.json"))
}

/// Compiles one definition of a schema, with its references to forms of the same file and of `values.json`.
fn validator(schema: &Value, definition: &str) -> Validator {
    let mut forms = schema["$defs"].clone();
    let shared = read("spec/schema/values.json");
    for (name, form) in shared["$defs"].as_object().unwrap() {
        let taken = forms
            .as_object_mut()
            .unwrap()
            .insert(name.clone(), form.clone());
        assert_eq!(taken, None, "{name} is in values.json and in the chapter");
    }
    merge_references(&mut forms);
    let whole = json!({"$schema": schema["$schema"], "$ref": format!("#/$defs/{definition}"), "$defs": forms});
    jsonschema::validator_for(&whole).unwrap_or_else(|why| panic!("{definition}: {why}"))
}

/// Rewrites references to `values.json#/$defs/..` for the merged document.
fn merge_references(form: &mut Value) {
    match form {
        Value::Object(members) => {
            for (name, member) in members {
                match member
                    .as_str()
                    .and_then(|text| text.strip_prefix("values.json"))
                {
                    Some(own) if name == "$ref" => *member = json!(own),
                    _ => merge_references(member),
                }
            }
        }
        Value::Array(list) => list.iter_mut().for_each(merge_references),
        _ => {}
    }
}

#[test]
fn every_request_and_expectation_has_the_described_form() {
    let mut wrong = Vec::new();
    for chapter in described() {
        let schema = schema(chapter);
        let mut validators = BTreeMap::new();
        for case in Suite::expect_ours()
            .cases
            .iter()
            .filter(|case| case.op.starts_with(&format!("{chapter}.")))
        {
            let validator = validators
                .entry(case.op.clone())
                .or_insert_with(|| validator(&schema, &case.op));
            let record = match &case.expect {
                Expect::Accept(value) => json!({"args": case.request(), "result": value}),
                Expect::Reject(..) | Expect::Either => json!({"args": case.request()}),
            };
            if let Err(why) = validator.validate(&record) {
                let mut why = format!("{}: {why} at {}", case.id, why.instance_path());
                why.truncate(500);
                wrong.push(why);
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} cases:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// A schema that accepts everything would describe nothing.
#[test]
fn a_request_with_another_argument_has_not_the_described_form() {
    for chapter in described() {
        let schema = schema(chapter);
        let mut validators = BTreeMap::new();
        for case in Suite::expect_ours()
            .cases
            .iter()
            .filter(|case| case.op.starts_with(&format!("{chapter}.")))
        {
            let validator = validators
                .entry(case.op.clone())
                .or_insert_with(|| validator(&schema, &case.op));
            let mut args = case.request();
            args.as_object_mut()
                .unwrap()
                .insert("no such argument".into(), json!(1));
            assert!(!validator.is_valid(&json!({"args": args})), "{}", case.op);
            assert!(!validator.is_valid(&json!({})), "{}", case.op);
        }
    }
}

/// Checks that an object has only the named members, and a list only the described elements.
#[test]
fn every_form_is_closed() {
    fn open(form: &Value, place: &str, found: &mut Vec<String>) {
        match form {
            Value::Object(members) => {
                let object = form["type"] == "object" || form["properties"]["args"].is_object();
                let list = form["type"] == "array";
                if object
                    && form
                        .get("additionalProperties")
                        .is_none_or(|more| *more == json!(true))
                    || list && form.get("items").or(form.get("maxItems")).is_none()
                {
                    found.push(place.to_owned());
                }
                for (name, member) in members {
                    open(member, &format!("{place}/{name}"), found);
                }
            }
            Value::Array(items) => {
                for (at, item) in items.iter().enumerate() {
                    open(item, &format!("{place}/{at}"), found);
                }
            }
            _ => {}
        }
    }
    let mut found = Vec::new();
    for name in described().chain(["values"]) {
        open(&schema(name), name, &mut found);
    }
    assert!(found.is_empty(), "open forms: {}", found.join(", "));
}

#[test]
fn every_chapter_ends_with_its_operations() {
    for chapter in described() {
        section(&format!("spec/{chapter}.md"), &operations(chapter));
    }
}

/// Compares the end of a file with the expected text, or writes it.
fn section(file: &str, expected: &str) {
    let path = root(file);
    let prose = fs::read_to_string(&path).unwrap_or_else(|why| panic!("{file}: {why}"));
    let (before, rest) = prose
        .split_once(BEGIN)
        .unwrap_or_else(|| panic!("{file} lacks the line {BEGIN}"));
    let (section, after) = rest
        .split_once(END)
        .unwrap_or_else(|| panic!("{file} lacks {END}"));
    assert_eq!(after, "", "{file} continues after {END}");
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, format!("{before}{BEGIN}{expected}{END}")).unwrap();
    } else {
        assert!(
            section == expected,
            "BLESS=1 cargo test --test project operations writes {file} anew"
        );
    }
}

/// Compares the answers of `payload.kind` for every kind in every release. Equal consecutive releases share a row.
#[test]
fn every_kind_stands_in_the_table_of_kinds() {
    let mut text =
        String::from("\n| kind | releases | form | loader | mask |\n|---|---|---|---|---|\n");
    for info in payload::kinds() {
        let of = |release: Release| {
            let form = info.form_in(release).map(|form| form.name);
            (form, info.loader(release), info.mask(release))
        };
        let mut releases = Release::all().peekable();
        while let Some(first) = releases.next() {
            let answer = of(first);
            let mut last = first;
            while let Some(next) = releases.next_if(|next| of(*next) == answer) {
                last = next;
            }
            let (form, loader, mask) = answer;
            if form.is_none() && loader.is_none() && mask.is_none() {
                continue;
            }
            let range = if first == last {
                first.to_string()
            } else {
                format!("{first} .. {last}")
            };
            let form = form.unwrap_or("-");
            let loader = loader.map_or("-".to_owned(), |name| format!("`{name}`"));
            let mask = mask.map_or("-".to_owned(), |mask| mask.to_string());
            let kind = info.kind;
            writeln!(text, "| `{kind}` | {range} | {form} | {loader} | {mask} |").unwrap();
        }
    }
    section("spec/kinds.md", &text);
}

/// Checks that each form that several chapters use has its own heading, to which they refer.
#[test]
fn shared_forms_are_explained() {
    let shared = schema("values");
    let mut text = String::new();
    for (name, form) in shared["$defs"].as_object().unwrap() {
        write!(text, "\n### {name}\n\n").unwrap();
        text.push_str(&explained(form, name, &mut Vec::new()));
    }
    section("spec/values.md", &text);
}
