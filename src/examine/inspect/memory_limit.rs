//! The memory limit of a report. A file of a few megabytes can have a hundred thousand functions of a few bytes each.

use super::InspectOptions;
use crate::examine::finding;
use crate::payload::disassembly_line::bounded;
use crate::release::Releases;
use crate::rule::Finding;
use serde_json::{Map, Value};
use std::cell::Cell;
use std::fmt::Display;

/// Memory for the report of a small file, in bytes.
const FREE: u64 = 16 << 20;

/// Additional memory for each byte of the file, in bytes.
const TIMES: u64 = 8;

/// The memory that is left for the lists of a report, and the count of entries that did not fit.
///
/// It is an estimate and allocates nothing. The last value that is accepted may exceed the limit.
pub(super) struct MemoryBudget {
    /// True to show code.
    pub(super) code: bool,
    /// The releases that may have written the described content. They determine how types are named.
    pub(super) era: Cell<Releases>,
    /// Bytes that are left, as [`weight`] counts them. A cell, because nested closures share the budget.
    left: Cell<u64>,
    /// The number of entries that did not fit.
    left_out: Cell<u64>,
}

impl MemoryBudget {
    /// Creates the budget for a file of `length` bytes.
    pub(super) fn for_file(length: usize, options: InspectOptions) -> MemoryBudget {
        // All copies are in memory at the same time and share the limit.
        let room = (length as u64).saturating_mul(TIMES).saturating_add(FREE);
        MemoryBudget {
            code: options.code,
            era: Cell::new(Releases::ALL),
            left: Cell::new(
                // The divisor is at least 1, so that the default is never used.
                room.checked_div(options.copies.saturating_add(1))
                    .unwrap_or(room),
            ),
            left_out: Cell::new(0),
        }
    }

    /// Returns the values of `items`, as many as fit. The remaining items are counted and not converted.
    pub(super) fn list<T, U: EstimateMemory>(
        &self,
        items: impl IntoIterator<Item = T>,
        mut value: impl FnMut(T) -> U,
    ) -> Vec<U> {
        self.list_while(items, |item| Some(value(item)))
    }

    /// Returns lines of code, as many as fit. The first line that does not fit is formatted only up to the limit. It is left out with
    /// all lines after it.
    pub(super) fn lines(&self, lines: impl IntoIterator<Item = impl Display>) -> Vec<Value> {
        self.list_while(lines, |line| {
            // Formatting stops at the limit: one hostile instruction can print more text than fits into memory.
            let room = usize::try_from(self.left.get()).unwrap_or(usize::MAX);
            let (mut text, whole) = bounded(&line, room);
            // The report keeps the text, and `weight` does not count spare capacity.
            text.shrink_to_fit();
            whole.then_some(Value::String(text))
        })
    }

    /// Returns the values of `items` up to the first `None`, and leaves out that item and all later ones.
    fn list_while<T, U: EstimateMemory>(
        &self,
        items: impl IntoIterator<Item = T>,
        mut value: impl FnMut(T) -> Option<U>,
    ) -> Vec<U> {
        let mut values = Vec::new();
        for item in items {
            // At the limit no value is created, because the creation itself takes memory.
            let made = match self.left.get() {
                0 => None,
                _ => value(item),
            };
            let Some(value) = made else {
                // A smaller item after it might fit. It is left out anyway, so that the list is a prefix without gaps.
                self.left.set(0);
                self.left_out.set(self.left_out.get().saturating_add(1));
                continue;
            };
            self.left
                // The last value may exceed the limit, because its weight is known only after it is created.
                .set(self.left.get().saturating_sub(value.weight()));
            values.push(value);
        }
        values
    }

    /// Returns the number of entries that were left out.
    pub(super) fn left_out(&self) -> u64 {
        self.left_out.get()
    }
}

/// The bytes of any value: 72 in a list that may have grown to twice its length, and the cost of an allocation.
const VALUE: u64 = 112;

/// The bytes of an object with any member: space for four, and a hash table.
const OBJECT: u64 = 256;

/// The bytes of a member: key, hash, position.
const MEMBER: u64 = 64;

/// An entry of a list in a report. Most callers convert entries to JSON, so the weight is that of the JSON form.
pub(super) trait EstimateMemory {
    /// Estimates the memory in bytes that the JSON form takes, including its printed text.
    fn weight(&self) -> u64;
}

impl EstimateMemory for Value {
    fn weight(&self) -> u64 {
        weight(self)
    }
}

impl EstimateMemory for String {
    fn weight(&self) -> u64 {
        VALUE.saturating_add(self.len() as u64)
    }
}

impl EstimateMemory for u64 {
    fn weight(&self) -> u64 {
        VALUE
    }
}

impl EstimateMemory for usize {
    fn weight(&self) -> u64 {
        VALUE
    }
}

impl EstimateMemory for Finding {
    fn weight(&self) -> u64 {
        weight(&finding(self))
    }
}

/// Estimates the bytes that a value takes in memory, including its printed text.
pub(super) fn weight(value: &Value) -> u64 {
    let sum = |weights: &mut dyn Iterator<Item = u64>| weights.fold(0, u64::saturating_add);
    let inside = match value {
        Value::String(text) => text.len() as u64,
        Value::Array(list) => sum(&mut list.iter().map(weight)),
        Value::Object(members) => members_weight(members).saturating_add(OBJECT),
        // Numbers, booleans and null need no further memory.
        _ => 0,
    };
    inside.saturating_add(VALUE)
}

/// Estimates the bytes that the members of an object take.
pub(super) fn members_weight(members: &Map<String, Value>) -> u64 {
    members.iter().fold(0, |sum, (key, value)| {
        let key = (key.len() as u64).saturating_add(MEMBER);
        sum.saturating_add(key).saturating_add(weight(value))
    })
}
