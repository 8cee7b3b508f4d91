//! Tar: the headers, and the members of an uncompressed tar, which are borrowed.
//!
//! | field of a header | bytes | |
//! |---|---|---|
//! | name | 0 to 100 | ended by NUL, or full |
//! | size | 124 to 136 | octal digits; binary from 8 GiB on |
//! | checksum | 148 to 156 | octal: the sum of all bytes, with this field counted as blanks |
//! | kind | 156 | `0`, NUL and `7`: a file; `L`: the long name of the next member; others are ignored |
//! | magic | 257 to 263 | `ustar` |
//! | prefix | 345 to 500 | POSIX only: comes before the name, with `/` between |
//!
//! Header and content fill blocks of 512 bytes each; a block of zeros ends the archive. Content outside the file breaks BLOB-56.

use super::{FileWalk, MemberPlace};
use crate::blob::BLOB_56;
use crate::rule::{Kind, Violation};
use std::ops::Range;

/// Size of a block in bytes. A header takes one block, and content is padded to whole blocks.
pub(crate) const BLOCK: usize = 512;

/// Returns whether the file starts with a tar header.
pub(super) fn is_tar(bytes: &[u8]) -> bool {
    bytes.get(257..262) == Some(b"ustar")
}

impl<'a> FileWalk<'a> {
    /// Visits every regular file of an uncompressed tar.
    pub(super) fn tar(&mut self, bytes: &'a [u8], place: &MemberPlace) -> Result<(), Violation> {
        let mut names = LongNames::default();
        for entry in TarHeaders::of(bytes) {
            let (room, header) = entry.map_err(|broken| place.locate_violation(broken))?;
            let start = room.start;
            let content = (start as u64, header.size);
            match header.kind {
                TarEntry::File => self.member(bytes, &names.name(&header), content, place)?,
                TarEntry::LongName => {
                    let end =
                        start.saturating_add(usize::try_from(header.size).unwrap_or(usize::MAX));
                    // A truncated long name is dropped: the member after it is truncated too, and BLOB-56 rejects it.
                    names.next = bytes.get(start..end).map(text_of);
                }
                TarEntry::Other => {}
            }
        }
        Ok(())
    }
}

/// Returns the path and the content of each regular file in an uncompressed tar, in order.
#[cfg(all(feature = "rpc", feature = "runtime"))]
pub(crate) fn tar_files(bytes: &[u8]) -> Result<Vec<(String, &[u8])>, Violation> {
    let (mut files, mut names) = (Vec::new(), LongNames::default());
    for entry in TarHeaders::of(bytes) {
        let (room, header) = entry?;
        let start = room.start;
        let size = usize::try_from(header.size).unwrap_or(usize::MAX);
        let content = bytes.get(start..start.saturating_add(size));
        // BLOB-56: a member ends inside the archive.
        let content = content.ok_or_else(|| {
            let message = format!(
                "member `{}`: its header states {size} bytes, but fewer follow",
                header.name
            );
            BLOB_56.broken(Kind::Truncated, start as u64, message)
        })?;
        match header.kind {
            TarEntry::File => files.push((names.name(&header), content)),
            TarEntry::LongName => names.next = Some(text_of(content)),
            TarEntry::Other => {}
        }
    }
    Ok(files)
}

/// Iterator over the headers of an uncompressed tar, each with the range of its content and padding. It ends at the end-of-archive mark, or
/// after the first header that breaks BLOB-56.
pub(crate) struct TarHeaders<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> TarHeaders<'a> {
    pub(crate) fn of(bytes: &'a [u8]) -> TarHeaders<'a> {
        TarHeaders { bytes, at: 0 }
    }
}

impl Iterator for TarHeaders<'_> {
    type Item = Result<(Range<usize>, TarHeader), Violation>;

    fn next(&mut self) -> Option<Self::Item> {
        let block = self.bytes.get(self.at..).filter(|rest| !rest.is_empty())?;
        let header = TarHeader::read(block, self.at as u64).transpose();
        let start = self.at.saturating_add(BLOCK);
        // After the end, or after a header that cannot be read, no header can be found.
        self.at = match &header {
            Some(Ok(header)) => {
                start.saturating_add(usize::try_from(header.padded()).unwrap_or(usize::MAX))
            }
            _ => usize::MAX,
        };
        header.map(|header| Ok((start..self.at, header?)))
    }
}

