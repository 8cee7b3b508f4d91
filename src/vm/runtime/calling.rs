//! What closures and builtins need of the machine that calls them.

use super::allocator::VmDevice;
use super::fault::VmResult;
use super::loaded::LoadedExecutable;
use crate::function::Error;
use crate::value::AnyView;
use std::sync::Arc;

/// The machine behind `%vm`. Closures and builtins know no more of it: the machine is made of them.
pub(super) trait CallingMachine: Send + Sync {
    /// The executable that it runs.
    fn loaded(&self) -> &Arc<LoadedExecutable>;

    /// Device `index`; -1 is the host, which is the last one (VM-14).
    fn place(&self, index: i64) -> Result<&VmDevice, Error>;

    /// The last place that is the host's, where shape heaps are (VM-48).
    fn host(&self) -> Result<&VmDevice, Error>;

    /// Runs function `function` of the executable on `args` (VM-20 to VM-25).
    fn run(&self, function: usize, args: &[AnyView<'_>]) -> VmResult;
}
