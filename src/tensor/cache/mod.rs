//! The tensor cache: parameters in shards, and an index in JSON that describes them (TEN-50 to TEN-61).
//!
//! | member of the index | value | rule |
//! |---|---|---|
//! | `metadata` | any JSON | TEN-50, TEN-60 |
//! | `records[i]` | `dataPath`, `format`, `nbytes`, `records`, `md5sum` | TEN-51, TEN-53, TEN-54, TEN-58, TEN-61 |
//! | `records[i].records[j]` | `name`, `shape`, `dtype`, `format`, `nbytes`, `byteOffset` | TEN-52, TEN-55 to TEN-57 |
//!
//! ```
//! use tvmspec::release::Release;
//! use tvmspec::rule::Findings;
//! use tvmspec::tensor::TensorCache;
//!
//! let index = std::fs::read("golden/tensor/cache-0.27/tensor-cache.json")?;
//! let cache = TensorCache::read(&index, Release::LAST, &mut Findings::default())?;
//! for shard in &cache.shards {
//!     let bytes = std::fs::read(format!("golden/tensor/cache-0.27/{}", shard.path))?;
//!     shard.check(Some(&bytes), &mut Findings::default())?;
//!     for (name, record) in shard.tensors(&bytes)? {
//!         println!("{name}: {:?}", record.shape());
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod encoding;
mod member;
mod write;

pub use encoding::CacheEncoding;
pub use write::CacheWriter;

use super::{
    Dtype, Sizing, TEN_50, TEN_51, TEN_52, TEN_53, TEN_54, TEN_55, TEN_56, TEN_57, TEN_58, TEN_59,
    TEN_60, TEN_61, TensorRecord,
};
use crate::file_name::is_file_name;
use crate::release::Release;
use crate::rule::{Detail, Findings, Kind, Violation};
use crate::wire::json::with_repeated_names;
use member::Member;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::HashSet;

/// The only format of a shard (TEN-53).
const RAW_SHARD: &str = "raw-shard";

/// The first bytes of a pointer file, with which git-lfs replaces another file.
const LFS_POINTER: &[u8] = b"version https://git-lfs.github.com/spec/";

/// The index of a tensor cache. Its shards contain the data.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct TensorCache {
    /// The writer's data about the model; `None` if the member is missing (TEN-60).
    pub metadata: Option<Value>,
    /// The shards in the order of the index.
    pub shards: Vec<Shard>,
}

/// A file of a tensor cache, as described by the index.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Shard {
    /// The name of the file, in the folder of the index.
    pub path: String,
    /// The size of the file in bytes.
    pub nbytes: u64,
    /// The MD5 sum of the file in hexadecimal digits.
    pub md5sum: Option<String>,
    /// The tensors in it.
    pub tensors: Vec<CachedTensor>,
}

/// The description of a tensor in a shard.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct CachedTensor {
    /// Its name.
    pub name: String,
    /// Its element type.
    pub dtype: Dtype,
    /// Its dimensions, outermost first.
    pub shape: Vec<i64>,
    /// The encoding of its elements.
    pub encoding: CacheEncoding,
    /// The offset of its bytes in the shard.
    pub offset: u64,
    /// The number of its bytes in the shard.
    pub nbytes: u64,
}

impl TensorCache {
    /// Reads an index. `newest` is the last release that may have written it. Names of element types changed (TEN-02), and the newest
    /// meaning of a name is used.
    ///
    /// # Errors
    ///
    /// Returns TEN-50 to TEN-53, TEN-55 and TEN-56; under strict findings also TEN-57 and TEN-59 to TEN-61. The errors have no offset,
    /// because JSON is read as a whole.
    pub fn read(
        text: &[u8],
        newest: Release,
        findings: &mut Findings,
    ) -> Result<TensorCache, Violation> {
        let (root, repeated) = with_repeated_names(text).map_err(|error| {
            let why = if text.starts_with(b"\xef\xbb\xbf") {
                "it begins with a byte order mark. Save it as UTF-8 without one".to_owned()
            } else {
                error.to_string()
            };
            TEN_50.rejected(Kind::Malformed, format!("the index is not JSON: {why}"))
        })?;
        for name in repeated {
            let message = format!("an object of the index has a second `{name}`");
            findings.note(TEN_59, Kind::Duplicate, 0, message)?;
        }
        let root = Member::root(&root, TEN_50)?;
        let metadata = root.find("metadata").map(|member| member.value.clone());
        findings.expect(TEN_60, Kind::Missing, metadata.is_some(), 0, || {
            "the index has no `metadata`, without which the loader of Python fails".to_owned()
        })?;
        let mut names = HashSet::new();
        let shards = root.get("records", TEN_50)?.list(TEN_50)?;
        let shards = shards
            .iter()
            .map(|shard| read_shard(shard, newest, &mut names, findings));
        Ok(TensorCache {
            metadata,
            shards: shards.collect::<Result<_, _>>()?,
        })
    }
}

