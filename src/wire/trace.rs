//! A record of every field that was read, for `dump`.

use super::field_path::{DEPTH, PathSegment};
use super::{WIRE_06, WIRE_07, show};
use crate::rule::Rule;
use std::cell::{Cell, RefCell};
use std::fmt;

/// One field of the input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// Absolute offset of the first byte.
    pub start: u64,
    /// Absolute offset after the last byte.
    pub end: u64,
    /// Path of the field: `module[1].kind`.
    pub field: String,
    /// The rule that requires the field.
    pub rule: Rule,
    /// Its value as text for people.
    pub value: String,
}

/// A receiver of every field. It is used through `dyn`, so that the formatting of values is linked only if there is a receiver.
pub(super) trait Record: fmt::Debug {
    /// Returns whether a field that ends at `end` will be kept. Names and values are created only then.
    fn wants(&self, end: u64) -> bool;

    /// Keeps the field from `start` to `end`, both absolute offsets.
    fn record(&self, start: u64, end: u64, field: &str, rule: Rule, value: TraceValue<'_>);

    /// Adds `segment` before the names of fields, until [`Record::leave`].
    fn enter(&self, segment: PathSegment);

    /// Removes the last segment.
    fn leave(&self);
}

/// The value of a field.
#[derive(Clone, Copy)]
pub(super) enum TraceValue<'a> {
    /// An integer or a bool.
    Unsigned(u64),
    /// A signed integer.
    Signed(i64),
    /// A 64-bit float.
    Float(f64),
    /// The content of a string or a byte run, which is shown shortened.
    Bytes(&'a [u8]),
    /// A number of bytes of unknown content.
    Run(usize),
    /// The count before bytes, elements or entries, and their unit.
    Count(u64, &'static str),
}

impl fmt::Display for TraceValue<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            TraceValue::Unsigned(value) => value.fmt(f),
            TraceValue::Signed(value) => value.fmt(f),
            TraceValue::Float(value) => value.fmt(f),
            TraceValue::Bytes(bytes) => f.write_str(&show(bytes)),
            TraceValue::Run(length) => write!(f, "{length} bytes"),
            TraceValue::Count(count, unit) => write!(f, ": {count} {unit}"),
        }
    }
}

/// The [`Span`] of every field that traced cursors read, in the order of the bytes.
#[derive(Debug)]
pub struct Trace {
    /// The fields that were kept. It is a cell, because cloned cursors share one trace.
    spans: RefCell<Vec<Span>>,
    /// The names before the name of a field, the outermost first.
    path: RefCell<Vec<PathSegment>>,
    /// Fields that end at or before this offset are not kept.
    from: u64,
    /// Largest number of fields that are kept.
    most: usize,
    /// Offset of the first field that exceeded the limit. No field after it is kept.
    full: Cell<Option<u64>>,
}

impl Record for Trace {
    fn wants(&self, end: u64) -> bool {
        // A field that begins before `from` and ends after it is shown in full.
        end > self.from && self.full.get().is_none()
    }

    fn record(&self, start: u64, end: u64, field: &str, rule: Rule, value: TraceValue<'_>) {
        let mut spans = self.spans.borrow_mut();
        // Only its offset is kept, so that the dump of a large file can continue there.
        if spans.len() >= self.most {
            self.full.set(Some(start));
            return;
        }
        spans.push(Span {
            start,
            end,
            field: joined(&self.path.borrow(), field),
            rule,
            value: value.to_string(),
        });
    }

    fn enter(&self, segment: PathSegment) {
        self.path.borrow_mut().push(segment);
    }

    fn leave(&self) {
        self.path.borrow_mut().pop();
    }
}

impl Default for Trace {
    fn default() -> Trace {
        Trace::bounded(0, usize::MAX)
    }
}

impl Trace {
    /// Creates a trace of all fields.
    pub fn new() -> Trace {
        Trace::default()
    }

    /// Creates a trace of at most `most` fields that end after offset `from`.
    pub fn bounded(from: u64, most: usize) -> Trace {
        Trace {
            spans: RefCell::default(),
            path: RefCell::default(),
            from,
            most,
            full: Cell::default(),
        }
    }

    /// Returns the offset of the first field that exceeded the limit.
    pub fn left_out(&self) -> Option<u64> {
        self.full.get()
    }

    /// Returns all fields that were kept, in the order of the bytes.
    pub fn into_spans(self) -> Vec<Span> {
        self.spans.into_inner()
    }
}

/// A receiver that calls a closure with the [`Span`] of every field that cursors of [`Cursor::visited`] read, in the order of the bytes.
///
/// Unlike a [`Trace`], it stores no fields, because they take many times the size of the bytes.
///
/// [`Cursor::visited`]: super::Cursor::visited
#[cfg(feature = "rpc")]
pub(crate) struct FieldVisitor<F> {
    /// The closure in a cell, because cloned cursors share one visitor.
    visit: RefCell<F>,
    /// The names before the name of a field, the outermost first.
    path: RefCell<Vec<PathSegment>>,
}

#[cfg(feature = "rpc")]
impl<F: FnMut(Span)> FieldVisitor<F> {
    /// Creates a visitor that calls `visit`. The closure must not read with a cursor of this visitor.
    pub(crate) fn new(visit: F) -> FieldVisitor<F> {
        FieldVisitor {
            visit: RefCell::new(visit),
            path: RefCell::default(),
        }
    }
}

#[cfg(feature = "rpc")]
impl<F> fmt::Debug for FieldVisitor<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FieldVisitor").finish_non_exhaustive()
    }
}

#[cfg(feature = "rpc")]
impl<F: FnMut(Span)> Record for FieldVisitor<F> {
    fn wants(&self, _: u64) -> bool {
        true
    }

    fn record(&self, start: u64, end: u64, field: &str, rule: Rule, value: TraceValue<'_>) {
        let span = Span {
            start,
            end,
            field: joined(&self.path.borrow(), field),
            rule,
            value: value.to_string(),
        };
        (self.visit.borrow_mut())(span);
    }

    fn enter(&self, segment: PathSegment) {
        self.path.borrow_mut().push(segment);
    }

    fn leave(&self) {
        self.path.borrow_mut().pop();
    }
}

/// Returns the name of `field` after the segments of `path`, of which the outermost [`DEPTH`] are shown.
fn joined(path: &[PathSegment], field: &str) -> String {
    let shown = path.iter().take(DEPTH).rev();
    shown.fold(field.to_owned(), |field, segment| segment.join(&field))
}

/// Returns the unit of a count under `rule`.
pub(super) fn unit(rule: Rule) -> &'static str {
    match rule {
        // Counts of vectors and maps are recorded under these rules; a length in bytes under the rule of a string.
        WIRE_06 => "elements",
        WIRE_07 => "entries",
        _ => "bytes",
    }
}
