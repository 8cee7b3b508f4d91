//! Writing of shards and their index, from the tensors of a parameter file.

use super::{CacheEncoding, CachedTensor, RAW_SHARD, Shard, TensorCache};
use crate::release::Release;
use crate::rule::{Kind, Violation};
use crate::tensor::{Dtype, Packing, Params, TEN_56, TensorRecord};
use crate::wire::json::object;
use serde_core::Serialize as _;
use serde_json::Value;
use serde_json::ser::{PrettyFormatter, Serializer};

/// Bool up to 0.22, and bool from 0.22 on (TEN-04).
const OLD_BOOL: Dtype = Dtype::scalar(Dtype::UINT, 1);
const NEW_BOOL: Dtype = Dtype::scalar(Dtype::BOOL, 8);

/// A writer that distributes tensors over shards, like `dump_tensor_cache`. A shard is closed before the tensor that would fill it to its
/// bound. A tensor of half the bound or more that does not fit gets a separate shard.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct CacheWriter {
    /// The encoding of floats of 32 bits.
    pub encoding: CacheEncoding,
    /// The largest size of a shard in bytes. A larger tensor gets a separate, larger shard.
    pub bound: u64,
    /// The release that will read the cache. Its names of element types are used.
    pub release: Release,
    /// The release that wrote the parameters and whose type codes they use (TEN-02); `None` for the codes of `release`.
    pub written_by: Option<Release>,
}

impl CacheWriter {
    /// Creates a writer with the bound of every release, 32 MiB.
    pub fn new(encoding: CacheEncoding, release: Release) -> CacheWriter {
        CacheWriter {
            encoding,
            bound: 32 << 20,
            release,
            written_by: None,
        }
    }

    /// Writes the shards of `params` through `put`, with the name and content of each. Returns the index without metadata.
    ///
    /// # Errors
    ///
    /// Returns TEN-02 for a type that [`CacheWriter::written_by`] does not have; TEN-35 for a tensor that is not stored completely;
    /// TEN-56 for elements below eight bits; and the errors of `put`.
    pub fn write<E: From<Violation>>(
        &self,
        params: &Params<'_>,
        mut put: impl FnMut(&str, &[u8]) -> Result<(), E>,
    ) -> Result<TensorCache, E> {
        let mut cache = TensorCache::default();
        let mut close = |tensors: Vec<CachedTensor>, data: &[u8]| -> Result<(), E> {
            let shard = Shard {
                path: format!("params_shard_{}.bin", cache.shards.len()),
                nbytes: data.len() as u64,
                md5sum: Some(format!("{:x}", md5::compute(data))),
                tensors,
            };
            put(&shard.path, data)?;
            cache.shards.push(shard);
            Ok(())
        };
        let (mut tensors, mut data) = (Vec::new(), Vec::new());
        for (name, record) in params.iter() {
            let elements = whole_bytes(name, record)?;
            let stored = self.encoding.encode(record.dtype(), elements);
            let (length, pending) = (stored.len() as u64, data.len() as u64);
            let tensor = CachedTensor {
                name: name.to_owned(),
                dtype: self.meant(name, record.dtype())?,
                shape: record.shape().to_vec(),
                encoding: self.encoding,
                offset: pending,
                nbytes: length,
            };
            if pending.saturating_add(length) >= self.bound {
                if length.saturating_mul(2) >= self.bound {
                    // Its shard is written before the open shard, to which further tensors may be added.
                    close(
                        vec![CachedTensor {
                            offset: 0,
                            ..tensor
                        }],
                        &stored,
                    )?;
                    continue;
                }
                close(std::mem::take(&mut tensors), &data)?;
                data.clear();
            }
            let offset = data.len() as u64;
            tensors.push(CachedTensor { offset, ..tensor });
            data.extend_from_slice(&stored);
        }
        if !tensors.is_empty() {
            close(tensors, &data)?;
        }
        Ok(cache)
    }

