//! The rooms of the project agree: rules, cases, evidence, tables.

mod evidence;
mod operations;
mod readme;
mod rooms;
#[path = "../support/mod.rs"]
mod support;
mod unsafe_surface;
