//! Reads stored tensors from any bytes. Nothing panics, and an accepted file is written back. A strict prefix of a file is rejected, and
//! texts of types read back.
#![no_main]

#[path = "naive/mod.rs"]
mod naive;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use std::borrow::Cow;
use tvmspec::release::Release;
use tvmspec::rule::Findings;
use tvmspec::tensor::{Dtype, Packing, Params, Sizing, TensorRecord};
use tvmspec::wire::{Cursor, Writer};

#[derive(Arbitrary, Debug)]
enum Input<'a> {
    File(&'a [u8]),
    Record(u8, &'a [u8]),
    Tensors(u8, Vec<(&'a str, u8, u8, u8, Vec<u8>)>),
    Text(u8, &'a str),
    Dtype(u8, u8, u8, u16),
}

fuzz_target!(|input: Input<'_>| {
    match input {
        Input::File(bytes) => file(bytes),
        Input::Record(sizing, bytes) => record(family(sizing), bytes),
        Input::Tensors(sizing, tensors) => build(family(sizing), &tensors),
        Input::Text(minor, text) => {
            let release = release(minor);
            if let Ok(dtype) = Dtype::parse(text, release) {
                let _ = dtype.text(release).expect("a release can write every record that it reads");
            }
        }
        Input::Dtype(minor, code, bits, lanes) => {
            let dtype = Dtype { code, bits, lanes };
            let _ = dtype.text(release(minor));
            if let Some(text) = dtype.exact_text() {
                assert!(Dtype::parse(&text, Release::LAST).ok() == Some(dtype));
            }
        }
    }
});

fn family(choice: u8) -> Sizing {
    Sizing::ALL[usize::from(choice) % Sizing::ALL.len()]
}

fn release(choice: u8) -> Release {
    Release::of(2 + choice % 26)
}

fn file(bytes: &[u8]) {
    let mut cursor = Cursor::new(bytes);
    let mut findings = Findings::default();
    let Ok((params, sizing)) = Params::detect(&mut cursor, &mut findings) else {
        assert_eq!(naive::tensor::detected(bytes), None, "what keeps every rule is read");
        return;
    };
    let length = bytes.len() - cursor.remaining();
    assert_eq!(naive::tensor::detected(bytes), Some(sizing), "the newest family whose sizes agree");
    let mut odd = naive::Odd::new();
    let names = naive::tensor::params(&mut naive::In(bytes), sizing, &mut odd).expect("the second reading accepts it too");
    assert_eq!(naive::findings(&findings, &["TEN"]), odd);
    assert!(params.iter().map(|(name, _)| name).eq(names));
    let mut out = Writer::new();
    params.write(&mut out);
    assert!(out.into_bytes() == bytes[..length], "write(read(b)) = b");
    for cut in 0..length.min(256) {
        let cut = Params::read(&mut Cursor::new(&bytes[..cut]), sizing, &mut findings);
        assert!(cut.is_err(), "a strict prefix is truncated");
    }
}

fn record(sizing: Sizing, bytes: &[u8]) {
    let mut cursor = Cursor::new(bytes);
    let mut findings = Findings::default();
    let read = TensorRecord::read(&mut cursor, sizing, &mut findings);
    // TEN-26 and TEN-27 both reject a negative dimension. TEN-26 is reported first.
    if read.as_ref().is_err_and(|broken| broken.rule().id() == "TEN-27") {
        let dimensions = naive::tensor::dimensions(&mut naive::In(bytes)).expect("a record that has all dimensions");
        assert!(dimensions.iter().all(|extent| *extent >= 0), "{dimensions:?} is too large");
    }
    if let Ok(record) = read {
        let mut odd = naive::Odd::new();
        let (shape, stored) =
            naive::tensor::record(&mut naive::In(bytes), sizing, &mut odd).expect("the second reading accepts it too");
        assert_eq!(naive::findings(&findings, &["TEN"]), odd);
        assert_eq!((record.shape(), record.data().len() as u64), (shape.as_slice(), stored));
        for packing in [Packing::Each, Packing::Packed] {
            let needed = packing.bytes(record.dtype(), record.shape());
            match record.elements(packing) {
                // TEN-35: a record with too little data gives no elements.
                Ok(elements) => {
                    assert_eq!(Some(elements.bytes().len() as u64), needed);
                    assert!(record.data().starts_with(elements.bytes()), "elements are the bytes that are stored");
                }
                Err(_) => assert!(needed.is_none_or(|needed| needed > stored)),
            }
        }
        let mut out = Writer::new();
        record.write(&mut out);
        assert!(out.into_bytes() == bytes[..bytes.len() - cursor.remaining()], "write(read(b)) = b");
    } else {
        let second = naive::tensor::record(&mut naive::In(bytes), sizing, &mut naive::Odd::new());
        assert_eq!(second, None, "what keeps every rule is read");
    }
}

fn build(sizing: Sizing, tensors: &[(&str, u8, u8, u8, Vec<u8>)]) {
    let data = vec![7; 1 << 16];
    let named = tensors.iter().filter_map(|(name, code, bits, lanes, shape)| {
        let dtype = Dtype { code: *code, bits: *bits, lanes: u16::from(*lanes) };
        let shape: Vec<i64> = shape.iter().take(4).map(|dim| i64::from(dim % 8)).collect();
        let size = usize::try_from(sizing.data_bytes(dtype, &shape)?).ok()?;
        let record = TensorRecord::new(dtype, &shape, data.get(..size)?, sizing).ok()?;
        Some((Cow::Borrowed(*name), record))
    });
    let params = Params::new(named.collect());
    let mut out = Writer::new();
    params.write(&mut out);
    let bytes = out.into_bytes();
    let back = Params::read(&mut Cursor::new(&bytes), sizing, &mut Findings::default());
    assert!(back.ok() == Some(params), "read(write(x)) = x");
    file(&bytes);
}
