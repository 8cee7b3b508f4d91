//! Tests of the formats, and of the examination of files.

mod blob;
mod bounds;
mod cli_and_c_interface;
mod code_needs;
mod containers;
mod dumps;
mod editing;
mod examine_c;
mod explain;
mod foreign_kinds;
mod grammar;
mod hostile;
mod import_tree;
mod inspect;
mod outputs;
mod payload;
mod release;
mod repack;
mod rpc;
#[path = "../support/mod.rs"]
mod support;
mod target;
mod target_messages;
mod tensor;
mod type_names;
mod wire;
