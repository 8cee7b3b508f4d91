//! Values through the public interface: conversions, texts, type indices.
#![cfg(feature = "runtime")]

use crate::support::skip::skipped;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use tvmspec::function::{Error, Function};
use tvmspec::module::Module;
use tvmspec::object::{Array, Dict, List, Map, Shape, Tensor};
use tvmspec::rule::Violation;
use tvmspec::tensor::Dtype;
use tvmspec::value::legacy::code;
use tvmspec::value::types::flag;
use tvmspec::value::{
    Any, AnyView, Argument, Bytes, ObjectRef, Str, cast, dtype_from_text, dtype_to_text, index,
    str_bytes, types,
};

proptest! {
    #[test]
    fn strings_of_any_length_keep_their_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
        let value = Any::from(Str::new(&bytes));
        let view = value.view();
        prop_assert_eq!(str_bytes(&view), Some(&bytes[..]));
        let bytes_value = Bytes::new(&bytes);
        prop_assert_eq!(bytes_value.as_bytes(), &bytes[..]);
    }

    #[test]
    fn printed_data_types_read_as_themselves(code in 0u8..18, bits in 1u8.., lanes in 1u16..) {
        let dtype = Dtype { code, bits, lanes };
        // Small floats with scalable lanes are printed, but the text is not read back (VAL-17).
        prop_assume!(code < 7 || lanes < 0x8000);
        if let Ok(text) = dtype_to_text(dtype) {
            let again = dtype_from_text(&text).unwrap();
            prop_assert_eq!(dtype_to_text(again).unwrap(), text);
        }
    }

    #[test]
    fn integers_pass_through_a_cell(value: i64) {
        let any = Any::from(value);
        prop_assert_eq!(i64::try_from(&any).unwrap(), value);
        prop_assert_eq!(f64::try_from(&any).unwrap(), value as f64);
        prop_assert!(String::try_from(&any).is_err());
    }
}

/// Converts `value` with `cast`, and with `TryFrom` of each form of a value. Checks that all agree.
fn converted<T>(value: Any) -> Result<T, String>
where
    T: Argument + TryFrom<Any, Error = Violation>,
    T: for<'a> TryFrom<&'a Any, Error = Violation>
        + for<'a> TryFrom<AnyView<'a>, Error = Violation>,
{
    let by_cast = cast::<T>(value.view()).map_err(|broken| broken.to_string());
    let others = [
        T::try_from(&value).map(drop),
        T::try_from(value.view()).map(drop),
        T::try_from(value).map(drop),
    ];
    for other in others {
        let other = other.map_err(|broken| broken.to_string());
        assert_eq!(other.err(), by_cast.as_ref().err().cloned());
    }
    by_cast
}

#[test]
fn values_convert_with_try_from_as_with_cast() {
    let some = |text: &str| Any::from(text);
    assert_eq!(converted::<i64>(Any::from(true)), Ok(1));
    assert_eq!(converted::<u8>(Any::from(7_i64)), Ok(7));
    assert_eq!(converted::<f64>(Any::from(7_i64)), Ok(7.0));
    assert_eq!(converted::<bool>(Any::from(7_i64)), Ok(true));
    assert_eq!(
        converted::<String>(some("a text that is no small one")).as_deref(),
        Ok("a text that is no small one")
    );
    assert_eq!(
        converted::<Vec<u8>>(Any::from(Bytes::new(b"\0\xff"))),
        Ok(vec![0, 255])
    );
    assert_eq!(
        converted::<Dtype>(some("float32")).map(|dtype| dtype.to_string()),
        Ok("float32".into())
    );
    assert_eq!(
        converted::<Str>(some("abc")).map(|text| text.to_text().into_owned()),
        Ok("abc".into())
    );
    let wide = Any::from(300_i64);
    assert_eq!(u16::try_from(&wide), Ok(300));
    let error = u8::try_from(&wide).unwrap_err();
    assert_eq!(
        (error.rule().id(), error.message()),
        ("VAL-07", "300 does not fit into `u8`")
    );
    assert!(usize::try_from(Any::from(-1_i64)).is_err());
    let tensor = Tensor::from_slice(&[1.5_f32], &[1]).unwrap();
    let back = converted::<Tensor>(tensor.into()).unwrap();
    assert_eq!(back.to_vec::<f32>().unwrap(), [1.5]);
    let function = Function::from_typed(|number: i64| number + 1);
    let function = converted::<Function>(function.into()).unwrap();
    let next = i64::try_from(function.call((41_i64,)).unwrap());
    assert_eq!(next, Ok(42));
    let list: List = [Any::from(1_i64), Any::from(2_i64)].into_iter().collect();
    // The other sequence type converts by copying.
    assert_eq!(
        converted::<Array>(list.clone().into()).map(|array| array.len()),
        Ok(2)
    );
    assert_eq!(
        converted::<Shape>(list.into()).map(|shape| shape.as_slice().to_vec()),
        Ok(vec![1, 2])
    );
    for rejected in [
        converted::<i64>(some("1")).err(),
        converted::<f64>(some("1")).err(),
        converted::<String>(Any::from(1_i64)).err(),
        converted::<Vec<u8>>(some("1")).err(),
        converted::<Function>(some("1")).err(),
        converted::<Tensor>(some("1")).err(),
        converted::<Module>(some("1")).err(),
        converted::<Array>(some("1")).err(),
        converted::<List>(some("1")).err(),
        converted::<Map>(some("1")).err(),
        converted::<Dict>(some("1")).err(),
        converted::<Shape>(some("1")).err(),
        converted::<Error>(some("1")).err(),
        converted::<ObjectRef>(some("1")).err(),
    ] {
        let rejected = rejected.expect("it does not convert");
        assert!(
            rejected.contains("Cannot convert from type `"),
            "{rejected}"
        );
    }
}

