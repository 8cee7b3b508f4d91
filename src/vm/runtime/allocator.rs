//! The devices of a machine, and the two allocators that take memory of them.

use crate::device::{ALIGNMENT, Device, DeviceApi, Dtype, Manager, Space};
use crate::function::Error;
use crate::rule::Kind;
use crate::vm::VM_30;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// How a machine takes memory of a device. The numbers are those of `vm_initialization`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum AllocatorKind {
    /// Every storage is taken from the device and returned to it (1).
    Naive,
    /// Storage that is returned is kept for the next of the same size (2).
    #[default]
    Pooled,
}

impl AllocatorKind {
    /// The kind with this number (VM-30).
    pub(crate) fn of_number(number: i64) -> Option<AllocatorKind> {
        match number {
            1 => Some(AllocatorKind::Naive),
            2 => Some(AllocatorKind::Pooled),
            _ => None,
        }
    }
}

/// The kind with number `number`, or a violation of VM-30.
pub(super) fn allocator_kind(number: i64) -> Result<AllocatorKind, Error> {
    let known = AllocatorKind::of_number(number);
    known.ok_or_else(|| {
        let message = format!("there is no allocator {number}: 1 is naive, 2 is pooled");
        VM_30.rejected(Kind::Type, message).into()
    })
}

/// Pooled storage comes in whole pages, so that sizes that differ a little share blocks (VM-32). Bytes.
const PAGE: usize = 4096;

/// A device of a machine, with its allocator.
pub(super) struct VmDevice {
    /// Type and id, as `vm_initialization` takes them (VM-30).
    pub(super) device: Device,
    pub(super) api: &'static dyn DeviceApi,
    /// Shared with all storage that is taken from it, which returns there when it goes.
    pub(super) allocator: Arc<VmAllocator>,
}

impl VmDevice {
    /// `device` with an allocator of its own.
    pub(super) fn new(device: Device, kind: AllocatorKind) -> Result<VmDevice, Error> {
        let api = Manager::global().api(device.kind)?;
        let allocator = Arc::new(VmAllocator {
            device,
            api,
            pool: (kind == AllocatorKind::Pooled).then(Mutex::default),
        });
        let mut known = allocators();
        // A process that makes many machines would otherwise keep an entry for each.
        known.retain(|allocator| allocator.upgrade().is_some());
        known.push(Arc::downgrade(&allocator));
        Ok(VmDevice {
            device,
            api,
            allocator,
        })
    }
}

/// Every allocator alive, for `vm.builtin.memory_manager.clear`.
fn allocators() -> MutexGuard<'static, Vec<Weak<VmAllocator>>> {
    static ALL: Mutex<Vec<Weak<VmAllocator>>> = Mutex::new(Vec::new());
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns to the devices what pools keep and nothing uses.
pub(super) fn clear_pools() {
    // An upgrade may hold the last reference: an allocator that ends here must not lock this list in its drop.
    for allocator in allocators().iter().filter_map(Weak::upgrade) {
        allocator.clear();
    }
}

/// Takes memory of one device and returns it. A machine has one of its own for each device, so memory goes back when
/// the last user of the machine's memory goes. (Released runtimes share one in the process and keep it until a caller clears
/// it.)
pub(super) struct VmAllocator {
    device: Device,
    pub(super) api: &'static dyn DeviceApi,
    /// Blocks that came back, by their size in bytes; `None` for the naive allocator.
    pool: Option<Mutex<HashMap<usize, Vec<Space>>>>,
}

impl VmAllocator {
    /// What the pool keeps, by size; `None` for the naive allocator.
    fn free_lists(&self) -> Option<MutexGuard<'_, HashMap<usize, Vec<Space>>>> {
        let pool = self.pool.as_ref()?;
        Some(pool.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Memory of at least `nbytes` in the flat scope; how much it is.
    pub(super) fn take(&self, nbytes: usize, hint: Dtype) -> Result<(Space, usize), Error> {
        let Some(mut lists) = self.free_lists() else {
            return Ok((self.alloc(nbytes, hint)?, nbytes));
        };
        // VM-32: 0 bytes are 0 pages. What overflows is more than any device has: it is for the device to reject.
        let nbytes = nbytes.checked_next_multiple_of(PAGE).unwrap_or(usize::MAX);
        if let Some(space) = lists.get_mut(&nbytes).and_then(Vec::pop) {
            return Ok((space, nbytes));
        }
        // The lists are not locked while the device allocates: `clear` locks them, and other threads return storage meanwhile.
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

    /// Fresh memory of the device, aligned for kernels.
    fn alloc(&self, nbytes: usize, hint: Dtype) -> Result<Space, Error> {
        self.api.alloc(self.device, nbytes, ALIGNMENT, hint)
    }

    /// Returns space that `take` took: to the pool where it is `pooled` and there is one, else to the device.
    pub(super) fn put_back(&self, space: Space, nbytes: usize, pooled: bool) {
        // VM-32: whole pages of plain memory can serve any storage of their size. Memory of a scope has a shape, and serves one.
        if pooled && let Some(mut lists) = self.free_lists() {
            lists.entry(nbytes).or_default().push(space);
            return;
        }
        // Storage goes in a drop: there is no caller to report an error of the device to.
        // SAFETY: `take` got it from this device; `VmStorage`, which alone held it, is being dropped.
        let _ = unsafe { self.api.free(self.device, space) };
    }

    /// Returns to the device what the pool keeps.
    fn clear(&self) {
        let Some(mut lists) = self.free_lists() else {
            return;
        };
        for space in lists.drain().flat_map(|(_, spaces)| spaces) {
            // SAFETY: `take` got it from this device; in the lists is only what `put_back` put there, and now it is in none.
            let _ = unsafe { self.api.free(self.device, space) };
        }
    }
}

impl Drop for VmAllocator {
    fn drop(&mut self) {
        // VM-32: a pool ends with its machine here. Those of the releases belong to the process, and keep their blocks.
        self.clear();
    }
}
