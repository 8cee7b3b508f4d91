//! Integers beyond 64 bits: two's complement words, least significant first, as few as possible. A frontend passes them through; nothing
//! computes with them here beyond comparison, hash and text.
//!
//! | bytes  | field                  | rule   |
//! |--------|------------------------|--------|
//! | 24..32 | number of words        | OBJ-10 |
//! | 32..   | the words, i64         | OBJ-10 |

use crate::function::{Error, ErrorKind, Result};
use crate::object::OBJ_10;
use crate::rule::Kind;
use crate::value::header::Header;
use crate::value::heap::{allocate, delete_plain};
use crate::value::{Any, AnyPayload, AnyView, RawAny, index};
use std::cmp::Ordering;

/// The fixed part of a big integer. The words follow in the same block, whose size is therefore that of the number.
#[repr(C)]
struct BigIntObj {
    header: Header,
    /// Number of words, at least 2 (OBJ-10).
    count: usize,
}

const _: () = assert!(size_of::<BigIntObj>() == 32);

/// Decimal digits that are taken or made at once: 10^19 is the greatest power of ten in a word.
const GROUP: usize = 19;
/// Ten to the power of [`GROUP`].
const GROUP_UNIT: u64 = 10_000_000_000_000_000_000;

/// Digits of a number in a file at most (OBJ-10). Reading takes time with their square.
const MOST_DIGITS: usize = 100_000;

/// Whether `words` has a last word that only repeats the sign of the one before.
fn is_padded(words: &[i64]) -> bool {
    // An arithmetic shift: 0 for a word that is not negative, else -1.
    matches!(words, [.., before, last] if *last == *before >> 63)
}

/// The value of two's complement `words`, least significant first; what fits 64 bits becomes a plain int, and words that only repeat
/// the sign are left out (OBJ-10). No words are 0.
pub fn from_words(words: &[i64]) -> Any {
    let mut words = words;
    while is_padded(words) {
        words = &words[..words.len() - 1];
    }
    match words {
        [] => Any::from(0i64),
        [one] => Any::from(*one),
        words => {
            let head = size_of::<BigIntObj>();
            let object = allocate(head + size_of_val(words));
            let own = BigIntObj {
                header: Header::new(index::BIG_INT, delete_plain),
                count: words.len(),
            };
            // SAFETY: the block holds the head.
            unsafe { object.cast::<BigIntObj>().write(own) };
            // SAFETY: the block holds the words behind the head.
            let data = unsafe { object.add(head) }.cast::<i64>();
            // SAFETY: as for their address; the block is new, so nothing overlaps.
            unsafe { std::ptr::copy_nonoverlapping(words.as_ptr(), data, words.len()) };
            let ptr = object.cast();
            // SAFETY: a whole object, whose only reference moves into the cell.
            unsafe { Any::from_raw(RawAny::of(index::BIG_INT, AnyPayload { ptr })) }
        }
    }
}

/// The value of little-endian two's complement bytes, a multiple of 8 of them.
///
/// # Errors
///
/// OBJ-10 for a number of bytes that is no multiple of 8.
pub fn from_bytes(bytes: &[u8]) -> Result {
    if !bytes.len().is_multiple_of(8) {
        let violation = OBJ_10.rejected(
            Kind::Malformed,
            format!(
                "BigInt content must contain whole 64-bit words, not {} bytes",
                bytes.len()
            ),
        );
        return Err(violation.into());
    }
    let words: Vec<i64> = bytes
        .chunks_exact(8)
        .map(|chunk| {
            let mut word = [0; 8];
            word.copy_from_slice(chunk);
            i64::from_le_bytes(word)
        })
        .collect();
    Ok(from_words(&words))
}

/// The words of an int or big int, least significant first; a plain int, or a bool, is one word inside the cell. `None` for any other
/// value.
pub fn words_of<'a>(view: &'a AnyView<'_>) -> Option<&'a [i64]> {
    let raw = view.as_raw();
    match raw.type_index {
        index::INT | index::BOOL => {
            // SAFETY: the payload of an int is one word inside the cell.
            Some(std::slice::from_ref(unsafe { &raw.payload.int }))
        }
        index::BIG_INT => {
            let object = raw.ptr().cast::<BigIntObj>();
            // SAFETY: an object of this type, which lives while the view does.
            let count = unsafe { (*object).count };
            // SAFETY: in bounds: `count` words follow the head.
            let words = unsafe { object.add(1) };
            // SAFETY: `count` words, which live while the view does and do not change.
            Some(unsafe { std::slice::from_raw_parts(words.cast(), count) })
        }
        _ => None,
    }
}

