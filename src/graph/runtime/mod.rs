//! The executor of graphs, its modules, and the factories of executors.

mod arguments;
pub mod debug;
mod debug_methods;
pub mod executor;
mod executor_module;
mod factory;
mod linked_params;
mod methods;
mod model;
pub mod module;

pub use model::Model;
