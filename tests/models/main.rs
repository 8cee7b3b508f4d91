//! Graph and VM models, compared with the runs of the release that wrote them.

mod commands;
mod element_types;
mod graph;
mod graph_files;
mod graph_models;
mod inputs;
mod packages;
mod placed_tensors;
mod profiles;
mod sound_runtime;
#[path = "../support/mod.rs"]
mod support;
mod vm;
mod vm_files;
