//! The same content in another layout.
//!
//! Converting reads every payload and writes it again: only the grammar of a kind shows what of it depends on the layout (BLOB-17).

use super::{BLOB_17, Blob, LIBRARY, StoredModule, streamed};
use crate::import_tree::ImportTree;
use crate::payload::Payload;
use crate::release::Layout;
use crate::rule::{Findings, Kind, Violation};
use crate::wire::Writer;
use std::borrow::Cow;

impl<'a> Blob<'a> {
    /// The same modules and the same imports in layout `to`. Payloads whose form depends on the layout are rewritten.
    ///
    /// # Errors
    ///
    /// BLOB-17, kind `unsupported`, where `to` cannot hold the content: an unknown kind in a layout without payload
    /// lengths, anything but a host library that imports leaves in 0.2. Any violation inside a payload that has to be
    /// rewritten.
    pub fn convert(&self, to: Layout) -> Result<Blob<'a>, Violation> {
        // BLOB-17: the same layout is the same bytes, opaque payloads and oddities included.
        if to == self.layout {
            return Ok(self.clone());
        }
        let modules = self
            .modules
            .iter()
            .map(|module| module.convert(self.layout, to))
            .collect::<Result<_, _>>()?;
        let mut blob = Blob {
            layout: to,
            modules,
            tree: self.tree.clone(),
        };
        match (self.layout, to) {
            // BLOB-14: a loader of 0.2 puts the library that carries the blob in the place of the root.
            (Layout::V0_2, _) => blob.put_library_on_top()?,
            (_, Layout::V0_2) => blob.drop_library()?,
            // BLOB-03: a count of 0 is a lone host library in 0.7 and 0.21. In 0.22 the tree is the count, and there must be one.
            (_, Layout::V0_22) if blob.tree.is_none() => blob.put_library_on_top()?,
            _ => {}
        }
        Ok(blob)
    }

    /// What a loader makes of a blob without a tree: the host library on top, importing every module in order.
    fn put_library_on_top(&mut self) -> Result<(), Violation> {
        let imported = self.modules.len() as u64;
        self.modules.insert(
            0,
            StoredModule {
                kind: LIBRARY.into(),
                payload: None,
                offset: 0,
            },
        );
        // TREE-02: row 0 has all of them, and the others, which begin where it ends, none.
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

    /// Layout 0.2 leaves the root out and has room for one level below it.
    fn drop_library(&mut self) -> Result<(), Violation> {
        // BLOB-17: each of these is a blob that layout 0.2 could hold only by losing something.
        let rejected = |message: &str| Err(BLOB_17.rejected(Kind::Unsupported, message));
        match self.modules.first() {
            None => return rejected("layout 0.2 is not written for a library without imports"),
            Some(root) if root.kind != LIBRARY => {
                return rejected(
                    "the root is not the host library, and layout 0.2 has no other root",
                );
            }
            Some(_) => {}
        }
        // BLOB-17: a tree of two levels would come back flat.
        let nested = (1..self.modules.len()).any(|index| !self.imports(index).is_empty());
        if nested {
            return rejected(
                "a module below the root imports another, and layout 0.2 has one level only",
            );
        }
        // BLOB-14: a loader of 0.2 imports the entries in their order, so that the order of the imports is what must be stored.
        let order: Vec<usize> = self.imports(0);
        // TREE-11, TREE-10: a module that nothing imports, or that is imported twice.
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
    /// The module with its payload as layout `to` stores it (BLOB-17): the same fields, in the form that `to` has for them.
    fn convert(&self, from: Layout, to: Layout) -> Result<StoredModule<'a>, Violation> {
        let Some(bytes) = &self.payload else {
            return Ok(self.clone());
        };
        // BLOB-06: a payload whose end was found without a grammar is carried as it is.
        let is_foreign = from < Layout::V0_22 && !streamed::is_known(&self.kind, from);
        if is_foreign && to == Layout::V0_22 {
            return Ok(self.clone());
        }
        let mut findings = Findings::default();
        let payload = match self.decode(from, &mut findings) {
            _ if is_foreign => None,
            decoded => decoded?,
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
                // PAY-08: compilers store no tags with functions of WebGPU, in any release.
                if from < Layout::V0_21 && to >= Layout::V0_21 && self.kind != "webgpu" {
                    // PAY-03: nothing in the bytes announces the field, so that old functions are written with tags that mean
                    // nothing.
                    payload.fill_extra_tags();
                }
                payload
            }
            None => return Ok(self.clone()),
        };
        let mut out = Writer::new();
        payload.write(to, &mut out)?;
        // Bytes that are as they were stay borrowed, and keep their place in the file.
        let written = out.into_bytes();
        let kept = written == bytes.as_ref();
        let payload = if kept {
            bytes.clone()
        } else {
            Cow::Owned(written)
        };
        Ok(StoredModule {
            kind: self.kind.clone(),
            payload: Some(payload),
            offset: if kept { self.offset } else { 0 },
        })
    }
}
