//! Memory of others that calls use in place: the caller's, another executor's, the library's.

use super::aliases::Aliases;
use super::op_exec::OpExec;
use super::tensor::whole;
use super::{Executor, PoolTensor};
use crate::device::ALIGNMENT;
use crate::function::Error;
use crate::graph::{GRF_34, GRF_35};
use crate::object;
use crate::rule::Kind;
use crate::value::{Any, DLTensor};
use std::collections::HashMap;

impl Executor {
    /// Lets every call that uses input `index` use the memory of `source` instead (GRF-34).
    ///
    /// Nothing is copied, now or in a run. [`Executor::input`] still shows the old memory, as in every release. The executor
    /// keeps `source` until the input is set by reference again.
    ///
    /// # Errors
    ///
    /// GRF-32, GRF-33, GRF-34.
    pub fn set_input_by_reference(
        &mut self,
        index: usize,
        source: &object::Tensor,
    ) -> Result<(), Error> {
        // SAFETY: a tensor object owns the memory that it describes, and is kept.
        unsafe { self.refer_input(index, whole(source)?, source.clone().into()) }
    }

    /// [`Executor::set_input_by_reference`] with a description of memory that `keep` keeps.
    ///
    /// # Safety
    ///
    /// The memory of `source` stays as long as `keep`; its extents and strides are readable.
    pub(in crate::graph::runtime) unsafe fn refer_input(
        &mut self,
        index: usize,
        source: &DLTensor,
        keep: Any,
    ) -> Result<(), Error> {
        let entry = self.input_entry(index)?;
        let what = format!("input `{}`", self.input_name(index));
        // SAFETY: as for this function.
        unsafe { self.redirect(entry, source, &keep, &what) }?;
        self.set.insert(entry);
        Ok(())
    }

    /// Lets every call that writes output `index` write to the memory of `target` instead (GRF-34), which the executor keeps
    /// until the output is set by reference again.
    ///
    /// # Errors
    ///
    /// GRF-32, GRF-33, GRF-34; OBJ-12 for a tensor that is read-only.
    pub fn set_output_by_reference(
        &mut self,
        index: usize,
        target: &object::Tensor,
    ) -> Result<(), Error> {
        target.check_writable()?;
        // SAFETY: a tensor object owns the memory that it describes, and is kept.
        unsafe { self.refer_output(index, whole(target)?, target.clone().into()) }
    }

    /// [`Executor::set_output_by_reference`] with a description of memory that `keep` keeps.
    ///
    /// # Safety
    ///
    /// As for [`Executor::refer_input`].
    pub(in crate::graph::runtime) unsafe fn refer_output(
        &mut self,
        index: usize,
        target: &DLTensor,
        keep: Any,
    ) -> Result<(), Error> {
        let entry = self.output_entry(index)?;
        // SAFETY: as for this function.
        unsafe { self.redirect(entry, target, &keep, &format!("output {index}")) }
    }

