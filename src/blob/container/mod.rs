//! Containers of a library binary: shared objects, object files, archives, C text. Nothing is executed.
//!
//! [`open`] returns the form of a file ([`FileForm`]). It finds every blob in the file, with the symbols that a TVM loader looks up. It
//! touches only headers and symbol tables: from a mapped library of 1 GB, a few pages are read. Blobs borrow the file; only bytes from gzip
//! or C text are copied.
//!
//! | file | content that is found | rule |
//! |---|---|---|
//! | ELF, Mach-O, PE, COFF, WebAssembly | bytes of each blob; functions, context, slots | BLOB-50 .. BLOB-55, BLOB-62 .. BLOB-65 |
//! | `.a`, `.tar`, gzip of a tar | the same for every member, by name | BLOB-56, BLOB-57, BLOB-68 |
//! | C text | the byte array | BLOB-58 |
//! | raw blob | the whole file; the bytes decide its layout | |

mod allowance;
mod archive;
mod c_signature;
pub(super) mod c_text;
mod container_part;
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
pub use container_part::{ContainerPart, EmbeddedBlob, Machine, Size};
pub use form::FileForm;
use gzip::{MAX_INFLATION, MAX_KEPT};
#[cfg(feature = "inspect")]
pub(crate) use linkage::is_interface;
#[cfg(feature = "suite")]
pub(crate) use linkage::made_for;
pub use linkage::{DynamicNames, Linkage, incompatibility, is_cpp_interface, is_native, linkage};
#[cfg(feature = "inspect")]
pub(crate) use llvm_text::llvm_text;
#[cfg(any(feature = "inspect", feature = "runtime"))]
pub(crate) use segments::cut_segment;
pub(super) use symbols::blob_symbol;
pub use symbols::{Role, Symbol};
pub use versions::SymbolVersions;

use super::{BLOB_53, BLOB_54, BLOB_57, BLOB_76};
use crate::rule::{Findings, Kind, Strictness, Violation};
use std::borrow::Cow;

/// Largest number of archives around a file (BLOB-57). TVM writes one level.
pub const MAX_DEPTH: u8 = 4;

/// A file whose container was read.
///
/// ```
/// use tvmspec::blob::container;
///
/// let file = std::fs::read("golden/blob/containers/tree3-0.8.so")?;
/// let container = container::open(&file)?;
/// assert_eq!(container.form.name(), "elf-shared");
/// for (part, blob) in container.blobs() {
///     assert_eq!((&*blob.symbol, part.machine.as_ref().map(|machine| machine.bits)), ("__tvm_dev_mblob", Some(64)));
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ContainerFile<'a> {
    /// The form of the file itself.
    pub form: FileForm,
    /// The file itself, or the members of an archive in order, including those of inner archives.
    pub parts: Vec<ContainerPart<'a>>,
    /// Oddities that were tolerated.
    pub findings: Findings,
}

impl<'a> ContainerFile<'a> {
    /// Returns every blob, with the part that contains it.
    pub fn blobs(&self) -> impl Iterator<Item = (&ContainerPart<'a>, &EmbeddedBlob<'a>)> {
        self.parts
            .iter()
            .flat_map(|part| part.blobs.iter().map(move |blob| (part, blob)))
    }
}

/// Opens `bytes`, the content of a file of any form, and finds its blobs and symbols.
///
/// A file of an unknown form is not an error: its form is [`FileForm::Unknown`], and it has no blob.
///
/// # Errors
///
/// Returns a violation of BLOB-52, BLOB-53, BLOB-55 to BLOB-58 or BLOB-68, at the byte of the file that breaks the rule.
pub fn open(bytes: &[u8]) -> Result<ContainerFile<'_>, Violation> {
    open_with(bytes, Strictness::Lenient)
}

/// Opens a file like [`open`]. Under [`Strictness::Strict`], a tolerated oddity (BLOB-54) is a violation.
///
/// # Errors
///
/// Fails like [`open`]. Also returns BLOB-54 under [`Strictness::Strict`].
pub fn open_with(bytes: &[u8], strictness: Strictness) -> Result<ContainerFile<'_>, Violation> {
    let mut walk = FileWalk {
        parts: Vec::new(),
        findings: Findings::new(strictness),
        allowance: Allowance::for_file_length(bytes.len()),
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
    Ok(ContainerFile {
        form,
        parts: walk.parts,
        findings: walk.findings,
    })
}

/// The results of a walk through a file and its containers.
struct FileWalk<'a> {
    parts: Vec<ContainerPart<'a>>,
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
    fn member_place(&self, name: &str, base: Option<u64>) -> MemberPlace {
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
    fn locate_violation(&self, broken: Violation) -> Violation {
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
        let is_object = |part: &&ContainerPart<'_>| {
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
        let named = |part: &ContainerPart<'_>| {
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
        let form = FileForm::detect(bytes);
        // BLOB-57: each level takes a stack frame, and nested gzip multiplies the number of inflated bytes.
        let shallow = !form.is_archive() || place.depth < MAX_DEPTH;
        BLOB_57
            .require_as(Kind::Limit, shallow, 0, || {
                format!("archives lie more than {MAX_DEPTH} deep in archives")
            })
            .map_err(|broken| place.locate_violation(broken))?;
        match form {
            FileForm::Archive => self.archive(bytes, &place)?,
            FileForm::MachOFat => self.visit_fat_images(bytes, &place)?,
            FileForm::Tar => self.tar(bytes, &place)?,
            FileForm::GzipTar => self.gzip_tar(bytes, &place)?,
            form => {
                let part = self
                    .read_part(bytes, form, &place)
                    .map_err(|broken| place.locate_violation(broken))?;
                let form = part.form;
                self.parts.push(part);
                return Ok(form);
            }
        }
        Ok(form)
    }

    /// Reads the part for a file that is not an archive: its blobs and its symbols.
    fn read_part(
        &mut self,
        bytes: &'a [u8],
        form: FileForm,
        place: &MemberPlace,
    ) -> Result<ContainerPart<'a>, Violation> {
        let mut part = ContainerPart {
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
            FileForm::RawBlob => part.blobs.push(EmbeddedBlob {
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

/// Limits a blob to the size in its header (BLOB-53, BLOB-54). `room` are the bytes from `offset` on that the container allows for the
/// blob. If `known`, they are exactly the blob; otherwise they are only an upper bound.
fn limit_to_header_size<'a>(
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
    // Needed only if the check above is disabled. Then the blob is all of `room`.
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
