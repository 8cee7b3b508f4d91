//! The reason of a verdict, for programs.

use crate::release::Layout;
use crate::rule::Rule;

/// The reason for a release's verdict, as data. [`Load::why`](super::Load::why) states it in words, with more details.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LoadCause {
    /// Nothing prevents it.
    Whole,
    /// The release looks for another symbol and does not find the library binary (BLOB-50).
    OtherSymbol {
        /// The symbol that it looks for.
        wanted: String,
    },
    /// The release reads the library binary in a different layout from the one it was written in.
    OtherLayout {
        /// The layout of the file.
        written: Layout,
        /// The layout of the release.
        read_as: Layout,
    },
    /// The release has no loader for a kind of module (PAY-99).
    NoLoader {
        /// The number of the module in the library binary; `None` for a file that is one module.
        module: Option<usize>,
        /// The kind.
        kind: String,
    },
    /// The payload of a module has a form that the loader of the release does not read.
    OtherForm {
        /// The number of the module in the library binary; `None` for a file that is one module.
        module: Option<usize>,
        /// The kind.
        kind: String,
    },
    /// The release adds a different prefix to the names of functions and finds none of them (BLOB-62).
    NoFunctions,
    /// The release calls the functions with a different calling convention from the one they were compiled for (MOD-02).
    OtherConvention,
    /// The code calls C functions of TVM that the release does not have (MOD-26).
    MissingFunctions,
    /// The file breaks a rule.
    BrokenRule(Rule),
    /// The loader of the release stops at some byte. The file may break a rule or not.
    StopsReading,
    /// Another reason, which is stated only in words.
    Other,
}

impl LoadCause {
    /// Sets the number of the module that the cause is about.
    pub(super) fn of_module(mut self, index: usize) -> LoadCause {
        if let LoadCause::NoLoader { module, .. } | LoadCause::OtherForm { module, .. } = &mut self
        {
            *module = Some(index);
        }
        self
    }
}