/// Reads the description of a shard (TEN-51).
fn read_shard(
    item: &Member<'_>,
    newest: Release,
    names: &mut HashSet<String>,
    findings: &mut Findings,
) -> Result<Shard, Violation> {
    let path = item.get("dataPath", TEN_51)?.text(TEN_51)?;
    let format = item.get("format", TEN_51)?.text(TEN_51)?;
    let nbytes = item.get("nbytes", TEN_51)?.count(TEN_51)?;
    item.locate(TEN_53.demand(Kind::Unsupported, format == RAW_SHARD, || {
        let format = format.escape_debug();
        format!("shard `{path}` is of format `{format}`; the only one is `{RAW_SHARD}`")
    }))?;
    findings.expect(TEN_61, Kind::Malformed, is_file_name(path), 0, || {
        let path = path.escape_debug();
        format!("`{path}`: expected the name of a file in the folder of the index; no command opens another path")
    })?;
    let md5sum = item.find("md5sum").map(|sum| sum.text(TEN_51));
    let tensors = item.get("records", TEN_51)?.list(TEN_51)?;
    let tensors = tensors
        .iter()
        .map(|tensor| read_tensor(tensor, nbytes, newest, names, findings));
    Ok(Shard {
        path: path.to_owned(),
        nbytes,
        md5sum: md5sum.transpose()?.map(str::to_owned),
        tensors: tensors.collect::<Result<_, _>>()?,
    })
}

/// Reads the description of a tensor (TEN-52) in a shard of `room` bytes.
fn read_tensor(
    item: &Member<'_>,
    room: u64,
    newest: Release,
    names: &mut HashSet<String>,
    findings: &mut Findings,
) -> Result<CachedTensor, Violation> {
    let name = item.get("name", TEN_52)?.text(TEN_52)?;
    let shape = item.get("shape", TEN_52)?.list(TEN_52)?;
    let shape = shape.iter().map(|extent| extent.integer(TEN_52));
    let shape = shape.collect::<Result<Vec<i64>, _>>()?;
    let dtype = item.get("dtype", TEN_52)?;
    let text = dtype.text(TEN_52)?;
    let dtype = dtype_of(text, newest).ok_or_else(|| {
        let message = format!(
            "tensor `{name}` is of type `{}`, which no release has",
            text.escape_debug()
        );
        TEN_52
            .rejected(Kind::UnknownKind, message)
            .in_field(dtype.path.as_str())
    })?;
    let format = item.get("format", TEN_52)?.text(TEN_52)?;
    let nbytes = item.get("nbytes", TEN_52)?.count(TEN_52)?;
    let offset = item.get("byteOffset", TEN_52)?.count(TEN_52)?;
    // TEN-57: readers compare the format with one word, so any other word means raw.
    let known = matches!(format, "raw" | "f32-to-bf16");
    findings.expect(TEN_57, Kind::UnknownKind, known, 0, || {
        format!(
            "tensor `{name}` is of format `{}`, which readers take for `raw`",
            format.escape_debug()
        )
    })?;
    findings.expect(
        TEN_59,
        Kind::Duplicate,
        names.insert(name.to_owned()),
        0,
        || format!("there are two tensors called `{name}`; the last one counts"),
    )?;
    let encoding = CacheEncoding::of(format, dtype);
    let end = offset.checked_add(nbytes);
    item.locate(
        TEN_55.demand(Kind::Malformed, end.is_some_and(|end| end <= room), || {
            format!(
                "tensor `{name}` has {nbytes} bytes at {offset} of a shard of {room} bytes; the C++ loader reads memory after the end of the shard"
            )
        }),
    )?;
    let sizes = encoding.sizes(dtype, &shape);
    item.locate(
        TEN_56
            .demand(Kind::Malformed, sizes.contains(&Some(nbytes)), || {
                let takes = match sizes {
                    [Some(bytes), _] => format!("takes {bytes} bytes"),
                    [None, _] => "has no size".to_owned(),
                };
                format!("tensor `{name}` of {text} {shape:?} {takes}, the index states {nbytes}")
            })
            .map_err(|broken| {
                broken.with_detail(matches!(sizes, [None, _]).then_some(Detail::NoSize))
            }),
    )?;
    Ok(CachedTensor {
        name: name.to_owned(),
        dtype,
        shape,
        encoding,
        offset,
        nbytes,
    })
}

