//! What gzip holds, piece by piece.

use super::tar::{BLOCK, is_tar};
use flate2::read::MultiGzDecoder;
use std::io::{self, Read};

/// Whether a gzip file starts with a tar header inside.
pub(super) fn is_gzip_tar(bytes: &[u8]) -> bool {
    let mut block = Vec::new();
    // A file that breaks off behind the first block is still a tar; what was read so far decides.
    let mut head = MultiGzDecoder::new(bytes);
    let _ = inflate(&mut head, &mut [0; BLOCK], BLOCK as u64, Some(&mut block));
    is_tar(&block)
}

/// Inflates the next `size` bytes, by way of `room`, and returns how many there were; they go behind `kept`. Memory grows
/// with what comes, whatever `size` is.
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