#[test]
fn data_type_round_trips_through_display() {
    for text in [
        "int8",
        "uint1",
        "float32x4",
        "handle",
        "bfloat16",
        "bool",
        "boolx8",
        "float8_e3m4",
        "float8_e4m3",
        "float8_e4m3b11fnuz",
        "float8_e4m3fn",
        "float8_e4m3fnuz",
        "float8_e5m2",
        "float8_e5m2fnuz",
        "float8_e8m0fnu",
        "float6_e2m3fn",
        "float6_e3m2fn",
        "float4_e2m1fnx2",
        "float16xvscalex4",
        "void",
    ] {
        let dtype = dtype_from_text(text).unwrap();
        assert_eq!(dtype.to_string(), text);
        assert_eq!(dtype_from_text(text), Ok(dtype));
    }
    let rule = |text: &str| dtype_from_text(text).unwrap_err().rule().id();
    assert_eq!(
        [rule("float99x"), rule("custom[nobody]8")],
        ["VAL-17", "VAL-21"]
    );
}

#[test]
fn a_rejection_names_both_types() {
    let text = Any::from("abc");
    let reply = f64::try_from(&text).unwrap_err().to_string();
    assert_eq!(
        reply,
        "Cannot convert from type `ffi.SmallStr` to `float` [VAL-07]"
    );
    assert!(AnyView::none().is_none());
}

#[test]
fn hashes_of_type_keys_are_those_of_libstdcxx() {
    // The hashes come from the inventory of tvm-ffi 0.1.15.post2.
    for (key, hash) in [
        ("None", 18_116_513_903_021_958_570),
        ("int", 12_597_418_120_160_561_823),
        ("bool", 16_561_637_548_936_908_746),
        ("ffi.Module", 18_259_748_940_616_926_208),
        ("ffi.reflection.AccessStep", 1_767_190_020_059_207_830),
    ] {
        assert_eq!(types::key_hash(key.as_bytes()), hash, "{key}");
    }
}

