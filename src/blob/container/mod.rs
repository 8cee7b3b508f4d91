//! Containers of a library binary: shared objects, object files, archives, C text. Nothing is executed.
//!
//! [`open`] returns the form of a file ([`FileForm`]). It finds every blob in the file, with the symbols that a TVM loader looks up. It
//! touches only headers and symbol tables: from a mapped library of 1 GB, a few pages are read. Blobs borrow the file; only bytes from gzip
//! or C text are copied.
//!
//! | file | what is found | rule |
//! |---|---|---|
//! | ELF, Mach-O, PE, COFF, WebAssembly | bytes of each blob; functions, context, slots | BLOB-50 .. BLOB-55, BLOB-62 .. BLOB-65 |
//! | `.a`, `.tar`, gzip of a tar | the same for every member, by name | BLOB-56, BLOB-57, BLOB-68 |
//! | C text | the byte array | BLOB-58 |
//! | raw blob | the whole file; the bytes decide its layout | |

mod allowance;
mod archive;
mod c_signature;
pub(super) mod c_text;
mod form;
mod gzip;
mod image;
mod inflate;
mod linkage;
#[cfg(feature = "inspect")]
mod llvm_text;
mod object;
#[cfg(any(feature = "inspect", feature = "runtime"))]
mod segments;
mod symbols;
pub(crate) mod tar;
mod text_form;
mod versions;
mod wasm;

#[cfg(all(feature = "rpc", feature = "runtime"))]
pub(crate) use tar::tar_files;

use allowance::Allowance;
#[cfg(feature = "inspect")]
pub(crate) use c_text::identifier;
pub use form::FileForm;
use gzip::{MAX_INFLATION, MAX_KEPT};
#[cfg(feature = "inspect")]
pub(crate) use linkage::is_interface;
#[cfg(feature = "suite")]
pub(crate) use linkage::made_for;
pub use linkage::{DynamicNames, Linkage, foreign, is_cpp_interface, is_native, linkage};
#[cfg(feature = "inspect")]
pub(crate) use llvm_text::llvm_text;
#[cfg(any(feature = "inspect", feature = "runtime"))]
pub(crate) use segments::cut_segment;
pub(super) use symbols::blob_symbol;
pub use symbols::{Role, Symbol};
pub use versions::SymbolVersions;

use super::{BLOB_53, BLOB_54, BLOB_57, BLOB_76};
use crate::release::{Layout, Releases};
use crate::rule::{Findings, Kind, Strictness, Violation};
use std::borrow::Cow;

/// Largest number of archives around a file (BLOB-57). TVM writes one level.
pub const MAX_DEPTH: u8 = 4;

/// A file whose container was read.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct File<'a> {
    /// The form of the file itself.
    pub form: FileForm,
    /// The file itself, or the members of an archive in order, including those of inner archives.
    pub parts: Vec<Part<'a>>,
    /// Oddities that were tolerated.
    pub findings: Findings,
}

impl<'a> File<'a> {
    /// Returns every blob, with the part that contains it.
    pub fn blobs(&self) -> impl Iterator<Item = (&Part<'a>, &Embedded<'a>)> {
        self.parts
            .iter()
            .flat_map(|part| part.blobs.iter().map(move |blob| (part, blob)))
    }
}

/// One file, or one member of an archive.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Part<'a> {
    /// Path of the member, outermost archive first, parts joined by `/`; empty for the file itself.
    pub member: String,
    /// The form of this file or member.
    pub form: FileForm,
    /// The machine that it was compiled for; object files only.
    pub machine: Option<Machine>,
    /// The blobs in it.
    pub blobs: Vec<Embedded<'a>>,
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
    /// Whether integers in the object file are little endian. Those in the blob always are.
    pub little_endian: bool,
}

/// Library binary as unread bytes from its container. [`crate::blob::Blob`] reads them.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Embedded<'a> {
    /// The symbol; empty for a raw blob.
    pub symbol: String,
    /// The prefix of a system library, which comes before the name that TVM knows.
    pub prefix: String,
    /// The layout of the symbol (BLOB-50); `None` for a raw blob. Layouts 0.2 and 0.7 share a symbol, which is reported as 0.7, because
    /// only the bytes distinguish them.
    pub layout: Option<Layout>,
    /// The value of the symbol: an address in an image, an offset into its section in an object file.
    pub address: Option<u64>,
    /// Offset of the bytes in the opened file; `None` where the file encodes them (gzip, C text).
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

