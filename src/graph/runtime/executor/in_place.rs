//! Memory of others that calls use in place: the caller's, another executor's, the library's.

use super::aliases::Aliases;
use super::op_exec::OpExec;
use super::tensor::{MemoryOwner, whole};
use super::{Executor, PoolTensor};
use crate::device::ALIGNMENT;
use crate::function::Error;
use crate::graph::{GRF_34, GRF_35};
use crate::object::{self, OBJ_12};
use crate::rule::Kind;
use crate::value::{Any, DLTensor, cast};
use std::collections::HashMap;

impl Executor {
    /// Lets every call that uses input `index` use the memory of `source` instead (GRF-34).
    ///
    /// Nothing is copied, now or in a run. [`Executor::input`] still shows the old memory, as in every release. The executor
    /// keeps `source` until the input is set by reference again.
    ///
    /// # Errors
    ///
    /// GRF-32, GRF-33, GRF-34; OBJ-12 for a tensor that is read-only where a node writes to the same bytes.
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
        let owner = MemoryOwner::of(keep);
        let kept = !owner.is_read_only() || !self.is_written(entry);
        OBJ_12.demand(Kind::Unsupported, kept, || {
            format!("{what} shares its bytes with what a node writes, and the tensor is read-only")
        })?;
        // SAFETY: as for this function.
        unsafe { self.redirect(entry, source, &owner, &what) }?;
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
        if let Ok(tensor) = cast::<object::Tensor>(keep.view()) {
            tensor.check_writable()?;
        }
        let owner = MemoryOwner::of(keep);
        // SAFETY: as for this function.
        unsafe { self.redirect(entry, target, &owner, &format!("output {index}")) }
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
                // GRF-35: 0.6 rejects a name that is no input, 0.7 and later pass over it.
                continue;
            };
            let shared = other.input(there)?.clone();
            let entry = self.input_entry(here)?;
            let what = format!("shared parameter `{name}`");
            // SAFETY: the extents of the other executor's tensor, which `shared` keeps.
            unsafe { self.entries[entry].check_same(&shared.view, &what) }?;
            // GRF-35: the pool must be of this parameter alone. Another entry of it is written in every run, and that would overwrite
            // the parameter of both executors.
            let storage = self.graph.entries.get(entry).map(|entry| entry.storage_id);
            let users = storage.and_then(|storage| users.get(&storage));
            let alone = users.is_none_or(|users| *users <= 1);
            GRF_35.demand(Kind::Unsupported, alone, || {
                format!("the memory of `{name}` is shared with other entries of its graph")
            })?;
            // GRF-43: what is linked there is the library's constant here too, and its object is read-only.
            let owner = MemoryOwner::of(shared.to_object().into());
            // SAFETY: `owner` keeps the other executor's memory, which was just found to be of the entry's type and shape.
            unsafe { self.point_at(entry, &shared.view, &owner) };
            self.entries[entry] = shared;
            self.set.insert(entry);
        }
        Ok(())
    }

    /// Lets input `index` be `source`, which the library brings with it (GRF-43). It counts as set, every call uses it, and
    /// nothing writes to it. `keep` lives as long as the executor, and as every tensor that it returns of the input.
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
        unsafe { self.entries[entry].check_same(source, &what) }?;
        // What a node writes to the same bytes would go into the library's constant (GRF-43): the plan means the pool.
        if self.is_written(entry) {
            // SAFETY: the memory of `source` stays as long as `keep`, which lives for the call.
            return unsafe { self.set_input_from(index, source) };
        }
        let owner = MemoryOwner::constant(keep);
        // SAFETY: the memory of `source` stays as long as `owner`, and was just found to be of the entry's type and shape.
        unsafe { self.point_at(entry, source, &owner) };
        // SAFETY: as for `point_at`.
        self.entries[entry] = unsafe { PoolTensor::borrowed(source, &self.entries[entry], &owner) };
        self.set.insert(entry);
        Ok(())
    }

    /// Whether a run writes to `entry`, or to what `__nop` joins with it.
    fn is_written(&self, entry: usize) -> bool {
        let aliases = self.aliases();
        let same = aliases.of(entry);
        let mut rows = self.graph.node_row_ptr.windows(2).zip(&self.graph.nodes);
        rows.any(|(row, node)| {
            let call = node.call.as_ref();
            // GRF-31: a `__nop` does nothing.
            let writes = call.is_some_and(|call| call.func_name != "__nop");
            writes && (row[0]..row[1]).any(|id| same.contains(&id))
        })
    }

    /// What shares bytes with what, made when it is first needed: most executors copy their inputs.
    fn aliases(&self) -> &Aliases {
        self.aliases
            .get_or_init(|| Aliases::new(&self.graph, &self.entries, &self.steps))
    }

    /// # Safety
    ///
    /// As for [`Executor::refer_input`].
    unsafe fn redirect(
        &mut self,
        entry: usize,
        to: &DLTensor,
        owner: &MemoryOwner,
        what: &str,
    ) -> Result<(), Error> {
        let inside = &self.entries[entry];
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
        // The multiple is 64 in 0.6 and from 0.10 on, 128 in 0.7 to 0.9; none compares the dtype or looks for gaps.
        let in_place = in_one_piece && first.addr().is_multiple_of(ALIGNMENT);
        GRF_34.demand(Kind::Malformed, in_place, || {
            format!(
                "{what} must be in one piece and aligned to {ALIGNMENT} bytes to be used in place"
            )
        })?;
        // SAFETY: the memory of `to` stays as long as `owner`, and was found to be of the entry's type and shape.
        unsafe { self.point_at(entry, to, owner) };
        Ok(())
    }

    /// Every argument that is `entry`, or what `__nop` makes of it, gets the address of `to`.
    ///
    /// # Safety
    ///
    /// The memory of `to` stays as long as `owner`, and holds a tensor of the entry's type and shape.
    unsafe fn point_at(&mut self, entry: usize, to: &DLTensor, owner: &MemoryOwner) {
        // GRF-48: what a `__nop` makes of an entry is the same bytes, and moves with it. Releases up to 0.13 leave it behind; those
        // from 0.14 on move the whole pool, other values and larger ones too.
        let (same, users) = {
            let aliases = self.aliases();
            let same = aliases.of(entry);
            let users: Vec<usize> = aliases.users(&same).collect();
            (same, users)
        };
        for id in &*same {
            // SAFETY: the entries of `same` are of one size with `entry`.
            let tensor = unsafe { PoolTensor::borrowed(to, &self.entries[*id], owner) };
            self.external.insert(*id, tensor);
        }
        for step in users {
            if let Some(OpExec::Call { arguments, .. }) = self.steps.get_mut(step) {
                // SAFETY: `external` now keeps the memory of `to`, which is of the size of each of these entries.
                unsafe { arguments.point_at(|id| same.contains(&id), to) };
            }
        }
    }
}
