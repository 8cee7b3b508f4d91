//! C++ in the same process: calls C++ modules, catches their exceptions, and lets C++ call our modules.
//!
//! | file | contents | rules |
//! |---|---|---|
//! | `virtual_calls` | C++ modules, called through their virtual functions | MOD-10, MOD-15 |
//! | `vtable` | the vtable of our own modules | MOD-10 |
//! | `catching` | calls a C++ function and catches its exceptions | |
//! | `throwing` | throws an error to a C++ caller | |
//! | `stream` | the stream from which a C++ loader reads its payload | MOD-11 |

#[cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]
mod catching;
pub(super) mod stream;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub(crate) mod throwing;
pub(super) mod virtual_calls;
pub(super) mod vtable;
