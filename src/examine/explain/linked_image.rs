//! The runtime that an image needs, from the functions of TVM that it calls and defines. Nothing is executed.

use crate::blob::container::{
    ContainerFile, DynamicNames, FileForm, Linkage, Role, is_cpp_interface, is_interface, linkage,
};
use crate::examine::loading::{Load, LoadCause, LoadOutcome, exported};
use crate::release::{Release, Releases};
use serde_json::{Value, json};

/// The linkage of an image. For files that are not linked yet, the combined symbols that they need and define.
pub(super) struct LinkedImage<'a> {
    linkage: Linkage<'a>,
    /// The names that the file needs from TVM's C++ interface. Read from ELF only.
    cpp: Vec<&'a [u8]>,
    /// True if the system loader can open the file.
    is_image: bool,
}

/// The parts of an image that `explain` judges.
const LOOKED_AT: &str = "machine, needed libraries, symbols and the library binary; not the other headers and tables of the file, nor instructions and data";

/// The obstacles to loading on a machine; empty if no machine was examined.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct MachineFindings {
    /// The reason why the machine or the system cannot run the file at all.
    pub foreign: Option<String>,
    /// The libraries that are needed, and whether each was found; empty if they were not searched.
    pub libraries: Vec<(String, bool)>,
    /// The indirectly needed libraries that were not found: the library that needs each, and its name.
    pub indirect: Vec<(String, String)>,
    /// The needed symbol versions that the found library lacks: the library, and the version.
    pub versions: Vec<(String, String)>,
    /// Functions that the file calls and that neither those libraries nor the libraries of any TVM program define.
    pub absent: Vec<String>,
}

impl<'a> LinkedImage<'a> {
    /// Reads the linkage of `file`, which was opened from `bytes`. For files that are still to be linked, combines the needs of their
    /// symbols.
    pub(super) fn read(file: &'a ContainerFile<'a>, bytes: &'a [u8]) -> LinkedImage<'a> {
        let is_image = is_image(file.form);
        let linkage = if is_image && file.form != FileForm::MachOFat {
            linkage(file.form, bytes)
        } else {
            unlinked(file)
        };
        LinkedImage {
            linkage,
            cpp: cpp_interface(file.form, bytes),
            is_image,
        }
    }

    /// Returns the parts of the file that a verdict of "loads" is based on; `None` if no system loader opens the file.
    pub(super) fn looked_at(&self) -> Option<&'static str> {
        self.is_image.then_some(LOOKED_AT)
    }

    /// Returns whether the file contains a TVM runtime, alone or linked to compiled code.
    ///
    /// A runtime defines functions that compiled code only calls.
    pub(super) fn is_runtime(&self) -> bool {
        self.linkage.is_runtime()
    }

    /// Returns whether the objects of the file register themselves with the runtime that they are linked to.
    pub(super) fn is_system_library(&self) -> bool {
        self.linkage
            .calls
            .iter()
            .any(|name| INITIALIZERS.contains(name))
    }

    /// Returns whether the file registers functions or types with a runtime.
    pub(super) fn registers(&self) -> bool {
        self.linkage.calls.iter().any(|name| is_registration(name))
    }

    /// Returns how many functions of TVM's C interface the file defines.
    pub(super) fn defines(&self) -> usize {
        self.linkage.defines.len()
    }

    /// Returns the releases that have all known functions of TVM's C interface that it defines or calls.
    pub(super) fn releases(&self) -> Option<Releases> {
        let names = self.linkage.defines.iter().chain(&self.linkage.calls);
        let known = names.map(|name| exported(name));
        // A function that no release exports does not indicate a release.
        let known: Vec<_> = known.filter(|ranges| !ranges.is_empty()).collect();
        let has_all = |release: &Release| {
            let has = |ranges: &&[Releases]| ranges.iter().any(|range| range.contains(*release));
            known.iter().all(has)
        };
        let since = self.linkage.since().unwrap_or(Releases::ALL).since;
        // A release that lacks one of these functions cannot be the release of the runtime.
        let fitting: Vec<Release> = Release::all()
            .filter(|release| *release >= since)
            .filter(has_all)
            .collect();
        Some(Releases {
            since: *fitting.first()?,
            until: *fitting.last()?,
        })
    }

