//! A `.tar` as `export_library` writes it: a tar of plain files, under gzip (BLOB-74).
//!
//! | part | bytes |
//! |---|---|
//! | gzip | header of 10, deflate in stored blocks of at most 65,535 bytes, CRC-32, length |
//! | tar | for each file a header of 512 (ustar), its content, zeros up to 512; two blocks of zeros at the end |

use crate::blob::BLOB_74;
use crate::blob::container::tar::{BLOCK, sum_of};
use crate::rule::{Kind, Violation};
use flate2::Crc;
use std::collections::BTreeSet;

/// The archive with `files`, in their order: names without folders, under gzip.
///
/// The same files are the same bytes: times and owners are 0.
///
/// # Errors
///
/// BLOB-74: duplicate for two files of one name, type for a name that is empty, longer than 100 bytes or in a folder.
pub fn tar(files: &[(String, Vec<u8>)]) -> Result<Vec<u8>, Violation> {
    let mut seen = BTreeSet::new();
    let mut all = Vec::new();
    for (name, content) in files {
        BLOB_74.demand(Kind::Duplicate, seen.insert(name), || {
            format!("two files are called `{name}`")
        })?;
        // BLOB-74: `load_module` of releases unpacks it beside itself, and links what is in it by names without folders.
        let plain = !name.is_empty() && name.len() <= 100 && !name.contains(['/', '\0']);
        BLOB_74.demand(Kind::Type, plain, || {
            format!("`{name}` is not a name of a file in an archive")
        })?;
        all.extend_from_slice(&header(name, content.len()));
        all.extend_from_slice(content);
        pad(&mut all);
    }
    all.extend_from_slice(&[0; BLOCK]);
    all.extend_from_slice(&[0; BLOCK]);
    Ok(gzip(&all))
}

/// The header of a plain file, which its owner may read and write.
fn header(name: &str, size: usize) -> [u8; BLOCK] {
    let mut header = [0; BLOCK];
    let mut put = |at: usize, bytes: &[u8]| {
        for (place, byte) in header.iter_mut().skip(at).zip(bytes) {
            *place = *byte;
        }
    };
    put(0, name.as_bytes());
    put(100, b"0000644\0");
    put(108, b"0000000\0");
    put(116, b"0000000\0");
    put(124, format!("{size:011o}\0").as_bytes());
    // BLOB-74: a time of 0, where `tar -czf` writes the present: the same files are the same bytes.
    put(136, b"00000000000\0");
    put(156, b"0");
    put(257, b"ustar\x0000");
    seal(&mut header);
    header
}

/// Writes the sum of a header into it.
pub(super) fn seal(header: &mut [u8; BLOCK]) {
    let sum = format!("{:06o}\0 ", sum_of(header));
    for (place, byte) in header.iter_mut().skip(148).zip(sum.bytes()) {
        *place = byte;
    }
}

/// Zeros up to the next block.
fn pad(all: &mut Vec<u8>) {
    let length = all.len().next_multiple_of(BLOCK);
    all.resize(length, 0);
}

/// `bytes` under gzip, without compression: what is packed is object code, and a reader of the system's tar takes it all the same.
pub(super) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    let chunks = bytes.chunks(usize::from(u16::MAX));
    let last = chunks.len();
    for (index, chunk) in chunks.enumerate() {
        out.push(u8::from(index.saturating_add(1) == last));
        // A chunk is no longer than its length has room for.
        let length = u16::try_from(chunk.len()).unwrap_or(u16::MAX);
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(&(!length).to_le_bytes());
        out.extend_from_slice(chunk);
    }
    let mut check = Crc::new();
    check.update(bytes);
    out.extend_from_slice(&check.sum().to_le_bytes());
    // The length is modulo 2^32, by the format, and so is what was counted.
    out.extend_from_slice(&check.amount().to_le_bytes());
    out
}
