//! Hashes, big integers and strings.

use super::int;
use proptest::prelude::*;
use tvmspec::object::hash::{any_hash, hash_bytes};
use tvmspec::object::{Map, big_int};
use tvmspec::rule::Kind;
use tvmspec::value::{Any, Str};

#[test]
fn hashes_of_the_reference() {
    // The values were observed on the wheel of tvm-ffi 0.1.15.post2.
    for (value, hash) in [
        (int(1), 0x9e37_79fb),
        (Any::from("k0"), 0x9e37_ba35),
        (Any::from("abcdefgh"), 0xd369_b977),
        (Any::from(""), 0x9e37_8a48),
        (Any::from(1.5), 0x3ff8_0000_9e37_7a7a),
    ] {
        assert_eq!(any_hash(value.view()).unwrap(), hash, "{value:?}");
    }
    assert_eq!(hash_bytes(b""), 0);
}

proptest! {
    #[test]
    fn big_integers_round_trip_as_text(words in proptest::collection::vec(any::<i64>(), 1..5)) {
        let value = big_int::from_words(&words);
        let own = big_int::words_of(&value.view()).unwrap().to_vec();
        let text = big_int::to_decimal(&own);
        let back = big_int::from_decimal(&text).unwrap();
        let back = big_int::words_of(&back.view()).unwrap().to_vec();
        prop_assert_eq!(back, own);
    }
}

#[test]
fn a_number_of_a_file_has_a_bounded_number_of_digits() {
    tvmspec::object::init();
    let read = |digits: usize| {
        let text = "9".repeat(digits);
        let graph =
            format!(r#"{{"root_index":0,"nodes":[{{"type":"ffi.BigInt","data":"{text}"}}]}}"#);
        let value = tvmspec::object::json_graph::graph::decode_text(graph.as_bytes())?;
        let words = big_int::words_of(&value.view())
            .unwrap_or_default()
            .to_vec();
        Ok::<_, tvmspec::function::Error>(big_int::to_decimal(&words) == text)
    };
    // The lengths are near the number of digits that are read at once, and at the limit.
    for digits in [1, 18, 19, 20, 37, 38, 39, 100_000] {
        assert!(read(digits).unwrap(), "{digits}");
    }
    let error = read(100_001).unwrap_err();
    let broken = error.violation().unwrap();
    assert_eq!((broken.rule().id(), broken.kind()), ("OBJ-10", Kind::Limit));
}

#[test]
fn strings_are_equal_whatever_their_form() {
    let mut map = Map::new();
    map.set(Str::new("abc"), 1i64).unwrap();
    let key = Any::from(String::from("abc"));
    assert!(map.get(key.view()).unwrap().is_some());
    assert!(map.get(Any::from(1i64).view()).unwrap().is_none());
}
