//! Reading of a case file: groups are expanded into whole cases, and each case is checked.

use super::{Breach, Case, CaseInput, Expect};
use crate::conformance::edited_golden::{self, INPUTS};
use crate::conformance::golden::{golden, hex_bytes};
use crate::conformance::reply::Oddity;
use crate::file_name::is_file_name;
use crate::rule::Kind;
use crate::spec;
use serde_json::{Map, Value};

/// The allowed members of an entry. A misspelt `findings` would otherwise give a case without findings.
const KEYS: [&str; 13] = [
    "id", "rules", "releases", "op", "parent", "input", "args", "expect", "findings", "encode",
    "own", "why", "origin",
];

/// Returns the cases of a file, each as one object. A file is a list of groups and of single cases. The members of a group, except
/// `cases`, apply to each of its cases that does not state them itself.
pub(in crate::conformance) fn expanded(text: &str) -> Result<Vec<Value>, String> {
    let entries: Vec<Map<String, Value>> =
        serde_json::from_str(text).map_err(|error| error.to_string())?;
    let mut cases = Vec::new();
    for mut shared in entries {
        let Some(rows) = shared.remove("cases") else {
            cases.push(Value::Object(shared));
            continue;
        };
        if shared.contains_key("id") {
            return Err("a group has `cases` or an `id`, not both".to_owned());
        }
        let rows: Vec<Map<String, Value>> = serde_json::from_value(rows)
            .map_err(|error| format!("`cases` of a group is not a list of objects: {error}"))?;
        cases.extend(rows.into_iter().map(|row| {
            let mut whole = shared.clone();
            whole.extend(row);
            Value::Object(whole)
        }));
    }
    Ok(cases)
}

/// Reads the case of an entry; `known` tells whether a rule exists.
pub(in crate::conformance) fn read(
    chapter: &str,
    entry: &Value,
    known: impl Fn(&str) -> bool,
) -> Result<Case, String> {
    let entry = entry.as_object().ok_or("not an object")?;
    if let Some(key) = entry.keys().find(|key| !KEYS.contains(&key.as_str())) {
        return Err(format!("there is no key `{key}`"));
    }
    let text = |key: &str| {
        let text = entry.get(key).and_then(Value::as_str).unwrap_or_default();
        if text.trim().is_empty() {
            Err(format!("`{key}` is missing"))
        } else {
            Ok(text.to_owned())
        }
    };
    let rules_under = |key: &str| -> Result<Vec<String>, String> {
        let list = entry.get(key).map(|list| list.as_array().ok_or(key));
        let list = list
            .transpose()
            .map_err(|key| format!("`{key}` is not a list"))?;
        list.into_iter()
            .flatten()
            .map(|id| {
                let id = id
                    .as_str()
                    .ok_or_else(|| format!("`{key}` is not a list of ids"))?;
                known(id)
                    .then(|| id.to_owned())
                    .ok_or_else(|| format!("there is no rule `{id}`"))
            })
            .collect()
    };
    let case = Case {
        id: id_of(chapter, text("id")?)?,
        chapter: chapter.to_owned(),
        rules: rules_under("rules")?,
        releases: text("releases")?.parse()?,
        op: text("op")?,
        parent: entry
            .get("parent")
            .and_then(Value::as_str)
            .map(str::to_owned),
        input: input_of(entry.get("input"))?,
        args: match entry.get("args") {
            None => Map::new(),
            Some(args) => args.as_object().ok_or("`args` is not an object")?.clone(),
        },
        expect: expect_of(entry.get("expect"))?,
        findings: findings_of(entry.get("findings"), &known)?,
        encode: match entry.get("encode") {
            None => true,
            Some(encode) => encode.as_bool().ok_or("`encode` is not a bool")?,
        },
        own: match entry.get("own") {
            None => false,
            Some(own) => own.as_bool().ok_or("`own` is not a bool")?,
        },
        why: text("why")?,
        origin: origin_of(entry.get("origin"))?,
        cuts: Vec::new(),
    };
    // Reports count failures by the rules of a case. A failure of another rule would be missing.
    if let Expect::Reject(breach) = &case.expect
        && !case.rules.contains(&breach.rule)
    {
        return Err(format!(
            "`expect` names {}, which `rules` does not",
            breach.rule
        ));
    }
    // Without a rule, no report can name the broken rule.
    if case.rules.is_empty() {
        return Err("`rules` is empty: a case shows at least one rule".to_owned());
    }
    // The parent shows that the input is correct except for one thing. A reader that rejects everything fails the parent.
    if matches!(case.expect, Expect::Reject(..)) != case.parent.is_some() {
        return Err("a reject case, and only that, names its `parent`".to_owned());
    }
    let mut rules = case.rules.iter().filter_map(|id| spec::rule(id));
    if case.own && rules.all(|rule| rule.decisions().is_empty()) {
        return Err(
            "`own` marks a case for a paragraph `Here:`, but no rule of the case has such a paragraph".to_owned(),
        );
    }
    placed_in_bytes(&case)?;
    inside_its_rules(&case)?;
    Ok(case)
}

