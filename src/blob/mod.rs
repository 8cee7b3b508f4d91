//! The library binary: every imported module of a library, and the tree in which they import each other.
//!
//! A host library contains it as data under one symbol. Four layouts were released, each named after the release that
//! introduced it ([`Layout`]); all begin with the same header.
//!
//! | field | layouts | bytes | rule |
//! |---|---|---|---|
//! | `nbytes` | all | u64, bytes that follow | BLOB-01, BLOB-02 |
//! | `count` | 0.2, 0.7, 0.21 | u64, entries that follow | BLOB-03 |
//! | `entry[i].key` | 0.2, 0.7, 0.21 | string | BLOB-04 |
//! | `entry[i]` payload | 0.2, 0.7, 0.21 | by the grammar of its kind, without a length | BLOB-05, BLOB-06 |
//! | `_import_tree` | 0.7, 0.21 | the last entry: `indptr`, `indices` | BLOB-07 .. BLOB-09 |
//! | `indptr`, `indices` | 0.22 | the import tree, first | BLOB-10 |
//! | `module[i].kind` | 0.22 | string, one for each row of the tree | BLOB-10, BLOB-04 |
//! | `module[i].payload` | 0.22 | u64 length, bytes; absent for `_lib` | BLOB-11 |
//!
//! [`open`] reads every library of a file in one call, for any container and any layout. Reading borrows: a payload is a slice of
//! the file. Any input is safe.
//!
//! ```
//! use tvmspec::blob::{self, Blob};
//! use tvmspec::release::Layout;
//!
//! let file = std::fs::read("golden/blob/containers/tree3-0.8.so")?;
//! let blob = blob::open(&file)?.remove(0).blob.expect("it has device code");
//! assert_eq!((blob.layout, blob.imports(0)), (Layout::V0_7, vec![1, 2]));
//! let newest = blob.convert(Layout::V0_22)?.write()?;
//! # Blob::read(&newest, Layout::V0_22)?.strict()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod container;
pub mod convert;
pub mod detect;
mod framed;
pub mod json;
mod library;
pub mod pack;
mod stored_module;
mod streamed;
mod unknown_kinds;
mod walk;

crate::rule::chapter_rules!("blob");
pub(crate) use rules::*;

pub use library::{StoredLibrary, open};
pub use stored_module::{LibraryModule, StoredModule};
pub use unknown_kinds::{ForeignKinds, is_unknown_kind};
pub use walk::ModulePlace;

use crate::import_tree::ImportTree;
use crate::release::Layout;
use crate::rule::{Findings, Kind, Tolerated, Violation};
use crate::wire::{Cursor, Trace, Writer};

/// The kind of the entry that represents the host library itself. It has no payload.
pub const LIBRARY: &str = "_lib";

/// The key of the entry that contains the import tree in layouts 0.7 and 0.21.
pub(crate) const IMPORT_TREE: &str = "_import_tree";

/// A library binary: its modules in order, and their import tree.
///
/// ```
/// use tvmspec::blob::Blob;
/// use tvmspec::release::Layout;
///
/// let bytes = std::fs::read("golden/blob/opencl-0.8.bin")?;
/// let blob = Blob::read(&bytes, Layout::V0_7)?.strict()?;
/// assert_eq!(blob.modules[1].kind(), "opencl");
/// assert_eq!(blob.write()?, bytes);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Blob<'a> {
    /// The layout that the blob was read from, or that it will be written in.
    pub layout: Layout,
    /// The modules; the import tree counts them from 0. Module 0 is the root, except in layout 0.2.
    pub modules: Vec<LibraryModule<'a>>,
    /// The import tree. `None` in layout 0.2, and in blobs of 0.7 and 0.21 that have no tree.
    pub tree: Option<ImportTree<'a>>,
}

/// The part of a blob that could be read before a violation stopped the reading.
#[derive(Debug)]
#[non_exhaustive]
pub struct PartialBlob<'a> {
    /// Everything before the violation; the whole blob if there is no violation.
    pub blob: Blob<'a>,
    /// Oddities that were found before the violation.
    pub findings: Findings,
    /// The violation that stopped the reading.
    pub broken: Option<Violation>,
}

