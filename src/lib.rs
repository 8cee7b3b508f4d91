//! The TVM runtime, specified: what compiled libraries, parameter files, graphs and VM executables hold, and what a runtime does
//! with them, in every release from 0.2 to 0.27.
//!
//! ```toml
//! [dependencies]
//! # Reading and writing the formats alone. To load and call compiled code: features = ["runtime"].
//! tvmspec = { path = "../tvmspec", default-features = false }
//! ```
//!
//! ```
//! use tvmspec::blob;
//!
//! // The modules inside a library that TVM 0.8 compiled. Nothing of it runs.
//! let file = std::fs::read("golden/blob/containers/tree3-0.8.so")?;
//! for library in blob::open(&file)? {
//!     let kinds: Vec<&str> = library.blob.modules.iter().map(|module| &*module.kind).collect();
//!     assert_eq!(kinds, ["_lib", "metal", "opencl"]);
//!     assert_eq!(library.blob.imports(0), [1, 2]);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Start here
//!
//! * You **read or write files**: [`blob::open`] reads the library binaries of a file, in any container and all four layouts;
//!   [`blob::StoredModule::decode`] what a module stores, [`tensor`] parameter files, [`graph`] and [`vm`] models. Every
//!   [`rule::Violation`] names its rule, its byte and its field. What each release makes of a file is in `examine` (feature `inspect`).
//! * You **run compiled code** (feature `runtime`): `module::load`, then `Module::require`, then `Function::call_with`; or the C
//!   interfaces of both eras in `capi`. `examples/embed.rs` is a whole program.
//! * You **wrote a runtime, a loader or a device**: the suite judges it, from the command line (`tvmspec check`) or from your own
//!   tests (feature `suite`, module `conformance`).
//! * You look for **what a rule says**: each chapter has a constant for each rule, with its title; the text is in `spec/`.
//!
//! # Features
//!
//! | feature | what it brings | crates |
//! |---|---|---|
//! | none | the formats: bytes to values and back; no I/O, no `unsafe`; also for `wasm32-unknown-unknown` | 20 |
//! | `inspect` | `examine`, what each release makes of a file, also for wasm; with `runtime` `tvmspec_examine` for C, which is 1,036 KB of a small library | 20 |
//! | `rpc` | the protocol between processes: its bytes, also for wasm; with `runtime` clients, servers, trackers, proxies | 20 |
//! | `target` | targets and the contract of code generators, also for wasm; with `runtime` for C: `tvmspec_target_read`, `tvmspec_export`, 7 % more code | 20 |
//! | `runtime` | values, functions, modules, the processor as a device; both C interfaces; 64-bit machines only | 28 |
//! | `frontend` | the builtins that a frontend such as `tvm_ffi`'s calls; a small library without them has 785 KB instead of 1,047 | 28 |
//! | `graph`, `vm` | what runs models: the graph executor, the Relax VM | 28 |
//! | `cuda`, `hip`, `opencl`, `vulkan` | kernels on these (`hip` is ROCm); the driver is looked for when the program runs | 40 |
//! | `web` | the port of the proxy for peers in browsers | 50 |
//! | `suite` | the conformance suite: adapters, reports, the reader of the cases | 58 |
//! | `embed` | the cases and goldens inside the library, for binaries that leave the tree | 58 |
//! | `check` | of the command line `check`, `rule` and `testee`: what the author of an implementation needs | 76 |
//! | `cli` | the whole command line | 107 |
//! | `cxx` | the C++ symbols of `libtvm_ffi.so`, for a C library that takes its place | 28 |
//!
//! All but `cxx` and `embed` are on by default, for the command line's sake. Crates are those that are built for Linux with the features of the
//! row and what these need.
//!
//! # Chapters
//!
//! Every documented format and interface of TVM is one *chapter*, and a chapter has the same name in every
//! room of this project: `spec/blob.md` states the rules, [`blob`] implements them, `conformance/blob/` holds the
//! cases, `golden/blob/` real bytes, `fuzz/fuzz_targets/blob.rs` the fuzzer and `tests/formats/blob.rs` the properties.
//!
//! **Formats** turn bytes into values and back. They do no I/O, hold no globals, never panic, and never allocate
//! more than their input justifies; with `runtime`, `blob::pack` also calls compilers. A chapter may use only the chapters above it:
//!
//! * [`wire`]: integers, strings, vectors; the cursor that every reader is made of
//! * [`tensor`]: data types, devices, the tensor record, the parameter file, the tensor cache
//! * [`payload`]: what each kind of module stores, executables of both VMs included
//! * [`import_tree`]: which module imports which, and the order in which they are stored
//! * [`blob`]: the library binary and the files around it
//!
//! **Runtime** chapters behave; they are there with the feature `runtime`. What reads the formats of `object`, [`graph`]
//! and [`vm`] is there without any feature, under the same lints as the chapters above, and what runs models comes with the features
//! `graph` and `vm`; `target` and `rpc` have a feature each, and run with `runtime`. `unsafe` is only where a C boundary, a loader, a driver or the memory of an object is touched:
//!
//! * `value`: the tagged value, the object header, strings, types, conversions
//! * `function`: the calling convention of both eras, errors, typed functions, the registry
//! * `object`: containers, reflection, comparison, visits, the JSON graph of both eras
//! * `module`: the contract of modules, loading compiled libraries of every release
//! * `device`: memory, copies, streams, workspace, kernels: one contract for every kind of device
//! * `target`: kinds of targets, their options, tags; what text and JSON make of them in every release
//! * [`graph`]: the graph JSON and its plan of storage; the graph executor and its debug executor
//! * [`vm`]: executables of the Relax VM, checked and as text; the machine that runs them
//! * `rpc`: what a client and a server write to each other: hello, packets, values
//!
//! Around them: [`rule`] (what a rule, a violation and a finding are), [`release`] (which TVM release), `examine` (what each
//! release makes of a file) and [`file_name`] (names of files that are made of a file's content).
//!
//! # Errors
//!
//! A broken rule of a format is a [`rule::Violation`]. What runs fails with `function::Error`, which carries the violation; a text or a JSON
//! form that does not parse, with [`release::ParseError`]; what reads files, with [`std::io::Error`].

