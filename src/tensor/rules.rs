//! The rules of chapter `tensor`. The documentation of each constant is the text of the rule in `spec/tensor.md`.
//! The text of the chapter around the rules follows.
//!
#![doc = include_str!(concat!(env!("OUT_DIR"), "/rules/tensor.md"))]

crate::rule::rules! {
    TEN_01 TEN_02 TEN_03 TEN_04 TEN_05 TEN_06 TEN_07 TEN_08 TEN_09 TEN_10 TEN_20 TEN_21 TEN_22
    TEN_23 TEN_24 TEN_25 TEN_26 TEN_27 TEN_28 TEN_29 TEN_30 TEN_31 TEN_32 TEN_33 TEN_34 TEN_35
    TEN_40 TEN_41 TEN_42 TEN_43 TEN_44 TEN_45 TEN_50 TEN_51 TEN_52 TEN_53 TEN_54 TEN_55 TEN_56 TEN_57
    TEN_58 TEN_59 TEN_60 TEN_61
}
