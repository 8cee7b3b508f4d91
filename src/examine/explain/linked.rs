//! The runtime that an image needs, by the functions of TVM that it calls and defines. Nothing is executed.

use crate::blob::container::{File, FileForm, Linkage, linkage};
use crate::examine::loading::{Load, LoadOutcome, exported};
use crate::release::{Release, Releases};
use serde_json::{Value, json};

/// The linkage of an image; empty for any other file.
pub(super) struct LinkedImage<'a> {
    linkage: Linkage<'a>,
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
    /// What it calls and none of those libraries defines, nor any that every program of TVM has.
    pub absent: Vec<String>,
}

impl<'a> LinkedImage<'a> {
    /// Reads the linkage of `file`, which was opened from `bytes`. It is empty for a file that is not an image.
    pub(super) fn of(file: &File<'a>, bytes: &'a [u8]) -> LinkedImage<'a> {
        LinkedImage {
            linkage: linkage(file.form, bytes),
            is_image: is_image(file.form),
        }
    }

    /// Returns what "loads" rests on; `None` where no system's loader opens the file.
    pub(super) fn looked_at(&self) -> Option<&'static str> {
        self.is_image.then_some(LOOKED_AT)
    }

    /// Whether it is a runtime of TVM instead of something that TVM compiled.
    ///
    /// A runtime defines functions that a compiled library never does, only calls.
    pub(super) fn is_runtime(&self) -> bool {
        self.linkage.is_runtime()
    }

    /// How many functions of TVM's C interface it defines.
    pub(super) fn defines(&self) -> usize {
        self.linkage.defines.len()
    }

    /// The releases whose C interface it defines, as far as it knows their functions.
    pub(super) fn releases(&self) -> Option<Releases> {
        let mut known = self.linkage.defines.iter().map(|name| exported(name));
        // A function that no release exports says nothing of the release.
        let known: Vec<_> = known.by_ref().filter(|ranges| !ranges.is_empty()).collect();
        let has_all = |release: &Release| {
            let has = |ranges: &&[Releases]| ranges.iter().any(|range| range.contains(*release));
            known.iter().all(has)
        };
        // A release that lacks one of these functions is not that of the runtime.
        let fitting: Vec<Release> = Release::all().filter(has_all).collect();
        Some(Releases {
            since: *fitting.first()?,
            until: *fitting.last()?,
        })
    }

    /// Returns `load`, unless functions are called that `release` does not have.
    ///
    /// The table of exports says so: a function that is not in it may come from another library, and changes nothing.
    pub(super) fn judge(&self, release: Release, load: Load) -> Load {
        if load.outcome != LoadOutcome::Loads {
            return load;
        }
        // MOD-26: what no release exports is looked for in other libraries, and is not missing here.
        let is_missing = |name: &&&str| {
            let ranges = exported(name);
            !ranges.is_empty() && !ranges.iter().any(|range| range.contains(release))
        };
        let missing: Vec<String> = self
            .linkage
            .calls
            .iter()
            .filter(is_missing)
            .map(|name| format!("`{name}` ({})", since(exported(name))))
            .collect();
        if missing.is_empty() {
            return load;
        }
        // MOD-26: functions are bound on first use unless the library was linked with `-z now`, and then `dlopen` fails.
        let names = missing.join(", ");
        if self.linkage.binds_now {
            Load::fails(format!(
                "it cannot be opened: it calls {names}, which this release does not have"
            ))
        } else {
            Load::silent(format!(
                "it calls {names}, which this release does not have: opening it fails, or the first such call ends the process"
            ))
        }
    }

    /// What is called that no release has.
    ///
    /// The first 8 of them; `None` without any.
    pub(super) fn remark(&self) -> Option<String> {
        // Not an error of a release: a library that is linked beside TVM's may define them.
        let strange = self
            .linkage
            .calls
            .iter()
            .filter(|name| exported(name).is_empty());
        let strange: Vec<&str> = strange.copied().take(8).collect();
        (!strange.is_empty()).then(|| {
            format!("It calls {}, which the C interface of no release from 0.2 to 0.27 has: another library has to define it.", strange.join(", "))
        })
    }
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
        self.foreign.is_none() && found && self.absent.is_empty()
    }

    /// The JSON form.
    pub fn to_json(&self) -> Value {
        let libraries: Vec<Value> = self
            .libraries
            .iter()
            .map(|(name, found)| json!({ "name": name, "found": found }))
            .collect();
        json!({ "good": self.is_good(), "machine": self.foreign, "libraries": libraries, "absent": self.absent })
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