/// Type indices with their names in C.
const INDICES: [(&str, i32); 31] = [
    ("kTVMFFINone", index::NONE),
    ("kTVMFFIInt", index::INT),
    ("kTVMFFIBool", index::BOOL),
    ("kTVMFFIFloat", index::FLOAT),
    ("kTVMFFIOpaquePtr", index::OPAQUE),
    ("kTVMFFIDataType", index::DATA_TYPE),
    ("kTVMFFIDevice", index::DEVICE),
    ("kTVMFFIDLTensorPtr", index::DLTENSOR_PTR),
    ("kTVMFFIRawStr", index::RAW_STR),
    ("kTVMFFIByteArrayPtr", index::BYTE_ARRAY),
    ("kTVMFFIObjectRValueRef", index::RVALUE_REF),
    ("kTVMFFISmallStr", index::SMALL_STR),
    ("kTVMFFISmallBytes", index::SMALL_BYTES),
    ("kTVMFFIUnchanged", index::UNCHANGED),
    ("kTVMFFIObject", index::OBJECT),
    ("kTVMFFIStr", index::STR),
    ("kTVMFFIBytes", index::BYTES),
    ("kTVMFFIError", index::ERROR),
    ("kTVMFFIFunction", index::FUNCTION),
    ("kTVMFFIShape", index::SHAPE),
    ("kTVMFFITensor", index::TENSOR),
    ("kTVMFFIArray", index::ARRAY),
    ("kTVMFFIMap", index::MAP),
    ("kTVMFFIModule", index::MODULE),
    ("kTVMFFIOpaquePyObject", index::OPAQUE_PY),
    ("kTVMFFIList", index::LIST),
    ("kTVMFFIDict", index::DICT),
    ("kTVMFFIVisitInterrupt", index::VISIT_INTERRUPT),
    ("kTVMFFIBigInt", index::BIG_INT),
    ("kTVMFFIDynObjectBegin", index::DYNAMIC_BEGIN),
    ("kTVMFFIAny", index::ANY),
];

/// Flags of fields and methods with their names in C.
const FLAGS: [(&str, i64); 13] = [
    ("kTVMFFIFieldFlagBitMaskWritable", flag::WRITABLE),
    ("kTVMFFIFieldFlagBitMaskHasDefault", flag::HAS_DEFAULT),
    ("kTVMFFIFieldFlagBitMaskIsStaticMethod", flag::STATIC_METHOD),
    ("kTVMFFIFieldFlagBitMaskSEqHashIgnore", flag::EQ_HASH_IGNORE),
    (
        "kTVMFFIFieldFlagBitMaskSEqHashDefPattern",
        flag::DEF_PATTERN,
    ),
    (
        "kTVMFFIFieldFlagBitMaskDefaultFromFactory",
        flag::DEFAULT_IS_FACTORY,
    ),
    ("kTVMFFIFieldFlagBitMaskReprOff", flag::REPR_OFF),
    ("kTVMFFIFieldFlagBitMaskCompareOff", flag::COMPARE_OFF),
    ("kTVMFFIFieldFlagBitMaskHashOff", flag::HASH_OFF),
    ("kTVMFFIFieldFlagBitMaskInitOff", flag::INIT_OFF),
    ("kTVMFFIFieldFlagBitMaskKwOnly", flag::KEYWORD_ONLY),
    ("kTVMFFIFieldFlagBitMaskSEqHashDefSimple", flag::DEF_SIMPLE),
    (
        "kTVMFFIFieldFlagBitSetterIsFunctionObj",
        flag::SETTER_IS_FUNCTION,
    ),
];

/// Type codes up to 0.20 with their names in C.
const CODES: [(&str, i32); 15] = [
    ("kTVMArgInt", code::INT),
    ("kTVMArgFloat", code::FLOAT),
    ("kTVMOpaqueHandle", code::HANDLE),
    ("kTVMNullptr", code::NULL),
    ("kTVMDataType", code::DATA_TYPE),
    ("kDLDevice", code::DEVICE),
    ("kTVMDLTensorHandle", code::DLTENSOR),
    ("kTVMObjectHandle", code::OBJECT),
    ("kTVMModuleHandle", code::MODULE),
    ("kTVMPackedFuncHandle", code::FUNCTION),
    ("kTVMStr", code::STR),
    ("kTVMBytes", code::BYTES),
    ("kTVMNDArrayHandle", code::NDARRAY),
    ("kTVMObjectRValueRefArg", code::RVALUE),
    ("kTVMArgBool", code::BOOL),
];

/// Returns the enumerators of a header whose names begin with `k`, with their numbers.
fn enumerators(header: &str) -> BTreeMap<&str, i64> {
    let named = header
        .split(['{', ',', '\n'])
        .filter_map(|part| part.split_once('='));
    let numbers = named.filter_map(|(name, number)| {
        let number = number.split(['}', '/']).next()?.trim();
        let number = match number.split_once(" << ") {
            Some((one, by)) => one.parse::<i64>().ok()? << by.parse::<u32>().ok()?,
            None => number.parse().ok()?,
        };
        let name = name.trim();
        name.starts_with('k').then_some((name, number))
    });
    numbers.collect()
}

