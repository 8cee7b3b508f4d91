//! Foreign memory that calls use in place: memory of the caller, of another executor, or of the library.

use super::aliases::Aliases;
use super::op_exec::OpExec;
use super::tensor::{MemoryOwner, whole_byte_elements};
use super::{Executor, PoolTensor};
use crate::device::ALIGNMENT;
use crate::function::Error;
use crate::graph::{GRF_34, GRF_35};
use crate::object::{self, OBJ_12};
use crate::rule::Kind;
use crate::value::{Any, DLTensor, cast};
use std::collections::HashMap;

impl Executor {
    /// Makes every call that uses input `index` use the memory of `source` instead (GRF-34).
    ///
    /// Nothing is copied, neither now nor in a run. [`Executor::input`] still shows the old memory, as in every release. The
    /// executor keeps `source` until the input is set by reference again.
    ///
    /// # Errors
    ///
    /// Returns GRF-32, GRF-33, GRF-34; OBJ-12 for a read-only tensor if a node writes to the same bytes.
    pub fn set_input_by_reference(
        &mut self,
        index: usize,
        source: &object::Tensor,
    ) -> Result<(), Error> {
        // SAFETY: a tensor object owns the memory that it describes, and is kept.
        unsafe { self.refer_input(index, whole_byte_elements(source)?, source.clone().into()) }
    }

    /// Sets the input as [`Executor::set_input_by_reference`] does, from a description of memory that `keep` keeps alive.
    ///
    /// # Safety
    ///
    /// The memory of `source` stays valid as long as `keep`; its extents and strides are readable.
    pub(in crate::graph::runtime) unsafe fn refer_input(
        &mut self,
        index: usize,
        source: &DLTensor,
        keep: Any,
    ) -> Result<(), Error> {
        let entry = self.input_entry(index)?;
        let what = format!("input `{}`", self.input_name(index));
        let owner = MemoryOwner::new(keep);
        let kept = !owner.is_read_only() || !self.is_written(entry);
        OBJ_12.demand(Kind::Unsupported, kept, || {
            format!("{what} shares its bytes with what a node writes, and the tensor is read-only")
        })?;
        // SAFETY: the caller keeps the requirements of this function, which are the same.
        unsafe { self.redirect(entry, source, &owner, &what) }?;
        self.set.insert(entry);
        Ok(())
    }

    /// Makes every call that writes output `index` write to the memory of `target` instead (GRF-34). The executor keeps `target`
    /// until the output is set by reference again.
    ///
    /// # Errors
    ///
    /// Returns GRF-32, GRF-33, GRF-34; OBJ-12 for a read-only tensor.
    pub fn set_output_by_reference(
        &mut self,
        index: usize,
        target: &object::Tensor,
    ) -> Result<(), Error> {
        // SAFETY: a tensor object owns the memory that it describes, and is kept.
        unsafe { self.refer_output(index, whole_byte_elements(target)?, target.clone().into()) }
    }

