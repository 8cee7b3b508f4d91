//! Changing what a module stores.

use super::{BLOB_17, StoredModule};
use crate::payload::{self, PAY_09, Payload};
use crate::release::Layout;
use crate::rule::{Findings, Kind, Strictness, Violation};
use crate::wire::Cursor;
use std::borrow::Cow;

impl StoredModule<'_> {
    /// Decodes the payload, lets `change` have it, and stores what it became as `layout` does. Returns what `change` returns.
    ///
    /// The new bytes are read back before they replace the old ones, so that no edit makes a payload that a reader rejects or
    /// takes for a payload of another form. Oddities of the new payload go to `findings`.
    ///
    /// ```
    /// use tvmspec::blob::Blob;
    /// use tvmspec::release::Layout;
    /// use tvmspec::rule::Findings;
    ///
    /// let file = std::fs::read("golden/blob/cuda.bin")?;
    /// let mut findings = Findings::default();
    /// let mut blob = Blob::read(&file, Layout::V0_22, &mut findings)?;
    /// let layout = blob.layout;
    /// let cuda = blob.modules.iter_mut().find(|module| module.kind == "cuda").expect("device code");
    /// cuda.edit(layout, &mut findings, |payload| {
    ///     let code = payload.data_mut().expect("one code");
    ///     code.to_mut().extend_from_slice(b"// reviewed\n");
    /// })?;
    /// let changed = blob.write()?;
    /// assert_eq!(Blob::read(&changed, layout, &mut findings)?.modules.len(), blob.modules.len());
    /// assert_eq!(changed.len(), file.len() + 12);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// BLOB-17 for a module that stores nothing, as `_lib` does. The rule that the payload breaks, before or after the change; PAY-09 where the
    /// changed payload is read in another form than it was written in. The module is then as it was.
    pub fn edit<R>(
        &mut self,
        layout: Layout,
        findings: &mut Findings,
        change: impl FnOnce(&mut Payload<'_>) -> R,
    ) -> Result<R, Violation> {
        let mut before = Findings::new(Strictness::Lenient);
        let Some(mut payload) = self.decode(layout, &mut before)? else {
            let message = format!("a module of kind `{}` has no payload to change", self.kind);
            return Err(BLOB_17.refused(Kind::Missing, message));
        };
        let answer = change(&mut payload);
        let bytes = payload.to_bytes(layout)?;
        let mut cursor = Cursor::new(&bytes);
        let mut after = Findings::new(Strictness::Lenient);
        let again = payload::read(&self.kind, layout, &mut cursor, &mut after)?;
        if again.form() != payload.form() || !cursor.is_at_end() {
            let message = format!(
                "the changed payload of `{}` is read in another form",
                self.kind
            );
            return Err(PAY_09.refused(Kind::Malformed, message));
        }
        drop((payload, again));
        for finding in after {
            findings.note(finding.rule, finding.kind, finding.offset, finding.message)?;
        }
        self.payload = Some(Cow::Owned(bytes));
        // These bytes were never in a file.
        self.offset = 0;
        Ok(answer)
    }
}
