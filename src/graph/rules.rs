//! The rules of chapter `graph`. The documentation of each constant is the text of the rule in `spec/graph.md`.
//! The text of the chapter around the rules follows.
//!
#![doc = include_str!(concat!(env!("OUT_DIR"), "/rules/graph.md"))]

crate::rule::rules! {
    GRF_01 GRF_02 GRF_03 GRF_04 GRF_05 GRF_06 GRF_07 GRF_08 GRF_09 GRF_10 GRF_11 GRF_12 GRF_13
    GRF_14 GRF_15 GRF_16 GRF_17 GRF_18 GRF_20 GRF_21 GRF_22 GRF_23 GRF_24 GRF_30 GRF_31 GRF_32
    GRF_33 GRF_34 GRF_35 GRF_36 GRF_37 GRF_38 GRF_39 GRF_40 GRF_41 GRF_42 GRF_43 GRF_44 GRF_45
    GRF_46 GRF_47 GRF_48 GRF_49 GRF_50 GRF_51 GRF_52 GRF_53
}
