//! Findings of this system's loader before TVM reads anything: the machine, the needed libraries, the functions that none of them has.
//! Nothing is executed.

use super::needed_libraries::needed;
use crate::cli::full::input::Input;
use std::cell::LazyCell;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::{env, fs};
use tvmspec::blob::container::{
    self, DynamicNames, FileForm, Linkage, incompatibility, is_cpp_interface, linkage,
};
use tvmspec::examine::explain::{MachineFindings, is_image};
use tvmspec::examine::loading::exported;

/// Searches the needs of an image, as the loader of this system does. `path` is that of the file, to which `$ORIGIN` refers.
///
/// `runtime` names the libraries of a runtime that is loaded before the file.
///
/// The result is empty for a file that no loader opens, and for images of systems other than Linux. It is also empty if this system
/// finds libraries in an unknown way.
pub(super) fn examine_machine(
    form: FileForm,
    bytes: &[u8],
    path: &Path,
    runtime: Option<&str>,
) -> MachineFindings {
    let mut here = MachineFindings::default();
    if !is_image(form) {
        return here;
    }
    // A loader rejects another machine before it searches any library.
    if let Some(foreign) = incompatibility(bytes) {
        here.foreign = Some(foreign);
        return here;
    }
    if form == FileForm::ElfShared && cfg!(target_os = "linux") {
        let linkage = linkage(form, bytes);
        let folders = folders(&linkage, path);
        // musl has no cache: an empty one finds nothing, and only the folders count. The cache is read once, when the first library is
        // in none of the folders.
        let cache = LazyCell::new(|| fs::read("/etc/ld.so.cache").unwrap_or_else(|_| Vec::new()));
        let found = |name: &str| is_here(name, &folders, &cache);
        // If not even the C library is found, this system finds libraries in another way.
        if found("libc.so.6") || found("libc.so") {
            for name in &linkage.libraries {
                here.libraries.push(((*name).to_owned(), found(name)));
            }
            needed(&mut here, bytes, &linkage, path, &cache);
            let runtime: Vec<&Path> = runtime
                .iter()
                .flat_map(|list| list.split(','))
                .map(Path::new)
                .collect();
            here.absent = missing_functions(bytes, &linkage, &folders, &runtime);
        }
    }
    here
}

/// The libraries of every process that loads TVM libraries: C, C++ and their dependencies.
const USUAL: [&str; 7] = [
    "libc.so.6",
    "libm.so.6",
    "libdl.so.2",
    "libpthread.so.0",
    "librt.so.1",
    "libgcc_s.so.1",
    "libstdc++.so.6",
];

/// The number of missing functions to list.
// Names come from the file, and a hostile one has many long names.
const MOST_NAMED: usize = 64;

/// The number of bytes of each name to show.
const MOST_LETTERS: usize = 128;

/// Conversions of float16 that TVM runtimes define for code from LLVM.
const HALVES: [&str; 5] = [
    "__extendhfsf2",
    "__gnu_f2h_ieee",
    "__gnu_h2f_ieee",
    "__truncdfhf2",
    "__truncsfhf2",
];

/// The number of libraries whose definitions are read, including indirectly needed ones.
const MOST_READ: usize = 64;

/// Returns the functions that `bytes` calls and that no library defines: neither the directly or indirectly needed ones, nor the usual
/// ones. Functions of TVM are left out, because they are judged by release. Empty if one of the libraries cannot be read, because its
/// definitions are unknown.
fn missing_functions(
    bytes: &[u8],
    linkage: &Linkage<'_>,
    folders: &[PathBuf],
    runtime: &[&Path],
) -> Vec<String> {
    let Some(DynamicNames { mut wanted, .. }) = DynamicNames::read(bytes) else {
        return Vec::new();
    };
    // A TVM runtime defines these, and `explain` names the releases that do, so that they are not missing here.
    wanted.retain(|name| match str::from_utf8(name) {
        Ok(name) => exported(name).is_empty() && !HALVES.contains(&name),
        Err(_) => true,
    });
    wanted.retain(|name| !is_cpp_interface(name));
    for library in runtime {
        let content = Input::open(library).ok();
        if let Some(names) = content
            .as_ref()
            .and_then(|content| DynamicNames::read(content.bytes()))
        {
            let defined: HashSet<_> = names.defined.into_iter().collect();
            wanted.retain(|name| !defined.contains(name));
        }
    }
    let is_runtime = |name: &str| {
        let mut runtime = runtime.iter();
        runtime.any(|path| path.file_name().is_some_and(|last| last == name))
    };
    let mut queue: Vec<String> = linkage
        .libraries
        .iter()
        .filter(|name| !is_runtime(name))
        .map(|name| (*name).to_owned())
        .collect();
    let needed = queue.len();
    queue.extend(USUAL.map(str::to_owned));
    // A set, so that libraries that need each other are read once.
    let mut known: HashSet<String> = queue.iter().cloned().collect();
    let mut next = 0;
    while !wanted.is_empty() && next < queue.len() {
        let path = folders
            .iter()
            .map(|folder| folder.join(&queue[next]))
            .find(|path| path.is_file());
        // A library after the limit counts as unreadable.
        let path = path.filter(|_| next < MOST_READ);
        let Some(content) = path.and_then(|path| Input::open(&path).ok()) else {
            // A usual library may be absent: on musl and since glibc 2.34, `libdl` and others are part of `libc`. The queue has three
            // parts: the needs of the file, the usual libraries, and the needs of both.
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

/// Returns whether a library of this name can be found in a folder or in the loader's `cache`. Libraries of TVM itself count as found,
/// because importing TVM loads them.
pub(super) fn is_here(name: &str, folders: &[PathBuf], cache: &[u8]) -> bool {
    if name.starts_with("libtvm_") || name.starts_with("libtvm.") || name.starts_with("linux-vdso")
    {
        return true;
    }
    // A name with a slash is a path, which the loader does not search in folders.
    if name.contains('/') {
        return Path::new(name).exists();
    }
    // The cache contains names and paths between NULs. Its header and order differ between versions of glibc.
    let in_cache = || {
        let wanted = [b"\0", name.as_bytes(), b"\0"].concat();
        cache.windows(wanted.len()).any(|bytes| bytes == wanted)
    };
    folders.iter().any(|folder| folder.join(name).exists()) || in_cache()
}

/// The number of folders of a file that are searched. Only a hostile file has more.
const MOST_FOLDERS: usize = 128;
/// The maximal length of the name of such a folder, in bytes.
const LONGEST_FOLDER: usize = 1024;

/// Returns the folders that the loader of Linux searches, in order: `DT_RPATH` of the file, the environment, `DT_RUNPATH` of the file,
/// the folders of the system. Only one of the two entries of a file counts.
pub(super) fn folders(linkage: &Linkage<'_>, path: &Path) -> Vec<PathBuf> {
    // The folder by which the file is opened, without following links.
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
    // Debian includes the machine in the names of these folders, other distributions do not.
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
