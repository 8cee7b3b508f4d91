//! Array files as numpy writes them: `.npy`, one array, and `.npz`, a zip archive of arrays.
//!
//! The files come from users and may be hostile: a header or a compressed member of a few bytes can declare an array of any size. Every
//! read therefore has a limit (`Bound`), which is checked before memory is allocated.

use super::npy::{self, NpyElement, NpyHeader};
use super::output;
use super::{CliError, input};
use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use tvmspec::object::Tensor;
use tvmspec::tensor::Dtype;
use tvmspec::value::dtype_to_text;

/// The limit for the bytes of an array.
#[derive(Clone, Copy)]
pub(super) enum Bound<'t> {
    /// The limit that the size of the file justifies: the size itself or, for a compressed member, [`MAX_INFLATION`] times the size.
    File,
    /// The size of this tensor of the model, which receives input `name`.
    // GRF-33: only the size is compared here. The executor compares data type and shape when it sets the input.
    Like(&'t str, Dtype, &'t [i64]),
}

/// The total size of inflated members per byte of the file, if the size that a model takes is not known.
// Deflate can shrink zeros a thousandfold, so that the size of an archive alone is no limit.
const MAX_INFLATION: u64 = 16;

/// The size up to which members may inflate in any case. A small archive of zeros shrinks more than sixteenfold, and 16 MiB cost
/// little.
const FREE: u64 = 16 << 20;

/// The interpretation of the elements of an array.
#[derive(Clone, Copy)]
pub(super) enum Elements<'t> {
    /// As the file states.
    Stored,
    /// As bits of this type, which the user wrote after the file name.
    Stated(Dtype),
    /// For parameter `.0` of this type: raw bytes are bits of it, and so are integers if numpy lacks the type.
    For(&'t str, Dtype),
}

impl Elements<'_> {
    /// Returns the type of elements that are stored as `stored`.
    fn resolve(self, stored: NpyElement) -> Result<Dtype, String> {
        let size = |dtype: Dtype| u64::from(dtype.bits).div_ceil(8) * u64::from(dtype.lanes);
        let bytes = match stored {
            NpyElement::Typed(dtype) => size(dtype),
            NpyElement::Raw(bytes) => u64::from(bytes),
        };
        // Bytes without a type, or integers that may be bits of another type.
        let are_bits = match stored {
            NpyElement::Raw(_) => true,
            NpyElement::Typed(dtype) => matches!(dtype.code, 0 | 1),
        };
        let is_of_numpy = |dtype| npy::word_of(dtype).is_some_and(|word| !word.contains('V'));
        match (stored, self) {
            (_, Elements::Stated(dtype)) if size(dtype) != bytes => Err(format!(
                "its elements take {bytes} bytes, those of {} take {}",
                type_name(dtype),
                size(dtype)
            )),
            // TEN-04: both bool types have the same word in numpy.
            (NpyElement::Typed(own), Elements::Stated(dtype))
                if !are_bits && npy::word_of(own) != npy::word_of(dtype) =>
            {
                Err(format!(
                    "its elements are {}, not {}",
                    type_name(own),
                    type_name(dtype)
                ))
            }
            (_, Elements::Stated(dtype)) => Ok(dtype),
            (NpyElement::Typed(own), Elements::For(_, dtype)) => {
                let is_meant = are_bits && size(dtype) == bytes && !is_of_numpy(dtype);
                Ok(if is_meant { dtype } else { own })
            }
            (NpyElement::Raw(_), Elements::For(_, dtype)) if size(dtype) == bytes => Ok(dtype),
            (NpyElement::Raw(_), Elements::For(name, dtype)) => Err(format!(
                "its elements are {bytes} raw bytes, those of `{name}` are {}",
                type_name(dtype)
            )),
            (NpyElement::Typed(own), Elements::Stored) => Ok(own),
            (NpyElement::Raw(_), Elements::Stored) => Err(format!(
                "its elements are {bytes} raw bytes, as numpy writes the types of ml_dtypes: write the type after the .npy file, \
                 as in `x.npy:bfloat16`"
            )),
        }
    }
}

