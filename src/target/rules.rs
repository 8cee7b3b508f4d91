//! The rules of chapter `target`. The documentation of each constant is the text of the rule in `spec/target.md`.
//! The text of the chapter around the rules follows.
//!
#![doc = include_str!(concat!(env!("OUT_DIR"), "/rules/target.md"))]

crate::rule::rules! {
    TGT_01 TGT_02 TGT_03 TGT_04 TGT_05 TGT_06 TGT_07 TGT_08 TGT_09 TGT_10 TGT_11 TGT_12 TGT_13 TGT_14 TGT_15 TGT_20 TGT_21 TGT_22 TGT_23
    TGT_24 TGT_25 TGT_26 TGT_27 TGT_28 TGT_29 TGT_30 TGT_40 TGT_41 TGT_42 TGT_43 TGT_44 TGT_45 TGT_50
    TGT_51 TGT_52 TGT_53 TGT_54 TGT_55 TGT_56 TGT_57 TGT_58 TGT_59 TGT_60 TGT_61 TGT_62 TGT_63 TGT_64 TGT_70 TGT_71 TGT_72 TGT_73
    TGT_74 TGT_80 TGT_81 TGT_82 TGT_83 TGT_84 TGT_85 TGT_86 TGT_87 TGT_88 TGT_89 TGT_90 TGT_91 TGT_92 TGT_93
}
