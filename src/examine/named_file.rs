//! Files that are recognized by their name because their bytes state nothing: side files, LLVM files and device code (PAY-28).

use crate::payload::file::{self, FileFormat};
use crate::release::Layout;

/// A file whose format is known from its name or from a statement of the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NamedFile {
    /// A side file, of any device module (PAY-24).
    Side,
    /// LLVM text or bitcode (PAY-28).
    Host(&'static FileFormat),
    /// The payload of a module of this kind, as the layout stores it. Only the caller states this; no name does.
    Payload(&'static str, Layout),
}

impl NamedFile {
    /// Recognizes the file called `name`. Returns `None` if its name states nothing or its bytes contradict the name.
    pub(super) fn recognize(name: &str, bytes: &[u8]) -> Option<NamedFile> {
        if file::is_side_file(name) {
            return Some(NamedFile::Side);
        }
        let format = file::host_format(file::extension(name)?)?;
        let is_bitcode = bytes.starts_with(b"BC\xc0\xde") || bytes.starts_with(b"\xde\xc0\x17\x0b");
        let fits = match format.extension {
            "bc" => is_bitcode,
            // Text files of other kinds may also have this extension. LLVM text contains one of these words.
            _ => std::str::from_utf8(bytes).is_ok_and(|text| {
                [
                    "target triple",
                    "define ",
                    "declare ",
                    "source_filename",
                    "; ModuleID",
                ]
                .iter()
                .any(|word| text.contains(word))
            }),
        };
        fits.then_some(NamedFile::Host(format))
    }
}
