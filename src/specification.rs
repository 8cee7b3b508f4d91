//! The pages of the specification that belong to no chapter. Every page is the text of a file in `spec/`.
//!
//! The text of a rule is the documentation of its constant, such as [`blob::rules::BLOB_07`](crate::blob::rules::BLOB_07); the module
//! of these constants has the rest of the chapter: tables, productions, operations. The next sections are `spec/README.md`.
//!
#![doc = include_str!(concat!(env!("OUT_DIR"), "/rules/README.md"))]

/// Declares a documentation page for each file.
macro_rules! pages {
    ($($(#[doc = $about:literal])+ $page:ident = $file:literal;)+) => { $(
        $(#[doc = $about])+
        #[doc = ""]
        #[doc = include_str!(concat!(env!("OUT_DIR"), "/rules/", $file))]
        pub mod $page {}
    )+ };
}

pages! {
    /// The title of every rule.
    index = "index.md";
    /// The choices of this crate where the rules leave room, and the reasons.
    decisions = "decisions.md";
    /// How the suite judges a library and a live server.
    judging = "judging.md";
    /// The JSON forms of values that cases of several chapters use.
    values = "values.md";
    /// The module kinds that each release stores and loads.
    kinds = "kinds.md";
    /// Members and offsets of the C structures, release by release.
    structures = "structures.md";
    /// The functions that a runtime registers, release by release.
    global_functions = "global-functions.md";
    /// The nodes that a code generator is given.
    lowered_modules = "lowered-modules.md";
    /// The programs that test a device against its rules.
    device_programs = "device-programs.md";
}
