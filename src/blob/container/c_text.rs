//! C text: the blob as an array of numbers (BLOB-58).
//!
//! This is not a parser of C. It searches for `char NAME[LENGTH] = { NUMBERS };` as every release writes it (BLOB-59), with any blanks
//! between the words. It also finds lines that begin like a definition from the code generator of a C host (BLOB-64). It does not
//! recognize comments and strings.

use super::allowance::Allowance;
use super::c_signature::{calls, convention, definitions, headers};
use super::form::find;
use super::symbols::{self, Raw};
use super::{ContainerPart, EmbeddedBlob, Size};
use crate::blob::BLOB_58;
use crate::release::Releases;
use crate::rule::{Kind, Violation};
use crate::wire::show;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;

/// Reads every byte array that has the name of a blob, and the other definitions of the text.
pub(super) fn read<'a>(
    text: &'a [u8],
    part: &mut ContainerPart<'a>,
    allowance: &mut Allowance,
) -> Result<(), Violation> {
    let mut at = 0;
    while let Some(TextArray {
        name,
        length,
        numbers: body,
        ..
    }) = next_array(text, &mut at)
    {
        // BLOB-51: the text before the name that TVM knows is the prefix of a system library.
        let Some((prefix, layout)) = symbols::blob(name) else {
            continue;
        };
        let bytes = numbers(text, body, &mut at).map_err(|broken| broken.in_field(name))?;
        let found = bytes.len() as u64;
        allowance.blob(bytes.len(), body as u64)?;
        BLOB_58
            .require(
                length.is_none_or(|length| length == found),
                body as u64,
                || {
                    let length = length.unwrap_or_default();
                    format!("`{name}` is declared with {length} bytes and lists {found}")
                },
            )
            .map_err(|broken| broken.in_field(name))?;
        part.blobs.push(EmbeddedBlob {
            symbol: name.to_owned(),
            prefix: prefix.to_owned(),
            layout: Some(layout),
            address: None,
            offset: None,
            size: Size::Known(found),
            bytes: Cow::Owned(bytes),
        });
    }
    let defined = definitions(text).map(|found| Raw {
        name: found.name,
        address: 0,
        size: 0,
        defined: true,
        text: found.parameters.is_some(),
    });
    // BLOB-65: the functions that the text calls must be found elsewhere, as for an object file. Each name counts once.
    let own: BTreeSet<&str> = definitions(text).map(|found| found.name).collect();
    let called: BTreeSet<&str> = calls(text).filter(|name| !own.contains(name)).collect();
    let called = called.iter().map(|name| Raw {
        name,
        address: 0,
        size: 0,
        defined: false,
        text: true,
    });
    let defined = defined.chain(called);
    // MOD-02, MOD-03: the parameters show the calling convention, which the symbols of a library do not.
    part.convention = definitions(text)
        .filter_map(|found| convention(found.parameters?))
        .reduce(Releases::common);
    part.headers = headers(text);
    part.symbols = symbols::classify(defined, allowance)?;
    // A text has no addresses.
    part.symbols
        .iter_mut()
        .for_each(|symbol| symbol.address = None);
    Ok(())
}

/// The head of an array, `char NAME[LENGTH] = {`.
pub(crate) struct TextArray<'t> {
    name: &'t str,
    /// The number in the brackets; `None` if they are empty and the compiler counts.
    length: Option<u64>,
    /// The range of the text inside the brackets.
    pub(crate) brackets: Range<usize>,
    /// The offset where the numbers start.
    pub(crate) numbers: usize,
}

/// Finds the arrays of library binaries, in the order of [`read`].
pub(crate) fn arrays(text: &[u8]) -> impl Iterator<Item = TextArray<'_>> {
    let mut at = 0;
    let all = std::iter::from_fn(move || next_array(text, &mut at));
    all.filter(|array| symbols::blob(array.name).is_some())
}

