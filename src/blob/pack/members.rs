//! Archives in which one member is replaced. The other bytes stay unchanged (BLOB-75).
//!
//! | archive | other changes |
//! |---|---|
//! | `.a` | its size in its header, and the offsets of later members in the symbol table |
//! | `.tar` | the size and the checksum in its header |
//! | `.tar` inside gzip | as for a tar; the stream is written again, without compression |

use super::archive::{gzip, seal};
use crate::blob::container::tar::{BLOCK, TarHeaders};
use crate::blob::container::{self, FileForm};
use crate::rule::Violation;
use flate2::read::MultiGzDecoder;
use std::io::Read as _;
use std::ops::Range;

/// A function that replaces a library binary of a file. Its arguments are the file, the index of the old library binary, and the new
/// library binary. A member of an archive is passed as a file.
pub(super) type Replace = fn(&[u8], usize, &[u8]) -> Result<Vec<u8>, Violation>;

/// Returns the archive `file` with library binary number `index`, counted over all members, replaced by `blob`. `replace` changes the
/// member. Returns `None` if this archive format cannot be written, or if the member has no room.
pub(super) fn replace_in_members(
    file: &[u8],
    form: FileForm,
    index: usize,
    blob: &[u8],
    replace: Replace,
) -> Option<Vec<u8>> {
    match form {
        FileForm::Archive => replace_in_archive(file, index, blob, replace),
        FileForm::Tar => replace_in_tar(file, index, blob, replace),
        FileForm::GzipTar => {
            let mut tar = Vec::new();
            // The caller opened the file, which inflated the stream within its limits (BLOB-57).
            MultiGzDecoder::new(file).read_to_end(&mut tar).ok()?;
            Some(gzip(&replace_in_tar(&tar, index, blob, replace)?))
        }
        _ => None,
    }
}

/// The place of a member: the offsets of its header, of its content, and of the next header.
struct Member {
    header: usize,
    content: Range<usize>,
    next: usize,
}

/// Returns the member that contains library binary number `index`, and the new content of the member with `blob`.
fn changed(
    file: &[u8],
    members: impl Iterator<Item = Member>,
    index: usize,
    blob: &[u8],
    replace: Replace,
) -> Option<(Member, Vec<u8>)> {
    let mut left = index;
    for member in members {
        let content = file.get(member.content.clone())?;
        // Name tables and symbol tables are members too; they contain no blob.
        let count = container::open(content).map_or(0, |inner| inner.blobs().count());
        if left < count {
            let made = replace(content, left, blob).ok()?;
            return Some((member, made));
        }
        left = left.checked_sub(count)?;
    }
    None
}

/// Length of the magic of a `.a` in bytes.
const MAGIC: usize = 8;
/// Length of the header of a `.a` member in bytes.
const HEADER: usize = 60;

/// Returns the size in the header of a `.a` member.
fn stated_size(header: &[u8]) -> Option<usize> {
    let size = std::str::from_utf8(header.get(48..58)?).ok()?;
    size.trim_end().parse().ok()
}

fn replace_in_archive(file: &[u8], index: usize, blob: &[u8], replace: Replace) -> Option<Vec<u8>> {
    let mut at = MAGIC;
    let members = std::iter::from_fn(|| {
        let header = at;
        let fields = file.get(header..header.checked_add(HEADER)?)?;
        let size = stated_size(fields)?;
        let start = header.checked_add(HEADER)?;
        let end = start.checked_add(size)?;
        // BSD stores a long name before the content. The header then contains `#1/SIZE`, where SIZE is the length of the name.
        let name = std::str::from_utf8(fields.get(..16)?).ok();
        let long = name.and_then(|name| name.strip_prefix("#1/"));
        let long: usize = long.map_or(Some(0), |long| long.trim_end().parse().ok())?;
        let content = start.checked_add(long)?.min(end)..end;
        at = end.checked_next_multiple_of(2)?;
        let next = at;
        Some(Member {
            header,
            content,
            next,
        })
    });
    let (member, made) = changed(file, members, index, blob, replace)?;
    let before = file.get(member.header..member.content.start)?;
    let size = before.len().checked_sub(HEADER)?.checked_add(made.len())?;
    let mut out = file.get(..member.header)?.to_vec();
    out.extend_from_slice(before);
    let field = out.get_mut(member.header.checked_add(48)?..member.header.checked_add(58)?)?;
    let text = format!("{size:<10}");
    (text.len() == field.len()).then_some(())?;
    field.copy_from_slice(text.as_bytes());
    out.extend_from_slice(&made);
    if out.len() % 2 == 1 {
        out.push(b'\n');
    }
    let next = out.len();
    // The last member of an archive may lack its padding.
    out.extend_from_slice(file.get(member.next.min(file.len())..)?);
    move_members(&mut out, member.header, member.next, next)?;
    Some(out)
}

