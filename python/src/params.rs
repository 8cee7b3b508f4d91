//! Parameter files and tensor caches: the place of each tensor in its file, from which Python makes arrays over the mapped file.

use crate::buffer::Buffer;
use crate::errors;
use crate::reports::{Source, parse};
use pyo3::prelude::*;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use tvmspec::examine::document::newest_of;
use tvmspec::release::Release;
use tvmspec::rule::{Findings, Violation};
use tvmspec::tensor::{
    CacheEncoding, CacheWriter, Dtype, Packing, Params, Sizing, TensorCache, TensorRecord,
};
use tvmspec::wire::{Cursor, Writer};

/// Name, element type, extents, offset and number of bytes of a tensor. The bytes are packed if elements have less than eight bits.
type Place = (String, String, Vec<i64>, u64, u64);

/// Returns the place of each tensor in a parameter file.
#[pyfunction]
pub(crate) fn read_params(
    py: Python<'_>,
    file: &Bound<'_, PyAny>,
    written_by: Option<&str>,
) -> PyResult<Vec<Place>> {
    let release = parse(written_by)?.unwrap_or(Release::LAST);
    let source = Source::open(file, None)?;
    let places = source.read(py, |input| places(input.bytes(), release));
    places.map_err(|broken| errors::broken(py, &broken))
}

fn places(bytes: &[u8], release: Release) -> Result<Vec<Place>, Violation> {
    let mut cursor = Cursor::new(bytes);
    let (params, _) = Params::detect(&mut cursor, &mut Findings::default())?;
    let mut places = Vec::with_capacity(params.len());
    for (name, record) in params.iter() {
        let packing = packing_of(record.dtype());
        let elements = record.elements(packing)?;
        // The elements are a part of `bytes`, which were borrowed and not copied. Those of an empty tensor have no place.
        let start = elements.bytes().as_ptr().addr();
        let offset = start.checked_sub(bytes.as_ptr().addr()).unwrap_or(0);
        let dtype = record.dtype().text(release)?;
        let length = elements.bytes().len();
        let shape = record.shape().to_vec();
        places.push((name.to_owned(), dtype, shape, offset as u64, length as u64));
    }
    Ok(places)
}

/// Returns the packing of elements in memory. numpy stores each boolean in a byte.
fn packing_of(dtype: Dtype) -> Packing {
    if dtype.bits == 1 {
        Packing::Each
    } else {
        Packing::Packed
    }
}

/// Returns the shards of a tensor cache: the name of each file, and its tensors. The flag of a tensor is true if the file stores bfloat16
/// instead of float32. `index` is the text of the index, and `name` the name of its file.
#[pyfunction]
#[expect(
    clippy::type_complexity,
    reason = "it is taken apart in one line of Python"
)]
pub(crate) fn read_cache(
    py: Python<'_>,
    index: &[u8],
    name: &str,
) -> PyResult<Vec<(String, Vec<(Place, bool)>)>> {
    let newest = newest_of(name);
    let cache = TensorCache::read(index, newest, &mut Findings::default());
    let cache = cache.map_err(|broken| errors::broken(py, &broken))?;
    let mut shards = Vec::with_capacity(cache.shards.len());
    for shard in cache.shards {
        let mut tensors = Vec::with_capacity(shard.tensors.len());
        for tensor in shard.tensors {
            let dtype = tensor.dtype.text(newest);
            let dtype = dtype.map_err(|broken| errors::broken(py, &broken))?;
            let is_half = tensor.encoding == CacheEncoding::Bf16
                && tensor.dtype == Dtype::scalar(Dtype::FLOAT, 32);
            let place = (
                tensor.name,
                dtype,
                tensor.shape,
                tensor.offset,
                tensor.nbytes,
            );
            tensors.push((place, is_half));
        }
        shards.push((shard.path, tensors));
    }
    Ok(shards)
}

/// Writes tensors into the parameter file at `path`, or into a tensor cache if `path` has the name of an index. A tensor is its name, its
/// element type, its extents and its little-endian bytes.
#[pyfunction]
pub(crate) fn save_params(
    py: Python<'_>,
    path: PathBuf,
    tensors: Vec<(String, String, Vec<i64>, Bound<'_, PyAny>)>,
    is_bf16: bool,
) -> PyResult<()> {
    let index = path.file_name().and_then(|name| name.to_str());
    let index = index.filter(|name| matches!(*name, "tensor-cache.json" | "ndarray-cache.json"));
    let release = index.map_or(Release::LAST, newest_of);
    let mut stored = Vec::with_capacity(tensors.len());
    for (name, dtype, shape, data) in tensors {
        let dtype = Dtype::parse(&dtype, release);
        let dtype = dtype.map_err(|broken| errors::broken(py, &broken))?;
        stored.push((name, dtype, shape, Buffer::of(&data)?));
    }
    // The lock is kept, because the caller still has the arrays and may write to them.
    let records = stored.iter().map(|(name, dtype, shape, data)| {
        let record = TensorRecord::new(*dtype, shape, data.as_ref(), Sizing::V0_7)?;
        Ok((name.as_str().into(), record))
    });
    let records = records.collect::<Result<Vec<_>, Violation>>();
    let params = Params::new(records.map_err(|broken| errors::broken(py, &broken))?);
    let Some(index) = index else {
        let mut out = Writer::new();
        params.write(&mut out);
        return replace(&path, &out.into_bytes());
    };
    let encoding = match is_bf16 {
        true => CacheEncoding::Bf16,
        false => CacheEncoding::Raw,
    };
    let writer = CacheWriter::new(encoding, newest_of(index));
    let mut shards = Vec::new();
    let cache = writer.write(&params, |name, bytes| -> Result<(), Violation> {
        shards.push((name.to_owned(), bytes.to_vec()));
        Ok(())
    });
    let text = cache.and_then(|cache| writer.index(&cache));
    let text = text.map_err(|broken| errors::broken(py, &broken))?;
    for (name, bytes) in shards {
        replace(&path.with_file_name(name), &bytes)?;
    }
    // Written last: if the index exists, so do its shards.
    replace(&path, text.as_bytes())
}

/// Writes a file beside its target and renames it, so that arrays over the old file keep their bytes.
fn replace(path: &Path, bytes: &[u8]) -> PyResult<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}.tmp", std::process::id()));
    let beside = PathBuf::from(beside);
    let written = fs::File::create(&beside)
        .and_then(|mut file| file.write_all(bytes))
        .and_then(|()| fs::rename(&beside, path));
    written.map_err(|failure: io::Error| {
        let _ = fs::remove_file(&beside);
        errors::file(path, failure)
    })
}