#![deny(missing_docs)]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(all(feature = "runtime", not(target_pointer_width = "64")))]
compile_error!(
    "feature `runtime` needs a machine with 64-bit addresses, for which TVM's objects and C interfaces are laid out; with \
     `default-features = false` the formats alone build for this one"
);

pub mod release;
pub mod rule;

/// The formats live together for their lints alone: what must never panic is not allowed the means.
#[path = "."]
#[forbid(unsafe_code)]
#[deny(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    clippy::panic
)]
mod formats {
    pub mod blob;
    pub(crate) mod content;
    #[cfg(feature = "inspect")]
    pub mod examine;
    pub mod file_name;
    pub mod import_tree;
    pub mod payload;
    pub mod tensor;
    pub mod wire;
}
#[cfg(feature = "inspect")]
use formats::content;
#[cfg(feature = "inspect")]
pub use formats::examine;
pub use formats::{blob, file_name, import_tree, payload, tensor, wire};

#[cfg(feature = "runtime")]
pub mod value;

#[cfg(feature = "runtime")]
pub mod function;

// What only the builtins for frontends use stays behind without them, for the linker to drop.
#[cfg_attr(not(feature = "frontend"), allow(dead_code))]
pub mod object;

#[cfg(feature = "runtime")]
pub mod module;

#[cfg(feature = "runtime")]
pub mod device;

#[cfg(feature = "target")]
pub mod target;

pub mod graph;

pub mod vm;

#[cfg(feature = "rpc")]
pub mod rpc;

#[cfg(feature = "runtime")]
#[allow(non_snake_case, reason = "functions of C have the names of TVM")]
pub mod capi;

#[cfg(feature = "suite")]
#[path = "../conformance/mod.rs"]
pub mod conformance;

#[cfg(feature = "suite")]
pub mod spec;

#[cfg(feature = "runtime")]
mod install;
#[cfg(all(doctest, feature = "runtime"))]
mod sound;
#[cfg(feature = "runtime")]
mod thread_local;

#[cfg(feature = "runtime")]
use install::install;

/// The README's example runs.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
