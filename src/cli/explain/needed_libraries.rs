//! The indirectly needed libraries of a file, and the symbol versions that it needs from each library.

use super::local_machine::{folders, is_here};
use crate::cli::full::input::Input;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use tvmspec::blob::container::{FileForm, Linkage, SymbolVersions, linkage};
use tvmspec::examine::explain::MachineFindings;

/// The number of libraries to open.
const MOST_READ: usize = 64;

/// The number of entries to list of each kind.
const MOST_LISTED: usize = 64;

/// A library that was found, and the folders that its loader searches for its needs.
struct Found {
    path: PathBuf,
    /// The folders of `DT_RPATH` of the libraries that need it. They also apply to its own needs.
    inherited: Vec<PathBuf>,
}

/// Records the symbol versions and the indirectly needed libraries that `bytes` at `path` needs and that are missing here.
pub(super) fn needed(
    here: &mut MachineFindings,
    bytes: &[u8],
    linked: &Linkage<'_>,
    path: &Path,
    cache: &[u8],
) {
    let own = folders(linked, path);
    let mut queue: Vec<Found> = Vec::new();
    let mut known: HashSet<String> = HashSet::new();
    let find = |name: &str, folders: &[PathBuf]| {
        let path = folders.iter().map(|folder| folder.join(name));
        path.into_iter().find(|path| path.is_file())
    };
    let inherit = |linked: &Linkage<'_>, folders: &[PathBuf]| {
        if linked.environment_first {
            Vec::new()
        } else {
            folders.to_vec()
        }
    };
    let inherited = inherit(linked, &own);
    for name in &linked.libraries {
        let is_new = known.insert((*name).to_owned());
        let Some(path) = find(name, &own).filter(|_| is_new) else {
            continue;
        };
        here.versions.extend(lacking(bytes, name, &path));
        let inherited = inherited.clone();
        queue.push(Found { path, inherited });
    }
    let mut next = 0;
    while let Some(Found { path, inherited }) = queue.get(next).filter(|_| next < MOST_READ) {
        let (path, inherited) = (path.clone(), inherited.clone());
        next += 1;
        let Ok(content) = Input::open(&path) else {
            continue;
        };
        let linked = linkage(FileForm::ElfShared, content.bytes());
        let own = [inherited, folders(&linked, &path)].concat();
        for name in &linked.libraries {
            if !known.insert((*name).to_owned()) {
                continue;
            }
            match find(name, &own) {
                Some(path) => queue.push(Found {
                    path,
                    inherited: inherit(&linked, &own),
                }),
                None if is_here(name, &own, cache) => {}
                None => here.indirect.push((file_name(&path), (*name).to_owned())),
            }
        }
    }
    here.versions.truncate(MOST_LISTED);
    here.indirect.truncate(MOST_LISTED);
}

/// Returns the versions that `bytes` needs from the library called `name`, and that the one at `path` does not define.
fn lacking(bytes: &[u8], name: &str, path: &Path) -> Vec<(String, String)> {
    let needed = SymbolVersions::read(bytes).needed;
    let needed = needed.into_iter().filter(|(library, _)| *library == name);
    let Ok(content) = Input::open(path) else {
        return Vec::new();
    };
    let defined = SymbolVersions::read(content.bytes()).defined;
    // musl and libraries without versions accept any version.
    let is_lacking = |version: &str| !defined.is_empty() && !defined.contains(&version);
    needed
        .filter(|(_, version)| is_lacking(version))
        .map(|(library, version)| (library.to_owned(), version.to_owned()))
        .collect()
}

/// Returns the last part of a path, for messages.
fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    name.to_string_lossy().into_owned()
}
