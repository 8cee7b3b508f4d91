//! Arrays of files: `.npy`, one array, and `.npz`, a zip of them, as numpy writes them.
//!
//! The files come from users and may be hostile: a header or a compressed member of a few bytes can declare an array
//! of any size. Every read therefore has a bound (`Bound`), which is compared before memory is taken.

use super::npy::{self, NpyElement, NpyHeader};
use super::output;
use super::{CliError, input};
use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use tvmspec::object::Tensor;
use tvmspec::tensor::Dtype;
use tvmspec::value::{DLDataType, dtype_to_text};

/// How many bytes an array may have.
#[derive(Clone, Copy)]
pub(super) enum Bound<'t> {
    /// As many as the file justifies: as it has, or, of a compressed member, [`MAX_INFLATION`] for each of its own.
    File,
    /// As many as this tensor of the model, which is what input `name` goes to.
    // GRF-33: only the size is compared here. The executor compares data type and shape when it sets the input.
    Like(&'t str, DLDataType, &'t [i64]),
}

/// What members of an archive may inflate to together, for each byte of the file, where the size that a model takes is
/// not known.
// Deflate shrinks zeros a thousandfold, so that the size of an archive alone bounds nothing.
const MAX_INFLATION: u64 = 16;

/// The bytes that members of an archive may inflate to in any case: a small archive of zeros shrinks further than
/// sixteenfold, and 16 MiB cost little.
const FREE: u64 = 16 << 20;

/// What the elements of an array are.
#[derive(Clone, Copy)]
pub(super) enum Elements<'t> {
    /// What the file says.
    Stored,
    /// Bits of this type, as the user wrote behind the file.
    Stated(DLDataType),
    /// For parameter `.0` of this type: raw bytes are bits of it, and so are integers where numpy does not have the type.
    For(&'t str, DLDataType),
}

impl Elements<'_> {
    /// The type of elements that are stored as `stored`.
    fn resolve(self, stored: NpyElement) -> Result<DLDataType, String> {
        let size = |dtype: DLDataType| u64::from(dtype.bits).div_ceil(8) * u64::from(dtype.lanes);
        let bytes = match stored {
            NpyElement::Typed(dtype) => size(dtype),
            NpyElement::Raw(bytes) => u64::from(bytes),
        };
        // Bytes without a meaning, or whole numbers that may be bits of something else.
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
            // Both bools have one word (TEN-04).
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
                "its elements are {bytes} raw bytes, as numpy writes the types of ml_dtypes: write the type behind an .npy file, \
                 as in `x.npy:bfloat16`"
            )),
        }
    }
}

/// A tensor from an .npy file, in row-major order.
pub(super) fn read(
    path: &Path,
    bound: Bound<'_>,
    elements: Elements<'_>,
) -> Result<Tensor, CliError> {
    let (file, length) = input::regular(path)?;
    let most = match bound {
        Bound::File => length,
        // `decode` compares with the tensor of the model, which is the closer bound.
        Bound::Like(..) => u64::MAX,
    };
    // No further than the length of before: a file that grows while it is read would have no end.
    decode(
        file.take(length),
        &output::file_name(path).to_string(),
        most,
        bound,
        elements,
    )
}

/// An .npz file: arrays by name.
pub(super) struct Archive {
    /// For messages.
    path: PathBuf,
    /// The members; opened, and read one by one.
    zip: zip::ZipArchive<BufReader<File>>,
    /// How many bytes of data may still be read of it by [`Bound::File`].
    left: u64,
}

