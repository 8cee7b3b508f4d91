//! Files of named tensors.

use super::golden;
use proptest::prelude::*;
use std::borrow::Cow;
use tvmspec::rule::{Findings, Kind};
use tvmspec::tensor::{Dtype, Params, Sizing, TensorRecord};
use tvmspec::wire::{Cursor, Writer};

#[test]
fn of_two_tensors_with_one_name_the_last_counts() {
    let first = TensorRecord::new(Dtype::scalar(Dtype::INT, 8), &[1], &[1], Sizing::V0_7).unwrap();
    let last = TensorRecord::new(Dtype::scalar(Dtype::INT, 8), &[1], &[2], Sizing::V0_7).unwrap();
    let params = Params::new(vec![("a".into(), first), ("a".into(), last.clone())]);
    assert_eq!(params.get("a"), Some(&last));
}

#[test]
fn a_violation_says_which_tensor() {
    let mut bytes = std::fs::read(golden("small-0.27.params")).unwrap();
    // The last tensor is empty, so that the file ends with its size.
    let last = bytes.len() - 8;
    bytes[last] = 4;
    let broken = Params::read(
        &mut Cursor::new(&bytes),
        Sizing::V0_7,
        &mut Findings::default(),
    );
    let broken = broken.unwrap_err();
    assert_eq!(
        (broken.rule().id(), broken.offset()),
        ("TEN-31", Some(last as u64))
    );
    assert_eq!(broken.field(), "tensor[2].data_byte_size");
}

fn dtypes() -> impl Strategy<Value = Dtype> {
    (0..=17_u8, 1..=128_u8, 1..=4_u16).prop_map(|(code, bits, lanes)| Dtype { code, bits, lanes })
}

type Owned = (String, Dtype, Vec<i64>, Vec<u8>);

fn tensors(sizing: Sizing) -> impl Strategy<Value = Owned> {
    (".{0,8}", dtypes(), prop::collection::vec(0..4_i64, 0..4)).prop_flat_map(
        move |(name, dtype, shape)| {
            let size = sizing.data_bytes(dtype, &shape).unwrap() as usize;
            prop::collection::vec(any::<u8>(), size)
                .prop_map(move |data| (name.clone(), dtype, shape.clone(), data))
        },
    )
}

fn files() -> impl Strategy<Value = (Sizing, Vec<Owned>)> {
    prop::sample::select(Sizing::ALL.to_vec())
        .prop_flat_map(|sizing| (Just(sizing), prop::collection::vec(tensors(sizing), 0..4)))
}

proptest! {
    #[test]
    fn params_come_back((sizing, tensors) in files()) {
        let record = |(name, dtype, shape, data): &'_ Owned| {
            (name.clone(), TensorRecord::new(*dtype, shape, data, sizing).unwrap().dtype())
        };
        let names: Vec<_> = tensors.iter().map(record).collect();
        let named = tensors.iter().map(|(name, dtype, shape, data)| {
            let record = TensorRecord::new(*dtype, shape, data, sizing).unwrap();
            (Cow::from(name.as_str()), record)
        });
        let params = Params::new(named.collect());
        let mut out = Writer::new();
        params.write(&mut out);
        let bytes = out.into_bytes();
        let mut findings = Findings::default();
        let mut cursor = Cursor::new(&bytes);
        let back = Params::read(&mut cursor, sizing, &mut findings).unwrap();
        prop_assert!(cursor.is_at_end());
        prop_assert!(back == params);
        prop_assert_eq!(back.iter().map(|(name, record)| (name.to_owned(), record.dtype())).collect::<Vec<_>>(), names);
        for cut in 0..bytes.len() {
            let cut = Params::read(&mut Cursor::new(&bytes[..cut]), sizing, &mut findings);
            prop_assert_eq!(cut.unwrap_err().kind(), Kind::Truncated);
        }
    }
}

#[test]
fn parameters_are_counted_and_the_last_of_a_name_is_found() {
    let none = Params::new(vec![]);
    assert!(none.is_empty() && none.get("a").is_none());
    assert_eq!((none.len(), none.iter().len()), (0, 0));

    let record = |byte: u8| {
        TensorRecord::new(
            Dtype::scalar(Dtype::UINT, 8),
            &[1],
            vec![byte],
            Sizing::V0_7,
        )
        .unwrap()
    };
    let named = |name: &'static str, byte| (Cow::Borrowed(name), record(byte));
    let params = Params::new(vec![named("a", 1), named("b", 2), named("a", 3)]);
    assert!(!params.is_empty());
    assert_eq!((params.len(), params.iter().len()), (3, 3));
    let found = |name| params.get(name).map(|record| record.data().to_vec());
    assert_eq!(found("a"), Some(vec![3]));
    assert_eq!(found("b"), Some(vec![2]));
    assert_eq!(found("c"), None);
    let names: Vec<&str> = params.iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["a", "b", "a"]);
}

/// TEN-42: new parameters, which were not read from a file, have the reserved word that releases write.
#[test]
fn parameters_that_are_made_have_a_reserved_word_of_0() {
    let params = Params::new(vec![]);
    assert_eq!(params.reserved(), 0);
    let mut out = Writer::new();
    params.write(&mut out);
    assert_eq!(out.into_bytes()[8..16], [0; 8]);
}
