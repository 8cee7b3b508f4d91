//! The storage plan: which entries share which bytes.

use super::{GRF_22, GRF_23, GRF_24, Graph};
use crate::rule::{Kind, Violation};
use crate::tensor::Dtype;
use serde_json::{Value, json};

/// What a graph needs to run: one pool for every storage id, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Pool `i` holds the entries whose storage id is `i`.
    pub pools: Vec<Pool>,
}

/// A run of bytes on one device that some entries share, each from its first byte on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pool {
    /// Size in bytes: that of the largest entry.
    pub bytes: u64,
    /// Device type number; `None` where the graph leaves it to whoever runs it.
    pub device: Option<i32>,
    /// Memory scope; empty for the default.
    pub scope: String,
}

impl Plan {
    /// Plans the storage of `graph` (GRF-22 to GRF-24).
    ///
    /// # Errors
    ///
    /// Sizes that overflow, a pool on two devices, storage ids far beyond the number of entries.
    pub fn of(graph: &Graph) -> Result<Plan, Violation> {
        let most = graph.entries.iter().map(|entry| entry.storage_id).max();
        let count = most.map_or(0, |most| most.saturating_add(1));
        // Only a graph that was not read can break this: GRF-22 is held where there are bytes to blame.
        if count > graph.entries.len() && !GRF_22.is_off() {
            let (id, entries) = (count.saturating_sub(1), graph.entries.len());
            let message = format!("storage id {id} in a graph of {entries} entries");
            return Err(GRF_22.refused(Kind::Limit, message));
        }
        let mut pools: Vec<Option<Pool>> = vec![None; count.min(graph.entries.len())];
        for (index, entry) in graph.entries.iter().enumerate() {
            let bytes = bytes_of(entry.dtype, &entry.shape);
            let bytes = bytes.or(GRF_23.is_off().then_some(u64::MAX));
            let bytes = bytes.ok_or_else(|| {
                let message = format!("entry {index} has more bytes than 64 bits count");
                GRF_23.refused(Kind::Limit, message)
            })?;
            let Some(slot) = pools.get_mut(entry.storage_id) else {
                continue;
            };
            let scope = entry.scope.clone().unwrap_or_default();
            match slot {
                None => {
                    *slot = Some(Pool {
                        bytes,
                        device: entry.device,
                        scope,
                    })
                }
                Some(pool) => {
                    if pool.device != entry.device && !GRF_24.is_off() {
                        let message = format!(
                            "storage {} is on device types {:?} and {:?}",
                            entry.storage_id, pool.device, entry.device
                        );
                        return Err(GRF_24.refused(Kind::Malformed, message));
                    }
                    pool.bytes = pool.bytes.max(bytes);
                    if pool.scope.is_empty() {
                        pool.scope = scope;
                    }
                }
            }
        }
        let empty = Pool {
            bytes: 0,
            device: None,
            scope: String::new(),
        };
        Ok(Plan {
            pools: pools
                .into_iter()
                .map(|pool| pool.unwrap_or_else(|| empty.clone()))
                .collect(),
        })
    }

    /// All pools together, in bytes.
    pub fn total_bytes(&self) -> u64 {
        self.pools
            .iter()
            .map(|pool| pool.bytes)
            .fold(0, u64::saturating_add)
    }

    /// `[{"id", "bytes", "device"}]`.
    pub fn to_json(&self) -> Value {
        let pools = self.pools.iter().enumerate();
        pools
            .map(|(id, pool)| json!({ "id": id, "bytes": pool.bytes, "device": pool.device }))
            .collect()
    }
}

/// Bytes of a tensor in a graph: an element of all lanes takes whole bytes.
pub(super) fn bytes_of(dtype: Dtype, shape: &[i64]) -> Option<u64> {
    let element = u64::from(dtype.bits)
        .checked_mul(u64::from(dtype.lanes))?
        .div_ceil(8);
    shape.iter().try_fold(element, |bytes, extent| {
        bytes.checked_mul(u64::try_from(*extent).ok()?)
    })
}