impl<'a> Blob<'a> {
    /// Reads a blob, header included, and checks it against every rule of its layout.
    ///
    /// # Errors
    ///
    /// Returns the first broken rule of the chapters wire, tensor, payload, import_tree and blob, with its byte offset from the start of
    /// the header.
    pub fn read(bytes: &'a [u8], layout: Layout) -> Result<Tolerated<Blob<'a>>, Violation> {
        Tolerated::read(|findings| Blob::read_with(bytes, layout, findings))
    }

    /// Reads like [`Blob::read`], with the caller's strictness.
    pub(crate) fn read_with(
        bytes: &'a [u8],
        layout: Layout,
        findings: &mut Findings,
    ) -> Result<Blob<'a>, Violation> {
        let mut blob = Blob::empty(layout);
        blob.read_into(Cursor::new(bytes), findings, None)?;
        Ok(blob)
    }

    /// Reads a blob up to the first violation.
    pub fn read_partial(bytes: &'a [u8], layout: Layout) -> PartialBlob<'a> {
        let mut findings = Findings::default();
        let mut blob = Blob::empty(layout);
        let broken = blob
            .read_into(Cursor::new(bytes), &mut findings, None)
            .err();
        PartialBlob {
            blob,
            findings,
            broken,
        }
    }

    /// Reads like [`Blob::read_partial`] and records every field, including the fields inside payloads.
    pub fn read_traced(bytes: &'a [u8], layout: Layout, trace: &'a Trace) -> PartialBlob<'a> {
        let mut findings = Findings::default();
        let mut blob = Blob::empty(layout);
        let broken = blob
            // The trace ends where the reading ends: bytes after the violation have no fields.
            .read_into(Cursor::traced(bytes, trace), &mut findings, None)
            .err();
        PartialBlob {
            blob,
            findings,
            broken,
        }
    }

