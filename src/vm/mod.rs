//! The Relax VM: an executable of four instructions, and the machine that runs it. Released from 0.16 on.
//!
//! | file | what | rules |
//! |---|---|---|
//! | `executable` | [`Executable`]: the decoded code of chapter payload, held to what the machine relies on | VM-01 .. VM-05 |
//! | `text` | disassembly and statistics, in a form of our own | |
//! | `machine` | `VirtualMachine`: devices, constants, functions, calls from outside | VM-11 .. VM-14 |
//! | `interpret` | the four instructions | VM-20 .. VM-25 |
//! | `closure` | closures: a function of the executable and its last arguments | VM-28, VM-29 |
//! | `memory` | storage, tensors in it, the two allocators | VM-30 .. VM-33 |
//! | `builtin` | the functions `vm.builtin.*` | VM-40 .. VM-56 |
//! | `module` | the module kinds and their functions under the released names | VM-60 .. VM-66 |
//!
//! A few lines run a model:
//!
//! ```no_run
//! # fn main() -> Result<(), tvmspec::function::Error> {
//! # let x = tvmspec::value::Any::none();
//! // SAFETY: the model is trusted code.
//! let model = unsafe { tvmspec::module::load("model.so") }?;
//! let vm = tvmspec::vm::VirtualMachine::of(&model, &[tvmspec::device::Device::CPU])?;
//! let y = vm.call("main", &[x])?;
//! # Ok(()) }
//! ```

#[forbid(unsafe_code)]
#[deny(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    clippy::panic
)]
mod executable;
#[forbid(unsafe_code)]
#[deny(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    clippy::panic
)]
mod text;

#[cfg(feature = "runtime")]
mod builtin;
#[cfg(feature = "runtime")]
mod closure;
#[cfg(feature = "runtime")]
mod fault;
#[cfg(feature = "runtime")]
mod interpret;
#[cfg(feature = "runtime")]
mod loaded;
#[cfg(feature = "runtime")]
mod machine;
#[cfg(feature = "runtime")]
mod memory;
#[cfg(feature = "runtime")]
mod module;
mod rules;

pub use rules::*;

pub use executable::Executable;
pub(crate) use text::Listing;

#[cfg(feature = "runtime")]
pub use builtin::names as builtins;
#[cfg(feature = "runtime")]
pub use fault::Fault;
#[cfg(feature = "runtime")]
pub use interpret::{Observer, Step};
#[cfg(feature = "runtime")]
pub use loaded::Loaded;
#[cfg(feature = "runtime")]
pub use machine::VirtualMachine;
#[cfg(feature = "vm")]
pub(crate) use module::provide;