/// Reads a tensor from an .npy file, in row-major order.
pub(super) fn read(
    path: &Path,
    bound: Bound<'_>,
    elements: Elements<'_>,
) -> Result<Tensor, CliError> {
    let (file, length) = input::open_regular_file(path)?;
    let most = match bound {
        Bound::File => length,
        // `decode` compares the size with the tensor of the model, which is a tighter limit.
        Bound::Like(..) => u64::MAX,
    };
    // At most the length that was read above: a file that grows during reading might never end.
    decode(
        file.take(length),
        &output::file_name(path).to_string(),
        most,
        bound,
        elements,
    )
}

/// An open .npz file, with arrays by name.
pub(super) struct Archive {
    /// The path, for messages.
    path: PathBuf,
    /// The archive; its members are read one by one.
    zip: zip::ZipArchive<BufReader<File>>,
    /// The bytes of data that may still be read under [`Bound::File`].
    left: u64,
}

impl Archive {
    /// Opens the file and reads the list of members.
    pub(super) fn open(path: &Path) -> Result<Archive, CliError> {
        let (file, length) = input::open_regular_file(path)?;
        let zip = zip::ZipArchive::new(BufReader::new(file));
        let zip = zip.map_err(|error| cannot_read(&output::file_name(path), &error))?;
        let (listed, start) = (zip.len(), zip.central_directory_start());
        // The archive owns the first handle and its position, so that the file is opened again. The count is needed because the zip
        // reader lists one of two members with the same name.
        let (mut file, _) = input::open_regular_file(path)?;
        let counted = file
            .seek(SeekFrom::Start(start))
            .and_then(|_| members(&mut BufReader::new(file)))
            .map_err(|error| cannot_read(&output::file_name(path), &error))?;
        if counted != listed {
            let message = format!("{counted} members have {listed} names");
            return Err(cannot_read(&output::file_name(path), &message));
        }
        Ok(Archive {
            zip,
            path: path.to_owned(),
            left: length.saturating_mul(MAX_INFLATION).saturating_add(FREE),
        })
    }

    /// Returns the names of the arrays. A member whose name cannot be decoded is left out with a warning, because no argument can name
    /// it. The others remain usable.
    pub(super) fn names(&self) -> Vec<String> {
        let members = self.zip.file_names().zip(self.zip.file_names_raw());
        let names = members.filter_map(|(name, raw)| match name {
            Ok(name) => Some(name.strip_suffix(".npy").unwrap_or(&name).to_owned()),
            Err(error) => {
                let (archive, member) = (output::file_name(&self.path), raw.escape_ascii());
                output::warning(format_args!(
                    "{archive}: member `{member}` is left out, its name cannot be decoded: {error}"
                ));
                None
            }
        });
        names.collect()
    }

    /// Reads the array `name`, which is stored as `name.npy` or, by writers other than numpy, as `name`.
    pub(super) fn read(
        &mut self,
        name: &str,
        bound: Bound<'_>,
        elements: Elements<'_>,
    ) -> Result<Tensor, CliError> {
        let what = format!("{}, {name}", output::file_name(&self.path));
        let file_name = format!("{name}.npy");
        // `names` removes `.npy`. numpy always writes it, other programs may not.
        let stored = match self.zip.index_for_name(&file_name) {
            Some(_) => file_name.as_str(),
            None => name,
        };
        let member = self.zip.by_name(stored);
        let member = member.map_err(|error| cannot_read(&what, &error))?;
        let tensor = decode(member, &what, self.left, bound, elements)?;
        // An array with the limit of a model's tensor needs no more memory than the model itself, and is not counted.
        if let Bound::File = bound {
            self.left = self.left.saturating_sub(tensor.nbytes() as u64);
        }
        Ok(tensor)
    }
}

