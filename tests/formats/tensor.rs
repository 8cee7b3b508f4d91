//! Stored tensors: round trips, what the real 0.27 says of element types, cut files, zero copy.

use proptest::prelude::*;
use serde_json::Value;
use std::borrow::Cow;
use std::path::PathBuf;
use tvmspec::release::Release;
use tvmspec::rule::{Findings, Kind, Strictness};
use tvmspec::tensor::{Device, Dtype, Packing, Params, Sizing, TensorRecord};
use tvmspec::wire::{Cursor, Trace, Writer};

fn golden(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("golden/tensor")
        .join(name)
}

fn real_files() -> Vec<(PathBuf, Vec<u8>)> {
    let folder = std::fs::read_dir(golden("")).unwrap();
    let paths = folder.map(|entry| entry.unwrap().path());
    let params = paths.filter(|path| path.extension().is_some_and(|end| end == "params"));
    params
        .map(|path| (path.clone(), std::fs::read(path).unwrap()))
        .collect()
}

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
fn real_files_come_back_and_no_part_of_one_is_read() {
    let files = real_files();
    assert!(files.len() >= 9);
    for (path, bytes) in files {
        let mut strict = Findings::new(Strictness::Strict);
        let (params, sizing) = Params::detect(&mut Cursor::new(&bytes), &mut strict).unwrap();
        assert_eq!(sizing, Sizing::V0_7);
        let mut out = Writer::new();
        params.write(&mut out);
        assert!(out.into_bytes() == bytes, "{} changes", path.display());
        for cut in 0..bytes.len() {
            let read = Params::detect(&mut Cursor::new(&bytes[..cut]), &mut strict);
            assert_eq!(
                read.unwrap_err().kind(),
                Kind::Truncated,
                "{} cut at {cut}",
                path.display()
            );
        }
    }
}

