//! The runtime half: questions to devices, and the targets of threads. It uses the format half, and never the other way round.

pub(crate) mod functions;
mod machine;
mod registered;
mod scope;

pub use machine::{device_target, local_machine};
pub use registered::{
    register_generator, register_kind, register_tag, registered_generators, registered_targets,
};
pub use scope::{TargetScope, current, enter_scope, exit_scope};
