//! Every byte of a file with its field and its rule (`spec/schema/dump.json`).

use super::{NotExaminable, Reading, Subject, Unit, violation};
use crate::blob::container::FileForm;
use crate::rule::Violation;
use serde_core::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::{Value, json};
use std::cell::Cell;
use std::fmt;

/// Fields of several units, serialized as JSON: `[{"name", "format", "bytes", "fields": [{"start", "end", "field", "value", "rule"}],
/// "findings": [{"rule", "offset", "message"}], "broken": {"rule", "kind", "offset", "field", "message"}}]`. `left_out_from` is added
/// if not all fields are listed.
///
/// Offsets count from the start of the unit. Units are read one by one during serialization, so that only one is in memory at a time.
/// [`Dump::readings`] returns the same data without JSON.
pub struct Dump<'a> {
    /// The units to dump, in this order.
    units: Vec<Unit<'a>>,
    /// The element that replaces those of the units, for a file whose container is broken.
    broken_container: Option<Value>,
    /// Fields that end at or before this offset into their unit are left out.
    from: u64,
    /// True if any unit written so far broke a rule. A cell, because `serialize` takes a shared reference.
    broken: Cell<bool>,
}

impl Subject<'_> {
    /// Lists every byte with its field and its rule. The fields are read while the result is serialized.
    ///
    /// # Errors
    ///
    /// Fails if nothing in the file has fields. Compiled code without a library binary is an empty list.
    pub fn dump(&self) -> Result<Dump<'_>, NotExaminable> {
        self.dump_from(0)
    }

    /// Like [`Subject::dump`], for the fields that end after offset `from`.
    ///
    /// # Errors
    ///
    /// Fails like [`Subject::dump`].
    pub fn dump_from(&self, from: u64) -> Result<Dump<'_>, NotExaminable> {
        if let Some(broken) = &self.broken {
            return Ok(of_broken(self.name, self.bytes, broken));
        }
        let units = self.units();
        if units.is_empty() && !self.is_compiled() {
            return Err(self.not_examinable());
        }
        Ok(of_units(units, from))
    }
}

/// Creates a dump of the fields of `units` that end after offset `from`.
fn of_units(units: Vec<Unit<'_>>, from: u64) -> Dump<'_> {
    Dump {
        units,
        broken_container: None,
        from,
        broken: Cell::new(false),
    }
}

/// Creates the dump of a file whose container is broken: one element without fields, because nothing in it was read.
fn of_broken(name: &str, bytes: &[u8], broken: &Violation) -> Dump<'static> {
    let element = json!({
        "name": name,
        "format": FileForm::detect(bytes).title(),
        "bytes": bytes.len(),
        "fields": [],
        "findings": [],
        "broken": violation(broken),
    });
    Dump {
        broken_container: Some(element),
        broken: Cell::new(true),
        ..of_units(Vec::new(), 0)
    }
}

impl<'a> Dump<'a> {
    /// Creates the dump of one unit.
    pub fn of_unit(unit: Unit<'a>) -> Dump<'a> {
        of_units(vec![unit], 0)
    }

    /// Returns the units to dump, in this order.
    pub fn units(&self) -> &[Unit<'a>] {
        &self.units
    }

    /// Returns the offset into each unit up to which fields are left out.
    pub fn from(&self) -> u64 {
        self.from
    }

    /// Reads the units one by one, each when the iterator reaches it.
    pub fn readings(&self) -> impl Iterator<Item = (&Unit<'a>, Reading)> {
        let from = self.from;
        let units = self.units.iter();
        units.map(move |unit| (unit, unit.trace_from(from)))
    }

    /// Returns whether any unit written so far broke a rule.
    pub fn is_broken(&self) -> bool {
        self.broken.get()
    }
}

/// Prints the names of the units only, because their bytes may be a whole file.
impl fmt::Debug for Dump<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.units.iter().map(|unit| unit.name.as_str()).collect();
        f.debug_struct("Dump")
            .field("units", &names)
            .field("from", &self.from)
            .finish_non_exhaustive()
    }
}

impl Serialize for Dump<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let Some(element) = &self.broken_container {
            return serializer.collect_seq([element]);
        }
        // Each unit is read here and dropped after it is written, because its fields take many times the memory of its bytes.
        serializer.collect_seq(self.readings().map(|(unit, reading)| {
            self.broken
                .set(self.broken.get() || reading.broken.is_some());
            UnitFields { unit, reading }
        }))
    }
}

/// One unit and its fields: an element of the list.
struct UnitFields<'d, 'a> {
    /// The unit.
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
        // A hostile file can have a field for each byte. If the list ends early, this member says at which offset.
        if let Some(offset) = self.reading.left_out {
            map.serialize_entry("left_out_from", &offset)?;
        }
        map.serialize_entry("findings", &FindingList(&self.reading))?;
        // Always present; null in a sound file.
        let broken = self.reading.broken.as_ref().map(violation);
        map.serialize_entry("broken", &broken)?;
        map.end()
    }
}

/// The fields of a unit, by offset.
///
/// They are serialized one by one, because one JSON value of all fields would double their memory.
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

/// Parses an offset in hexadecimal, as a dump shows it (`0x1f8`), or in decimal. Returns `None` for any other text.
pub fn parse_offset(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}
