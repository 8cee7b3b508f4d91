//! Conversion of a blob to another layout.
//!
//! Conversion reads every payload and writes it again, because only the grammar of a kind shows which bytes depend on the layout (BLOB-17).

use super::{BLOB_17, Blob, LibraryModule, StoredModule, streamed};
use crate::import_tree::ImportTree;
use crate::payload::Payload;
use crate::release::Layout;
use crate::rule::{Findings, Kind, Violation};
use crate::wire::Writer;

impl<'a> Blob<'a> {
    /// Converts to layout `to`, with the same modules and imports. Payloads whose form depends on the layout are rewritten.
    ///
    /// # Errors
    ///
    /// Returns BLOB-17, kind `unsupported`, if `to` cannot express the content. A layout without payload lengths cannot hold an unknown
    /// kind. Layout 0.2 holds only a host library whose imports import nothing. Also returns any violation inside a payload that has to
    /// be rewritten.
    pub fn convert(&self, to: Layout) -> Result<Blob<'a>, Violation> {
        // BLOB-17: for the same layout the bytes stay the same, opaque payloads and oddities included.
        if to == self.layout {
            return Ok(self.clone());
        }
        let modules = self
            .modules
            .iter()
            .map(|module| match module {
                LibraryModule::Host => Ok(LibraryModule::Host),
                LibraryModule::Stored(module) => module.convert(to).map(LibraryModule::Stored),
            })
            .collect::<Result<_, _>>()?;
        let mut blob = Blob {
            layout: to,
            modules,
            tree: self.tree.clone(),
        };
        match (self.layout, to) {
            // BLOB-14: in a loader of 0.2, the library that contains the blob becomes the root.
            (Layout::V0_2, _) => blob.put_library_on_top()?,
            (_, Layout::V0_2) => blob.drop_library()?,
            // BLOB-03: in 0.7 and 0.21, a count of 0 means a host library without imports. Layout 0.22 counts modules by its tree, so
            // the tree is needed.
            (_, Layout::V0_22) if blob.tree.is_none() => blob.put_library_on_top()?,
            _ => {}
        }
        Ok(blob)
    }

    /// Adds the tree that a loader builds for a blob without one: the host library on top, importing every module in order.
    fn put_library_on_top(&mut self) -> Result<(), Violation> {
        let imported = self.modules.len() as u64;
        self.modules.insert(0, LibraryModule::Host);
        // TREE-02: row 0 contains all children. The other rows start at its end and are empty.
        let mut indptr = vec![imported; self.modules.len().saturating_add(1)];
        if let Some(first) = indptr.first_mut() {
            *first = 0;
        }
        let indices: Vec<u64> = (1..=imported).collect();
        self.tree = Some(ImportTree::new(
            &indptr,
            &indices,
            &mut Findings::default(),
        )?);
        Ok(())
    }

    /// Removes the root and the tree for layout 0.2, which stores only one level below the root.
    fn drop_library(&mut self) -> Result<(), Violation> {
        // BLOB-17: layout 0.2 could store each of these blobs only with a loss.
        let rejected = |message: &str| Err(BLOB_17.rejected(Kind::Unsupported, message));
        match self.modules.first() {
            // BLOB-03: in layout 0.2, too, a count of 0 stands for a host library without imports.
            None if self.tree.is_none() => return Ok(()),
            None => return rejected("the import tree has rows, and the blob has no modules"),
            Some(root) if !root.is_host() => {
                return rejected(
                    "the root is not the host library, and layout 0.2 has no other root",
                );
            }
            Some(_) => {}
        }
        // BLOB-17: a tree of two levels would be read back as one level.
        let nested = (1..self.modules.len()).any(|index| !self.imports(index).is_empty());
        if nested {
            return rejected(
                "a module below the root imports another, and layout 0.2 has one level only",
            );
        }
        // BLOB-14: a loader of 0.2 imports the entries in their order, so they are stored in the order of the imports.
        let order: Vec<usize> = self.imports(0);
        // TREE-11, TREE-10: some module is never imported, or one is imported twice.
        if order.len().saturating_add(1) != self.modules.len() {
            return rejected(
                "a module is not imported by the root, and layout 0.2 has no other way to hold it",
            );
        }
        self.modules = order
            .iter()
            .filter_map(|index| self.modules.get(*index).cloned())
            .collect();
        self.tree = None;
        Ok(())
    }
}

impl<'a> StoredModule<'a> {
    /// Rewrites the payload with the same fields, in their form for layout `to` (BLOB-17).
    fn convert(&self, to: Layout) -> Result<StoredModule<'a>, Violation> {
        let from = self.layout;
        let unchanged = || StoredModule {
            layout: to,
            ..self.clone()
        };
        // BLOB-06: a payload whose end was found without a grammar is kept unchanged.
        let is_foreign = from < Layout::V0_22 && !streamed::is_known(&self.kind, from);
        let payload = if is_foreign {
            None
        } else {
            Some(self.decode()?.value)
        };
        let payload = match payload {
            Some(Payload::Opaque { .. }) | None if to != Layout::V0_22 => {
                let message = format!(
                    "layout {to} has no payload lengths, and nothing states where the payload ends of kind `{}`",
                    self.kind
                );
                return Err(BLOB_17.rejected(Kind::Unsupported, message));
            }
            Some(mut payload) => {
                // PAY-08: no release of the compiler stores tags with functions of WebGPU.
                if from < Layout::V0_21 && to >= Layout::V0_21 && self.kind != "webgpu" {
                    // PAY-03: the bytes do not show whether the field is present, so old functions are written with tags that mean nothing.
                    payload.fill_extra_tags();
                }
                payload
            }
            None => return Ok(unchanged()),
        };
        let mut out = Writer::new();
        payload.write(to, &mut out)?;
        // Unchanged bytes stay borrowed and keep their offset in the file.
        let written = out.into_bytes();
        if *written == *self.payload {
            return Ok(unchanged());
        }
        Ok(StoredModule::new(self.kind.clone(), written, to))
    }
}
