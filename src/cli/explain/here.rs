//! What the loader of the system finds before TVM reads anything: the machine, the libraries that are needed, the functions
//! of TVM that are called. Nothing is executed.

use crate::cli::input::Input;
use serde_json::{Value, json};
use std::cell::LazyCell;
use std::collections::HashSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};
use tvmspec::blob::container::{File, Form, Linkage, foreign, linkage};
use tvmspec::examine::loading::elf::{self, Looked};
use tvmspec::examine::loading::{Load, Outcome, Stop, exported};
use tvmspec::release::{Release, Releases};

/// An image, what it is linked to, and what the dynamic loader finds in its tables; nothing for any other file.
pub(super) struct Linked<'a>(Linkage<'a>, Option<Result<Looked, Stop>>);

/// What stands in the way on this machine.
#[derive(Clone, Default)]
pub(super) struct Here {
    /// What is wrong with the machine or the system.
    foreign: Option<String>,
    /// The libraries that are needed, and whether each was found; empty where they were not looked for.
    libraries: Vec<(String, bool)>,
    /// What it calls and none of those libraries defines, nor any that every program of TVM has.
    absent: Vec<String>,
}

impl<'a> Linked<'a> {
    pub(super) fn of(file: &File<'a>, bytes: &'a [u8]) -> Linked<'a> {
        let tables = is_image(file.form).then(|| elf::tables(bytes));
        Linked(linkage(file.form, bytes), tables)
    }

    /// What "loads" rests on; `None` where no system's loader opens the file.
    pub(super) fn looked_at(&self) -> Option<&'static str> {
        match &self.1 {
            Some(Ok(looked)) => Some(looked.text()),
            Some(Err(_)) => Some(Looked::Tables.text()),
            None => None,
        }
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

    /// `load`, unless the dynamic loader does not come so far, or functions are called that `release` does not have.
    pub(super) fn judge(&self, release: Release, load: Load) -> Load {
        if let Some(Err(stop)) = &self.1
            && matches!(load.outcome, Outcome::Loads | Outcome::Silent)
        {
            return stop.clone().into();
        }
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
    if !is_image(file.form) {
        return Here::default();
    }
    if let Some(foreign) = foreign(bytes) {
        return Here {
            foreign: Some(foreign),
            ..Here::default()
        };
    }
    let (mut libraries, mut absent) = (Vec::new(), Vec::new());
    if file.form == Form::ElfShared && cfg!(target_os = "linux") {
        let folders = folders(&linked.0, path);
        let cache = LazyCell::new(|| fs::read("/etc/ld.so.cache").unwrap_or_else(|_| Vec::new()));
        let found = |name: &str| is_here(name, &folders, &cache);
        // Where not even the C library is found, this system has a way of its own.
        if found("libc.so.6") || found("libc.so") {
            for name in &linked.0.libraries {
                libraries.push(((*name).to_owned(), found(name)));
            }
            absent = self::absent(bytes, &linked.0, folders);
        }
    }
    Here {
        foreign: None,
        libraries,
        absent,
    }
}

/// Whether a file of this form is opened by the loader of a system.
const fn is_image(form: Form) -> bool {
    matches!(
        form,
        Form::ElfShared | Form::MachOShared | Form::MachOFat | Form::PeShared
    )
}

/// What every process has that loads libraries of TVM: C, C++ and what they are built on.
const USUAL: [&str; 7] = [
    "libc.so.6",
    "libm.so.6",
    "libdl.so.2",
    "libpthread.so.0",
    "librt.so.1",
    "libgcc_s.so.1",
    "libstdc++.so.6",
];

/// How many of the functions that are missing are listed.
const MOST_NAMED: usize = 64;

/// How many bytes of each.
const MOST_LETTERS: usize = 128;

/// Conversions of float16 that runtimes of TVM define for the code of LLVM.
const HALVES: [&str; 5] = [
    "__extendhfsf2",
    "__gnu_f2h_ieee",
    "__gnu_h2f_ieee",
    "__truncdfhf2",
    "__truncsfhf2",
];

/// How many libraries are read for what they define.
const MOST_READ: usize = 64;

