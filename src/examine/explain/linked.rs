//! The runtime that an image needs, by the functions of TVM that it calls and defines. Nothing is executed.

use crate::blob::container::{
    DynamicNames, File, FileForm, Linkage, Role, is_cpp_interface, is_interface, linkage,
};
use crate::examine::loading::{Load, LoadOutcome, exported};
use crate::release::{Release, Releases};
use serde_json::{Value, json};

/// The linkage of an image; of what is linked first, what its symbols need and define together.
pub(super) struct LinkedImage<'a> {
    linkage: Linkage<'a>,
    /// The names of TVM's C++ interface that it needs; ELF only.
    cpp: Vec<&'a [u8]>,
    /// Whether the loader of a system opens the file.
    is_image: bool,
}

/// The parts of an image that `explain` judges.
const LOOKED_AT: &str = "machine, needed libraries, symbols and the library binary; not the other headers and tables of the file, nor instructions and data";

/// What stands in the way on a machine; nothing where none was looked at.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct MachineFindings {
    /// What is wrong with the machine or the system.
    pub foreign: Option<String>,
    /// The libraries that are needed, and whether each was found; empty where they were not looked for.
    pub libraries: Vec<(String, bool)>,
    /// The libraries that those need in turn and that were not found, each behind the one that needs it.
    pub indirect: Vec<(String, String)>,
    /// The versions of symbols that are needed and that the library which was found does not have: the library, and the version.
    pub versions: Vec<(String, String)>,
    /// What it calls and none of those libraries defines, nor any that every program of TVM has.
    pub absent: Vec<String>,
}

