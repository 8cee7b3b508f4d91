//! Replacement of the library binary of a file, with everything else unchanged (BLOB-75).
//!
//! | file | place of the new bytes |
//! |---|---|
//! | any, if the length is equal | over the old bytes |
//! | raw blob | the whole file |
//! | C text | over the old numbers, in the same style; the length in the brackets is updated |
//! | ELF object, 64 bits, little endian, with a separate section for the blob | at the end of the file; the section header points to them |
//! | ELF library, 64 bits, little endian | after all other data, in a separate section, to which the symbol points |
//!
//! The old bytes stay in an ELF file, so that code and data keep their places.

use super::c_text::replace_in_text;
use super::elf::{Elf, replace_in_library, replace_in_object};
use super::members::replace_in_members;
use crate::blob::BLOB_75;
use crate::blob::container::{self, FileForm};
use crate::rule::{Kind, Violation};

/// Returns `file` with its library binary number `index` replaced by `blob` (header included). The order is that of
/// [`container::ContainerFile::blobs`].
///
/// # Errors
///
/// Fails like [`container::open`]. Returns BLOB-75, kind missing, if there is no such library binary. Returns BLOB-75, kind
/// unsupported, if the container has no room for a longer or shorter one. In that case, link the library again from the objects of its
/// host code.
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
        (_, FileForm::ElfShared) if part.member.is_empty() => {
            replace_in_library(file, &old.symbol, blob)
        }
        (_, FileForm::CText) if part.member.is_empty() => replace_in_text(file, index, blob),
        (_, FileForm::ElfObject) if part.member.is_empty() => {
            replace_in_object(file, &old.symbol, blob)
        }
        // A member of another length moves the bytes after it, in each archive around it.
        _ if !part.member.is_empty() => replace_in_members(file, read.form, index, blob, replace),
        _ => None,
    };
    let made = made.ok_or_else(|| unsupported(part.form))?;
    // The result is read as a loader reads it, to check that the edit did not make it find another library binary.
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
