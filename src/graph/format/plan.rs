//! The storage plan, which states which entries share memory.

use super::attrs::DataEntry;
use super::graph::Graph;
use crate::graph::{GRF_23, GRF_24, GRF_52, GRF_53};
use crate::rule::{Kind, Violation};
use crate::tensor::{Dtype, Packing, extents_times};
use serde_json::{Value, json};

/// The memory that a graph needs: one pool for every storage id, in order. A storage id without an entry has an empty pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The pools. Pool `i` holds the entries whose storage id is `i`.
    pub pools: Vec<StoragePool>,
}

/// A block of bytes or an image on one device. Some entries share it, each from its first byte on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoragePool {
    /// The size in bytes, which is the size of the largest entry. An executor rounds it up to words of four bytes (GRF-30).
    pub bytes: u64,
    /// The device type number, the same for all entries (GRF-24); `None` if the executor chooses the device (GRF-30).
    pub device: Option<i32>,
    /// The memory scope; empty for the default.
    pub scope: String,
    /// The image, if the scope is one of images (GRF-53).
    pub texture: Option<Texture>,
}

/// An image of rows of texels, each of `channel` elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Texture {
    /// The number of rows.
    pub height: u64,
    /// The number of texels in a row.
    pub width: u64,
    /// The number of elements in a texel.
    pub channel: u64,
    /// The type of an element.
    pub dtype: Dtype,
}

impl Plan {
    /// Plans the storage of `graph` (GRF-23, GRF-24, GRF-52, GRF-53).
    ///
    /// # Errors
    ///
    /// Fails if a size overflows, a pool is on two devices, or a storage id is far beyond the number of entries. Also fails if an entry
    /// does not match the image of its pool.
    pub fn from_graph(graph: &Graph) -> Result<Plan, Violation> {
        let most = graph.entries.iter().map(|entry| entry.storage_id).max();
        let count = most.map_or(0, |most| most.saturating_add(1));
        // Only a graph that is built member by member can break this. The reader checks GRF-52 itself, because it knows the offset.
        let entries = graph.entries.len();
        GRF_52.demand(Kind::Limit, count <= entries, || {
            format!("{count} storage ids in a graph of {entries} entries")
        })?;
        // GRF-52: there are never more pools than entries, even if the check is switched off.
        let mut pools: Vec<Option<StoragePool>> = vec![None; count.min(entries)];
        for (index, entry) in graph.entries.iter().enumerate() {
            let one = StoragePool::from_entry(index, entry)?;
            let Some(slot) = pools.get_mut(entry.storage_id) else {
                continue;
            };
            match slot {
                None => *slot = Some(one),
                Some(pool) => pool.add(one, entry.storage_id)?,
            }
        }
        // GRF-22: ids may have gaps. The pools of unused ids are empty.
        let pools = pools.into_iter().map(Option::unwrap_or_default).collect();
        Ok(Plan { pools })
    }

    /// Returns the bytes of all pools, or [`u64::MAX`] if the sum overflows.
    pub fn total_bytes(&self) -> u64 {
        self.pools
            .iter()
            .map(|pool| pool.bytes)
            .fold(0, u64::saturating_add)
    }

    /// Returns `[{"id", "bytes", "device"}]`; an image also has its three extents as `texture`.
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
    /// Returns the pool that would hold only `entry`.
    fn from_entry(index: usize, entry: &DataEntry) -> Result<StoragePool, Violation> {
        let scope = entry.scope.clone().unwrap_or_default();
        // GRF-53: any scope that contains the word is one of images. An unknown one is rejected below.
        let texture = if scope.contains("texture") {
            Some(Texture::from_entry(index, entry, &scope)?)
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

    /// Adds an entry to pool `id`. `one` is the pool that would hold only this entry.
    fn add(&mut self, one: StoragePool, id: usize) -> Result<(), Violation> {
        // GRF-24: an entry without a device must not share a pool with an entry that has one, because the executor may place them on
        // different devices (GRF-30).
        GRF_24.demand(Kind::Malformed, self.device == one.device, || {
            let shown =
                |device: Option<i32>| device.map_or("none".to_owned(), |device| device.to_string());
            format!(
                "storage {id}: expected one device type for all its entries, found {} and {}",
                shown(self.device),
                shown(one.device)
            )
        })?;
        match (&mut self.texture, &one.texture) {
            // Every entry begins at the first byte of the pool, so the pool has the size of the largest.
            (None, None) => self.bytes = self.bytes.max(one.bytes),
            (Some(pool), Some(texture))
                if (pool.channel, pool.dtype) == (texture.channel, texture.dtype) =>
            {
                pool.height = pool.height.max(texture.height);
                pool.width = pool.width.max(texture.width);
                // The image with the greatest height and width may be larger than both images.
                self.bytes = pool.bytes().ok_or_else(|| too_large(id))?;
            }
            _ => {
                let message = format!(
                    "storage {id} is an image, so all its entries must be images with the same texels: found others"
                );
                return Err(GRF_53.rejected(Kind::Malformed, message));
            }
        }
        // The pool gets the first scope that is not empty. No rule compares the scopes of entries, except for images (GRF-53).
        if self.scope.is_empty() {
            self.scope = one.scope;
        }
        Ok(())
    }
}

impl Texture {
    /// Returns the image that contains `entry` (GRF-53). The last extent is the texel. The other extents are rows and columns.
    fn from_entry(index: usize, entry: &DataEntry, scope: &str) -> Result<Texture, Violation> {
        let rank = entry.shape.len();
        // GRF-53: the number of leading extents that form the rows.
        let rows = match scope {
            "global.texture" => rank.checked_sub(2),
            "global.texture-weight" => Some(1),
            // GRF-53: only the first of three extents, otherwise the first two.
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

    /// Returns the rows, the texels in a row, and the elements of a texel.
    pub fn extents(&self) -> [u64; 3] {
        [self.height, self.width, self.channel]
    }

    /// Returns the size of the image in bytes, or `None` if it exceeds 64 bits (GRF-23).
    fn bytes(&self) -> Option<u64> {
        let element = Packing::Each.bytes(self.dtype, &[])?;
        let extents = self.extents();
        // An image with an extent of 0 has no bytes, even if the other extents are large.
        if extents.contains(&0) {
            Some(0)
        } else {
            extents.into_iter().try_fold(element, u64::checked_mul)
        }
    }
}

/// Creates the violation of GRF-23 for entry or pool `index`. Upstream's product wraps around, and kernels write past the
/// allocation.
#[cold]
fn too_large(index: usize) -> Violation {
    let message = format!("the size of entry {index} in bytes does not fit into 64 bits");
    GRF_23.rejected(Kind::Limit, message)
}

/// Returns the bytes of a tensor in a graph. An element with all its lanes takes whole bytes.
pub(in crate::graph) fn bytes_of(dtype: Dtype, shape: &[i64]) -> Option<u64> {
    // GRF-51: 1 and 4 bits take a byte.
    Packing::Each.bytes(dtype, shape)
}