    /// Sets the output as [`Executor::set_output_by_reference`] does, from a description of memory that `keep` keeps alive.
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
        let owner = MemoryOwner::new(keep);
        // SAFETY: the caller keeps the requirements of this function, which are the same.
        unsafe { self.redirect(entry, target, &owner, &format!("output {index}")) }
    }

    /// Makes this executor use `other`'s memory for the inputs called `names` (GRF-35), so that both use the same parameters.
    ///
    /// Names that either graph does not have are skipped, as in `load_params`.
    ///
    /// # Errors
    ///
    /// Returns GRF-35 if an input differs in type or size between the two.
    pub fn share_inputs<'a>(
        &mut self,
        other: &Executor,
        names: impl Iterator<Item = &'a str>,
    ) -> Result<(), Error> {
        // The number of entries in each pool.
        let mut users = HashMap::<usize, usize>::new();
        for entry in &self.graph.entries {
            *users.entry(entry.storage_id).or_insert(0) += 1;
        }
        for name in names {
            let (Some(here), Some(there)) = (self.input_index(name), other.input_index(name))
            else {
                // GRF-35: 0.6 rejects a name that is not an input; 0.7 and later skip it.
                continue;
            };
            let shared = other.input(there)?.clone();
            let entry = self.input_entry(here)?;
            let what = format!("shared parameter `{name}`");
            // SAFETY: the extents of the other executor's tensor, which `shared` keeps.
            unsafe { self.entries[entry].check_same(&shared.view, &what) }?;
            // GRF-35: the pool must belong to this parameter only. A run writes to the other entries of the pool, which would
            // overwrite the parameter of both executors.
            let storage = self.graph.entries.get(entry).map(|entry| entry.storage_id);
            let users = storage.and_then(|storage| users.get(&storage));
            let alone = users.is_none_or(|users| *users <= 1);
            GRF_35.demand(Kind::Unsupported, alone, || {
                format!("the memory of `{name}` is shared with other entries of its graph")
            })?;
            // GRF-43: a linked parameter is also a constant of the library here, and its object is read-only.
            let owner = MemoryOwner::new(shared.to_object().into());
            // SAFETY: `owner` keeps the other executor's memory, which was just found to be of the entry's type and shape.
            unsafe { self.point_at(entry, &shared.view, &owner) };
            self.entries[entry] = shared;
            self.set.insert(entry);
        }
        Ok(())
    }

    /// Makes input `index` use the memory of `source`, a constant of the library (GRF-43). The input counts as set, every call uses it,
    /// and no call writes to it. `keep` lives at least as long as the executor and every tensor of this input that the executor
    /// returns.
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
        // GRF-43: a node that writes to the same bytes would overwrite the library's constant. The parameter is copied into the
        // pool instead.
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

    /// Returns whether a run writes to `entry`, or to an entry that `__nop` connects with it.
    fn is_written(&self, entry: usize) -> bool {
        let aliases = self.aliases();
        let same = aliases.entries_sharing(entry);
        let mut rows = self.graph.node_row_ptr.windows(2).zip(&self.graph.nodes);
        rows.any(|(row, node)| {
            let call = node.call.as_ref();
            // GRF-31: a `__nop` does nothing.
            let writes = call.is_some_and(|call| call.func_name != "__nop");
            writes && (row[0]..row[1]).any(|id| same.contains(&id))
        })
    }

    /// Returns the aliases, which are built on first use, because most executors copy their inputs.
    fn aliases(&self) -> &Aliases {
        self.aliases
            .get_or_init(|| Aliases::new(&self.graph, &self.entries, &self.steps))
    }

    /// Makes calls use the memory of `to` for `entry`.
    ///
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
        // GRF-34: a kernel uses the address `data` plus `byte_offset`. 0.6 to 0.8 use only `data`, and lose the offset.
        // SAFETY: the extents and strides of `to` are readable.
        let in_one_piece = unsafe { to.is_contiguous() };
        let first = to.data.wrapping_byte_add(to.byte_offset as usize);
        // GRF-34: the required alignment is 64 in 0.6 and from 0.10 on, 128 in 0.7 to 0.9. No release compares the dtype or checks
        // for gaps.
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

    /// Redirects every argument that is `entry`, or its alias through `__nop`, to the address of `to`.
    ///
    /// # Safety
    ///
    /// The memory of `to` stays valid as long as `owner`, and contains a tensor of the entry's type and shape.
    unsafe fn point_at(&mut self, entry: usize, to: &DLTensor, owner: &MemoryOwner) {
        // GRF-48: an alias through `__nop` is the same bytes, and moves with the entry. Releases up to 0.13 do not move it. From
        // 0.14 on they move the whole pool, including other and larger values.
        let (same, users) = {
            let aliases = self.aliases();
            let same = aliases.entries_sharing(entry);
            let users: Vec<usize> = aliases.users(&same).collect();
            (same, users)
        };
        for id in &*same {
            // SAFETY: the entries of `same` have the same size as `entry`.
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