/// Updates the symbol table, which contains offsets of headers. Offsets after `changed` increase by `to - from`. Returns `None` for a
/// table of an unsupported form.
fn move_members(archive: &mut [u8], changed: usize, from: usize, to: usize) -> Option<()> {
    let name = archive.get(MAGIC..MAGIC.checked_add(16)?)?;
    let width = match name {
        b"/               " => 4,
        b"/SYM64/         " => 8,
        // The symbol tables of BSD and of Mach-O's tools contain offsets as well, but cannot be updated here.
        name if name.starts_with(b"__.SYMDEF") || name.starts_with(b"#1/") => return None,
        _ => return Some(()),
    };
    let start = MAGIC.checked_add(HEADER)?;
    // COFF has a second table after the first, in the other byte order.
    let size = stated_size(archive.get(MAGIC..start)?)?;
    let second = start.checked_add(size)?.checked_next_multiple_of(2)?;
    if archive.get(second..second.checked_add(16)?) == Some(b"/               ") {
        return None;
    }
    let word = |archive: &[u8], at: usize| {
        let bytes = archive.get(at..at.checked_add(width)?)?;
        let value = bytes.iter().fold(0_u64, |value, byte| {
            value.wrapping_shl(8) | u64::from(*byte)
        });
        usize::try_from(value).ok()
    };
    let count = word(archive, start)?;
    (count <= archive.len().checked_div(width)?).then_some(())?;
    for at in (1..=count).map(|item| item.checked_mul(width)?.checked_add(start)) {
        let at = at?;
        let old = word(archive, at)?;
        if old <= changed {
            continue;
        }
        let new = (old.checked_add(to)?.checked_sub(from)? as u64).to_be_bytes();
        let new = new.get(new.len().checked_sub(width)?..)?;
        archive
            .get_mut(at..at.checked_add(width)?)?
            .copy_from_slice(new);
    }
    Some(())
}

fn replace_in_tar(file: &[u8], index: usize, blob: &[u8], replace: Replace) -> Option<Vec<u8>> {
    // BLOB-56: the caller has read the archive, so every header is valid.
    let headers = TarHeaders::of(file).map_while(Result::ok);
    let members = headers.map_while(|(room, header)| {
        let size = usize::try_from(header.size).ok()?;
        Some(Member {
            header: room.start.checked_sub(BLOCK)?,
            content: room.start..room.start.checked_add(size)?,
            next: room.end,
        })
    });
    let (member, made) = changed(file, members, index, blob, replace)?;
    let mut out = file.get(..member.content.start)?.to_vec();
    let header = out.get_mut(member.header..)?.first_chunk_mut::<BLOCK>()?;
    let text = format!("{:011o}\0", made.len());
    (text.len() == 12).then_some(())?;
    header.get_mut(124..136)?.copy_from_slice(text.as_bytes());
    seal(header);
    out.extend_from_slice(&made);
    out.resize(out.len().checked_next_multiple_of(BLOCK)?, 0);
    out.extend_from_slice(file.get(member.next.min(file.len())..)?);
    Some(out)
}
