//! Tar, plain and under gzip. Members of a plain tar are borrowed; a compressed one is inflated member by member,
//! under a limit (BLOB-57).

use super::rules::{BLOB_56, BLOB_57};
use super::{Place, Walk};
use crate::rule::{Kind, Violation};
use flate2::read::MultiGzDecoder;
use std::io::{self, Read};

const BLOCK: usize = 512;

/// How many bytes a gzip file may inflate to, for each of its own. Deflate itself stops at 1032.
pub const MAX_INFLATION: u64 = 200;

/// What a gzip file may inflate to in any case: tar pads to 10 KiB however little is in it.
const FREE_INFLATION: u64 = 1 << 20;

/// Whether the file starts with a tar header.
pub(super) fn is_tar(bytes: &[u8]) -> bool {
    bytes.get(257..262) == Some(b"ustar")
}

/// Whether a gzip file starts with a tar header inside.
pub(super) fn is_gzip_tar(bytes: &[u8]) -> bool {
    let mut block = Vec::new();
    let mut head = MultiGzDecoder::new(bytes).take(BLOCK as u64);
    // A file that breaks off behind the first block is still a tar; what was read so far decides.
    let _ = head.read_to_end(&mut block);
    is_tar(&block)
}

impl<'a> Walk<'a> {
    /// Every regular file of a plain tar.
    pub(super) fn tar(&mut self, bytes: &'a [u8], place: &Place) -> Result<(), Violation> {
        let mut names = Names::default();
        let mut at = 0;
        while let Some(block) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            let Some(header) =
                Header::read(block, at as u64).map_err(|broken| place.blame(broken))?
            else {
                break;
            };
            let start = at.saturating_add(BLOCK);
            let content = (start as u64, header.size);
            match header.kind {
                Entry::File => self.member(bytes, &names.name(&header), content, place)?,
                Entry::LongName => {
                    let end =
                        start.saturating_add(usize::try_from(header.size).unwrap_or(usize::MAX));
                    names.next = bytes.get(start..end).map(text_of);
                }
                Entry::Other => {}
            }
            at = usize::try_from((start as u64).saturating_add(header.padded()))
                .unwrap_or(usize::MAX);
        }
        Ok(())
    }

    /// Visits bytes that do not live as long as the file.
    fn detached(&mut self, bytes: &[u8], place: Place) -> Result<(), Violation> {
        let mut walk = Walk {
            parts: Vec::new(),
            findings: std::mem::take(&mut self.findings),
            inflation: self.inflation,
        };
        walk.visit(bytes, place)?;
        self.findings = walk.findings;
        self.inflation = walk.inflation;
        for part in walk.parts {
            self.parts.push(part.into_owned());
        }
        Ok(())
    }

    /// Every regular file of a tar under gzip.
    pub(super) fn gzip_tar(&mut self, bytes: &'a [u8], place: &Place) -> Result<(), Violation> {
        // Behind the decompressor offsets mean nothing in the file.
        let inside = Place {
            base: None,
            ..place.clone()
        };
        let mut stream = Stream::new(bytes);
        let mut names = Names::default();
        loop {
            let at = stream.taken;
            let block = stream
                .read(BLOCK as u64, &mut self.inflation)
                .map_err(|broken| inside.blame(broken))?;
            if block.is_empty() {
                return Ok(());
            }
            let Some(header) = Header::read(&block, at).map_err(|broken| inside.blame(broken))?
            else {
                // The rest is padding; reading it proves the checksum of the stream.
                return stream
                    .drain(&mut self.inflation)
                    .map_err(|broken| inside.blame(broken));
            };
            let content = stream
                .read(header.size, &mut self.inflation)
                .map_err(|broken| inside.blame(broken))?;
            BLOB_56
                .require_as(
                    Kind::Truncated,
                    content.len() as u64 == header.size,
                    at,
                    || {
                        let (name, size, there) = (&header.name, header.size, content.len());
                        format!("member `{name}` claims {size} bytes, {there} follow")
                    },
                )
                .map_err(|broken| inside.blame(broken))?;
            let padding = header.padded().saturating_sub(header.size);
            stream
                .read(padding, &mut self.inflation)
                .map_err(|broken| inside.blame(broken))?;
            match header.kind {
                Entry::File => {
                    let inner = inside.inner(&names.name(&header), None);
                    self.detached(&content, inner)?;
                }
                Entry::LongName => names.next = Some(text_of(&content)),
                Entry::Other => {}
            }
        }
    }
}

/// A GNU long name stands in a member of its own before the one that it names.
#[derive(Default)]
struct Names {
    next: Option<String>,
}