/// Finds the next array from `at` on, and moves `at` after its type name.
fn next_array<'t>(text: &'t [u8], at: &mut usize) -> Option<TextArray<'t>> {
    const TYPE: &[u8] = b"char ";
    loop {
        // BLOB-58: this matches the end of `unsigned char` and also `char`, because releases differ in the type.
        let found = find(text.get(*at..)?, TYPE)?;
        let start = at.saturating_add(found).saturating_add(TYPE.len());
        *at = start;
        if let Some(array) = array(text, start) {
            return Some(array);
        }
    }
}

/// Parses the array whose name begins at `start`. Returns `None` for any other use of `char`: a cast, a parameter, a declaration without
/// numbers.
fn array(text: &[u8], start: usize) -> Option<TextArray<'_>> {
    let rest = text.get(start..)?;
    let (name, rest) = identifier(rest.trim_ascii_start())?;
    let rest = rest.trim_ascii_start().strip_prefix(b"[")?;
    let close = rest
        // A count has no more digits. Without this limit, a text without a closing bracket would be searched to its end for every `char`.
        .get(..64)
        .unwrap_or(rest)
        .iter()
        .position(|byte| *byte == b']')?;
    let opened = text.len().saturating_sub(rest.len());
    let length = std::str::from_utf8(rest.get(..close)?).ok()?.trim();
    // BLOB-58: with `[]` the compiler counts, so there is nothing to compare.
    let length = match length {
        "" => None,
        digits => Some(digits.parse().ok()?),
    };
    let rest = rest.get(close.checked_add(1)?..)?.trim_ascii_start();
    let rest = rest
        .strip_prefix(b"=")?
        .trim_ascii_start()
        .strip_prefix(b"{")?;
    Some(TextArray {
        name,
        length,
        brackets: opened..opened.checked_add(close)?,
        numbers: text.len().saturating_sub(rest.len()),
    })
}

/// Splits off the letters, digits and `_` at the start, and returns them and the rest.
pub(crate) fn identifier(text: &[u8]) -> Option<(&str, &[u8])> {
    let end = text
        .iter()
        .position(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_')?;
    let (name, rest) = text.split_at_checked(end)?;
    Some((
        std::str::from_utf8(name)
            .ok()
            .filter(|name| !name.is_empty())?,
        rest,
    ))
}

/// Reads the numbers from `start` to the closing brace. Both forms are accepted: `0x3b,0x3` and `0x3b,0x03,`.
fn numbers(text: &[u8], start: usize, at: &mut usize) -> Result<Vec<u8>, Violation> {
    let body = text.get(start..).unwrap_or_default();
    let end = body.iter().position(|byte| *byte == b'}').ok_or_else(|| {
        BLOB_58.broken(
            Kind::Truncated,
            text.len() as u64,
            "the text ends inside the array",
        )
    })?;
    let body = body.get(..end).unwrap_or_default();
    *at = start.saturating_add(end);
    // A number takes at least two characters. Releases write four or more, as in `0x3,`. For shorter numbers the list grows.
    let mut bytes = Vec::with_capacity(body.len() / 4);
    let mut position = start;
    for item in body.split(|byte| *byte == b',') {
        // BLOB-58: numbers are decimal or hexadecimal, with or without a comma after the last. Releases differ in both (BLOB-59).
        let number = item.trim_ascii();
        // Only the text after the last comma may be empty.
        let last = position.saturating_add(item.len()) >= *at;
        if !(number.is_empty() && last) {
            let byte = byte(number);
            BLOB_58.require(byte.is_some(), position as u64, || {
                format!("`{}` is not a byte: 0x0 to 0xff, or 0 to 255", show(number))
            })?;
            bytes.push(byte.unwrap_or_default());
        }
        position = position.saturating_add(item.len()).saturating_add(1);
    }
    Ok(bytes)
}

/// Parses a number from 0 to 255, decimal or hexadecimal (BLOB-58).
fn byte(number: &[u8]) -> Option<u8> {
    let text = std::str::from_utf8(number).ok()?;
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(hex) => u8::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
    // BLOB-58: `parse` accepts a sign, but an element has only digits.
    .filter(|_| !text.starts_with('+') && !text.contains("x+"))
}
