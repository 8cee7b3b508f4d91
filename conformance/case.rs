//! Cases as data: `conformance/<chapter>/cases/<topic>.json`, read and checked.

use super::adapter::Oddity;
use super::adapter::protocol::oddity_to_json;
use super::truncated::{self, Cut};
use crate::conformance::op;
use crate::release::Releases;
use crate::rule::Kind;
use crate::spec;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::OnceLock;

/// One case: what is asked, what must come back, and why that matters.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// A name such as `blob/opencl-root`; never a number, never reused. A derived case adds `#encode` or `#truncated`.
    pub id: String,
    /// The chapter whose file holds it.
    pub chapter: String,
    /// Ids of the rules that it shows.
    pub rules: Vec<String>,
    /// The releases in which it holds.
    pub releases: Releases,
    /// The operation: `<chapter>.decode` and so on.
    pub op: String,
    /// For a reject case, the accepted case that it was made of by breaking one rule.
    pub parent: Option<String>,
    /// What arrives under `data` or `value`.
    pub input: Input,
    /// The other arguments.
    pub args: Map<String, Value>,
    /// What must come back.
    pub expect: Expect,
    /// The oddities that are to be tolerated and reported, each with rule and kind, and with an offset where the input has bytes.
    pub findings: Vec<Oddity>,
    /// Whether an accepted decode is run backwards too.
    pub encode: bool,
    /// What goes wrong for a user if this is broken.
    pub why: String,
    /// Where the input is from, in words.
    pub origin: String,
    /// The beginnings of the input that must be rejected, each in its own way; empty for a case that puts its input whole.
    pub cuts: Vec<Cut>,
}

/// Where the input of a case is.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// A file below `golden/`.
    File(String),
    /// Bytes in the case itself.
    Hex(Vec<u8>),
    /// A value, for operations that do not start from bytes.
    Value(Value),
}

/// What must come back.
#[derive(Clone, Debug, PartialEq)]
pub enum Expect {
    /// This value.
    Accept(Value),
    /// This rejection.
    Reject(Breach),
    /// Any answer: released implementations disagree. A crash is not an answer.
    Either,
}

/// What a rejection states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breach {
    /// The class of the violation.
    pub kind: Kind,
    /// Id of the rule that is broken, one of those of the case.
    pub rule: String,
    /// Byte offset of the field at fault from the start of the input; `None` where what is broken was never bytes.
    pub offset: Option<u64>,
    /// Path of that field; `None` where it has none.
    pub field: Option<String>,
}

impl Breach {
    fn to_json(&self) -> Value {
        let mut breach = json!({"kind": self.kind.name(), "rule": self.rule});
        if let Some(offset) = self.offset {
            breach["offset"] = offset.into();
        }
        if let Some(field) = &self.field {
            breach["field"] = field.as_str().into();
        }
        breach
    }
}

impl Case {
    /// The arguments of the request.
    pub fn request(&self) -> Value {
        let mut args = self.args.clone();
        match &self.input {
            Input::Value(value) => args.insert("value".to_owned(), value.clone()),
            Input::File(_) | Input::Hex(_) => args.insert(
                "data".to_owned(),
                op::base64(self.bytes().unwrap_or_default()),
            ),
        };
        Value::Object(args)
    }

    /// What must come back, as cases write it; of a case with cuts, for each of them with its length.
    pub fn expectation(&self) -> Value {
        if !self.cuts.is_empty() {
            let cuts = self.cuts.iter();
            let cuts =
                cuts.map(|cut| json!({"length": cut.length, "reject": cut.breach.to_json()}));
            return json!({"cuts": cuts.collect::<Vec<_>>()});
        }
        match &self.expect {
            Expect::Accept(value) if self.findings.is_empty() => json!({"accept": value}),
            Expect::Accept(value) => {
                let findings = self.findings.iter().map(oddity_to_json);
                json!({"accept": value, "findings": findings.collect::<Vec<_>>()})
            }
            Expect::Reject(breach) => json!({"reject": breach.to_json()}),
            Expect::Either => json!({"either": true}),
        }
    }

    /// The input as bytes, where it is bytes.
    pub fn bytes(&self) -> Option<&[u8]> {
        match &self.input {
            Input::File(name) => golden(name),
            Input::Hex(bytes) => Some(bytes),
            Input::Value(_) => None,
        }
    }

