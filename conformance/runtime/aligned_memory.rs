//! Aligned memory for tensors that a runtime or a kernel reads in place.

/// A block of 64 bytes, aligned to 64 bytes, which is the largest alignment that a case names.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(in crate::conformance) struct AlignedLine(
    #[expect(dead_code, reason = "the runtime reads it")] [u8; 64],
);

impl AlignedLine {
    /// Returns `count` blocks of 64 zeros each.
    pub(in crate::conformance) fn zeros(count: usize) -> Vec<AlignedLine> {
        vec![AlignedLine([0; 64]); count]
    }

    /// Returns the blocks that hold `bytes`, padded with zeros.
    pub(in crate::conformance) fn copy_aligned(bytes: &[u8]) -> Vec<AlignedLine> {
        let lines = bytes.chunks(64).map(|chunk| {
            let mut line = [0; 64];
            line[..chunk.len()].copy_from_slice(chunk);
            AlignedLine(line)
        });
        lines.collect()
    }
}
