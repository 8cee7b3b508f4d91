//! Integers beyond 64 bits: two's complement words, least significant first, as few as possible. This crate only compares, hashes and
//! prints them; a frontend passes them through.
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

/// The fixed part of a big integer. The words follow in the same block, so the size of the block depends on the number.
#[repr(C)]
struct BigIntObj {
    header: Header,
    /// Number of words, at least 2 (OBJ-10).
    count: usize,
}

const _: () = assert!(size_of::<BigIntObj>() == 32);

/// Number of decimal digits that are converted at once. 10^19 is the largest power of ten that fits a word.
const GROUP: usize = 19;
/// Ten to the power of [`GROUP`].
const GROUP_UNIT: u64 = 10_000_000_000_000_000_000;

/// Maximum number of digits in a file (OBJ-10). The time to read them is quadratic.
const MOST_DIGITS: usize = 100_000;

/// Returns whether the last word only repeats the sign of the word before it.
fn is_padded(words: &[i64]) -> bool {
    // An arithmetic shift: 0 for a non-negative word, otherwise -1.
    matches!(words, [.., before, last] if *last == *before >> 63)
}

/// Creates the value of two's complement `words`, least significant first. A number that fits 64 bits becomes an int. Words that only
/// repeat the sign are dropped (OBJ-10). An empty list is 0.
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
            // SAFETY: the block holds the words after the head.
            let data = unsafe { object.add(head) }.cast::<i64>();
            // SAFETY: as for computing their address. The block is new, so nothing overlaps.
            unsafe { std::ptr::copy_nonoverlapping(words.as_ptr(), data, words.len()) };
            let ptr = object.cast();
            // SAFETY: a whole object, whose only reference moves into the cell.
            unsafe { Any::from_raw(RawAny::of(index::BIG_INT, AnyPayload { ptr })) }
        }
    }
}

/// Creates the value of little-endian two's complement bytes. Their number is a multiple of 8.
///
/// # Errors
///
/// Returns OBJ-10 if the number of bytes is not a multiple of 8.
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

/// Returns the words of an int or big int, least significant first. A plain int or a bool is one word inside the cell. Returns `None` for
/// other values.
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

/// Compares two integers of any size, each in as few words as possible (OBJ-10).
pub fn compare(left: &[i64], right: &[i64]) -> Ordering {
    let negative = |words: &[i64]| words.last().is_some_and(|last| *last < 0);
    match (negative(left), negative(right)) {
        (true, false) => return Ordering::Less,
        (false, true) => return Ordering::Greater,
        _ => {}
    }
    // OBJ-10: numbers have no redundant words, so among numbers of one sign the longer one is further from zero.
    let by_length = left.len().cmp(&right.len());
    if by_length != Ordering::Equal {
        return if negative(left) {
            by_length.reverse()
        } else {
            by_length
        };
    }
    // With equal sign and length, two's complement numbers compare like their unsigned words.
    let unsigned = |words: &[i64]| words.iter().rev().map(|w| *w as u64).collect::<Vec<_>>();
    unsigned(left).cmp(&unsigned(right))
}

/// Returns two's complement `words` as decimal text, with a minus for a negative number. The time is quadratic in the number of words.
pub fn to_decimal(words: &[i64]) -> String {
    let negative = words.last().is_some_and(|last| *last < 0);
    let mut digits: Vec<u64> = words.iter().map(|word| *word as u64).collect();
    if negative {
        // The magnitude: all bits inverted, plus one.
        let mut carry = true;
        for digit in &mut digits {
            let (sum, over) = (!*digit).overflowing_add(u64::from(carry));
            *digit = sum;
            carry = over;
        }
    }
    // One group of digits at a time, least significant first.
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

/// Like [`from_decimal`], but limits the number of digits, because the text comes from an untrusted file.
pub(crate) fn from_untrusted_decimal(text: &str) -> Result {
    let digits = text.strip_prefix('-').unwrap_or(text).len();
    OBJ_10.demand(Kind::Limit, digits <= MOST_DIGITS, || {
        format!("a number of {digits} digits, more than {MOST_DIGITS}")
    })?;
    from_decimal(text)
}

/// Parses decimal text: an optional sign and digits. The time is quadratic in the number of digits.
///
/// # Errors
///
/// Returns a ValueError for any other text.
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
    // Multiplies the magnitude by a power of ten and adds the next digits, word by word. A word has room for nineteen digits.
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
    // Room for the sign. `from_words` drops it if it is not needed.
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

/// Hashes a big int: the byte hash of its words, in little-endian order on every machine (OBJ-01). The hooks of its type return this hash.
pub fn hash(words: &[i64]) -> u64 {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    super::hash::hash_bytes(&bytes)
}
