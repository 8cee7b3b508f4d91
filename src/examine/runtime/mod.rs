//! A file held against one runtime: what the runtime registers is known by name, and what the file needs of that is compared.
//!
//! No file is loaded for that, and nothing here loads a runtime: whoever has one lists its names ([`RegisteredNames`]).

mod brought;
mod missing;
mod releases;

pub use missing::{MissingName, NeededName, missing};

use crate::release::Releases;
use std::collections::BTreeSet;

/// How C reaches the functions of a runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RuntimeInterface {
    /// `TVMFuncCall` and its kin, up to 0.20.
    Packed,
    /// `TVMFFIFunctionCall` with the objects of 0.21.
    Ffi21,
    /// `TVMFFIFunctionCall` with those of tvm-ffi, 0.22 and later.
    Ffi,
}

/// What a runtime has, by name.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RegisteredNames {
    /// How C reaches its functions.
    pub interface: RuntimeInterface,
    /// The version that tvm-ffi states: major, minor, patch; `None` before 0.22. Packages 0.1.13 to 0.1.15 state one more than their name.
    pub tvm_ffi: Option<[u32; 3]>,
    /// The global functions.
    pub functions: BTreeSet<String>,
    /// The exported C functions, of those that any release has.
    pub exports: BTreeSet<String>,
}

/// What comes before a kind in the name of its loader, by era (MOD-11).
const PREFIXES: [&str; 3] = [
    "module.loadbinary_",
    "runtime.module.loadbinary_",
    "ffi.Module.load_from_bytes.",
];

impl RuntimeInterface {
    /// Every interface, oldest first.
    pub const ALL: [RuntimeInterface; 3] = [
        RuntimeInterface::Packed,
        RuntimeInterface::Ffi21,
        RuntimeInterface::Ffi,
    ];

    /// The word that JSON uses.
    pub const fn name(self) -> &'static str {
        match self {
            RuntimeInterface::Packed => "packed",
            RuntimeInterface::Ffi21 => "ffi-0.21",
            RuntimeInterface::Ffi => "ffi",
        }
    }

    /// The releases that have it.
    pub const fn releases(self) -> Releases {
        match self {
            RuntimeInterface::Packed => Releases::between(2, 20),
            RuntimeInterface::Ffi21 => Releases::between(21, 21),
            RuntimeInterface::Ffi => Releases::from(22),
        }
    }
}

impl RegisteredNames {
    /// Names without any function or export yet.
    pub fn new(interface: RuntimeInterface) -> RegisteredNames {
        RegisteredNames {
            interface,
            tvm_ffi: None,
            functions: BTreeSet::new(),
            exports: BTreeSet::new(),
        }
    }

    /// The releases that the runtime is most likely of: those with the fewest names that it lacks or has beside them.
    ///
    /// A runtime states no release. Vendors add functions and leave some out, so that no single name decides.
    pub fn releases(&self) -> Releases {
        releases::likely(self)
    }

    /// The kinds of module that it has a loader of.
    pub fn loaders(&self) -> impl Iterator<Item = &str> {
        self.behind(&PREFIXES)
    }

    /// The devices that it has code for, by name.
    pub fn devices(&self) -> impl Iterator<Item = &str> {
        // Up to 0.6 the prefix is the same.
        self.behind(&["device_api."])
    }

    /// The functions of the Relax VM, without `vm.builtin.`.
    pub fn builtins(&self) -> impl Iterator<Item = &str> {
        self.behind(&["vm.builtin."])
    }

    fn behind<'n>(&'n self, prefixes: &'n [&'n str]) -> impl Iterator<Item = &'n str> {
        self.functions
            .iter()
            .filter_map(move |name| prefixes.iter().find_map(|prefix| name.strip_prefix(prefix)))
    }
}
