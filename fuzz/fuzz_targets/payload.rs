//! Chooses a kind and a layout, and reads the remaining bytes as such a payload.
//!
//! Checks:
//! * Nothing panics.
//! * A payload without findings is written back to the same bytes.
//! * Its JSON form gives the same payload.
//! * In layout 0.22, every strict prefix of those bytes is rejected or has findings.
#![no_main]

#[path = "naive/mod.rs"]
mod naive;

use arbitrary::{Arbitrary, Unstructured};
use libfuzzer_sys::fuzz_target;
use tvmspec::payload::{self, Payload, kinds};
use tvmspec::release::Layout;
use tvmspec::rule::Findings;
use tvmspec::wire::{Cursor, Writer};

#[derive(Debug)]
struct Input<'a> {
    kind: &'static str,
    layout: Layout,
    bytes: &'a [u8],
}

impl<'a> Arbitrary<'a> for Input<'a> {
    fn arbitrary(choices: &mut Unstructured<'a>) -> arbitrary::Result<Self> {
        let kind = choices.choose(kinds())?.kind;
        let layout = *choices.choose(&Layout::ALL)?;
        let bytes = choices.bytes(choices.len())?;
        Ok(Input { kind, layout, bytes })
    }
}

fuzz_target!(|input: Input<'_>| {
    let Input { kind, layout, bytes } = input;
    let mut findings = Findings::default();
    let mut cursor = Cursor::new(bytes);
    let Ok(payload) = payload::read(kind, layout, &mut cursor, &mut findings) else {
        let forms = naive::payload::forms(kind, layout);
        assert!(layout < Layout::V0_22 || !forms.is_empty(), "{kind} has no grammar here and is carried as it is");
        for (kind, form) in forms {
            let second = naive::payload::read(bytes, kind, layout, form, &mut naive::Odd::new());
            assert_eq!(second, None, "{kind} {form} keeps every rule and is not read");
        }
        return;
    };
    let read = &bytes[..bytes.len() - cursor.remaining()];
    let form = payload.form().unwrap_or_default();
    if !matches!(payload, Payload::Opaque { .. }) {
        let mut odd = naive::Odd::new();
        let rest = naive::payload::read(bytes, kind, layout, form, &mut odd);
        let rest = rest.unwrap_or_else(|| panic!("{kind} {form} breaks a rule"));
        if layout >= Layout::V0_22 && !rest.is_empty() {
            odd.insert("WIRE-08".into());
        }
        assert_eq!(naive::findings(&findings, &["PAY", "TEN", "WIRE"]), odd, "{kind} {form}");
        if layout < Layout::V0_22 {
            assert_eq!(rest.len(), cursor.remaining(), "{kind} ends where its grammar says");
        }
    }
    let written = write(&payload, layout);
    if findings.is_empty() {
        assert!(written == read, "{kind} is written as other bytes");
    }
    let again = payload::read(kind, layout, &mut Cursor::new(&written), &mut Findings::default());
    assert!(again.as_ref().is_ok_and(|again| same(again, &payload)), "{kind} reads back as {again:?}");
    let from_json = Payload::from_json(&payload.to_json()).expect("a payload that was read has a JSON form");
    assert!(write(&from_json, layout) == written, "the JSON form of {kind} is another payload");
    if layout < Layout::V0_22 || !findings.is_empty() || matches!(payload, Payload::Opaque { .. }) {
        return;
    }
    for length in 0..read.len().min(256) {
        let mut findings = Findings::default();
        let short = payload::read(kind, layout, &mut Cursor::new(&read[..length]), &mut findings);
        // A prefix may be a whole payload of an older form. It cannot be a whole payload of the same form.
        let other = short.is_ok_and(|short| short.form() == payload.form() && findings.is_empty());
        assert!(!other, "a prefix of {length} bytes of {kind} is accepted");
    }
});

fn write(payload: &Payload<'_>, layout: Layout) -> Vec<u8> {
    let mut out = Writer::new();
    payload.write(layout, &mut out).expect("a value that was read can be written");
    out.into_bytes()
}

/// Returns whether the payloads are equal. Payloads that differ only in NaN floats count as equal.
fn same(a: &Payload<'_>, b: &Payload<'_>) -> bool {
    a == b || a.to_json() == b.to_json()
}
