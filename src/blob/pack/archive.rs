//! A `.tar` as `export_library` writes it: a tar of plain files, inside gzip (BLOB-74).
//!
//! | part | bytes |
//! |---|---|
//! | gzip | header of 10, deflate in stored blocks of at most 65,535 bytes, CRC-32, length |
//! | tar | a header of 512 bytes (ustar) for each file, its content, zeros up to 512; two blocks of zeros at the end |

use crate::blob::BLOB_74;
use crate::blob::container::tar::{BLOCK, sum_of};
use crate::rule::{Kind, Violation};
use flate2::Crc;
use std::collections::BTreeSet;

/// Returns a gzipped tar that contains `files` in their order. Names have no folders.
///
/// Equal files give equal bytes, because all times and owners are 0.
///
/// # Errors
///
/// Returns BLOB-74: kind duplicate for two files with one name; kind type for a name that is empty, longer than 100 bytes or in a
/// folder.
pub fn tar(files: &[(String, Vec<u8>)]) -> Result<Vec<u8>, Violation> {
    let mut seen = BTreeSet::new();
    let mut all = Vec::new();
    for (name, content) in files {
        BLOB_74.demand(Kind::Duplicate, seen.insert(name), || {
            format!("two files are called `{name}`")
        })?;
        // BLOB-74: `load_module` of the releases unpacks the archive next to it, and links its members by names without folders.
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

/// Returns the header of a plain file that its owner may read and write.
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
    // BLOB-74: the time is 0, so that equal files give equal bytes. `tar -czf` would write the current time.
    put(136, b"00000000000\0");
    put(156, b"0");
    put(257, b"ustar\x0000");
    seal(&mut header);
    header
}

/// Writes the checksum of a header into it.
pub(super) fn seal(header: &mut [u8; BLOCK]) {
    let sum = format!("{:06o}\0 ", sum_of(header));
    for (place, byte) in header.iter_mut().skip(148).zip(sum.bytes()) {
        *place = byte;
    }
}

/// Adds zeros up to the next block.
fn pad(all: &mut Vec<u8>) {
    let length = all.len().next_multiple_of(BLOCK);
    all.resize(length, 0);
}

/// Wraps `bytes` in gzip without compression. The content is object code, and any tar reads an uncompressed stream.
pub(super) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    let chunks = bytes.chunks(usize::from(u16::MAX));
    let last = chunks.len();
    for (index, chunk) in chunks.enumerate() {
        out.push(u8::from(index.saturating_add(1) == last));
        // A chunk is never longer than `u16::MAX`.
        let length = u16::try_from(chunk.len()).unwrap_or(u16::MAX);
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(&(!length).to_le_bytes());
        out.extend_from_slice(chunk);
    }
    let mut check = Crc::new();
    check.update(bytes);
    out.extend_from_slice(&check.sum().to_le_bytes());
    // The format stores the length modulo 2^32, and `Crc` counts modulo 2^32 too.
    out.extend_from_slice(&check.amount().to_le_bytes());
    out
}