    /// Converts the type of tensor `name` to the codes of [`CacheWriter::release`].
    fn meant(&self, name: &str, dtype: Dtype) -> Result<Dtype, Violation> {
        let Some(writer) = self.written_by else {
            return Ok(dtype);
        };
        dtype
            .text(writer)
            .map_err(|broken| broken.in_field(name.to_owned()))?;
        let meaning = dtype.meaning(writer);
        let same = meaning.and_then(|name| Dtype::parse(name, self.release).ok());
        Ok(match (meaning, same) {
            // TEN-04: the width of a bool also differs.
            (Some("bool"), Some(same)) => Dtype {
                lanes: dtype.lanes,
                ..same
            },
            (_, Some(same)) => Dtype {
                code: same.code,
                ..dtype
            },
            _ => dtype,
        })
    }

    /// Returns the text of the type of a tensor.
    fn dtype_text(&self, tensor: &CachedTensor) -> Result<String, Violation> {
        // TEN-04: bool has its own code in some releases, and is an integer of one bit in others. Its text is the same in all.
        let is_bool = matches!(tensor.dtype, OLD_BOOL | NEW_BOOL);
        if is_bool && self.written_by.is_none() {
            return Ok("bool".to_owned());
        }
        let text = tensor.dtype.text(self.release);
        text.map_err(|broken| broken.in_field(tensor.name.as_str()))
    }

    /// Returns the text of the index, in the layout that every release uses.
    ///
    /// # Errors
    ///
    /// Returns TEN-02 for an element type that the release does not have.
    pub fn index(&self, cache: &TensorCache) -> Result<String, Violation> {
        let shards = cache.shards.iter().map(|shard| {
            let tensors = shard.tensors.iter().map(|tensor| {
                Ok(object([
                    ("name", tensor.name.as_str().into()),
                    ("shape", tensor.shape.as_slice().into()),
                    ("dtype", self.dtype_text(tensor)?.into()),
                    ("format", tensor.encoding.name().into()),
                    ("nbytes", tensor.nbytes.into()),
                    ("byteOffset", tensor.offset.into()),
                ]))
            });
            Ok(object([
                ("dataPath", shard.path.as_str().into()),
                ("format", RAW_SHARD.into()),
                ("nbytes", shard.nbytes.into()),
                ("records", tensors.collect::<Result<Vec<_>, _>>()?.into()),
                ("md5sum", shard.md5sum.as_deref().into()),
            ]))
        });
        let shards = shards.collect::<Result<Vec<_>, Violation>>()?;
        let metadata = cache.metadata.clone();
        let root = object([
            ("metadata", metadata.unwrap_or_else(|| object([]))),
            ("records", shards.into()),
        ]);
        Ok(text(&root))
    }
}

/// Returns the elements of a tensor, if each takes whole bytes.
fn whole_bytes<'r>(name: &str, record: &'r TensorRecord<'_>) -> Result<&'r [u8], Violation> {
    let (dtype, shape) = (record.dtype(), record.shape());
    let each = Packing::Each.bytes(dtype, shape);
    // TEN-04: a bool of one bit takes a byte.
    let is_bit = dtype.bits == 1;
    let is_whole = is_bit || each == Packing::Packed.bytes(dtype, shape);
    TEN_56.demand(Kind::Unsupported, is_whole, || {
        format!(
            "tensor `{name}` has elements of {} bits, which a parameter file has in a byte each and a cache packed",
            dtype.bits
        )
    })?;
    let length = record.elements(Packing::Each)?.bytes().len();
    Ok(record.data().get(..length).unwrap_or_default())
}

/// Formats JSON with an indentation of four blanks.
fn text(root: &Value) -> String {
    let mut text = Vec::new();
    let mut out = Serializer::with_formatter(&mut text, PrettyFormatter::with_indent(b"    "));
    // Writing to memory does not fail, and JSON is UTF-8.
    let _ = root.serialize(&mut out);
    String::from_utf8(text).unwrap_or_default()
}
