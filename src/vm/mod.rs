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

crate::rule::rules! {
    VM_01 "VM-01"
    VM_02 "VM-02"
    VM_03 "VM-03"
    VM_04 "VM-04"
    VM_05 "VM-05"
    VM_11 "VM-11"
    VM_12 "VM-12"
    VM_13 "VM-13"
    VM_14 "VM-14"
    VM_20 "VM-20"
    VM_21 "VM-21"
    VM_22 "VM-22"
    VM_23 "VM-23"
    VM_24 "VM-24"
    VM_25 "VM-25"
    VM_28 "VM-28"
    VM_29 "VM-29"
    VM_30 "VM-30"
    VM_31 "VM-31"
    VM_32 "VM-32"
    VM_33 "VM-33"
    VM_40 "VM-40"
    VM_41 "VM-41"
    VM_42 "VM-42"
    VM_43 "VM-43"
    VM_44 "VM-44"
    VM_45 "VM-45"
    VM_46 "VM-46"
    VM_47 "VM-47"
    VM_48 "VM-48"
    VM_49 "VM-49"
    VM_50 "VM-50"
    VM_51 "VM-51"
    VM_52 "VM-52"
    VM_53 "VM-53"
    VM_54 "VM-54"
    VM_55 "VM-55"
    VM_56 "VM-56"
    VM_57 "VM-57"
    VM_58 "VM-58"
    VM_60 "VM-60"
    VM_61 "VM-61"
    VM_62 "VM-62"
    VM_63 "VM-63"
    VM_64 "VM-64"
    VM_65 "VM-65"
    VM_66 "VM-66"
}
