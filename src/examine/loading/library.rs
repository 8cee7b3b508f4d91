//! The verdict of the loader of a release on a library binary: its layout, its import tree, and its payloads.

use super::Stop;
use super::payload;
use super::stream::{LoaderStream, Manner, text};
use crate::blob::{IMPORT_TREE, LIBRARY};
use crate::release::{Layout, Release};

/// Walks a library binary, including its header, as the loader of `release` reads it.
///
/// Returns `Ok` only if that loader is known to accept it.
pub(crate) fn walk(release: Release, bytes: &[u8]) -> Result<(), Stop> {
    // BLOB-01: a loader has an address but no size, so it cannot notice a short header.
    let Some((header, body)) = bytes.split_first_chunk() else {
        return Err(Stop::Unknown(
            "the header is truncated, and it reads the memory after it".into(),
        ));
    };
    // Loaders assemble the header byte by byte, so that it is little-endian on every host.
    let counted = u64::from_le_bytes(*header);
    match Layout::of(release) {
        Layout::V0_22 => framed(
            release,
            &mut LoaderStream::with_stated_length(body, counted, Manner::Pads),
        ),
        _ => streamed(
            release,
            &mut LoaderStream::with_stated_length(body, counted, Manner::Raises),
        ),
    }
}

/// Walks the body as 0.22 and later read it: the tree, then kind and framed payload of each module (BLOB-10, BLOB-11).
fn framed(release: Release, stream: &mut LoaderStream<'_>) -> Result<(), Stop> {
    let rows = stream.words("import tree")?;
    let children = stream.words("children of the import tree")?;
    // TREE-02: an empty `indptr` counts 2^64 - 1 modules, for which no memory can be reserved.
    let Some(modules) = rows.len().checked_sub(1) else {
        return Err(Stop::Rejects("the import tree is empty".into()));
    };
    for index in 0..modules {
        // The message names the module, because a file may have many.
        let named = |stop: Stop| stop.with_module(index);
        let kind = stream.padded("kind").map_err(named)?;
        // BLOB-12: from 0.22 on, any number of `_lib` is accepted.
        if *kind == *LIBRARY.as_bytes() {
            continue;
        }
        let bytes = stream.padded("payload").map_err(named)?;
        // Up to 0.23 payloads are read through dmlc's stream, although the library itself no longer is.
        let manner = match release.minor() {
            ..=23 => Manner::Raises,
            _ => Manner::Reports,
        };
        let kind = name(release, &kind).map_err(named)?;
        payload::walk(release, kind, &mut LoaderStream::new(&bytes, manner)).map_err(named)?;
    }
    // TREE-02: `indptr` has one element and there is no module. The loader takes the first module nevertheless.
    if modules == 0 {
        return Err(Stop::Rejects(
            "it ends the process: it takes the first of no modules".into(),
        ));
    }
    imports(&rows, &children, modules)
}

/// Walks the body as 0.2 to 0.21 read it: a count, then key and payload of each entry, without a length (BLOB-03, BLOB-05).
fn streamed(release: Release, stream: &mut LoaderStream<'_>) -> Result<(), Stop> {
    let since = release.minor();
    let count = stream.u64("count")?;
    let (mut rows, mut children) = (Vec::new(), Vec::new());
    let (mut modules, mut libraries) = (0_usize, 0_usize);
    // BLOB-03: the count is not compared with the number of entries. A count that is too large ends in an error of the stream.
    for index in 0..count {
        let named = |stop: Stop| stop.with_entry(index);
        let key = stream.string("key").map_err(named)?;
        // Before 0.7 neither key had a special meaning, and the walk of the payload finds no loader for them.
        if since >= 7 && key == LIBRARY.as_bytes() {
            libraries = libraries.saturating_add(1);
            // BLOB-12: 0.7 creates a module for each (TREE-26).
            if since >= 8 && libraries > 1 {
                return Err(Stop::Rejects("a second entry is `_lib`".into()));
            }
        } else if since >= 7 && key == IMPORT_TREE.as_bytes() {
            // BLOB-07, BLOB-08: the tree may stand anywhere. If there are two, the last one counts.
            rows = stream.words("import tree").map_err(named)?;
            children = stream.words("children of the import tree").map_err(named)?;
            continue;
        } else {
            let kind = name(release, key).map_err(named)?;
            payload::walk(release, kind, stream).map_err(named)?;
        }
        modules = modules.saturating_add(1);
    }
    // BLOB-09, TREE-02: if the tree is missing or empty, all modules become children of a new root.
    if rows.is_empty() {
        return Ok(());
    }
    imports(&rows, &children, modules)?;
    // Loaders follow the rows before they check whether there is a module to return.
    if modules == 0 {
        return Err(Stop::Rejects("there is a tree and no module".into()));
    }
    Ok(())
}

/// Returns the kind as text.
fn name(release: Release, kind: &[u8]) -> Result<&str, Stop> {
    std::str::from_utf8(kind).map_err(|_| {
        let kind = text(kind);
        Stop::Rejects(format!("tvm {release} has no loader for `{kind}`"))
    })
}

/// The number of imports that are followed. With more of them, the outcome is unknown.
const STEPS: usize = 1 << 22;

/// Follows the rows of the import tree, one for each module. No loader compares the numbers of rows and modules (TREE-13).
fn imports(rows: &[u64], children: &[u64], modules: usize) -> Result<(), Stop> {
    let behind = || {
        Stop::Unknown(
            "the import tree refers to rows after its end, and it reads the memory there".into(),
        )
    };
    let mut steps = 0_usize;
    for index in 0..modules {
        let [Some(start), Some(end)] =
            [index, index.saturating_add(1)].map(|index| rows.get(index).copied())
        else {
            return Err(behind());
        };
        // TREE-03: every loader treats a row that runs backwards as a row without imports.
        if start >= end {
            continue;
        }
        let range = usize::try_from(start).ok().zip(usize::try_from(end).ok());
        let (start, end) = range.ok_or_else(behind)?;
        for child in children
            .get(start.min(children.len())..end.min(children.len()))
            .unwrap_or_default()
        {
            // TREE-07: loaders check this for every imported child.
            if *child >= modules as u64 {
                return Err(Stop::Rejects(format!(
                    "module {index} imports module {child} of {modules}"
                )));
            }
            steps = steps.saturating_add(1);
            if steps > STEPS {
                return Err(Stop::Unknown("it has too many imports to follow".into()));
            }
        }
        // TREE-04: checked after the children that are present, because an invalid one among them ends the load first.
        if end > children.len() {
            return Err(behind());
        }
    }
    Ok(())
}