    /// What is asked for this case, one after another: the case itself, or one for each of its cuts.
    pub fn steps(&self) -> Vec<Cow<'_, Case>> {
        match self.bytes() {
            Some(bytes) if !self.cuts.is_empty() => {
                let step = |cut: &Cut| Cow::Owned(cut.step(self, bytes));
                self.cuts.iter().map(step).collect()
            }
            _ => vec![Cow::Borrowed(self)],
        }
    }

    /// How many bytes of the input of `whole` this step of it puts; `None` where that is put whole.
    pub(super) fn cut_to(&self, whole: &Case) -> Option<usize> {
        let length = self.bytes()?.len();
        (!whole.cuts.is_empty()).then_some(length)
    }

    /// The case backwards: the accepted value must be written as the same bytes.
    pub fn backwards(&self) -> Option<Case> {
        let (Expect::Accept(value), Some(bytes), true) = (&self.expect, self.bytes(), self.encode)
        else {
            return None;
        };
        Some(Case {
            id: format!("{}#encode", self.id),
            op: format!("{}.encode", self.op.strip_suffix(".decode")?),
            input: Input::Value(value.clone()),
            expect: Expect::Accept(op::base64(bytes)),
            findings: Vec::new(),
            ..self.clone()
        })
    }
}

/// The bytes of a file below `golden/`, by its name with forward slashes.
pub fn golden(name: &str) -> Option<&'static [u8]> {
    let index = spec::GOLDEN
        .binary_search_by_key(&name, |(file, _)| file)
        .ok()?;
    spec::GOLDEN.get(index).map(|(_, bytes)| *bytes)
}

/// Every case, derived ones included, and the hash that names them.
#[derive(Debug)]
pub struct Suite {
    /// In the order of the chapters and of their files; a derived case follows its origin.
    pub cases: Vec<Case>,
    /// SHA-256 over every case file and every golden file, in hex.
    pub hash: String,
}

impl Suite {
    /// The suite that is built into this library.
    ///
    /// # Panics
    ///
    /// When a case file is broken; a test of this crate keeps that from being released.
    pub fn embedded() -> &'static Suite {
        static SUITE: OnceLock<Suite> = OnceLock::new();
        // Cases of a chapter that is not in the table have nobody to answer them; a test finds such chapters.
        let known = |file: &str| crate::conformance::chapter(chapter_of(file)).is_some();
        let files: Vec<(&str, &str)> = spec::CASES
            .iter()
            .copied()
            .filter(|(file, _)| known(file))
            .collect();
        SUITE.get_or_init(|| match Suite::load(&files) {
            Ok(suite) => suite,
            Err(problems) => panic!("the cases are broken:\n{}", problems.join("\n")),
        })
    }

    /// Reads case files, each as `<chapter>/cases/<topic>.json` and text.
    ///
    /// # Errors
    ///
    /// Every problem of every case, so that they can be mended in one go.
    pub fn load(files: &[(&str, &str)]) -> Result<Suite, Vec<String>> {
        let mut files = files.to_vec();
        files.sort_by_key(|(file, _)| place(chapter_of(file)));
        Ok(Suite {
            cases: cases_of(&files)?,
            hash: hash(&files),
        })
    }

    /// The case with this id.
    pub fn case(&self, id: &str) -> Option<&Case> {
        self.cases.iter().find(|case| case.id == id)
    }
}

/// A case is read and compared as lines: none is so long that it is not seen.
const LONGEST_LINE: usize = 300;

/// The cases of files in their order, derived ones included.
pub(super) fn cases_of(files: &[(&str, &str)]) -> Result<Vec<Case>, Vec<String>> {
    let (mut cases, mut problems) = (Vec::new(), Vec::new());
    for (file, text) in files {
        let lines = text.lines().zip(1..);
        let long = lines.filter(|(line, _)| line.chars().count() >= LONGEST_LINE);
        problems.extend(long.map(|(_, number)| {
            format!("{file}:{number}: {LONGEST_LINE} letters or more: a long value stands in a file below golden/")
        }));
        match serde_json::from_str::<Vec<Value>>(text) {
            Ok(list) => {
                for (index, entry) in list.iter().enumerate() {
                    match read(chapter_of(file), entry, |id| spec::rule(id).is_some()) {
                        Ok(case) => cases.push(case),
                        Err(problem) => {
                            let id = entry.get("id").and_then(Value::as_str);
                            let name = id.map_or(format!("case {index}"), str::to_owned);
                            problems.push(format!("{file}: {name}: {problem}"));
                        }
                    }
                }
            }
            Err(error) => problems.push(format!("{file}: {error}")),
        }
    }
    problems.extend(relations(&cases));
    if !problems.is_empty() {
        return Err(problems);
    }
    let cases = cases.into_iter().flat_map(|case| {
        let derived = [case.backwards(), truncated::of(&case)];
        [case].into_iter().chain(derived.into_iter().flatten())
    });
    Ok(cases.collect())
}