    /// Lets this executor use `other`'s memory for the inputs called `names` (GRF-35): both see one set of parameters.
    ///
    /// Names that either graph does not have are skipped, as `load_params` does.
    ///
    /// # Errors
    ///
    /// GRF-35 where an input of one name is of another type or size in the two.
    pub fn share_inputs<'a>(
        &mut self,
        other: &Executor,
        names: impl Iterator<Item = &'a str>,
    ) -> Result<(), Error> {
        // How many entries each pool is for.
        let mut users = HashMap::<usize, usize>::new();
        for entry in &self.graph.entries {
            *users.entry(entry.storage_id).or_insert(0) += 1;
        }
        for name in names {
            let (Some(here), Some(there)) = (self.input_index(name), other.input_index(name))
            else {
                continue;
            };
            let shared = other.input(there)?.clone();
            let entry = self.input_entry(here)?;
            let what = format!("shared parameter `{name}`");
            // SAFETY: the extents of the other executor's tensor, which `shared` keeps.
            unsafe { self.entry(entry).check_same(&shared.view, &what) }?;
            // GRF-35: the pool must be of this parameter alone. Another entry of it is written in every run, and that would overwrite
            // the parameter of both executors.
            let storage = self.graph.entries.get(entry).map(|entry| entry.storage_id);
            let users = storage.and_then(|storage| users.get(&storage));
            let alone = users.is_none_or(|users| *users <= 1);
            GRF_35.demand(Kind::Unsupported, alone, || {
                format!("the memory of `{name}` is shared with other entries of its graph")
            })?;
            let keep = Any::from(shared.to_object());
            // SAFETY: `keep` keeps the other executor's memory, which was just found to be of the entry's type and shape.
            unsafe { self.point_at(entry, &shared.view, &keep) };
            if let Some(slot) = self.entries.get_mut(entry) {
                *slot = shared;
            }
            self.set.insert(entry);
            // GRF-43: what is linked there is the library's constant here too, which nothing writes to.
            if other.linked.contains(&there) {
                self.linked.insert(here);
            }
        }
        Ok(())
    }

    /// Lets input `index` be `source`, which the library brings with it (GRF-43). It counts as set, every call uses it, and
    /// nothing writes to it. `keep` lives as long as the executor, and as every tensor that it gives of the input.
    ///
    /// # Safety
    ///
    /// The memory of `source` stays valid as long as `keep`; its extents are readable.
    pub(in crate::graph::runtime) unsafe fn link_input(
        &mut self,
        index: usize,
        source: &DLTensor,
        keep: Any,
    ) -> Result<(), Error> {
        let entry = self.input_entry(index)?;
        let what = format!("linked parameter `{}`", self.input_name(index));
        // SAFETY: the extents of `source` are readable.
        unsafe { self.entry(entry).check_same(source, &what) }?;
        // SAFETY: the memory of `source` stays as long as `keep`, and was just found to be of the entry's type and shape.
        unsafe { self.point_at(entry, source, &keep) };
        if let Some(slot) = self.entries.get_mut(entry) {
            // SAFETY: as for `point_at`.
            *slot = unsafe { PoolTensor::borrowed(source, slot, keep) };
        }
        self.set.insert(entry);
        self.linked.insert(index);
        Ok(())
    }

    /// # Safety
    ///
    /// As for [`Executor::refer_input`].
    unsafe fn redirect(
        &mut self,
        entry: usize,
        to: &DLTensor,
        keep: &Any,
        what: &str,
    ) -> Result<(), Error> {
        let inside = self.entry(entry);
        // SAFETY: the extents of `to` are readable.
        unsafe { inside.check_same(to, what) }?;
        GRF_34.demand(Kind::Malformed, inside.view.device == to.device, || {
            format!(
                "{what} is on device {:?}, the tensor handed in on {:?}",
                inside.view.device, to.device
            )
        })?;
        // GRF-34: the address that a kernel uses is `data` plus `byte_offset`. 0.6 to 0.8 look at `data` alone, and lose the offset.
        // SAFETY: the extents and strides of `to` are readable.
        let in_one_piece = unsafe { to.is_contiguous() };
        let first = to.data.wrapping_byte_add(to.byte_offset as usize);
        let in_place = in_one_piece && first.addr().is_multiple_of(ALIGNMENT);
        GRF_34.demand(Kind::Malformed, in_place, || {
            format!(
                "{what} must be in one piece and aligned to {ALIGNMENT} bytes to be used in place"
            )
        })?;
        // SAFETY: the memory of `to` stays as long as `keep`, and was found to be of the entry's type and shape.
        unsafe { self.point_at(entry, to, keep) };
        Ok(())
    }

    /// Every argument that stands for `entry`, or for what `__nop` makes of it, gets the address of `to`.
    ///
    /// # Safety
    ///
    /// The memory of `to` stays as long as `keep`, and holds a tensor of the entry's type and shape.
    unsafe fn point_at(&mut self, entry: usize, to: &DLTensor, keep: &Any) {
        // GRF-48: what a `__nop` makes of an entry is the same bytes, and moves with it. Releases up to 0.13 leave it behind; those
        // from 0.14 on move the whole pool, other values and larger ones too.
        let aliases = self
            .aliases
            .get_or_init(|| Aliases::new(&self.graph, &self.entries, &self.steps));
        let same = aliases.of(entry);
        for id in &*same {
            // SAFETY: the entries of `same` are of one size with `entry`.
            let tensor = unsafe { PoolTensor::borrowed(to, &self.entries[*id], keep.clone()) };
            self.external.insert(*id, tensor);
        }
        for step in aliases.users(&same) {
            if let Some(OpExec::Call { arguments, .. }) = self.steps.get_mut(step) {
                // SAFETY: `external` now keeps the memory of `to`, which is of the size of each of these entries.
                unsafe { arguments.point_at(|id| same.contains(&id), to) };
            }
        }
    }
}
