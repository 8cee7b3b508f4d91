//! Comparison of another reading with that of the library: the same fields, at the same bytes, with the same values.

use super::Reading;
use tvmspec::wire::{Span, show};

/// A field of another reading.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Field {
    pub(crate) path: String,
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) value: Value,
}

/// The value of a field of another reading.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    /// An integer, a count or a length.
    Number(i128),
    /// A float.
    Float(f64),
    /// Bytes, text among them.
    Bytes(Vec<u8>),
}

/// Finds the first difference between the library's reading of `bytes` and another one. Returns the number of equal fields if there is
/// none.
pub(crate) fn compare_fields(
    reading: &Reading,
    bytes: &[u8],
    other: &[Field],
) -> Result<usize, String> {
    let mut rest = other.iter().peekable();
    for ours in &reading.spans {
        let mut parts = Vec::new();
        while let Some(field) = rest.next_if(|field| (field.end as u64) <= ours.end) {
            parts.push(field);
        }
        if let Some(field) = parts.iter().find(|field| !holds(field, bytes)) {
            return Err(format!("{field:?} differs from the bytes at its place"));
        }
        compare_field(ours, &parts)?;
    }
    match rest.next() {
        None => Ok(reading.spans.len()),
        Some(field) => Err(format!("{field:?} is no field of ours")),
    }
}

/// Returns whether the value of a field equals the bytes. The library shortens some values that it shows.
fn holds(field: &Field, bytes: &[u8]) -> bool {
    let Some(there) = bytes.get(field.start..field.end) else {
        return false;
    };
    match &field.value {
        Value::Bytes(bytes) => bytes == there,
        Value::Float(_) => true,
        Value::Number(number) => {
            let little = number.to_le_bytes();
            let sign = if *number < 0 { 0xff } else { 0 };
            little.starts_with(there) && little[there.len()..].iter().all(|byte| *byte == sign)
        }
    }
}

/// Compares one field of the library with the other fields up to its end: the same field, or the elements of one run.
fn compare_field(ours: &Span, parts: &[&Field]) -> Result<(), String> {
    let name = normal(&ours.field);
    let differ = |what: &str| Err(format!("{what}: ours is {name} {ours:?}, theirs {parts:?}"));
    let mut at = ours.start;
    for part in parts {
        if part.start as u64 != at {
            return differ("other bytes");
        }
        at = part.end as u64;
    }
    if at != ours.end {
        return differ("other bytes");
    }
    match parts {
        [part] if part.path == name => {
            if agree(&ours.value, &part.value) {
                Ok(())
            } else {
                differ("another value")
            }
        }
        // A run of one word is that word, or its only element.
        [part] if part.path == format!("{name}[0]") => Ok(()),
        [_] => differ("another name"),
        _ => {
            let is_element =
                |(index, part): (usize, &&Field)| part.path == format!("{name}[{index}]");
            if parts.iter().enumerate().all(is_element) {
                Ok(())
            } else {
                differ("other fields")
            }
        }
    }
}

/// Compares a value with its text in the library, which is for people: counts have a unit, and long runs are cut.
fn agree(ours: &str, theirs: &Value) -> bool {
    let number = || {
        let word = ours.trim_start_matches(": ").split(' ').next()?;
        word.parse::<i128>().ok()
    };
    match theirs {
        Value::Number(theirs) => number() == Some(*theirs),
        Value::Float(theirs) => ours
            .parse::<f64>()
            .is_ok_and(|ours| ours == *theirs || ours.is_nan() && theirs.is_nan()),
        Value::Bytes(bytes) => {
            let magic = || {
                let bytes = bytes.as_slice().try_into().ok()?;
                Some(i128::from(u64::from_le_bytes(bytes)))
            };
            let run = format!("{} bytes", bytes.len());
            ours == show(bytes)
                || ours == run
                || magic().is_some_and(|magic| number() == Some(magic))
        }
    }
}

/// Normalises a path: an element of a vector of vectors becomes `x[0][1]`, and remaining bytes become `trailing`.
fn normal(path: &str) -> String {
    let mut parts: Vec<String> = Vec::new();
    for part in path.split('.') {
        let name = part.split('[').next().unwrap_or_default();
        if let Some(before) = parts.last_mut()
            && before.contains('[')
            && before.split('[').next() == Some(name)
        {
            before.push_str(part.strip_prefix(name).unwrap_or_default());
        } else {
            parts.push(part.replace("uncounted", "trailing"));
        }
    }
    parts.join(".")
}
