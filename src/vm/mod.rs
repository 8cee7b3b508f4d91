//! The Relax VM: an executable of four instructions, and the machine that runs it. Released from 0.16 on.
//!
//! | file | content | rules |
//! |---|---|---|
//! | `format/executable` | [`Executable`]: the decoded code of chapter payload, which keeps the rules of `checks` | |
//! | `format/checks` | the rules that the machine relies on | VM-01 .. VM-05 |
//! | `format/text` | disassembly and statistics, in this crate's own form | |
//! | `runtime/loaded_executable` | `LoadedExecutable`: an executable together with its bytes | |
//! | `runtime/machine` | `VirtualMachine`: devices and functions, calls from outside | VM-14, VM-60, VM-61, VM-64 |
//! | `runtime/link` | functions and constants, found before anything runs | VM-11 .. VM-13 |
//! | `runtime/code`, `interpret`, `frame` | code decoded once; the four instructions; registers | VM-20 .. VM-25, VM-66 |
//! | `runtime/observer` | `Observer`: sees every call | |
//! | `runtime/machine_interface` | the interface of the machine for closures and builtins | |
//! | `runtime/closure` | closures: a function of the executable and its last arguments | VM-28 |
//! | `runtime/allocator`, `storage`, `copies` | the two allocators, storage, tensors in it | VM-30 .. VM-33 |
//! | `runtime/builtin` | the functions `vm.builtin.*` | VM-29, VM-40 .. VM-58 |
//! | `runtime/module`, `methods`, `stateful` | the module kinds and their functions under upstream's names | VM-30, VM-60 .. VM-66 |
//! | `runtime/error` | the instruction in which a call failed | |
//!
//! A few lines run a model:
//!
//! ```no_run
//! # fn main() -> Result<(), tvmspec::function::Error> {
//! # let x = tvmspec::value::Any::none();
//! // SAFETY: the model is trusted code.
//! let model = unsafe { tvmspec::module::load("model.so") }?;
//! let vm = tvmspec::vm::VirtualMachine::from_module(&model, &[tvmspec::device::Device::CPU])?;
//! let y = vm.call("main", (x,))?;
//! # Ok(()) }
//! ```

/// The formats have a common module only for their lints, as in the crate's root.
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
mod format;
#[cfg(feature = "vm")]
mod runtime;

pub use format::Executable;
#[cfg(feature = "inspect")]
pub(crate) use format::Listing;
crate::rule::chapter_rules!("vm");
pub(crate) use rules::*;
#[cfg(feature = "vm")]
pub(crate) use runtime::provide;
#[cfg(feature = "vm")]
pub use runtime::{LoadedExecutable, ObservedCall, Observer, VirtualMachine, builtins};
