//! Files that hold object files as they are: static archives and Mach-O for several machines.

use super::rules::BLOB_56;
use super::{Place, Walk, image};
use crate::rule::{Kind, Violation};

/// How many bytes stand before the content of a member of a static archive.
const HEADER: usize = 60;

impl<'a> Walk<'a> {
    /// Every member of a static archive.
    pub(super) fn archive(&mut self, bytes: &'a [u8], place: &Place) -> Result<(), Violation> {
        if bytes.starts_with(b"!<thin>\n") {
            let message = "a thin archive names its members and does not hold them; give the members themselves";
            return Err(place.blame(BLOB_56.broken(Kind::Unsupported, 0, message)));
        }
        let mut names: &[u8] = &[];
        let mut at = 8usize;
        while at < bytes.len() {
            let rest = bytes.get(at..).unwrap_or_default();
            let Some((name, start, size)) = header(rest, names) else {
                let message = format!("the archive is damaged: no header of a member at {at:#x}");
                return Err(place.blame(BLOB_56.broken(Kind::Truncated, 0, message)));
            };
            let start = start.saturating_add(at as u64);
            let end = start.saturating_add(size);
            match name {
                // The names that are too long for a header; lists of symbols.
                b"//" => names = bytes.get(HEADER.saturating_add(at)..).unwrap_or_default(),
                b"/" | b"/SYM64/" | b"/<ECSYMBOLS>/" => {}
                name if name.starts_with(b"__.SYMDEF") => {}
                name => {
                    let name = String::from_utf8_lossy(name);
                    self.member(bytes, &name, (start, size), place)?;
                }
            }
            // Members start at even offsets.
            let end = end.saturating_add(end & 1);
            at = usize::try_from(end).unwrap_or(usize::MAX);
        }
        Ok(())
    }

    /// Every machine of a fat Mach-O file.
    pub(super) fn fat(&mut self, bytes: &'a [u8], place: &Place) -> Result<(), Violation> {
        let Some(machines) = image::fat(bytes) else {
            let message = "the list of machines is damaged: it ends behind the file";
            return Err(place.blame(BLOB_56.broken(Kind::Truncated, 0, message)));
        };
        // Machines that share bytes would let a small file be read many times over.
        let sizes = machines.iter().map(|(_, _, size)| *size);
        let total = sizes.fold(0, u64::saturating_add);
        BLOB_56
            .require_as(Kind::Truncated, total <= bytes.len() as u64, 0, || {
                let length = bytes.len();
                format!("the machines claim {total} bytes together, the file has {length}")
            })
            .map_err(|broken| place.blame(broken))?;
        for (name, start, size) in machines {
            self.member(bytes, name, (start, size), place)?;
        }
        Ok(())
    }

    /// Visits the `size` bytes at `start` (BLOB-56).
    pub(super) fn member(
        &mut self,
        bytes: &'a [u8],
        name: &str,
        (start, size): (u64, u64),
        place: &Place,
    ) -> Result<(), Violation> {
        let end = start.saturating_add(size);
        let range = usize::try_from(start).ok().zip(usize::try_from(end).ok());
        let content = range.and_then(|(start, end)| bytes.get(start..end));
        BLOB_56
            .require_as(Kind::Truncated, content.is_some(), start, || {
                let rest = (bytes.len() as u64).saturating_sub(start);
                format!("member `{name}` claims {size} bytes, {rest} follow")
            })
            .map_err(|broken| place.blame(broken))?;
        let content = content
            .or_else(|| bytes.get(usize::try_from(start).ok()?..))
            .unwrap_or_default();
        let inner = place.inner(name, place.file_offset(start));
        self.visit(content, inner)?;
        Ok(())
    }
}

/// The name of the member whose header starts `bytes`, and where its content starts and how long it is; `names` are those that
/// are too long for a header.
fn header<'a>(bytes: &'a [u8], names: &'a [u8]) -> Option<(&'a [u8], u64, u64)> {
    let header: &[u8; HEADER] = bytes.first_chunk()?;
    let (field, size) = (header.get(..16)?, number(header.get(48..58)?)?);
    if !header.ends_with(b"`\n") {
        return None;
    }
    let until = |text: &'a [u8], end: &[u8]| text.split(|byte| end.contains(byte)).next();
    let digit = |at: usize| field.get(at).is_some_and(u8::is_ascii_digit);
    if field.starts_with(b"/") && digit(1) {
        let start = usize::try_from(number(field.get(1..)?)?).ok()?;
        let name = until(names.get(start..)?, b"\n\0")?;
        return Some((name.strip_suffix(b"/").unwrap_or(name), HEADER as u64, size));
    }
    if field.starts_with(b"#1/") && digit(3) {
        // The name stands before the content and is counted with it.
        let length = number(field.get(3..)?)?;
        let end = usize::try_from(length).ok()?.checked_add(HEADER)?;
        let name = until(bytes.get(HEADER..end)?, b"\0")?;
        return Some((name, end as u64, size.checked_sub(length)?));
    }
    let ends: &[u8] = match field.starts_with(b"/") || !field.contains(&b'/') {
        true => b" ",
        false => b"/",
    };
    Some((until(field, ends)?, HEADER as u64, size))
}

/// Decimal digits, behind which there may be spaces.
fn number(field: &[u8]) -> Option<u64> {
    let digits = field.split(|byte| *byte == b' ').next()?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}
