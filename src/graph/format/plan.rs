//! The storage plan: which entries share which bytes.

use super::attrs::DataEntry;
use super::graph::Graph;
use crate::graph::{GRF_23, GRF_24, GRF_52, GRF_53};
use crate::rule::{Kind, Violation};
use crate::tensor::{Dtype, Packing, extents_times};
use serde_json::{Value, json};

/// What a graph needs to run: one pool for every storage id, in order. An id that no entry names has an empty pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Pool `i` holds the entries whose storage id is `i`.
    pub pools: Vec<StoragePool>,
}

/// A run of bytes, or an image, on one device that some entries share, each from its first byte on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoragePool {
    /// Size in bytes: that of the largest entry. An executor takes it in whole words of four (GRF-30).
    pub bytes: u64,
    /// Device type number, the same for all entries (GRF-24); `None` where the graph leaves it to the executor (GRF-30).
    pub device: Option<i32>,
    /// Memory scope; empty for the default.
    pub scope: String,
    /// The image that the pool is, where its scope names one (GRF-53).
    pub texture: Option<Texture>,
}

/// An image of rows of texels, each of `channel` elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Texture {
    /// Rows.
    pub height: u64,
    /// Texels in a row.
    pub width: u64,
    /// Elements of a texel.
    pub channel: u64,
    /// Type of an element.
    pub dtype: Dtype,
}

impl Plan {
    /// Plans the storage of `graph` (GRF-23, GRF-24, GRF-52, GRF-53).
    ///
    /// # Errors
    ///
    /// Sizes that overflow, a pool on two devices, storage ids far beyond the number of entries, entries that are no image of
    /// their pool.
    pub fn of(graph: &Graph) -> Result<Plan, Violation> {
        let most = graph.entries.iter().map(|entry| entry.storage_id).max();
        let count = most.map_or(0, |most| most.saturating_add(1));
        // Only a graph that was not read can break this: the reader holds GRF-52, where there are bytes to blame.
        let entries = graph.entries.len();
        GRF_52.demand(Kind::Limit, count <= entries, || {
            format!("{count} storage ids in a graph of {entries} entries")
        })?;
        // GRF-52: no more pools than entries, where the check is switched off, too.
        let mut pools: Vec<Option<StoragePool>> = vec![None; count.min(entries)];
        for (index, entry) in graph.entries.iter().enumerate() {
            let one = StoragePool::of(index, entry)?;
            let Some(slot) = pools.get_mut(entry.storage_id) else {
                continue;
            };
            match slot {
                None => *slot = Some(one),
                Some(pool) => pool.add(one, entry.storage_id)?,
            }
        }
        // GRF-22: ids may leave gaps, whose pools are empty.
        let pools = pools.into_iter().map(Option::unwrap_or_default).collect();
        Ok(Plan { pools })
    }

    /// All pools together, in bytes; [`u64::MAX`] where 64 bits do not count them.
    pub fn total_bytes(&self) -> u64 {
        self.pools
            .iter()
            .map(|pool| pool.bytes)
            .fold(0, u64::saturating_add)
    }

    /// `[{"id", "bytes", "device"}]`, and of an image the three extents as `texture`.
    pub fn to_json(&self) -> Value {
        let pools = self.pools.iter().enumerate();
        pools
            .map(|(id, pool)| {
                let mut shown = json!({ "id": id, "bytes": pool.bytes, "device": pool.device });
                if let (Some(texture), Value::Object(members)) = (&pool.texture, &mut shown) {
                    members.insert("texture".into(), texture.extents().as_slice().into());
                }
                shown
            })
            .collect()
    }
}

impl StoragePool {
    /// The pool that `entry` alone needs.
    fn of(index: usize, entry: &DataEntry) -> Result<StoragePool, Violation> {
        let scope = entry.scope.clone().unwrap_or_default();
        // GRF-53: any scope with the word is one of images; one that is not in the table is rejected below.
        let texture = if scope.contains("texture") {
            Some(Texture::of(index, entry, &scope)?)
        } else {
            None
        };
        let bytes = match &texture {
            Some(texture) => texture.bytes(),
            None => bytes_of(entry.dtype, &entry.shape),
        };
        let bytes = bytes.ok_or_else(|| too_large(index))?;
        Ok(StoragePool {
            bytes,
            device: entry.device,
            scope,
            texture,
        })
    }

