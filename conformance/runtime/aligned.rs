//! Memory for tensors that a runtime or a kernel reads in place.

/// 64 bytes at an address that they divide: as far apart as any alignment that a case names.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(in crate::conformance) struct AlignedLine(
    #[expect(dead_code, reason = "the runtime reads it")] [u8; 64],
);

impl AlignedLine {
    /// `count` lines of zeros, 64 bytes each.
    pub(in crate::conformance) fn zeros(count: usize) -> Vec<AlignedLine> {
        vec![AlignedLine([0; 64]); count]
    }

    /// As many lines as hold `bytes`; behind them zeros.
    pub(in crate::conformance) fn holding(bytes: &[u8]) -> Vec<AlignedLine> {
        let lines = bytes.chunks(64).map(|chunk| {
            let mut line = [0; 64];
            line[..chunk.len()].copy_from_slice(chunk);
            AlignedLine(line)
        });
        lines.collect()
    }
}
