//! One file or member of a container, with the blobs and symbols in it.

use super::FileForm;
use super::symbols::{self, Role, Symbol};
use crate::release::{Layout, Releases};
use std::borrow::Cow;

/// One file, or one member of an archive.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ContainerPart<'a> {
    /// Path of the member, outermost archive first, parts joined by `/`; empty for the file itself.
    pub member: String,
    /// The form of this file or member.
    pub form: FileForm,
    /// The machine that it was compiled for; object files only.
    pub machine: Option<Machine>,
    /// The blobs in it.
    pub blobs: Vec<EmbeddedBlob<'a>>,
    /// The symbols that matter to TVM, in the order of the symbol table.
    pub symbols: Vec<Symbol<'a>>,
    /// The releases that use the calling convention of the signatures in C text; `None` if no signature is known.
    pub convention: Option<Releases>,
    /// The headers of TVM that C text includes and that some releases lack, each with the releases that have it.
    pub headers: Vec<(&'static str, Releases)>,
}

/// The machine that an object file is for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Machine {
    /// Name of the architecture: `x86_64`, `aarch64`, `arm`, ...
    pub architecture: String,
    /// Width of an address in bits: 32 or 64.
    pub bits: u8,
    /// True if integers in the object file are little endian. Those in the blob always are.
    pub little_endian: bool,
}

/// Library binary as unread bytes from its container. [`crate::blob::Blob`] reads them.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EmbeddedBlob<'a> {
    /// The symbol; empty for a raw blob.
    pub symbol: String,
    /// The prefix of a system library, which comes before the name that TVM knows.
    pub prefix: String,
    /// The layout of the symbol (BLOB-50); `None` for a raw blob. Layouts 0.2 and 0.7 share a symbol, which is reported as 0.7, because
    /// only the bytes distinguish them.
    pub layout: Option<Layout>,
    /// The value of the symbol: an address in an image, an offset into its section in an object file.
    pub address: Option<u64>,
    /// Offset of the bytes in the opened file; `None` if the file contains them only in encoded form (gzip, C text).
    pub offset: Option<u64>,
    /// The source of the size.
    pub size: Size,
    /// The bytes of header and body.
    pub bytes: Cow<'a, [u8]>,
}

/// The source of a blob's size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// The container stores it: ELF symbol size, file size, array length.
    Known(u64),
    /// The blob's own header contains it; the container only limits it to `room` bytes (Mach-O, COFF, PE).
    Derived {
        /// Bytes up to the next symbol or the end of the section.
        room: u64,
    },
}

impl ContainerPart<'_> {
    /// Returns the part with all borrowed bytes copied.
    pub fn into_owned(self) -> ContainerPart<'static> {
        ContainerPart {
            member: self.member,
            form: self.form,
            machine: self.machine,
            blobs: self
                .blobs
                .into_iter()
                .map(EmbeddedBlob::into_owned)
                .collect(),
            symbols: self.symbols.into_iter().map(Symbol::into_owned).collect(),
            convention: self.convention,
            headers: self.headers,
        }
    }

    /// Returns the names of the packed functions that this part exports (BLOB-62, BLOB-63).
    pub fn functions(&self) -> impl Iterator<Item = &str> {
        self.symbols.iter().filter_map(|symbol| match &symbol.role {
            // BLOB-62: the name is the one that a caller looks up, without `__tvm_ffi_`.
            Role::Function(name) => Some(&**name),
            _ => None,
        })
    }

    /// Returns the prefix of a system library, from its blob symbol or its context symbol.
    pub fn prefix(&self) -> Option<&str> {
        // The blob comes first; if there is a context too, it has the same prefix (BLOB-51).
        let of_blobs = self.blobs.iter().map(|blob| blob.prefix.as_str());
        let of_symbols = self.symbols.iter().map(|symbol| &*symbol.prefix);
        // BLOB-51: a system library without device code has no blob, but its context symbol has the prefix.
        of_blobs.chain(of_symbols).find(|prefix| !prefix.is_empty())
    }

    /// Returns whether this is code that TVM compiled, or its library binary. Returns `false` for a runtime, which defines and calls
    /// functions of TVM but has no symbol that a loader looks up.
    pub fn is_compiled(&self) -> bool {
        // A library without device code has no blob, but it has a context and slots (BLOB-65).
        !self.blobs.is_empty()
            || self.convention.is_some()
            || self.symbols.iter().any(Symbol::is_of_compiled_code)
    }

    /// Returns the releases that fit all symbols of this part; `None` if no symbol shows a release.
    ///
    /// A library without a blob is recognized by the functions and slots that it exports.
    pub fn releases(&self) -> Option<Releases> {
        let of_symbols = symbols::releases(
            self.blobs.iter().filter_map(|blob| blob.layout),
            &self.symbols,
        );
        let shown = of_symbols.into_iter().chain(self.convention);
        // BLOB-62, BLOB-63: the newest convention exists in two eras, which differ in the names of functions.
        let names = self.convention.is_some().then(|| {
            if self.has_prefixed() {
                Releases::from(22)
            } else {
                Releases::between(2, 21)
            }
        });
        shown.chain(names).reduce(Releases::common)
    }

    /// Returns whether a function has the prefix of 0.22 (BLOB-62).
    pub fn has_prefixed(&self) -> bool {
        self.symbols.iter().any(Symbol::is_prefixed)
    }
}

impl EmbeddedBlob<'_> {
    fn into_owned(self) -> EmbeddedBlob<'static> {
        EmbeddedBlob {
            symbol: self.symbol,
            prefix: self.prefix,
            layout: self.layout,
            address: self.address,
            offset: self.offset,
            size: self.size,
            bytes: Cow::Owned(self.bytes.into_owned()),
        }
    }
}
