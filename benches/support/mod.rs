//! Code that the benchmarks without a framework share.

/// Returns `count` under `cargo bench`, and 1 under `cargo test --bench NAME`, which runs a benchmark once to see that it works.
pub(crate) fn rounds(count: usize) -> usize {
    if std::env::args().any(|argument| argument == "--bench") {
        count
    } else {
        1
    }
}
