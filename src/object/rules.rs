//! The rules of chapter `object`. The documentation of each constant is the text of the rule in `spec/object.md`.
//! The text of the chapter around the rules follows.
//!
#![doc = include_str!(concat!(env!("OUT_DIR"), "/rules/object.md"))]

crate::rule::rules! {
    OBJ_01 OBJ_02 OBJ_38 OBJ_03 OBJ_04 OBJ_05 OBJ_06 OBJ_07 OBJ_08 OBJ_09 OBJ_10 OBJ_11 OBJ_12
    OBJ_13 OBJ_14 OBJ_15 OBJ_16 OBJ_17 OBJ_18 OBJ_19 OBJ_20 OBJ_21 OBJ_22 OBJ_23 OBJ_24 OBJ_25
    OBJ_26 OBJ_27 OBJ_28 OBJ_29 OBJ_30 OBJ_31 OBJ_32 OBJ_33 OBJ_34 OBJ_35 OBJ_36 OBJ_37 OBJ_39
    OBJ_40 OBJ_41 OBJ_42 OBJ_43 OBJ_44 OBJ_45 OBJ_46 OBJ_47 OBJ_48 OBJ_49 OBJ_50 OBJ_51 OBJ_52
    OBJ_53 OBJ_54 OBJ_55 OBJ_56 OBJ_57 OBJ_58 OBJ_59 OBJ_60
}
