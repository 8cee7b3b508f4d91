//! Values from outside: conversions, texts, type indices.
#![cfg(feature = "runtime")]

mod skip;

use proptest::prelude::*;
use skip::skipped;
use tvmspec::value::{
    Any, AnyView, Bytes, DLDataType, Str, dtype_from_text, dtype_to_text, str_bytes, types,
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
        let dtype = DLDataType { code, bits, lanes };
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

#[test]
fn a_refusal_names_both_types() {
    let text = Any::from("abc");
    let said = f64::try_from(&text).unwrap_err().to_string();
    assert_eq!(
        said,
        "VAL-07: Cannot convert from type `ffi.SmallStr` to `float`"
    );
    assert!(AnyView::none().is_none());
}

#[test]
fn hashes_of_type_keys_are_those_of_libstdcxx() {
    // From the inventory of tvm-ffi 0.1.15.post2.
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

fn layouts() -> Vec<serde_json::Value> {
    let text = include_str!("../golden/value/struct-layouts.json");
    let table: serde_json::Value = serde_json::from_str(text).unwrap();
    table["layouts"].as_array().unwrap().clone()
}

/// `golden/value/probe.c` as a C compiler sees our header, and the wheel's where one is installed.
#[test]
#[cfg_attr(miri, ignore = "compiles and runs C")]
fn the_probe_prints_the_table() {
    use std::path::{Path, PathBuf};
    use std::process::Command;
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

    let Some(python) = std::env::var_os("TVMSPEC_PYTHON") else {
        println!(
            "skipped for the wheel, because TVMSPEC_PYTHON names no Python with apache-tvm-ffi"
        );
        return;
    };
    let script =
        "import tvm_ffi, pathlib; print(pathlib.Path(tvm_ffi.__file__).parent / 'include')";
    let said = Command::new(python).args(["-c", script]).output().unwrap();
    let include = PathBuf::from(String::from_utf8(said.stdout).unwrap().trim());
    if !include.is_dir() {
        println!("skipped for the wheel, because its headers are not installed");
        return;
    }
    assert_eq!(
        probed(&["-w", "-DWHEEL"], &include).unwrap(),
        newest["structs"]
    );
}