    /// Returns `load`, or a worse verdict if the file calls functions that `release` does not have.
    ///
    /// The table of exports decides. A function that is not in the table may come from another library and has no effect here.
    pub(super) fn judge(&self, release: Release, load: Load) -> Load {
        let load = match (load.outcome, self.cpp.as_slice()) {
            (LoadOutcome::Loads, [first, more @ ..]) => Load::loads(format!(
                "{}; and if the runtime is the one that it was compiled against: it calls C++ functions of TVM, whose names differ between releases and compilers (`{}`{})",
                load.why,
                String::from_utf8_lossy(first.get(..80).unwrap_or(first)).escape_debug(),
                match more.len() {
                    0 => String::new(),
                    more => format!(" and {more} more"),
                },
            )),
            _ => load,
        };
        // MOD-26: a function that no release exports is expected in another library, and is not missing here.
        let is_missing = |name: &&&str| {
            let ranges = exported(name);
            !ranges.is_empty() && !ranges.iter().any(|range| range.contains(release))
        };
        let missing: Vec<&str> = self
            .linkage
            .calls
            .iter()
            .filter(is_missing)
            .copied()
            .collect();
        let words = |names: &[&str]| {
            let names = names.iter();
            let names: Vec<String> = names
                .map(|name| format!("`{name}` ({})", since(exported(name))))
                .collect();
            names.join(", ")
        };
        if missing.is_empty() || load.outcome == LoadOutcome::Fails {
            return load;
        }
        // MOD-26: functions are bound on first use. With `-z now` they are bound by `dlopen`, which then fails.
        if self.linkage.binds_now {
            return Load::fails(format!(
                "it cannot be opened: it calls {}, which this release does not have",
                words(&missing)
            ))
            .with_cause(LoadCause::MissingFunctions);
        }
        // BLOB-60, BLOB-67: an initializer of a system library calls it before `dlopen` returns to TVM.
        // A file that is still to be linked has no table of initializers.
        let initializes = !self.is_image || self.linkage.has_initializers;
        let called = missing.iter().copied();
        let called: Vec<&str> = called.filter(|name| INITIALIZERS.contains(name)).collect();
        if initializes && !called.is_empty() {
            return Load::fails(format!(
                "it ends the process when it is opened: an initializer calls {}, which this release does not have",
                words(&called)
            ))
            .with_cause(LoadCause::MissingFunctions);
        }
        let bound: Vec<&str> = missing
            .iter()
            .copied()
            .filter(|name| self.linkage.bound_early.contains(name))
            .collect();
        if !bound.is_empty() {
            return Load::fails(format!(
                "it cannot be opened: its data holds the address of {}, which this release does not have",
                words(&bound)
            ))
            .with_cause(LoadCause::MissingFunctions);
        }
        // MOD-26: functions that an initializer calls are needed at once. Only its code shows which functions it calls.
        if initializes && missing.iter().any(|name| is_called_early(name)) {
            return Load::unknown(format!(
                "it calls {}, which this release does not have: the process ends when the library is opened if an initializer does so, as one that registers does",
                words(&missing)
            ))
            .with_cause(LoadCause::MissingFunctions);
        }
        match load.outcome {
            LoadOutcome::Loads => Load::silent(format!(
                "it calls {}, which this release does not have: opening it fails, or the first such call ends the process",
                words(&missing)
            ))
            .with_cause(LoadCause::MissingFunctions),
            _ => load,
        }
    }

    /// Returns the remark on a library that a runtime is linked into; `None` for any other file.
    pub(super) fn runtime_remark(&self) -> Option<String> {
        self.is_runtime().then(|| {
            let releases = match self.releases() {
                Some(releases) => format!(", as {} have them", super::library::describe_releases(releases)),
                None => String::new(),
            };
            format!(
                "It is a TVM runtime as well: it defines {} functions of TVM's C interface{releases}. A process that has loaded another runtime has two then, each with its own registry and types: what is registered with one is not found by the other, and whose functions are called is a matter of the order in which they were opened. Link the compiled code without the runtime, or load it into a process that has no other.",
                self.defines()
            )
        })
    }

    /// Returns the remark on a file in which no symbol is one of TVM.
    pub(super) fn unmarked(&self) -> &'static str {
        let is_linked = |name: &&str| name.contains("libtvm");
        if self.linkage.libraries.iter().any(is_linked) {
            "No symbol in it is one that TVM compiles; it is linked to a library of TVM: an extension, which registers functions through C++ when it is opened, or a part of TVM. Its functions are found by the names that it registers."
        } else {
            "It holds no TVM library: no symbol in it is one of TVM. Whatever functions it has are taken for packed ones up to 0.21."
        }
    }

    /// Returns a remark on called functions that no release has; `None` if every called function is known.
    ///
    /// The remark names the first 8 functions and counts the others.
    pub(super) fn remark(&self) -> Option<String> {
        // Not an error: a library other than TVM may define them.
        let strange = self
            .linkage
            .calls
            .iter()
            .filter(|name| exported(name).is_empty());
        let strange: Vec<&str> = strange.copied().collect();
        let first = strange.get(..8).unwrap_or(&strange);
        let more = match strange.len().saturating_sub(first.len()) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        (!strange.is_empty()).then(|| {
            format!("It calls {}{more}, which the C interface of no release from 0.2 to 0.27 has: another library has to define it.", first.join(", "))
        })
    }
}

