//! Changing what a module stores.
//!
//! A payload is decoded, changed, encoded and read back before it replaces the bytes that were there: an edit that fails, or that no reader
//! accepts, leaves the module as it was.

use super::fault_of;
use crate::blob::{BLOB_17, Blob, StoredModule, check_kind};
use crate::import_tree::ImportTree;
use crate::payload::{self, PAY_09, Payload};
use crate::release::Layout;
use crate::rule::{Findings, Kind, Strictness, Violation};
use crate::wire::Cursor;
use std::borrow::Cow;

impl StoredModule<'_> {
    /// Decodes the payload, passes it to `change`, and stores what it became as `layout` does. Returns what `change` returns; where
    /// that is an error, nothing changes.
    ///
    /// The new bytes are read back before they replace the old ones: alone, and before layout 0.22 in a library binary of
    /// `layout` too, where only the grammar of the payload shows where the next module begins (BLOB-05). Code of the Relax VM is held
    /// to VM-01 to VM-05, and the graph of a graph executor to chapter graph, unless the content broke a rule before the change. So no
    /// edit makes a module that a reader rejects or takes for another. Oddities of the new payload go to `findings`, at offsets into it.
    ///
    /// The payload borrows from the module alone, so that what `change` puts into it is owned: `Cow::Owned(bytes)`, and
    /// `name.clone().into()` for a `String`, where `name.as_str().into()` does not compile.
    ///
    /// ```
    /// use tvmspec::blob::Blob;
    /// use tvmspec::release::Layout;
    /// use tvmspec::rule::{Findings, Violation};
    ///
    /// let file = std::fs::read("golden/blob/cuda.bin")?;
    /// let mut findings = Findings::default();
    /// let mut blob = Blob::read(&file, Layout::V0_22, &mut findings)?;
    /// let layout = blob.layout;
    /// let cuda = blob.modules.iter_mut().find(|module| module.kind == "cuda").expect("device code");
    /// cuda.edit(layout, &mut findings, |payload| {
    ///     let code = payload.data_mut().expect("one code");
    ///     code.to_mut().extend_from_slice(b"// reviewed\n");
    ///     let name = String::from("reviewed");
    ///     payload.functions_mut().expect("device code")[0].key = name.clone().into();
    ///     Ok::<(), Violation>(())
    /// })?;
    /// let changed = blob.write()?;
    /// assert_eq!(Blob::read(&changed, layout, &mut findings)?.modules.len(), blob.modules.len());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The error of `change`. BLOB-17 for a module that stores nothing, as `_lib` does. The rule that the payload breaks, before or
    /// after the change, or its content after it; the rule that the module breaks in a library binary, like BLOB-04 for its kind;
    /// PAY-09 where the changed payload is read in another form than it was written in, or to another end. The module is then as it
    /// was.
    pub fn edit<R, E: From<Violation>>(
        &mut self,
        layout: Layout,
        findings: &mut Findings,
        change: impl FnOnce(&mut Payload<'_>) -> Result<R, E>,
    ) -> Result<R, E> {
        let mut before = Findings::new(Strictness::Lenient);
        let Some(mut payload) = self.decode(layout, &mut before)? else {
            let message = format!("a module of kind `{}` has no payload to change", self.kind);
            return Err(BLOB_17.rejected(Kind::Missing, message).into());
        };
        // What releases do not look at while they load may be broken in a file that is worth changing.
        let was_sound = fault_of(&payload, 0).is_none();
        let answer = change(&mut payload)?;
        let bytes = payload.to_bytes(layout)?;
        let mut cursor = Cursor::new(&bytes);
        // Lenient here and strict below: a finding must not leave the payload half changed.
        let mut after = Findings::new(Strictness::Lenient);
        // PAY-09: written bytes do not name their form, so that only reading shows which one they are taken for.
        let again = payload::read(&self.kind, layout, &mut cursor, &mut after)?;
        if again.form() != payload.form() || !cursor.is_at_end() {
            let message = format!(
                "the changed payload of `{}` is read in another form",
                self.kind
            );
            return Err(PAY_09.rejected(Kind::Malformed, message).into());
        }
        if let Some(broken) = fault_of(&again, 0).filter(|_| was_sound) {
            return Err(broken.into());
        }
        // Both borrow what is about to be replaced.
        drop((payload, again));
        read_in_place(&self.kind, &bytes, layout)?;
        for finding in after {
            findings.note(finding.rule, finding.kind, finding.offset, finding.message)?;
        }
        self.payload = Some(Cow::Owned(bytes));
        // These bytes were never in a file.
        self.offset = 0;
        Ok(answer)
    }
}

/// Reads a module as a reader of a library binary does: by its kind, with another module behind it.
///
/// In layout 0.22 a payload is a window of its own (BLOB-11), so that reading it alone is what that reader does. Before, it ends
/// where its grammar does (BLOB-05), and a form that is cut off alone may go on reading in the module behind (PAY-09).
fn read_in_place(kind: &str, payload: &[u8], layout: Layout) -> Result<(), Violation> {
    // Offsets in a library binary that is made for this mean nothing to the caller.
    let nowhere = |broken: Violation| broken.rule().rejected(broken.kind(), broken.message());
    check_kind(kind, 0).map_err(nowhere)?;
    if layout >= Layout::V0_22 {
        return Ok(());
    }
    let module = StoredModule {
        kind: Cow::Borrowed(kind),
        payload: Some(Cow::Borrowed(payload)),
        offset: 0,
    };
    let mut scratch = Findings::new(Strictness::Lenient);
    // BLOB-14: 0.2 has no tree, so that its last module ends with the bytes.
    let tree = match layout {
        Layout::V0_2 => None,
        _ => Some(ImportTree::new(&[0, 1, 1], &[1], &mut scratch)?),
    };
    let made = Blob {
        layout,
        modules: vec![module.clone(), module],
        tree,
    };
    let bytes = made.write()?;
    let read = Blob::read(&bytes, layout, &mut scratch).map_err(nowhere)?;
    let same = |module: &StoredModule<'_>| {
        module.kind == kind && module.payload.as_deref() == Some(payload)
    };
    if read.modules.len() == 2 && read.modules.iter().all(same) {
        return Ok(());
    }
    let message =
        format!("the changed payload of `{kind}` does not end where the next module begins");
    Err(PAY_09.rejected(Kind::Malformed, message))
}
