//! Versions of symbols in ELF images: those that an image needs from each library, and those that it defines.

use object::read::elf::{ElfFile, FileHeader};

/// Largest number of versions in each list. The C library defines about sixty; a hostile file may have more.
const MOST: usize = 4096;

/// Longest version or library name in bytes. A hostile file may name the tails of one long string.
const LONGEST: usize = 256;

/// The symbol versions in an image.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SymbolVersions<'a> {
    /// Pairs of a library and the version that it must provide, such as `libc.so.6` and `GLIBC_2.34`.
    pub needed: Vec<(&'a str, &'a str)>,
    /// The versions that the image defines.
    pub defined: Vec<&'a str>,
}

impl<'a> SymbolVersions<'a> {
    /// Reads the version tables of `bytes` as far as possible. Returns empty lists for a file that is not an ELF image.
    pub fn read(bytes: &'a [u8]) -> SymbolVersions<'a> {
        let mut versions = SymbolVersions::default();
        match object::File::parse(bytes) {
            Ok(object::File::Elf32(file)) => versions.tables(&file),
            Ok(object::File::Elf64(file)) => versions.tables(&file),
            _ => None,
        };
        versions
    }

    /// Reads both tables. Returns `None` where a table ends early; the versions found before that are kept.
    fn tables<E: FileHeader>(&mut self, file: &ElfFile<'a, E>) -> Option<()> {
        let (endian, data) = (file.endian(), file.data());
        let sections = file.elf_section_table();
        if let Some((mut libraries, names)) = sections.gnu_verneed(endian, data).ok()? {
            let names = sections.strings(endian, data, names).ok()?;
            while let Some((library, mut versions)) = libraries.next().ok()? {
                let library = std::str::from_utf8(library.file(endian, names).ok()?).ok()?;
                while let Some(version) = versions.next().ok()? {
                    let version = std::str::from_utf8(version.name(endian, names).ok()?).ok()?;
                    let is_short = library.len().max(version.len()) <= LONGEST;
                    (self.needed.len() < MOST && is_short)
                        .then(|| self.needed.push((library, version)))?;
                }
            }
        }
        if let Some((mut definitions, names)) = sections.gnu_verdef(endian, data).ok()? {
            let names = sections.strings(endian, data, names).ok()?;
            while let Some((_, mut versions)) = definitions.next().ok()? {
                // The first name is the version; the names after it are the versions that it inherits.
                if let Some(version) = versions.next().ok()? {
                    let version = std::str::from_utf8(version.name(endian, names).ok()?).ok()?;
                    (self.defined.len() < MOST && version.len() <= LONGEST)
                        .then(|| self.defined.push(version))?;
                }
            }
        }
        Some(())
    }
}