/// Returns the element type that `text` names in `newest`, or in an older release with another set of names (TEN-02).
fn dtype_of(text: &str, newest: Release) -> Option<Dtype> {
    [newest, Release::of(21), Release::of(19)]
        .into_iter()
        .filter(|release| *release <= newest)
        .find_map(|release| Dtype::parse(text, release).ok())
}

impl Shard {
    /// Checks the content of the shard's file against the index. `None` means that the file does not exist.
    ///
    /// # Errors
    ///
    /// Returns TEN-54: kind missing without a file, truncated for a short file, trailing for a long file, malformed for a pointer of
    /// git-lfs. Under strict findings also TEN-58. The errors have no offset.
    pub fn check(&self, bytes: Option<&[u8]>, findings: &mut Findings) -> Result<(), Violation> {
        let (path, stated) = (self.path.as_str(), self.nbytes);
        let Some(bytes) = bytes else {
            let message = format!("there is no file `{path}` in the folder of the index");
            return Err(TEN_54.rejected(Kind::Missing, message));
        };
        let there = bytes.len() as u64;
        let kind = match there.cmp(&stated) {
            _ if bytes.starts_with(LFS_POINTER) => Kind::Malformed,
            std::cmp::Ordering::Less => Kind::Truncated,
            _ => Kind::Trailing,
        };
        TEN_54.demand(kind, there == stated, || match kind {
            Kind::Malformed => format!(
                "`{path}` is a pointer of git-lfs and not its {stated} bytes of data; `git lfs pull` fetches them"
            ),
            Kind::Truncated => format!(
                "`{path}` has {there} bytes of {stated}: it was not downloaded whole; fetch it again"
            ),
            _ => format!("`{path}` has {there} bytes, the index states {stated}"),
        })?;
        let Some(stated) = &self.md5sum else {
            return Ok(());
        };
        let sum = format!("{:x}", md5::compute(bytes));
        findings.expect(
            TEN_58,
            Kind::Malformed,
            sum.eq_ignore_ascii_case(stated),
            0,
            || {
                format!(
                    "the MD5 sum of `{path}` is {sum}, the index states {}",
                    stated.escape_debug()
                )
            },
        )
    }

    /// Returns the tensors of the shard as records of a parameter file. `bytes` is the content of the shard's file.
    ///
    /// # Errors
    ///
    /// Returns TEN-54 for a tensor outside of `bytes`, and the errors of [`TensorRecord::new`]. A parameter file has one byte for each
    /// element below eight bits, while a cache packs them (TEN-31).
    pub fn tensors<'s>(
        &'s self,
        bytes: &'s [u8],
    ) -> Result<Vec<(Cow<'s, str>, TensorRecord<'s>)>, Violation> {
        let tensors = self.tensors.iter().map(|tensor| {
            let stored = tensor.stored(bytes).ok_or_else(|| {
                let message = format!("tensor `{}` is not inside `{}`", tensor.name, self.path);
                TEN_54.rejected(Kind::Truncated, message)
            })?;
            let data = tensor.encoding.decode(stored);
            let record = TensorRecord::new(tensor.dtype, &tensor.shape, data, Sizing::V0_7)
                .map_err(|broken| broken.in_field(tensor.name.as_str()))?;
            Ok((Cow::Borrowed(tensor.name.as_str()), record))
        });
        tensors.collect()
    }
}

impl CachedTensor {
    /// Returns the bytes of the tensor in the bytes of its shard.
    fn stored<'b>(&self, shard: &'b [u8]) -> Option<&'b [u8]> {
        let start = usize::try_from(self.offset).ok()?;
        let length = usize::try_from(self.nbytes).ok()?;
        shard.get(start..start.checked_add(length)?)
    }
}