impl Part<'_> {
    /// Returns the part with all borrowed bytes copied.
    pub fn into_owned(self) -> Part<'static> {
        Part {
            member: self.member,
            form: self.form,
            machine: self.machine,
            blobs: self.blobs.into_iter().map(Embedded::into_owned).collect(),
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

    /// Returns whether this is code that TVM compiled, or its library binary. A runtime is not: it defines and calls functions of TVM, but
    /// has no symbol that a loader looks up.
    pub fn is_compiled(&self) -> bool {
        // A library without device code has no blob; its context and slots show what it is (BLOB-65).
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
        let names = self
            .convention
            .is_some()
            .then(|| match self.has_prefixed() {
                true => Releases::from(22),
                false => Releases::between(2, 21),
            });
        shown.chain(names).reduce(Releases::common)
    }

    /// Returns whether a function has the prefix of 0.22 (BLOB-62).
    pub fn has_prefixed(&self) -> bool {
        self.symbols.iter().any(Symbol::is_prefixed)
    }
}

impl Embedded<'_> {
    fn into_owned(self) -> Embedded<'static> {
        Embedded {
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

/// Opens `bytes`, the content of a file of any form, and finds its blobs and symbols.
///
/// A file of an unknown form is not an error: its form is [`FileForm::Unknown`], and it has no blob.
///
/// # Errors
///
/// BLOB-52, BLOB-53, BLOB-55 to BLOB-58, BLOB-68, at the byte of the file that breaks it.
pub fn open(bytes: &[u8]) -> Result<File<'_>, Violation> {
    open_with(bytes, Strictness::Lenient)
}

/// Opens a file like [`open`]. Under [`Strictness::Strict`], a tolerated oddity (BLOB-54) is a violation.
///
/// # Errors
///
/// The errors of [`open`], and BLOB-54 under [`Strictness::Strict`].
pub fn open_with(bytes: &[u8], strictness: Strictness) -> Result<File<'_>, Violation> {
    let mut walk = FileWalk {
        parts: Vec::new(),
        findings: Findings::new(strictness),
        allowance: Allowance::of(bytes.len()),
    };
    let form = walk.visit(
        bytes,
        MemberPlace {
            member: String::new(),
            base: Some(0),
            depth: 0,
        },
    )?;
    if form.is_archive() {
        walk.one_machine()?;
    }
    Ok(File {
        form,
        parts: walk.parts,
        findings: walk.findings,
    })
}

/// The results of a walk through a file and its containers.
struct FileWalk<'a> {
    parts: Vec<Part<'a>>,
    findings: Findings,
    /// The remaining limits (BLOB-57, BLOB-68), shared by all levels.
    allowance: Allowance,
}

/// The place of a member in the opened file.
#[derive(Clone, Debug)]
struct MemberPlace {
    member: String,
    /// Offset of the first byte in the opened file; `None` for decompressed bytes.
    base: Option<u64>,
    /// Number of archives around the bytes (BLOB-57).
    depth: u8,
}

impl MemberPlace {
    /// Returns the place of a member of the archive at this place.
    fn inner(&self, name: &str, base: Option<u64>) -> MemberPlace {
        let member = match self.member.as_str() {
            "" => name.to_owned(),
            outer => format!("{outer}/{name}"),
        };
        MemberPlace {
            member,
            base,
            depth: self.depth.saturating_add(1),
        }
    }

    /// Converts an offset in these bytes to an offset in the opened file.
    fn file_offset(&self, inside: u64) -> Option<u64> {
        self.base.map(|base| base.saturating_add(inside))
    }

    /// Converts a violation in these bytes to one in the opened file. In decompressed bytes, the offset stays relative to the member, and
    /// the field names the member.
    fn blame(&self, broken: Violation) -> Violation {
        let broken = broken.shifted(self.base.unwrap_or(0));
        // A field that is already set is more precise than the member.
        if broken.field().is_empty() && !self.member.is_empty() {
            broken.in_field(self.member.clone())
        } else {
            broken
        }
    }
}

