//! The rules of chapter `blob`. The documentation of each constant is the text of the rule in `spec/blob.md`.
//! The text of the chapter around the rules follows.
//!
#![doc = include_str!(concat!(env!("OUT_DIR"), "/rules/blob.md"))]

crate::rule::rules! {
    BLOB_01 BLOB_02 BLOB_03 BLOB_04 BLOB_05 BLOB_06 BLOB_07 BLOB_08 BLOB_09 BLOB_10 BLOB_11 BLOB_12
    BLOB_13 BLOB_14 BLOB_15 BLOB_16 BLOB_17 BLOB_18 BLOB_50 BLOB_51 BLOB_52 BLOB_53 BLOB_54 BLOB_55
    BLOB_56 BLOB_57 BLOB_58 BLOB_59 BLOB_60 BLOB_61 BLOB_62 BLOB_63 BLOB_64 BLOB_65 BLOB_66 BLOB_67
    BLOB_68 BLOB_69 BLOB_70 BLOB_71 BLOB_72 BLOB_73 BLOB_74 BLOB_75 BLOB_76
}