impl Names {
    fn name(&mut self, header: &Header) -> String {
        self.next.take().unwrap_or_else(|| header.name.clone())
    }
}

struct Header {
    name: String,
    size: u64,
    kind: Entry,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Entry {
    File,
    LongName,
    /// Directories, links, extended headers: nothing of ours.
    Other,
}

impl Header {
    /// The header at the start of `rest`; `None` at the end-of-archive mark.
    fn read(rest: &[u8], offset: u64) -> Result<Option<Header>, Violation> {
        let Some(block) = rest.first_chunk::<BLOCK>() else {
            let message = format!("a tar header takes {BLOCK} bytes, {} follow", rest.len());
            return Err(BLOB_56.broken(Kind::Truncated, offset, message));
        };
        if block.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        let field = |start: usize, end: usize| block.get(start..end).unwrap_or_default();
        let (before, sum, after) = (field(0, 148), field(148, 156), field(156, BLOCK));
        let spaces = 8 * u64::from(b' ');
        let bytes = before.iter().chain(after).map(|byte| u64::from(*byte));
        let expected = bytes.fold(spaces, u64::saturating_add);
        BLOB_56.require(octal(sum) == Some(expected), offset, || {
            "the checksum of the tar header is wrong: the file is damaged, or the size before it lies".to_owned()
        })?;
        let size = match field(124, 136) {
            // Sizes from 8 GiB on are binary, with the top bit set.
            [0x80, rest @ ..] => Some(
                rest.iter()
                    .fold(0u64, |size, byte| (size << 8) | u64::from(*byte)),
            ),
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
        let ustar = field(257, 263) == b"ustar\0";
        Ok(Some(Header {
            name: if ustar && !prefix.is_empty() {
                format!("{prefix}/{name}")
            } else {
                name
            },
            size,
            kind: match field(156, 157) {
                [b'0' | 0 | b'7'] => Entry::File,
                [b'L'] => Entry::LongName,
                _ => Entry::Other,
            },
        }))
    }

    /// The size with the padding to a whole block.
    fn padded(&self) -> u64 {
        self.size
            .div_ceil(BLOCK as u64)
            .saturating_mul(BLOCK as u64)
    }
}

fn octal(field: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(field).ok()?;
    let digits = text.trim_matches([' ', '\0']);
    u64::from_str_radix(digits, 8).ok()
}

fn text_of(field: &[u8]) -> String {
    let end = field
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(field.len());
    String::from_utf8_lossy(field.get(..end).unwrap_or_default()).into_owned()
}

/// What a gzip file of `length` bytes may inflate to, with all that lies in it.
pub(super) fn inflation_of(length: usize) -> u64 {
    (length as u64)
        .saturating_mul(MAX_INFLATION)
        .saturating_add(FREE_INFLATION)
}

/// A gzip stream that stops when what it may inflate to is used up.
struct Stream<'a> {
    decoder: MultiGzDecoder<&'a [u8]>,
    taken: u64,
}

impl<'a> Stream<'a> {
    fn new(bytes: &'a [u8]) -> Stream<'a> {
        Stream {
            decoder: MultiGzDecoder::new(bytes),
            taken: 0,
        }
    }

    /// The next `size` bytes, fewer at the end. Memory grows with what really comes, not with what `size` says.
    fn read(&mut self, size: u64, left: &mut u64) -> Result<Vec<u8>, Violation> {
        let mut bytes = Vec::new();
        let room = left.saturating_add(1);
        let read = (&mut self.decoder)
            .take(size.min(room))
            .read_to_end(&mut bytes);
        self.account(read.map(|count| count as u64), left)?;
        Ok(bytes)
    }

    fn drain(&mut self, left: &mut u64) -> Result<(), Violation> {
        let room = left.saturating_add(1);
        let read = io::copy(&mut (&mut self.decoder).take(room), &mut io::sink());
        self.account(read, left)
    }

    fn account(&mut self, read: io::Result<u64>, left: &mut u64) -> Result<(), Violation> {
        let count = read.map_err(|error| {
            let kind = match error.kind() {
                io::ErrorKind::UnexpectedEof => Kind::Truncated,
                _ => Kind::Malformed,
            };
            let message = format!("the gzip stream is damaged: {error}");
            BLOB_56.broken(kind, self.taken, message)
        })?;
        self.taken = self.taken.saturating_add(count);
        match left.checked_sub(count) {
            Some(rest) => *left = rest,
            None => {
                let message = format!(
                    "the gzip stream inflates to more than {MAX_INFLATION} bytes for each byte of the file"
                );
                return Err(BLOB_57.broken(Kind::Limit, self.taken, message));
            }
        }
        Ok(())
    }
}
