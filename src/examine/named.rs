//! What the name of a file says where its bytes say nothing: side files and LLVM's, code of devices (PAY-28).

use crate::payload::file::{self, FileFormat};
use crate::release::Layout;

/// A file that is known by its name, or by what its reader states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NamedFile {
    /// A side file, of whatever device module (PAY-24).
    Side,
    /// LLVM's text or bitcode (PAY-28).
    Host(&'static FileFormat),
    /// The payload of a module of this kind, as the layout stores it; no name says that.
    Payload(&'static str, Layout),
}

impl NamedFile {
    /// What the file called `name` is; `None` where its name says nothing, or its bytes are something else.
    pub(super) fn of(name: &str, bytes: &[u8]) -> Option<NamedFile> {
        if file::is_side_file(name) {
            return Some(NamedFile::Side);
        }
        let format = file::host_format(file::extension(name)?)?;
        let is_bitcode = bytes.starts_with(b"BC\xc0\xde") || bytes.starts_with(b"\xde\xc0\x17\x0b");
        let fits = match format.extension {
            "bc" => is_bitcode,
            // A file without an identifier of LLVM's text is some other text.
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
