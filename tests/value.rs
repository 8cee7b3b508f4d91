//! Values from outside: conversions, texts, type indices.
#![cfg(feature = "runtime")]

use proptest::prelude::*;
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
