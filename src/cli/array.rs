//! Arrays in files: `.npy`, one array, and `.npz`, a zip of them, as numpy reads and writes them.
//!
//! The files come from users and may be hostile: a header or a compressed member of a few bytes can declare an array
//! of any size. Every read therefore has a bound (`Bound`), which is compared before memory is taken. What is written
//! is decoded again and compared with the tensor before the file appears.

use super::npy::{self, NpyHeader};
use super::output::{self, Content};
use super::{CliError, input};
use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufReader, Cursor, Read, Seek as _, SeekFrom, Write};
use std::path::{Path, PathBuf};
use tvmspec::object::Tensor;
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

/// A tensor from an .npy file, in row-major order.
pub(super) fn read(path: &Path, bound: Bound<'_>) -> Result<Tensor, CliError> {
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
    pub(super) fn read(&mut self, name: &str, bound: Bound<'_>) -> Result<Tensor, CliError> {
        let what = format!("{}, {name}", output::file_name(&self.path));
        let file_name = format!("{name}.npy");
        // `names` leaves `.npy` out; numpy always writes it, and other programs need not.
        let stored = match self.zip.index_for_name(&file_name) {
            Some(_) => file_name.as_str(),
            None => name,
        };
        let member = self.zip.by_name(stored);
        let member = member.map_err(|error| cannot_read(&what, &error))?;
        let tensor = decode(member, &what, self.left, bound)?;
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

/// The bytes of one array as `.npy`; `name` is for messages.
pub(super) fn npy(tensor: &Tensor, name: &str) -> Result<Vec<u8>, CliError> {
    let bytes = encode(tensor)?;
    same(tensor, &bytes[..], name)?;
    Ok(bytes)
}

/// Writes arrays as `.npz`, uncompressed as `numpy.savez` does.
pub(super) fn write_all(arrays: &[(String, Tensor)], path: &Path) -> Result<(), CliError> {
    let wrong = |error: &dyn Display| {
        CliError::Message(format!("cannot write {}: {error}", output::file_name(path)))
    };
    // In memory, because the file appears only when it is whole and has been read back.
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
    let mut back = zip::ZipArchive::new(Cursor::new(&bytes)).map_err(|error| wrong(&error))?;
    for (name, tensor) in arrays {
        let member = back.by_name(&format!("{name}.npy"));
        same(tensor, member.map_err(|error| wrong(&error))?, name)?;
    }
    output::write(path, &bytes, Content::Binary)
}

/// Rejects an encoding that does not decode to the tensor again: shape, numpy's word for the data type, and bytes.
fn same(tensor: &Tensor, encoded: impl Read, what: &str) -> Result<(), CliError> {
    let back = decode(encoded, what, tensor.nbytes() as u64, Bound::File)?;
    // TEN-04: numpy has one word for both booleans, (1, 1, 1) and (6, 8, 1), so data types are compared by their
    // words.
    let words = [tensor, &back].map(|tensor| npy::word_of(tensor.dl().dtype));
    let bytes = [tensor, &back].map(|tensor| tensor.to_bytes().ok());
    if tensor.shape() == back.shape() && words[0] == words[1] && bytes[0] == bytes[1] {
        return Ok(());
    }
    Err(CliError::Message(format!(
        "{what} is not written: it reads back as another array"
    )))
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
) -> Result<Tensor, CliError> {
    let wrong = |error: &dyn Display| cannot_read(&what, error);
    let NpyHeader {
        shape,
        dtype,
        is_big_endian,
    } = NpyHeader::read(&mut from).map_err(|error| wrong(&error))?;
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
        data.chunks_exact_mut(usize::from(dtype.bits) / 8)
            .for_each(<[u8]>::reverse);
    }
    let tensor = Tensor::empty(&shape, dtype).map_err(CliError::new)?;
    tensor.fill(&data).map_err(CliError::new)?;
    Ok(tensor)
}

/// The name of a data type for a message, or why it has none.
fn type_name(dtype: DLDataType) -> String {
    dtype_to_text(dtype).unwrap_or_else(|broken| broken.to_string())
}

/// How many bytes the elements take, each rounded up to whole bytes as in an `.npy` file; `None` for a negative extent
/// or a product beyond 64 bits.
fn nbytes(dtype: DLDataType, shape: &[i64]) -> Option<u64> {
    let elements = shape.iter().try_fold(1u64, |product, extent| {
        product.checked_mul(u64::try_from(*extent).ok()?)
    })?;
    let bits = u64::from(dtype.bits).checked_mul(dtype.lanes.into())?;
    elements.checked_mul(bits.div_ceil(8))
}

/// The array as the bytes of an `.npy` file.
fn encode(tensor: &Tensor) -> Result<Vec<u8>, CliError> {
    let dtype = tensor.dl().dtype;
    let word = npy::word_of(dtype)
        .ok_or_else(|| CliError::Message(format!("numpy has no type `{}`", type_name(dtype))))?;
    let mut out = npy::header(&word, tensor.shape())
        .ok_or_else(|| CliError::Message("too many dimensions for .npy".into()))?;
    out.extend(tensor.to_bytes().map_err(CliError::new)?);
    Ok(out)
}
