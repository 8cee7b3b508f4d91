//! Element types, and the number of elements that memory holds.

use super::golden;
use proptest::prelude::*;
use serde_json::Value;
use tvmspec::release::Release;
use tvmspec::rule::Kind;
use tvmspec::tensor::{Dtype, Packing, Sizing, TensorRecord};

#[test]
fn dtype_texts_are_those_of_the_wheel() {
    let text = std::fs::read_to_string(golden("dtypes.json")).unwrap();
    let reply: Value = serde_json::from_str(&text).unwrap();
    let three = |value: &Value| Dtype {
        code: value[0].as_u64().unwrap().try_into().unwrap(),
        bits: value[1].as_u64().unwrap().try_into().unwrap(),
        lanes: value[2].as_u64().unwrap().try_into().unwrap(),
    };
    for line in reply["read"].as_array().unwrap() {
        let ours = Dtype::parse(line[0].as_str().unwrap(), Release::LAST).ok();
        let theirs = (!line[1].is_null()).then(|| three(&line[1]));
        assert_eq!(ours, theirs, "{line}");
    }
    for line in reply["printed"].as_array().unwrap() {
        let ours = three(&line[0]).text(Release::LAST).ok();
        assert_eq!(ours.as_deref(), line[1].as_str(), "{line}");
    }
}

#[test]
fn some_element_types_are_of_no_release() {
    let rejected = |dtype: Dtype| dtype.check_element().err().map(|broken| broken.rule().id());
    assert_eq!(rejected(Dtype::scalar(Dtype::BFLOAT, 16)), None);
    assert_eq!(rejected(Dtype::scalar(Dtype::BFLOAT, 32)), Some("TEN-33"));
    assert_eq!(rejected(Dtype::scalar(Dtype::COMPLEX, 64)), None);
    assert_eq!(rejected(Dtype::scalar(Dtype::COMPLEX, 16)), Some("TEN-33"));
    // The registry of a custom type decides about its width.
    assert_eq!(rejected(Dtype::scalar(Dtype::CUSTOM, 24)), None);
    assert_eq!(
        rejected(Dtype::scalar(Dtype::CUSTOM - 1, 24)),
        Some("TEN-33")
    );
    assert_eq!(rejected(Dtype::VOID), Some("TEN-28"));
}

/// Returns every code, with fixed, default and explicit widths, and lanes of both signs.
fn every_dtype() -> impl Iterator<Item = Dtype> {
    let widths = [0, 1, 4, 6, 7, 8, 16, 32, 64, 128, 255];
    let lanes = [0, 1, 2, 4, 32767, 32768, 65532, 65535];
    (0..=u8::MAX).flat_map(move |code| {
        widths
            .into_iter()
            .flat_map(move |bits| lanes.map(|lanes| Dtype { code, bits, lanes }))
    })
}

#[test]
fn a_dtype_that_is_displayed_by_name_parses_as_itself() {
    let mut names = std::collections::BTreeSet::new();
    let mut unnamed = 0;
    for dtype in every_dtype() {
        let text = dtype.to_string();
        match (dtype.exact_text(), text.parse::<Dtype>()) {
            (Some(exact), Ok(again)) => {
                assert_eq!((again, &text), (dtype, &exact));
                let name = text.trim_end_matches(|c: char| c.is_ascii_digit());
                names.insert(name.trim_end_matches(['x', '_']).to_owned());
            }
            (None, Ok(void)) => assert_eq!((void, dtype), (Dtype::VOID, Dtype::VOID), "{text}"),
            (None, Err(broken)) => {
                unnamed += 1;
                assert_eq!(broken.rule(), tvmspec::tensor::rules::TEN_02, "{text}");
            }
            (Some(_), Err(broken)) => panic!("{text}: {broken}"),
        }
    }
    for name in [
        "int",
        "uint",
        "float",
        "bfloat",
        "bool",
        "handle",
        "float8_e4m3fn",
    ] {
        assert!(names.contains(name), "{name} is not among {names:?}");
    }
    assert!(unnamed > 1000, "{unnamed}");
    for (text, rule) in [
        ("quux", "TEN-02"),
        ("float32y4", "TEN-09"),
        ("int300", "TEN-09"),
    ] {
        assert_eq!(
            text.parse::<Dtype>().unwrap_err().rule().id(),
            rule,
            "{text}"
        );
    }
}

proptest! {
    #[test]
    fn a_text_that_is_read_is_written_alike(text in "(int|uint|float|bool|bfloat|handle)[0-9]{0,3}(x[0-9]{1,3})?", minor in 2..=27_u8) {
        let release = Release::of(minor);
        if let Ok(dtype) = Dtype::parse(&text, release) {
            let written = dtype.text(release).unwrap();
            let again = Dtype::parse(&written, release).unwrap();
            prop_assert_eq!(again.code, dtype.code);
            if dtype.code != Dtype::HANDLE {
                prop_assert_eq!(again, dtype);
            }
        }
    }
}

/// TEN-35: the elements of a record take as many bytes as a tensor of its type and shape, in each runtime that copies it.
#[test]
fn elements_are_as_many_as_memory_has() {
    let shape = [3_i64];
    for (code, bits, lanes) in [
        (2, 32, 1),
        (2, 32, 16),
        (0, 4, 1),
        (1, 1, 1),
        (17, 4, 2),
        (0, 12, 3),
    ] {
        let dtype = Dtype { code, bits, lanes };
        for sizing in Sizing::ALL {
            let stored = sizing.data_bytes(dtype, &shape).unwrap();
            let data = vec![1; usize::try_from(stored).unwrap()];
            let record = TensorRecord::new(dtype, &shape, data, sizing).unwrap();
            for packing in [Packing::Each, Packing::Packed] {
                let needed = packing.bytes(dtype, &shape).unwrap();
                match record.elements(packing) {
                    Ok(elements) => {
                        assert_eq!(elements.bytes().len() as u64, needed);
                        assert!(needed <= stored);
                    }
                    Err(broken) => {
                        assert_eq!(broken.rule().id(), "TEN-35");
                        assert!(needed > stored, "{dtype} as {sizing} stores it: {broken}");
                    }
                }
            }
        }
    }
}

