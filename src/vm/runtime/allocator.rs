//! The devices of a machine, and the two allocators that manage their memory.

use crate::device::{ALIGNMENT, Device, DeviceApi, Dtype, Manager, Space};
use crate::function::Error;
use crate::rule::Kind;
use crate::vm::VM_30;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// The method by which a machine allocates memory of a device. The numbers are those of `vm_initialization`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum AllocatorKind {
    /// Every storage is allocated from the device and freed there (1).
    Naive,
    /// Freed storage is kept for the next request of the same size (2).
    #[default]
    Pooled,
}

impl AllocatorKind {
    /// Returns the kind with this number (VM-30).
    pub(crate) fn of_number(number: i64) -> Option<AllocatorKind> {
        match number {
            1 => Some(AllocatorKind::Naive),
            2 => Some(AllocatorKind::Pooled),
            _ => None,
        }
    }
}

/// Returns the kind with number `number`, or a violation of VM-30.
pub(super) fn allocator_kind(number: i64) -> Result<AllocatorKind, Error> {
    let known = AllocatorKind::of_number(number);
    known.ok_or_else(|| {
        let message = format!("there is no allocator {number}: 1 is naive, 2 is pooled");
        VM_30.rejected(Kind::Type, message).into()
    })
}

/// The granularity of pooled storage in bytes. Whole pages let sizes that differ a little share blocks (VM-32).
const PAGE: usize = 4096;

/// A device of a machine, with its allocator.
pub(super) struct VmDevice {
    /// The type and id, as `vm_initialization` takes them (VM-30).
    pub(super) device: Device,
    pub(super) api: &'static dyn DeviceApi,
    /// The allocator, shared with all storage that it allocated and that is returned to it.
    pub(super) allocator: Arc<VmAllocator>,
}

impl VmDevice {
    /// Creates `device` with a new allocator.
    pub(super) fn new(device: Device, kind: AllocatorKind) -> Result<VmDevice, Error> {
        let api = Manager::global().api(device.kind)?;
        let allocator = Arc::new(VmAllocator {
            device,
            api,
            pool: (kind == AllocatorKind::Pooled).then(Mutex::default),
        });
        let mut known = allocators();
        // A process that creates many machines would otherwise keep an entry for each.
        known.retain(|allocator| allocator.upgrade().is_some());
        known.push(Arc::downgrade(&allocator));
        Ok(VmDevice {
            device,
            api,
            allocator,
        })
    }
}

/// Returns every live allocator, for `vm.builtin.memory_manager.clear`.
fn allocators() -> MutexGuard<'static, Vec<Weak<VmAllocator>>> {
    static ALL: Mutex<Vec<Weak<VmAllocator>>> = Mutex::new(Vec::new());
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns unused memory of all pools to the devices.
pub(super) fn clear_pools() {
    // An upgrade may hold the last reference. An allocator that is dropped here must not lock this list in its `drop`.
    for allocator in allocators().iter().filter_map(Weak::upgrade) {
        allocator.clear();
    }
}

/// An allocator for memory of one device. A machine has one for each of its devices, so its memory is freed with its last user.
/// Upstream shares one allocator in the process, and keeps memory until a caller clears it.
pub(super) struct VmAllocator {
    device: Device,
    pub(super) api: &'static dyn DeviceApi,
    /// The freed blocks, by their size in bytes; `None` for the naive allocator.
    pool: Option<Mutex<HashMap<usize, Vec<Space>>>>,
}

impl VmAllocator {
    /// Returns the free lists of the pool, by size; `None` for the naive allocator.
    fn free_lists(&self) -> Option<MutexGuard<'_, HashMap<usize, Vec<Space>>>> {
        let pool = self.pool.as_ref()?;
        Some(pool.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Allocates at least `nbytes` in the flat scope; returns the memory and its size.
    pub(super) fn take(&self, nbytes: usize, hint: Dtype) -> Result<(Space, usize), Error> {
        let Some(mut lists) = self.free_lists() else {
            return Ok((self.alloc(nbytes, hint)?, nbytes));
        };
        // VM-32: 0 bytes are 0 pages. A size that overflows exceeds any device, which then rejects it.
        let nbytes = nbytes.checked_next_multiple_of(PAGE).unwrap_or(usize::MAX);
        if let Some(space) = lists.get_mut(&nbytes).and_then(Vec::pop) {
            return Ok((space, nbytes));
        }
        // The lists are not locked while the device allocates, because `clear` locks them, and other threads return storage
        // meanwhile.
        drop(lists);
        match self.alloc(nbytes, hint) {
            Ok(space) => Ok((space, nbytes)),
            Err(_) => {
                // VM-32: the pool may keep enough memory in blocks of other sizes.
                self.clear();
                Ok((self.alloc(nbytes, hint)?, nbytes))
            }
        }
    }

    /// Allocates memory from the device, aligned for kernels.
    fn alloc(&self, nbytes: usize, hint: Dtype) -> Result<Space, Error> {
        self.api.alloc(self.device, nbytes, ALIGNMENT, hint)
    }

    /// Frees a space that `take` allocated. Returns it to the pool if it is `pooled` and there is a pool, otherwise to the device.
    pub(super) fn put_back(&self, space: Space, nbytes: usize, pooled: bool) {
        // VM-32: whole pages of ordinary memory can serve any storage of their size. Memory of a scope has a shape and cannot.
        if pooled && let Some(mut lists) = self.free_lists() {
            lists.entry(nbytes).or_default().push(space);
            return;
        }
        // Storage is freed in a `drop`, so an error of the device cannot be reported to a caller.
        // SAFETY: `take` got it from this device; `VmStorage`, its only owner, is being dropped.
        let _ = unsafe { self.api.free(self.device, space) };
    }

    /// Returns the free blocks of the pool to the device.
    fn clear(&self) {
        let Some(mut lists) = self.free_lists() else {
            return;
        };
        for space in lists.drain().flat_map(|(_, spaces)| spaces) {
            // SAFETY: `take` allocated it from this device. The lists contain only spaces from `put_back`, and this space is now
            // removed.
            let _ = unsafe { self.api.free(self.device, space) };
        }
    }
}

impl Drop for VmAllocator {
    fn drop(&mut self) {
        // VM-32: here a pool ends with its machine. Upstream's pools belong to the process, and keep their blocks.
        self.clear();
    }
}