/// Order of two integers of any size, each of as few words as possible (OBJ-10).
pub fn compare(left: &[i64], right: &[i64]) -> Ordering {
    let negative = |words: &[i64]| words.last().is_some_and(|last| *last < 0);
    match (negative(left), negative(right)) {
        (true, false) => return Ordering::Less,
        (false, true) => return Ordering::Greater,
        _ => {}
    }
    // OBJ-10: no word is too many, so of two numbers of one sign the longer one is further from zero.
    let by_length = left.len().cmp(&right.len());
    if by_length != Ordering::Equal {
        return if negative(left) {
            by_length.reverse()
        } else {
            by_length
        };
    }
    // Of one sign and length, two's complement numbers are in the order of their words as unsigned ones.
    let unsigned = |words: &[i64]| words.iter().rev().map(|w| *w as u64).collect::<Vec<_>>();
    unsigned(left).cmp(&unsigned(right))
}

/// Decimal text of two's complement `words`, with a minus where the number is negative. Takes time with the square of their number.
pub fn to_decimal(words: &[i64]) -> String {
    let negative = words.last().is_some_and(|last| *last < 0);
    let mut digits: Vec<u64> = words.iter().map(|word| *word as u64).collect();
    if negative {
        // The magnitude: every bit the other way round, plus one.
        let mut carry = true;
        for digit in &mut digits {
            let (sum, over) = (!*digit).overflowing_add(u64::from(carry));
            *digit = sum;
            carry = over;
        }
    }
    // A group of digits at a time, of which the least significant comes first.
    let mut groups = Vec::new();
    loop {
        let mut rest = 0u128;
        for digit in digits.iter_mut().rev() {
            let whole = rest << 64 | u128::from(*digit);
            *digit = (whole / u128::from(GROUP_UNIT)) as u64;
            rest = whole % u128::from(GROUP_UNIT);
        }
        groups.push(rest as u64);
        while digits.last() == Some(&0) {
            digits.pop();
        }
        if digits.is_empty() {
            break;
        }
    }
    let mut text = if negative {
        "-".to_owned()
    } else {
        String::new()
    };
    let mut groups = groups.iter().rev();
    text.push_str(&groups.next().map(u64::to_string).unwrap_or_default());
    // Only the first group may be short.
    for group in groups {
        text.push_str(&format!("{group:0GROUP$}"));
    }
    text
}

/// [`from_decimal`] of a text of a file, whose writer is not trusted with a long one.
pub(crate) fn from_untrusted_decimal(text: &str) -> Result {
    let digits = text.strip_prefix('-').unwrap_or(text).len();
    OBJ_10.demand(Kind::Limit, digits <= MOST_DIGITS, || {
        format!("a number of {digits} digits, more than {MOST_DIGITS}")
    })?;
    from_decimal(text)
}

/// The value of decimal text: an optional sign and digits, nothing else. Takes time with the square of their number.
///
/// # Errors
///
/// A ValueError for anything but an optional sign and digits.
pub fn from_decimal(text: &str) -> Result {
    let (negative, digits) = match text.as_bytes() {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        all => (false, all),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(Error::new(
            ErrorKind::Value,
            "Invalid decimal string for ffi.BigInt",
        ));
    }
    let mut words: Vec<u64> = Vec::new();
    // The magnitude times a power of ten plus that many digits, word by word. Nineteen at a time, as many as a word holds.
    let (first, groups) = digits.split_at(digits.len() % GROUP);
    for group in std::iter::once(first).chain(groups.chunks_exact(GROUP)) {
        let number = |number: u64, digit: &u8| number * 10 + u64::from(digit - b'0');
        let mut carry = u128::from(group.iter().fold(0, number));
        for word in &mut words {
            let whole = u128::from(*word) * u128::from(GROUP_UNIT) + carry;
            *word = whole as u64;
            carry = whole >> 64;
        }
        if carry != 0 {
            words.push(carry as u64);
        }
    }
    // Room for the sign, which `from_words` leaves out where it is not needed.
    words.push(0);
    if negative {
        let mut carry = true;
        for word in &mut words {
            let (sum, over) = (!*word).overflowing_add(u64::from(carry));
            *word = sum;
            carry = over;
        }
    }
    let words: Vec<i64> = words.into_iter().map(|word| word as i64).collect();
    Ok(from_words(&words))
}

/// Hash of a big int: the byte hash of its words, each in little-endian order on every machine (OBJ-01). Its type's hooks return it.
pub fn hash(words: &[i64]) -> u64 {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    super::hash::hash_bytes(&bytes)
}