/// Checks the offsets, which tell the reader of a report where to look. Findings in bytes have one, and values that were never
/// bytes have none. A text counts as bytes.
fn placed_in_bytes(case: &Case) -> Result<(), String> {
    if case.bytes().is_some() && case.findings.iter().any(|one| one.offset.is_none()) {
        return Err("a finding in bytes has an `offset`".to_owned());
    }
    let is_value = matches!(&case.input, CaseInput::Value(value) if !value.is_string());
    match &case.expect {
        Expect::Reject(breach) if is_value && breach.offset.is_some() => {
            Err("`offset` in an input that is not bytes".to_owned())
        }
        _ => Ok(()),
    }
}

/// Checks that a case holds only in releases in which all of its rules hold. No implementation then gets a case that no rule
/// demands.
fn inside_its_rules(case: &Case) -> Result<(), String> {
    for rule in case.rules.iter().filter_map(|id| spec::rule(id)) {
        let (claimed, held) = (case.releases, rule.releases);
        // Checking both ends is enough, because the releases of a rule are one range.
        if !held.contains(claimed.since) || !held.contains(claimed.until) {
            return Err(format!(
                "`releases` is `{claimed}`, but {} holds in `{held}`: narrow the one, or leave out the other",
                rule.id
            ));
        }
    }
    Ok(())
}

/// Checks the id, which begins with the chapter of its file. A number is not a name, because it says nothing about the case.
fn id_of(chapter: &str, id: String) -> Result<String, String> {
    // An id is used as a shell word, as an anchor of the HTML report, and as a folder of `--export`.
    let letter = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte);
    let name = id
        .strip_prefix(chapter)
        .and_then(|rest| rest.strip_prefix('/'));
    match name {
        Some(name) if !name.is_empty() && id.bytes().all(letter) => {
            if name.bytes().all(|byte| byte.is_ascii_digit()) {
                return Err(format!("`{id}` is a number, not a name"));
            }
            if let Some(part) = name.split('/').find(|part| !is_file_name(part)) {
                return Err(format!("`{part}` in `{id}` is not the name of a folder"));
            }
            Ok(id)
        }
        _ => Err(format!(
            "the id is not `{chapter}/` and a name of letters, digits, `-`, `_`, `.`"
        )),
    }
}

/// Reads the input of a case: bytes in hex or from a file, bytes with edits, or a value.
fn input_of(input: Option<&Value>) -> Result<CaseInput, String> {
    if let Some(edited) = input.and_then(Value::as_object).filter(|all| all.len() > 1) {
        return edited_golden::read_edited_bytes(edited).map(CaseInput::Hex);
    }
    let (key, value) = only_entry(input).ok_or(INPUTS)?;
    match (key, value) {
        ("file", Value::String(name)) => match golden(name) {
            Some(_) => Ok(CaseInput::File(name.clone())),
            None => Err(format!("there is no file golden/{name}")),
        },
        ("hex", Value::String(hex)) => hex_bytes(hex).map(CaseInput::Hex),
        ("value", value) => Ok(CaseInput::Value(value.clone())),
        ("value_file", Value::String(name)) => json_of(name).map(CaseInput::Value),
        _ => Err(INPUTS.to_owned()),
    }
}

/// Reads the expected answer. `either` stands for a case that the rules leave open: only a crash is wrong.
fn expect_of(expect: Option<&Value>) -> Result<Expect, String> {
    let wrong = "`expect` is not one of accept, accept_file, reject, either";
    let (key, value) = only_entry(expect).ok_or(wrong)?;
    match (key, value) {
        ("reject", breach) => breach_of(breach).map(Expect::Reject),
        ("accept", value) => Ok(Expect::Accept(value.clone())),
        ("accept_file", Value::String(name)) => json_of(name).map(Expect::Accept),
        ("either", Value::Bool(true)) => Ok(Expect::Either),
        _ => Err(wrong.to_owned()),
    }
}

