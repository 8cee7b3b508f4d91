//! The bytes of a gzip file (RFC 1952): members one after the other, each a header, a deflate stream, its checksum and length.

use crate::rule::Kind;
use flate2::{Decompress, FlushDecompress, Status};

/// A gzip file on the way.
pub(super) struct Gzip<'a> {
    rest: &'a [u8],
    /// The deflate stream at hand; none between members.
    stream: Option<Decompress>,
    checksum: u32,
    /// Of the member, modulo 2^32.
    length: u32,
}

/// What is wrong with a file: that it ends too early, or what else.
pub(super) type Damage = (Kind, &'static str);

const SHORT: Damage = (Kind::Truncated, "it ends too early");

impl<'a> Gzip<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Gzip<'a> {
        Gzip {
            rest: bytes,
            stream: None,
            checksum: 0,
            length: 0,
        }
    }

    /// Fills the start of `out`, which is not empty, and says how much; 0 at the end.
    pub(super) fn read(&mut self, out: &mut [u8]) -> Result<usize, Damage> {
        loop {
            let Some(stream) = &mut self.stream else {
                if self.rest.is_empty() {
                    return Ok(0);
                }
                self.header()?;
                self.stream = Some(Decompress::new(false));
                (self.checksum, self.length) = (0, 0);
                continue;
            };
            let (taken, given) = (stream.total_in(), stream.total_out());
            let status = stream.decompress(self.rest, out, FlushDecompress::None);
            let status = status.map_err(|_| (Kind::Malformed, "a deflate stream is corrupt"))?;
            let taken = count(taken, stream.total_in());
            let given = count(given, stream.total_out());
            self.take(taken)?;
            let new = out.get(..given).unwrap_or_default();
            self.checksum = crc32(self.checksum, new);
            self.length = self.length.wrapping_add(u32::try_from(given).unwrap_or(0));
            if status == Status::StreamEnd {
                self.stream = None;
                self.trailer()?;
            } else if taken == 0 && given == 0 {
                return Err(SHORT);
            }
            if given > 0 {
                return Ok(given);
            }
        }
    }

    /// Reads the header of a member.
    fn header(&mut self) -> Result<(), Damage> {
        const WRONG: Damage = (Kind::Malformed, "a member has no gzip header");
        const FHCRC: u8 = 2;
        const FEXTRA: u8 = 4;
        const FNAME: u8 = 8;
        const FCOMMENT: u8 = 16;
        let whole = self.rest;
        let header: [u8; 10] = *self.take(10)?.first_chunk().ok_or(SHORT)?;
        let [0x1f, 0x8b, 8, flags @ 0..32, ..] = header else {
            return Err(WRONG);
        };
        if flags & FEXTRA != 0 {
            let length = self.take(2)?.first_chunk().ok_or(SHORT)?;
            self.take(usize::from(u16::from_le_bytes(*length)))?;
        }
        for text in [FNAME, FCOMMENT] {
            if flags & text != 0 {
                let end = self.rest.iter().position(|byte| *byte == 0);
                self.take(end.ok_or(SHORT)?.saturating_add(1))?;
            }
        }
        if flags & FHCRC != 0 {
            let length = whole.len().saturating_sub(self.rest.len());
            let expected = crc32(0, whole.get(..length).unwrap_or_default()).to_le_bytes();
            if !expected.starts_with(self.take(2)?) {
                return Err(WRONG);
            }
        }
        Ok(())
    }

    /// Holds the member to the checksum and the length behind it.
    fn trailer(&mut self) -> Result<(), Damage> {
        let expected = [self.checksum.to_le_bytes(), self.length.to_le_bytes()];
        if self.take(8)? != expected.as_flattened() {
            return Err((Kind::Malformed, "the checksum is that of other bytes"));
        }
        Ok(())
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], Damage> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(SHORT)?;
        self.rest = rest;
        Ok(taken)
    }
}

fn count(before: u64, after: u64) -> usize {
    usize::try_from(after.saturating_sub(before)).unwrap_or(usize::MAX)
}

/// The checksum of what had `checksum`, with `bytes` behind it: four bytes at a time.
fn crc32(checksum: u32, bytes: &[u8]) -> u32 {
    let [last, third, second, first] = &CRC;
    let of = |table: &[u32; 256], byte: u32| {
        let [low, ..] = byte.to_le_bytes();
        table.get(usize::from(low)).copied().unwrap_or(0)
    };
    let (words, rest) = bytes.as_chunks::<4>();
    let wide = words.iter().fold(!checksum, |sum, word| {
        let sum = sum ^ u32::from_le_bytes(*word);
        of(first, sum) ^ of(second, sum >> 8) ^ of(third, sum >> 16) ^ of(last, sum >> 24)
    });
    let step = |sum: u32, byte: &u8| of(last, sum ^ u32::from(*byte)) ^ (sum >> 8);
    !rest.iter().fold(wide, step)
}

/// What a byte adds to the checksum, with no, one, two and three bytes behind it.
static CRC: [[u32; 256]; 4] = tables();

#[allow(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation
)]
const fn tables() -> [[u32; 256]; 4] {
    let mut tables = [[0; 256]; 4];
    let mut at = 0;
    while at < 4 * 256 {
        let (behind, byte) = (at / 256, at % 256);
        let mut sum = match behind {
            0 => byte as u32,
            _ => tables[behind - 1][byte],
        };
        let mut bit = 0;
        while bit < 8 {
            sum = (sum >> 1) ^ if sum & 1 == 1 { 0xedb8_8320 } else { 0 };
            bit += 1;
        }
        tables[behind][byte] = sum;
        at += 1;
    }
    tables
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_checksum_is_that_of_the_standard() {
        assert_eq!(super::crc32(0, b"123456789"), 0xcbf4_3926);
        let halves = super::crc32(super::crc32(0, b"12345"), b"6789");
        assert_eq!(halves, 0xcbf4_3926);
    }
}
