//! The machine, its memory, its builtins and its modules.

mod allocator;
mod bools;
mod builtin;
mod closure;
mod code;
mod compiled;
mod copies;
mod error;
mod frame;
mod interpret;
mod link;
mod loaded_executable;
mod machine;
mod machine_interface;
mod methods;
mod module;
mod observer;
mod parameter_types;
mod stateful;
mod storage;

pub use builtin::names as builtins;
pub use loaded_executable::LoadedExecutable;
pub use machine::VirtualMachine;
pub(crate) use module::provide;
pub use observer::{ObservedCall, Observer};
