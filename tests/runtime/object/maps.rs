//! Maps and dicts: the order of their keys, their tables, and their holders.

use super::{heap_text, int};
use proptest::prelude::*;
use tvmspec::function::{Function, registry};
use tvmspec::object::{Dict, Map};
use tvmspec::value::{Any, cast};

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

/// A table that is nearly full has chains for which no slot is left (OBJ-07).
#[test]
fn a_dict_that_is_nearly_full_finds_every_key() {
    const KEYS: i64 = 2_020;
    let mut state = 27_u64;
    for _ in 0..50 {
        let dict = Dict::new();
        let keys = (0..KEYS).map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 20) as i64 & !15
        });
        let keys: Vec<i64> = keys.collect();
        for (at, key) in keys.iter().enumerate() {
            dict.set(*key, at as i64).unwrap();
        }
        for (at, key) in keys.iter().enumerate() {
            let found = dict.get((*key).into()).unwrap().unwrap();
            assert_eq!(cast::<i64>(found.view()).unwrap(), at as i64);
        }
    }
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
    /// The model is a vector of pairs. An update stays in place while there are at most four pairs, and later moves to the end.
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
        let pairs = dict.to_vec();
        let pairs: Vec<(i64, i64)> = pairs
            .iter()
            .map(|(key, value)| (i64::try_from(key).unwrap(), i64::try_from(value).unwrap()))
            .collect();
        prop_assert_eq!(&pairs, &model);
        for (key, value) in model {
            prop_assert_eq!(i64::try_from(&dict.at(int(key).view()).unwrap()).unwrap(), value);
        }
    }
}

/// A value that fills its dict when it ends.
struct Refills(Dict, i64);

impl Refills {
    fn key(&self) -> i64 {
        self.1
    }
}

impl Drop for Refills {
    fn drop(&mut self) {
        for number in 0..20 {
            self.0.set(self.1 * 100 + number, number).unwrap();
        }
    }
}

#[test]
fn a_dict_is_whole_while_its_values_end() {
    for count in [2, 10] {
        let dict = Dict::new();
        for key in 0..count {
            let refills = Refills(dict.clone(), key);
            let value = Function::from_packed(move |_| Ok(Any::from(refills.key())));
            dict.set(key, value).unwrap();
        }
        dict.clear().unwrap();
        assert_eq!(dict.len(), 20 * count as usize);
        let keys = dict.to_vec();
        let keys: Vec<i64> = keys
            .iter()
            .map(|(key, _)| i64::try_from(key).unwrap())
            .collect();
        let all: Vec<i64> = (0..count)
            .flat_map(|key| (0..20).map(move |number| key * 100 + number))
            .collect();
        assert_eq!(keys, all);
        dict.clear().unwrap();
    }
}

#[test]
fn an_iterator_of_a_dict_that_was_emptied_is_at_its_end() {
    tvmspec::object::init();
    let make = registry::require("ffi.DictForwardIterFunctor").unwrap();
    for count in [2, 10] {
        let dict = Dict::new();
        for number in 0..count {
            dict.set(number, heap_text(number)).unwrap();
        }
        let made = make.call((&dict,)).unwrap();
        let next = cast::<Function>(made.view()).unwrap();
        assert!(next.call((1i64,)).is_ok());
        dict.clear().unwrap();
        for command in [0i64, 1] {
            let error = next.call((command,)).unwrap_err();
            assert_eq!(error.kind(), "IndexError");
        }
        let on = next.call((2i64,)).unwrap();
        assert!(!bool::try_from(&on).unwrap());
    }
}
