//! Reads wire values. The first bytes choose a type, and the rest is read as that type.
//!
//! Checks:
//! * Nothing panics.
//! * A value that reads is written back to the same bytes.
//! * Every strict prefix of those bytes is rejected.
//! * Invalid bytes are rejected with the right rule at the right byte.
#![no_main]

#[path = "naive/mod.rs"]
mod naive;

use arbitrary::{Arbitrary, Unstructured};
use libfuzzer_sys::fuzz_target;
use tvmspec::wire::json::WireType;
use tvmspec::wire::{Cursor, Writer};

#[derive(Debug)]
struct Input<'a> {
    named: WireType,
    bytes: &'a [u8],
}

impl<'a> Arbitrary<'a> for Input<'a> {
    fn arbitrary(choices: &mut Unstructured<'a>) -> arbitrary::Result<Self> {
        let named = named(choices, 0)?;
        let bytes = choices.bytes(choices.len())?;
        Ok(Input { named, bytes })
    }
}

fn named(choices: &mut Unstructured<'_>, depth: u32) -> arbitrary::Result<WireType> {
    let composed = if depth < 3 { 3 } else { 0 };
    Ok(match choices.int_in_range(0..=9 + composed)? {
        0 => WireType::U8,
        1 => WireType::U16,
        2 => WireType::U32,
        3 => WireType::U64,
        4 => WireType::I32,
        5 => WireType::I64,
        6 => WireType::F64,
        7 => WireType::Bool,
        8 => WireType::String,
        9 => WireType::Bytes,
        10 => WireType::Vector(Box::new(named(choices, depth + 1)?)),
        11 => {
            let key = Box::new(named(choices, depth + 1)?);
            WireType::Map(key, Box::new(named(choices, depth + 1)?))
        }
        _ => WireType::Tuple(vec![named(choices, depth + 1)?, named(choices, depth + 1)?]),
    })
}

fuzz_target!(|input: Input<'_>| {
    let mut cursor = Cursor::new(input.bytes);
    let mut second = naive::In(input.bytes);
    let skipped = naive::wire::skip(&mut second, &input.named);
    let value = match input.named.read(&mut cursor, "value") {
        Ok(value) => value,
        Err(broken) => {
            let (rule, left) = skipped.expect_err("what keeps every rule is read");
            assert_eq!((broken.rule().id(), broken.offset()), (rule, Some((input.bytes.len() - left) as u64)), "{broken}");
            return;
        }
    };
    assert_eq!(skipped, Ok(()), "the second reading accepts it too");
    assert_eq!(second.0.len(), cursor.remaining(), "both end at one byte");
    let read = &input.bytes[..input.bytes.len() - cursor.remaining()];
    let mut out = Writer::new();
    input.named.write(&value, &mut out).expect("a value that was read can be written");
    let written = out.into_bytes();
    assert!(written == read, "{:?} is written as other bytes", input.named);
    for length in 0..read.len().min(256) {
        let short = input.named.read(&mut Cursor::new(&read[..length]), "value");
        assert!(short.is_err(), "a prefix of {length} bytes is accepted");
    }
});
