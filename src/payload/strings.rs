//! Strings and lists of strings, which most payloads are made of.

use super::Text;
use crate::rule::{Rule, Violation};
use crate::wire::{Cursor, Writer};
use std::borrow::Cow;

/// A string of UTF-8, borrowed from the file.
pub(super) fn text<'a>(
    cursor: &mut Cursor<'a>,
    field: &str,
    rule: Rule,
) -> Result<Text<'a>, Violation> {
    Ok(Cow::Borrowed(*cursor.str(field, rule)?))
}

/// A vector of strings: u64 count, and each string with its own length.
pub(super) fn names<'a>(
    cursor: &mut Cursor<'a>,
    field: &'static str,
    rule: Rule,
) -> Result<Vec<Text<'a>>, Violation> {
    // WIRE-06: each has a length of 8 bytes, even when it is empty.
    cursor.vector(8, field, |cursor| text(cursor, field, rule))
}

/// Where each of `names` begins, which were read one behind the other from a vector at `start`.
pub(super) fn places<'n>(
    names: &'n [Text<'_>],
    start: u64,
) -> impl Iterator<Item = (&'n str, u64)> {
    // WIRE-04, WIRE-06: the count, and before each name its length. So no offset is kept for names that break nothing.
    let mut at = start.saturating_add(8);
    names.iter().map(move |name| {
        let here = at;
        at = at.saturating_add(8).saturating_add(name.len() as u64);
        (&**name, here)
    })
}

/// The inverse of [`names`].
pub(super) fn write_names(names: &[Text<'_>], out: &mut Writer) {
    out.vector(names, |out, name| out.str(name));
}
