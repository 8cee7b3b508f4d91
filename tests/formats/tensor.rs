//! Stored tensors: round trips, element types as in the real 0.27, truncated files, zero copy.

mod elements;
mod parameters;

use proptest::prelude::*;
use std::path::PathBuf;
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
    // `last-cut-0.8.params` is a truncated download.
    let params = paths.filter(|path| {
        path.extension().is_some_and(|end| end == "params")
            && !path.ends_with("last-cut-0.8.params")
    });
    params
        .map(|path| (path.clone(), std::fs::read(path).unwrap()))
        .collect()
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
