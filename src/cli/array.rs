//! Arrays in files: .npy and .npz, as numpy reads and writes them.

use super::Error;
use super::output::{self, Content};
use std::io::{Cursor, Read, Write};
use std::path::Path;
use tvmspec::object::Tensor;
use tvmspec::value::{DLDataType, dtype_to_text};

/// A tensor from an .npy file, in row-major order.
pub(super) fn read(path: &str) -> Result<Tensor, Error> {
    let bytes = std::fs::read(path)
        .map_err(|error| Error::Message(format!("cannot read {path}: {error}")))?;
    decode(&bytes, path)
}

/// Every array of an .npz file, by name.
pub(super) fn read_all(path: &Path) -> Result<Vec<(String, Tensor)>, Error> {
    let wrong = |error: &dyn std::fmt::Display| {
        Error::Message(format!("cannot read {}: {error}", path.display()))
    };
    let file = std::fs::File::open(path).map_err(|error| wrong(&error))?;
    let mut archive = zip::ZipArchive::new(file).map_err(|error| wrong(&error))?;
    let mut arrays = Vec::new();
    for index in 0..archive.len() {
        let mut member = archive.by_index(index).map_err(|error| wrong(&error))?;
        let name = member.name().trim_end_matches(".npy").to_owned();
        let mut bytes = Vec::new();
        member
            .read_to_end(&mut bytes)
            .map_err(|error| wrong(&error))?;
        arrays.push((
            name.clone(),
            decode(&bytes, &format!("{}, {name}", path.display()))?,
        ));
    }
    Ok(arrays)
}

/// Writes one array as .npy.
pub(super) fn write(tensor: &Tensor, path: &Path) -> Result<(), Error> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    output::write(path, &encode(tensor)?, Content::Binary)
}

/// Writes arrays as .npz, uncompressed.
pub(super) fn write_all(arrays: &[(String, Tensor)], path: &Path) -> Result<(), Error> {
    let wrong = |error: &dyn std::fmt::Display| {
        Error::Message(format!("cannot write {}: {error}", path.display()))
    };
    let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let options =
        zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    for (name, tensor) in arrays {
        archive
            .start_file(format!("{name}.npy"), options)
            .map_err(|error| wrong(&error))?;
        archive.write_all(&encode(tensor)?)?;
    }
    let bytes = archive
        .finish()
        .map_err(|error| wrong(&error))?
        .into_inner();
    output::write(path, &bytes, Content::Binary)
}

fn decode(bytes: &[u8], what: &str) -> Result<Tensor, Error> {
    let wrong =
        |error: &dyn std::fmt::Display| Error::Message(format!("cannot read {what}: {error}"));
    let mut rest = bytes;
    let npy = npyz::NpyHeader::from_reader(&mut rest).map_err(|error| wrong(&error))?;
    let shape: Vec<i64> = npy
        .shape()
        .iter()
        .map(|extent| i64::try_from(*extent).unwrap_or(i64::MAX))
        .collect();
    if npy.order() != npyz::Order::C && shape.len() > 1 {
        return Err(wrong(
            &"its elements are in column-major order: save numpy.ascontiguousarray(x) instead",
        ));
    }
    let npyz::DType::Plain(plain) = npy.dtype() else {
        return Err(wrong(&"it holds records, not numbers"));
    };
    let text = plain.to_string();
    let dtype = dtype_of(&text)
        .ok_or_else(|| wrong(&format!("its type is `{text}`, which no tensor has")))?;
    let tensor = Tensor::empty(&shape, dtype).map_err(Error::new)?;
    let length = tensor.nbytes();
    let mut data = rest
        .get(..length)
        .ok_or_else(|| wrong(&"it ends before its data does"))?
        .to_vec();
    if text.starts_with('>') && dtype.bits > 8 {
        data.chunks_exact_mut(usize::from(dtype.bits) / 8)
            .for_each(<[u8]>::reverse);
    }
    tensor.fill(&data).map_err(Error::new)?;
    Ok(tensor)
}

fn encode(tensor: &Tensor) -> Result<Vec<u8>, Error> {
    let dtype = tensor.dl().dtype;
    let word = numpy_word(dtype).ok_or_else(|| {
        let name = dtype_to_text(dtype).unwrap_or_default();
        Error::Message(format!("numpy has no type `{name}`"))
    })?;
    let shape: Vec<String> = tensor
        .shape()
        .iter()
        .map(|extent| format!("{extent},"))
        .collect();
    let mut header = format!(
        "{{'descr': '{word}', 'fortran_order': False, 'shape': ({}), }}",
        shape.join(" ")
    );
    // The data begins at a multiple of 64.
    let filled = (10 + header.len() + 1).next_multiple_of(64);
    header.push_str(&" ".repeat(filled - 10 - header.len() - 1));
    header.push('\n');
    let length = u16::try_from(header.len())
        .map_err(|_| Error::Message("too many dimensions for .npy".into()))?;
    let mut out = b"\x93NUMPY\x01\x00".to_vec();
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(header.as_bytes());
    out.extend(tensor.to_bytes().map_err(Error::new)?);
    Ok(out)
}

/// The data type of numpy's `<f4`, `|b1`, ...
fn dtype_of(text: &str) -> Option<DLDataType> {
    let (kind, bytes) = text
        .trim_start_matches(['<', '>', '|', '='])
        .split_at_checked(1)?;
    let bits = bytes.parse::<u8>().ok()?.checked_mul(8)?;
    let code = match kind {
        "i" => 0,
        "u" => 1,
        "f" => 2,
        "b" => 6,
        _ => return None,
    };
    Some(DLDataType {
        code,
        bits,
        lanes: 1,
    })
}

/// numpy's word for a data type; `None` for types that it does not have.
fn numpy_word(dtype: DLDataType) -> Option<String> {
    let bytes = dtype.bits.div_ceil(8);
    let end = if bytes == 1 { '|' } else { '<' };
    let kind = match (dtype.code, dtype.bits, dtype.lanes) {
        (0, 8 | 16 | 32 | 64, 1) => 'i',
        (1, 1, 1) | (6, 8, 1) => 'b',
        (1, 8 | 16 | 32 | 64, 1) => 'u',
        (2, 16 | 32 | 64, 1) => 'f',
        _ => return None,
    };
    Some(format!("{end}{kind}{bytes}"))
}
