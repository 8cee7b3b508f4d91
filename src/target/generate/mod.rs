//! Code generators: their contract, and a registry that checks them against it.
//!
//! | file | content | rules |
//! |---|---|---|
//! | `lowered_module` | [`LoweredModule`]: the argument of a generator | TGT-82, TGT-83, TGT-85, TGT-88 |
//! | `registry` | [`Generators`]: by the kinds of targets, each checked against the contract | TGT-80, TGT-81, TGT-85 .. TGT-87 |
//! | `generated_code` | [`GeneratedCode`]: the result of a generator | TGT-81, TGT-85 |
//! | `ir`, `ir_json` | the JSON graph of a module, in both formats, and its text | TGT-88 |
//!
//! This crate has no generator; `examples/foo.rs` shows a small one. The cases of `target.generate` test the generators of others.

mod generated_code;
mod ir;
mod ir_json;
mod lowered_module;
mod registry;

pub use generated_code::{GeneratedCode, KernelInfo};
pub use lowered_module::LoweredModule;
pub use registry::{Generator, Generators};

use crate::target::{TGT_80, TGT_81, TGT_82, TGT_83, TGT_85, TGT_86, TGT_88};
