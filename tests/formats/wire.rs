//! Round trips of wire values, and hostile bytes.

use proptest::prelude::*;
use serde_json::{Value, json};
use tvmspec::rule::{Kind, Violation};
use tvmspec::wire::json::WireType;
use tvmspec::wire::rules::{WIRE_01, WIRE_06};
use tvmspec::wire::{Cursor, Trace, Writer};

/// Generates a type, its name, and a value of it in JSON form.
fn typed() -> impl Strategy<Value = (String, Value)> {
    let leaf = prop_oneof![
        any::<u8>().prop_map(|value| ("u8".to_owned(), json!(value))),
        any::<u16>().prop_map(|value| ("u16".to_owned(), json!(value))),
        any::<u32>().prop_map(|value| ("u32".to_owned(), json!(value))),
        any::<u64>().prop_map(|value| ("u64".to_owned(), json!(value))),
        any::<i32>().prop_map(|value| ("i32".to_owned(), json!(value))),
        any::<i64>().prop_map(|value| ("i64".to_owned(), json!(value))),
        any::<bool>().prop_map(|value| ("bool".to_owned(), json!(value))),
        ".{0,12}".prop_map(|value| ("string".to_owned(), json!(value))),
        // Every bit pattern except NaN and infinity, for which JSON has no number.
        any::<f64>()
            .prop_filter("finite", |value| value.is_finite())
            .prop_map(|value| ("f64".to_owned(), json!(value))),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            (inner.clone(), 0..4_usize).prop_map(|((name, value), count)| {
                (format!("vector<{name}>"), Value::Array(vec![value; count]))
            }),
            (inner.clone(), inner.clone(), 0..3_usize).prop_map(|(key, item, count)| {
                let entry = json!([key.1, item.1]);
                (
                    format!("map<{},{}>", key.0, item.0),
                    Value::Array(vec![entry; count]),
                )
            }),
            prop::collection::vec(inner, 1..4).prop_map(|members| {
                let (names, values): (Vec<_>, Vec<_>) = members.into_iter().unzip();
                (format!("tuple<{}>", names.join(",")), Value::Array(values))
            }),
        ]
    })
}

fn written(name: &WireType, value: &Value) -> Vec<u8> {
    let mut out = Writer::new();
    name.write(value, &mut out).unwrap();
    out.into_bytes()
}

proptest! {
    #[test]
    fn what_is_written_is_read((name, value) in typed()) {
        let parsed: WireType = name.parse().unwrap();
        let bytes = written(&parsed, &value);
        let mut cursor = Cursor::new(&bytes);
        prop_assert_eq!(parsed.read(&mut cursor, "value").unwrap(), value);
        prop_assert!(cursor.is_at_end());
    }

    #[test]
    fn every_byte_belongs_to_one_field((name, value) in typed()) {
        let parsed: WireType = name.parse().unwrap();
        let bytes = written(&parsed, &value);
        let trace = Trace::new();
        parsed.read(&mut Cursor::traced(&bytes, &trace), "value").unwrap();
        let mut end = 0;
        for span in trace.into_spans() {
            prop_assert_eq!(span.start, end, "{} does not follow", span.field);
            end = span.end;
        }
        prop_assert_eq!(end, bytes.len() as u64);
    }

    #[test]
    fn every_strict_prefix_is_rejected((name, value) in typed()) {
        let parsed: WireType = name.parse().unwrap();
        let bytes = written(&parsed, &value);
        for length in 0..bytes.len() {
            let broken = parsed.read(&mut Cursor::new(&bytes[..length]), "value").unwrap_err();
            prop_assert_eq!(broken.kind(), Kind::Truncated);
            prop_assert!([WIRE_01, WIRE_06].contains(&broken.rule()), "{broken:?}");
            prop_assert!(broken.offset().unwrap() <= length as u64);
        }
    }

    #[test]
    fn values_read_from_any_bytes_round_trip((name, _) in typed(), bytes: Vec<u8>) {
        let parsed: WireType = name.parse().unwrap();
        let mut cursor = Cursor::new(&bytes);
        if let Ok(value) = parsed.read(&mut cursor, "value") {
            let read = cursor.offset() as usize;
            prop_assert_eq!(written(&parsed, &value), &bytes[..read]);
        }
    }
}

