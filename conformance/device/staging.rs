//! Host buffers that are valid forever, so that a defective device may access them at any time.

use crate::device::Space;
use crate::lock::lock;
use std::sync::Mutex;

/// Host memory for copies. It is never freed: a device with a defect may touch it at any later time.
#[derive(Clone, Copy)]
pub(crate) struct Staging {
    data: Space,
    nbytes: usize,
}

/// Keeps staging reachable, for leak checkers.
static STAGING: Mutex<Vec<Space>> = Mutex::new(Vec::new());

impl Staging {
    /// Creates a copy of `bytes`.
    pub(crate) fn of(bytes: &[u8]) -> Staging {
        let memory = Box::leak(Box::<[u8]>::from(bytes));
        let staging = Staging {
            data: Space(memory.as_mut_ptr().cast()),
            nbytes: bytes.len(),
        };
        let mut all = lock(&STAGING);
        all.push(staging.data);
        staging
    }

    /// Overwrites the first bytes, like a host that does not wait for a copy.
    pub(crate) fn overwrite(self, bytes: &[u8]) {
        let data = self.data.0.cast::<u8>();
        for (at, byte) in bytes.iter().enumerate().take(self.nbytes) {
            // SAFETY: the memory is never freed and has this byte; a device may read it at the same time, so each is written by
            // itself.
            unsafe { data.wrapping_add(at).write_volatile(*byte) };
        }
    }

    /// Returns the handle for a copy.
    pub(crate) fn space(self) -> Space {
        self.data
    }

    /// Returns a copy of its current bytes.
    pub(crate) fn bytes(self) -> Vec<u8> {
        let data = self.data.0.cast::<u8>();
        // SAFETY: the memory is never freed; a device may write to it at the same time, so every byte is read by itself.
        (0..self.nbytes)
            .map(|at| unsafe { data.wrapping_add(at).read_volatile() })
            .collect()
    }
}

/// Returns bytes that differ from position to position and from seed to seed.
pub(super) fn pattern(seed: usize, nbytes: usize) -> Vec<u8> {
    (0..nbytes)
        .map(|at| (at.wrapping_mul(31) ^ (at >> 8) ^ seed.wrapping_mul(89)) as u8)
        .collect()
}