fn chapter_of(file: &str) -> &str {
    file.split('/').next().unwrap_or_default()
}

/// Chapters in dependency order, unknown ones behind them.
fn place(chapter: &str) -> usize {
    let known = crate::conformance::CHAPTERS;
    let place = known.iter().position(|known| known.name == chapter);
    place.unwrap_or(known.len())
}

fn hash(files: &[(&str, &str)]) -> String {
    let cases = files.iter().map(|(name, text)| (*name, text.as_bytes()));
    let golden = spec::GOLDEN.iter().map(|(name, bytes)| (*name, *bytes));
    let mut hasher = Sha256::new();
    for (name, bytes) in cases.chain(golden) {
        for part in [name.as_bytes(), bytes] {
            hasher.update((part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
    }
    hasher
        .finalize()
        .iter()
        .fold(String::new(), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        })
}

const KEYS: [&str; 12] = [
    "id", "rules", "releases", "op", "parent", "input", "args", "expect", "findings", "encode",
    "why", "origin",
];

/// The case of an entry; `known` says which rules there are.
pub(super) fn read(
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
        why: text("why")?,
        origin: origin_of(entry.get("origin"))?,
        cuts: Vec::new(),
    };
    if let Expect::Reject(breach) = &case.expect
        && !case.rules.contains(&breach.rule)
    {
        return Err(format!(
            "`expect` names {}, which `rules` does not",
            breach.rule
        ));
    }
    if case.rules.is_empty() {
        return Err("`rules` is empty: a case shows at least one rule".to_owned());
    }
    if matches!(case.expect, Expect::Reject(..)) != case.parent.is_some() {
        return Err("a reject case, and only that, names its `parent`".to_owned());
    }
    placed_in_bytes(&case)?;
    inside_its_rules(&case)?;
    Ok(case)
}

/// An offset is where somebody looks: findings in bytes have one, and what was never bytes has none. A text is bytes.
fn placed_in_bytes(case: &Case) -> Result<(), String> {
    if case.bytes().is_some() && case.findings.iter().any(|one| one.offset.is_none()) {
        return Err("a finding in bytes has an `offset`".to_owned());
    }
    let is_value = matches!(&case.input, Input::Value(value) if !value.is_string());
    match &case.expect {
        Expect::Reject(breach) if is_value && breach.offset.is_some() => {
            Err("`offset` of what was never bytes".to_owned())
        }
        _ => Ok(()),
    }
}

/// A case holds where all of its rules do, or in fewer releases: no implementation is asked for what no rule demands of it.
fn inside_its_rules(case: &Case) -> Result<(), String> {
    for rule in case.rules.iter().filter_map(|id| spec::rule(id)) {
        let (claimed, held) = (case.releases, rule.releases);
        if !held.contains(claimed.since) || !held.contains(claimed.until) {
            return Err(format!(
                "`releases` is `{claimed}`, but {} holds in `{held}`: narrow the one, or leave out the other",
                rule.id
            ));
        }
    }
    Ok(())
}

fn id_of(chapter: &str, id: String) -> Result<String, String> {
    let letter = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte);
    let name = id
        .strip_prefix(chapter)
        .and_then(|rest| rest.strip_prefix('/'));
    match name {
        Some(name) if !name.is_empty() && id.bytes().all(letter) => {
            if name.bytes().all(|byte| byte.is_ascii_digit()) {
                return Err(format!("`{id}` is a number, not a name"));
            }
            Ok(id)
        }
        _ => Err(format!(
            "the id is not `{chapter}/` and a name of letters, digits, `-`, `_`, `.`"
        )),
    }
}

pub(super) const INPUTS: &str =
    "`input` is not one of file, hex, value, value_file; beside `file` may stand `put` and `cut`";

fn input_of(input: Option<&Value>) -> Result<Input, String> {
    if let Some(edited) = input.and_then(Value::as_object).filter(|all| all.len() > 1) {
        return super::edited::bytes(edited).map(Input::Hex);
    }
    let (key, value) = only_entry(input).ok_or(INPUTS)?;
    match (key, value) {
        ("file", Value::String(name)) => match golden(name) {
            Some(_) => Ok(Input::File(name.clone())),
            None => Err(format!("there is no file golden/{name}")),
        },
        ("hex", Value::String(hex)) => hex_bytes(hex).map(Input::Hex),
        ("value", value) => Ok(Input::Value(value.clone())),
        ("value_file", Value::String(name)) => json_of(name).map(Input::Value),
        _ => Err(INPUTS.to_owned()),
    }
}

