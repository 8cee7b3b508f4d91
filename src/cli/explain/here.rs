//! What the loader of this system finds before TVM reads anything: the machine, the libraries that are needed, the functions that
//! none of them has. Nothing is executed.

use super::needed::needed;
use crate::cli::input::Input;
use std::cell::LazyCell;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::{env, fs};
use tvmspec::blob::container::{self, DynamicNames, FileForm, Linkage, foreign, linkage};
use tvmspec::examine::explain::{MachineFindings, is_image};
use tvmspec::examine::loading::exported;

/// Looks for what an image needs, as the loader of this system would. `path` is that of the file, from which `$ORIGIN`
/// counts.
///
/// Empty for a file that no loader opens, for images of other systems than Linux, and where this system finds
/// libraries in a way that is not known here.
pub(super) fn here(form: FileForm, bytes: &[u8], path: &Path) -> MachineFindings {
    let mut here = MachineFindings::default();
    if !is_image(form) {
        return here;
    }
    // A loader rejects another machine before it looks for any library.
    if let Some(foreign) = foreign(bytes) {
        here.foreign = Some(foreign);
        return here;
    }
    if form == FileForm::ElfShared && cfg!(target_os = "linux") {
        let linkage = linkage(form, bytes);
        let folders = folders(&linkage, path);
        // musl has no cache: an empty one finds nothing, and the folders decide.
        // Read when the first library is in none of the folders, and once.
        let cache = LazyCell::new(|| fs::read("/etc/ld.so.cache").unwrap_or_else(|_| Vec::new()));
        let found = |name: &str| is_here(name, &folders, &cache);
        // Where not even the C library is found, this system has a way of its own.
        if found("libc.so.6") || found("libc.so") {
            for name in &linkage.libraries {
                here.libraries.push(((*name).to_owned(), found(name)));
            }
            needed(&mut here, bytes, &linkage, path, &cache);
            here.absent = absent(bytes, &linkage, folders);
        }
    }
    here
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
// Names come from the file: a hostile one has many, and long ones.
const MOST_NAMED: usize = 64;

/// How many bytes of each name are listed.
const MOST_LETTERS: usize = 128;

/// Conversions of float16 that runtimes of TVM define for the code of LLVM.
const HALVES: [&str; 5] = [
    "__extendhfsf2",
    "__gnu_f2h_ieee",
    "__gnu_h2f_ieee",
    "__truncdfhf2",
    "__truncsfhf2",
];

/// How many libraries are read for what they define, of those that the file needs and those that they need.
const MOST_READ: usize = 64;

/// What `bytes` calls and neither the libraries that it needs, theirs included, nor the usual ones define. Functions of TVM are judged
/// by release. Empty where one of the libraries cannot be read: what it defines is not known.
fn absent(bytes: &[u8], linkage: &Linkage<'_>, folders: Vec<PathBuf>) -> Vec<String> {
    let Some(DynamicNames { mut wanted, .. }) = DynamicNames::read(bytes) else {
        return Vec::new();
    };
    // A runtime of TVM defines these, and `explain` names the releases whose runtimes do: here they are not missing.
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
        // Behind the bound a library counts as one that cannot be read.
        let path = path.filter(|_| next < MOST_READ);
        let Some(content) = path.and_then(|path| Input::open(&path).ok()) else {
            // One of the usual ones may be absent: on musl and since glibc 2.34 `libdl` and others are part of `libc`.
            // The queue has three parts: what the file needs, the usual libraries, and what any of those need.
            if next < needed || next >= needed + USUAL.len() {
                return Vec::new();
            }
            next += 1;
            continue;
        };
        let Some(DynamicNames { defined, .. }) = DynamicNames::read(content.bytes()) else {
            return Vec::new();
        };
        let defined: HashSet<_> = defined.into_iter().collect();
        wanted.retain(|name| !defined.contains(name));
        for name in container::linkage(FileForm::ElfShared, content.bytes()).libraries {
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
pub(super) fn is_here(name: &str, folders: &[PathBuf], cache: &[u8]) -> bool {
    if name.starts_with("libtvm_") || name.starts_with("libtvm.") || name.starts_with("linux-vdso")
    {
        return true;
    }
    // As the loader does: a name with a slash is a path, and no folder is searched for it.
    if name.contains('/') {
        return Path::new(name).exists();
    }
    // The cache holds names and paths between NULs; its header and order differ between versions of glibc.
    let in_cache = || {
        let wanted = [b"\0", name.as_bytes(), b"\0"].concat();
        cache.windows(wanted.len()).any(|bytes| bytes == wanted)
    };
    folders.iter().any(|folder| folder.join(name).exists()) || in_cache()
}

/// How many folders of a file's own are looked in, and how long their names may be. A hostile file has more; nothing real does.
const MOST_FOLDERS: usize = 128;
/// How long the name of one of those folders may be, in bytes.
const LONGEST_FOLDER: usize = 1024;

/// Where the loader of Linux looks, in order: `DT_RPATH` of the file, the environment, `DT_RUNPATH` of the file, the system's folders.
/// Of the first two tables a file has one that counts.
pub(super) fn folders(linkage: &Linkage<'_>, path: &Path) -> Vec<PathBuf> {
    // The folder that the file is opened by: a link is not followed.
    let origin = std::path::absolute(path).ok();
    let origin = origin.as_deref().and_then(Path::parent);
    let origin = origin.map_or(String::new(), |folder| folder.display().to_string());
    let own = linkage.search.iter().filter(|paths| !paths.is_empty());
    let own = own.flat_map(|paths| paths.split(':'));
    let own = own.filter(|path| path.len() <= LONGEST_FOLDER);
    let own = own.take(MOST_FOLDERS).map(|path| {
        path.replace("$ORIGIN", &origin)
            .replace("${ORIGIN}", &origin)
    });
    let named = env::var("LD_LIBRARY_PATH").ok();
    let named = named
        .iter()
        .filter(|paths| !paths.is_empty())
        .flat_map(|paths| paths.split([':', ';']))
        .map(str::to_owned);
    // The folders of Debian are named by the machine, those of other distributions are not.
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
    let own: Vec<String> = own.collect();
    let named: Vec<String> = named.collect();
    let listed = if linkage.environment_first {
        [named, own]
    } else {
        [own, named]
    };
    let listed = listed.into_iter().flatten();
    // An empty entry is the current folder.
    let current = |folder: String| {
        if folder.is_empty() {
            ".".to_owned()
        } else {
            folder
        }
    };
    listed
        .map(current)
        .chain(system)
        .map(PathBuf::from)
        .collect()
}
