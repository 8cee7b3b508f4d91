//! The releases of a runtime, and formats that older ones cannot read.

use super::api::FfiApi;
use super::{Reply, unsupported};
use crate::payload::relax_vm::MAGIC_WITH_SCOPES;
use crate::release::Release;

impl FfiApi {
    /// Returns the TVM releases that use this version of tvm-ffi, as the library reports it. The packages 0.1.13 to 0.1.15 report
    /// one more than their name.
    pub(in crate::conformance) fn releases(&self) -> Vec<Release> {
        let [major, minor, patch] = self.version;
        let minors: &[u8] = match (major, minor, patch) {
            (0, 1, 0..8) => &[22],
            (0, 1, 8..11) => &[23],
            (0, 1, 11) => &[24],
            (0, 1, 12) => &[25],
            _ => &[26, 27],
        };
        minors.iter().map(|minor| Release::of(*minor)).collect()
    }

    /// Checks that the runtime knows the magic of Relax VM code. A case with a later form of executable proves nothing about it.
    pub(in crate::conformance) fn reads_code(&self, code: &[u8]) -> Result<(), Reply> {
        let has_scopes = code.first_chunk() == Some(&MAGIC_WITH_SCOPES.to_le_bytes());
        // PAY-82
        if has_scopes
            && self
                .releases()
                .iter()
                .all(|release| *release < Release::of(23))
        {
            return Err(unsupported("executables with memory scopes came with 0.23"));
        }
        Ok(())
    }
}