/// Reads the broken rule, the kind and the place. Offset and field may be missing: then a reader may report any place.
fn breach_of(breach: &Value) -> Result<Breach, String> {
    let wrong = "`reject` is not {\"kind\", \"rule\", \"offset\"?, \"field\"?}";
    let members = members_of(breach, &["kind", "rule", "offset", "field"]).ok_or(wrong)?;
    let text = |key: &str| members.get(key).map(|text| text.as_str().ok_or(wrong));
    Ok(Breach {
        kind: kind_of(text("kind").ok_or(wrong)??)?,
        rule: text("rule").ok_or(wrong)??.to_owned(),
        offset: offset_of(members)?,
        field: text("field").transpose()?.map(str::to_owned),
    })
}

/// Reads the findings, each `{"rule", "kind", "offset"?}`; `known` tells whether a rule exists.
fn findings_of(
    findings: Option<&Value>,
    known: impl Fn(&str) -> bool,
) -> Result<Vec<Oddity>, String> {
    let wrong = "`findings` is not a list of {\"rule\", \"kind\", \"offset\"?}";
    let Some(findings) = findings else {
        return Ok(Vec::new());
    };
    let oddity = |finding: &Value| {
        let members = members_of(finding, &["rule", "kind", "offset"]).ok_or(wrong)?;
        let text = |key: &str| members.get(key).and_then(Value::as_str).ok_or(wrong);
        let rule = text("rule")?;
        if !known(rule) {
            return Err(format!("there is no rule `{rule}`"));
        }
        Ok(Oddity {
            rule: rule.to_owned(),
            kind: Some(kind_of(text("kind")?)?.name().to_owned()),
            offset: offset_of(members)?,
        })
    };
    findings
        .as_array()
        .ok_or(wrong)?
        .iter()
        .map(oddity)
        .collect()
}

/// Returns the members of an object if it has only these names.
fn members_of<'a>(value: &'a Value, names: &[&str]) -> Option<&'a Map<String, Value>> {
    let members = value.as_object()?;
    let named = members.keys().all(|key| names.contains(&key.as_str()));
    named.then_some(members)
}

/// Returns the kind of violation with this name.
fn kind_of(name: &str) -> Result<Kind, String> {
    let known = Kind::ALL.iter().find(|known| known.name() == name);
    known
        .copied()
        .ok_or_else(|| format!("there is no kind `{name}`"))
}

/// Reads the offset of a byte from the first one.
fn offset_of(members: &Map<String, Value>) -> Result<Option<u64>, String> {
    let offset = members.get("offset").map(Value::as_u64);
    match offset {
        None => Ok(None),
        Some(Some(offset)) => Ok(Some(offset)),
        Some(None) => Err("`offset` is not a byte".to_owned()),
    }
}

/// Reads the value in a file below `golden/`.
fn json_of(name: &str) -> Result<Value, String> {
    let bytes = golden(name).ok_or_else(|| format!("there is no file golden/{name}"))?;
    serde_json::from_slice(bytes).map_err(|error| format!("golden/{name}: {error}"))
}

/// Reads the origin of the input: a release wrote it, which is evidence of that release's output, or it was made by hand.
fn origin_of(origin: Option<&Value>) -> Result<String, String> {
    let wrong = "`origin` is not {\"release\": ..} or {\"hand\": ..}";
    let origin = origin.and_then(Value::as_object).ok_or(wrong)?;
    let text = |key: &str| {
        origin
            .get(key)
            .and_then(Value::as_str)
            .filter(|text| !text.is_empty())
    };
    match (text("release"), text("hand")) {
        (Some(release), None) => Ok(format!("written by TVM {release}")),
        (None, Some(how)) => Ok(format!("by hand: {how}")),
        _ => Err(wrong.to_owned()),
    }
}

/// Returns the only member of an object. With two members the reader of a case might see only the first.
fn only_entry(value: Option<&Value>) -> Option<(&str, &Value)> {
    let mut entries = value?.as_object()?.iter();
    let (key, value) = entries.next()?;
    entries.next().is_none().then_some((key.as_str(), value))
}
