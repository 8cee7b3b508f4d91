//! What a report may take of memory: a file of a few megabytes can hold a hundred thousand functions of a few bytes each.

use super::Asked;
use serde_json::Value;
use std::cell::Cell;

/// What the report of a small file may take.
const FREE: u64 = 16 << 20;

/// And for each byte of the file.
const TIMES: u64 = 8;

/// The memory that is left for the lists of a report, and how many of their entries found none.
pub(super) struct Room {
    /// Whether code is shown.
    pub(super) code: bool,
    left: Cell<u64>,
    left_out: Cell<u64>,
}

impl Room {
    /// That of a file of `length` bytes.
    pub(super) fn of(length: usize, asked: Asked) -> Room {
        let room = (length as u64).saturating_mul(TIMES).saturating_add(FREE);
        Room {
            code: asked.code,
            left: Cell::new(
                room.checked_div(asked.copies.saturating_add(1))
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
        let mut values = Vec::new();
        for item in items {
            if self.left.get() == 0 {
                self.left_out.set(self.left_out.get().saturating_add(1));
                continue;
            }
            let value = value(item);
            self.left
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

/// What a value takes in memory, roughly, and what is written of it.
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
        _ => 0,
    };
    inside.saturating_add(VALUE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_finds_no_room_is_counted() {
        let room = Room::of(0, Asked::default());
        let text = "x".repeat(1 << 20);
        let listed = room.list(0..100, |_| json!(text));
        assert_eq!(listed.len(), 16);
        assert_eq!(room.left_out(), 84);
        assert!(room.list([1], |number| json!(number)).is_empty());
    }
}
