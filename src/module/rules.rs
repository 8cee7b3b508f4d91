//! The rules of chapter `module`. The documentation of each constant is the text of the rule in `spec/module.md`.
//! The text of the chapter around the rules follows.
//!
#![doc = include_str!(concat!(env!("OUT_DIR"), "/rules/module.md"))]

crate::rule::rules! {
    MOD_01 MOD_02 MOD_03 MOD_04 MOD_05 MOD_06 MOD_07 MOD_08 MOD_09 MOD_10 MOD_11 MOD_12 MOD_13
    MOD_14 MOD_15 MOD_16 MOD_17 MOD_18 MOD_19 MOD_20 MOD_21 MOD_22 MOD_23 MOD_24 MOD_25 MOD_26
    MOD_27 MOD_28 MOD_29 MOD_30 MOD_31 MOD_32 MOD_33
}
