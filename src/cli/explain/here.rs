//! What the loader of the system finds before TVM reads anything: the machine, the libraries that are needed, the functions
//! of TVM that are called. Nothing is executed.

use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};
use tvmspec::blob::container::{File, Form, Linkage, foreign, linkage};
use tvmspec::examine::loading::{Load, Outcome, exported};
use tvmspec::release::{Release, Releases};

/// An image and what it is linked to; nothing for any other file.
#[derive(Default)]
pub(super) struct Linked<'a>(Linkage<'a>);

/// What stands in the way on this machine.
#[derive(Clone, Default)]
pub(super) struct Here {
    /// What is wrong with the machine or the system.
    foreign: Option<String>,
    /// The libraries that are needed, and whether each was found; empty where they were not looked for.
    libraries: Vec<(String, bool)>,
}

impl<'a> Linked<'a> {
    pub(super) fn of(file: &File<'a>, bytes: &'a [u8]) -> Linked<'a> {
        Linked(linkage(file.form, bytes))
    }

    /// Whether it is a runtime of TVM instead of something that TVM compiled.
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
        let known: Vec<_> = known.by_ref().filter(|ranges| !ranges.is_empty()).collect();
        let has_all = |release: &Release| {
            let has = |ranges: &&[Releases]| ranges.iter().any(|range| range.contains(*release));
            known.iter().all(has)
        };
        let fitting: Vec<Release> = Release::all().filter(has_all).collect();
        Some(Releases {
            since: *fitting.first()?,
            until: *fitting.last()?,
        })
    }

    /// `load`, unless functions are called that `release` does not have.
    pub(super) fn judge(&self, release: Release, load: Load) -> Load {
        if load.outcome != Outcome::Loads {
            return load;
        }
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
        let names = missing.join(", ");
        match self.0.binds_now {
            true => Load::fails(format!(
                "it cannot be opened: it calls {names}, which this release does not have"
            )),
            false => Load::silent(format!(
                "it calls {names}, which this release does not have: opening it fails, or the first such call ends the process"
            )),
        }
    }

    /// What is called that no release has.
    pub(super) fn remark(&self) -> Option<String> {
        let strange = self.0.calls.iter().filter(|name| exported(name).is_empty());
        let strange: Vec<&str> = strange.copied().take(8).collect();
        (!strange.is_empty()).then(|| {
            format!("It calls {}, which the C interface of no release from 0.2 to 0.27 has: another library has to define it.", strange.join(", "))
        })
    }
}

fn since(ranges: &[Releases]) -> String {
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

/// Looks for what an image needs, as the loader of this system would.
pub(super) fn here(file: &File<'_>, bytes: &[u8], linked: &Linked<'_>, path: &Path) -> Here {
    let image = matches!(
        file.form,
        Form::ElfShared | Form::MachOShared | Form::MachOFat | Form::PeShared
    );
    if !image {
        return Here::default();
    }
    if let Some(foreign) = foreign(bytes) {
        return Here {
            foreign: Some(foreign),
            libraries: Vec::new(),
        };
    }
    let mut libraries = Vec::new();
    if file.form == Form::ElfShared && cfg!(target_os = "linux") {
        let folders = folders(&linked.0, path);
        let found = |name: &str| is_here(name, &folders);
        // Where not even the C library is found, this system has a way of its own.
        if found("libc.so.6") || found("libc.so") {
            for name in &linked.0.libraries {
                libraries.push(((*name).to_owned(), found(name)));
            }
        }
    }
    Here {
        foreign: None,
        libraries,
    }
}

/// Whether a library of this name can be found. Those of TVM itself are there once TVM is imported.
fn is_here(name: &str, folders: &[PathBuf]) -> bool {
    if name.starts_with("libtvm_") || name.starts_with("libtvm.") || name.starts_with("linux-vdso")
    {
        return true;
    }
    if name.contains('/') {
        return Path::new(name).exists();
    }
    let in_cache = || {
        let cache = fs::read("/etc/ld.so.cache").unwrap_or_else(|_| Vec::new());
        let wanted = [b"\0", name.as_bytes(), b"\0"].concat();
        cache.windows(wanted.len()).any(|bytes| bytes == wanted)
    };
    folders.iter().any(|folder| folder.join(name).exists()) || in_cache()
}

/// Where the loader of Linux looks, in order: the file's own paths, the environment, the system's folders.
fn folders(linkage: &Linkage<'_>, path: &Path) -> Vec<PathBuf> {
    let origin = fs::canonicalize(path).ok();
    let origin = origin.as_deref().and_then(Path::parent);
    let origin = origin.map_or(String::new(), |folder| folder.display().to_string());
    let own = linkage.search.iter().flat_map(|paths| paths.split(':'));
    let own = own.map(|path| {
        path.replace("$ORIGIN", &origin)
            .replace("${ORIGIN}", &origin)
    });
    let named = env::var("LD_LIBRARY_PATH").ok();
    let named = named
        .iter()
        .flat_map(|paths| paths.split(':'))
        .map(str::to_owned);
    let arch = env::consts::ARCH;
    let system = [
        "/lib".to_owned(),
        "/usr/lib".to_owned(),
        "/lib64".to_owned(),
        "/usr/lib64".to_owned(),
        format!("/lib/{arch}-linux-gnu"),
        format!("/usr/lib/{arch}-linux-gnu"),
        "/usr/local/lib".to_owned(),
    ];
    own.chain(named)
        .chain(system)
        .filter(|folder| !folder.is_empty())
        .map(PathBuf::from)
        .collect()
}

impl Here {
    /// Whether nothing stands in the way.
    pub(super) fn is_good(&self) -> bool {
        self.foreign.is_none() && self.libraries.iter().all(|(_, found)| *found)
    }

    /// What stands in the way, in lines; empty if nothing does.
    pub(super) fn to_text(&self) -> String {
        let mut out = String::new();
        let missing = self.libraries.iter().filter(|(_, found)| !found);
        let missing: Vec<&str> = missing.map(|(name, _)| name.as_str()).collect();
        let mut say = |text: &str| {
            out.push('\n');
            for line in crate::cli::table::wrap(text, 96) {
                let _ = writeln!(out, "{line}");
            }
        };
        if let Some(foreign) = &self.foreign {
            say(&format!("NOT ON THIS MACHINE: {foreign}."));
        }
        if !missing.is_empty() {
            say(&format!(
                "NOT ON THIS MACHINE: it needs {}, which cannot be found here. Install it, or name its folder in LD_LIBRARY_PATH.",
                missing.join(", ")
            ));
        }
        out
    }

    pub(super) fn to_json(&self) -> Value {
        let libraries: Vec<Value> = self
            .libraries
            .iter()
            .map(|(name, found)| json!({ "name": name, "found": found }))
            .collect();
        json!({ "good": self.is_good(), "machine": self.foreign, "libraries": libraries })
    }
}