/// Returns the checksum of a header, in which its own eight bytes count as blanks.
pub(crate) fn sum_of(header: &[u8; BLOCK]) -> u64 {
    let own = 148..156;
    let bytes = header.iter().enumerate().map(|(at, byte)| {
        if own.contains(&at) {
            u64::from(b' ')
        } else {
            u64::from(*byte)
        }
    });
    bytes.fold(0, u64::saturating_add)
}

/// The name from a GNU long-name member, which comes before the member that it names.
#[derive(Default)]
pub(super) struct LongNames {
    pub(super) next: Option<String>,
}

impl LongNames {
    /// Returns the name of a member: the long name before it if there was one, otherwise the name in `header`.
    pub(super) fn name(&mut self, header: &TarHeader) -> String {
        self.next.take().unwrap_or_else(|| header.name.clone())
    }
}

/// The fields of a header that are needed here.
pub(crate) struct TarHeader {
    pub(super) name: String,
    pub(crate) size: u64,
    pub(super) kind: TarEntry,
}

/// The kind of a member.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum TarEntry {
    File,
    LongName,
    /// Directories, links and extended headers, which are ignored.
    Other,
}

impl TarHeader {
    /// Reads the header at the start of `rest`; returns `None` at the end-of-archive mark.
    pub(super) fn read(rest: &[u8], offset: u64) -> Result<Option<TarHeader>, Violation> {
        let Some(block) = rest.first_chunk::<BLOCK>() else {
            let message = format!("a tar header takes {BLOCK} bytes, {} follow", rest.len());
            return Err(BLOB_56.broken(Kind::Truncated, offset, message));
        };
        // Two blocks of zeros end an archive. One is enough here, because only padding follows it.
        if block.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        let field = |start: usize, end: usize| block.get(start..end).unwrap_or_default();
        let sum = octal(field(148, 156));
        BLOB_56.require(sum == Some(sum_of(block)), offset, || {
            "the checksum of the tar header is wrong: the file is damaged, or the size before it lies".to_owned()
        })?;
        // BLOB-56: a size that is not a number is malformed, and nothing after it can be found.
        let size = match field(124, 136) {
            // Sizes from 8 GiB on are binary, with the top bit set.
            [0x80, rest @ ..] => rest.iter().try_fold(0u64, |size, byte| {
                Some(size.checked_mul(256)? | u64::from(*byte))
            }),
            digits => octal(digits),
        };
        let size = size.ok_or_else(|| {
            BLOB_56.broken(
                Kind::Malformed,
                offset,
                "the size in the tar header is not a number",
            )
        })?;
        let (prefix, name) = (text_of(field(345, 500)), text_of(field(0, 100)));
        // POSIX splits a long path into prefix and name. GNU, whose magic ends in blanks, has other fields in place of the prefix.
        let ustar = field(257, 263) == b"ustar\0";
        Ok(Some(TarHeader {
            name: if ustar && !prefix.is_empty() {
                format!("{prefix}/{name}")
            } else {
                name
            },
            size,
            kind: match field(156, 157) {
                // POSIX writes `0`, older formats write NUL, and contiguous files are `7`.
                [b'0' | 0 | b'7'] => TarEntry::File,
                [b'L'] => TarEntry::LongName,
                _ => TarEntry::Other,
            },
        }))
    }

    /// Returns the size with the padding to a whole block.
    pub(super) fn padded(&self) -> u64 {
        self.size
            .div_ceil(BLOCK as u64)
            .saturating_mul(BLOCK as u64)
    }
}

/// Parses a number in octal digits.
fn octal(field: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(field).ok()?;
    // Writers fill a field with NULs, blanks, or both.
    let digits = text.trim_matches([' ', '\0']);
    // `from_str_radix` accepts a sign, but a sign is not an octal digit.
    let is_number = digits.bytes().all(|digit| digit.is_ascii_digit());
    u64::from_str_radix(digits, 8).ok().filter(|_| is_number)
}

/// Returns the bytes before the first NUL, as text.
pub(super) fn text_of(field: &[u8]) -> String {
    let end = field
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(field.len());
    String::from_utf8_lossy(field.get(..end).unwrap_or_default()).into_owned()
}
