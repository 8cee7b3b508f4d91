//! The rules of chapter `function`. The documentation of each constant is the text of the rule in `spec/function.md`.
//! The text of the chapter around the rules follows.
//!
#![doc = include_str!(concat!(env!("OUT_DIR"), "/rules/function.md"))]

crate::rule::rules! {
    FUN_01 FUN_02 FUN_03 FUN_04 FUN_05 FUN_06 FUN_07 FUN_08 FUN_09 FUN_10 FUN_11 FUN_12 FUN_13
    FUN_14 FUN_15 FUN_16 FUN_17 FUN_18 FUN_19 FUN_20 FUN_21 FUN_22 FUN_23 FUN_24 FUN_25 FUN_26
    FUN_27 FUN_28 FUN_29 FUN_30 FUN_31 FUN_32 FUN_33 FUN_34 FUN_35 FUN_36 FUN_37 FUN_38 FUN_39
    FUN_40
}
