//! Tests that the parts of the project agree: rules, cases, evidence, tables.

mod evidence;
mod exports;
mod interfaces;
mod operations;
mod readme;
mod readme_picture;
mod rooms;
mod spec;
#[path = "../support/mod.rs"]
mod support;
mod unsafe_surface;
