//! C++ in the same process: calls its modules and catches what they throw, and lets it call ours.
//!
//! | file | what | rules |
//! |---|---|---|
//! | `foreign` | modules that C++ made, called through their virtual functions | MOD-10, MOD-15 |
//! | `virtuals` | the table of virtual functions in front of our own modules | MOD-10 |
//! | `catching` | calls a function of C++ and catches what it throws | |
//! | `throwing` | throws an error to a caller in C++ | |
//! | `stream` | the stream that a loader in C++ reads its payload from | MOD-11 |

#[cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]
mod catching;
pub(super) mod foreign;
pub(super) mod stream;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub(crate) mod throwing;
pub(super) mod virtuals;
