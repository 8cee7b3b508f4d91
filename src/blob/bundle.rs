//! Reads the library binaries of a file in one call.

use super::{Blob, container, detect};
use crate::rule::{Findings, Violation};
use container::{Embedded, Part, Role};
use std::borrow::Cow;
use std::sync::Arc;

/// A library binary that was read from a file, with the part of the file that it belongs to.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Bundle<'a> {
    /// Path of the archive member that contains the blob; empty for the file itself.
    pub member: String,
    /// The symbol whose data the blob is; empty for a raw blob.
    pub symbol: String,
    /// The prefix of a system library; empty otherwise.
    pub prefix: String,
    /// The packed functions that the host code of the same file or archive member exports (BLOB-62, BLOB-63).
    pub functions: Arc<[String]>,
    /// The symbol of the same member that names the entry function of the host code (BLOB-64).
    pub entry: Option<String>,
    /// The modules, each with its kind and payload; [`Blob::imports`] says which module imports which.
    pub blob: Blob<'a>,
    /// Offset of the blob in the file; `None` where the file encodes the bytes of the blob (gzip, C text). Offsets of modules and findings
    /// count from the start of the blob.
    pub offset: Option<u64>,
    /// Oddities of the blob that were tolerated.
    pub findings: Findings,
}

/// Reads every library binary in `bytes`, the content of a file of any form: shared objects, object files, archives, C text, raw blobs. The
/// symbol decides the layout; without a symbol, it is the layout that fits the bytes best (BLOB-18). A file without a library binary gives
/// an empty list.
///
/// ```
/// use tvmspec::blob;
/// use tvmspec::rule::Findings;
///
/// let file = std::fs::read("golden/blob/containers/tree3-0.8.so")?;
/// for bundle in blob::open(&file)? {
///     let blob = &bundle.blob;
///     for (index, module) in blob.modules.iter().enumerate() {
///         let payload = module.decode(blob.layout, &mut Findings::default())?;
///         let format = payload.as_ref().and_then(|payload| payload.format());
///         println!("{} {:?}, imports {:?}", module.kind, format, blob.imports(index));
///     }
///     assert_eq!(blob.imports(0), [1, 2]);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// The errors of [`container::open`] and [`Blob::read`], at an offset into the file. Where the file encodes the bytes (gzip, C text),
/// the offset counts from the start of the blob.
pub fn open(bytes: &[u8]) -> Result<Vec<Bundle<'_>>, Violation> {
    let file = container::open(bytes)?;
    let mut bundles = Vec::new();
    for mut part in file.parts {
        let blobs = std::mem::take(&mut part.blobs);
        // Members without a blob contain only code. An archive may have thousands of them.
        if blobs.is_empty() {
            continue;
        }
        // All bundles share one list, because a file may have as many blobs as functions.
        let functions: Arc<[String]> = part.functions().map(str::to_owned).collect();
        for embedded in blobs {
            bundles.push(read(&part, &functions, embedded)?);
        }
    }
    Ok(bundles)
}

/// Reads one library binary of `part`; `functions` are the functions that the part exports.
fn read<'a>(
    part: &Part<'_>,
    functions: &Arc<[String]>,
    embedded: Embedded<'a>,
) -> Result<Bundle<'a>, Violation> {
    let symbol = Some(embedded.symbol.as_str()).filter(|symbol| !symbol.is_empty());
    // BLOB-18: a raw blob has no symbol, and 0.2 and 0.7 share one symbol.
    let layout = detect::detect(&embedded.bytes, symbol);
    let mut findings = Findings::default();
    let blob = match embedded.bytes {
        Cow::Borrowed(bytes) => Blob::read(bytes, layout, &mut findings),
        // Bytes from gzip or C text live only as long as this function, so the blob keeps copies.
        Cow::Owned(bytes) => Blob::read(&bytes, layout, &mut findings).map(Blob::into_owned),
    };
    let blob = blob.map_err(|broken| broken.shifted(embedded.offset.unwrap_or(0)))?;
    let entry = part
        .symbols
        .iter()
        .find(|symbol| symbol.role == Role::Entry);
    Ok(Bundle {
        member: part.member.clone(),
        functions: Arc::clone(functions),
        entry: entry.map(|symbol| symbol.name.clone().into_owned()),
        symbol: embedded.symbol,
        prefix: embedded.prefix,
        offset: embedded.offset,
        blob,
        findings,
    })
}
