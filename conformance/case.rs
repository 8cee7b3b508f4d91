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

/// One case: the request, the answer that must come back, and why that matters.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
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
    pub input: CaseInput,
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
pub enum CaseInput {
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
#[non_exhaustive]
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
    /// In the form of a case file, without what it does not state.
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
            CaseInput::Value(value) => args.insert("value".to_owned(), value.clone()),
            CaseInput::File(_) | CaseInput::Hex(_) => args.insert(
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
            Expect::Accept(value) => json!({"accept": value, "findings": self.findings}),
            Expect::Reject(breach) => json!({"reject": breach.to_json()}),
            Expect::Either => json!({"either": true}),
        }
    }

    /// The input as bytes, where it is bytes.
    pub fn bytes(&self) -> Option<&[u8]> {
        match &self.input {
            CaseInput::File(name) => golden(name),
            CaseInput::Hex(bytes) => Some(bytes),
            CaseInput::Value(_) => None,
        }
    }

    /// The requests of this case, one after another: the case itself, or one for each of its cuts.
    pub fn steps(&self) -> impl Iterator<Item = Cow<'_, Case>> {
        let bytes = self.bytes().filter(|_| !self.cuts.is_empty());
        let whole = bytes.is_none().then_some(Cow::Borrowed(self));
        let cuts = self.cuts.iter();
        let cuts = cuts.filter_map(move |cut| Some(Cow::Owned(cut.step(self, bytes?))));
        whole.into_iter().chain(cuts)
    }

    /// How many bytes of the input of `whole` this step of it puts; `None` where that is put whole.
    pub(super) fn cut_to(&self, whole: &Case) -> Option<usize> {
        let length = self.bytes()?.len();
        (!whole.cuts.is_empty()).then_some(length)
    }

    /// The case backwards: the accepted value must be written as the same bytes.
    pub fn backwards(&self) -> Option<Case> {
        // `encode` is false where the accepted bytes are not those that a writer makes, such as odd ones that are tolerated.
        let (Expect::Accept(value), Some(bytes), true) = (&self.expect, self.bytes(), self.encode)
        else {
            return None;
        };
        Some(Case {
            id: format!("{}#encode", self.id),
            // What has no `encode` beside it has no way back: `blob.detect` answers less than its bytes, so that nothing writes them again.
            op: format!("{}.encode", self.op.strip_suffix(".decode")?),
            input: CaseInput::Value(value.clone()),
            expect: Expect::Accept(op::base64(bytes)),
            findings: Vec::new(),
            ..self.clone()
        })
    }
}

/// Every case, derived ones included, and the hash that names them.
#[derive(Debug)]
#[non_exhaustive]
pub struct Suite {
    /// In the order of the chapters and of their files; a derived case follows its origin.
    pub cases: Vec<Case>,
    /// SHA-256 over every case file and every golden file, in hex.
    pub hash: String,
}

impl Suite {
    /// Returns the suite of this project: of the tree that this library was built in, or of the one that `TVMSPEC_ROOT` names. With
    /// feature `embed` it is inside the library.
    ///
    /// # Errors
    ///
    /// When there are no cases, and every problem of every case.
    pub fn ours() -> Result<&'static Suite, ParseError> {
        static SUITE: OnceLock<Result<Suite, ParseError>> = OnceLock::new();
        let suite = SUITE.get_or_init(|| {
            let mut files = files::case_files("")?;
            // Cases of a chapter that is not in the table have no operation; a test finds such chapters.
            files.retain(|(file, _)| crate::conformance::chapter(chapter_of(file)).is_some());
            Suite::load(&files)
        });
        suite.as_ref().map_err(Clone::clone)
    }

    /// Returns [`Suite::ours`] for programs that cannot go on without it.
    ///
    /// # Panics
    ///
    /// When there are no cases, and when one of them is broken.
    pub fn embedded() -> &'static Suite {
        Suite::ours().unwrap_or_else(|problems| panic!("the cases are broken:\n{problems}"))
    }

    /// Reads case files, each as `<chapter>/cases/<topic>.json` and text.
    ///
    /// # Errors
    ///
    /// Every problem of every case, a line each, so that one edit corrects them all.
    pub fn load(files: &[(&str, &str)]) -> Result<Suite, ParseError> {
        let mut files = files.to_vec();
        // In the order in which chapters are built on each other: the first failure of a report is then nearest to the cause.
        files.sort_by_key(|(file, _)| place(chapter_of(file)));
        Ok(Suite {
            cases: cases_of(&files).map_err(|problems| ParseError::new(problems.join("\n")))?,
            hash: hash(&files),
        })
    }

    /// The case with this id.
    pub fn case(&self, id: &str) -> Option<&Case> {
        self.cases.iter().find(|case| case.id == id)
    }
}

/// A case is read and compared as lines: none is so long that it is not seen.
const LONGEST_LINE: usize = 320;

/// The cases of files in their order, derived ones included.
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
    // Before any case is derived: a derived one has the relations of its origin.
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

/// SHA-256 of the case files and of all goldens, each with its name and length in front: a report names the suite by it, and a testee that is
/// asked by another suite can say so.
fn hash(files: &[(&str, &str)]) -> String {
    let mut hasher = Sha256::new();
    let mut add = |name: &str, content: &[u8]| {
        for part in [name.as_bytes(), content] {
            // With lengths, so that no byte of one file counts for the next.
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
            // A reject case differs from its parent in one thing: where the parent is rejected, too, nothing shows that this is why.
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
