//! Every operation that a case names is described in its chapter, and every request and expectation has the described form.
//!
//! `spec/schema/<chapter>.json` has a definition named after each operation, `{"args": .., "result": ..}`. The section
//! "Operations" of `spec/<chapter>.md` is made of it: `BLESS=1 cargo test --test operations` writes it anew.
#![cfg(feature = "suite")]

use jsonschema::Validator;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use tvmspec::conformance::CHAPTERS;
use tvmspec::conformance::case::{Case, Expect, Suite};
use tvmspec::conformance::device::{DEFECTS, Defect, Program, programs};
use tvmspec::payload;
use tvmspec::release::Release;

const BEGIN: &str = "<!-- operations: written by BLESS=1 cargo test --test operations -->\n";
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

/// One definition of a schema, with what it refers to: forms of its own file, and those of `values.json`.
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

/// `values.json#/$defs/..` is found in the same document once both are one.
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
        for case in Suite::embedded()
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

/// A schema that takes anything describes nothing.
#[test]
fn a_request_with_another_argument_has_not_the_described_form() {
    for chapter in described() {
        let schema = schema(chapter);
        let mut validators = BTreeMap::new();
        for case in Suite::embedded()
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

/// An object has the members that are named and no others, a list the elements that are described.
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

/// Holds the end of a file to what it should be, or writes it anew.
fn section(file: &str, expected: &str) {
    let path = root(file);
    let prose = fs::read_to_string(&path).unwrap_or_else(|why| panic!("{file}: {why}"));
    let (before, rest) = prose
        .split_once(BEGIN)
        .unwrap_or_else(|| panic!("{file} lacks the line {BEGIN}"));
    let (section, after) = rest
        .split_once(END)
        .unwrap_or_else(|| panic!("{file} lacks {END}"));
    assert_eq!(after, "", "{file} goes on behind {END}");
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, format!("{before}{BEGIN}{expected}{END}")).unwrap();
    } else {
        assert!(
            section == expected,
            "BLESS=1 cargo test --test operations writes {file} anew"
        );
    }
}

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
        let line = |key: &str, value: Value| format!("  \"{key}\": {}", spaced(&value));
        let mut lines = vec![
            line("id", json!(id)),
            line("rules", json!(program.rules)),
            line("releases", json!(program.releases)),
            line("op", json!("device.behaviour")),
            line("input", json!({ "value": program.id })),
        ];
        lines.extend(defect.map(|defect| line("args", json!({ "defect": defect }))));
        lines.push(line(
            "expect",
            json!({"accept": {"holds": defect.is_none()}}),
        ));
        lines.push(line("why", json!(why)));
        lines.push(line("origin", json!({ "hand": origin })));
        format!("{{\n{}\n}}", lines.join(",\n"))
    };
    let order = tvmspec::conformance::device::programs();
    let mut cases: Vec<String> = order
        .map(|program| {
            let origin = "drives the interface; nothing is stored";
            case(program.id, &program, None, program.why, origin)
        })
        .collect();
    cases.extend(DEFECTS.iter().map(|defect| {
        let program = &programs[defect.program];
        let why = "a testee that answers without a look at its device answers the same here";
        let id = format!("device/defect-{}", defect.name);
        case(&id, program, Some(defect.name), why, defect.words)
    }));
    let expected = format!("[\n{}\n]\n", cases.join(",\n"));
    let path = root("conformance/device/cases/behaviour.json");
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, expected).unwrap();
    } else {
        let written = fs::read_to_string(&path).unwrap();
        assert!(
            written == expected,
            "BLESS=1 cargo test --test operations writes {} anew",
            path.display()
        );
    }
}

/// JSON on one line with a space behind each comma and colon, as all case files have it.
fn spaced(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(spaced).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(members) => {
            let members = members.iter();
            let members: Vec<String> = members
                .map(|(key, value)| format!("{}: {}", json!(key), spaced(value)))
                .collect();
            format!("{{{}}}", members.join(", "))
        }
        plain => plain.to_string(),
    }
}

