//! COFF object files, and PE images, which are made of them.

use super::{Area, Defined, Entry, Fields, Image, damaged};
use crate::rule::Violation;

const IMAGE_SCN_CNT_UNINITIALIZED_DATA: u64 = 0x80;
/// `IMAGE_SCN_CNT_CODE` and `IMAGE_SCN_MEM_EXECUTE`.
const IMAGE_SCN_CODE: u64 = 0x2000_0020;
const IMAGE_SYM_CLASS_EXTERNAL: u64 = 2;
const IMAGE_SYM_CLASS_WEAK_EXTERNAL: u64 = 105;
const IMAGE_SYM_DTYPE_FUNCTION: u64 = 2;
/// A section number from here on is a negative one of 16 bits: absolute, debugging.
const RESERVED: u64 = 0xff00;
/// The class id of an object file with more than 2^16 sections.
const BIGOBJ: [u8; 16] = [
    0xc7, 0xa1, 0xba, 0xd1, 0xee, 0xba, 0xa9, 0x4b, 0xaf, 0x20, 0xfa, 0xf6, 0x6a, 0xa4, 0xdc, 0xb8,
];

/// What both headers of COFF say.
struct Header {
    sections: u64,
    /// Offset of the section headers.
    start: u64,
    /// Offset of the symbol table, and how many records it has.
    symbols: (u64, u64),
    /// Whether section numbers have 32 bits.
    big: bool,
    image_base: u64,
}

/// The machine by its number, and whether its addresses take 8 bytes.
fn machine(number: u64) -> (&'static str, bool) {
    match number {
        0x14c => ("i386", false),
        0x1c4 => ("arm", false),
        0x8664 => ("x86_64", true),
        0xaa64 | 0xa641 => ("aarch64", true),
        _ => ("unknown", false),
    }
}

pub(super) fn read_object<'a>(bytes: &'a [u8], image: &mut Image<'a>) -> Result<(), Violation> {
    let file = Fields {
        bytes,
        ..Fields::default()
    };
    let big = bytes.starts_with(&[0, 0, 0xff, 0xff]);
    let (at, header) = if big {
        let header = Header {
            sections: file.u32(44),
            start: 56,
            symbols: (file.u32(48), file.u32(52)),
            big,
            image_base: 0,
        };
        (6, header)
    } else {
        (0, header_at(file, 0, 0))
    };
    if file.part(0, header.start).is_none() || big && bytes.get(12..28) != Some(&BIGOBJ) {
        return Err(damaged("its header is"));
    }
    let (name, wide) = machine(file.u16(at));
    image.is_of(name, wide, true);
    for section in sections(file, &header, image)? {
        let size = section.u32(16);
        let filled = section.u32(36) & IMAGE_SCN_CNT_UNINITIALIZED_DATA == 0;
        image.sections.push(Area {
            address: section.u32(12),
            size,
            file: filled.then_some((section.u32(20), size)),
            text: section.u32(36) & IMAGE_SCN_CODE != 0,
        });
    }
    let underscored = name == "i386";
    symbols(file, &header, underscored, image).ok_or_else(|| damaged("its symbol table is"))
}

pub(super) fn read_image<'a>(bytes: &'a [u8], image: &mut Image<'a>) -> Result<(), Violation> {
    let file = Fields {
        bytes,
        ..Fields::default()
    };
    let at = file.u32(0x3c).saturating_add(4);
    let optional = at.saturating_add(20);
    let options = file.part(optional, file.u16(optional.saturating_sub(4)));
    let options = options.ok_or_else(|| damaged("its header is"))?;
    let wide = match options.u16(0) {
        0x10b => false,
        0x20b => true,
        _ => return Err(damaged("its optional header is")),
    };
    let options = Fields { wide, ..options };
    if options.part(0, options.at(96, 112)).is_none() {
        return Err(damaged("its optional header is"));
    }
    let mut header = header_at(file, at, options.bytes.len() as u64);
    header.image_base = options.word(28, 24);
    image.is_of(machine(file.u16(at)).0, wide, true);
    for section in sections(file, &header, image)? {
        let area = Area {
            address: header.image_base.wrapping_add(section.u32(12)),
            size: section.u32(8),
            file: Some((section.u32(20), section.u32(8).min(section.u32(16)))),
            text: section.u32(36) & IMAGE_SCN_CODE != 0,
        };
        image.sections.push(area);
        image.segments.push(area);
    }
    // The format does not use its symbol table any more: a broken one harms nobody.
    let _ = symbols(file, &header, false, image);
    let directories = options.at(96, 112);
    if options.u32(directories.saturating_sub(4)) > 0 && options.u32(directories) > 0 {
        let (start, size) = (
            options.u32(directories),
            options.u32(directories.saturating_add(4)),
        );
        exports(file, (start, size), header.image_base, image)
            .ok_or_else(|| damaged("its export table is"))?;
    }
    Ok(())
}

/// The file header at `at`, with an optional header of `options` bytes behind it.
fn header_at(file: Fields<'_>, at: u64, options: u64) -> Header {
    let header = file.part(at, 20).unwrap_or_default();
    Header {
        sections: header.u16(2),
        start: at.saturating_add(20).saturating_add(options),
        symbols: (header.u32(8), header.u32(12)),
        big: false,
        image_base: 0,
    }
}

