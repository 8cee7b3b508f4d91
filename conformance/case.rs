//! Cases as data: `conformance/<chapter>/cases/<topic>.json`, read and checked.

pub(super) mod entry;

use super::files;
pub use super::golden::golden;
use super::reply::Oddity;
use super::truncated::{self, Cut};
use crate::conformance::op;
use crate::release::{ParseError, Releases};
use crate::rule::Kind;
use crate::spec;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::OnceLock;

/// One case: the request, the expected answer, and its significance.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Case {
    /// The name, such as `blob/opencl-root`. It is never a number and never reused. A derived case has the suffix `#encode` or
    /// `#truncated`.
    pub id: String,
    /// The chapter whose file contains the case.
    pub chapter: String,
    /// The ids of the rules that the case tests.
    pub rules: Vec<String>,
    /// The releases in which the case holds.
    pub releases: Releases,
    /// The operation, such as `<chapter>.decode`.
    pub op: String,
    /// For a reject case, the accepted case from which it was made by breaking one rule.
    pub parent: Option<String>,
    /// The input, which the request contains under `data` or `value`.
    pub input: CaseInput,
    /// The other arguments.
    pub args: Map<String, Value>,
    /// The expected answer.
    pub expect: Expect,
    /// The oddities that must be tolerated and reported, each with rule and kind, and with an offset if the input is bytes.
    pub findings: Vec<Oddity>,
    /// `true` if an accepted decode is also run backwards.
    pub encode: bool,
    /// `true` if the case tests a decision under `Here:` of a rule. It binds only this crate; another answer counts as unsupported.
    pub own: bool,
    /// The consequence for a user if this is broken.
    pub why: String,
    /// The origin of the input, in words.
    pub origin: String,
    /// The truncated inputs that must be rejected, each in its own way; empty for a case with its whole input.
    pub cuts: Vec<Cut>,
}

/// The input of a case.
#[derive(Clone, Debug, PartialEq)]
pub enum CaseInput {
    /// A file below `golden/`.
    File(String),
    /// Bytes in the case itself.
    Hex(Vec<u8>),
    /// A value, for operations that do not start from bytes.
    Value(Value),
}

/// The expected answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Expect {
    /// This value.
    Accept(Value),
    /// This rejection.
    Reject(Breach),
    /// Any answer, because implementations of releases differ. A crash is not an answer.
    Either,
}

/// The content of a rejection.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Breach {
    /// The class of the violation.
    pub kind: Kind,
    /// The id of the broken rule, which is one of the case.
    pub rule: String,
    /// The byte offset of the faulty field from the start of the input; `None` if the fault was never in bytes.
    pub offset: Option<u64>,
    /// The path of that field; `None` if it has none.
    pub field: Option<String>,
}

impl Breach {
    /// Returns the form of a case file, without the parts that it does not state.
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
    /// Returns the arguments of the request.
    pub fn request(&self) -> Value {
        let mut args = self.args.clone();
        match &self.input {
            CaseInput::Value(value) => args.insert("value".to_owned(), value.clone()),
            CaseInput::File(_) | CaseInput::Hex(_) => args.insert(
                "data".to_owned(),
                op::base64(self.bytes().unwrap_or_default()),
            ),
        };
        Value::Object(args)
    }

    /// Returns the expectation as cases write it. For a case with cuts it lists each cut with its length.
    pub fn expectation(&self) -> Value {
        if !self.cuts.is_empty() {
            let cuts = self.cuts.iter();
            let cuts =
                cuts.map(|cut| json!({"length": cut.length, "reject": cut.breach.to_json()}));
            return json!({"cuts": cuts.collect::<Vec<_>>()});
        }
        match &self.expect {
            Expect::Accept(value) if self.findings.is_empty() => json!({"accept": value}),
            Expect::Accept(value) => json!({"accept": value, "findings": self.findings}),
            Expect::Reject(breach) => json!({"reject": breach.to_json()}),
            Expect::Either => json!({"either": true}),
        }
    }

    /// Returns the input as bytes, if it is bytes.
    pub fn bytes(&self) -> Option<&[u8]> {
        match &self.input {
            CaseInput::File(name) => golden(name),
            CaseInput::Hex(bytes) => Some(bytes),
            CaseInput::Value(_) => None,
        }
    }

    /// Returns the requests of this case in order: the case itself, or one for each of its cuts.
    pub fn steps(&self) -> impl Iterator<Item = Cow<'_, Case>> {
        let bytes = self.bytes().filter(|_| !self.cuts.is_empty());
        let whole = bytes.is_none().then_some(Cow::Borrowed(self));
        let cuts = self.cuts.iter();
        let cuts = cuts.filter_map(move |cut| Some(Cow::Owned(cut.step(self, bytes?))));
        whole.into_iter().chain(cuts)
    }

    /// Returns the number of bytes of the input of `whole` that this step sends, or `None` if it sends all.
    pub(super) fn cut_to(&self, whole: &Case) -> Option<usize> {
        let length = self.bytes()?.len();
        (!whole.cuts.is_empty()).then_some(length)
    }

    /// Returns the reversed case: the accepted value must be written as the same bytes.
    pub fn encode_case(&self) -> Option<Case> {
        // `encode` is false if a writer would write other bytes, for example because the accepted ones contain tolerated oddities.
        let (Expect::Accept(value), Some(bytes), true) = (&self.expect, self.bytes(), self.encode)
        else {
            return None;
        };
        Some(Case {
            id: format!("{}#encode", self.id),
            // Operations without an `encode` cannot be reversed. For example, `blob.detect` returns less than its bytes, so nothing
            // can write them again.
            op: format!("{}.encode", self.op.strip_suffix(".decode")?),
            input: CaseInput::Value(value.clone()),
            expect: Expect::Accept(op::base64(bytes)),
            findings: Vec::new(),
            ..self.clone()
        })
    }
}

