//! Memory as callers hold it: an address where the driver has addresses, else a number that leads to no memory.

use crate::device::{Device, Result, Space};

/// From what a driver knows memory by to [`Space`], and back.
pub(crate) trait SpaceTable<M>: Send + Sync + 'static {
    /// Whether spaces are addresses that a caller may add to.
    const ADDRESSES: bool;

    /// An empty table of the driver that is called `backend`.
    fn new(backend: &'static str) -> Self;

    /// The space of memory that device `id` just returned.
    fn insert(&self, id: i32, memory: M) -> Space;

    /// The memory behind `space`, and the id of its device; of an address, `device` is where it is.
    fn find(&self, device: Device, space: Space) -> Result<(i32, M)>;

    /// As [`SpaceTable::find`], for memory that is about to be freed.
    fn remove(&self, device: Device, space: Space) -> Result<(i32, M)>;
}

#[cfg(any(feature = "cuda", feature = "hip"))]
pub(crate) use addresses::Addresses;
#[cfg(any(feature = "opencl", feature = "vulkan"))]
pub(crate) use handles::Handles;

#[cfg(any(feature = "cuda", feature = "hip"))]
mod addresses {
    use super::{Device, Result, Space, SpaceTable};

    /// Addresses need no table: the driver knows them.
    pub(crate) struct Addresses;

    impl SpaceTable<usize> for Addresses {
        const ADDRESSES: bool = true;

        fn new(_: &'static str) -> Addresses {
            Addresses
        }

        fn insert(&self, _: i32, memory: usize) -> Space {
            // An address of the device, behind which the host has no memory: hence no provenance.
            Space(std::ptr::without_provenance_mut(memory))
        }

        fn find(&self, device: Device, space: Space) -> Result<(i32, usize)> {
            // DEV-41: addresses are the driver's account, not ours: whether one is alive shows when the driver is called.
            Ok((device.id, space.address()))
        }

        fn remove(&self, device: Device, space: Space) -> Result<(i32, usize)> {
            self.find(device, space)
        }
    }
}

#[cfg(any(feature = "opencl", feature = "vulkan"))]
mod handles {
    use super::{Device, Result, Space, SpaceTable};
    use crate::device::DEV_41;
    use crate::device::error::reject;
    use crate::rule::Kind;
    use std::collections::HashMap;
    use std::sync::{Mutex, MutexGuard, PoisonError};

    /// What is alive, by handle. A handle that is not here is rejected (DEV-41), and none comes twice.
    pub(crate) struct Handles<M> {
        /// The driver's name, for messages.
        backend: &'static str,
        /// Behind a lock: any thread may allocate and free at any time.
        alive: Mutex<AliveHandles<M>>,
    }

    /// What [`Handles`] locks.
    struct AliveHandles<M> {
        /// The id of the device and its memory, by handle.
        memory: HashMap<usize, (i32, M)>,
        /// The newest handle; the next one is 64 more.
        last: usize,
    }

    /// Handles start here: far from small integers, and 64 apart, so that a handle with an offset added is no handle.
    const FIRST: usize = 1 << 40;

    impl<M> Handles<M> {
        fn alive(&self) -> MutexGuard<'_, AliveHandles<M>> {
            self.alive.lock().unwrap_or_else(PoisonError::into_inner)
        }

        /// What was `found` behind `space`, or DEV-41 for a handle that is not alive.
        fn known<R>(&self, space: Space, found: Option<R>) -> Result<R> {
            match found {
                Some(memory) => Ok(memory),
                None => reject(
                    DEV_41,
                    Kind::Missing,
                    format!("{:#x} is not memory of {}", space.address(), self.backend),
                ),
            }
        }
    }

    impl<M: Copy + Send + 'static> SpaceTable<M> for Handles<M> {
        const ADDRESSES: bool = false;

        fn new(backend: &'static str) -> Handles<M> {
            let memory = HashMap::new();
            let alive = Mutex::new(AliveHandles {
                memory,
                last: FIRST,
            });
            Handles { backend, alive }
        }

        fn insert(&self, id: i32, memory: M) -> Space {
            let mut alive = self.alive();
            // Freed handles are not used again: one that a caller kept for too long must not be a newer space.
            alive.last += 64;
            let handle = alive.last;
            alive.memory.insert(handle, (id, memory));
            Space(std::ptr::without_provenance_mut(handle))
        }

        fn find(&self, _: Device, space: Space) -> Result<(i32, M)> {
            let found = self.alive().memory.get(&space.address()).copied();
            self.known(space, found)
        }

        fn remove(&self, _: Device, space: Space) -> Result<(i32, M)> {
            let found = self.alive().memory.remove(&space.address());
            self.known(space, found)
        }
    }
}
