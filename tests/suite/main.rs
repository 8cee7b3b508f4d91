//! Tests of the conformance suite and of the command line.

mod adapters;
mod addresses;
mod case_files;
mod ci_page;
mod cli;
mod held_runtime;
mod hostile_testees;
mod in_turn;
mod mutants;
mod reporting;
mod rule_off;
mod stated;
mod suite;
#[path = "../support/mod.rs"]
mod support;
mod targets;
mod testees;
mod verdicts;
mod watched;
