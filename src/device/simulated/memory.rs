//! Memory of the simulated device. Fresh and freed bytes are recognizable, and no address belongs to the host.

use crate::device::Space;
use std::collections::BTreeMap;
use std::ffi::c_void;

/// The byte that fills a fresh space.
const FRESH: u8 = 0xCD;
/// The byte that fills a freed space.
const FREED: u8 = 0xDD;
/// The address of the first space, in a range that the host does not use.
const FIRST: usize = 1 << 44;

/// The memory of the device: spaces at addresses that are not valid on the host.
#[derive(Default)]
pub struct SimulatedMemory {
    /// Every space that ever existed, by its address. A freed one still shows its contents.
    blocks: BTreeMap<usize, SimulatedBlock>,
    /// The lowest possible address of the next new space.
    next: usize,
}

debug_fields!(SimulatedMemory: next);

/// A live or freed space.
struct SimulatedBlock {
    /// The contents of the space.
    bytes: Vec<u8>,
    /// True if the space is allocated.
    alive: bool,
}

impl SimulatedMemory {
    /// Returns the bytes of the space that `space` points into, from that address on.
    pub fn bytes(&mut self, space: Space) -> Option<&mut [u8]> {
        let (base, block) = self.blocks.range_mut(..=space.address()).next_back()?;
        block.bytes.get_mut(space.address() - base..)
    }

    /// Returns the number of bytes in use.
    pub(super) fn bytes_in_use(&self) -> usize {
        self.blocks
            .values()
            .filter(|block| block.alive)
            .map(|block| block.bytes.len())
            .sum()
    }

    /// Returns the size in bytes of the live space that begins here, or `None`.
    pub(super) fn size(&self, space: Space) -> Option<usize> {
        let block = self.blocks.get(&space.address())?;
        block.alive.then_some(block.bytes.len())
    }

    /// Returns every space that is not freed.
    pub(super) fn spaces(&self) -> impl Iterator<Item = Space> {
        let alive = self.blocks.iter().filter(|(_, block)| block.alive);
        alive.map(|(base, _)| space_at(*base))
    }

    /// Frees a space. Its bytes become [`FREED`], and the address may be reused.
    pub(super) fn free(&mut self, space: Space) {
        if let Some(block) = self.blocks.get_mut(&space.address()) {
            block.bytes.fill(FREED);
            block.alive = false;
        }
    }

    /// Allocates a space. The freed block of this size with the highest address is reused, as real allocators reuse blocks.
    pub(super) fn alloc(&mut self, nbytes: usize, alignment: usize) -> Space {
        let fits = |(_, block): &(&usize, &mut SimulatedBlock)| {
            !block.alive && block.bytes.len() == nbytes
        };
        // DEV-46: reused at the first chance, to expose queued work that still needs a freed space.
        if let Some((&base, block)) = self.blocks.iter_mut().rev().find(fits) {
            // An address that is free but not sufficiently aligned stays free.
            if base.is_multiple_of(alignment) {
                block.alive = true;
                block.bytes.fill(FRESH);
                return space_at(base);
            }
        }
        let base = self.next.max(FIRST).next_multiple_of(alignment);
        // The gap makes an overrun recognizable, and gives an empty space its own address.
        self.next = base + nbytes + alignment;
        let bytes = vec![FRESH; nbytes];
        self.blocks
            .insert(base, SimulatedBlock { bytes, alive: true });
        space_at(base)
    }
}

/// Returns the handle of an address. The host has no memory there, so the handle has no provenance.
pub(super) fn space_at(address: usize) -> Space {
    Space(std::ptr::without_provenance_mut::<c_void>(address))
}
