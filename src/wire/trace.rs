//! What was read where: the raw material of `dump`.

use super::show;
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

/// Whoever wants to hear of every field. Behind a `dyn`, so that what writes values out for people is only linked where
/// somebody does.
pub(super) trait Record: fmt::Debug {
    /// Whether a field from `start` to `end` would be kept: its name and value are made up only then.
    fn wants(&self, start: u64, end: u64) -> bool;

    fn record(&self, start: u64, end: u64, field: String, rule: Rule, value: Value<'_>);
}

/// What was read.
#[derive(Clone, Copy)]
pub(super) enum Value<'a> {
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Bytes(&'a [u8]),
    /// That many bytes of which nothing is known.
    Run(usize),
    /// The count in front of that many bytes, elements or entries.
    Count(u64, &'static str),
}

impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Value::Unsigned(value) => value.fmt(f),
            Value::Signed(value) => value.fmt(f),
            Value::Float(value) => value.fmt(f),
            Value::Bytes(bytes) => f.write_str(&show(bytes)),
            Value::Run(length) => write!(f, "{length} bytes"),
            Value::Count(count, unit) => write!(f, ": {count} {unit}"),
        }
    }
}

/// Collects the [`Span`] of every field that traced cursors read.
#[derive(Debug, Default)]
pub struct Trace {
    spans: RefCell<Vec<Span>>,
    /// Fields that end here or before are not kept.
    from: u64,
    /// How many bytes the spans may still take; `None` without a bound.
    room: Cell<Option<u64>>,
    /// Fields that start here or behind are not kept.
    full: Cell<Option<u64>>,
}

impl Record for Trace {
    fn wants(&self, start: u64, end: u64) -> bool {
        end > self.from && self.full.get().is_none_or(|full| start < full)
    }

    fn record(&self, start: u64, end: u64, field: String, rule: Rule, value: Value<'_>) {
        self.push(Span {
            start,
            end,
            field,
            rule,
            value: value.to_string(),
        });
    }
}

impl Trace {
    /// An empty trace.
    pub fn new() -> Trace {
        Trace::default()
    }

    /// A trace of the fields behind offset `from`, up to the first that does not fit into `room` bytes of memory.
    pub fn bounded(from: u64, room: u64) -> Trace {
        Trace {
            from,
            room: Cell::new(Some(room)),
            ..Trace::default()
        }
    }

    /// Where the first field starts that did not fit.
    pub fn left_out(&self) -> Option<u64> {
        self.full.get()
    }

    /// Adds a span that no cursor read, such as one inside a container.
    pub fn push(&self, span: Span) {
        if !self.wants(span.start, span.end) {
            return;
        }
        if let Some(room) = self.room.get() {
            let left = room.checked_sub(weight(&span));
            self.room.set(Some(left.unwrap_or(room)));
            if left.is_none() {
                // What starts behind the first one that is left out is left out as well, in whatever order it was read.
                self.full.set(Some(span.start));
                self.forget_from(span.start);
                return;
            }
        }
        self.spans.borrow_mut().push(span);
    }

    /// Forgets every span from offset `start` on: what a caller does when it reads a region again in another way.
    pub(crate) fn forget_from(&self, start: u64) {
        self.spans.borrow_mut().retain(|span| span.start < start);
    }

    /// All spans that were kept, by offset.
    pub fn into_spans(self) -> Vec<Span> {
        let mut spans = self.spans.into_inner();
        spans.sort_by_key(|span| span.start);
        spans
    }
}

/// What a span takes in memory, with what a dump makes of it.
fn weight(span: &Span) -> u64 {
    const SPAN: u64 = 256;
    (span.field.len() as u64)
        .saturating_add(span.value.len() as u64)
        .saturating_add(SPAN)
}
