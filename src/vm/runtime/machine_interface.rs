//! The interface of the machine that closures and builtins use.

use super::allocator::VmDevice;
use super::error::VmResult;
use super::loaded_executable::LoadedExecutable;
use crate::function::Error;
use crate::value::AnyView;
use std::sync::Arc;

/// The machine that `%vm` refers to, as an interface with the methods for closures and builtins. The machine itself depends on them.
pub(super) trait CallingMachine: Send + Sync {
    /// Returns the executable that it runs.
    fn loaded(&self) -> &Arc<LoadedExecutable>;

    /// Returns device `index`; -1 is the host, which is the last device (VM-14).
    fn device(&self, index: i64) -> Result<&VmDevice, Error>;

    /// Returns the last device that is the host, where shape heaps are (VM-48).
    fn host(&self) -> Result<&VmDevice, Error>;

    /// Runs function `function` of the executable on `args` (VM-20 to VM-25).
    fn run(&self, function: usize, args: &[AnyView<'_>]) -> VmResult;
}
