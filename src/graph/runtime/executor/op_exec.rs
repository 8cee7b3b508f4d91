//! The action of each node in a run, determined once: a call with its arguments, a copy, or no action.

use super::op_args::OpArgs;
use super::{Executor, Kernels, PoolTensor};
use crate::device::Device;
use crate::function::{Error, Function};
use crate::graph::{GRF_31, GRF_36};
use crate::rule::Kind;
use std::collections::BTreeSet;

/// The action of one node.
pub(super) enum OpExec {
    /// No action, for an input or `__nop`.
    Nothing,
    /// A copy between devices by the executor itself, for `__copy`. `from` and `to` are entries of the same size in bytes.
    Copy { from: usize, to: usize },
    Call {
        /// The kernel, found when the executor was created (GRF-31).
        function: Function,
        arguments: OpArgs,
    },
}

impl Executor {
    /// Finds the action of each node, by its number (GRF-31, GRF-36, GRF-39).
    pub(super) fn find_functions(&self, kernels: &Kernels<'_>) -> Result<Vec<OpExec>, Error> {
        let mut missing = BTreeSet::new();
        let mut steps = Vec::with_capacity(self.graph.nodes.len());
        for (index, node) in self.graph.nodes.iter().enumerate() {
            let Some(call) = &node.call else {
                steps.push(OpExec::Nothing);
                continue;
            };
            let first = self.graph.node_row_ptr[index];
            let inputs = node
                .inputs
                .iter()
                .filter_map(|input| self.graph.entry_id(*input));
            // GRF-38: the entries that a node reads, then those that it writes. `num_inputs` is ignored.
            let used: Vec<usize> = inputs.chain(first..first + call.num_outputs).collect();
            match (call.func_name.as_str(), used.as_slice()) {
                // GRF-31: this is not a function of a library and does nothing. Its input and output have the same bytes if they share
                // a pool.
                ("__nop", _) => steps.push(OpExec::Nothing),
                ("__copy", [from, to])
                    if self.entries[*from].nbytes() == self.entries[*to].nbytes() =>
                {
                    steps.push(OpExec::Copy {
                        from: *from,
                        to: *to,
                    });
                }
                ("__copy", _) => {
                    let sizes: Vec<usize> =
                        used.iter().map(|id| self.entries[*id].nbytes()).collect();
                    let message = format!(
                        "node {index} (`{}`) copies one entry to another of the same size; its arguments have {sizes:?} bytes",
                        node.name
                    );
                    return Err(GRF_36.rejected(Kind::Malformed, message).into());
                }
                (name, _) => match kernels(name)? {
                    Some(function) => {
                        let arguments = OpArgs::new(
                            used.iter().map(|id| (*id, &self.entries[*id])),
                            call.flatten_data,
                        );
                        steps.push(OpExec::Call {
                            function,
                            arguments,
                        });
                    }
                    // GRF-31: releases stop at the first missing function. One message with all names saves repeated builds.
                    None => {
                        missing.insert(name);
                    }
                },
            }
        }
        GRF_31.demand(Kind::Missing, missing.is_empty(), || {
            let missing: Vec<&str> = missing.iter().copied().collect();
            format!("no such function in module: {}", missing.join(", "))
        })?;
        Ok(steps)
    }

    /// Executes the action of one node. The result of a kernel is dropped (GRF-38).
    #[inline]
    pub(super) fn execute(&self, step: &OpExec) -> Result<(), Error> {
        match step {
            OpExec::Nothing => Ok(()),
            OpExec::Copy { from, to } => {
                let (from, to) = (self.current(*from), self.current(*to));
                // GRF-36: the device that is not the host makes the copy, and its tensor states the device.
                if to.view.device.kind == Device::CPU_KIND {
                    // SAFETY: both are entries, whose memory this keeps; `find_functions` found them to have the same size.
                    unsafe { from.copy_to(&to.view) }
                } else {
                    // SAFETY: both are entries, whose memory this keeps; `find_functions` found them to have the same size.
                    unsafe { to.copy_from(&from.view) }
                }
            }
            OpExec::Call {
                function,
                arguments,
            } => function.call_packed(arguments.views()).map(drop),
        }
    }

    /// Returns the memory of entry `id` in a run: the memory set by reference if there is one, otherwise the pool.
    fn current(&self, id: usize) -> &PoolTensor {
        self.external.get(&id).unwrap_or(&self.entries[id])
    }
}
