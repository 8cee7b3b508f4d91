//! Payloads: damaged goldens that still read are written back.
#![cfg(feature = "suite")]
#![allow(missing_docs)]

mod code_text;
mod edits;
mod files;
mod kinds;
mod meanings;

use crate::support::cases;
use crate::support::folder;
use proptest::prelude::*;
use serde_json::Value;
use std::fs;
use std::path::Path;
use tvmspec::payload::{self, Payload};
use tvmspec::release::Layout;
use tvmspec::rule::Findings;
use tvmspec::wire::{Cursor, Writer};

/// The payload of an accepted case: name, kind, layout, bytes, expected value.
struct Accepted {
    id: String,
    kind: String,
    layout: Layout,
    bytes: Vec<u8>,
    value: Value,
}

fn golden(path: &str) -> Vec<u8> {
    fs::read(format!("golden/{path}")).unwrap_or_else(|error| panic!("golden/{path}: {error}"))
}

fn accepted() -> Vec<Accepted> {
    let files = folder::files(Path::new("conformance/payload/cases"));
    let cases = files.iter().flat_map(|file| cases::cases(file));
    // Bytes after the end are skipped and not written back. Such a case says so.
    let decoded = cases.filter(|case| {
        let whole = case["encode"] != false && case["op"] == "payload.decode";
        whole && case["expect"]["accept_file"].is_string()
    });
    decoded
        .map(|case| Accepted {
            id: case["id"].as_str().unwrap().to_owned(),
            kind: case["args"]["kind"].as_str().unwrap().to_owned(),
            layout: case["args"]["layout"].as_str().unwrap().parse().unwrap(),
            bytes: golden(case["input"]["file"].as_str().unwrap()),
            value: serde_json::from_slice(&golden(case["expect"]["accept_file"].as_str().unwrap()))
                .unwrap(),
        })
        .collect()
}

fn read<'a>(kind: &str, layout: Layout, bytes: &'a [u8]) -> (Payload<'a>, Findings) {
    let mut findings = Findings::default();
    let payload = payload::read(kind, layout, &mut Cursor::new(bytes), &mut findings);
    (
        payload.unwrap_or_else(|broken| panic!("{kind}: {broken}")),
        findings,
    )
}

/// Generates bytes of accepted payloads with a few changes, and sometimes with bytes after the end.
fn damaged() -> impl Strategy<Value = (String, Layout, Vec<u8>)> {
    let all = accepted();
    let edits = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4);
    (
        any::<prop::sample::Index>(),
        edits,
        any::<prop::sample::Index>(),
    )
        .prop_map(move |(which, edits, length)| {
            let Accepted {
                kind,
                layout,
                bytes,
                ..
            } = which.get(&all);
            let mut bytes = bytes.clone();
            for (at, byte) in edits {
                if !bytes.is_empty() {
                    let at = at.index(bytes.len());
                    bytes[at] = byte;
                }
            }
            // Most are complete, some truncated.
            if length.index(4) == 0 {
                bytes.truncate(length.index(bytes.len() + 1));
            }
            (kind.clone(), *layout, bytes)
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn what_reads_writes_back((kind, layout, bytes) in damaged()) {
        let mut findings = Findings::default();
        let mut cursor = Cursor::new(&bytes);
        if let Ok(payload) = payload::read(&kind, layout, &mut cursor, &mut findings) {
            let read = &bytes[..bytes.len() - cursor.remaining()];
            let mut out = Writer::new();
            payload.write(layout, &mut out).unwrap();
            let written = out.into_bytes();
            prop_assert!(!findings.is_empty() || written == read, "{kind} is written as other bytes");
            let from_json = Payload::from_json(&payload.to_json()).unwrap();
            let mut out = Writer::new();
            from_json.write(layout, &mut out).unwrap();
            prop_assert!(out.into_bytes() == written, "the JSON form of {kind} is another payload");
        }
    }
}
