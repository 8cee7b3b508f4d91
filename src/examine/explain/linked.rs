//! What the loader of the system finds before TVM reads anything: the machine, the libraries that are needed, the functions
//! of TVM that are called. Nothing is executed.

use crate::blob::container::{File, FileForm, Linkage, linkage};
use crate::examine::loading::elf::{self, ElfCoverage};
use crate::examine::loading::{Load, LoadOutcome, Stop, exported};
use crate::release::{Release, Releases};
use serde_json::{Value, json};

/// An image, what it is linked to, and what the dynamic loader finds in its tables; nothing for any other file.
pub(super) struct LinkedImage<'a>(Linkage<'a>, Option<Result<ElfCoverage, Stop>>);

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
    /// Reads what `file`, opened from `bytes`, is linked to. A file that is no image has nothing, and fails nowhere.
    pub(super) fn of(file: &File<'a>, bytes: &'a [u8]) -> LinkedImage<'a> {
        let tables = is_image(file.form).then(|| elf::tables(bytes));
        LinkedImage(linkage(file.form, bytes), tables)
    }

    /// What "loads" rests on; `None` where no system's loader opens the file.
    pub(super) fn looked_at(&self) -> Option<&'static str> {
        match &self.1 {
            Some(Ok(looked)) => Some(looked.text()),
            // They were read up to the one at fault, which is what the verdict rests on.
            Some(Err(_)) => Some(ElfCoverage::Tables.text()),
            None => None,
        }
    }

    /// Whether it is a runtime of TVM instead of something that TVM compiled.
    ///
    /// A runtime defines functions that a compiled library never does, only calls.
    pub(super) fn is_runtime(&self) -> bool {
        self.0.is_runtime()
    }

    /// How many functions of TVM's C interface it defines.
    pub(super) fn defines(&self) -> usize {
        self.0.defines.len()
    }

    /// The releases whose C interface it defines, as far as it knows their functions.
    pub(super) fn releases(&self) -> Option<Releases> {
        let mut known = self.0.defines.iter().map(|name| exported(name));
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

    /// `load`, unless the dynamic loader does not come so far, or functions are called that `release` does not have.
    ///
    /// The second is known by the table of exports: a function that is not in it may come from another library, and changes nothing.
    pub(super) fn judge(&self, release: Release, load: Load) -> Load {
        // Where TVM itself fails, the file does not load in either case, and TVM's own reason is the more precise one.
        if let Some(Err(stop)) = &self.1
            && matches!(load.outcome, LoadOutcome::Loads | LoadOutcome::Silent)
        {
            return stop.clone().into();
        }
        if load.outcome != LoadOutcome::Loads {
            return load;
        }
        // MOD-26: what no release exports is looked for in other libraries, and is not missing here.
        let is_missing = |name: &&&str| {
            let ranges = exported(name);
            !ranges.is_empty() && !ranges.iter().any(|range| range.contains(release))
        };
        let missing: Vec<String> = self
            .0
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
        if self.0.binds_now {
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
        let strange = self.0.calls.iter().filter(|name| exported(name).is_empty());
        let strange: Vec<&str> = strange.copied().take(8).collect();
        (!strange.is_empty()).then(|| {
            format!("It calls {}, which the C interface of no release from 0.2 to 0.27 has: another library has to define it.", strange.join(", "))
        })
    }
}

/// Ranges of releases in words: `of 0.21 and from 0.24 on`.
fn since(ranges: &[Releases]) -> String {
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
