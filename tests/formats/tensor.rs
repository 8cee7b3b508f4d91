//! Stored tensors: element types as in the real 0.27, zero copy, messages.

mod elements;
mod parameters;

use proptest::prelude::*;
use std::path::PathBuf;
use tvmspec::rule::Findings;
use tvmspec::tensor::{Dtype, Packing, Params, Sizing, TensorRecord};
use tvmspec::wire::Cursor;

fn golden(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("golden/tensor")
        .join(name)
}

#[test]
fn data_are_the_bytes_of_the_file() {
    let bytes = std::fs::read(golden("mlp-0.8.params")).unwrap();
    let params = Params::read(
        &mut Cursor::new(&bytes),
        Sizing::V0_7,
        &mut Findings::default(),
    )
    .unwrap();
    let range = bytes.as_ptr_range();
    for (name, record) in params.iter() {
        assert!(range.contains(&record.data().as_ptr()), "{name} was copied");
    }
}

proptest! {
    #[test]
    fn no_bytes_are_too_odd(bytes in prop::collection::vec(any::<u8>(), 0..200), sizing in prop::sample::select(Sizing::ALL.to_vec())) {
        let mut file = Params::MAGIC.to_le_bytes().to_vec();
        file.extend(&bytes);
        let _ = Params::read(&mut Cursor::new(&file), sizing, &mut Findings::default());
        let mut record = TensorRecord::MAGIC.to_le_bytes().to_vec();
        record.extend(&bytes);
        let _ = TensorRecord::read(&mut Cursor::new(&record), sizing, &mut Findings::default());
    }
}

#[test]
fn what_is_not_whole_says_what_is_missing() {
    let message = |dtype: Dtype, sizing, data: &[u8]| {
        let record = TensorRecord::new(dtype, &[3], data, sizing).unwrap();
        let broken = record.elements(Packing::Each).unwrap_err();
        broken.message().to_owned()
    };
    let lanes = Dtype {
        code: Dtype::FLOAT,
        bits: 32,
        lanes: 4,
    };
    let text = message(lanes, Sizing::V0_7, &[0; 12]);
    for part in [
        "TEN-35",
        "12 bytes",
        "[3]",
        "takes 48",
        "of 4 lanes",
        "TEN-34",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let text = message(Dtype::scalar(Dtype::UINT, 1), Sizing::V0_4, &[]);
    for part in ["TEN-35", "0 bytes", "takes 3", "below eight bits", "TEN-30"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn the_first_negative_dimension_is_named() {
    let float = Dtype::scalar(Dtype::FLOAT, 32);
    let broken = TensorRecord::new(float, &[1, -2, -3], &[], Sizing::V0_7).unwrap_err();
    assert_eq!(broken.message(), "dimension -2 is negative");
}
