//! The conformance suite: cases as data, adapters that put an implementation to them, verdicts and reports.

pub mod behaviour;
pub mod device;
pub mod op;

/// The chapter `blob`.
pub mod blob {
    pub mod containers;
}

/// The chapter `import_tree`.
pub mod import_tree {
    pub mod ops;
}
