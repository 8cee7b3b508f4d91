//! The rules of chapter `wire`. The documentation of each constant is the text of the rule in `spec/wire.md`.
//! The text of the chapter around the rules follows.
//!
#![doc = include_str!(concat!(env!("OUT_DIR"), "/rules/wire.md"))]

crate::rule::rules! {
    WIRE_01 WIRE_02 WIRE_03 WIRE_04 WIRE_05 WIRE_06 WIRE_07 WIRE_08
}
