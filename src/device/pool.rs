//! The workspace pool, which usually provides temporary memory without a device call.
//!
//! Operators allocate and free scratch memory on every call, nearly always in the same pattern. The pool keeps freed blocks, in
//! whole pages, and reuses them. The order of reuse is part of the contract, because the peak memory of compiled programs depends
//! on it.
//!
//! A pool belongs to one thread and one device. `WorkspacePools` holds all pools of a device API.

use crate::device::error::reject;
use crate::device::{DEV_25, DEV_31, Device, Dtype, Result, Space, WORKSPACE_ALIGNMENT};
use crate::rule::Kind;
use std::cell::RefCell;
use std::sync::{Arc, Weak};

/// The bytes of a page: every block is a multiple of it (DEV-25).
pub const PAGE: usize = 4096;

/// The memory that a pool takes blocks from, and returns them to.
pub trait SpaceSource: Send + Sync {
    /// Allocates memory, as [`DeviceApi::alloc`](crate::device::DeviceApi::alloc) does.
    ///
    /// # Errors
    ///
    /// As [`DeviceApi::alloc`](crate::device::DeviceApi::alloc).
    fn alloc(&self, device: Device, nbytes: usize, alignment: usize, hint: Dtype) -> Result<Space>;

    /// Frees memory, as [`DeviceApi::free`](crate::device::DeviceApi::free) does.
    ///
    /// # Errors
    ///
    /// As [`DeviceApi::free`](crate::device::DeviceApi::free).
    ///
    /// # Safety
    ///
    /// `space` came from `alloc`, was not freed, and is not used after this call.
    unsafe fn free(&self, device: Device, space: Space) -> Result<()>;
}

/// The pool of one thread and one device.
#[derive(Debug, Default)]
pub struct WorkspacePool {
    /// The free blocks, in ascending order of size except for the rule of the second block (DEV-30).
    free: Vec<PoolBlock>,
    /// The blocks in use, in the order of allocation.
    taken: Vec<PoolBlock>,
}

/// A block of whole pages of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PoolBlock {
    /// The handle, which the caller also gets.
    space: Space,
    /// The size in bytes, a multiple of [`PAGE`].
    nbytes: usize,
}

impl WorkspacePool {
    /// Returns a block of at least `nbytes`: a free one by the rules DEV-26 to DEV-29, otherwise a new one.
    ///
    /// # Errors
    ///
    /// Returns DEV-25 or DEV-35; the error of `source`.
    ///
    /// # Safety
    ///
    /// All calls for one pool pass the same `source` and the same `device`.
    pub unsafe fn alloc(
        &mut self,
        source: &dyn SpaceSource,
        device: Device,
        nbytes: usize,
    ) -> Result<Space> {
        let nbytes = pages(nbytes)?;
        let kept = match self.choose(nbytes) {
            PoolChoice::Fresh => None,
            PoolChoice::Take(at) => Some(self.free.remove(at)),
            PoolChoice::Replace(at) => {
                // DEV-27, DEV-29: the small block is freed before the new one is allocated, so that the device never holds both.
                let small = self.free.remove(at);
                // SAFETY: the block belongs to this source and device, like all blocks of this pool; it was free, and is removed
                // here.
                unsafe { source.free(device, small.space) }?;
                None
            }
        };
        let block = match kept {
            Some(block) => block,
            None => PoolBlock {
                // DEV-25: the type is bytes, for any use of the workspace.
                space: source.alloc(device, nbytes, WORKSPACE_ALIGNMENT, Dtype::UINT8)?,
                nbytes,
            },
        };
        self.taken.push(block);
        Ok(block.space)
    }

    /// Returns a block to the pool. Blocks may be returned in any order (DEV-32). A block that the pool did not allocate is rejected
    /// (DEV-31).
    ///
    /// # Errors
    ///
    /// Returns DEV-31.
    pub fn free(&mut self, space: Space) -> Result<()> {
        // DEV-32: any order is correct. The search starts at the end, because scratch memory is mostly freed in reverse order.
        let at = self.taken.iter().rposition(|block| block.space == space);
        let Some(at) = at else {
            return reject(
                DEV_31,
                Kind::Missing,
                "trying to free things that has not been allocated",
            );
        };
        // DEV-31: the block is removed, so that a second free does not find it.
        let block = self.taken.remove(at);
        let place = self.insertion_index(block.nbytes);
        self.free.insert(place, block);
        Ok(())
    }

    /// Frees every block that is not in use.
    ///
    /// # Safety
    ///
    /// As for [`WorkspacePool::alloc`].
    pub unsafe fn release(&mut self, source: &dyn SpaceSource, device: Device) {
        for block in self.free.drain(..) {
            // SAFETY: the block belongs to this source and device, like all blocks of this pool; it was free, and is removed here.
            // A device that fails here is already gone.
            let _ = unsafe { source.free(device, block.space) };
        }
    }

    /// Chooses the block for a request of `nbytes`, in whole pages (DEV-26 to DEV-29).
    fn choose(&self, nbytes: usize) -> PoolChoice {
        // DEV-27, DEV-28 and DEV-29 need one search only. Free blocks ascend, so the first that fits is the smallest, and the last
        // is the largest.
        let fits = |block: &PoolBlock| block.nbytes >= nbytes;
        match self.free.iter().position(fits) {
            Some(smallest) => PoolChoice::Take(smallest),
            None if self.free.is_empty() => PoolChoice::Fresh,
            // DEV-27, DEV-29: the last block is the only one or the largest.
            None => PoolChoice::Replace(self.free.len() - 1),
        }
    }

