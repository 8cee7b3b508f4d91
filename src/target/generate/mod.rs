//! Code generators: the contract that each of them keeps to, and a registry that holds them to it.
//!
//! | file | what | rules |
//! |---|---|---|
//! | `lowered` | [`LoweredModule`]: the argument of a generator | TGT-82, TGT-83, TGT-85, TGT-88 |
//! | `registry` | [`Generators`]: by the kinds of targets, each held to the contract | TGT-80, TGT-81, TGT-85 .. TGT-87 |
//! | `code` | [`GeneratedCode`]: what a generator returns | TGT-81, TGT-85 |
//! | `ir`, `ir_json` | the JSON graph of a module, of both eras, and its text | TGT-88 |
//!
//! This crate has no generator: `examples/foo.rs` shows a small one. The cases of `target.generate` are for the generators of others.

mod code;
mod ir;
mod ir_json;
mod lowered;
mod registry;

pub use code::{GeneratedCode, KernelInfo};
pub use lowered::LoweredModule;
pub use registry::{Generator, Generators};

use crate::target::{TGT_80, TGT_81, TGT_82, TGT_83, TGT_85, TGT_86, TGT_88};
