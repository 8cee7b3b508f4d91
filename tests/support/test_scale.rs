//! The scale of tests that are slow at full size.

/// Returns whether tests run at full size. `.ci/run thorough` sets `TVMSPEC_THOROUGH`; otherwise a smaller size shows the same.
pub(crate) fn is_thorough() -> bool {
    std::env::var_os("TVMSPEC_THOROUGH").is_some()
}