    /// Returns the position for a freed block (DEV-30). A block that is strictly the largest goes to the end. If there is only one
    /// other block, the freed one goes before it, even if both have the same size. Otherwise it follows the last block that is not
    /// larger.
    fn insertion_index(&self, nbytes: usize) -> usize {
        match self.free.as_slice() {
            [] => 0,
            [.., last] if nbytes > last.nbytes => self.free.len(),
            [_] => 0,
            blocks => blocks
                .iter()
                .rposition(|block| block.nbytes <= nbytes)
                .map_or(0, |at| at + 1),
        }
    }
}

/// The source of the block for a request. Numbers are positions in the free list.
enum PoolChoice {
    /// A new block from the device, because no block is free.
    Fresh,
    /// This free block, which is large enough.
    Take(usize),
    /// Allocates a new block from the device, after this free block was returned to the device because it is too small.
    Replace(usize),
}

/// Rounds `nbytes` up to whole pages, at least one (DEV-25, DEV-35).
fn pages(nbytes: usize) -> Result<usize> {
    match nbytes.max(PAGE).checked_next_multiple_of(PAGE) {
        Some(rounded) => Ok(rounded),
        None => reject(
            DEV_25,
            Kind::Limit,
            format!("a workspace of {nbytes} bytes cannot be rounded to pages"),
        ),
    }
}

/// The pools of a device API: one per thread and device id (DEV-33). When a thread ends, its free blocks are returned to the
/// device.
pub(crate) struct WorkspacePools {
    /// The device's memory. Its address distinguishes these pools from the thread's pools of other devices.
    source: Arc<dyn SpaceSource>,
}

thread_local! {
    /// The pools of this thread, of all device APIs. There are few, so a linear search is as fast as a hash table.
    static POOLS: RefCell<Vec<OwnedPool>> = const { RefCell::new(Vec::new()) };
}

/// A pool that frees its free blocks when its thread ends.
struct OwnedPool {
    pool: WorkspacePool,
    /// The device that the blocks belong to.
    device: Device,
    /// The device's memory. The reference is weak, because a device may end before a thread that used it.
    source: Weak<dyn SpaceSource>,
}

impl Drop for OwnedPool {
    fn drop(&mut self) {
        if let Some(source) = self.source.upgrade() {
            // SAFETY: the source and device that `WorkspacePools::alloc` made this pool for.
            unsafe { self.pool.release(&*source, self.device) };
        }
    }
}

impl WorkspacePools {
    /// Creates pools that take their blocks from `source`.
    pub(crate) fn new(source: Arc<dyn SpaceSource>) -> WorkspacePools {
        WorkspacePools { source }
    }

    /// Allocates workspace on `device` for this thread.
    pub(crate) fn alloc(&self, device: Device, nbytes: usize) -> Result<Space> {
        self.pools(|pools| {
            let at = pools.iter().position(|owned| self.is_of(owned, device));
            let at = at.unwrap_or_else(|| {
                pools.push(OwnedPool {
                    pool: WorkspacePool::default(),
                    device,
                    source: Arc::downgrade(&self.source),
                });
                pools.len() - 1
            });
            let owned = &mut pools[at];
            // SAFETY: the source and device that this pool was made for, as `is_of` checked.
            unsafe { owned.pool.alloc(&*self.source, owned.device, nbytes) }
        })
    }

    /// Returns workspace of `device` to the pool, on the thread that allocated it.
    pub(crate) fn free(&self, device: Device, space: Space) -> Result<()> {
        self.pools(|pools| match pools.iter_mut().find(|owned| self.is_of(owned, device)) {
            Some(owned) => owned.pool.free(space),
            None => reject(
                DEV_31,
                Kind::Missing,
                "trying to free things that has not been allocated: this thread never took workspace of this device",
            ),
        })
    }

    /// Runs `body` with the pools of this thread. An ending thread has already returned its blocks, and accepts no more.
    fn pools<R>(&self, body: impl FnOnce(&mut Vec<OwnedPool>) -> Result<R>) -> Result<R> {
        POOLS
            .try_with(|pools| body(&mut pools.borrow_mut()))
            .unwrap_or_else(|_| {
                reject(
                    DEV_31,
                    Kind::Missing,
                    "the thread is ending: its workspace has gone back to the device",
                )
            })
    }

    /// Returns whether `pool` is one of these pools, and belongs to `device`.
    fn is_of(&self, pool: &OwnedPool, device: Device) -> bool {
        // The devices of the source have one type, so the type in the caller's number is ignored.
        self.fill(pool) && pool.device.id == device.id
    }

    /// Returns whether `pool` takes its blocks from this source. The weak reference of a pool keeps the address from being reused.
    fn fill(&self, pool: &OwnedPool) -> bool {
        std::ptr::addr_eq(pool.source.as_ptr(), Arc::as_ptr(&self.source))
    }
}

impl Drop for WorkspacePools {
    fn drop(&mut self) {
        // The pools of other threads have a weak reference to the source. They free their blocks when those threads end, if the source
        // still exists then.
        let _ = POOLS.try_with(|pools| {
            if let Ok(mut pools) = pools.try_borrow_mut() {
                pools.retain(|owned| !self.fill(owned));
            }
        });
    }
}
