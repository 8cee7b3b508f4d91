//! Comparison of a file with one runtime: the names that the file needs, and the names that the runtime registers.
//!
//! Neither the file nor the runtime is loaded here. A program that has loaded a runtime passes its names as [`RegisteredNames`].

mod missing_names;
mod providers;
mod releases;

pub use missing_names::{MissingName, NeededName, missing, perhaps_missing};

use crate::release::Releases;
use std::collections::BTreeSet;

/// The C interface of a runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RuntimeInterface {
    /// `TVMFuncCall` and related functions, up to 0.20.
    Packed,
    /// `TVMFFIFunctionCall` with the objects of 0.21.
    Ffi21,
    /// `TVMFFIFunctionCall` with the objects of tvm-ffi, 0.22 and later.
    Ffi,
}

/// The names that a runtime has.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RegisteredNames {
    /// The C interface.
    pub interface: RuntimeInterface,
    /// The version that tvm-ffi states: major, minor, patch; `None` before 0.22. Packages 0.1.13 to 0.1.15 state a version that is one
    /// higher than their name.
    pub tvm_ffi: Option<[u32; 3]>,
    /// The global functions.
    pub functions: BTreeSet<String>,
    /// The exported C functions that any release has.
    pub exports: BTreeSet<String>,
    /// The exported names of TVM's C++ interface; `None` if they were not read.
    pub cpp: Option<BTreeSet<String>>,
}

/// The prefixes of a kind in the name of its loader, by era (MOD-11).
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

    /// Returns the word for JSON.
    pub const fn name(self) -> &'static str {
        match self {
            RuntimeInterface::Packed => "packed",
            RuntimeInterface::Ffi21 => "ffi-0.21",
            RuntimeInterface::Ffi => "ffi",
        }
    }

    /// Returns the releases that have this interface.
    pub const fn releases(self) -> Releases {
        match self {
            RuntimeInterface::Packed => Releases::between(2, 20),
            RuntimeInterface::Ffi21 => Releases::between(21, 21),
            RuntimeInterface::Ffi => Releases::from(22),
        }
    }
}

impl RegisteredNames {
    /// Creates a set of names without functions and exports.
    pub fn new(interface: RuntimeInterface) -> RegisteredNames {
        RegisteredNames {
            interface,
            tvm_ffi: None,
            functions: BTreeSet::new(),
            exports: BTreeSet::new(),
            cpp: None,
        }
    }

    /// Returns whether this is tvm-ffi without a TVM runtime. None of its names shows a release of TVM.
    pub fn is_ffi_alone(&self) -> bool {
        let is_own = |name: &String| name.starts_with("ffi.") || name.starts_with("testing.");
        self.tvm_ffi.is_some() && self.functions.iter().all(is_own)
    }

    /// Returns the most likely releases of the runtime: those whose names differ the least from its names. For tvm-ffi alone, returns
    /// all releases that are built on it.
    ///
    /// A runtime does not state its release. Vendors add functions and leave some out, so that no single name decides.
    pub fn releases(&self) -> Releases {
        if self.is_ffi_alone() {
            self.interface.releases()
        } else {
            releases::likely_releases(self)
        }
    }

    /// Returns the kinds of module for which a loader is registered.
    pub fn loaders(&self) -> impl Iterator<Item = &str> {
        self.strip_prefixes(&PREFIXES)
    }

    /// Returns the names of the supported devices.
    pub fn devices(&self) -> impl Iterator<Item = &str> {
        // This prefix is the same in releases up to 0.6.
        self.strip_prefixes(&["device_api."])
    }

    /// Returns the names of the functions of the Relax VM, without `vm.builtin.`.
    pub fn builtins(&self) -> impl Iterator<Item = &str> {
        self.strip_prefixes(&["vm.builtin."])
    }

    fn strip_prefixes<'n>(&'n self, prefixes: &'n [&'n str]) -> impl Iterator<Item = &'n str> {
        self.functions
            .iter()
            .filter_map(move |name| prefixes.iter().find_map(|prefix| name.strip_prefix(prefix)))
    }
}