/// What `payload.kind` answers for every kind in every release; equal neighbours share a row.
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
            let range = match first == last {
                true => first.to_string(),
                false => format!("{first} .. {last}"),
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

/// The section: each operation with its arguments, its result and an example.
fn operations(chapter: &str) -> String {
    let schema = schema(chapter);
    let definitions = schema["$defs"].as_object().unwrap();
    let entry = CHAPTERS.iter().find(|entry| entry.name == chapter).unwrap();
    let ops: Vec<&str> = entry.ops().map(|op| op.name).collect();
    for name in definitions.keys().filter(|name| name.contains('.')) {
        assert!(ops.contains(&name.as_str()), "there is no operation {name}");
    }
    let mut text = format!(
        "\nThe schema is `schema/{chapter}.json`; bytes are base64. An example is a request's `args` and its answer, of the case that is named.\n"
    );
    let mut forms: Vec<&str> = Vec::new();
    for op in ops {
        let definition = definitions
            .get(op)
            .unwrap_or_else(|| panic!("spec/schema/{chapter}.json does not describe {op}"));
        write!(text, "\n### `{op}`\n\n{}\n\n", sentence(definition, op)).unwrap();
        text.push_str("| argument | form | |\n|---|---|---|\n");
        text.push_str(&rows(&definition["properties"]["args"], &mut forms));
        let result = &definition["properties"]["result"];
        text.push_str(&row("result", result, "", &mut forms));
        if let Some((case, value)) = example(op) {
            write!(
                text,
                "\n`{}`\n\n```json\n{}\n{}\n```\n",
                case.id,
                shortened(&case.request()),
                shortened(value)
            )
            .unwrap();
        }
    }
    // Forms that the operations name, and those that these name.
    let mut at = 0;
    while let Some(name) = forms.get(at).copied() {
        at += 1;
        let form = &definitions[name];
        if at == 1 {
            text.push_str("\n### Forms\n");
        }
        write!(text, "\n**{name}**: ").unwrap();
        text.push_str(&explained(form, name, &mut forms));
    }
    text
}

/// What a form with a name is: a sentence, and its members, its choices or its shape.
fn explained<'a>(form: &'a Value, name: &str, forms: &mut Vec<&'a str>) -> String {
    let mut text = format!("{}\n", sentence(form, name));
    if form["properties"].is_object() {
        text.push_str("\n| member | form | |\n|---|---|---|\n");
        text.push_str(&rows(form, forms));
    } else if let Some(choices) = choices(form) {
        text.push_str("\n| form | |\n|---|---|\n");
        for choice in choices {
            let about = sentence(choice, name);
            writeln!(text, "| {} | {about} |", shape(choice, forms)).unwrap();
        }
    } else {
        writeln!(text, "\n{}", shape(form, forms)).unwrap();
    }
    text
}

/// Each form that several chapters use has a heading of its own, to which they refer.
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

/// The members of an object as rows of a table: name, form, and what it is.
fn rows<'a>(object: &'a Value, forms: &mut Vec<&'a str>) -> String {
    let required = object["required"].as_array().cloned().unwrap_or_default();
    let mut text = String::new();
    for (name, form) in object["properties"].as_object().unwrap() {
        let need = match required.contains(&json!(name)) {
            true => "",
            false => "optional; ",
        };
        text.push_str(&row(&format!("`{name}`"), form, need, forms));
    }
    text
}

/// One row, and where the form is an object without a name, a row for each of its members.
fn row<'a>(name: &str, form: &'a Value, need: &str, forms: &mut Vec<&'a str>) -> String {
    let about = match form["description"].as_str() {
        Some(about) => format!("{need}{about}"),
        None => need.trim_end_matches("; ").to_owned(),
    };
    if !form["properties"].is_object() {
        return format!("| {name} | {} | {about} |\n", shape(form, forms));
    }
    let members = rows(form, forms);
    let members = members.lines().map(|member| {
        let member = member.strip_prefix("| ").unwrap_or(member);
        format!("| {name}.{member}\n")
    });
    let members: String = members.collect();
    format!("| {name} | object | {about} |\n{members}")
}

/// The members of a choice that each say what they are: the steps of a script.
fn choices(form: &Value) -> Option<&Vec<Value>> {
    let choices = form["anyOf"].as_array()?;
    let described = |choice: &Value| choice["description"].is_string() && choice["$ref"].is_null();
    choices.iter().all(described).then_some(choices)
}