/// What `bytes` calls and neither the libraries that it needs, theirs included, nor the usual ones define. Functions of TVM are judged
/// by release. Nothing is said where one of the libraries cannot be read: what it defines is not known.
fn absent(bytes: &[u8], linkage: &Linkage<'_>, folders: Vec<PathBuf>) -> Vec<String> {
    let mut wanted = elf::wanted(bytes);
    wanted.retain(|name| match str::from_utf8(name) {
        Ok(name) => exported(name).is_empty() && !HALVES.contains(&name),
        Err(_) => true,
    });
    let mut queue: Vec<String> = linkage
        .libraries
        .iter()
        .map(|name| (*name).to_owned())
        .collect();
    let needed = queue.len();
    queue.extend(USUAL.map(str::to_owned));
    // Libraries that need each other are read once.
    let mut known: HashSet<String> = queue.iter().cloned().collect();
    let mut next = 0;
    while !wanted.is_empty() && next < queue.len() {
        let path = folders
            .iter()
            .map(|folder| folder.join(&queue[next]))
            .find(|path| path.is_file());
        let path = path.filter(|_| next < MOST_READ);
        let Some(content) = path.and_then(|path| Input::open(&path).ok()) else {
            if next < needed || next >= needed + USUAL.len() {
                return Vec::new();
            }
            next += 1;
            continue;
        };
        let defined: HashSet<_> = elf::defined(content.bytes()).into_iter().collect();
        wanted.retain(|name| !defined.contains(name));
        for name in self::linkage(Form::ElfShared, content.bytes()).libraries {
            if known.insert(name.to_owned()) {
                queue.push(name.to_owned());
            }
        }
        next += 1;
    }
    let names = wanted.iter().take(MOST_NAMED);
    let text = |name: &&[u8]| {
        let name = name.get(..MOST_LETTERS).unwrap_or(name);
        String::from_utf8_lossy(name).into_owned()
    };
    names.map(text).collect()
}

/// Whether a library of this name can be found, in a folder or in the loader's `cache`. Those of TVM itself are there once
/// TVM is imported.
fn is_here(name: &str, folders: &[PathBuf], cache: &[u8]) -> bool {
    if name.starts_with("libtvm_") || name.starts_with("libtvm.") || name.starts_with("linux-vdso")
    {
        return true;
    }
    if name.contains('/') {
        return Path::new(name).exists();
    }
    let in_cache = || {
        let wanted = [b"\0", name.as_bytes(), b"\0"].concat();
        cache.windows(wanted.len()).any(|bytes| bytes == wanted)
    };
    folders.iter().any(|folder| folder.join(name).exists()) || in_cache()
}

/// How many folders of a file's own are looked in, and how long their names may be. A hostile file has more; nothing real does.
const MOST_FOLDERS: usize = 128;
const LONGEST_FOLDER: usize = 1024;

/// Where the loader of Linux looks, in order: the file's own paths, the environment, the system's folders.
fn folders(linkage: &Linkage<'_>, path: &Path) -> Vec<PathBuf> {
    let origin = fs::canonicalize(path).ok();
    let origin = origin.as_deref().and_then(Path::parent);
    let origin = origin.map_or(String::new(), |folder| folder.display().to_string());
    let own = linkage.search.iter().flat_map(|paths| paths.split(':'));
    let own = own.filter(|path| path.len() <= LONGEST_FOLDER);
    let own = own.take(MOST_FOLDERS).map(|path| {
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
        let found = self.libraries.iter().all(|(_, found)| *found);
        self.foreign.is_none() && found && self.absent.is_empty()
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
        } else if !self.absent.is_empty() {
            let names: Vec<String> = self
                .absent
                .iter()
                .take(8)
                .map(|name| format!("`{}`", name.escape_debug()))
                .collect();
            say(&format!(
                "NOT ON THIS MACHINE: it calls {}, which neither the libraries that it needs define here nor those of C and C++. Unless the program that opens it has them, opening it fails, or the first such call ends the process.",
                names.join(", ")
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
        json!({ "good": self.is_good(), "machine": self.foreign, "libraries": libraries, "absent": self.absent })
    }
}
