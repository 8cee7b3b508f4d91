//! Strings and lists of strings, which most payloads consist of.

use super::Text;
use crate::rule::{Rule, Violation};
use crate::wire::{Cursor, Writer};
use std::borrow::Cow;

/// Reads a string of UTF-8, borrowed from the file.
pub(super) fn text<'a>(
    cursor: &mut Cursor<'a>,
    field: &str,
    rule: Rule,
) -> Result<Text<'a>, Violation> {
    Ok(Cow::Borrowed(*cursor.str(field, rule)?))
}

/// Reads a vector of strings: a u64 count, and each string with its length.
pub(super) fn names<'a>(
    cursor: &mut Cursor<'a>,
    field: &'static str,
    rule: Rule,
) -> Result<Vec<Text<'a>>, Violation> {
    // WIRE-06: each string has a length of 8 bytes, even if it is empty.
    cursor.vector(8, field, |cursor| text(cursor, field, rule))
}

/// Returns the offset of each of `names`, which were read one after the other from a vector at `start`.
pub(super) fn places<'n>(
    names: &'n [Text<'_>],
    start: u64,
) -> impl Iterator<Item = (&'n str, u64)> {
    // WIRE-04, WIRE-06: a count comes first, and a length before each name. The offsets are computed here, so that reading need not
    // store them.
    let mut at = start.saturating_add(8);
    names.iter().map(move |name| {
        let here = at;
        at = at.saturating_add(8).saturating_add(name.len() as u64);
        (&**name, here)
    })
}

/// Writes a vector of strings: the inverse of [`names`].
pub(super) fn write_names(names: &[Text<'_>], out: &mut Writer) {
    out.vector(names, |out, name| out.str(name));
}
