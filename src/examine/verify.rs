//! Verification of a file: every broken rule and every oddity (`spec/schema/verify.json`).

use super::{NotExaminable, Reading, Subject};
use crate::blob::{BLOB_06, is_unknown_kind};
use crate::rule::{Finding, Findings, Violation};
use crate::wire::Span;
use crate::wire::json::object;
use serde_json::Value;

/// The result of verifying a file.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Verification {
    /// The name of the file, as the caller states it.
    pub file: String,
    /// The broken rules. This includes content that can be read but not used, because it breaks a MUST.
    pub violations: Vec<LocatedProblem<Violation>>,
    /// The oddities, at most [`Findings::MOST`].
    pub findings: Vec<LocatedProblem<Finding>>,
    /// Kinds of modules that no release has. The payload of such a module, or everything after it, was not read (BLOB-06).
    pub unread: Vec<LocatedProblem<Violation>>,
    /// True if the payload of a module of such a kind was guessed. The guess is among the findings (BLOB-06).
    pub guessed: bool,
    /// The number of further oddities.
    pub omitted: usize,
    /// True if the file has no fields, because it is compiled code without a library binary.
    pub host_only: bool,
}

/// A fault or an oddity, and its place.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LocatedProblem<T> {
    /// The violation or the finding.
    pub what: T,
    /// The file and the part of it: `model.so, symbol __tvm_dev_mblob`.
    pub place: String,
    /// The field at the offset; empty if none is known.
    pub field: String,
}

/// A run of bytes that was read to its end, or to the first broken rule.
#[derive(Debug)]
#[non_exhaustive]
pub struct CheckedRun<'a> {
    /// The file and the part of it.
    pub place: &'a str,
    /// The bytes that offsets refer to.
    pub bytes: &'a [u8],
    /// Every field, by offset; empty if there is no fault or oddity, and for JSON.
    pub spans: &'a [Span],
    /// The broken rules.
    pub violations: &'a [Violation],
    /// The tolerated oddities.
    pub findings: &'a [Finding],
    /// The kind of a module that no release has. Its payload, or everything after it, was not read (BLOB-06).
    pub unread: &'a [Violation],
}

impl Subject<'_> {
    /// Checks the file against every rule about its bytes.
    ///
    /// # Errors
    ///
    /// Fails if nothing in the file has rules: TVM did not write it, or it is a runtime without compiled code.
    pub fn verify(&self) -> Result<Verification, NotExaminable> {
        self.verify_each(|_| {})
    }

    /// Like [`Subject::verify`], and calls `each` for every run of bytes in turn. The run is dropped after the call.
    ///
    /// # Errors
    ///
    /// Fails like [`Subject::verify`].
    pub fn verify_each(
        &self,
        mut each: impl FnMut(&CheckedRun<'_>),
    ) -> Result<Verification, NotExaminable> {
        if let Some(broken) = &self.broken {
            return Ok(of_broken(self.name, self.bytes, broken.clone(), each));
        }
        let units = self.units();
        // JSON is not a unit: its offsets are those of values, and it has no fields.
        let json = self.json();
        let host_only = units.is_empty() && json.is_none();
        // MOD-01: compiled code without a library binary is valid and has nothing to verify. Any other file without rules is a mistake of
        // the caller.
        if host_only && !self.is_compiled() {
            return Err(self.not_examinable());
        }
        let mut all = Verification {
            host_only,
            ..Verification::new(self.name)
        };
        // The container was checked when the file was opened. Only its oddities are left to report, and they come first.
        let container = Reading::from_container(&self.file.findings);
        for reading in std::iter::once(container).chain(json) {
            all.add(self.name, self.bytes, reading, &mut each);
        }
        for shard in &self.shards {
            let place = format!("{}, shard {}", self.name, shard.path);
            all.add(&place, &[], shard.reading.clone(), &mut each);
        }
        for unit in &units {
            // Fields take many times the memory of the bytes, and most files are valid. Fields are recorded by a second reading, only if
            // there is a fault or an oddity to locate.
            let mut reading = unit.judge();
            if reading.broken.is_some() || !reading.findings.is_empty() {
                reading = unit.trace();
            }
            all.add(&unit.name, &unit.bytes, reading, &mut each);
        }
        Ok(all)
    }
}

/// Creates the verification of a file whose container is broken.
///
/// It has one violation, without a field, because nothing in the container was read.
fn of_broken(
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
    /// Creates a verification of this file without any fault or oddity.
    fn new(file: &str) -> Verification {
        Verification {
            file: file.to_owned(),
            violations: Vec::new(),
            findings: Vec::new(),
            unread: Vec::new(),
            guessed: false,
            omitted: 0,
            host_only: false,
        }
    }

    /// Returns the number of oddities.
    pub fn found(&self) -> usize {
        self.findings.len().saturating_add(self.omitted)
    }

    /// Returns the JSON form: `{"file", "host_only", "violations": [..], "findings": [..]}`, and `omitted_findings` if any are omitted.
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
        // The member is present only if the list of findings is incomplete.
        if let (1.., Value::Object(whole)) = (self.omitted, &mut whole) {
            whole.insert("omitted_findings".to_owned(), self.omitted.into());
        }
        whole
    }

    /// Adds the reading of one run of bytes, after `each` has seen it. The field of an oddity is found by its offset, because a reader
    /// reports an oddity before it records the field.
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
            // TEN-35: readers report content that can be read but not used as an oddity. It breaks a MUST nevertheless.
            .partition(|finding| finding.usable);
        // BLOB-06: a vendor's kind is unknown here, but breaks no rule.
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
            // Most violations name their field. For the others, the offset identifies the recorded field.
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
        self.guessed |= findings.iter().any(|finding| finding.rule == BLOB_06);
        self.omitted = self.omitted.saturating_add(reading.omitted);
        for finding in findings {
            // The limit per reading is not enough, because a file may have many units.
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

/// Returns the field of `spans` that holds `offset`, or an empty string.
pub fn field_at(spans: &[Span], offset: u64) -> &str {
    // Spans are sorted, so that the last one that starts at or before the offset is the only candidate.
    let behind = spans.partition_point(|span| span.start <= offset);
    let span = behind.checked_sub(1).and_then(|last| spans.get(last));
    span.filter(|span| offset < span.end)
        .map_or("", |span| span.field.as_str())
}
