//! The rules of chapter `value`, whose texts are in `spec/value.md`.

crate::rule::rules! {
    VAL_01 VAL_02 VAL_03 VAL_04 VAL_05 VAL_06 VAL_07 VAL_08 VAL_09 VAL_10 VAL_11 VAL_12 VAL_13
    VAL_14 VAL_15 VAL_16 VAL_17 VAL_18 VAL_19 VAL_20 VAL_21 VAL_22
}
