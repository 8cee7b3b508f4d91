//! Graph and VM models, compared with the runs of the release that wrote them.

mod commands;
mod element_types;
mod graph;
mod graph_files;
mod graph_models;
mod inputs;
mod packages;
mod profiles;
mod runtime_misuse;
#[path = "../support/mod.rs"]
mod support;
mod tensor_layouts;
mod vm;
mod vm_files;
