//! Code generators: a module and a target to code. What each of them keeps to, a registry of them, and one that works.
//!
//! | file | what | rules |
//! |---|---|---|
//! | `lowered` | [`LoweredModule`]: what a generator is called with | TGT-82, TGT-83 |
//! | `registry` | [`Generators`]: by the kinds of targets, each held to the contract | TGT-80, TGT-81, TGT-85 .. TGT-87 |
//! | `code` | [`GeneratedCode`]: what a generator returns | TGT-81, TGT-85 |
//! | `ir`, `ir_json` | the JSON graph of a module, of both eras, and its text | TGT-88 |
//! | `source` | C for the host, OpenCL C for devices: functions, entry functions | TGT-84, TGT-89, TGT-90 |
//! | `statement`, `expression`, `call` | what is in a function | TGT-88, TGT-91, TGT-92 |
//! | `operators` | what is computed of numbers | TGT-88, TGT-91, TGT-93 |
//! | `abi`, `scalar` | what the code and a runtime know of each other; types and literals of C | TGT-88 |
//! | `vector` | what has lanes: one loop for each statement | TGT-88 |
//! | `half` | fractions of 16 bits in software, and the bits of others | |
//! | `helper_text` | the texts of helper functions | |
//! | `library` | the functions of C's library that the text may call | |
//! | `names` | names that C and OpenCL C have for something else | TGT-89 |
//! | `writer` | the text so far, names in it, where the writer is | TGT-89 |
//!
//! It is an example of the contract and no compiler: nothing is scheduled or optimised, and vectors are loops. What it does not know it rejects.

mod abi;
mod call;
mod code;
mod expression;
mod half;
mod helper_text;
mod ir;
mod ir_json;
mod library;
mod lowered;
mod names;
mod operators;
mod registry;
mod scalar;
mod source;
mod statement;
mod vector;
mod writer;

pub use code::{GeneratedCode, KernelInfo};
pub use lowered::LoweredModule;
pub use registry::{Generator, Generators};

use crate::target::{TGT_80, TGT_81, TGT_82, TGT_83, TGT_84, TGT_85, TGT_86, TGT_88, TGT_89};
