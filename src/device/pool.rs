//! The workspace pool: temporary memory without a device call, in the steady state.
//!
//! Operators take and return scratch memory on every call, nearly always in the same pattern. The pool keeps what it got
//! in whole pages and hands it out again. Its order is part of the contract: compiled programs have come to rely
//! on which block returns, in that their peak memory does.
//!
//! A pool belongs to one thread and one device. `WorkspacePools` holds them all for a device API.

use crate::device::error::reject;
use crate::device::{DEV_25, DEV_31, Device, Dtype, Result, Space, WORKSPACE_ALIGNMENT};
use crate::rule::Kind;
use std::cell::RefCell;
use std::sync::{Arc, Weak};

/// Bytes of a page: every block is a multiple of it (DEV-25).
pub const PAGE: usize = 4096;

/// Where a pool gets blocks from, and returns them to.
pub trait SpaceSource: Send + Sync {
    /// As [`DeviceApi::alloc`](crate::device::DeviceApi::alloc).
    ///
    /// # Errors
    ///
    /// As [`DeviceApi::alloc`](crate::device::DeviceApi::alloc).
    fn alloc(&self, device: Device, nbytes: usize, alignment: usize, hint: Dtype) -> Result<Space>;

    /// As [`DeviceApi::free`](crate::device::DeviceApi::free).
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
    /// Blocks that can be handed out, ascending by size but for the rule of the second block (DEV-30).
    free: Vec<PoolBlock>,
    /// Blocks in use, in the order handed out.
    taken: Vec<PoolBlock>,
}

/// Whole pages of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PoolBlock {
    /// The handle, which the caller gets as well.
    space: Space,
    /// A multiple of [`PAGE`].
    nbytes: usize,
}

impl WorkspacePool {
    /// A block of at least `nbytes`: a free one by the rules DEV-26 to DEV-29, else a new one.
    ///
    /// # Errors
    ///
    /// DEV-25, DEV-35; what `source` returns.
    ///
    /// # Safety
    ///
    /// All calls for one pool are with one `source` and one `device`.
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
                // DEV-27, DEV-29: the small block goes before the new one comes, so that the device never holds both.
                let small = self.free.remove(at);
                // SAFETY: the block is of this source and device, as all of this pool; it was free, and is forgotten here.
                unsafe { source.free(device, small.space) }?;
                None
            }
        };
        let block = match kept {
            Some(block) => block,
            None => PoolBlock {
                // DEV-25: as bytes, whatever the workspace is for.
                space: source.alloc(device, nbytes, WORKSPACE_ALIGNMENT, Dtype::UINT8)?,
                nbytes,
            },
        };
        self.taken.push(block);
        Ok(block.space)
    }

    /// Takes a block back. Blocks may come back in any order (DEV-32); one that was never handed out is rejected (DEV-31).
    ///
    /// # Errors
    ///
    /// DEV-31.
    pub fn free(&mut self, space: Space) -> Result<()> {
        // DEV-32: any order is right; from the end, for scratch memory mostly comes back in the reverse order.
        let at = self.taken.iter().rposition(|block| block.space == space);
        let Some(at) = at else {
            return reject(
                DEV_31,
                Kind::Missing,
                "trying to free things that has not been allocated",
            );
        };
        // DEV-31: a block that is no longer taken is found by no second free.
        let block = self.taken.remove(at);
        let place = self.place(block.nbytes);
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
            // SAFETY: the block is of this source and device, as all of this pool; it was free, and is forgotten here. A
            // device that fails here is gone already.
            let _ = unsafe { source.free(device, block.space) };
        }
    }

    /// What serves a request of `nbytes`, in whole pages (DEV-26 to DEV-29).
    fn choose(&self, nbytes: usize) -> PoolChoice {
        // DEV-27, DEV-28 and DEV-29 are one search: free blocks ascend, so the first that fits is the smallest and the last is the largest.
        let fits = |block: &PoolBlock| block.nbytes >= nbytes;
        match self.free.iter().position(fits) {
            Some(smallest) => PoolChoice::Take(smallest),
            None if self.free.is_empty() => PoolChoice::Fresh,
            // DEV-27, DEV-29: the last is the single one, or the largest.
            None => PoolChoice::Replace(self.free.len() - 1),
        }
    }

    /// Where a block that comes back goes (DEV-30): at the end if it is strictly the largest; before a single other one,
    /// even of the same size; else behind the last that is not larger.
    fn place(&self, nbytes: usize) -> usize {
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

/// Where the block of a request comes from; numbers are places in the free list.
enum PoolChoice {
    /// The device: nothing is free.
    Fresh,
    /// This free block, which fits.
    Take(usize),
    /// The device, after this free block, which is too small, went back there.
    Replace(usize),
}

/// `nbytes` in whole pages, one at least (DEV-25, DEV-35).
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

/// The pools of a device API: one per thread and device id (DEV-33). When a thread ends, its free blocks go back.
pub(crate) struct WorkspacePools {
    /// The device's own memory. Its address distinguishes these pools from those of other devices of the thread.
    source: Arc<dyn SpaceSource>,
}

thread_local! {
    /// The pools of this thread, of all device APIs. Few: a search is as fast as a table.
    static POOLS: RefCell<Vec<OwnedPool>> = const { RefCell::new(Vec::new()) };
}

/// A pool that frees its free blocks when its thread ends.
struct OwnedPool {
    pool: WorkspacePool,
    /// The device whose memory the blocks are.
    device: Device,
    /// Weak: a device may end before a thread that used it does.
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
    /// Pools that are filled from `source`.
    pub(crate) fn new(source: Arc<dyn SpaceSource>) -> WorkspacePools {
        WorkspacePools { source }
    }

    /// Workspace on `device` for this thread.
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

    /// Takes workspace of `device` back, on the thread that took it.
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

    /// Runs `body` with the pools of this thread. A thread that ends has given its blocks back, and takes none any more.
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

    /// Whether `pool` is one of these, and of `device`.
    fn is_of(&self, pool: &OwnedPool, device: Device) -> bool {
        // The source has devices of one type, whatever type a caller's number names.
        self.fill(pool) && pool.device.id == device.id
    }

    /// Whether `pool` is filled from this source: a pool keeps the address of its own from being used again.
    fn fill(&self, pool: &OwnedPool) -> bool {
        std::ptr::addr_eq(pool.source.as_ptr(), Arc::as_ptr(&self.source))
    }
}

impl Drop for WorkspacePools {
    fn drop(&mut self) {
        // Blocks of other threads go when those threads end: they hold the source weakly.
        let _ = POOLS.try_with(|pools| {
            if let Ok(mut pools) = pools.try_borrow_mut() {
                pools.retain(|owned| !self.fill(owned));
            }
        });
    }
}
