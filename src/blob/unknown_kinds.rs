//! Kinds that no release has: the ends of their payloads in layouts without lengths, and the decoding of their payloads.
//!
//! A strict reader stops at such a kind (BLOB-06). A tool that inspects a file continues if the bytes leave no doubt. A vendor's module
//! is usually a JSON runtime (PAY-45). In addition, all entries after it must be readable to the last byte.

use super::streamed::{self, read_entry};
use super::{BLOB_06, Blob, IMPORT_TREE, LIBRARY, StoredModule};
use crate::import_tree::ImportTree;
use crate::payload::{self, KindInfo, Payload};
use crate::release::Layout;
use crate::rule::{Detail, Findings, Kind, Violation};
use crate::wire::Cursor;
use std::cell::Cell;
use std::sync::Arc;

/// A known kind with the payload grammar of all JSON runtimes (PAY-45).
const JSON_RUNTIME: &str = "dnnl_json";

/// Number of offsets that are tried as the end of a payload. Each trial reads everything after that offset.
const TRIALS: usize = 64;

/// Returns whether reading stopped at a kind that no release has but a vendor may have (BLOB-06). Then no fault is known, but nothing
/// after the kind was read. Returns `false` for a text that cannot be the name of a kind, because the file is then damaged.
pub fn is_unknown_kind(broken: &Violation) -> bool {
    broken.detail() == Some(Detail::VendorKind)
}

/// Marks a violation of BLOB-06 for [`is_unknown_kind`] if `kind` could be the name of a kind.
pub(super) fn mark_unknown_kind(broken: Violation, kind: &str) -> Violation {
    broken.with_detail(is_name(kind).then_some(Detail::VendorKind))
}

/// Returns whether `kind` could be the name of a kind.
fn is_name(kind: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-+:".contains(&byte);
    (2..=64).contains(&kind.len()) && kind.bytes().all(is_letter)
}

/// The caller's knowledge of kinds that no release has.
#[derive(Clone, Debug, Default)]
pub struct ForeignKinds {
    /// Pairs of an unknown kind and the known kind whose grammar it has.
    stated: Arc<[(String, &'static KindInfo)]>,
}

/// The state of one reading that continues after unknown kinds.
#[derive(Debug)]
pub(super) struct ForeignReading<'k> {
    kinds: &'k ForeignKinds,
    /// True if all entries were read once with the grammar of JSON runtimes. Then later unknown kinds need no trial.
    is_tried: Cell<bool>,
    /// True during a trial, which must not start another one. Two trials for each entry would take exponential time.
    in_trial: Cell<bool>,
}

impl ForeignKinds {
    /// Creates the list from pairs of an unknown kind and the known kind whose grammar it has.
    ///
    /// # Errors
    ///
    /// Returns the second name of a pair if no kind has that name.
    pub fn new<'n>(
        pairs: impl IntoIterator<Item = (&'n str, &'n str)>,
    ) -> Result<ForeignKinds, &'n str> {
        let stated = pairs.into_iter().map(|(kind, like)| {
            let info = payload::kind_info(like).ok_or(like)?;
            Ok((kind.to_owned(), info))
        });
        Ok(ForeignKinds {
            stated: stated.collect::<Result<_, &'n str>>()?,
        })
    }

    /// Returns the kind whose grammar the caller states for `kind`.
    fn stated_kind(&self, kind: &str) -> Option<&'static KindInfo> {
        let found = self.stated.iter().find(|(stated, _)| stated == kind);
        found.map(|(_, info)| *info)
    }

    /// Decodes the payload of a module of an unknown kind. Uses the grammar that the caller states, or otherwise the grammar of JSON
    /// runtimes. Returns `None` for a known kind, and if the payload does not fit the grammar.
    pub fn decode<'m>(&self, module: &'m StoredModule<'_>) -> Option<Payload<'m>> {
        let layout = module.layout;
        let is_known = match layout {
            Layout::V0_22 => payload::kind_info(&module.kind).is_some(),
            _ => streamed::is_known(&module.kind, layout),
        };
        if is_known {
            return None;
        }
        let like = self
            .stated_kind(&module.kind)
            .map_or(JSON_RUNTIME, |info| info.kind);
        let mut cursor = Cursor::new(&module.payload).with_base(module.offset);
        let payload = payload::read(like, layout, &mut cursor, &mut Findings::default()).ok()?;
        cursor.is_at_end().then_some(payload)
    }
}