#[test]
fn every_byte_of_a_real_file_has_a_field() {
    for (path, bytes) in real_files() {
        let trace = Trace::new();
        let mut cursor = Cursor::traced(&bytes, &trace);
        Params::detect(&mut cursor, &mut Findings::default()).unwrap();
        let mut end = 0;
        for span in trace.into_spans() {
            assert_eq!(span.start, end, "{}: {}", path.display(), span.field);
            end = span.end;
        }
        assert_eq!(end, bytes.len() as u64, "{}", path.display());
    }
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
    // The last tensor is empty, so the file ends with its size.
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

#[test]
fn what_cannot_be_stored_is_rejected() {
    let float = Dtype::scalar(Dtype::FLOAT, 32);
    let rejected = |shape: &[i64], data: &[u8]| {
        let record = TensorRecord::new(float, shape, data, Sizing::V0_7);
        record.unwrap_err().rule().id()
    };
    assert_eq!(rejected(&[-1], &[]), "TEN-26");
    assert_eq!(rejected(&[i64::MAX, 2], &[]), "TEN-27");
    assert_eq!(rejected(&[2], &[0; 7]), "TEN-31");
    assert!(TensorRecord::new(float, &[i64::MAX, 0, i64::MAX], &[], Sizing::V0_7).is_ok());
}

#[test]
fn words_that_no_release_writes_come_back() {
    let float = Dtype::scalar(Dtype::FLOAT, 32);
    let record = TensorRecord::new(float, &[1], &[0; 4], Sizing::V0_7).unwrap();
    let record = record.with_reserved(7);
    let params = Params::new(vec![("a".into(), record)]).with_reserved(9);
    let mut out = Writer::new();
    params.write(&mut out);
    let bytes = out.into_bytes();
    let mut findings = Findings::default();
    let read = Params::read(&mut Cursor::new(&bytes), Sizing::V0_7, &mut findings).unwrap();
    assert_eq!(read.reserved(), 9);
    let record = read.get("a").unwrap();
    assert_eq!(record.reserved(), 7);
    let found = findings.as_slice().iter();
    let found: Vec<&str> = found.map(|finding| finding.rule.id()).collect();
    assert!(
        found.contains(&"TEN-22") && found.contains(&"TEN-42"),
        "{found:?}"
    );
}

#[test]
fn a_record_of_another_device_writes_and_is_rejected() {
    let float = Dtype::scalar(Dtype::FLOAT, 32);
    let record = TensorRecord::new(float, &[1], &[0; 4], Sizing::V0_7).unwrap();
    for kind in [Device::CPU_KIND, Device::CPU_KIND + 1] {
        let moved = record.clone().with_device(Device { kind, id: 0 });
        let mut out = Writer::new();
        moved.write(&mut out);
        let bytes = out.into_bytes();
        let mut findings = Findings::default();
        let read = TensorRecord::read(&mut Cursor::new(&bytes), Sizing::V0_7, &mut findings);
        let read = read.map_err(|broken| broken.rule().id());
        let on_cpu = kind == Device::CPU.kind;
        assert_eq!(read, if on_cpu { Ok(moved) } else { Err("TEN-23") });
    }
}

#[test]
fn some_element_types_are_of_no_release() {
    let rejected = |dtype: Dtype| dtype.check_element().err().map(|broken| broken.rule().id());
    assert_eq!(rejected(Dtype::scalar(Dtype::BFLOAT, 16)), None);
    assert_eq!(rejected(Dtype::scalar(Dtype::BFLOAT, 32)), Some("TEN-33"));
    assert_eq!(rejected(Dtype::scalar(Dtype::COMPLEX, 64)), None);
    assert_eq!(rejected(Dtype::scalar(Dtype::COMPLEX, 16)), Some("TEN-33"));
    // The width of a custom type is for its registry to say.
    assert_eq!(rejected(Dtype::scalar(Dtype::CUSTOM, 24)), None);
    assert_eq!(
        rejected(Dtype::scalar(Dtype::CUSTOM - 1, 24)),
        Some("TEN-33")
    );
    assert_eq!(rejected(Dtype::VOID), Some("TEN-28"));
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

/// Every code with widths that names fix, default or spell out, and lanes of both signs.
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
                assert_eq!(broken.rule(), tvmspec::tensor::TEN_02, "{text}");
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

/// TEN-35: what a record returns as elements is what a tensor of its type and shape takes, in each runtime that copies it.
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

/// TEN-27, TEN-35: with a dimension of 0 there are no bytes, whatever the others multiply to.
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
    let said = message(lanes, Sizing::V0_7, &[0; 12]);
    for part in [
        "TEN-35",
        "12 bytes",
        "[3]",
        "takes 48",
        "of 4 lanes",
        "TEN-34",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let said = message(Dtype::scalar(Dtype::UINT, 1), Sizing::V0_4, &[]);
    for part in ["TEN-35", "0 bytes", "takes 3", "below eight bits", "TEN-30"] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

/// TEN-42: what is made, and not read, has the word that releases write.
#[test]
fn parameters_that_are_made_have_a_reserved_word_of_0() {
    let params = Params::new(vec![]);
    assert_eq!(params.reserved(), 0);
    let mut out = Writer::new();
    params.write(&mut out);
    assert_eq!(out.into_bytes()[8..16], [0; 8]);
}

/// TEN-33: the message names the kind of number and the widths that it has.
#[test]
fn an_element_type_without_meaning_says_what_it_should_be() {
    for (code, bits, said) in [
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
        assert_eq!((broken.rule().id(), broken.message()), ("TEN-33", said));
    }
}

#[test]
fn the_first_negative_dimension_is_named() {
    let float = Dtype::scalar(Dtype::FLOAT, 32);
    let broken = TensorRecord::new(float, &[1, -2, -3], &[], Sizing::V0_7).unwrap_err();
    assert_eq!(broken.message(), "dimension -2 is negative");
}
