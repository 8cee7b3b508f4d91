//! List of the files of the tree that are part of the suite. `build.rs` also includes this file.

use std::fs;
use std::path::Path;

/// Returns the cases and goldens below `root`, sorted, with their paths from there.
pub(crate) fn suite_files(root: &Path) -> Vec<String> {
    let cases = files(root, "conformance", |name| {
        name.contains("/cases/") && name.ends_with(".json")
    });
    // Dumps, scripts and the files of scripts are in the same folders; the suite needs only the bytes.
    let all = files(root, "golden", |name| {
        ![".md", ".py", ".sh", ".npz", ".sha256"]
            .iter()
            .any(|end| name.ends_with(end))
            // Tests read and run whole models and the output of each era; no case uses them.
            && !["graph/models/", "eras/"].iter().any(|room| name.starts_with(room))
    });
    let is_dump = |name: &String| {
        let dumped = name.strip_suffix(".txt");
        dumped.is_some_and(|dumped| {
            all.binary_search_by(|name| name.as_str().cmp(dumped))
                .is_ok()
        })
    };
    let cases = cases.iter().map(|name| format!("conformance/{name}"));
    let goldens = all.iter().filter(|name| !is_dump(name));
    cases
        .chain(goldens.map(|name| format!("golden/{name}")))
        .collect()
}

/// Returns the files below `root/room` that `wanted` accepts, sorted, with their paths below the room.
pub(crate) fn files(root: &Path, room: &str, wanted: impl Fn(&str) -> bool) -> Vec<String> {
    let base = root.join(room);
    let mut names = Vec::new();
    let mut folders = vec![base.clone()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else {
            continue;
        };
        for entry in entries.flatten() {
            let path = entry.path();
            let name = path
                .strip_prefix(&base)
                .expect("below the room")
                .to_string_lossy()
                .replace('\\', "/");
            if name
                .split('/')
                .any(|part| part.starts_with('.') || part == "__pycache__")
            {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else if wanted(&name) {
                names.push(name);
            }
        }
    }
    names.sort();
    names
}
