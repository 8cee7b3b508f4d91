//! Copying inputs in and outputs out.

use super::tensor::whole_byte_elements;
use super::{Executor, PoolTensor, with_record};
use crate::function::Error;
use crate::graph::GRF_43;
use crate::object;
use crate::rule::Kind;
use crate::tensor::Params;
use crate::value::DLTensor;

impl Executor {
    /// Copies `source` into input `index` (GRF-33: same type, same shape).
    ///
    /// # Errors
    ///
    /// Returns GRF-32, GRF-33, and GRF-43 for a linked parameter of the library.
    ///
    /// A tensor owns its memory; a bare description is not accepted:
    ///
    /// ```compile_fail,E0308
    /// # use tvmspec::graph::executor::Executor;
    /// # use tvmspec::value::DLTensor;
    /// fn set(executor: &mut Executor, made_up: &DLTensor) {
    ///     executor.set_input(0, made_up);
    /// }
    /// ```
    pub fn set_input(&mut self, index: usize, source: &object::Tensor) -> Result<(), Error> {
        let source = whole_byte_elements(source)?;
        // SAFETY: a tensor object owns the memory that it describes, and lives for the call.
        unsafe { self.set_input_from(index, source) }
    }

    /// Sets the input as [`Executor::set_input`] does, from a description.
    ///
    /// # Safety
    ///
    /// `source` describes memory that stays valid for the call; its extents and strides are readable.
    pub(in crate::graph::runtime) unsafe fn set_input_from(
        &mut self,
        index: usize,
        source: &DLTensor,
    ) -> Result<(), Error> {
        let entry = self.input_entry(index)?;
        let target = &self.entries[entry];
        // SAFETY: the extents of `source` are readable.
        if let Err(broken) = unsafe { target.check_same(source, "") } {
            // The search for the name walks over `arg_nodes`, so only an error pays for it.
            let named = format!("input `{}`{}", self.input_name(index), broken.message());
            return Err(broken.rule().rejected(broken.kind(), named).into());
        }
        // GRF-43: releases write to it, and crash if the library has it in constant memory.
        GRF_43.demand(Kind::Unsupported, !target.is_read_only(), || {
            let name = self.input_name(index);
            format!("`{name}` is linked into the library, and is not written to")
        })?;
        // SAFETY: its strides are readable too.
        unsafe { PoolTensor::check_compact(source, "an input") }?;
        // SAFETY: `source` is valid for the call, contiguous, and of the type and shape of `target`, as just checked.
        unsafe { target.copy_from(source) }?;
        self.set.insert(entry);
        Ok(())
    }

    /// Fills input `index` with zeros, which counts as setting it. A linked parameter (GRF-43) is not changed.
    ///
    /// # Errors
    ///
    /// Returns GRF-32 for an unknown input; the device's error.
    pub fn clear_input(&mut self, index: usize) -> Result<(), Error> {
        let entry = self.input_entry(index)?;
        // GRF-43: the memory of a linked parameter may be constant, and a write would crash the process.
        if !self.entries[entry].is_read_only() {
            self.entries[entry].clear()?;
        }
        self.set.insert(entry);
        Ok(())
    }

    /// Sets every parameter that is an input of the graph. Others are skipped, as from 0.7 on (GRF-37). Returns the number of
    /// parameters that were set.
    ///
    /// # Errors
    ///
    /// Returns GRF-33 for a parameter whose type or shape differs from its input; GRF-43 for a linked one; a device's error. The
    /// parameters before it remain set.
    pub fn load_params(&mut self, params: &Params<'_>) -> Result<usize, Error> {
        let mut set = 0;
        for (name, record) in params.iter() {
            // GRF-37: releases up to 0.6 reject a file with another name.
            let Some(index) = self.input_index(name) else {
                continue;
            };
            // SAFETY: the description covers the record's bytes, which stay for the call.
            with_record(record, |tensor| unsafe {
                self.set_input_from(index, tensor)
            })?;
            // GRF-44: `get_input_info` omits these inputs.
            self.params.insert(index);
            set += 1;
        }
        Ok(set)
    }

    /// Returns whether input `index` came with a parameter file.
    pub fn is_param(&self, index: usize) -> bool {
        self.params.contains(&index)
    }

    /// Returns the inputs that were never set. Their contents are arbitrary.
    pub fn unset_inputs(&self) -> Vec<&str> {
        let inputs = self.graph.inputs();
        let is_set = |node: usize| {
            let entry = self.graph.entry_of(node, 0);
            entry.is_some_and(|entry| self.set.contains(&entry))
        };
        inputs
            .filter(|(node, _)| !is_set(*node))
            .map(|(_, name)| name)
            .collect()
    }

    /// Copies output `index` into `target` (GRF-33).
    ///
    /// # Errors
    ///
    /// Returns GRF-32 and GRF-33.
    ///
    /// ```compile_fail,E0308
    /// # use tvmspec::graph::executor::Executor;
    /// # use tvmspec::value::DLTensor;
    /// fn copy(executor: &Executor, made_up: &DLTensor) {
    ///     executor.copy_output(0, made_up);
    /// }
    /// ```
    pub fn copy_output(&self, index: usize, target: &object::Tensor) -> Result<(), Error> {
        self.output(index)?.copy_out(target)
    }
}
