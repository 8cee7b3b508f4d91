//! The conformance suite and the command line, judged themselves.

mod adapters;
mod cli;
mod hostile_testees;
mod suite;
#[path = "../support/mod.rs"]
mod support;
mod testees;
