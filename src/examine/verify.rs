//! Every rule that a file breaks, and every oddity (`spec/schema/verify.json`).

use super::{NotExaminable, Reading, Subject};
use crate::blob::is_unknown_kind;
use crate::rule::{Finding, Findings, Violation};
use crate::wire::Span;
use crate::wire::json::object;
use serde_json::Value;

/// What was found in a file.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Verification {
    /// The name of the file, as the caller stated it.
    pub file: String,
    /// The broken rules. What can be read and not be used breaks a MUST all the same.
    pub violations: Vec<LocatedProblem<Violation>>,
    /// The oddities, [`Findings::MOST`] at most.
    pub findings: Vec<LocatedProblem<Finding>>,
    /// Kinds of modules that no release has: nothing behind them was read (BLOB-06).
    pub unread: Vec<LocatedProblem<Violation>>,
    /// How many oddities there are besides.
    pub omitted: usize,
    /// Whether nothing in the file has fields: it is compiled code without a library binary.
    pub host_only: bool,
}

/// Something that is wrong or odd, and where.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LocatedProblem<T> {
    /// What it is about.
    pub what: T,
    /// The file, and what inside it: `model.so, symbol __tvm_dev_mblob`.
    pub place: String,
    /// The field that holds the offset; empty where none is known.
    pub field: String,
}

/// A run of bytes that was read to its end, or to the first broken rule.
#[derive(Debug)]
#[non_exhaustive]
pub struct CheckedRun<'a> {
    /// The file, and what inside it.
    pub place: &'a str,
    /// The bytes that offsets count.
    pub bytes: &'a [u8],
    /// Every field, by offset; empty where nothing is wrong or odd, and of JSON.
    pub spans: &'a [Span],
    /// The broken rules.
    pub violations: &'a [Violation],
    /// What is odd and tolerated.
    pub findings: &'a [Finding],
    /// The kind of a module that no release has, behind which nothing was read (BLOB-06).
    pub unread: &'a [Violation],
}

