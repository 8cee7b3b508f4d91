//! The memory of an executor: one block of bytes for each pool of the plan.

use super::device::ExecutorDevice;
use crate::device::{ALIGNMENT, Dtype, Space};
use crate::function::Error;
use crate::graph::{GRF_23, StoragePool};
use crate::rule::Kind;
use std::sync::Arc;

/// The bytes of one pool, freed when the last reference is dropped.
pub(super) struct PoolMemory {
    pub(super) home: ExecutorDevice,
    pub(super) space: Space,
    pub(super) bytes: usize,
}

impl PoolMemory {
    /// Allocates memory of `home` for one pool of the plan, in the pool's scope.
    pub(super) fn take(pool: &StoragePool, home: ExecutorDevice) -> Result<Arc<PoolMemory>, Error> {
        let bytes = pool.bytes;
        let rejected =
            || Error::from(GRF_23.rejected(Kind::Limit, format!("a pool of {bytes} bytes")));
        // GRF-30: rounded up to words of float32, as in every release, because a kernel may write its last word whole.
        let whole = bytes.checked_next_multiple_of(4);
        let whole = whole.and_then(|whole| usize::try_from(whole).ok());
        let whole = whole.ok_or_else(rejected)?;
        // Memory of a scope is requested by shape. The shape of a pool is one row of float32 words.
        let words = i64::try_from(whole / 4).map_err(|_| rejected())?;
        let bytes = usize::try_from(bytes).map_err(|_| rejected())?;
        // GRF-30: the device sees a pool of float32 even for other entries, because releases allocate a float32 vector.
        let hint = Dtype::scalar(Dtype::FLOAT, 32);
        let scope = pool.scope.as_str();
        let space = match (&pool.texture, scope) {
            // GRF-53: an image is requested by its extents. The device knows the bytes of a row.
            (Some(texture), scope) => {
                let extents = texture.extents().map(i64::try_from);
                let [Ok(height), Ok(width), Ok(channel)] = extents else {
                    return Err(rejected());
                };
                let extents = [height, width, channel];
                home.api
                    .alloc_scoped(home.device, &extents, texture.dtype, Some(scope))
            }
            (None, "" | "global") => home.api.alloc(home.device, whole, ALIGNMENT, hint),
            (None, scope) => home
                .api
                .alloc_scoped(home.device, &[words], hint, Some(scope)),
        };
        let space = space?;
        Ok(Arc::new(PoolMemory { home, space, bytes }))
    }
}

impl Drop for PoolMemory {
    fn drop(&mut self) {
        // SAFETY: `take` got the space from this device; this is dropped once, when no tensor holds the `Arc` any more.
        let _ = unsafe { self.home.api.free(self.home.device, self.space) };
    }
}