#[cfg(feature = "runtime")]
#[test]
fn memory_counts_as_the_device_does() {
    use tvmspec::device::byte_size;
    use tvmspec::release::Release;
    for (bits, lanes) in [
        (1, 1),
        (4, 1),
        (4, 2),
        (8, 1),
        (12, 3),
        (32, 1),
        (32, 1024),
        (64, 65535),
    ] {
        let dtype = Dtype {
            code: 0,
            bits,
            lanes,
        };
        for shape in [&[][..], &[0], &[3], &[7, 5], &[1 << 40, 1 << 40], &[-1]] {
            let bytes = |release| byte_size(shape, dtype, release).map(|bytes| bytes as u64);
            let (old, new) = (Release::of(20), Release::LAST);
            assert_eq!(
                Packing::Each.bytes(dtype, shape),
                bytes(old),
                "{dtype} {shape:?}"
            );
            assert_eq!(
                Packing::Packed.bytes(dtype, shape),
                bytes(new),
                "{dtype} {shape:?}"
            );
        }
    }
}

#[cfg(feature = "runtime")]
#[test]
fn no_tensor_is_made_of_lanes_that_are_not_stored() {
    let dtype = Dtype {
        code: 2,
        bits: 32,
        lanes: 1024,
    };
    let record = TensorRecord::new(dtype, &[3], vec![0; 12], Sizing::V0_7).unwrap();
    let rejected = tvmspec::object::Tensor::from_record(&record).err().unwrap();
    assert!(rejected.to_string().contains("TEN-35"), "{rejected}");
}

#[test]
fn an_element_has_bits_lanes_of_its_own_and_a_meaning() {
    let of = |code, bits, lanes| Dtype { code, bits, lanes };
    for (dtype, rejected) in [
        (of(Dtype::FLOAT, 32, 1), None),
        (of(Dtype::INT, 1, 1), None),
        (of(Dtype::FLOAT, 32, 1 << 15), None),
        (of(Dtype::INT, 0, 1), Some(("TEN-28", Kind::Type))),
        (of(Dtype::INT, 8, 0), Some(("TEN-28", Kind::Type))),
        (of(Dtype::INT, 0, 0), Some(("TEN-28", Kind::Type))),
        (Dtype::VOID, Some(("TEN-28", Kind::Type))),
        (
            of(Dtype::FLOAT, 32, (1 << 15) + 1),
            Some(("TEN-07", Kind::Unsupported)),
        ),
        (
            of(Dtype::FLOAT, 32, u16::MAX),
            Some(("TEN-07", Kind::Unsupported)),
        ),
        (of(Dtype::FLOAT, 31, 1), Some(("TEN-33", Kind::UnknownKind))),
    ] {
        let answer = dtype.check_element().err();
        let answer = answer.map(|broken| (broken.rule().id(), broken.kind()));
        assert_eq!(answer, rejected, "{dtype:?}");
    }
}

/// TEN-27, TEN-35: with a dimension of 0 there are no bytes, even if the product of the others overflows.
#[test]
fn memory_of_no_elements_is_no_bytes() {
    let float = Dtype::scalar(Dtype::FLOAT, 64);
    let huge = i64::MAX;
    for packing in [Packing::Each, Packing::Packed] {
        for shape in [
            [0, huge, huge, huge],
            [huge, huge, 0, huge],
            [huge, huge, huge, 0],
        ] {
            assert_eq!(packing.bytes(float, &shape), Some(0), "{shape:?}");
        }
        assert_eq!(packing.bytes(float, &[huge, huge, huge, 1]), None);
        assert_eq!(packing.bytes(float, &[0, -1]), None);
    }
    // TEN-35: nine bits are two bytes, packed or not, and one bit is a byte.
    for (bits, count, each, packed) in [(1, 8, 8, 1), (1, 9, 9, 2), (4, 17, 17, 9), (12, 3, 6, 5)] {
        let dtype = Dtype::scalar(Dtype::INT, bits);
        assert_eq!(Packing::Each.bytes(dtype, &[count]), Some(each), "{bits}");
        assert_eq!(
            Packing::Packed.bytes(dtype, &[count]),
            Some(packed),
            "{bits}"
        );
    }
}

/// TEN-33: the message names the kind of number and its valid widths.
#[test]
fn an_element_type_without_meaning_says_what_it_should_be() {
    for (code, bits, message) in [
        (2, 31, "a float has 16 or 32 or 64 bits, not 31"),
        (3, 8, "a handle has 32 or 64 bits, not 8"),
        (4, 8, "a bfloat has 16 bits, not 8"),
        (5, 8, "a complex number has 32 or 64 or 128 bits, not 8"),
        (6, 9, "a bool has 1 or 8 bits, not 9"),
        (7, 9, "a 8-bit float has 8 bits, not 9"),
        (8, 9, "a small float has 4 or 8 bits, not 9"),
        (14, 9, "a 8-bit float has 8 bits, not 9"),
        (15, 9, "a 6-bit float has 6 bits, not 9"),
        (17, 9, "a 4-bit float has 4 bits, not 9"),
        (18, 8, "no release has an element type of code 18"),
    ] {
        let broken = Dtype::scalar(code, bits).check_element().unwrap_err();
        assert_eq!((broken.rule().id(), broken.message()), ("TEN-33", message));
    }
}
