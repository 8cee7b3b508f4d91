//! Layouts 0.2, 0.7 and 0.21: a count, then keys and payloads without lengths.
//!
//! A payload ends at the end of its kind's grammar (BLOB-05). Reading one module therefore requires reading all modules before it, and
//! an unknown kind ends the reading (BLOB-06). A payload that is read to a wrong end leads to an invalid key.

use super::unknown_kinds::{ForeignReading, mark_unknown_kind, tree_at_end};
use super::{
    BLOB_03, BLOB_04, BLOB_06, BLOB_07, BLOB_08, BLOB_09, BLOB_14, BLOB_16, BLOB_17, Blob,
    IMPORT_TREE, LIBRARY, check_kind,
};
use crate::import_tree::ImportTree;
use crate::payload;
use crate::release::Layout;
use crate::rule::{Findings, Kind, Violation};
use crate::wire::{Cursor, ReadValue, Writer};

/// Reads the body: the count and that many entries, one of which is the tree (BLOB-03, BLOB-07).
pub(super) fn read<'a>(
    blob: &mut Blob<'a>,
    body: &mut Cursor<'a>,
    findings: &mut Findings,
    foreign: Option<&ForeignReading<'_>>,
) -> Result<(), Violation> {
    let counted = body.u64("count", BLOB_03)?;
    let count = counted.require_as(
        Kind::Truncated,
        BLOB_03,
        // An entry takes at least 8 bytes, for the length of its key.
        |count| *count <= body.remaining() as u64 / 8,
        |count| {
            format!(
                "{count} entries are counted, {} bytes follow",
                body.remaining()
            )
        },
    )?;
    let mut tree_at = None;
    for index in 0..count {
        let entry = body.offset();
        let this = |broken: Violation| broken.in_field(format!("entry[{index}]"));
        BLOB_03
            .require_as(Kind::Truncated, !body.is_at_end(), entry, || {
                format!("{count} entries are counted, the bytes end after {index}")
            })
            .map_err(this)?;
        let left = count.saturating_sub(index).saturating_sub(1);
        let entry_read = body.read_within("entry", index, |body| {
            read_entry(blob, body, left, findings, foreign)
        });
        if foreign.is_some()
            && entry_read
                .as_ref()
                .is_err_and(|broken| broken.rule() == BLOB_06)
        {
            blob.tree = tree_at_end(body, count);
        }
        if entry_read? {
            BLOB_07
                .require_as(Kind::Duplicate, tree_at.is_none(), entry, || {
                    "a second `_import_tree`: released readers take the last one".into()
                })
                .map_err(this)?;
            tree_at = Some((index, entry));
        }
    }
    check_tree(blob, counted, tree_at)?;
    // BLOB-16: 0.14 to 0.21 state a count of 0 but write one entry, if the root has no imports and is not linked into the library.
    if count == 0 && !body.is_at_end() {
        let message = format!("no entry is counted, yet {} bytes follow", body.remaining());
        findings.note(BLOB_16, Kind::Trailing, body.offset(), message)?;
        body.skip_rest("uncounted", BLOB_16);
    }
    body.finish("the last entry", findings)
}

/// Reads one entry, after which `left` entries follow. Returns whether it was the import tree.
pub(super) fn read_entry<'a>(
    blob: &mut Blob<'a>,
    body: &mut Cursor<'a>,
    left: u64,
    findings: &mut Findings,
    foreign: Option<&ForeignReading<'_>>,
) -> Result<bool, Violation> {
    // BLOB-05: nothing marks the start of an entry. If the previous payload was read to a wrong end, the key is the first value that
    // shows it.
    let key = body.str("key", BLOB_04)?;
    let (kind, start) = (*key, key.offset());
    check_kind(kind, start).map_err(|broken| broken.in_field("key"))?;
    // BLOB-14: 0.2 does not store its root, so neither key has a meaning. A runtime of 0.6 fails at `_lib`.
    let reserved = kind == LIBRARY || kind == IMPORT_TREE;
    key.require_as(
        Kind::UnknownKind,
        BLOB_14,
        |_| !(reserved && blob.layout == Layout::V0_2),
        |kind| format!("`{kind}` has no meaning before 0.7, and no loader"),
    )?;
    // BLOB-07: the tree is no module and has no index.
    if kind == IMPORT_TREE {
        blob.tree = Some(ImportTree::read(body, findings)?);
        return Ok(true);
    }
    if kind == LIBRARY {
        blob.push_host(start)
            .map_err(|broken| broken.in_field("key"))?;
        return Ok(false);
    }
    let (rest, offset) = (body.rest(), body.offset());
    if is_known(kind, blob.layout) {
        // BLOB-05: no length is stored; the payload ends where its grammar ends.
        payload::read(kind, blob.layout, body, findings)?;
    } else if !skip_foreign(kind, left, blob, body, findings, foreign)? {
        // BLOB-06: a release also fails here, because it has no loader for the kind.
        let message = format!(
            "nothing is known of kind `{kind}`: layout {} has no payload lengths, so its end cannot be found",
            blob.layout
        );
        let broken = key.broken(BLOB_06, Kind::UnknownKind, message);
        return Err(mark_unknown_kind(broken, kind));
    }
    // BLOB-05: the payload is kept as bytes, so that an unchanged blob is written back byte for byte.
    let length = usize::try_from(body.offset().saturating_sub(offset)).unwrap_or(0);
    let bytes = rest.get(..length).unwrap_or_default();
    blob.push_stored(kind, bytes, offset);
    Ok(false)
}

