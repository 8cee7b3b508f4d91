//! Memory of the simulated device: fresh and freed bytes show, and no address is one of the host.

use crate::device::Space;
use std::collections::BTreeMap;
use std::ffi::c_void;

/// What a fresh space holds.
const FRESH: u8 = 0xCD;
/// What a freed space holds.
const FREED: u8 = 0xDD;
/// Spaces start here, where no memory of the host is.
const FIRST: usize = 1 << 44;

/// The memory of the device: spaces at addresses that mean nothing to the host.
#[derive(Default)]
pub struct SimulatedMemory {
    /// Every space that ever was, by its address: a freed one still shows what it holds.
    blocks: BTreeMap<usize, SimulatedBlock>,
    /// Where the next new space begins at the earliest.
    next: usize,
}

/// A space, alive or freed.
struct SimulatedBlock {
    /// What it holds.
    bytes: Vec<u8>,
    /// Whether it is allocated.
    alive: bool,
}

impl SimulatedMemory {
    /// The bytes of the space that `space` points into, and where in it.
    pub fn bytes(&mut self, space: Space) -> Option<&mut [u8]> {
        let (base, block) = self.blocks.range_mut(..=space.address()).next_back()?;
        block.bytes.get_mut(space.address() - base..)
    }

    /// Bytes in use.
    pub(super) fn bytes_in_use(&self) -> usize {
        self.blocks
            .values()
            .filter(|block| block.alive)
            .map(|block| block.bytes.len())
            .sum()
    }

    /// Bytes of the space that begins here; none where none does, or it was freed.
    pub(super) fn size(&self, space: Space) -> Option<usize> {
        let block = self.blocks.get(&space.address())?;
        block.alive.then_some(block.bytes.len())
    }

    /// Every space that is not freed.
    pub(super) fn spaces(&self) -> impl Iterator<Item = Space> {
        let alive = self.blocks.iter().filter(|(_, block)| block.alive);
        alive.map(|(base, _)| space_at(*base))
    }

    /// Frees a space: its bytes become [`FREED`], and the address may come again.
    pub(super) fn free(&mut self, space: Space) {
        if let Some(block) = self.blocks.get_mut(&space.address()) {
            block.bytes.fill(FREED);
            block.alive = false;
        }
    }

    /// The newest freed block of this size is used again, as real allocators do.
    pub(super) fn alloc(&mut self, nbytes: usize, alignment: usize) -> Space {
        let fits = |(_, block): &(&usize, &mut SimulatedBlock)| {
            !block.alive && block.bytes.len() == nbytes
        };
        // DEV-46: reused at the first chance, so that queued work which still needs a freed space shows.
        if let Some((&base, block)) = self.blocks.iter_mut().rev().find(fits) {
            // An address that is free but not aligned enough stays free.
            if base.is_multiple_of(alignment) {
                block.alive = true;
                block.bytes.fill(FRESH);
                return space_at(base);
            }
        }
        let base = self.next.max(FIRST).next_multiple_of(alignment);
        // A gap, so that running over the end of one space never looks like the next one, and one of no bytes is a space.
        self.next = base + nbytes + alignment;
        let bytes = vec![FRESH; nbytes];
        self.blocks
            .insert(base, SimulatedBlock { bytes, alive: true });
        space_at(base)
    }
}

/// The handle of an address. The host has no memory there, hence no provenance.
pub(super) fn space_at(address: usize) -> Space {
    Space(std::ptr::without_provenance_mut::<c_void>(address))
}
