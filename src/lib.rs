//! The TVM runtime, specified: the content of compiled libraries, parameter files, graphs and VM executables, and how a runtime handles
//! them. The crate covers every release from 0.2 to 0.27.
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
//!     let kinds: Vec<&str> = library.modules().iter().map(|module| module.kind()).collect();
//!     assert_eq!(kinds, ["_lib", "metal", "opencl"]);
//!     for module in library.modules().iter().filter_map(|module| module.stored()) {
//!         println!("{} stores {} bytes", module.kind, module.payload.len());
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Start here
//!
//! * You have **a task**: [`guide`] has programs for the common ones, and a picture of file, container, blob, module and payload.
//! * You **read or write files**: [`blob::open`] reads the library binaries of a file, in any container and all four layouts.
//!   [`blob::StoredModule::decode`] reads the payload of a module, [`tensor`] parameter files, [`graph`] and [`vm`] models. Every
//!   [`rule::Violation`] names its rule, its byte and its field. `examine` shows how each release treats a file (feature `inspect`).
//! * You **run compiled code** (feature `runtime`): use `module::load`, then `Module::require`, then `Function::call`:
//!   `unsafe { module::load(path) }?.require("main")?.call((&x, &y))?`. `examples/embed.rs` is a complete program. The C interfaces of
//!   both eras are in `capi`.
//! * You **wrote a runtime, a loader or a device**: test it with the suite, from the command line (`tvmspec check`) or from your own
//!   tests (feature `suite`, module `conformance`).
//! * You look for **the text of a rule**: it is the documentation of its constant, such as [`blob::rules::BLOB_07`]. Search for the id.
//!   Pages beside the chapters are in [`specification`].
//!
//! # Features
//!
//! | feature | adds | crates |
//! |---|---|---|
//! | none | the formats: bytes to values and back; no I/O, no `unsafe`; also for `wasm32-unknown-unknown` | 20 |
//! | `inspect` | `examine`, the verdict of each release on a file, also for wasm; with `runtime` `tvmspec_examine` for C, which is 1,036 KB of a small library | 20 |
//! | `rpc` | the protocol between processes: its bytes, also for wasm; with `runtime` clients, servers, trackers, proxies | 22 |
//! | `target` | targets and the contract of code generators, also for wasm; with `runtime` for C: `tvmspec_target_read`, `tvmspec_export`, 7 % more code | 20 |
//! | `runtime` | values, functions, modules, the processor as a device; both C interfaces; 64-bit machines only | 28 |
//! | `frontend` | the builtins that a frontend such as `tvm_ffi`'s calls; a small library without them has 785 KB instead of 1,047 | 28 |
//! | `graph`, `vm` | execution of models: the graph executor, the Relax VM | 28 |
//! | `cuda`, `hip`, `opencl`, `vulkan` | kernels on these (`hip` is ROCm); the driver is loaded when the program runs | 40 |
//! | `web` | the port of the proxy for peers in browsers | 52 |
//! | `suite` | the conformance suite: adapters, reports, the reader of the cases | 58 |
//! | `embed` | the cases and goldens inside the library, for binaries that are used outside the source tree | 58 |
//! | `check` | the commands `check`, `rule` and `testee`, for authors of implementations | 76 |
//! | `cli` | the whole command line | 104 |
//! | `cxx` | the C++ symbols of `libtvm_ffi.so`, for a C library that takes its place | 28 |
//!
//! All except `cxx` and `embed` are on by default, because the command line needs them. The last column counts the crates that are
//! built for Linux with the features of the row and their dependencies.
//!
//! # Chapters
//!
//! Every documented format and interface of TVM is one *chapter*. A chapter has the same name in all parts of this project:
//! `spec/blob.md` states the rules, [`blob`] implements them, `conformance/blob/` has the cases, `golden/blob/` real bytes,
//! `fuzz/fuzz_targets/blob.rs` the fuzzer and `tests/formats/blob.rs` the properties.
//!
//! **Formats** turn bytes into values and back. They do no I/O, have no globals, never panic, and never allocate more than their input
//! justifies; with `runtime`, `blob::pack` also calls compilers. A chapter may use only the chapters above it:
//!
//! * [`wire`]: integers, strings, vectors; the cursor that all readers use
//! * [`tensor`]: data types, devices, the tensor record, the parameter file, the tensor cache
//! * [`payload`]: the payload of each kind of module, including executables of both VMs
//! * [`import_tree`]: the imports of each module, and the order in which modules are stored
//! * [`blob`]: the library binary and the files around it
//!
//! **Runtime** chapters need the feature `runtime`. The readers of the formats of `object`, [`graph`] and [`vm`] need no feature and
//! follow the same lints as the chapters above. Features `graph` and `vm` add the execution of models. `target` and `rpc` have a
//! feature each, and run with `runtime`. `unsafe` is used only at a C boundary, for a loader or a driver, or for the memory of an
//! object:
//!
//! * `value`: the tagged value, the object header, strings, types, conversions
//! * `function`: the calling convention of both eras, errors, typed functions, the registry
//! * `object`: containers, reflection, comparison, visits, the JSON graph of both eras
//! * `module`: the contract of modules, loading compiled libraries of every release
//! * `device`: memory, copies, streams, workspace, kernels: one contract for all kinds of device
//! * `target`: kinds of targets, their options, tags; their text and JSON forms in every release
//! * [`graph`]: graph JSON and its storage plan; the graph executor and its debug executor
//! * [`vm`]: executables of the Relax VM, checked and as text; the machine that runs them
//! * `rpc`: the messages between a client and a server: hello, packets, values
//!
//! Other modules: [`rule`] (rules, violations and findings), [`release`] (TVM releases), `examine` (the verdict of each release on a
//! file) and [`file_name`] (file names that are made from a file's content).
//!
//! # Errors
//!
//! A broken rule of a format is a [`Violation`]. Everything that runs fails with the one type `Error` (feature `runtime`), which carries
//! the violation; `Result<T>` is the result with it. A text or a JSON form that does not parse fails with [`release::ParseError`], and
//! reading a file with [`std::io::Error`].

#![deny(missing_docs)]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(all(feature = "runtime", not(target_pointer_width = "64")))]
compile_error!(
    "feature `runtime` needs a machine with 64-bit addresses, for which TVM's objects and C interfaces are laid out; with \
     `default-features = false` the formats alone build for this one"
);

#[cfg(feature = "runtime")]
#[macro_use]
mod debug;

pub mod guide;
pub mod release;
pub mod rule;
pub mod specification;

/// The formats share one module only because of their lints: code that must never panic may not use anything that could.
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

// Parts that only the builtins for frontends use are compiled without them too, and the linker drops them.
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

// The command line names the library as any other user of it does.
#[cfg(feature = "check")]
extern crate self as tvmspec;

#[cfg(feature = "check")]
pub mod cli;

#[cfg(feature = "runtime")]
pub use function::{Error, Result};
pub use release::{Layout, Release};
pub use rule::{Finding, Violation};

#[cfg(feature = "runtime")]
mod install;
#[cfg(feature = "runtime")]
mod lock;
#[cfg(all(doctest, feature = "runtime"))]
mod sound;
#[cfg(feature = "runtime")]
mod thread_local;

#[cfg(feature = "runtime")]
use install::install;

/// The README, whose example runs as a doctest.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
