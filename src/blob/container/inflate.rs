//! Decompression of gzip in small pieces.

use super::tar::{BLOCK, is_tar};
use flate2::read::MultiGzDecoder;
use std::io::{self, Read};

/// Returns whether a gzip file contains a tar file.
pub(super) fn is_gzip_tar(bytes: &[u8]) -> bool {
    let mut block = Vec::new();
    // A truncated file is still a tar if its first block is complete, so an error after that block does not matter.
    let mut head = MultiGzDecoder::new(bytes);
    let _ = inflate(&mut head, &mut [0; BLOCK], BLOCK as u64, Some(&mut block));
    is_tar(&block)
}

/// Inflates up to `size` bytes through the buffer `room`, appends them to `kept`, and returns their number. Memory grows only with the
/// bytes that arrive, not with `size`.
pub(super) fn inflate(
    decoder: &mut MultiGzDecoder<&[u8]>,
    room: &mut [u8],
    size: u64,
    mut kept: Option<&mut Vec<u8>>,
) -> io::Result<u64> {
    let mut came = 0u64;
    while came < size {
        let wanted = usize::try_from(size.saturating_sub(came)).unwrap_or(usize::MAX);
        let wanted = wanted.min(room.len());
        let count = decoder.read(room.get_mut(..wanted).unwrap_or_default())?;
        if count == 0 {
            break;
        }
        if let Some(kept) = &mut kept {
            kept.extend_from_slice(room.get(..count).unwrap_or_default());
        }
        came = came.saturating_add(count as u64);
    }
    Ok(came)
}
