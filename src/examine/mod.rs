//! What can be said about a file without running it.
//!
//! * [`loading`]: what the loader of each release makes of a library, whether or not the library keeps the rules

pub mod loading;
