//! Containers that hold object files uncompressed: static archives and fat Mach-O files for several machines.

use super::{FileWalk, MemberPlace};
use crate::blob::BLOB_56;
use crate::rule::{Kind, Violation};
use object::read::archive::ArchiveFile;
use object::read::macho::{FatArch, MachOFatFile32, MachOFatFile64};

impl<'a> FileWalk<'a> {
    /// Visits every member of a static archive.
    pub(super) fn archive(
        &mut self,
        bytes: &'a [u8],
        place: &MemberPlace,
    ) -> Result<(), Violation> {
        let damaged = |error: object::read::Error| {
            place.locate_violation(BLOB_56.broken(
                Kind::Truncated,
                0,
                format!("the archive is damaged: {error}"),
            ))
        };
        let archive = ArchiveFile::parse(bytes).map_err(damaged)?;
        // BLOB-56: the members of a thin archive are separate files.
        if archive.is_thin() {
            let message = "a thin archive names its members and does not hold them; give the members themselves";
            return Err(place.locate_violation(BLOB_56.broken(Kind::Unsupported, 0, message)));
        }
        for member in archive.members() {
            let member = member.map_err(damaged)?;
            // A name may have any encoding. It is only shown, never compared.
            let name = String::from_utf8_lossy(member.name()).into_owned();
            self.member(bytes, &name, member.file_range(), place)?;
        }
        Ok(())
    }

    /// Visits the image of every machine in a fat Mach-O file.
    pub(super) fn visit_fat_images(
        &mut self,
        bytes: &'a [u8],
        place: &MemberPlace,
    ) -> Result<(), Violation> {
        let damaged = |error: object::read::Error| {
            place.locate_violation(BLOB_56.broken(
                Kind::Truncated,
                0,
                format!("the list of machines is damaged: {error}"),
            ))
        };
        // `cafebabf` has offsets of 64 bits, `cafebabe` of 32.
        if bytes.get(3) == Some(&0xbf) {
            let fat = MachOFatFile64::parse(bytes).map_err(damaged)?;
            self.machines(bytes, fat.arches(), place)
        } else {
            let fat = MachOFatFile32::parse(bytes).map_err(damaged)?;
            self.machines(bytes, fat.arches(), place)
        }
    }

    /// Visits the image of every machine in the list (BLOB-56). Together the images are no larger than the file, and no two of them
    /// overlap.
    fn machines<F: FatArch>(
        &mut self,
        bytes: &'a [u8],
        arches: &[F],
        place: &MemberPlace,
    ) -> Result<(), Violation> {
        // BLOB-56: images that share bytes would let a small file be read many times. The sum is checked first, because it needs no
        // order. Then the pairs are checked.
        let total = arches
            .iter()
            .map(|arch| arch.file_range().1)
            .fold(0, u64::saturating_add);
        BLOB_56
            .require_as(Kind::Truncated, total <= bytes.len() as u64, 0, || {
                let length = bytes.len();
                format!(
                    "the parts for all machines take {total} bytes, but the file has only {length}"
                )
            })
            .map_err(|broken| place.locate_violation(broken))?;
        let mut ranges: Vec<(u64, u64)> = arches.iter().map(FatArch::file_range).collect();
        ranges.sort_unstable();
        let mut taken = 0;
        for (start, size) in ranges {
            // An image without bytes overlaps no other, wherever it is.
            BLOB_56
                .require_as(Kind::Truncated, start >= taken || size == 0, start, || {
                    format!("the machine at byte {start} begins inside another, which ends at byte {taken}")
                })
                .map_err(|broken| place.locate_violation(broken))?;
            taken = taken.max(start.saturating_add(size));
        }
        for arch in arches {
            // BLOB-56: machines have no names, so the processor is the name of the member.
            let name = format!("{:?}", arch.architecture()).to_ascii_lowercase();
            self.member(bytes, &name, arch.file_range(), place)?;
        }
        Ok(())
    }

    /// Creates the place of a member, if the limits allow one more (BLOB-68).
    pub(super) fn enter(
        &mut self,
        place: &MemberPlace,
        name: &str,
        base: Option<u64>,
        at: u64,
    ) -> Result<MemberPlace, Violation> {
        let allowance = &mut self.allowance;
        let path = place.member.len().saturating_add(name.len());
        allowance
            .name(name.len(), at)
            .and_then(|()| allowance.member(path, at))
            .map_err(|broken| place.locate_violation(broken))?;
        Ok(place.member_place(name, base))
    }

    /// Visits the member of `size` bytes at `start` (BLOB-56).
    pub(super) fn member(
        &mut self,
        bytes: &'a [u8],
        name: &str,
        (start, size): (u64, u64),
        place: &MemberPlace,
    ) -> Result<(), Violation> {
        let end = start.saturating_add(size);
        let range = usize::try_from(start).ok().zip(usize::try_from(end).ok());
        let content = range.and_then(|(start, end)| bytes.get(start..end));
        BLOB_56
            .require_as(Kind::Truncated, content.is_some(), start, || {
                let rest = (bytes.len() as u64).saturating_sub(start);
                format!("member `{name}`: its header states {size} bytes, but only {rest} follow")
            })
            .map_err(|broken| place.locate_violation(broken))?;
        // Needed only if the check above is disabled. Then the member is the rest of the file.
        let content = content
            .or_else(|| bytes.get(usize::try_from(start).ok()?..))
            .unwrap_or_default();
        // BLOB-68: the cost is counted before the visit, because many members may share their bytes.
        let inner = self.enter(place, name, place.file_offset(start), start)?;
        self.visit(content, inner)?;
        Ok(())
    }
}
