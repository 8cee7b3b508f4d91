//! Models of the loaders of all releases: each reads a library as the loader of that release does.
//!
//! A release does not check everything that the rules require. It accepts some broken files silently, and rejects others. `walk`
//! follows the steps of a loader over a library binary: the order of reading, and the checks. It also models how the loader's stream
//! behaves if bytes are missing. The loaders of 0.2 to 0.27 differ in the container (`library.rs`), in the stream (`stream.rs`) and in
//! the checks of each kind's own loader (`payload.rs`).
//!
//! The verdict is "loads" only if the file is known to load. If the outcome depends on memory, on bytes after the end, or on code that
//! was not examined, it is [`LoadOutcome::Unknown`].

mod cause;
mod exports;
pub(super) mod global_functions;
mod graph_reader;
pub(super) mod graph_text;
mod json_graph;
mod library;
pub(super) mod llvm_text;
mod module_form;
pub(super) mod object_types;
mod payload;
mod relax;
mod relay;
mod stream;
mod tensor;
pub(super) mod tensor_file;
pub(super) mod tensor_types;
mod verdict;

pub use cause::LoadCause;
pub use exports::{exported, exports};
use library::walk;
pub(crate) use verdict::ExaminedLibrary;
pub(crate) use verdict::context_symbol;
pub use verdict::{is_ambiguous, judge_without_blob, prefixed, relay_code, stored};

use crate::rule::Violation;
use std::fmt;

/// The reason why a loader's walk ends early.
///
/// The variants are distinct because only the first says that the file does not load.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stop {
    /// The loader reports an error or ends the process.
    Rejects(String),
    /// The outcome depends on memory, on bytes after the end, or on code that was not examined.
    Unknown(String),
}

/// The outcome of opening a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadOutcome {
    /// The whole file is loaded.
    Loads,
    /// Loading reports no error, but something is wrong or missing.
    Silent,
    /// The outcome is not known.
    Unknown,
    /// Opening reports an error.
    Fails,
}

/// The verdict of a release on a file, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Load {
    /// The outcome.
    pub outcome: LoadOutcome,
    /// The reason, for people.
    pub why: String,
    /// The reason, for programs.
    pub cause: LoadCause,
}

impl Stop {
    /// Adds the number of a module to the reason, for layout 0.22, in which every entry is a module.
    fn with_module(self, index: usize) -> Stop {
        self.map_reason(|why| format!("module {index}: {why}"))
    }

    /// Adds the number of an entry to the reason, for the older layouts, in which the tree is an entry too (BLOB-03).
    fn with_entry(self, index: u64) -> Stop {
        self.map_reason(|why| format!("entry {index}: {why}"))
    }

    /// Changes the text of the reason and keeps the outcome.
    fn map_reason(self, words: impl FnOnce(String) -> String) -> Stop {
        match self {
            Stop::Rejects(why) => Stop::Rejects(words(why)),
            Stop::Unknown(why) => Stop::Unknown(words(why)),
        }
    }
}

impl LoadOutcome {
    /// Returns the word for JSON.
    pub const fn name(self) -> &'static str {
        match self {
            LoadOutcome::Loads => "loads",
            LoadOutcome::Silent => "silent",
            LoadOutcome::Unknown => "unknown",
            LoadOutcome::Fails => "fails",
        }
    }
}

impl Load {
    /// Creates a verdict of [`LoadOutcome::Loads`].
    pub fn loads(why: impl Into<String>) -> Load {
        Load::new(LoadOutcome::Loads, why).with_cause(LoadCause::Whole)
    }

    /// Creates a verdict of [`LoadOutcome::Silent`].
    pub fn silent(why: impl Into<String>) -> Load {
        Load::new(LoadOutcome::Silent, why)
    }

    /// Creates the verdict for a file that a loader accepts although it breaks a rule, because the loader does not check the rule.
    pub fn unseen(broken: &Violation) -> Load {
        // GRF-43: the loader of a graph executor factory stores the text, and `default` parses it.
        let how = if broken.rule().id().starts_with("GRF-") {
            "it opens the file, and reads the graph only when it creates an executor: the graph breaks a rule"
        } else {
            "it opens the file without an error, although the file breaks a rule"
        };
        Load::silent(format!("{how}: {broken}")).with_cause(LoadCause::BrokenRule(broken.rule()))
    }

    /// Creates the verdict for a file that breaks a rule and whose loader was not examined.
    pub(super) fn broken(broken: &Violation) -> Load {
        Load::unknown(format!("it breaks a rule: {broken}"))
            .with_cause(LoadCause::BrokenRule(broken.rule()))
    }

    /// Creates the verdict of a release without a loader for modules of `kind` in files with this extension.
    pub(super) fn without_loader(kind: &str, extension: &str) -> Load {
        let cause = LoadCause::NoLoader {
            module: None,
            kind: kind.to_owned(),
        };
        Load::fails(format!("it has no loader of `.{extension}` files")).with_cause(cause)
    }

    /// Sets the cause.
    pub(super) fn with_cause(self, cause: LoadCause) -> Load {
        Load { cause, ..self }
    }

    /// Creates a verdict of [`LoadOutcome::Unknown`].
    pub fn unknown(why: impl Into<String>) -> Load {
        Load::new(LoadOutcome::Unknown, why)
    }

    /// Creates a verdict of [`LoadOutcome::Fails`].
    pub fn fails(why: impl Into<String>) -> Load {
        Load::new(LoadOutcome::Fails, why)
    }

    /// Adds the number of a module to the reason.
    fn of_module(self, index: usize) -> Load {
        Load {
            why: format!("module {index}: {}", self.why),
            cause: self.cause.of_module(index),
            ..self
        }
    }

    /// Creates a verdict from an outcome and its reason.
    fn new(outcome: LoadOutcome, why: impl Into<String>) -> Load {
        Load {
            outcome,
            why: why.into(),
            cause: LoadCause::Other,
        }
    }
}

impl From<Stop> for Load {
    fn from(stop: Stop) -> Load {
        match stop {
            Stop::Rejects(why) => Load::fails(why).with_cause(LoadCause::StopsReading),
            Stop::Unknown(why) => Load::unknown(why).with_cause(LoadCause::StopsReading),
        }
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.outcome {
            LoadOutcome::Loads => write!(f, "loads it, {}", self.why),
            // Emphasized, because a release does not report this outcome itself.
            LoadOutcome::Silent => write!(f, "SILENT TRAP: {}", self.why),
            LoadOutcome::Unknown => write!(f, "unknown: {}", self.why),
            LoadOutcome::Fails => write!(f, "fails: {}", self.why),
        }
    }
}
