//! Tar inside gzip, read as a stream. Only members that may contain a blob are kept, within limits (BLOB-57).

use super::allowance::Allowance;
use super::inflate::inflate;
use super::tar::{BLOCK, LongNames, TarEntry, TarHeader, text_of};
use super::{ContainerPart, FileForm, FileWalk, MemberPlace};
use crate::blob::BLOB_56;
use crate::rule::{Kind, Violation};
use flate2::read::MultiGzDecoder;
use std::io::ErrorKind;

/// Number of bytes that a gzip file may inflate to, for each byte of the file. Deflate allows up to 1032.
pub(super) const MAX_INFLATION: u64 = 200;

/// Number of inflated bytes that are kept in memory at one time, for each byte of the file. They belong to members that may contain a
/// blob, and to the blobs that were found.
pub(super) const MAX_KEPT: u64 = 24;

impl<'a> FileWalk<'a> {
    /// Visits every regular file of a tar inside gzip.
    pub(super) fn gzip_tar(
        &mut self,
        bytes: &'a [u8],
        place: &MemberPlace,
    ) -> Result<(), Violation> {
        // Offsets in the decompressed stream have no meaning in the file.
        let inside = MemberPlace {
            base: None,
            ..place.clone()
        };
        let mut stream = GzipStream::new(bytes);
        let mut names = LongNames::default();
        while self.gzip_member(&mut stream, &mut names, &inside)? {}
        Ok(())
    }

    /// Reads the next member; returns `false` at the end.
    fn gzip_member(
        &mut self,
        stream: &mut GzipStream<'_>,
        names: &mut LongNames,
        inside: &MemberPlace,
    ) -> Result<bool, Violation> {
        let blame = |broken| inside.locate_violation(broken);
        let at = stream.taken;
        let block = stream.read(BLOCK as u64, &mut self.allowance);
        let block = block.map_err(blame)?;
        if block.is_empty() {
            return Ok(false);
        }
        let Some(header) = TarHeader::read(&block, at).map_err(blame)? else {
            // BLOB-56: the rest is padding. It is read because only the end of the stream shows a wrong checksum.
            let rest = stream.skip(u64::MAX, &mut self.allowance);
            return rest.map(|_| false).map_err(blame);
        };
        let head = header.size.min(match header.kind {
            TarEntry::File | TarEntry::LongName => FileForm::WINDOW as u64,
            TarEntry::Other => 0,
        });
        let mut content = stream.read(head, &mut self.allowance).map_err(blame)?;
        let (before, rest) = (content.len() as u64, header.size.saturating_sub(head));
        // BLOB-57: only members that may contain a blob are kept. The beginning of a member shows whether it may contain one.
        let whole = header.kind == TarEntry::File && FileForm::may_be(&content, header.size);
        let held = if whole { header.size } else { 0 };
        self.allowance
            .count_retained_bytes(held, at)
            .map_err(blame)?;
        let came = if whole {
            // The allowance covers the whole member. Growth by doubling would take twice as much.
            content.reserve_exact(usize::try_from(rest).unwrap_or(0));
            stream.advance(rest, Some(&mut content), &mut self.allowance)
        } else {
            stream.skip(rest, &mut self.allowance)
        };
        let came = came.map_err(blame)?.saturating_add(before);
        BLOB_56
            .require_as(Kind::Truncated, came == header.size, at, || {
                let (name, size) = (&header.name, header.size);
                format!("member `{name}`: its header states {size} bytes, but only {came} follow")
            })
            .map_err(blame)?;
        // A tar that ends inside its last padding is complete, so the stream may end there.
        let padding = header.padded().saturating_sub(header.size);
        stream.skip(padding, &mut self.allowance).map_err(blame)?;
        match header.kind {
            TarEntry::File => {
                let inner = self.enter(inside, &names.name(&header), None, at)?;
                self.detached(&content, inner, at)?;
            }
            TarEntry::LongName => names.next = Some(text_of(&content)),
            TarEntry::Other => {}
        }
        // The member is dropped. Its parts are copies, which `detached` has counted.
        self.allowance.release(held);
        Ok(true)
    }

    /// Visits bytes that do not live as long as the file.
    fn detached(&mut self, bytes: &[u8], place: MemberPlace, at: u64) -> Result<(), Violation> {
        let mut walk = FileWalk {
            parts: Vec::new(),
            // The bytes are dropped after this member, so a separate walk visits them and its parts are copied.
            findings: std::mem::take(&mut self.findings),
            allowance: self.allowance,
        };
        walk.visit(bytes, place.clone())?;
        self.findings = walk.findings;
        self.allowance = walk.allowance;
        for part in walk.parts {
            let kept = self
                .allowance
                .count_retained_bytes(estimate_memory(&part), at);
            kept.map_err(|broken| place.locate_violation(broken))?;
            self.parts.push(part.into_owned());
        }
        Ok(())
    }
}

/// Estimates the memory that a part takes: the bytes of its names and blobs. All other fields have a fixed size.
fn estimate_memory(part: &ContainerPart<'_>) -> u64 {
    let blobs = part.blobs.iter().map(|blob| blob.bytes.len());
    let names = part.symbols.iter().map(|symbol| symbol.name.len());
    let all = blobs.chain(names).chain([part.member.len()]);
    all.fold(size_of::<ContainerPart<'_>>() as u64, |sum, length| {
        sum.saturating_add(length as u64)
    })
}

/// A gzip stream that stops when the inflation limit is used up.
struct GzipStream<'a> {
    /// Gzip treats several streams that follow each other as one file.
    decoder: MultiGzDecoder<&'a [u8]>,
    /// Buffer for inflated bytes, so that skipped bytes take no memory.
    room: [u8; 8192],
    /// Number of bytes that were inflated so far; offsets of members count from the start of the inflated stream.
    taken: u64,
}

impl<'a> GzipStream<'a> {
    /// Creates a stream of `bytes`; nothing is inflated yet.
    fn new(bytes: &'a [u8]) -> GzipStream<'a> {
        GzipStream {
            decoder: MultiGzDecoder::new(bytes),
            room: [0; 8192],
            taken: 0,
        }
    }

    /// Reads the next `size` bytes; fewer at the end.
    fn read(&mut self, size: u64, left: &mut Allowance) -> Result<Vec<u8>, Violation> {
        let mut bytes = Vec::new();
        self.advance(size, Some(&mut bytes), left)?;
        Ok(bytes)
    }

    /// Skips the next `size` bytes, and returns how many there were.
    fn skip(&mut self, size: u64, left: &mut Allowance) -> Result<u64, Violation> {
        self.advance(size, None, left)
    }

    /// Appends the next `size` bytes to `kept`, and returns how many there were.
    fn advance(
        &mut self,
        size: u64,
        kept: Option<&mut Vec<u8>>,
        left: &mut Allowance,
    ) -> Result<u64, Violation> {
        // BLOB-57: one byte more than allowed is inflated, so that crossing the limit differs from the end of the file.
        let most = left.inflatable().saturating_add(1);
        let came = inflate(&mut self.decoder, &mut self.room, size.min(most), kept);
        let count = came.map_err(|error| {
            let kind = match error.kind() {
                // BLOB-56: a stream that ends early is truncated, one with a wrong checksum malformed.
                ErrorKind::UnexpectedEof => Kind::Truncated,
                _ => Kind::Malformed,
            };
            let message = format!("the gzip stream is damaged: {error}");
            BLOB_56.broken(kind, self.taken, message)
        })?;
        self.taken = self.taken.saturating_add(count);
        left.inflate(count, self.taken)?;
        Ok(count)
    }
}