impl<'k> ForeignReading<'k> {
    /// Starts a reading with the caller's `kinds`.
    pub(super) fn new(kinds: &'k ForeignKinds) -> ForeignReading<'k> {
        ForeignReading {
            kinds,
            is_tried: Cell::new(false),
            in_trial: Cell::new(false),
        }
    }

    /// Skips the payload of the unknown `kind`, after which `left` entries follow. Returns `false` if the end of the payload is not
    /// known.
    ///
    /// # Errors
    ///
    /// Returns the violation if the payload breaks the grammar that the caller states.
    pub(super) fn skip(
        &self,
        kind: &str,
        left: u64,
        blob: &Blob<'_>,
        body: &mut Cursor<'_>,
        findings: &mut Findings,
    ) -> Result<bool, Violation> {
        let start = body.offset();
        if let Some(info) = self.kinds.stated_kind(kind) {
            payload::read(info.kind, blob.layout, body, findings)?;
            return Ok(true);
        }
        if !is_name(kind) {
            return Ok(false);
        }
        let (how, end) = if let Some(end) = self.as_json_runtime(left, blob, body) {
            ("its payload reads as that of a JSON runtime (PAY-45)", end)
        } else if let Some(end) = self.find_payload_end(left, blob, body) {
            ("its payload ends where the following entries begin", end)
        } else {
            return Ok(false);
        };
        findings.note(
            BLOB_06,
            Kind::UnknownKind,
            start,
            format!("no release has kind `{kind}`: {how}, which is a guess; if it is right, or the kind stores what a known one does, state that: --grammar {kind}=KNOWN"),
        )
        .map_err(|broken| mark_unknown_kind(broken, kind))?;
        let length = end.offset().saturating_sub(start);
        body.take(length, "payload", BLOB_06)?;
        Ok(true)
    }

    /// Notes a module of a kind that no release has, and the grammar that its payload fits. For the layout with payload lengths.
    ///
    /// # Errors
    ///
    /// Returns the violation if the payload breaks the grammar that the caller states.
    pub(super) fn note(
        &self,
        kind: &str,
        payload: &[u8],
        start: u64,
        findings: &mut Findings,
    ) -> Result<(), Violation> {
        if payload::kind_info(kind).is_some() {
            return Ok(());
        }
        let mut cursor = Cursor::new(payload).with_base(start);
        if let Some(info) = self.kinds.stated_kind(kind) {
            return payload::read(info.kind, Layout::V0_22, &mut cursor, findings).map(drop);
        }
        let mut scratch = Findings::default();
        let read = payload::read(JSON_RUNTIME, Layout::V0_22, &mut cursor, &mut scratch);
        let is_read = read.is_ok_and(|payload| has_graph(&payload)) && cursor.is_at_end();
        let how = if is_read {
            "its payload reads as that of a JSON runtime (PAY-45)"
        } else {
            "the grammar of its payload is not known"
        };
        findings
            .note(
                BLOB_06,
                Kind::UnknownKind,
                start,
                format!("no release has kind `{kind}`: {how}"),
            )
            .map_err(|broken| mark_unknown_kind(broken, kind))
    }

    /// Reads the payload as that of a JSON runtime and returns the cursor after it, if all entries after it can be read.
    fn as_json_runtime<'a>(
        &self,
        left: u64,
        blob: &Blob<'_>,
        body: &Cursor<'a>,
    ) -> Option<Cursor<'a>> {
        let mut end = body.look_ahead();
        let mut scratch = Findings::default();
        let payload = payload::read(JSON_RUNTIME, blob.layout, &mut end, &mut scratch).ok()?;
        let is_sure = self.in_trial.get() || self.is_tried.get();
        if !has_graph(&payload) || !(is_sure || self.can_read_entries(left, blob, &end)) {
            return None;
        }
        if !self.in_trial.get() {
            self.is_tried.set(true);
        }
        Some(end)
    }

    /// Returns the cursor at the first offset after the payload from which all remaining entries can be read.
    fn find_payload_end<'a>(
        &self,
        left: u64,
        blob: &Blob<'_>,
        body: &Cursor<'a>,
    ) -> Option<Cursor<'a>> {
        if self.in_trial.get() {
            return None;
        }
        // BLOB-14: in layout 0.2, the last entry takes the rest of the blob.
        if left == 0 {
            let mut end = body.look_ahead();
            end.skip_rest("payload", BLOB_06);
            return (blob.layout == Layout::V0_2).then_some(end);
        }
        let rest = body.rest();
        let keys = (0..rest.len()).filter(|at| rest.get(*at..).is_some_and(begins_with_key));
        keys.take(TRIALS).find_map(|at| {
            let mut end = body.look_ahead();
            end.take(at as u64, "payload", BLOB_06).ok()?;
            self.can_read_entries(left, blob, &end).then_some(end)
        })
    }

    /// Returns whether exactly `left` entries fill the bytes from `cursor` on, with a tree among them that covers all modules.
    fn can_read_entries(&self, left: u64, blob: &Blob<'_>, cursor: &Cursor<'_>) -> bool {
        self.in_trial.set(true);
        let read = self.read_rest(left, blob, cursor);
        self.in_trial.set(false);
        read.is_some()
    }

    fn read_rest(&self, left: u64, blob: &Blob<'_>, cursor: &Cursor<'_>) -> Option<()> {
        let mut cursor = cursor.look_ahead();
        let mut trial = Blob {
            layout: blob.layout,
            modules: Vec::new(),
            tree: None,
        };
        let mut findings = Findings::default();
        for behind in (0..left).rev() {
            let tree =
                read_entry(&mut trial, &mut cursor, behind, &mut findings, Some(self)).ok()?;
            if tree && behind > 0 {
                return None;
            }
        }
        // BLOB-07: the tree has a row for each module, including this one and those before it.
        let modules = blob
            .modules
            .len()
            .saturating_add(trial.modules.len())
            .saturating_add(1);
        let fits = match &trial.tree {
            Some(tree) => tree.check_modules(modules).is_ok(),
            None => blob.layout == Layout::V0_2,
        };
        (fits && cursor.is_at_end()).then_some(())
    }
}

