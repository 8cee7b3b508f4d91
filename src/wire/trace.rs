//! What was read where: the raw material of `dump`.

use crate::rule::Rule;
use std::cell::RefCell;

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

/// Collects the [`Span`] of every field that traced cursors read.
#[derive(Debug, Default)]
pub struct Trace {
    spans: RefCell<Vec<Span>>,
}

impl Trace {
    /// An empty trace.
    pub fn new() -> Trace {
        Trace::default()
    }

    pub(super) fn record(&self, start: u64, end: u64, field: String, rule: Rule, value: String) {
        self.spans.borrow_mut().push(Span {
            start,
            end,
            field,
            rule,
            value,
        });
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
