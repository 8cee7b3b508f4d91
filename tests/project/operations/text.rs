//! The section of a chapter, generated from its schema.

use super::schema;
use serde_json::{Value, json};
use std::fmt::Write as _;
use tvmspec::conformance::CHAPTERS;
use tvmspec::conformance::case::{Case, Expect, Suite};

/// Generates the section: each operation with its arguments, its result and an example.
pub(crate) fn operations(chapter: &str) -> String {
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
    // Forms that the operations use, and those that these forms use.
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

/// Describes a named form: a sentence, and its members, its choices or its shape.
pub(crate) fn explained<'a>(form: &'a Value, name: &str, forms: &mut Vec<&'a str>) -> String {
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

/// Formats the members of an object as rows of a table: name, form, description.
fn rows<'a>(object: &'a Value, forms: &mut Vec<&'a str>) -> String {
    let required = object["required"].as_array().cloned().unwrap_or_default();
    let mut text = String::new();
    for (name, form) in object["properties"].as_object().unwrap() {
        let need = if required.contains(&json!(name)) {
            ""
        } else {
            "optional; "
        };
        text.push_str(&row(&format!("`{name}`"), form, need, forms));
    }
    text
}

/// Formats one row. If the form is an unnamed object, adds a row for each of its members.
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

/// Returns the members of a choice if each has a description: the steps of a script.
fn choices(form: &Value) -> Option<&Vec<Value>> {
    let choices = form["anyOf"].as_array()?;
    let described = |choice: &Value| choice["description"].is_string() && choice["$ref"].is_null();
    choices.iter().all(described).then_some(choices)
}

/// Formats JSON on one line, without the middle of long texts, because arguments may be whole libraries.
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

/// Describes a schema in a few words. Adds the forms that it names to `forms`.
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

/// Describes an element of a list of fixed length: its shape, and its description if it has one.
fn element<'a>(form: &'a Value, forms: &mut Vec<&'a str>) -> String {
    let shape = shape(form, forms).replace("`, `", "` or `");
    match form["description"].as_str() {
        Some(about) => format!("{shape} ({about})"),
        None => shape,
    }
}

/// Returns the shortest accepted case of an operation. If there are several arguments, it must show more than one.
fn example(op: &str) -> Option<(&'static Case, &'static Value)> {
    Suite::expect_ours()
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
