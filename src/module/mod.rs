//! Modules: the contract, and loading compiled libraries of every release.
//!
//! | what | where | rules |
//! |---|---|---|
//! | names that a library and its loader meet under | [`names`] | MOD-01 to MOD-05 |
//! | an opened library and the bounds of its data | [`dso`] | MOD-18 |
//! | the system library | [`system`] | MOD-16, MOD-17 |
//! | parallel launch and barrier | [`parallel`] | MOD-20, MOD-21, MOD-24 |
//! | static initialisation | [`once`] | MOD-22 |
//! | workspace | [`workspace`] | MOD-23 |

pub mod dso;
pub mod last_error;
pub mod names;
pub mod once;
pub mod parallel;
pub mod system;
pub mod workspace;

pub use dso::{Dso, Symbols};

crate::rule::rules! {
    MOD_01 "MOD-01"
    MOD_02 "MOD-02"
    MOD_03 "MOD-03"
    MOD_04 "MOD-04"
    MOD_05 "MOD-05"
    MOD_16 "MOD-16"
    MOD_17 "MOD-17"
    MOD_18 "MOD-18"
    MOD_20 "MOD-20"
    MOD_21 "MOD-21"
    MOD_22 "MOD-22"
    MOD_23 "MOD-23"
}
