//! Every byte of a file with its field and its rule (`spec/schema/dump.json`).

use super::{Reading, Unit, violation};
use crate::blob::container::FileForm;
use crate::rule::Violation;
use serde_core::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::{Value, json};
use std::cell::Cell;
use std::fmt;

/// The fields of some units as JSON: `[{"name", "format", "bytes", "fields": [{"start", "end", "field", "value", "rule"}],
/// "findings": [{"rule", "offset", "message"}], "broken": {"rule", "kind", "offset", "field", "message"}}]`, and `left_out_from` where not
/// all fields are listed. Offsets count from the start of the unit. Units are read while they are written, one after the other: only one
/// is in memory at a time. [`Dump::readings`] has the same without JSON.
pub struct Dump<'d, 'a> {
    /// What is dumped, in this order.
    units: &'d [Unit<'a>],
    /// Fields that end at or before this offset into their unit are left out.
    from: u64,
    /// Whether a unit that was written broke a rule. A cell, because `serialize` takes a shared reference.
    broken: Cell<bool>,
}

/// The fields of `units` that end behind offset `from`.
pub fn dump<'d, 'a>(units: &'d [Unit<'a>], from: u64) -> Dump<'d, 'a> {
    Dump {
        units,
        from,
        broken: Cell::new(false),
    }
}

/// [`dump`] of a file whose container itself is broken: one element without fields, for nothing in it was read.
pub fn broken(name: &str, bytes: &[u8], broken: &Violation) -> Value {
    json!([{
        "name": name,
        "format": FileForm::of(bytes).title(),
        "bytes": bytes.len(),
        "fields": [],
        "findings": [],
        "broken": violation(broken),
    }])
}

impl<'d, 'a> Dump<'d, 'a> {
    /// What is dumped, in this order.
    pub fn units(&self) -> &'d [Unit<'a>] {
        self.units
    }

    /// The offset into each unit behind which its fields end.
    pub fn from(&self) -> u64 {
        self.from
    }

    /// Every unit with what is read of it, one after the other. Each is read when it is its turn.
    pub fn readings(&self) -> impl Iterator<Item = (&'d Unit<'a>, Reading)> + use<'d, 'a> {
        let from = self.from;
        let units = self.units.iter();
        units.map(move |unit| (unit, unit.trace_from(from)))
    }

    /// Whether a rule was broken in what was written so far.
    pub fn is_broken(&self) -> bool {
        self.broken.get()
    }
}

/// Names the units: their bytes may be those of a whole file.
impl fmt::Debug for Dump<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.units.iter().map(|unit| unit.name.as_str()).collect();
        f.debug_struct("Dump")
            .field("units", &names)
            .field("from", &self.from)
            .finish_non_exhaustive()
    }
}

impl Serialize for Dump<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // A unit is read when it is its turn and dropped behind it: its fields take many times the memory of its bytes.
        serializer.collect_seq(self.readings().map(|(unit, reading)| {
            self.broken
                .set(self.broken.get() || reading.broken.is_some());
            UnitFields { unit, reading }
        }))
    }
}

/// One unit and what was read of it: an element of the list.
struct UnitFields<'d, 'a> {
    /// What is dumped.
    unit: &'d Unit<'a>,
    /// Its fields and findings.
    reading: Reading,
}

impl Serialize for UnitFields<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("name", &self.unit.name)?;
        map.serialize_entry("format", &self.unit.title())?;
        map.serialize_entry("bytes", &self.unit.bytes.len())?;
        map.serialize_entry("fields", &Spans(&self.reading))?;
        // A hostile file has a field for each byte: where the list ends early, this member says from where on.
        if let Some(offset) = self.reading.left_out {
            map.serialize_entry("left_out_from", &offset)?;
        }
        map.serialize_entry("findings", &FindingList(&self.reading))?;
        // There in any case, and null in a sound file.
        let broken = self.reading.broken.as_ref().map(violation);
        map.serialize_entry("broken", &broken)?;
        map.end()
    }
}

/// The fields of a unit, by offset.
///
/// Written one by one: as one JSON value they would take their memory twice.
struct Spans<'d>(&'d Reading);

impl Serialize for Spans<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.spans.iter().map(|span| {
            json!({
                "start": span.start,
                "end": span.end,
                "field": span.field,
                "value": span.value,
                "rule": span.rule.id(),
            })
        }))
    }
}

/// The oddities that a reader tolerates, in the order of reading.
struct FindingList<'d>(&'d Reading);

impl Serialize for FindingList<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.findings.iter().map(|finding| {
            json!({
                "rule": finding.rule.id(),
                "offset": finding.offset,
                "message": finding.message,
            })
        }))
    }
}

/// An offset as a dump shows it, `0x1f8`, or in decimal; `None` for any other text.
pub fn parse_offset(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}
