//! The conformance suite: cases as data, adapters to implementations, verdicts and reports.
//!
//! A [`case::Case`] is one row of `conformance/<chapter>/cases/<topic>.json`. The [`runner`] sends it to an implementation through
//! an [`adapter::Adapter`]. [`verdict::judge`] compares the answer, [`known_failures`] excuses known failures, and [`report`] writes the
//! result.
//!
//! To test a Rust type, implement [`adapter::Testee`] and run it [`adapter::InProcess`]:
//!
//! ```
//! use tvmspec::conformance::adapter::{Identity, InProcess, Reply, Testee};
//! use tvmspec::conformance::{case::Suite, runner};
//!
//! struct Mine;
//! impl Testee for Mine {
//!     fn identity(&self) -> Identity {
//!         Identity { name: "mine".into(), version: "0.1".into(), ..Identity::default() }
//!     }
//!     fn answer(&mut self, op: &str, _args: &serde_json::Value) -> Reply {
//!         Reply::Unsupported(format!("{op} comes next week"))
//!     }
//! }
//!
//! let suite = Suite::ours().unwrap();
//! let mut run = runner::Run::default();
//! run.selection.chapters = vec!["wire".into()];
//! let report = runner::run(suite, &mut InProcess(Mine), &run).unwrap();
//! assert_eq!(report.totals().count("unsupported"), report.results.len());
//! ```
//!
//! # Adding an operation
//!
//! The `driver.rs` of a chapter executes its cases, once for every runtime. A driver calls C functions, either those that this
//! library exports or those of a library under test. To add an operation, write a function `fn(&'static FfiApi, &Value) ->
//! Result<Reply, Reply>` there, and name it in the chapter's `OPS` as `Handler::Driven(..)`. It then runs on both.
//! `Handler::Legacy(..)` does the same with the C interface of 0.20 and before. `Handler::Here` is for operations that no C
//! function offers: they run only on this crate, through the Rust interface.

pub mod adapter;
pub mod answer_parts;
pub mod behaviour;
pub mod case;
mod chapters;
pub mod device;
mod edited_golden;
mod files;
mod form;
mod golden;
pub mod known_failures;
mod op;
mod reply;
pub mod report;
pub mod runner;
mod runtime;
pub(crate) mod sanitized_text;
pub mod truncated;
pub mod verdict;

/// The chapter `blob`.
pub(crate) mod blob {
    pub(crate) mod containers;
    mod exporting;
    pub(crate) mod ops;
    pub(crate) mod packing;
}

/// The chapter `graph`.
pub(crate) mod graph {
    mod driver;
    mod forms;
    mod kernels;
    pub(crate) mod ops;
    mod results;
    pub(in crate::conformance) mod rust_interface;
    mod tensors;
    mod timing_results;
}

/// The chapter `import_tree`.
pub(crate) mod import_tree {
    pub(crate) mod ops;
}

/// The chapter `payload`.
pub(crate) mod payload {
    pub(crate) mod ops;
}

/// The chapter `rpc`.
pub(crate) mod rpc {
    mod acting_client;
    mod client;
    mod client_forms;
    mod connection;
    pub(in crate::conformance) mod functions;
    mod hop;
    pub(crate) mod ops;
    mod peer;
    mod pipe;
    mod relay;
    mod relay_events;
    mod relay_peer;
    mod scripted_peers;
    pub(in crate::conformance) mod server_start;
    pub(in crate::conformance) mod session;
    mod session_forms;
    pub(in crate::conformance) mod session_script;
}

/// The chapter `target`.
pub(crate) mod target {
    pub(in crate::conformance) mod compiler;
    mod contract;
    pub(in crate::conformance) mod driver;
    pub(crate) mod ops;
}

/// The chapter `tensor`.
pub(crate) mod tensor {
    pub(crate) mod ops;
}

/// The chapter `module`.
pub(crate) mod module {
    pub(in crate::conformance) mod backend;
    mod backend_host;
    pub(crate) mod backend_ops;
    mod compiled;
    mod constants;
    mod environment;
    pub(in crate::conformance) mod legacy;
    mod library_file;
    pub(in crate::conformance) mod linked_library;
    pub(in crate::conformance) mod loading;
    pub(in crate::conformance) mod lookup;
    pub(crate) mod ops;
    mod probe;
    pub(in crate::conformance) mod rust_interface;
    mod symbol_memory;
}

/// The chapter `value`.
pub(crate) mod value {
    pub(in crate::conformance) mod convert;
    pub(crate) mod custom;
    pub(in crate::conformance) mod driver;
    mod extension;
    pub(crate) mod ops;
    mod reflection;
}

/// The chapter `function`.
pub(crate) mod function {
    mod callbacks;
    mod compiled;
    pub(in crate::conformance) mod driver;
    pub(crate) mod legacy;
    mod legacy_c_functions;
    mod legacy_callbacks;
    pub(crate) mod ops;
    pub(in crate::conformance) mod registry_steps;
    pub(in crate::conformance) mod script;
}

/// The chapter `object`.
pub(crate) mod object {
    mod c_arguments;
    mod c_callbacks;
    mod c_functions;
    mod c_results;
    mod driver;
    pub(crate) mod hooks;
    pub(in crate::conformance) mod layout;
    mod no_result;
    pub(crate) mod ops;
    mod probe;
    mod records;
    mod script;
    mod state_inspection;
    mod visits;
    mod weak;
}

/// The chapter `vm`.
pub(crate) mod vm {
    mod driver;
    pub(crate) mod ops;
    pub(crate) mod rust_interface;
}

/// The chapter `wire`.
pub(crate) mod wire {
    pub(crate) mod ops;
}

pub use chapters::{CHAPTERS, Chapter, chapter};
pub use op::Op;
pub use rpc::functions::register as register_rpc_functions;
