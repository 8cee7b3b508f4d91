//! Output of arrays: as text, as `.npy`, as `.npz`.
//!
//! | element | in a `.npy` file |
//! |---|---|
//! | types of numpy: bool, integers, float16 to float64, complex | numpy's word: `<f4` |
//! | bfloat16, the small floats, integers of 2 and 4 bits | `<V2`, `<V1`: whole bytes for each, as in the package ml_dtypes |
//! | several lanes of one of these | one more axis, for the lanes |
//! | anything else, and packed elements | the bytes of all elements as `|u1`, with a note |

use super::CliError;
use super::array_text::array_text;
use super::npy::{self, NpyHeader, element_of};
use super::output::{self, Content};
use std::fmt::Display;
use std::io::{Cursor, Read, Write as _};
use std::path::Path;
use tvmspec::function::Error;
use tvmspec::object::Tensor;
use tvmspec::tensor::Dtype;
use tvmspec::value::dtype_to_text;

/// The content of a tensor: its elements in row-major order, little-endian.
pub(super) struct HostArray {
    pub(super) dtype: Dtype,
    pub(super) shape: Vec<i64>,
    /// Whole bytes for each element. Fewer if the tensor's memory is not known to have them.
    pub(super) bytes: Vec<u8>,
}

impl HostArray {
    /// Copies a compact tensor on the CPU.
    pub(super) fn from_tensor(tensor: &Tensor) -> Result<HostArray, Error> {
        let bytes = tensor.to_whole_bytes().or_else(|_| tensor.to_bytes())?;
        Ok(HostArray {
            dtype: tensor.dl().dtype,
            shape: tensor.shape().to_vec(),
            bytes,
        })
    }

    /// Formats the elements as text.
    pub(super) fn text(&self) -> String {
        match self.numbers() {
            Some((lane, shape)) => array_text(lane, &shape, &self.bytes),
            None => array_text(self.dtype, &self.shape, &self.bytes),
        }
    }

    /// Returns the bytes of a `.npy` file. `name` is for messages.
    pub(super) fn npy(&self, name: &str) -> Result<Vec<u8>, CliError> {
        let (word, shape) = self.npy_form().unwrap_or_else(|| {
            let dtype = dtype_to_text(self.dtype).unwrap_or_else(|broken| broken.to_string());
            output::note(format_args!(
                "note: {name} is {dtype} {:?}, which numpy does not have: its {} bytes are saved as uint8",
                self.shape,
                self.bytes.len()
            ));
            ("|u1".to_owned(), vec![self.bytes.len() as i64])
        });
        let header = npy::header(&word, &shape);
        let mut out = header.ok_or_else(|| CliError::new("too many dimensions for .npy"))?;
        out.extend(&self.bytes);
        if reads_back(&out, &word, &shape, &self.bytes) {
            return Ok(out);
        }
        let message = format!("{name} is not written: it reads back as another array");
        Err(CliError::Message(message))
    }

    /// Returns word and shape if the elements have a type of numpy.
    fn npy_form(&self) -> Option<(String, Vec<i64>)> {
        let (lane, shape) = self.numbers()?;
        Some((npy::word_of(lane)?, shape))
    }

    /// Returns type and shape of the array with single lanes, each in whole bytes. Returns `None` if elements or lanes share bytes.
    fn numbers(&self) -> Option<(Dtype, Vec<i64>)> {
        let lane = Dtype {
            lanes: 1,
            ..self.dtype
        };
        let mut shape = self.shape.clone();
        if self.dtype.lanes != 1 {
            shape.push(i64::from(self.dtype.lanes));
        }
        let bytes = super::array::nbytes(lane, &shape)?;
        (bytes == self.bytes.len() as u64).then_some((lane, shape))
    }
}

/// Returns whether an encoding decodes to this array again.
fn reads_back(mut encoded: &[u8], word: &str, shape: &[i64], bytes: &[u8]) -> bool {
    let header = NpyHeader::read(&mut encoded);
    header.is_ok_and(|header| {
        header.shape == shape && Some(header.element) == element_of(word) && encoded == bytes
    })
}

/// Formats the elements of a tensor as text, or the reason why its bytes cannot be read (OBJ-11).
pub(super) fn tensor_text(tensor: &Tensor) -> String {
    match HostArray::from_tensor(tensor) {
        Ok(array) => array.text(),
        Err(error) => format!("a tensor of shape {:?}: {error}", tensor.shape()),
    }
}

/// Writes arrays as `.npz`, uncompressed as `numpy.savez` does.
pub(super) fn write_all(arrays: &[(String, Tensor)], path: &Path) -> Result<(), CliError> {
    let wrong = |error: &dyn Display| {
        CliError::Message(format!("cannot write {}: {error}", output::file_name(path)))
    };
    // The archive is built in memory, because the file appears only after it is complete and was read back.
    let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let options =
        zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    let mut encoded = Vec::new();
    for (name, tensor) in arrays {
        let array = HostArray::from_tensor(tensor).map_err(CliError::new)?;
        let bytes = array.npy(name)?;
        archive
            .start_file(format!("{name}.npy"), options)
            .map_err(|error| wrong(&error))?;
        archive.write_all(&bytes)?;
        encoded.push(bytes);
    }
    let bytes = archive
        .finish()
        .map_err(|error| wrong(&error))?
        .into_inner();
    let mut back = zip::ZipArchive::new(Cursor::new(&bytes)).map_err(|error| wrong(&error))?;
    for ((name, _), encoded) in arrays.iter().zip(encoded) {
        let mut member = Vec::new();
        let stored = back.by_name(&format!("{name}.npy"));
        stored
            .map_err(|error| wrong(&error))?
            .read_to_end(&mut member)?;
        if member != encoded {
            let message = format!("{name} is not written: it reads back as another array");
            return Err(CliError::Message(message));
        }
    }
    output::write(path, &bytes, Content::Binary)
}