pub(super) fn hex_bytes(hex: &str) -> Result<Vec<u8>, String> {
    let digits: Vec<u8> = hex
        .chars()
        .filter(|letter| !letter.is_whitespace())
        .map(|letter| {
            letter
                .to_digit(16)
                .and_then(|digit| u8::try_from(digit).ok())
        })
        .collect::<Option<_>>()
        .ok_or("`hex` has a letter that is not a hex digit")?;
    if !digits.len().is_multiple_of(2) {
        return Err("`hex` has half a byte".to_owned());
    }
    Ok(digits
        .chunks_exact(2)
        .map(|pair| pair[0] * 16 + pair[1])
        .collect())
}

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

/// Each `{"rule", "kind", "offset"?}`; `known` says which rules there are.
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

/// An object with no members but these.
fn members_of<'a>(value: &'a Value, names: &[&str]) -> Option<&'a Map<String, Value>> {
    let members = value.as_object()?;
    let named = members.keys().all(|key| names.contains(&key.as_str()));
    named.then_some(members)
}

fn kind_of(name: &str) -> Result<Kind, String> {
    let known = Kind::ALL.iter().find(|known| known.name() == name);
    known
        .copied()
        .ok_or_else(|| format!("there is no kind `{name}`"))
}

fn offset_of(members: &Map<String, Value>) -> Result<Option<u64>, String> {
    let offset = members.get("offset").map(Value::as_u64);
    match offset {
        None => Ok(None),
        Some(Some(offset)) => Ok(Some(offset)),
        Some(None) => Err("`offset` is not a byte".to_owned()),
    }
}

/// The value in a file below `golden/`.
fn json_of(name: &str) -> Result<Value, String> {
    let bytes = golden(name).ok_or_else(|| format!("there is no file golden/{name}"))?;
    serde_json::from_slice(bytes).map_err(|error| format!("golden/{name}: {error}"))
}

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

fn only_entry(value: Option<&Value>) -> Option<(&str, &Value)> {
    let mut entries = value?.as_object()?.iter();
    let (key, value) = entries.next()?;
    entries.next().is_none().then_some((key.as_str(), value))
}