/// Holds a file to every rule that is about its bytes. `each` sees every run of bytes, one after the other: what it is shown
/// does not stay in memory.
///
/// # Errors
///
/// Nothing in the file has rules: it is no file of TVM, or a runtime and no compiled code.
pub fn verify(
    subject: &Subject<'_>,
    mut each: impl FnMut(&CheckedRun<'_>),
) -> Result<Verification, NotExaminable> {
    let units = subject.units();
    // JSON is no unit: its offsets are those of values, and it has no fields.
    let json = subject.json();
    let host_only = units.is_empty() && json.is_none();
    // MOD-01: compiled code without a library binary is sound, and has nothing to verify. Anything else without rules is a mistake.
    if host_only && !subject.is_compiled() {
        return Err(subject.nothing());
    }
    let mut all = Verification {
        host_only,
        ..Verification::new(subject.name)
    };
    // The container was read when the file was opened: only its oddities are left to report, and they come first.
    let container = Reading::noted(&subject.file.findings);
    for reading in std::iter::once(container).chain(json) {
        all.add(subject.name, subject.bytes, reading, &mut each);
    }
    for shard in &subject.shards {
        let place = format!("{}, shard {}", subject.name, shard.path);
        all.add(&place, &[], shard.reading.clone(), &mut each);
    }
    for unit in &units {
        // Fields take many times the memory of the bytes, and most files are sound: they are recorded in a second reading, where there is
        // something to find a field for.
        let mut reading = unit.judge();
        if reading.broken.is_some() || !reading.findings.is_empty() {
            reading = unit.trace();
        }
        all.add(&unit.name, &unit.bytes, reading, &mut each);
    }
    Ok(all)
}

/// [`verify`] of a file whose container itself is broken.
///
/// There is one violation, without a field: nothing behind it was read.
pub fn broken(
    name: &str,
    bytes: &[u8],
    broken: Violation,
    mut each: impl FnMut(&CheckedRun<'_>),
) -> Verification {
    let reading = Reading {
        broken: Some(broken),
        ..Reading::default()
    };
    let mut all = Verification::new(name);
    all.add(name, bytes, reading, &mut each);
    all
}

impl Verification {
    /// That of a file of this name in which nothing is wrong or odd so far.
    fn new(file: &str) -> Verification {
        Verification {
            file: file.to_owned(),
            violations: Vec::new(),
            findings: Vec::new(),
            unread: Vec::new(),
            omitted: 0,
            host_only: false,
        }
    }

    /// How many oddities there are.
    pub fn found(&self) -> usize {
        self.findings.len().saturating_add(self.omitted)
    }

    /// The JSON form: `{"file", "host_only", "violations": [..], "findings": [..]}`, and `omitted_findings` where there are any.
    pub fn to_json(&self) -> Value {
        let violations = self.violations.iter().map(|located| {
            let broken = &located.what;
            object([
                ("rule", broken.rule().id().into()),
                ("kind", broken.kind().name().into()),
                ("message", broken.message().into()),
                ("in", located.place.as_str().into()),
                ("offset", broken.offset().into()),
                ("field", located.field.as_str().into()),
            ])
        });
        let findings = self.findings.iter().map(|located| {
            let finding = &located.what;
            object([
                ("rule", finding.rule.id().into()),
                ("message", finding.message.as_str().into()),
                ("in", located.place.as_str().into()),
                ("offset", finding.offset.into()),
                ("field", located.field.as_str().into()),
            ])
        });
        let mut whole = object([
            ("file", self.file.as_str().into()),
            ("host_only", self.host_only.into()),
            ("violations", violations.collect::<Vec<_>>().into()),
            ("findings", findings.collect::<Vec<_>>().into()),
        ]);
        if let (false, Value::Object(whole)) = (self.unread.is_empty(), &mut whole) {
            let unread = self.unread.iter().map(|located| {
                let unknown = &located.what;
                object([
                    ("rule", unknown.rule().id().into()),
                    ("message", unknown.message().into()),
                    ("in", located.place.as_str().into()),
                    ("offset", unknown.offset().into()),
                ])
            });
            whole.insert("unread".to_owned(), unread.collect());
        }
        // The member is there only where the list of findings is not whole.
        if let (1.., Value::Object(whole)) = (self.omitted, &mut whole) {
            whole.insert("omitted_findings".to_owned(), self.omitted.into());
        }
        whole
    }

    /// Adds what was read of one run of bytes, after `each` has seen it. The field of an oddity is that of its offset: a reader notes
    /// it before the field is known.
    fn add(
        &mut self,
        place: &str,
        bytes: &[u8],
        reading: Reading,
        each: &mut impl FnMut(&CheckedRun<'_>),
    ) {
        let spans = reading.spans;
        let (findings, unusable): (Vec<_>, Vec<_>) = reading
            .findings
            .into_iter()
            // TEN-35: what can be read and not be used is noted as an oddity by readers, and breaks a MUST all the same.
            .partition(|finding| finding.usable);
        // BLOB-06: a kind of a vendor breaks no rule: it is not known here.
        let (unread, violations): (Vec<_>, Vec<_>) = unusable
            .iter()
            .map(Finding::to_violation)
            .chain(reading.broken)
            .partition(is_unknown_kind);
        each(&CheckedRun {
            place,
            bytes,
            spans: &spans,
            violations: &violations,
            findings: &findings,
            unread: &unread,
        });
        self.unread
            .extend(unread.into_iter().map(|what| LocatedProblem {
                place: place.to_owned(),
                field: what.field().to_owned(),
                what,
            }));
        self.violations.extend(violations.into_iter().map(|broken| {
            let known = broken.field();
            // Most violations name their field; where one does not, the recorded fields have it by the offset.
            let field = match broken.offset() {
                Some(offset) if known.is_empty() => field_at(&spans, offset),
                _ => known,
            };
            LocatedProblem {
                place: place.to_owned(),
                field: field.to_owned(),
                what: broken,
            }
        }));
        self.omitted = self.omitted.saturating_add(reading.omitted);
        for finding in findings {
            // The bound of one reading is not enough: a file of many units would add them up.
            if self.findings.len() >= Findings::MOST {
                self.omitted = self.omitted.saturating_add(1);
                continue;
            }
            self.findings.push(LocatedProblem {
                place: place.to_owned(),
                field: field_at(&spans, finding.offset).to_owned(),
                what: finding,
            });
        }
    }
}

/// The field of `spans` that holds `offset`; empty where none does.
pub fn field_at(spans: &[Span], offset: u64) -> &str {
    // Spans ascend, so that the last one that starts at or before the offset is the innermost candidate.
    let behind = spans.partition_point(|span| span.start <= offset);
    let span = behind.checked_sub(1).and_then(|last| spans.get(last));
    span.filter(|span| offset < span.end)
        .map_or("", |span| span.field.as_str())
}
