//! Containers, from outside.
#![cfg(feature = "runtime")]

use proptest::prelude::*;
use tvmspec::object::hash::{any_hash, hash_bytes};
use tvmspec::object::{Array, Dict, List, Map, Shape, Tensor, big_int};
use tvmspec::value::{Any, DLDataType, Str};

fn int(value: i64) -> Any {
    Any::from(value)
}

#[test]
fn hashes_of_the_reference() {
    // Observed on the wheel of tvm-ffi 0.1.15.post2.
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

#[test]
fn arrays_and_lists() {
    let array = Array::new(vec![int(1), Any::from("two")]);
    assert_eq!(array.len(), 2);
    assert_eq!(array.at(2).unwrap_err().kind(), "IndexError");
    assert_eq!(
        array.at(-1).unwrap_err().message(),
        "Index -1 out of bounds 2"
    );
    let list = List::new(vec![]);
    for value in 0..100 {
        list.push(int(value));
    }
    list.insert(50, vec![Any::from("mid"), Any::none()])
        .unwrap();
    assert_eq!(list.remove(0, 50).unwrap().len(), 50);
    assert_eq!(format!("{:?}", list.at(0).unwrap()), "\"mid\"");
    list.reverse();
    list.clear();
    assert!(list.is_empty());
}

fn keys(map: &Map) -> Vec<String> {
    map.iter()
        .map(|(key, _)| String::try_from(key).unwrap())
        .collect()
}

#[test]
fn an_update_moves_a_key_to_the_end_of_a_dense_map_only() {
    let mut map = Map::new();
    for name in ["a", "b", "c"] {
        map.set(name, 1i64).unwrap();
    }
    map.set("a", 2i64).unwrap();
    assert_eq!(keys(&map), ["a", "b", "c"]);
    for name in ["d", "e", "f", "g", "h"] {
        map.set(name, 1i64).unwrap();
    }
    map.set("a", 3i64).unwrap();
    assert_eq!(keys(&map), ["b", "c", "d", "e", "f", "g", "h", "a"]);
}

#[test]
fn a_map_copies_when_shared_and_a_dict_does_not() {
    let mut map = Map::new();
    map.set(1i64, 1i64).unwrap();
    let before = map.clone();
    map.set(2i64, 2i64).unwrap();
    assert_eq!((before.len(), map.len()), (1, 2));
    let dict = Dict::new();
    let same = dict.clone();
    for value in 0..50i64 {
        dict.set(value, value).unwrap();
    }
    assert_eq!(same.len(), 50);
}

proptest! {
    /// Against a model: pairs in a vector, updates in place while there are at most four, at the end afterwards.
    #[test]
    fn dict_equals_the_naive_model(steps in proptest::collection::vec((0u8..3, 0i64..60), 1..300)) {
        let dict = Dict::new();
        let mut model: Vec<(i64, i64)> = Vec::new();
        let mut dense = false;
        let mut slots = 2;
        for (count, (what, key)) in (0i64..).zip(steps) {
            let known = model.iter().position(|(known, _)| *known == key);
            if what == 2 {
                prop_assert_eq!(dict.remove(int(key).view()).unwrap(), known.is_some());
                if let Some(at) = known {
                    model.remove(at);
                }
                continue;
            }
            if !dense && model.len() == 4 && slots == 4 {
                dense = true;
            }
            match known {
                Some(at) if !dense => model[at].1 = count,
                Some(at) => {
                    model.remove(at);
                    model.push((key, count));
                }
                None => {
                    model.push((key, count));
                    if model.len() > slots {
                        slots = 4;
                    }
                }
            }
            dict.set(key, count).unwrap();
        }
        let pairs: Vec<(i64, i64)> = dict
            .iter()
            .map(|(key, value)| (i64::try_from(key).unwrap(), i64::try_from(value).unwrap()))
            .collect();
        prop_assert_eq!(&pairs, &model);
        for (key, value) in model {
            prop_assert_eq!(i64::try_from(&dict.at(int(key).view()).unwrap()).unwrap(), value);
        }
    }

    #[test]
    fn big_integers_round_trip_as_text(words in proptest::collection::vec(any::<i64>(), 1..5)) {
        let value = big_int::from_words(&words);
        let own = big_int::words_of(value.as_raw()).unwrap().to_vec();
        let text = big_int::to_decimal(&own);
        let back = big_int::from_decimal(&text).unwrap();
        prop_assert_eq!(big_int::words_of(back.as_raw()).unwrap(), &own[..]);
    }
}

#[test]
fn tensors_go_out_and_in_through_dlpack() {
    let tensor = Tensor::empty(&[2, 3], DLDataType::scalar(2, 32)).unwrap();
    assert_eq!(tensor.bytes().unwrap().len(), 24);
    tensor.fill(&[7; 24]).unwrap();
    let out = tensor.to_dlpack_versioned();
    drop(tensor);
    // SAFETY: `out` was just given to us.
    let back = unsafe { Tensor::from_dlpack_versioned(out, 0, true) }.unwrap();
    assert_eq!(back.shape(), [2, 3]);
    assert_eq!(back.bytes().unwrap(), [7; 24]);
    assert_eq!(Shape::new(&[1, 2]).as_slice(), [1, 2]);
}

#[test]
fn strings_are_equal_whatever_their_form() {
    let mut map = Map::new();
    map.set(Str::new("abc"), 1i64).unwrap();
    let key = Any::from(String::from("abc"));
    assert!(map.get(key.view()).unwrap().is_some());
    assert!(map.get(Any::from(1i64).view()).unwrap().is_none());
}
