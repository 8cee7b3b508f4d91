//! The handles of memory for callers: an address if the driver has addresses, otherwise an opaque number.

use crate::device::{Device, Result, Space};

/// The conversion between the driver's memory and a [`Space`].
pub(crate) trait SpaceTable<M>: Send + Sync + 'static {
    /// True if spaces are addresses that a caller may add an offset to.
    const ADDRESSES: bool;

    /// Creates an empty table for the driver called `backend`.
    fn new(backend: &'static str) -> Self;

    /// Returns the space for memory that device `id` just allocated.
    fn insert(&self, id: i32, memory: M) -> Space;

    /// Returns the memory of `space` and the id of its device. For an address, the id is that of `device`.
    fn find(&self, device: Device, space: Space) -> Result<(i32, M)>;

    /// Like [`SpaceTable::find`], for memory that is about to be freed. Removes the space from the table.
    fn remove(&self, device: Device, space: Space) -> Result<(i32, M)>;
}

#[cfg(any(feature = "cuda", feature = "hip"))]
pub(crate) use addresses::Addresses;
#[cfg(any(feature = "opencl", feature = "vulkan"))]
pub(crate) use handles::Handles;

#[cfg(any(feature = "cuda", feature = "hip"))]
mod addresses {
    use super::{Device, Result, Space, SpaceTable};

    /// A table that stores nothing, because the driver knows its addresses.
    pub(crate) struct Addresses;

    impl SpaceTable<usize> for Addresses {
        const ADDRESSES: bool = true;

        fn new(_: &'static str) -> Addresses {
            Addresses
        }

        fn insert(&self, _: i32, memory: usize) -> Space {
            // The address is valid on the device but not on the host, so it has no provenance.
            Space(std::ptr::without_provenance_mut(memory))
        }

        fn find(&self, device: Device, space: Space) -> Result<(i32, usize)> {
            // DEV-41: the driver keeps track of addresses, and this table does not. The driver's call shows whether an address is
            // valid.
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

    /// The live memory, by handle. An unknown handle is rejected (DEV-41), and a handle is never reused.
    pub(crate) struct Handles<M> {
        /// The driver's name, for messages.
        backend: &'static str,
        /// The table, in a lock because any thread may allocate and free at any time.
        alive: Mutex<AliveHandles<M>>,
    }

    /// The part of [`Handles`] that is locked.
    struct AliveHandles<M> {
        /// The id of the device and its memory, by handle.
        memory: HashMap<usize, (i32, M)>,
        /// The newest handle. The next one is 64 larger.
        last: usize,
    }

    /// The first handle. Handles are far from small integers, and 64 apart, so that a handle with a small offset added is not a
    /// handle.
    const FIRST: usize = 1 << 40;

    impl<M> Handles<M> {
        fn alive(&self) -> MutexGuard<'_, AliveHandles<M>> {
            self.alive.lock().unwrap_or_else(PoisonError::into_inner)
        }

        /// Returns the memory `found` for `space`, or DEV-41 for a handle that is not alive.
        fn require_alive<R>(&self, space: Space, found: Option<R>) -> Result<R> {
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
            // Freed handles are not reused: a stale handle must not mean newer memory.
            alive.last += 64;
            let handle = alive.last;
            alive.memory.insert(handle, (id, memory));
            Space(std::ptr::without_provenance_mut(handle))
        }

        fn find(&self, _: Device, space: Space) -> Result<(i32, M)> {
            let found = self.alive().memory.get(&space.address()).copied();
            self.require_alive(space, found)
        }

        fn remove(&self, _: Device, space: Space) -> Result<(i32, M)> {
            let found = self.alive().memory.remove(&space.address());
            self.require_alive(space, found)
        }
    }
}
