//! What the loader of each release makes of a library, read as that loader reads it.
//!
//! A release does not look at everything that the rules ask for: it takes some broken files without a word, and rejects
//! others. `walk` follows its steps over a library binary: the order in which it reads, what its stream does where bytes are
//! missing, the checks that it makes and no others. The loaders of 0.2 to 0.27 differ in the container
//! (`library.rs`), in the stream (`stream.rs`) and in what each kind's own loader looks at (`payload.rs`).
//!
//! "Loads" is never the answer for what is not known to load: where the outcome hangs on memory, on what lies behind the bytes or
//! on code that was not read, it is [`LoadOutcome::Unknown`].

mod exports;
pub(super) mod globals;
mod graph_reader;
pub(super) mod graph_text;
mod json_graph;
mod library;
pub(super) mod llvm_text;
pub(super) mod nodes;
mod payload;
mod relax;
mod relay;
mod stream;
mod tensor;
pub(super) mod tensor_file;
pub(super) mod types;
mod verdict;

pub use exports::{exported, exports};
use library::walk;
pub(crate) use verdict::context_symbol;
pub use verdict::{ExaminedLibrary, bare, is_ambiguous, prefixed, relay_code, stored};

use crate::rule::Violation;
use std::fmt;

/// Where the walk of a loader ends early.
///
/// The two are kept apart: only the first says that the file does not load.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stop {
    /// In an error, or the end of the process.
    Rejects(String),
    /// In what depends on memory, on what lies behind the bytes, or on code that was not read.
    Unknown(String),
}

/// How opening a file ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadOutcome {
    /// All of it is there.
    Loads,
    /// No error, and something is wrong or missing.
    Silent,
    /// It is not known.
    Unknown,
    /// An error.
    Fails,
}

/// What a release makes of a file, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Load {
    /// How it ends.
    pub outcome: LoadOutcome,
    /// Why, for people.
    pub why: String,
}

impl Stop {
    /// The same, about module `index`.
    ///
    /// For layout 0.22, where every entry is a module.
    fn of(self, index: usize) -> Stop {
        self.with(|why| format!("module {index}: {why}"))
    }

    /// The same, about entry `index` of a count.
    ///
    /// For the older layouts, where the tree is an entry too (BLOB-03).
    fn of_entry(self, index: u64) -> Stop {
        self.with(|why| format!("entry {index}: {why}"))
    }

    /// The same outcome, with its reason in other words.
    fn with(self, words: impl FnOnce(String) -> String) -> Stop {
        match self {
            Stop::Rejects(why) => Stop::Rejects(words(why)),
            Stop::Unknown(why) => Stop::Unknown(words(why)),
        }
    }
}

impl LoadOutcome {
    /// The word that JSON uses.
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
    /// [`LoadOutcome::Loads`].
    pub fn whole(why: impl Into<String>) -> Load {
        Load::new(LoadOutcome::Loads, why)
    }

    /// [`LoadOutcome::Silent`].
    pub fn silent(why: impl Into<String>) -> Load {
        Load::new(LoadOutcome::Silent, why)
    }

    /// What a loader takes although it breaks a rule: it does not look at that.
    pub fn unseen(broken: &Violation) -> Load {
        // GRF-43: the loader of a factory keeps the text, and `default` parses it.
        let how = match broken.rule().id().starts_with("GRF-") {
            true => "it opens it, and an executor reads the graph when it is made",
            false => "it opens it, and does not look at what is wrong",
        };
        Load::silent(format!("{how}: it breaks {broken}"))
    }

    /// [`LoadOutcome::Unknown`].
    pub fn unknown(why: impl Into<String>) -> Load {
        Load::new(LoadOutcome::Unknown, why)
    }

    /// [`LoadOutcome::Fails`].
    pub fn fails(why: impl Into<String>) -> Load {
        Load::new(LoadOutcome::Fails, why)
    }

    /// The same, about module `index`.
    fn of_module(self, index: usize) -> Load {
        Load {
            why: format!("module {index}: {}", self.why),
            ..self
        }
    }

    /// An outcome and its reason.
    fn new(outcome: LoadOutcome, why: impl Into<String>) -> Load {
        Load {
            outcome,
            why: why.into(),
        }
    }
}

impl From<Stop> for Load {
    fn from(stop: Stop) -> Load {
        match stop {
            Stop::Rejects(why) => Load::fails(why),
            Stop::Unknown(why) => Load::unknown(why),
        }
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.outcome {
            LoadOutcome::Loads => write!(f, "loads it, {}", self.why),
            // In capitals: it is the one outcome that no release reports itself.
            LoadOutcome::Silent => write!(f, "SILENT TRAP: {}", self.why),
            LoadOutcome::Unknown => write!(f, "unknown: {}", self.why),
            LoadOutcome::Fails => write!(f, "fails: {}", self.why),
        }
    }
}
