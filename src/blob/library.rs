//! Reads the libraries of a file in one call.

use super::container::{self, ContainerPart, EmbeddedBlob, Role};
use super::{BLOB_75, Blob, LibraryModule, detect, pack};
use crate::rule::{Findings, Kind, Violation};
use std::borrow::Cow;
use std::sync::Arc;

/// A compiled library as its file stores it: the library binary, and the host code around it. [`open`] returns it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StoredLibrary<'a> {
    /// Path of the archive member that contains the blob; empty for the file itself.
    pub member: String,
    /// The symbol of the blob; empty for a raw blob, and for a library without a blob.
    pub symbol: String,
    /// The prefix of a system library; empty otherwise.
    pub prefix: String,
    /// The packed functions that the host code of the same file or archive member exports (BLOB-62, BLOB-63). For a library without a
    /// blob, those of all members.
    pub functions: Arc<[String]>,
    /// The symbol of the same member that names the entry function of the host code (BLOB-64).
    pub entry: Option<String>,
    /// The library binary: all modules and their imports. `None` for host code alone, which imports nothing (BLOB-03).
    pub blob: Option<Blob<'a>>,
    /// The position of the blob among those of the file, as an argument for [`pack::replace`].
    pub index: usize,
    /// Offset of the blob in the file; `None` if the file contains the blob only in encoded form (gzip, C text). Offsets of modules and
    /// findings count from the start of the blob.
    pub offset: Option<u64>,
    /// Oddities of the blob that were tolerated.
    pub findings: Findings,
}

impl<'a> StoredLibrary<'a> {
    /// Returns the modules of the blob in their order, or the host library alone if there is no blob.
    pub fn modules(&self) -> &[LibraryModule<'a>] {
        match &self.blob {
            Some(blob) => &blob.modules,
            None => &[LibraryModule::Host],
        }
    }

    /// Returns a copy of `file` in which this library's blob replaces the blob that was read from there. Everything else is unchanged.
    ///
    /// ```
    /// use tvmspec::blob;
    /// use tvmspec::rule::Violation;
    ///
    /// let file = std::fs::read("golden/blob/containers/tree3-0.8.so")?;
    /// let mut library = blob::open(&file)?.remove(0);
    /// let blob = library.blob.as_mut().expect("it has device code");
    /// let metal = blob.modules[1].stored_mut().expect("a module with a payload");
    /// metal.edit(|payload| {
    ///     payload.functions_mut().expect("device code")[0].key = "renamed".into();
    ///     Ok::<(), Violation>(())
    /// })?;
    /// let changed = library.replace_in(&file)?;
    /// assert_eq!(blob::open(&changed)?[0].modules()[1].payload(), library.modules()[1].payload());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Fails like [`Blob::write`] and [`pack::replace`]. Returns BLOB-75, kind missing, for a library without a blob.
    pub fn replace_in(&self, file: &[u8]) -> Result<Vec<u8>, Violation> {
        let Some(blob) = &self.blob else {
            return Err(BLOB_75.rejected(
                Kind::Missing,
                "the library is host code alone, and has no library binary to replace",
            ));
        };
        pack::replace(file, self.index, &blob.write()?)
    }
}

/// Reads every library in `bytes`, the content of a file of any form: shared objects, object files, archives, C text, raw blobs. The
/// symbol decides the layout. Without a symbol, the layout that fits the bytes best is used (BLOB-18).
///
/// The list has one library for each library binary. Compiled code without a library binary gives one library without a blob. Any other
/// file gives an empty list.
///
/// ```
/// use tvmspec::blob::{self, LibraryModule};
///
/// let file = std::fs::read("golden/blob/containers/tree3-0.8.so")?;
/// for library in blob::open(&file)? {
///     println!("functions {:?}", library.functions);
///     for module in library.modules().iter().filter_map(LibraryModule::stored) {
///         let payload = module.decode()?.value;
///         println!("{} {:?}", module.kind, payload.format());
///     }
///     assert!(library.findings.is_empty());
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// Fails like [`container::open`] and [`Blob::read`], at an offset into the file. If the file contains the blob only in encoded form
/// (gzip, C text), the offset counts from the start of the blob.
pub fn open(bytes: &[u8]) -> Result<Vec<StoredLibrary<'_>>, Violation> {
    let mut file = container::open(bytes)?;
    let mut libraries = Vec::new();
    for part in &mut file.parts {
        let blobs = std::mem::take(&mut part.blobs);
        // Members without a blob contain only code. An archive may have thousands of them.
        if blobs.is_empty() {
            continue;
        }
        // All libraries share one list, because a file may have as many blobs as functions.
        let functions: Arc<[String]> = part.functions().map(str::to_owned).collect();
        for embedded in blobs {
            let index = libraries.len();
            libraries.push(read(part, &functions, embedded, index)?);
        }
    }
    if libraries.is_empty() && file.parts.iter().any(ContainerPart::is_compiled) {
        libraries.push(library_without_blob(&file.parts));
    }
    Ok(libraries)
}

/// Reads one library binary of `part`; `functions` are the functions that the part exports.
fn read<'a>(
    part: &ContainerPart<'_>,
    functions: &Arc<[String]>,
    embedded: EmbeddedBlob<'a>,
    index: usize,
) -> Result<StoredLibrary<'a>, Violation> {
    let symbol = Some(embedded.symbol.as_str()).filter(|symbol| !symbol.is_empty());
    // BLOB-18: a raw blob has no symbol, and 0.2 and 0.7 share one symbol.
    let layout = detect::detect(&embedded.bytes, symbol);
    let blob = match embedded.bytes {
        Cow::Borrowed(bytes) => Blob::read(bytes, layout),
        // Bytes from gzip or C text live only as long as this function, so the blob keeps copies.
        Cow::Owned(bytes) => Blob::read(&bytes, layout).map(|read| read.map(Blob::into_owned)),
    };
    let blob = blob.map_err(|broken| broken.shifted(embedded.offset.unwrap_or(0)))?;
    Ok(StoredLibrary {
        member: part.member.clone(),
        functions: Arc::clone(functions),
        entry: entry(part),
        symbol: embedded.symbol,
        prefix: embedded.prefix,
        offset: embedded.offset,
        blob: Some(blob.value),
        index,
        findings: blob.findings,
    })
}

/// Returns the library of a file that has host code but no library binary.
fn library_without_blob(parts: &[ContainerPart<'_>]) -> StoredLibrary<'static> {
    let functions = parts.iter().flat_map(ContainerPart::functions);
    StoredLibrary {
        member: String::new(),
        symbol: String::new(),
        // BLOB-51: the context symbol has the prefix of a system library too.
        prefix: parts
            .iter()
            .find_map(ContainerPart::prefix)
            .unwrap_or_default()
            .to_owned(),
        functions: functions.map(str::to_owned).collect(),
        entry: parts.iter().find_map(entry),
        blob: None,
        index: 0,
        offset: None,
        findings: Findings::default(),
    }
}

/// Returns the symbol that names the entry function of the host code (BLOB-64).
fn entry(part: &ContainerPart<'_>) -> Option<String> {
    let symbol = part
        .symbols
        .iter()
        .find(|symbol| symbol.role == Role::Entry)?;
    Some(symbol.name.clone().into_owned())
}
