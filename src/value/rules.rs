//! The rules of chapter `value`. The documentation of each constant is the text of the rule in `spec/value.md`.
//! The text of the chapter around the rules follows.
//!
#![doc = include_str!(concat!(env!("OUT_DIR"), "/rules/value.md"))]

crate::rule::rules! {
    VAL_01 VAL_02 VAL_03 VAL_04 VAL_05 VAL_06 VAL_07 VAL_08 VAL_09 VAL_10 VAL_11 VAL_12 VAL_13
    VAL_14 VAL_15 VAL_16 VAL_17 VAL_18 VAL_19 VAL_20 VAL_21 VAL_22 VAL_23 VAL_24 VAL_25 VAL_26
    VAL_27 VAL_28 VAL_29 VAL_30 VAL_31 VAL_32 VAL_33 VAL_34 VAL_35 VAL_36 VAL_37 VAL_38 VAL_39
    VAL_40
}