impl Archive {
    /// Reads the list of members.
    pub(super) fn open(path: &Path) -> Result<Archive, CliError> {
        let (file, length) = input::regular(path)?;
        let zip = zip::ZipArchive::new(BufReader::new(file));
        let zip = zip.map_err(|error| cannot_read(&output::file_name(path), &error))?;
        let (listed, start) = (zip.len(), zip.central_directory_start());
        // The file is opened again, because the archive owns the first handle and its position.
        // Of two members of one name the reader shows one.
        let (mut file, _) = input::regular(path)?;
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

    /// The names of the arrays. A member whose name cannot be decoded is left out with a warning: no argument can name it, and the
    /// others are none the worse.
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
        // `names` leaves `.npy` out; numpy always writes it, and other programs need not.
        let stored = match self.zip.index_for_name(&file_name) {
            Some(_) => file_name.as_str(),
            None => name,
        };
        let member = self.zip.by_name(stored);
        let member = member.map_err(|error| cannot_read(&what, &error))?;
        let tensor = decode(member, &what, self.left, bound, elements)?;
        // An array that is bound by a tensor of the model takes no more memory than the model does, and is not
        // counted.
        if let Bound::File = bound {
            self.left = self.left.saturating_sub(tensor.nbytes() as u64);
        }
        Ok(tensor)
    }
}

/// Counts the members in the central directory of a zip, at whose start `directory` is.
///
/// Reads no more of an entry than the lengths of what follows it: all integers of a zip are little endian, and an
/// entry has 46 bytes.
fn members(directory: &mut impl Read) -> io::Result<usize> {
    // The signature of an entry, 0x02014b50.
    const MEMBER: [u8; 4] = *b"PK\x01\x02";
    let mut count = 0;
    loop {
        let mut entry = [0; 46];
        match directory.read_exact(&mut entry[..4]) {
            Ok(()) if entry.starts_with(&MEMBER) => {}
            // What follows the members is of another kind.
            Ok(()) => return Ok(count),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(count),
            Err(error) => return Err(error),
        }
        directory.read_exact(&mut entry[4..])?;
        // Behind it lie its name, its extra fields and its comment.
        let lengths = [28, 30, 32].map(|at| u16::from_le_bytes([entry[at], entry[at + 1]]));
        let length = lengths.into_iter().map(u64::from).sum();
        io::copy(&mut directory.by_ref().take(length), &mut io::sink())?;
        count += 1;
    }
}

/// The error for a file or a member that is not a readable array.
fn cannot_read(what: &dyn Display, error: &dyn Display) -> CliError {
    CliError::Message(format!("cannot read {what}: {error}"))
}

/// Decodes the array that `from` starts with: at most `most` bytes of data where `bound` is [`Bound::File`], else as
/// many as the tensor of the model takes. `what` names file and member in messages.
///
/// Memory grows with the bytes that really come, whatever the header declares; the tensor is allocated only when all
/// of them are there.
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
    // Turned into little endian, which `fill` copies as it is. An element of one byte has no order.
    if is_big_endian && dtype.bits > 8 {
        // A complex number is two of half its size.
        let parts = if dtype.code == Dtype::COMPLEX { 2 } else { 1 };
        data.chunks_exact_mut(usize::from(dtype.bits) / 8 / parts)
            .for_each(<[u8]>::reverse);
    }
    let tensor = Tensor::empty(&shape, dtype).map_err(CliError::new)?;
    tensor.fill_whole_bytes(&data).map_err(CliError::new)?;
    Ok(tensor)
}

/// The name of a data type for a message, or why it has none.
fn type_name(dtype: DLDataType) -> String {
    dtype_to_text(dtype).unwrap_or_else(|broken| broken.to_string())
}

/// How many bytes the elements take, each rounded up to whole bytes as in an `.npy` file; `None` for a negative extent
/// or a product beyond 64 bits.
pub(super) fn nbytes(dtype: DLDataType, shape: &[i64]) -> Option<u64> {
    let elements = shape.iter().try_fold(1u64, |product, extent| {
        product.checked_mul(u64::try_from(*extent).ok()?)
    })?;
    let bits = u64::from(dtype.bits).checked_mul(dtype.lanes.into())?;
    elements.checked_mul(bits.div_ceil(8))
}
