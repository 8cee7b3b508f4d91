//! Layout 0.22: the tree first, then every payload with its length.

use super::unknown_kinds::ForeignReading;
use super::{BLOB_04, BLOB_10, BLOB_15, BLOB_17, Blob, LIBRARY, check_kind};
use crate::import_tree::ImportTree;
use crate::payload;
use crate::rule::{Findings, Kind, Violation};
use crate::wire::{Cursor, Writer};

/// Reads the body: the tree, and a module for each of its rows (BLOB-10).
pub(super) fn read<'a>(
    blob: &mut Blob<'a>,
    body: &mut Cursor<'a>,
    findings: &mut Findings,
    foreign: Option<&ForeignReading<'_>>,
) -> Result<(), Violation> {
    let tree = ImportTree::read(body, findings)?;
    let modules = tree.modules();
    // The tree is set before the modules are read, so that a partial reading shows it even if a later module is broken.
    blob.tree = Some(tree);
    // BLOB-10: the tree may announce 2^60 modules, but capacity is reserved only for those that the bytes can hold. A module takes at
    // least 8 bytes, for the length of its kind.
    blob.modules = Vec::with_capacity(modules.min(body.remaining() / 8));
    // Modules of one kind are mostly neighbors, so the check of a kind is cached for the next module.
    let mut known = None;
    for index in 0..modules {
        BLOB_10
            .require_as(Kind::Truncated, !body.is_at_end(), body.offset(), || {
                format!("the tree has {modules} modules, the bytes end after {index}")
            })
            .map_err(|broken| broken.in_field(format!("module[{index}]")))?;
        body.read_within("module", index as u64, |body| {
            read_module(blob, body, &mut known, findings, foreign)
        })?;
    }
    // BLOB-10: the rows of the tree are the only count, so bytes after the last module belong to no module (WIRE-08).
    body.finish("the last module", findings)
}

/// Reads one module (BLOB-11). `known` holds the previous kind, and whether its payload is opaque.
fn read_module<'a>(
    blob: &mut Blob<'a>,
    body: &mut Cursor<'a>,
    known: &mut Option<(&'a str, bool)>,
    findings: &mut Findings,
    foreign: Option<&ForeignReading<'_>>,
) -> Result<(), Violation> {
    // BLOB-04: a kind that cannot be the name of a loader ends the reading here, although its payload could be skipped (BLOB-11).
    let kind = body.str("kind", BLOB_04)?;
    let (kind, start) = (*kind, kind.offset());
    // BLOB-11: `_lib` has neither a length nor a payload.
    if kind == LIBRARY {
        return blob
            .push_host(start)
            .map_err(|broken| broken.in_field("kind"));
    }
    let is_opaque = match *known {
        Some((before, is_opaque)) if before == kind => is_opaque,
        _ => {
            check_kind(kind, start).map_err(|broken| broken.in_field("kind"))?;
            payload::is_opaque(kind, blob.layout)
        }
    };
    *known = Some((kind, is_opaque));
    // BLOB-11: the payload is kept unread. A loader would fail here, because it has no loader for the kind.
    if is_opaque {
        let bytes = body.run("payload", payload::PAY_01)?;
        let offset = body.offset().saturating_sub(bytes.len() as u64);
        push(blob, kind, bytes, offset, findings)?;
        return match foreign {
            Some(foreign) => foreign.note(kind, bytes, offset, findings),
            None => Ok(()),
        };
    }
    let mut window = body.window("payload")?;
    let (bytes, offset) = (window.rest(), window.offset());
    push(blob, kind, bytes, offset, findings)?;
    // The finding for an empty payload exists already, and no grammar allows an empty payload.
    if bytes.is_empty() {
        return Ok(());
    }
    payload::read(kind, blob.layout, &mut window, findings).map(drop)
}

/// Adds the module whose payload is at `offset`.
#[inline]
fn push<'a>(
    blob: &mut Blob<'a>,
    kind: &'a str,
    bytes: &'a [u8],
    offset: u64,
    findings: &mut Findings,
) -> Result<(), Violation> {
    // BLOB-15: the reader of 0.27 treats a string of length 0 as the end of the file.
    findings.expect(BLOB_15, Kind::Truncated, !bytes.is_empty(), offset.saturating_sub(8), || {
        format!("the payload of `{kind}` is empty: released readers take that for the end of the file")
    })?;
    blob.push_stored(kind, bytes, offset);
    Ok(())
}

/// Writes the body: the inverse of [`read`].
pub(super) fn write(blob: &Blob<'_>, out: &mut Writer) -> Result<(), Violation> {
    // BLOB-17: 0.2 stores no tree, and 0.7 stores no tree for a host library without imports. `Blob::convert` creates one.
    let Some(tree) = &blob.tree else {
        return Err(BLOB_17.rejected(
            Kind::Missing,
            "layout 0.22 begins with an import tree, and this blob has none",
        ));
    };
    // BLOB-10: releases break this rule themselves. A module that can be neither linked nor stored gets a row but no entry, and the
    // blob cannot be read back.
    if tree.modules() != blob.modules.len() {
        let message = format!(
            "the tree has {} rows for {} modules",
            tree.modules(),
            blob.modules.len()
        );
        return Err(BLOB_10.rejected(Kind::Malformed, message));
    }
    tree.write(out);
    for module in &blob.modules {
        out.str(module.kind());
        if let Some(module) = module.stored() {
            out.bytes(module.stored_bytes(blob.layout)?);
        }
    }
    Ok(())
}
