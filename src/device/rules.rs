//! The rules of chapter `device`. The documentation of each constant is the text of the rule in `spec/device.md`.
//! The text of the chapter around the rules follows.
//!
#![doc = include_str!(concat!(env!("OUT_DIR"), "/rules/device.md"))]

crate::rule::rules! {
    DEV_01 DEV_02 DEV_03 DEV_04 DEV_05 DEV_06 DEV_07 DEV_08 DEV_09 DEV_10 DEV_11 DEV_12 DEV_13
    DEV_14 DEV_15 DEV_16 DEV_17 DEV_18 DEV_19 DEV_20 DEV_21 DEV_22 DEV_23 DEV_24 DEV_25 DEV_26
    DEV_27 DEV_28 DEV_29 DEV_30 DEV_31 DEV_32 DEV_33 DEV_34 DEV_35 DEV_36 DEV_37 DEV_38 DEV_39
    DEV_40 DEV_41 DEV_42 DEV_43 DEV_44 DEV_45 DEV_46 DEV_47 DEV_48 DEV_49 DEV_50 DEV_51 DEV_52
    DEV_53 DEV_54 DEV_55 DEV_56 DEV_57 DEV_58 DEV_59 DEV_60
}