/// Compares indices, flags and codes with all enumerators of the headers, and with the common ones of the wheel if one is installed.
#[test]
#[cfg_attr(miri, ignore = "asks Python where the wheel is")]
fn numbers_are_those_of_the_headers() {
    let wide = |(name, number): (&'static str, i32)| (name, i64::from(number));
    let current: BTreeMap<&str, i64> = INDICES.map(wide).into_iter().chain(FLAGS).collect();
    assert_eq!(
        enumerators(include_str!("../../include/tvm_ffi_c_api.h")),
        current
    );
    let legacy = BTreeMap::from(CODES.map(wide));
    assert_eq!(
        enumerators(include_str!("../../include/tvm_c_runtime_api.h")),
        legacy
    );

    let Some(include) = wheel() else {
        return;
    };
    let header = std::fs::read_to_string(include.join("tvm/ffi/c_api.h")).unwrap();
    let wheel = enumerators(&header);
    let common = current
        .iter()
        .filter(|(name, _)| wheel.contains_key(**name));
    let mut count = 0;
    for (name, number) in common {
        assert_eq!(wheel[name], *number, "{name}");
        count += 1;
    }
    assert!(count > 35, "{count} numbers in common");
}

/// Returns the headers of the tvm-ffi wheel, if one is installed.
fn wheel() -> Option<PathBuf> {
    let Some(python) = std::env::var_os("TVMSPEC_PYTHON") else {
        println!(
            "skipped for the wheel, because TVMSPEC_PYTHON names no Python with apache-tvm-ffi"
        );
        return None;
    };
    let script =
        "import tvm_ffi, pathlib; print(pathlib.Path(tvm_ffi.__file__).parent / 'include')";
    let reply = Command::new(python).args(["-c", script]).output().unwrap();
    let include = PathBuf::from(String::from_utf8(reply.stdout).unwrap().trim());
    if !include.is_dir() {
        println!("skipped for the wheel, because its headers are not installed");
        return None;
    }
    Some(include)
}

fn layouts() -> Vec<serde_json::Value> {
    let text = include_str!("../../golden/value/struct-layouts.json");
    let table: serde_json::Value = serde_json::from_str(text).unwrap();
    table["layouts"].as_array().unwrap().clone()
}

/// Compiles `golden/value/probe.c` with the header of this project, and with the header of the wheel if one is installed.
#[test]
#[cfg_attr(miri, ignore = "compiles and runs C")]
fn the_probe_prints_the_table() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().unwrap();
    let newest = layouts().pop().unwrap();
    let probed = |flags: &[&str], include: &Path| -> Option<serde_json::Value> {
        let program = folder.path().join("probe");
        let status = Command::new("cc")
            .args(flags)
            .arg("-I")
            .arg(include)
            .arg("-o")
            .arg(&program)
            .arg(root.join("golden/value/probe.c"))
            .status()
            .ok()?;
        assert!(status.success(), "{}", include.display());
        let printed = Command::new(&program).output().unwrap().stdout;
        Some(serde_json::from_slice(&printed).unwrap())
    };
    let Some(ours) = probed(&[], &root.join("include")) else {
        skipped("there is no C compiler (cc)");
        return;
    };
    assert_eq!(ours, newest["structs"]);

    let Some(include) = wheel() else {
        return;
    };
    assert_eq!(
        probed(&["-w", "-DWHEEL"], &include).unwrap(),
        newest["structs"]
    );
}

#[test]
fn a_float_that_becomes_infinite_does_not_fit() {
    let float = |value: f64| f32::try_from(Any::from(value));
    assert_eq!(float(0.1), Ok(0.1_f32));
    assert_eq!(float(f64::from(f32::MAX)), Ok(f32::MAX));
    assert_eq!(float(f64::NEG_INFINITY), Ok(f32::NEG_INFINITY));
    assert!(float(f64::NAN).is_ok_and(f32::is_nan));
    // A number that is nearer to zero than any `f32` is rounded.
    assert_eq!(float(1e-300), Ok(0.0));
    for far in [1e300, -1e300] {
        let broken = float(far).map_err(|broken| (broken.rule().id(), broken.kind().name()));
        assert_eq!(broken, Err(("VAL-07", "limit")));
    }
    assert!(f32::try_from(Any::from("1")).is_err());
}
