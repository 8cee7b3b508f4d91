//! The libraries that a file needs through others, and the versions of symbols that it needs of each.

use super::here::{folders, is_here};
use crate::cli::input::Input;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use tvmspec::blob::container::{FileForm, Linkage, SymbolVersions, linkage};
use tvmspec::examine::explain::MachineFindings;

/// How many libraries are opened.
const MOST_READ: usize = 64;

/// How many of each are listed.
const MOST_LISTED: usize = 64;

/// A library that is there, with the folders in which its loader looks for what it needs.
struct Found {
    path: PathBuf,
    /// The folders of `DT_RPATH` of those that need it: they count for what it needs, too.
    inherited: Vec<PathBuf>,
}

/// Notes what the libraries lack that `bytes` at `path` needs: versions of their own, and libraries that they need in turn.
///
/// Libraries whose place is known to the loader's `cache` alone are not opened.
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
    let inherit = |linked: &Linkage<'_>, folders: &[PathBuf]| match linked.environment_first {
        true => Vec::new(),
        false => folders.to_vec(),
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

/// The versions that `bytes` needs of the library called `name`, and that the one at `path` does not define.
fn lacking(bytes: &[u8], name: &str, path: &Path) -> Vec<(String, String)> {
    let needed = SymbolVersions::read(bytes).needed;
    let needed = needed.into_iter().filter(|(library, _)| *library == name);
    let Ok(content) = Input::open(path) else {
        return Vec::new();
    };
    let defined = SymbolVersions::read(content.bytes()).defined;
    // musl and libraries without versions take any.
    let is_lacking = |version: &str| !defined.is_empty() && !defined.contains(&version);
    needed
        .filter(|(_, version)| is_lacking(version))
        .map(|(library, version)| (library.to_owned(), version.to_owned()))
        .collect()
}

/// The last part of a path, for messages.
fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    name.to_string_lossy().into_owned()
}