#[test]
fn a_failed_read_leaves_the_cursor_where_it_was() {
    let bytes = [4, 0, 0, 0, 0, 0, 0, 0, b'_', b'l'];
    let mut cursor = Cursor::new(&bytes);
    assert!(cursor.str("kind", WIRE_01).is_err());
    assert_eq!(cursor.offset(), 0);
    assert!(cursor.words("indptr", WIRE_01).is_err());
    assert!(cursor.window("payload").is_err());
    assert_eq!(cursor.offset(), 0);
}

#[test]
fn offsets_of_an_inner_window_count_from_the_start_of_the_file() {
    let bytes = [3, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 9];
    let mut cursor = Cursor::new(&bytes);
    let mut inner = cursor.window("payload").unwrap();
    assert_eq!((inner.offset(), inner.remaining()), (8, 3));
    assert_eq!(inner.u32("word", WIRE_01).unwrap_err().offset(), Some(8));
    assert_eq!(cursor.rest(), [9]);
}

#[test]
fn types_are_read_or_rejected() {
    for good in ["u8", "map<string,vector<u64>>", "tuple<u8>"] {
        assert!(good.parse::<WireType>().is_ok(), "{good}");
    }
    let nested = |depth| format!("{}u8{}", "vector<".repeat(depth), ">".repeat(depth));
    // The schema of the chapter allows sixteen levels, and no more.
    assert!(nested(16).parse::<WireType>().is_ok());
    assert!(nested(17).parse::<WireType>().is_err());
    let deep = nested(40);
    for bad in [
        "",
        "u9",
        "vector",
        "vector<>",
        "vector<u8,u8>",
        "map<u8>",
        "u8>",
        "tuple<>",
        "u8<u8>",
        &deep,
    ] {
        assert!(bad.parse::<WireType>().is_err(), "{bad}");
    }
}

/// WIRE-01: the message must suffice for a user who does not look at the bytes.
#[test]
fn truncation_error_states_needed_bytes() {
    let message = |broken: Violation| broken.message().to_owned();
    let cut = [0; 3];
    let cursor = || Cursor::new(&cut);
    for (needed, text) in [
        (4, message(cursor().u32("it", WIRE_01).unwrap_err())),
        (4, message(cursor().i32("it", WIRE_01).unwrap_err())),
        (8, message(cursor().u64("it", WIRE_01).unwrap_err())),
        (8, message(cursor().i64("it", WIRE_01).unwrap_err())),
        (8, message(cursor().f64("it", WIRE_01).unwrap_err())),
        // WIRE-04, WIRE-06: the length or count itself has 8 bytes.
        (8, message(cursor().bytes("it", WIRE_01).unwrap_err())),
        (8, message(cursor().run("it", WIRE_01).unwrap_err())),
        (8, message(cursor().str("it", WIRE_01).unwrap_err())),
        (8, message(cursor().window("it").unwrap_err())),
        (8, message(cursor().words("it", WIRE_01).unwrap_err())),
        (5, message(cursor().take(5, "it", WIRE_01).unwrap_err())),
    ] {
        assert_eq!(text, format!("it needs {needed} bytes, 3 remain"));
    }
    let behind = [9, 0, 0, 0, 0, 0, 0, 0, 1, 2];
    let cursor = || Cursor::new(&behind);
    for text in [
        message(cursor().bytes("it", WIRE_01).unwrap_err()),
        message(cursor().window("it").unwrap_err()),
    ] {
        assert_eq!(text, "it needs 9 bytes, 2 remain");
    }
    let text = message(cursor().words("it", WIRE_01).unwrap_err());
    assert!(
        text.contains("9 elements of at least 8 bytes, 2 bytes follow"),
        "{text}"
    );
}
