//! What runs executables: the machine, its memory, its builtins and its modules.

mod allocator;
mod builtin;
mod closure;
mod code;
mod copies;
mod fault;
mod interpret;
mod link;
mod loaded;
mod machine;
mod methods;
mod module;
mod stateful;
mod storage;

pub use builtin::names as builtins;
pub use fault::Fault;
pub use interpret::{ObservedCall, Observer};
pub use loaded::LoadedExecutable;
pub use machine::VirtualMachine;
pub(crate) use module::provide;