impl<'a> FileWalk<'a> {
    /// Checks that all object files of an archive are for one machine (BLOB-76). Mach-O is left out, because one member may hold objects
    /// for several machines.
    fn one_machine(&mut self) -> Result<(), Violation> {
        let is_object = |part: &&Part<'_>| {
            matches!(
                part.form,
                FileForm::ElfObject | FileForm::CoffObject | FileForm::WasmObject
            )
        };
        let mut objects = self.parts.iter().filter(is_object);
        let Some(first) = objects.next() else {
            return Ok(());
        };
        let other = objects.find(|part| part.machine != first.machine);
        let named = |part: &Part<'_>| {
            let machine = part.machine.as_ref();
            let machine = machine.map_or("", |machine| &machine.architecture);
            format!("`{}` is for {machine}", part.member)
        };
        self.findings
            .expect(BLOB_76, Kind::Malformed, other.is_none(), 0, || {
                let other = other.map(named).unwrap_or_default();
                format!(
                    "{}, {other}: no linker makes one library of both",
                    named(first)
                )
            })
    }

    /// Visits bytes of any form, and adds a part for each file that is not an archive.
    fn visit(&mut self, bytes: &'a [u8], place: MemberPlace) -> Result<FileForm, Violation> {
        let form = FileForm::of(bytes);
        // BLOB-57: each level takes a stack frame, and nested gzip multiplies the number of inflated bytes.
        let shallow = !form.is_archive() || place.depth < MAX_DEPTH;
        BLOB_57
            .require_as(Kind::Limit, shallow, 0, || {
                format!("archives lie more than {MAX_DEPTH} deep in archives")
            })
            .map_err(|broken| place.blame(broken))?;
        match form {
            FileForm::Archive => self.archive(bytes, &place)?,
            FileForm::MachOFat => self.fat(bytes, &place)?,
            FileForm::Tar => self.tar(bytes, &place)?,
            FileForm::GzipTar => self.gzip_tar(bytes, &place)?,
            form => {
                let part = self
                    .leaf(bytes, form, &place)
                    .map_err(|broken| place.blame(broken))?;
                let form = part.form;
                self.parts.push(part);
                return Ok(form);
            }
        }
        Ok(form)
    }

    /// Reads the part for a file that is not an archive: its blobs and its symbols.
    fn leaf(
        &mut self,
        bytes: &'a [u8],
        form: FileForm,
        place: &MemberPlace,
    ) -> Result<Part<'a>, Violation> {
        let mut part = Part {
            member: place.member.clone(),
            form,
            machine: None,
            blobs: Vec::new(),
            symbols: Vec::new(),
            convention: None,
            headers: Vec::new(),
        };
        match form {
            FileForm::CText => c_text::read(bytes, &mut part, &mut self.allowance)?,
            // BLOB-18: only the bytes show the layout, and the container does not read them.
            FileForm::RawBlob => part.blobs.push(Embedded {
                symbol: String::new(),
                prefix: String::new(),
                layout: None,
                address: None,
                offset: place.file_offset(0),
                size: Size::Known(bytes.len() as u64),
                bytes: Cow::Borrowed(bytes),
            }),
            FileForm::WasmObject | FileForm::WasmModule => {
                let (findings, allowance) = (&mut self.findings, &mut self.allowance);
                wasm::read(bytes, place, &mut part, findings, allowance)?;
            }
            form if form.is_object() => {
                let (findings, allowance) = (&mut self.findings, &mut self.allowance);
                object::read(bytes, place, &mut part, findings, allowance)?;
            }
            // Parameters, tensors, graphs and VM code contain no blob, so their bytes are not searched.
            _ => {}
        }
        Ok(part)
    }
}

/// Limits a blob to the size in its own header (BLOB-53, BLOB-54). `room` holds the bytes that the container grants from `offset` on;
/// `known` says whether that is the blob's size or only a bound.
fn bounded<'a>(
    room: &'a [u8],
    known: bool,
    offset: u64,
    findings: &mut Findings,
) -> Result<(&'a [u8], Size), Violation> {
    // BLOB-53: the header may not exceed the size that the container grants.
    let granted = room.len() as u64;
    // BLOB-01: the header is little endian on every machine, also in a big-endian object file.
    let header = room.first_chunk().map(|header| u64::from_le_bytes(*header));
    BLOB_53.require_as(Kind::Truncated, header.is_some(), offset, || {
        format!("the blob has {granted} bytes, its header alone takes 8")
    })?;
    // BLOB-53: a loader has only the address, so with a wrong header it would read past the blob. BLOB-01: the header does not count
    // itself.
    let needed = header.unwrap_or_default().saturating_add(8);
    BLOB_53.require_as(Kind::Truncated, needed <= granted, offset, || {
        format!("the header counts {needed} bytes, the symbol has {granted}")
    })?;
    // Needed only where the check above is switched off: then the blob is all of `room`.
    let fits = usize::try_from(needed)
        .ok()
        .and_then(|needed| room.get(..needed));
    let bytes = fits.unwrap_or(room);
    if !known {
        return Ok((bytes, Size::Derived { room: granted }));
    }
    // BLOB-54: no loader reads these bytes, because it stops where the header ends.
    findings.expect(BLOB_54, Kind::Trailing, needed >= granted, offset, || {
        format!("the symbol has {granted} bytes, the blob ends after {needed}")
    })?;
    Ok((bytes, Size::Known(granted)))
}