impl<'a> LinkedImage<'a> {
    /// Reads the linkage of `file`, which was opened from `bytes`; of what is linked first, what its symbols need together.
    pub(super) fn of(file: &'a File<'a>, bytes: &'a [u8]) -> LinkedImage<'a> {
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

    /// Returns what "loads" rests on; `None` where no system's loader opens the file.
    pub(super) fn looked_at(&self) -> Option<&'static str> {
        self.is_image.then_some(LOOKED_AT)
    }

    /// Whether a runtime of TVM is in it, alone or linked to compiled code.
    ///
    /// A runtime defines functions that compiled code only calls.
    pub(super) fn is_runtime(&self) -> bool {
        self.linkage.is_runtime()
    }

    /// Whether its objects register themselves with the runtime that they are linked to.
    pub(super) fn is_system_library(&self) -> bool {
        self.linkage
            .calls
            .iter()
            .any(|name| INITIALIZERS.contains(name))
    }

    /// Whether it registers functions or types with a runtime.
    pub(super) fn registers(&self) -> bool {
        self.linkage.calls.iter().any(|name| is_registration(name))
    }

    /// How many functions of TVM's C interface it defines.
    pub(super) fn defines(&self) -> usize {
        self.linkage.defines.len()
    }

    /// The releases whose C interface it defines and calls, as far as it knows their functions.
    pub(super) fn releases(&self) -> Option<Releases> {
        let names = self.linkage.defines.iter().chain(&self.linkage.calls);
        let known = names.map(|name| exported(name));
        // A function that no release exports says nothing of the release.
        let known: Vec<_> = known.filter(|ranges| !ranges.is_empty()).collect();
        let has_all = |release: &Release| {
            let has = |ranges: &&[Releases]| ranges.iter().any(|range| range.contains(*release));
            known.iter().all(has)
        };
        let since = self.linkage.since().unwrap_or(Releases::ALL).since;
        // A release that lacks one of these functions is not that of the runtime.
        let fitting: Vec<Release> = Release::all()
            .filter(|release| *release >= since)
            .filter(has_all)
            .collect();
        Some(Releases {
            since: *fitting.first()?,
            until: *fitting.last()?,
        })
    }

    /// Returns `load`, unless functions are called that `release` does not have.
    ///
    /// The table of exports says so: a function that is not in it may come from another library, and changes nothing.
    pub(super) fn judge(&self, release: Release, load: Load) -> Load {
        let load = match (load.outcome, self.cpp.as_slice()) {
            (LoadOutcome::Loads, [first, more @ ..]) => Load::whole(format!(
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
        // MOD-26: what no release exports is looked for in other libraries, and is not missing here.
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
        // MOD-26: functions are bound on first use unless the library was linked with `-z now`, and then `dlopen` fails.
        if self.linkage.binds_now {
            return Load::fails(format!(
                "it cannot be opened: it calls {}, which this release does not have",
                words(&missing)
            ));
        }
        // BLOB-60, BLOB-67: an initializer of a system library calls it, before anything returns to TVM.
        // What is linked first has no table of initializers.
        let initializes = !self.is_image || self.linkage.has_initializers;
        let called = missing.iter().copied();
        let called: Vec<&str> = called.filter(|name| INITIALIZERS.contains(name)).collect();
        if initializes && !called.is_empty() {
            return Load::fails(format!(
                "it ends the process when it is opened: an initializer calls {}, which this release does not have",
                words(&called)
            ));
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
            ));
        }
        // MOD-26: what an initializer calls is needed at once. Which functions it calls is in its code.
        if initializes && missing.iter().any(|name| is_called_early(name)) {
            return Load::unknown(format!(
                "it calls {}, which this release does not have: the process ends when the library is opened if an initializer does so, as one that registers does",
                words(&missing)
            ));
        }
        match load.outcome {
            LoadOutcome::Loads => Load::silent(format!(
                "it calls {}, which this release does not have: opening it fails, or the first such call ends the process",
                words(&missing)
            )),
            _ => load,
        }
    }

    /// What is to be known of a library that a runtime is linked into; `None` for any other.
    pub(super) fn runtime_remark(&self) -> Option<String> {
        self.is_runtime().then(|| {
            let releases = match self.releases() {
                Some(releases) => format!(", as {} have them", super::library::plain(releases)),
                None => String::new(),
            };
            format!(
                "It is a TVM runtime as well: it defines {} functions of TVM's C interface{releases}. A process that has loaded another runtime has two then, each with its own registry and types: what is registered with one is not found by the other, and whose functions are called is a matter of the order in which they were opened. Link the compiled code without the runtime, or load it into a process that has no other.",
                self.defines()
            )
        })
    }

    /// What is to be known of a file in which no symbol is one of TVM.
    pub(super) fn unmarked(&self) -> &'static str {
        let is_linked = |name: &&str| name.contains("libtvm");
        match self.linkage.libraries.iter().any(is_linked) {
            true => {
                "No symbol in it is one that TVM compiles; it is linked to a library of TVM: an extension, which registers functions through C++ when it is opened, or a part of TVM. Its functions are found by the names that it registers."
            }
            false => {
                "It holds no TVM library: no symbol in it is one of TVM. Whatever functions it has are taken for packed ones up to 0.21."
            }
        }
    }

    /// What is called that no release has.
    ///
    /// The first 8 of them, and how many more; `None` without any.
    pub(super) fn remark(&self) -> Option<String> {
        // Not an error of a release: a library that is linked beside TVM's may define them.
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

/// The functions that only initializers call: they register what a system library has (BLOB-60, BLOB-67).
const INITIALIZERS: [&str; 2] = [
    "TVMBackendRegisterSystemLibSymbol",
    "TVMFFIEnvModRegisterSystemLibSymbol",
];

/// The names of TVM's C++ interface that an image needs.
pub(crate) fn cpp_interface(form: FileForm, bytes: &[u8]) -> Vec<&[u8]> {
    let names = match form {
        FileForm::ElfShared => DynamicNames::read(bytes),
        _ => None,
    };
    let mut wanted = names.map(|names| names.wanted).unwrap_or_default();
    wanted.retain(|name| is_cpp_interface(name));
    wanted
}

/// Whether a function registers functions or types.
fn is_registration(name: &str) -> bool {
    name.starts_with("TVMFFIFunctionSetGlobal")
        || name.starts_with("TVMFFITypeRegister")
        || name == "TVMFuncRegisterGlobal"
}

/// Whether extensions call a function in initializers: it registers, or looks up what is registered.
fn is_called_early(name: &str) -> bool {
    is_registration(name)
        || matches!(
            name,
            "TVMFuncGetGlobal" | "TVMFFIFunctionGetGlobal" | "TVMFFITypeGetOrAllocIndex"
        )
}

/// What the library will call and define that is linked of the parts of `file`.
fn unlinked<'a>(file: &'a File<'a>) -> Linkage<'a> {
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

/// Ranges of releases in words: `of 0.21 and from 0.24 on`.
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
    /// Whether nothing stands in the way.
    pub fn is_good(&self) -> bool {
        let found = self.libraries.iter().all(|(_, found)| *found);
        let whole = self.indirect.is_empty() && self.versions.is_empty();
        self.foreign.is_none() && found && whole && self.absent.is_empty()
    }

    /// The JSON form.
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

/// Whether a file of this form is opened by the loader of a system.
///
/// Executables are none of them: a loader opens libraries only.
pub const fn is_image(form: FileForm) -> bool {
    matches!(
        form,
        FileForm::ElfShared | FileForm::MachOShared | FileForm::MachOFat | FileForm::PeShared
    )
}