fn sections<'a>(
    file: Fields<'a>,
    header: &Header,
    image: &mut Image<'_>,
) -> Result<impl Iterator<Item = Fields<'a>> + use<'a>, Violation> {
    // Numbers of sections start at 1.
    image.sections.push(Area::default());
    file.table(header.start, header.sections, 40)
        .ok_or_else(|| damaged("its section table is"))
}

/// The global symbols; `None` where the table lies outside the file.
fn symbols<'a>(
    file: Fields<'a>,
    header: &Header,
    underscored: bool,
    image: &mut Image<'a>,
) -> Option<()> {
    let (start, count) = header.symbols;
    if start == 0 {
        return Some(());
    }
    let record = if header.big { 20 } else { 18 };
    let mut records = file.table(start, count, record)?;
    let names = start.saturating_add(count.saturating_mul(record));
    let names = file
        .part(names, file.part(names, 4)?.u32(0))
        .unwrap_or_default();
    while let Some(symbol) = records.next() {
        let [kind, class, count] = [4, 2, 1].map(|back| record.saturating_sub(back));
        let (class, count) = (symbol.number(class, 1), symbol.number(count, 1));
        let behind = records.clone().next().filter(|_| count > 0);
        for _ in 0..count {
            records.next();
        }
        if !matches!(
            class,
            IMAGE_SYM_CLASS_EXTERNAL | IMAGE_SYM_CLASS_WEAK_EXTERNAL
        ) {
            continue;
        }
        let (function, external) = (
            (symbol.u16(kind) >> 4) & 3 == IMAGE_SYM_DTYPE_FUNCTION,
            class == IMAGE_SYM_CLASS_EXTERNAL,
        );
        let (value, number) = (symbol.u32(8), symbol.number(12, kind.saturating_sub(12)));
        let reserved = number >= if header.big { 1 << 31 } else { RESERVED };
        let section = usize::try_from(number).ok().filter(|_| number > 0);
        let section = section.and_then(|number| image.sections.get(number));
        let name = symbol.part(0, 8).unwrap_or_default();
        let name = match name.number(0, 1) {
            // A longer name stands in the table of strings.
            0 => names.text(name.u32(4)),
            _ => inline(name.bytes),
        };
        image.add(Entry {
            name: match underscored {
                true => name.strip_prefix('_').unwrap_or(name),
                false => name,
            },
            address: section.map_or(0, |section| section.address.wrapping_add(value)),
            size: match (external, number, behind) {
                // Of a common symbol the value is the size.
                (true, 0, _) => value,
                (true, _, Some(behind)) if function => behind.u32(4),
                _ => 0,
            },
            place: match number {
                0 if external && value == 0 => Defined::Nowhere,
                0 => Defined::NoBytes,
                _ if reserved => Defined::NoBytes,
                number => image.inside(number),
            },
            text: function,
        });
    }
    Some(())
}

/// A name of up to eight bytes.
fn inline(name: &[u8]) -> &str {
    let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
    std::str::from_utf8(name).unwrap_or_default()
}

/// The named exports of an image, by the directory of `size` bytes at `start`, an address relative to the image.
fn exports<'a>(
    file: Fields<'a>,
    (start, size): (u64, u64),
    image_base: u64,
    image: &mut Image<'a>,
) -> Option<()> {
    let directory = image.segments.iter().find_map(|segment| {
        let inside = image_base
            .wrapping_add(start)
            .checked_sub(segment.address)?;
        let (start, room) = segment.file?;
        file.part(start.checked_add(inside)?, room.checked_sub(inside)?)
    });
    let directory = directory?.part(0, size)?;
    let table = |field: u64, count: u64, size: u64| match directory.u32(field) {
        0 => Some(Fields::default()),
        at => directory.part(at.checked_sub(start)?, count.checked_mul(size)?),
    };
    directory.part(0, 40)?;
    let (count, named) = (directory.u32(20), directory.u32(24));
    if directory.u32(16).saturating_add(count) > 1 << 16 {
        return None;
    }
    let (addresses, names, ordinals) = (
        table(28, count, 4)?,
        table(32, named, 4)?,
        table(36, named, 2)?,
    );
    let named = if names.bytes.is_empty() { 0 } else { named };
    // Real images have one or two; a hostile one does not get to be searched for each export.
    let code: Vec<Area> = image
        .segments
        .iter()
        .filter(|area| area.text)
        .take(16)
        .copied()
        .collect();
    for index in 0..named {
        let ordinal = ordinals.part(index.saturating_mul(2), 2)?.u16(0);
        let address = addresses.part(ordinal.saturating_mul(4), 4)?.u32(0);
        let name = names.u32(index.saturating_mul(4)).checked_sub(start)?;
        directory.part(name, 1)?;
        // Inside the directory lies not the function, but the name of another library's.
        if (start..start.saturating_add(size)).contains(&address) {
            continue;
        }
        let address = image_base.wrapping_add(address);
        let holds =
            |area: &Area| (area.address..area.address.saturating_add(area.size)).contains(&address);
        image.add(Entry {
            name: directory.text(name),
            address,
            size: 0,
            place: Defined::Image,
            text: code.iter().any(holds),
        });
    }
    Some(())
}
