//! Parameter files and tensor caches: the place of each tensor in its file, from which Python makes arrays over the mapped file.

use crate::buffer::Buffer;
use crate::errors;
use crate::file_errors::violation_error;
use crate::reports::{Source, parse};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tvmspec::examine::Subject;
use tvmspec::examine::document::newest_of;
use tvmspec::release::Release;
use tvmspec::rule::{Findings, Violation};
use tvmspec::tensor::rules::TEN_02;
use tvmspec::tensor::{CacheEncoding, Dtype, Packing, Params, Sizing, TensorCache, TensorRecord};
use tvmspec::wire::{Cursor, Writer};

/// Name, element type, extents, offset and number of bytes of a tensor.
type Place = (String, String, Vec<i64>, u64, u64);

/// Returns the place of each tensor in the parameter file `name`.
#[pyfunction]
pub(crate) fn read_params(
    py: Python<'_>,
    file: &Bound<'_, PyAny>,
    name: String,
    written_by: Option<&str>,
) -> PyResult<Vec<Place>> {
    let release = parse(written_by)?;
    let source = Source::open(file, Some(name.clone()))?;
    let found = source.read(py, |input| {
        if release.is_none()
            && let Some(message) = find_unclear_type(&name, input.bytes())
        {
            return Ok(Err(message));
        }
        places(input.bytes(), release).map(Ok)
    });
    let found = found.map_err(|broken| violation_error(py, &broken, &name))?;
    found.map_err(|message| {
        errors::error(
            py,
            format!(
                "{name}: {message}; state the release that wrote it, such as written_by=\"0.19\" [TEN-02]"
            ),
        )
    })
}

/// Returns the message about the first type whose code has another meaning in the newest release, as `verify` reports it.
fn find_unclear_type(name: &str, bytes: &[u8]) -> Option<String> {
    let params = Params::detect(&mut Cursor::new(bytes), &mut Findings::default())
        .ok()?
        .0;
    let is_reused = |dtype: Dtype| dtype.code != Dtype::UINT && dtype.meanings().len() > 1;
    if !params.iter().any(|(_, record)| is_reused(record.dtype())) {
        return None;
    }
    let found = Subject::open(name, bytes, None).ok()?.verify().ok()?;
    let mut findings = found.findings.into_iter().map(|found| found.what);
    let unclear = findings.find(|finding| finding.rule == TEN_02);
    unclear.map(|finding| finding.message)
}

/// Returns the place of each tensor, for the types and the packing of `release`.
fn places(bytes: &[u8], release: Option<Release>) -> Result<Vec<Place>, Violation> {
    let mut cursor = Cursor::new(bytes);
    let (params, _) = Params::detect(&mut cursor, &mut Findings::default())?;
    let mut places = Vec::with_capacity(params.len());
    for (name, record) in params.iter() {
        let packing = packing_of(record.dtype(), release);
        let elements = record.elements(packing)?;
        // The elements are a part of `bytes`, which were borrowed and not copied. Those of an empty tensor have no place.
        let start = elements.bytes().as_ptr().addr();
        let offset = start.checked_sub(bytes.as_ptr().addr()).unwrap_or(0);
        let dtype = record.dtype().text(release.unwrap_or(Release::LAST))?;
        let length = elements.bytes().len();
        let shape = record.shape().to_vec();
        places.push((name.to_owned(), dtype, shape, offset as u64, length as u64));
    }
    Ok(places)
}

/// Returns the packing of elements in memory, which a record contains (TEN-35).
fn packing_of(dtype: Dtype, release: Option<Release>) -> Packing {
    // A bool of one bit is from 0.22 or before, unless the caller says otherwise.
    let packs_since = if dtype.bits == 1 { 26 } else { 21 };
    let packs = match release {
        Some(release) => release.minor() >= packs_since,
        None => dtype.bits != 1,
    };
    if packs {
        Packing::Packed
    } else {
        Packing::Each
    }
}

/// Returns the shards of the tensor cache whose index at `path` has the text `index`: the name of each shard, and its tensors. The flag
/// of a tensor is true if the shard stores bfloat16 instead of float32.
#[pyfunction]
#[expect(
    clippy::type_complexity,
    reason = "it is taken apart in one line of Python"
)]
pub(crate) fn read_cache(
    py: Python<'_>,
    index: &[u8],
    path: &str,
    name: &str,
) -> PyResult<Vec<(String, Vec<(Place, bool)>)>> {
    let broken = |broken: Violation| violation_error(py, &broken, path);
    let newest = newest_of(name);
    let cache = TensorCache::read(index, newest, &mut Findings::default()).map_err(broken)?;
    let mut shards = Vec::with_capacity(cache.shards.len());
    for shard in cache.shards {
        let mut tensors = Vec::with_capacity(shard.tensors.len());
        for tensor in shard.tensors {
            let dtype = tensor.dtype.text(newest).map_err(broken)?;
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

/// Returns the bytes of a parameter file. A tensor is its name, its element type, its extents and its little-endian bytes.
#[pyfunction]
pub(crate) fn params_bytes<'py>(
    py: Python<'py>,
    tensors: Vec<(String, String, Vec<i64>, Bound<'py, PyAny>)>,
) -> PyResult<Bound<'py, PyBytes>> {
    let broken =
        |name: &str, broken: Violation| violation_error(py, &broken, &format!("tensor `{name}`"));
    let mut stored = Vec::with_capacity(tensors.len());
    for (name, dtype, shape, data) in tensors {
        let dtype = Dtype::parse(&dtype, Release::LAST);
        let dtype = dtype.map_err(|wrong| broken(&name, wrong))?;
        stored.push((name, dtype, shape, Buffer::from_object(&data)?));
    }
    // The lock is kept, because the caller still has the arrays and may write to them.
    let mut records = Vec::with_capacity(stored.len());
    for (name, dtype, shape, data) in &stored {
        let record = TensorRecord::new(*dtype, shape, data.as_ref(), Sizing::V0_7);
        let record = record.map_err(|wrong| broken(name, wrong))?;
        records.push((name.as_str().into(), record));
    }
    let mut out = Writer::new();
    Params::new(records).write(&mut out);
    Ok(PyBytes::new(py, &out.into_bytes()))
}
