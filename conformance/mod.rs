//! The conformance suite: cases as data, adapters that put an implementation to them, verdicts and reports.
//!
//! A [`case::Case`] is one entry of `conformance/<chapter>/cases.json`. The [`runner`] puts it to an implementation
//! through an [`adapter::Adapter`], [`verdict::judge`] compares, [`known`] excuses what is known, and [`report`] says
//! it. To judge your own Rust type, implement [`adapter::Testee`] and run it [`adapter::InProcess`]:
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
//! let suite = Suite::embedded();
//! let run = runner::Run { selection: runner::Selection { chapters: vec!["wire".into()], ..Default::default() }, ..Default::default() };
//! let report = runner::run(suite, &mut InProcess(Mine), &run).unwrap();
//! assert_eq!(report.totals().count("unsupported"), report.results.len());
//! ```

pub mod adapter;
pub mod behaviour;
pub mod case;
mod chapters;
pub mod device;
pub mod known;
pub mod op;
pub mod report;
pub mod runner;
mod said;
pub mod verdict;

#[cfg(test)]
mod watched;

/// The chapter `blob`.
pub mod blob {
    pub mod containers;
    pub mod ops;
}

/// The chapter `graph`.
pub mod graph {
    pub(in crate::conformance) mod kernels;
    pub mod ops;
    pub mod script;
}

/// The chapter `import_tree`.
pub mod import_tree {
    pub mod ops;
}

/// The chapter `payload`.
pub mod payload {
    pub mod ops;
}

/// The chapter `tensor`.
pub mod tensor {
    pub mod ops;
}

/// The chapter `module`.
pub mod module {
    pub mod behaviour;
    mod memory;
    pub mod ops;
    mod probe;
}

/// The chapter `value`.
pub mod value {
    pub(crate) mod custom;
    pub mod ops;
}

/// The chapter `function`.
pub mod function {
    pub mod legacy;
    pub mod ops;
}

/// The chapter `object`.
pub mod object {
    pub(crate) mod hooks;
    pub mod ops;
    mod visits;
}

/// The chapter `vm`.
pub mod vm {
    pub mod ops;
}

/// The chapter `wire`.
pub mod wire {
    pub mod ops;
}

#[cfg(test)]
mod rule_off;

pub use chapters::{CHAPTERS, Chapter, TraceOf, chapter};