    /// Lets another entry, which needs `one` alone, share pool `id`.
    fn add(&mut self, one: StoragePool, id: usize) -> Result<(), Violation> {
        // GRF-24: an entry without a device does not share with one that names it: the executor may put them apart (GRF-30).
        GRF_24.demand(Kind::Malformed, self.device == one.device, || {
            format!(
                "storage {id} is on device types {:?} and {:?}",
                self.device, one.device
            )
        })?;
        match (&mut self.texture, &one.texture) {
            // Every entry begins at the first byte of the pool, so that the largest is enough.
            (None, None) => self.bytes = self.bytes.max(one.bytes),
            (Some(pool), Some(texture))
                if (pool.channel, pool.dtype) == (texture.channel, texture.dtype) =>
            {
                pool.height = pool.height.max(texture.height);
                pool.width = pool.width.max(texture.width);
                // The image of the greatest height and width may be larger than both.
                self.bytes = pool.bytes().ok_or_else(|| too_large(id))?;
            }
            _ => {
                let message = format!(
                    "storage {id} is an image, and not all of its entries are images of the same texels"
                );
                return Err(GRF_53.rejected(Kind::Malformed, message));
            }
        }
        // The first scope that is not empty is the pool's. No rule compares the scopes of entries, but for images (GRF-53).
        if self.scope.is_empty() {
            self.scope = one.scope;
        }
        Ok(())
    }
}

impl Texture {
    /// The image that holds `entry` (GRF-53): the last extent is the texel, the others are rows and columns.
    fn of(index: usize, entry: &DataEntry, scope: &str) -> Result<Texture, Violation> {
        let rank = entry.shape.len();
        // GRF-53: how many extents in front make rows.
        let rows = match scope {
            "global.texture" => rank.checked_sub(2),
            "global.texture-weight" => Some(1),
            // The first of three extents alone, else the first two (GRF-53).
            "global.texture-nhwc" if rank == 3 => Some(1),
            "global.texture-nhwc" => Some(2),
            _ => None,
        };
        let parts = entry.shape.split_last().and_then(|(texel, outer)| {
            let (rows, columns) = outer.split_at_checked(rows?)?;
            Some((rows, columns, *texel))
        });
        let Some((rows, columns, texel)) = parts else {
            let message = format!(
                "entry {index} of shape {:?} is not an image in the scope `{scope}`",
                entry.shape
            );
            return Err(GRF_53.rejected(Kind::Malformed, message));
        };
        let product = |extents| u64::try_from(extents_times(1, extents)?).ok();
        let sized = || {
            Some(Texture {
                height: product(rows)?,
                width: product(columns)?,
                channel: u64::try_from(texel).ok()?,
                dtype: entry.dtype,
            })
        };
        sized().ok_or_else(|| too_large(index))
    }

    /// Rows, texels in a row, elements of a texel.
    pub fn extents(&self) -> [u64; 3] {
        [self.height, self.width, self.channel]
    }

    /// Elements of the image times the bytes of one; `None` above 64 bits (GRF-23).
    fn bytes(&self) -> Option<u64> {
        let element = Packing::Each.bytes(self.dtype, &[])?;
        let extents = self.extents();
        // An image without texels, or without elements in them, has no bytes however long its other sides are.
        if extents.contains(&0) {
            Some(0)
        } else {
            extents.into_iter().try_fold(element, u64::checked_mul)
        }
    }
}

/// GRF-23 for entry or pool `index`. Upstream's product wraps, and kernels write past what it allocates.
#[cold]
fn too_large(index: usize) -> Violation {
    let message = format!("entry {index} has more bytes than 64 bits count");
    GRF_23.rejected(Kind::Limit, message)
}

/// Bytes of a tensor in a graph: an element of all lanes takes whole bytes.
pub(in crate::graph) fn bytes_of(dtype: Dtype, shape: &[i64]) -> Option<u64> {
    // GRF-51: 1 and 4 bits take a byte.
    Packing::Each.bytes(dtype, shape)
}
