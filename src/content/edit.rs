//! Editing of the payload of a module.
//!
//! A payload is decoded, changed, encoded and read back before it replaces the old bytes. If an edit fails, or no reader accepts its
//! result, the module is unchanged.

use super::fault_of;
use crate::blob::{Blob, LibraryModule, StoredModule, check_kind};
use crate::import_tree::ImportTree;
use crate::payload::{self, PAY_09, Payload};
use crate::release::Layout;
use crate::rule::{Findings, Kind, Strictness, Tolerated, Violation};
use crate::wire::Cursor;
use std::borrow::Cow;

impl StoredModule<'_> {
    /// Decodes the payload, passes it to `change`, and stores the result in the form of the same layout. Returns the result of
    /// `change`; if that is an error, nothing changes.
    ///
    /// The new bytes are read back before they replace the old ones. They are read alone and, before layout 0.22, also within a library
    /// binary of `layout`. There, only the grammar of the payload shows where the next module begins (BLOB-05). Code of the Relax VM is
    /// checked against VM-01 to VM-05, and the graph of a graph executor against chapter graph. The content is not checked if it broke
    /// a rule before the change. So no edit creates a module that a reader rejects or mistakes for another. The findings are oddities of
    /// the new payload, at offsets into it.
    ///
    /// The payload borrows only from the module, so that `change` must insert owned values: `Cow::Owned(bytes)`, and
    /// `name.clone().into()` for a `String`, because `name.as_str().into()` does not compile.
    ///
    /// ```
    /// use tvmspec::blob::{Blob, LibraryModule};
    /// use tvmspec::release::Layout;
    /// use tvmspec::rule::Violation;
    ///
    /// let file = std::fs::read("golden/blob/cuda.bin")?;
    /// let mut blob = Blob::read(&file, Layout::V0_22)?.value;
    /// let mut modules = blob.modules.iter_mut().filter_map(LibraryModule::stored_mut);
    /// let cuda = modules.find(|module| module.kind == "cuda").expect("device code");
    /// cuda.edit(|payload| {
    ///     let code = payload.data_mut().expect("one code");
    ///     code.to_mut().extend_from_slice(b"// reviewed\n");
    ///     let name = String::from("reviewed");
    ///     payload.functions_mut().expect("device code")[0].key = name.clone().into();
    ///     Ok::<(), Violation>(())
    /// })?;
    /// let changed = blob.write()?;
    /// assert_eq!(Blob::read(&changed, blob.layout)?.value.modules.len(), blob.modules.len());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the error of `change`, and one of these:
    ///
    /// * the rule that the payload breaks before or after the change, or that its content breaks after it;
    /// * the rule that the module breaks in a library binary, such as BLOB-04 for its kind;
    /// * PAY-09 if the changed payload is read in another form than it was written in, or up to another end.
    ///
    /// In all cases the module is unchanged.
    pub fn edit<R, E: From<Violation>>(
        &mut self,
        change: impl FnOnce(&mut Payload<'_>) -> Result<R, E>,
    ) -> Result<Tolerated<R>, E> {
        let layout = self.layout;
        let mut payload = self.decode()?.value;
        // A valid file may break rules that releases do not check during loading. Such a file may still be edited.
        let was_sound = fault_of(&payload, 0).is_none();
        let answer = change(&mut payload)?;
        let bytes = payload.to_bytes(layout)?;
        let mut cursor = Cursor::new(&bytes);
        let mut findings = Findings::new(Strictness::Lenient);
        // PAY-09: written bytes do not name their form, so that only reading shows how they are interpreted.
        let again = payload::read(&self.kind, layout, &mut cursor, &mut findings)?;
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
        // Both borrow from the bytes that are replaced below.
        drop((payload, again));
        read_in_place(&self.kind, &bytes, layout)?;
        self.payload = Cow::Owned(bytes);
        // These bytes were never in a file.
        self.offset = 0;
        Ok(Tolerated {
            value: answer,
            findings,
        })
    }
}

/// Reads a module as a reader of a library binary does: by its kind, with another module after it.
///
/// In layout 0.22 a payload has its own length (BLOB-11), so that reading it alone is the same. Before 0.22 it ends where its grammar
/// ends (BLOB-05), and a truncated form may continue into the next module (PAY-09).
fn read_in_place(kind: &str, payload: &[u8], layout: Layout) -> Result<(), Violation> {
    // Offsets in the temporary library binary mean nothing to the caller.
    let nowhere = |broken: Violation| broken.rule().rejected(broken.kind(), broken.message());
    check_kind(kind, 0).map_err(nowhere)?;
    if layout >= Layout::V0_22 {
        return Ok(());
    }
    let module = LibraryModule::from(StoredModule::new(kind, payload, layout));
    let mut scratch = Findings::new(Strictness::Lenient);
    // BLOB-14: 0.2 has no tree, so that its last module ends at the end of the bytes.
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
    let read = Blob::read_with(&bytes, layout, &mut scratch).map_err(nowhere)?;
    let same =
        |module: &LibraryModule<'_>| module.kind() == kind && module.payload() == Some(payload);
    if read.modules.len() == 2 && read.modules.iter().all(same) {
        return Ok(());
    }
    let message =
        format!("the changed payload of `{kind}` does not end where the next module begins");
    Err(PAY_09.rejected(Kind::Malformed, message))
}