/// Counts the members of a zip archive. `directory` is at the start of the central directory.
///
/// Reads only the fixed part of each entry, which has 46 bytes with little-endian integers, and skips the rest by its lengths.
fn members(directory: &mut impl Read) -> io::Result<usize> {
    // The signature of an entry, 0x02014b50.
    const MEMBER: [u8; 4] = *b"PK\x01\x02";
    let mut count = 0;
    loop {
        let mut entry = [0; 46];
        match directory.read_exact(&mut entry[..4]) {
            Ok(()) if entry.starts_with(&MEMBER) => {}
            // The records after the members are of another kind.
            Ok(()) => return Ok(count),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(count),
            Err(error) => return Err(error),
        }
        directory.read_exact(&mut entry[4..])?;
        // Name, extra fields and comment follow.
        let lengths = [28, 30, 32].map(|at| u16::from_le_bytes([entry[at], entry[at + 1]]));
        let length = lengths.into_iter().map(u64::from).sum();
        io::copy(&mut directory.by_ref().take(length), &mut io::sink())?;
        count += 1;
    }
}

/// Creates the error for a file or a member that is not a readable array.
fn cannot_read(what: &dyn Display, error: &dyn Display) -> CliError {
    CliError::Message(format!("cannot read {what}: {error}"))
}

/// Decodes the array at the start of `from`. The limit is `most` bytes of data for [`Bound::File`], otherwise the size of the model's
/// tensor. `what` names the file and the member in messages.
///
/// Memory grows with the bytes that are actually read, independent of the header. The tensor is allocated after all of them are read.
fn decode(
    mut from: impl Read,
    what: &str,
    most: u64,
    bound: Bound<'_>,
    elements: Elements<'_>,
) -> Result<Tensor, CliError> {
    let wrong = |error: &dyn Display| cannot_read(&what, error);
    let NpyHeader {
        shape,
        element,
        is_big_endian,
    } = NpyHeader::read(&mut from).map_err(|error| wrong(&error))?;
    let dtype = elements.resolve(element).map_err(|error| wrong(&error))?;
    let length = nbytes(dtype, &shape)
        .ok_or_else(|| wrong(&format!("no memory holds its shape {shape:?}")))?;
    match bound {
        Bound::File if length > most => {
            return Err(wrong(&format!(
                "its data takes {length} bytes, more than the file justifies"
            )));
        }
        Bound::Like(name, wanted, extents)
            if length > nbytes(wanted, extents).unwrap_or(u64::MAX) =>
        {
            let (found, wanted) = (type_name(dtype), type_name(wanted));
            return Err(wrong(&format!(
                "input `{name}` is {wanted} {extents:?}, not {found} {shape:?}"
            )));
        }
        _ => {}
    }
    let mut data = Vec::new();
    from.take(length)
        .read_to_end(&mut data)
        .map_err(|error| wrong(&error))?;
    if (data.len() as u64) < length {
        return Err(wrong(&"it ends before its data does"));
    }
    // Converts to little-endian, because `fill_whole_bytes` copies the bytes unchanged. An element of one byte has no byte order.
    if is_big_endian && dtype.bits > 8 {
        // A complex number consists of two numbers of half its size.
        let parts = if dtype.code == Dtype::COMPLEX { 2 } else { 1 };
        data.chunks_exact_mut(usize::from(dtype.bits) / 8 / parts)
            .for_each(<[u8]>::reverse);
    }
    let tensor = Tensor::empty(&shape, dtype).map_err(CliError::new)?;
    tensor.fill_whole_bytes(&data).map_err(CliError::new)?;
    Ok(tensor)
}

/// Returns the name of a data type for a message, or the reason why it has none.
fn type_name(dtype: Dtype) -> String {
    dtype_to_text(dtype).unwrap_or_else(|broken| broken.to_string())
}

/// Returns the number of bytes of the elements, each rounded up to whole bytes as in an `.npy` file. Returns `None` for a negative
/// extent or if the product exceeds 64 bits.
pub(super) fn nbytes(dtype: Dtype, shape: &[i64]) -> Option<u64> {
    let elements = shape.iter().try_fold(1u64, |product, extent| {
        product.checked_mul(u64::try_from(*extent).ok()?)
    })?;
    let bits = u64::from(dtype.bits).checked_mul(dtype.lanes.into())?;
    elements.checked_mul(bits.div_ceil(8))
}
