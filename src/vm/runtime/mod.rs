//! The machine, its memory, its builtins and its modules.

mod allocator;
mod bools;
mod builtin;
mod calling;
mod closure;
mod code;
mod compiled;
mod copies;
mod fault;
mod frame;
mod interpret;
mod link;
mod loaded;
mod machine;
mod methods;
mod module;
mod observer;
mod parameter_types;
mod stateful;
mod storage;

pub use builtin::names as builtins;
pub use loaded::LoadedExecutable;
pub use machine::VirtualMachine;
pub(crate) use module::provide;
pub use observer::{ObservedCall, Observer};