/// What must hold between cases: ids are unique, parents exist and are accepted.
fn relations(cases: &[Case]) -> Vec<String> {
    let mut problems = Vec::new();
    let mut by_id = HashMap::new();
    for case in cases {
        if by_id.insert(case.id.as_str(), case).is_some() {
            problems.push(format!("{}: the id is there twice", case.id));
        }
    }
    for case in cases {
        let Some(parent) = &case.parent else {
            continue;
        };
        match by_id.get(parent.as_str()) {
            None => problems.push(format!("{}: there is no case `{parent}`", case.id)),
            Some(parent) if !matches!(parent.expect, Expect::Accept(_)) => {
                problems.push(format!(
                    "{}: its parent `{}` is not accepted",
                    case.id, parent.id
                ));
            }
            Some(parent) if parent.op != case.op => {
                problems.push(format!(
                    "{}: its parent `{}` asks another op",
                    case.id, parent.id
                ));
            }
            Some(_) => {}
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"{"id":"wire/a","rules":["WIRE-02"],"releases":"..","op":"wire.decode",
        "input":{"hex":"01 00"},"args":{"type":"u16"},"expect":{"accept":1},"why":"w","origin":{"hand":"h"}}"#;
    const BAD: &str = r#"{"id":"wire/b","rules":["WIRE-01"],"releases":"..","op":"wire.decode","parent":"wire/a",
        "input":{"hex":"01"},"args":{"type":"u16"},"expect":{"reject":{"kind":"truncated","rule":"WIRE-01","offset":0}},"why":"w","origin":{"hand":"h"}}"#;

    fn load(cases: &[String]) -> Result<Suite, Vec<String>> {
        Suite::load(&[("wire/cases/numbers.json", &format!("[{}]", cases.join(",")))])
    }

    /// Loads both cases with one text replaced; the only problem must contain `problem`.
    fn refused(from: &str, to: &str, problem: &str) {
        let edited = [GOOD.replace(from, to), BAD.replace(from, to)];
        assert_ne!(edited, [GOOD, BAD], "nothing was replaced");
        let problems = load(&edited).unwrap_err();
        assert!(
            problems.iter().any(|said| said.contains(problem)),
            "{problems:?}"
        );
    }

    #[test]
    fn the_built_in_cases_load() {
        assert!(!Suite::embedded().cases.is_empty());
    }

    #[test]
    fn an_accepted_decode_is_run_backwards() {
        let suite = load(&[GOOD.into(), BAD.into()]).unwrap();
        let ids: Vec<&str> = suite.cases.iter().map(|case| case.id.as_str()).collect();
        assert_eq!(ids, ["wire/a", "wire/a#encode", "wire/b"]);
        let back = &suite.cases[1];
        assert_eq!(back.op, "wire.encode");
        assert_eq!(
            back.request(),
            serde_json::json!({"type": "u16", "value": 1})
        );
        assert_eq!(back.expect, Expect::Accept("AQA=".into()));
        let once = load(&[GOOD.replace("\"why\"", "\"encode\":false,\"why\"")]).unwrap();
        assert_eq!(once.cases.len(), 1);
    }

    #[test]
    fn an_id_is_there_once() {
        refused("wire/b", "wire/a", "there twice");
    }

    #[test]
    fn an_id_is_a_name_in_its_chapter() {
        refused("wire/a", "blob/a", "`wire/` and a name");
        refused("wire/a", "wire/7", "is a number");
    }

    #[test]
    fn a_parent_exists() {
        refused(
            "\"parent\":\"wire/a\"",
            "\"parent\":\"wire/c\"",
            "there is no case `wire/c`",
        );
    }

    #[test]
    fn a_parent_is_accepted() {
        refused(
            "\"parent\":\"wire/a\"",
            "\"parent\":\"wire/b\"",
            "is not accepted",
        );
    }

    #[test]
    fn a_reject_case_has_a_parent() {
        refused("\"parent\":\"wire/a\",", "", "names its `parent`");
    }

    #[test]
    fn rules_exist_and_there_is_one() {
        refused("WIRE-02", "WIRE-99", "there is no rule `WIRE-99`");
        refused("[\"WIRE-02\"]", "[]", "`rules` is empty");
    }

    #[test]
    fn files_exist() {
        refused(
            "{\"hex\":\"01\"}",
            "{\"file\":\"wire/none.bin\"}",
            "no file golden/wire/none.bin",
        );
        refused(
            "{\"accept\":1}",
            "{\"accept_file\":\"none.json\"}",
            "no file golden/none.json",
        );
    }

    #[test]
    fn why_and_origin_are_said() {
        refused("\"why\":\"w\"", "\"why\":\" \"", "`why` is missing");
        refused("{\"hand\":\"h\"}", "{}", "`origin` is not");
        refused(",\"origin\":{\"hand\":\"h\"}", "", "`origin` is not");
    }

    #[test]
    fn misspelled_keys_and_kinds_are_refused() {
        refused("\"why\"", "\"wye\"", "there is no key `wye`");
        refused("truncated", "too-short", "there is no kind");
        refused("\"offset\":0", "\"ofset\":0", "`reject` is not");
        refused(
            "\"rule\":\"WIRE-01\",\"o",
            "\"rule\":\"WIRE-03\",\"o",
            "which `rules` does not",
        );
        refused(
            "{\"hex\":\"01\"}",
            "{\"value\":1}",
            "`offset` of what was never bytes",
        );
        refused("\"01\"", "\"0\"", "half a byte");
        refused("\"..\"", "\"0.9..0.3\"", "runs backwards");
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
            assert!(problems[0].contains(&held), "{problems:?}");
        }
    }

    #[test]
    fn a_line_can_be_seen_whole() {
        let long = |letters: usize| {
            let case = GOOD.replace("\"w\"", &format!("\n\"{}\"\n", "w".repeat(letters)));
            load(&[case])
        };
        assert!(long(LONGEST_LINE - 3).is_ok());
        let problems = long(LONGEST_LINE - 2).unwrap_err();
        assert!(problems[0].contains("numbers.json:3: 300"), "{problems:?}");
    }

    #[test]
    fn the_hash_follows_the_cases() {
        let one = load(&[GOOD.into()]).unwrap();
        let other = load(&[GOOD.replace("\"w\"", "\"v\"")]).unwrap();
        assert_ne!(one.hash, other.hash);
        assert_eq!(one.hash.len(), 64);
    }
}
