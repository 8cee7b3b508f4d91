//! What was read where: the raw material of `dump`.

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
    /// Absolute offset behind the last byte.
    pub end: u64,
    /// Path of the field: `module[1].kind`.
    pub field: String,
    /// The rule that puts the field there.
    pub rule: Rule,
    /// Its value, for people.
    pub value: String,
}

/// A listener for every field. Behind a `dyn`, so that what writes values out for people is only linked where
/// there is one.
pub(super) trait Record: fmt::Debug {
    /// Whether a field that ends at `end` would be kept: its name and value are made up only then.
    fn wants(&self, end: u64) -> bool;

    /// Keeps the field of bytes `start` to `end`, absolute offsets.
    fn record(&self, start: u64, end: u64, field: &str, rule: Rule, value: TraceValue<'_>);

    /// Prefixes the names of fields with `segment`, until [`Record::leave`].
    fn enter(&self, segment: PathSegment);

    /// Drops the segment that was entered last.
    fn leave(&self);
}

/// What was read.
#[derive(Clone, Copy)]
pub(super) enum TraceValue<'a> {
    /// An integer or a bool.
    Unsigned(u64),
    /// An integer with a sign.
    Signed(i64),
    /// A 64-bit float.
    Float(f64),
    /// The content of a string or a byte run, shown shortened.
    Bytes(&'a [u8]),
    /// That many bytes of which nothing is known.
    Run(usize),
    /// The count in front of that many bytes, elements or entries.
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

/// Collects the [`Span`] of every field that traced cursors read, in the order of the bytes.
#[derive(Debug)]
pub struct Trace {
    /// What was kept. A cell: cursors that are cloned share one trace.
    spans: RefCell<Vec<Span>>,
    /// The names that precede that of a field, the outermost first.
    path: RefCell<Vec<PathSegment>>,
    /// Fields that end here or before are not kept.
    from: u64,
    /// How many fields are kept.
    most: usize,
    /// Where the first field starts that was one too many. None is kept from there on.
    full: Cell<Option<u64>>,
}

impl Record for Trace {
    fn wants(&self, end: u64) -> bool {
        // A field that begins before `from` and ends behind it is shown whole.
        end > self.from && self.full.get().is_none()
    }

    fn record(&self, start: u64, end: u64, field: &str, rule: Rule, value: TraceValue<'_>) {
        let mut spans = self.spans.borrow_mut();
        // Only where the first one too many begins: a dump of a large file is read on from there.
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
    /// A trace of all fields.
    pub fn new() -> Trace {
        Trace::default()
    }

    /// A trace of `most` fields, the first behind offset `from`.
    pub fn bounded(from: u64, most: usize) -> Trace {
        Trace {
            spans: RefCell::default(),
            path: RefCell::default(),
            from,
            most,
            full: Cell::default(),
        }
    }

    /// Where the first field starts that was one too many.
    pub fn left_out(&self) -> Option<u64> {
        self.full.get()
    }

    /// All fields that were kept, in the order of the bytes.
    pub fn into_spans(self) -> Vec<Span> {
        self.spans.into_inner()
    }
}

/// Calls a closure with the [`Span`] of every field that cursors of [`Cursor::visited`] read, in the order of the bytes.
///
/// Where [`Trace`] collects fields, this holds none: a run of bytes has many times its size of them.
///
/// [`Cursor::visited`]: super::Cursor::visited
#[cfg(feature = "rpc")]
pub(crate) struct FieldVisitor<F> {
    /// A cell, because cursors that are cloned share one visitor.
    visit: RefCell<F>,
    /// The names in front of that of a field, the outermost first.
    path: RefCell<Vec<PathSegment>>,
}

#[cfg(feature = "rpc")]
impl<F: FnMut(Span)> FieldVisitor<F> {
    /// A visitor that calls `visit`, which may read with no cursor of this visitor.
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

/// The name of `field` behind the segments of `path`, of which the outermost [`DEPTH`] are shown.
fn joined(path: &[PathSegment], field: &str) -> String {
    let shown = path.iter().take(DEPTH).rev();
    shown.fold(field.to_owned(), |field, segment| segment.join(&field))
}

/// What a count under `rule` counts.
pub(super) fn unit(rule: Rule) -> &'static str {
    match rule {
        // Counts of vectors and maps are recorded under their own rule; a length of bytes under that of the string.
        WIRE_06 => "elements",
        WIRE_07 => "entries",
        _ => "bytes",
    }
}
