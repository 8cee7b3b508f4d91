//! What was read where: the raw material of `dump`.

use super::show;
use crate::rule::Rule;
use std::cell::RefCell;
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
}

impl Record for Trace {
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

    /// Adds a span that no cursor read, such as one inside a container.
    pub fn push(&self, span: Span) {
        self.spans.borrow_mut().push(span);
    }

    /// Forgets every span from offset `start` on: what a caller does when it reads a region again in another way.
    pub fn forget_from(&self, start: u64) {
        self.spans.borrow_mut().retain(|span| span.start < start);
    }

    /// All spans, by offset.
    pub fn into_spans(self) -> Vec<Span> {
        let mut spans = self.spans.into_inner();
        spans.sort_by_key(|span| span.start);
        spans
    }
}