/// Every case, including derived ones, and the hash that identifies them.
#[derive(Debug)]
#[non_exhaustive]
pub struct Suite {
    /// The cases in the order of the chapters and of their files. A derived case follows its origin.
    pub cases: Vec<Case>,
    /// The SHA-256 over every case file and every golden file, in hex.
    pub hash: String,
}

impl Suite {
    /// Returns the suite of this project. With the feature `embed` it is inside the library. Otherwise it is read from the folder of
    /// sources from which this library was built, if that still exists (a dependency by path or git), or from the tree that
    /// `TVMSPEC_ROOT` names.
    ///
    /// # Errors
    ///
    /// There are no cases, or the cases have problems; the error lists every problem of every case.
    pub fn ours() -> Result<&'static Suite, ParseError> {
        static SUITE: OnceLock<Result<Suite, ParseError>> = OnceLock::new();
        let suite = SUITE.get_or_init(|| {
            let mut files = files::case_files("")?;
            // Cases of an unknown chapter have no operation; a test finds such chapters.
            files.retain(|(file, _)| crate::conformance::chapter(chapter_of(file)).is_some());
            Suite::load(&files)
        });
        suite.as_ref().map_err(Clone::clone)
    }

    /// Returns [`Suite::ours`] for programs that cannot continue without it.
    ///
    /// # Panics
    ///
    /// Panics if there are no cases, or if one of them is broken.
    pub fn expect_ours() -> &'static Suite {
        Suite::ours().unwrap_or_else(|problems| panic!("the cases are broken:\n{problems}"))
    }

    /// Reads case files, each given as its path `<chapter>/cases/<topic>.json` and its text.
    ///
    /// # Errors
    ///
    /// Every problem of every case, one per line, so that one edit can correct them all.
    pub fn load(files: &[(&str, &str)]) -> Result<Suite, ParseError> {
        let mut files = files.to_vec();
        // Sorted in dependency order of the chapters, so that the first failure of a report is nearest to the cause.
        files.sort_by_key(|(file, _)| chapter_position(chapter_of(file)));
        Ok(Suite {
            cases: cases_of(&files).map_err(|problems| ParseError::new(problems.join("\n")))?,
            hash: hash(&files),
        })
    }

    /// Returns the case with this id.
    pub fn case(&self, id: &str) -> Option<&Case> {
        self.cases.iter().find(|case| case.id == id)
    }
}

/// The limit of a line, because cases are read and compared as lines.
const LONGEST_LINE: usize = 320;

/// Returns the cases of files in their order, including derived ones.
pub(super) fn cases_of(files: &[(&str, &str)]) -> Result<Vec<Case>, Vec<String>> {
    let (mut cases, mut problems) = (Vec::new(), Vec::new());
    for (file, text) in files {
        let lines = text.lines().zip(1..);
        let long = lines.filter(|(line, _)| line.chars().count() >= LONGEST_LINE);
        problems.extend(long.map(|(_, number)| {
            format!("{file}:{number}: {LONGEST_LINE} letters or more: a long value is in a file below golden/")
        }));
        match entry::expanded(text) {
            Ok(entries) => {
                for (index, entry) in entries.iter().enumerate() {
                    match entry::read(chapter_of(file), entry, |id| spec::rule(id).is_some()) {
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
    // Checked before cases are derived, because a derived case has the relations of its origin.
    problems.extend(relations(&cases));
    if !problems.is_empty() {
        return Err(problems);
    }
    let cases = cases.into_iter().flat_map(|case| {
        let derived = [case.encode_case(), truncated::derive_truncated_case(&case)];
        [case].into_iter().chain(derived.into_iter().flatten())
    });
    Ok(cases.collect())
}

fn chapter_of(file: &str) -> &str {
    file.split('/').next().unwrap_or_default()
}

/// Returns the position of a chapter in dependency order. Unknown chapters come last.
fn chapter_position(chapter: &str) -> usize {
    let known = crate::conformance::CHAPTERS;
    let place = known.iter().position(|known| known.name == chapter);
    place.unwrap_or(known.len())
}

/// Returns the SHA-256 of the case files and of all goldens, each preceded by its name and length. A report names the suite by it,
/// and a testee can notice that another suite calls it.
fn hash(files: &[(&str, &str)]) -> String {
    let mut hasher = Sha256::new();
    let mut add = |name: &str, content: &[u8]| {
        for part in [name.as_bytes(), content] {
            // The lengths keep bytes of one file from counting for the next.
            hasher.update((part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
    };
    for (name, text) in files {
        add(name, text.as_bytes());
    }
    for (name, bytes) in files::goldens() {
        add(name, bytes);
    }
    hasher
        .finalize()
        .iter()
        .fold(String::new(), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        })
}

/// Checks the relations between cases: ids are unique, and parents exist and are accepted.
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
            // A reject case differs from its parent in one thing. If the parent is also rejected, that thing may not be the reason.
            Some(parent) if !matches!(parent.expect, Expect::Accept(_)) => {
                problems.push(format!(
                    "{}: its parent `{}` is not accepted",
                    case.id, parent.id
                ));
            }
            Some(parent) if parent.op != case.op => {
                problems.push(format!(
                    "{}: its parent `{}` has another op",
                    case.id, parent.id
                ));
            }
            Some(_) => {}
        }
    }
    problems
}