/// Returns whether a payload that was decoded as a JSON runtime contains a graph in JSON.
fn has_graph(payload: &Payload<'_>) -> bool {
    match payload.field("graph_json") {
        Some(payload::Field::Text(text)) => text.trim_start().starts_with('{'),
        _ => false,
    }
}

/// Finds the import tree at the end of `body`, after reading of the `count` entries has stopped. The tree must end the blob and have a
/// row for each of the other entries.
pub(super) fn tree_at_end<'a>(body: &Cursor<'a>, count: u64) -> Option<ImportTree<'a>> {
    let modules = usize::try_from(count).ok()?.checked_sub(1)?;
    let rest = body.rest();
    let key = |at: &usize| {
        let behind = rest.get(at.saturating_add(8)..);
        behind.is_some_and(|name| name.starts_with(IMPORT_TREE.as_bytes()))
    };
    let places = (0..rest.len()).rev().filter(key).take(TRIALS);
    let mut found = places.filter_map(|at| {
        let mut cursor = body.look_ahead();
        cursor.take(at as u64, "payload", BLOB_06).ok()?;
        let key = cursor.str("key", BLOB_06).ok()?;
        let tree = ImportTree::read(&mut cursor, &mut Findings::default()).ok()?;
        let fits = *key == IMPORT_TREE && cursor.is_at_end() && tree.check_modules(modules).is_ok();
        fits.then_some(tree)
    });
    found.next()
}

/// Returns whether an entry may start here: with a length and the name of a known kind.
fn begins_with_key(bytes: &[u8]) -> bool {
    let Some((length, behind)) = bytes.split_first_chunk() else {
        return false;
    };
    let length = usize::try_from(u64::from_le_bytes(*length)).unwrap_or(usize::MAX);
    // The longest kind has 20 letters.
    let name = (1..=32).contains(&length).then(|| behind.get(..length));
    let name = name
        .flatten()
        .and_then(|name| std::str::from_utf8(name).ok());
    name.is_some_and(|name| {
        name == IMPORT_TREE || name == LIBRARY || payload::kind_info(name).is_some()
    })
}