/// The functions that only initializers call. They register the content of a system library (BLOB-60, BLOB-67).
const INITIALIZERS: [&str; 2] = [
    "TVMBackendRegisterSystemLibSymbol",
    "TVMFFIEnvModRegisterSystemLibSymbol",
];

/// Returns the names of TVM's C++ interface that an image needs.
pub(crate) fn cpp_interface(form: FileForm, bytes: &[u8]) -> Vec<&[u8]> {
    let names = match form {
        FileForm::ElfShared => DynamicNames::read(bytes),
        _ => None,
    };
    let mut wanted = names.map(|names| names.wanted).unwrap_or_default();
    wanted.retain(|name| is_cpp_interface(name));
    wanted
}

/// Returns whether a function registers functions or types.
fn is_registration(name: &str) -> bool {
    name.starts_with("TVMFFIFunctionSetGlobal")
        || name.starts_with("TVMFFITypeRegister")
        || name == "TVMFuncRegisterGlobal"
}

/// Returns whether extensions call this function in initializers, to register or look up something.
fn is_called_early(name: &str) -> bool {
    is_registration(name)
        || matches!(
            name,
            "TVMFuncGetGlobal" | "TVMFFIFunctionGetGlobal" | "TVMFFITypeGetOrAllocIndex"
        )
}

/// Returns the functions that a library linked from the parts of `file` will call and define.
fn unlinked<'a>(file: &'a ContainerFile<'a>) -> Linkage<'a> {
    let mut linkage = Linkage::default();
    for symbol in file.parts.iter().flat_map(|part| &part.symbols) {
        match &symbol.role {
            Role::Needs(name) if is_interface(name) => linkage.calls.push(name),
            Role::Defines(name) => linkage.defines.push(name),
            _ => {}
        }
    }
    for list in [&mut linkage.calls, &mut linkage.defines] {
        list.sort_unstable();
        list.dedup();
    }
    let Linkage { calls, defines, .. } = &mut linkage;
    calls.retain(|name| defines.binary_search(name).is_err());
    linkage
}

/// Describes ranges of releases in words: `of 0.21 and from 0.24 on`.
pub(super) fn since(ranges: &[Releases]) -> String {
    // A range that ends with the last known release has no known end.
    let ranges: Vec<String> = ranges
        .iter()
        .map(|range| match *range {
            Releases { since, until } if since == until => format!("of {since}"),
            Releases { since, until } if until == Release::LAST => format!("from {since} on"),
            Releases { since, until } => format!("of {since} to {until}"),
        })
        .collect();
    ranges.join(" and ")
}

impl MachineFindings {
    /// Returns whether there is no obstacle.
    pub fn is_good(&self) -> bool {
        let found = self.libraries.iter().all(|(_, found)| *found);
        let whole = self.indirect.is_empty() && self.versions.is_empty();
        self.foreign.is_none() && found && whole && self.absent.is_empty()
    }

    /// Returns the JSON form.
    pub fn to_json(&self) -> Value {
        let libraries: Vec<Value> = self
            .libraries
            .iter()
            .map(|(name, found)| json!({ "name": name, "found": found }))
            .collect();
        let pairs = |pairs: &[(String, String)], second: &str| -> Vec<Value> {
            let pairs = pairs.iter();
            pairs
                .map(|(library, other)| json!({ "library": library, second: other }))
                .collect()
        };
        json!({
            "good": self.is_good(),
            "machine": self.foreign,
            "libraries": libraries,
            "indirect": pairs(&self.indirect, "needs"),
            "versions": pairs(&self.versions, "version"),
            "absent": self.absent,
        })
    }
}

/// Returns whether a system loader opens a file of this form.
///
/// A system loader opens libraries, but not executables.
pub const fn is_image(form: FileForm) -> bool {
    matches!(
        form,
        FileForm::ElfShared | FileForm::MachOShared | FileForm::MachOFat | FileForm::PeShared
    )
}