    /// Reads like [`Blob::read_partial`], or with `trace` like [`Blob::read_traced`], and continues after kinds that no release has. It
    /// continues if the end of the payload is known, either from the bytes or from a grammar that `unknown_kinds` states. Each such kind is a
    /// finding of BLOB-06.
    pub fn read_foreign(
        bytes: &'a [u8],
        layout: Layout,
        trace: Option<&'a Trace>,
        foreign: &ForeignKinds,
    ) -> PartialBlob<'a> {
        let mut findings = Findings::default();
        let mut blob = Blob::empty(layout);
        let cursor = match trace {
            Some(trace) => Cursor::traced(bytes, trace),
            None => Cursor::new(bytes),
        };
        let reading = unknown_kinds::ForeignReading::new(foreign);
        let broken = blob.read_into(cursor, &mut findings, Some(&reading)).err();
        PartialBlob {
            blob,
            findings,
            broken,
        }
    }

    /// Returns the bytes of the blob, header included, in the layout [`Blob::layout`].
    ///
    /// # Errors
    ///
    /// Returns BLOB-17 if the layout cannot express the content. [`Blob::convert`] creates a blob of another layout.
    pub fn write(&self) -> Result<Vec<u8>, Violation> {
        let mut body = Writer::new();
        match self.layout {
            Layout::V0_22 => framed::write(self, &mut body)?,
            _ => streamed::write(self, &mut body)?,
        }
        // BLOB-01: the header contains the length of the body, so the body is written first.
        let body = body.into_bytes();
        let mut out = Writer::new();
        // BLOB-01: `nbytes` comes first and does not count itself.
        out.bytes(&body);
        Ok(out.into_bytes())
    }

    /// Returns the indices of the modules that module `index` imports, in order.
    ///
    /// The list is empty if the blob has no tree.
    pub fn imports(&self, index: usize) -> Vec<usize> {
        let Some(tree) = &self.tree else {
            return Vec::new();
        };
        tree.children(index)
            // TREE-07: a child is less than the number of modules, which are in memory.
            .filter_map(|child| usize::try_from(child).ok())
            .collect()
    }

    /// Returns the blob with all borrowed bytes copied.
    pub fn into_owned(self) -> Blob<'static> {
        Blob {
            layout: self.layout,
            modules: self
                .modules
                .into_iter()
                .map(LibraryModule::into_owned)
                .collect(),
            tree: self.tree.map(ImportTree::into_owned),
        }
    }

    /// Creates a blob without modules, for `read_into` to fill.
    fn empty(layout: Layout) -> Blob<'a> {
        Blob {
            layout,
            modules: Vec::new(),
            tree: None,
        }
    }

    /// Reads the header (BLOB-01) and the body, and notes bytes after the body (BLOB-02).
    fn read_into(
        &mut self,
        mut file: Cursor<'a>,
        findings: &mut Findings,
        foreign: Option<&unknown_kinds::ForeignReading<'_>>,
    ) -> Result<(), Violation> {
        let nbytes = file.u64("nbytes", BLOB_01)?;
        let here = file.remaining() as u64;
        let nbytes = nbytes.require_as(
            Kind::Truncated,
            BLOB_01,
            |nbytes| *nbytes <= here,
            |nbytes| format!("the header counts {nbytes} bytes, {here} follow it"),
        )?;
        // BLOB-01: the body has only the bytes that the header counts. A loader has only an address and trusts the header, so it would read
        // past the blob.
        let mut body = file.split(nbytes.min(here), "body")?;
        match self.layout {
            Layout::V0_22 => framed::read(self, &mut body, findings, foreign)?,
            _ => streamed::read(self, &mut body, findings, foreign)?,
        }
        // BLOB-13 is checked after all kinds are known, because the host library may be any module.
        self.check_library(findings)?;
        if !file.is_at_end() {
            let left = file.remaining();
            let message = format!("{left} bytes follow the {nbytes} that the header counts");
            findings.note(BLOB_02, Kind::Trailing, file.offset(), message)?;
            file.skip_rest("trailing", BLOB_02);
        }
        Ok(())
    }

    /// Checks BLOB-13: without a `_lib`, the code of the host library cannot be reached. Layout 0.2 never has one, and a blob without a
    /// tree represents a host library without imports.
    fn check_library(&self, findings: &mut Findings) -> Result<(), Violation> {
        let has_tree = self.tree.is_some();
        let has_library = self.modules.iter().any(LibraryModule::is_host);
        // This is only a finding: a library without host code needs no `_lib`. With host code, its functions belong to no module.
        findings.expect(BLOB_13, Kind::Missing, has_library || !has_tree, 0, || {
            "no module is `_lib`: no host function of this library can be reached through the tree".into()
        })
    }

    /// Adds a module whose payload is at `offset`. It is built in its place: a module that is passed on by value is copied twice.
    #[inline]
    fn push_stored(&mut self, kind: &'a str, payload: &'a [u8], offset: u64) {
        self.modules.push(LibraryModule::Stored(StoredModule {
            kind: kind.into(),
            payload: payload.into(),
            layout: self.layout,
            offset,
        }));
    }

    /// Adds the host library, whose kind is at `offset`. Returns BLOB-12 for a second one.
    fn push_host(&mut self, offset: u64) -> Result<(), Violation> {
        // BLOB-12: 0.8 to 0.21 reject it. From 0.22 on, the host code finds its imports only through the last one. 0.7 writes one for each
        // host module (TREE-26), which is rejected here too.
        let again = self.modules.iter().any(LibraryModule::is_host);
        BLOB_12.require_as(Kind::Duplicate, !again, offset, || {
            "a second `_lib`: the host library can occur in the tree once".into()
        })?;
        self.modules.push(LibraryModule::Host);
        Ok(())
    }
}

/// Checks that a kind is not empty and contains no NUL (BLOB-04).
pub(crate) fn check_kind(kind: &str, offset: u64) -> Result<(), Violation> {
    // The kind is part of the name of its loader (PAY-99). 0.8 looks up an empty kind like any other. 0.27 treats it as the end of the
    // file.
    BLOB_04.require(!kind.is_empty() && !kind.contains('\0'), offset, || {
        let what = if kind.is_empty() {
            "is empty"
        } else {
            "contains a NUL"
        };
        format!("the kind `{}` {what}", kind.escape_default())
    })
}
