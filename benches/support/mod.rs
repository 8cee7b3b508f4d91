//! Code shared by the benchmarks without a framework.

/// Returns `count` under `cargo bench`, and 1 under `cargo test --bench NAME`. One round shows that a benchmark still works.
pub(crate) fn rounds(count: usize) -> usize {
    if std::env::args().any(|argument| argument == "--bench") {
        count
    } else {
        1
    }
}
