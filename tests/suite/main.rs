//! Tests of the conformance suite and of the command line.

mod adapters;
mod case_files;
mod ci_page;
mod cli;
mod explain_runtime;
mod hostile_testees;
mod html_reports;
mod memory_checks;
mod mutants;
mod reporting;
mod rule_off;
mod serialized;
mod specified_values;
mod suite;
#[path = "../support/mod.rs"]
mod support;
mod targets;
mod testee_names;
mod testees;
mod verdicts;