/// JSON on one line, with the middle of long texts left out: whole libraries are arguments.
fn shortened(value: &Value) -> String {
    fn cut(value: &mut Value) {
        match value {
            Value::String(text) if text.len() > 300 && text.is_ascii() => {
                *text = format!(
                    "{}... {} more ...{}",
                    &text[..40],
                    text.len() - 60,
                    &text[text.len() - 20..]
                );
            }
            Value::Array(list) => list.iter_mut().for_each(cut),
            Value::Object(members) => members.values_mut().for_each(cut),
            _ => {}
        }
    }
    let mut value = value.clone();
    cut(&mut value);
    value.to_string()
}

fn sentence<'a>(form: &'a Value, name: &str) -> &'a str {
    form["description"]
        .as_str()
        .unwrap_or_else(|| panic!("{name} has no description"))
}

/// A schema in a few words. Forms that it names are added to `forms`.
fn shape<'a>(form: &'a Value, forms: &mut Vec<&'a str>) -> String {
    if let Some(reference) = form["$ref"].as_str() {
        if let Some(name) = reference.strip_prefix("#/$defs/") {
            if !forms.contains(&name) {
                forms.push(name);
            }
            return name.to_owned();
        }
        let name = reference.rsplit('/').next().unwrap_or_default();
        return format!("[{name}](values.md#{name})");
    }
    if let Some(one) = form.get("const") {
        return format!("`{one}`");
    }
    if let Some(words) = form["enum"].as_array() {
        let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
        return words.join(", ");
    }
    for key in ["anyOf", "oneOf"] {
        if let Some(list) = form[key].as_array() {
            let list: Vec<String> = list.iter().map(|form| shape(form, forms)).collect();
            return list.join(" or ");
        }
    }
    match &form["type"] {
        Value::Array(types) => {
            let names: Vec<&str> = types.iter().filter_map(Value::as_str).collect();
            names.join(" or ")
        }
        Value::String(name) if name == "array" => match form["prefixItems"].as_array() {
            Some(items) => {
                let least = form["minItems"].as_u64().unwrap_or(items.len() as u64);
                let items = items.iter().zip(1..);
                let items = items.map(|(form, count)| {
                    let mark = if count > least { "?" } else { "" };
                    format!("{}{mark}", element(form, forms))
                });
                let mut items: Vec<String> = items.collect();
                if form["items"].is_object() {
                    items.push(format!("{}, ..", shape(&form["items"], forms)));
                }
                format!("[{}]", items.join(", "))
            }
            None if form["items"].is_object() => {
                format!("list of {}", shape(&form["items"], forms))
            }
            None => "list".to_owned(),
        },
        Value::String(name) if name == "object" => match form["properties"].as_object() {
            Some(members) => {
                let required = form["required"].as_array().cloned().unwrap_or_default();
                let members: Vec<String> = members
                    .iter()
                    .map(|(name, form)| {
                        let mark = if required.contains(&json!(name)) {
                            ""
                        } else {
                            "?"
                        };
                        format!("`{name}`{mark}: {}", shape(form, forms))
                    })
                    .collect();
                format!("{{{}}}", members.join(", "))
            }
            None if form["additionalProperties"].is_object() => {
                format!("object of {}", shape(&form["additionalProperties"], forms))
            }
            None => "object".to_owned(),
        },
        Value::String(name) => name.clone(),
        _ => "any".to_owned(),
    }
}

/// An element of a list of fixed length: its shape, and its description where there is one.
fn element<'a>(form: &'a Value, forms: &mut Vec<&'a str>) -> String {
    let shape = shape(form, forms).replace("`, `", "` or `");
    match form["description"].as_str() {
        Some(about) => format!("{shape} ({about})"),
        None => shape,
    }
}

/// The shortest accepted case of an operation that shows more than one argument where there are several.
fn example(op: &str) -> Option<(&'static Case, &'static Value)> {
    Suite::embedded()
        .cases
        .iter()
        .filter(|case| case.op == op)
        .filter_map(|case| match &case.expect {
            Expect::Accept(value) => Some((case, value)),
            Expect::Reject(..) | Expect::Either => None,
        })
        .min_by_key(|(case, value)| {
            let failed = **value == json!([{"error": true}]);
            let empty = failed
                || value.is_null()
                || value.as_array().is_some_and(Vec::is_empty)
                || case.request()["value"] == "";
            (
                empty,
                case.request().to_string().len() + value.to_string().len(),
            )
        })
}
