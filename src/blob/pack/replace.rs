//! Another library binary in a file that has one, with everything else as it is (BLOB-75).
//!
//! | file | where the new bytes go |
//! |---|---|
//! | any, of the same length | in the place of the old ones |
//! | a library binary of its own | they are the file |
//! | C text | in the place of the old numbers, as numbers of the same look; the length in the brackets is theirs |
//! | ELF object, 64 bits, little endian, a section of its own | behind the file; the header of the section points to them |
//! | ELF library, 64 bits, little endian | behind all other data, in a section of their own, to which the symbol points |
//!
//! The old bytes stay in an ELF file: code and data keep their places.

use super::c_text::in_text;
use super::elf::{Elf, in_library, in_object};
use super::members::in_members;
use crate::blob::BLOB_75;
use crate::blob::container::{self, FileForm};
use crate::rule::{Kind, Violation};

/// `file` with `blob` (header included) in the place of its library binary number `index`, in the order of
/// [`container::File::blobs`].
///
/// # Errors
///
/// What [`container::open`] rejects; BLOB-75: missing where there is no such library binary, unsupported for a container in which a
/// longer or shorter one has no place: link it anew, with the objects of its host code.
pub fn replace(file: &[u8], index: usize, blob: &[u8]) -> Result<Vec<u8>, Violation> {
    let read = container::open(file)?;
    let Some((part, old)) = read.blobs().nth(index) else {
        let count = read.blobs().count();
        let message = format!("there is no library binary {index}, of {count}");
        return Err(BLOB_75.rejected(Kind::Missing, message));
    };
    let made = match (old.offset, part.form) {
        _ if *old.bytes == *blob => Some(file.to_vec()),
        (_, FileForm::RawBlob) if part.member.is_empty() => Some(blob.to_vec()),
        (Some(offset), _) if old.bytes.len() == blob.len() => {
            let mut made = Elf(file.to_vec());
            made.put(offset, blob).map(|()| made.0)
        }
        (_, FileForm::ElfShared) if part.member.is_empty() => in_library(file, &old.symbol, blob),
        (_, FileForm::CText) if part.member.is_empty() => in_text(file, index, blob),
        (_, FileForm::ElfObject) if part.member.is_empty() => in_object(file, &old.symbol, blob),
        // Of a member another length moves what is behind it, in each archive around it.
        _ if !part.member.is_empty() => in_members(file, read.form, index, blob, replace),
        _ => None,
    };
    let made = made.ok_or_else(|| unsupported(part.form))?;
    // The file is read as a loader reads it, so that no edit makes one in which another library binary is found.
    let again = container::open(&made)?;
    let found = again.blobs().nth(index);
    if found.is_none_or(|(_, found)| found.bytes != blob || found.symbol != old.symbol) {
        return Err(unsupported(part.form));
    }
    Ok(made)
}

fn unsupported(form: FileForm) -> Violation {
    let message = format!(
        "in this {} a library binary of another length has no place; link it anew with the objects of its host code",
        form.title()
    );
    BLOB_75.rejected(Kind::Unsupported, message)
}