/// Skips the payload of a kind that no release has, if `foreign` is given and finds the end. Returns whether it was skipped.
fn skip_foreign(
    kind: &str,
    left: u64,
    blob: &Blob<'_>,
    body: &mut Cursor<'_>,
    findings: &mut Findings,
    foreign: Option<&ForeignReading<'_>>,
) -> Result<bool, Violation> {
    match foreign {
        Some(foreign) => foreign.skip(kind, left, blob, body, findings),
        None => Ok(false),
    }
}

/// Checks BLOB-07 to BLOB-09: in 0.7 and 0.21 the tree comes last and has a row for every module.
fn check_tree(
    blob: &Blob<'_>,
    counted: ReadValue<'_, u64>,
    tree_at: Option<(u64, u64)>,
) -> Result<(), Violation> {
    let count = *counted;
    if blob.layout == Layout::V0_2 || count == 0 {
        return Ok(());
    }
    let Some((index, offset)) = tree_at else {
        // BLOB-09: released loaders treat this as a blob of 0.2, and put a new root above all modules, including a stray `_lib`.
        // Functions are then found in the wrong module, or not at all.
        return counted.require_as(Kind::Missing, BLOB_09, |_| false, |_| {
            let modules = blob.modules.len();
            format!("{modules} modules and no `_import_tree`: released readers put them all below a new root")
        })
        .map(drop);
    };
    let this = |field: &str| format!("entry[{index}]{field}");
    // BLOB-08: released readers accept the tree anywhere, but no writer puts it elsewhere. A reader may connect modules as soon as it
    // has the tree, so it needs the modules first.
    BLOB_08
        .require(index.saturating_add(1) == count, offset, || {
            format!("`_import_tree` is entry {index} of {count}, it must be the last")
        })
        .map_err(|broken| broken.in_field(this("")))?;
    match &blob.tree {
        // BLOB-07: the tree has no index, so it has as many rows as there are modules, not entries (TREE-13).
        Some(tree) => tree
            .check_modules(blob.modules.len())
            .map_err(|broken| broken.in_field(this(".indptr"))),
        None => Ok(()),
    }
}

/// Returns whether `kind` has a grammar in `layout`, so that the end of its payload can be found. A kind may have a grammar in some layouts
/// only: `c` and `static_library` are stored from 0.14 on.
pub(super) fn is_known(kind: &str, layout: Layout) -> bool {
    payload::kind_info(kind).is_some_and(|info| info.forms_in(layout).next().is_some())
}

/// Writes the body: the inverse of [`read`].
pub(super) fn write(blob: &Blob<'_>, out: &mut Writer) -> Result<(), Violation> {
    let rejected = |message: String| Err(BLOB_17.rejected(Kind::Unsupported, message));
    let entries = blob
        .modules
        .len()
        .saturating_add(usize::from(blob.tree.is_some()));
    // BLOB-03: from 0.7 on the count includes the tree. Layout 0.2 has no tree and counts only imports.
    out.count(entries);
    for module in &blob.modules {
        out.str(module.kind());
        // BLOB-14: in layout 0.2, the library that contains the blob is the root and has no entry.
        if module.is_host() && blob.layout == Layout::V0_2 {
            return rejected(format!("layout 0.2 cannot hold module `{LIBRARY}`"));
        }
        let Some(module) = module.stored() else {
            continue;
        };
        let payload = module.stored_bytes(blob.layout)?;
        // BLOB-06: no reader could find the end of this payload.
        if !is_known(&module.kind, blob.layout) {
            return rejected(format!(
                "layout {} has no payload lengths, and nothing states where the payload ends of kind `{}`",
                blob.layout, module.kind
            ));
        }
        out.raw(payload);
    }
    match &blob.tree {
        // BLOB-14: a loader of 0.2 fails at the key `_import_tree`, for which it has no loader.
        Some(_) if blob.layout == Layout::V0_2 => rejected("layout 0.2 has no import tree".into()),
        Some(tree) => {
            out.str(IMPORT_TREE);
            tree.write(out);
            Ok(())
        }
        None => Ok(()),
    }
}
