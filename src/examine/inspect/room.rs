//! What a report may take of memory: a file of a few megabytes can hold a hundred thousand functions of a few bytes each.

use super::InspectOptions;
use crate::payload::line::bounded;
use crate::release::Releases;
use serde_json::Value;
use std::cell::Cell;
use std::fmt::Display;

/// What the report of a small file may take, in bytes.
const FREE: u64 = 16 << 20;

/// What it may take besides for each byte of the file.
const TIMES: u64 = 8;

/// The memory that is left for the lists of a report, and how many of their entries found none.
///
/// It counts what values take, and allocates nothing: the last value that finds room may exceed it.
pub(super) struct Room {
    /// Whether code is shown.
    pub(super) code: bool,
    /// The releases that may have written what is described, which decide what its types are called.
    pub(super) era: Cell<Releases>,
    /// Bytes that are left, by [`weight`]. A cell, because the closures that make nested lists share the room.
    left: Cell<u64>,
    /// Entries that found no room.
    left_out: Cell<u64>,
}

impl Room {
    /// That of a file of `length` bytes.
    pub(super) fn of(length: usize, options: InspectOptions) -> Room {
        // All copies are in memory at the same time, and share the room.
        let room = (length as u64).saturating_mul(TIMES).saturating_add(FREE);
        Room {
            code: options.code,
            era: Cell::new(Releases::ALL),
            left: Cell::new(
                // The divisor is 1 at least: the default is never taken.
                room.checked_div(options.copies.saturating_add(1))
                    .unwrap_or(room),
            ),
            left_out: Cell::new(0),
        }
    }

    /// The values of `items`, as many as there is room for. The others are counted, not made.
    pub(super) fn list<T>(
        &self,
        items: impl IntoIterator<Item = T>,
        mut value: impl FnMut(T) -> Value,
    ) -> Vec<Value> {
        self.list_while(items, |item| Some(value(item)))
    }

    /// Lines of code, as many as there is room for. The first that has too little is made only as far as its room goes, and then
    /// left out with all behind it.
    pub(super) fn lines(&self, lines: impl IntoIterator<Item = impl Display>) -> Vec<Value> {
        self.list_while(lines, |line| {
            // Writing stops at the room: one hostile instruction can print as more text than there is memory.
            let room = usize::try_from(self.left.get()).unwrap_or(usize::MAX);
            let (mut text, whole) = bounded(&line, room);
            // The report keeps the text: spare capacity would be memory that nothing counts.
            text.shrink_to_fit();
            whole.then_some(Value::String(text))
        })
    }

    /// The values of `items` up to the first that is none: it, and what is behind it, finds no room.
    fn list_while<T>(
        &self,
        items: impl IntoIterator<Item = T>,
        mut value: impl FnMut(T) -> Option<Value>,
    ) -> Vec<Value> {
        let mut values = Vec::new();
        for item in items {
            // A value is not made once the room is used up: to make it is what takes the memory.
            let made = match self.left.get() {
                0 => None,
                _ => value(item),
            };
            let Some(value) = made else {
                // A smaller item behind it might fit: it is left out too, so that what is listed is a beginning without gaps.
                self.left.set(0);
                self.left_out.set(self.left_out.get().saturating_add(1));
                continue;
            };
            self.left
                // The last value may take more than is left: its weight is known only when it is made.
                .set(self.left.get().saturating_sub(weight(&value)));
            values.push(value);
        }
        values
    }

    /// How many entries were left out.
    pub(super) fn left_out(&self) -> u64 {
        self.left_out.get()
    }
}

/// What a value takes in memory, roughly, and what is written of it, in bytes.
fn weight(value: &Value) -> u64 {
    /// A value by itself, with what an allocation costs.
    const VALUE: u64 = 64;
    /// An object that has any member: room for four, and a table to find them by.
    const OBJECT: u64 = 256;
    /// A member: its key, its hash, its place in the order.
    const MEMBER: u64 = 64;
    let sum = |weights: &mut dyn Iterator<Item = u64>| weights.fold(0, u64::saturating_add);
    let inside = match value {
        Value::String(text) => text.len() as u64,
        Value::Array(list) => sum(&mut list.iter().map(weight)),
        Value::Object(members) => {
            let member = |(key, value): (&String, &Value)| {
                let key = (key.len() as u64).saturating_add(MEMBER);
                key.saturating_add(weight(value))
            };
            sum(&mut members.iter().map(member)).saturating_add(OBJECT)
        }
        // Numbers, booleans and null are inside of the value itself.
        _ => 0,
    };
    inside.saturating_add(VALUE)
}
