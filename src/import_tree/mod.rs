//! The import tree: which module imports which, in compressed sparse rows (CSR), and the order of the modules.
//!
//! | field | bytes | rule |
//! |---|---|---|
//! | `indptr` | vector of u64, modules + 1 | TREE-01 .. TREE-06, TREE-13 |
//! | `indices` | vector of u64 | TREE-01, TREE-07 .. TREE-12 |
//!
//! [`order`] works in the other direction: from a graph of modules to groups, order and rows, as each release creates them.
//!
//! ```
//! use tvmspec::import_tree::ImportTree;
//! use tvmspec::rule::{Findings, Violation};
//!
//! // Three modules: the first imports the two others, which import none.
//! let tree = ImportTree::new(&[0, 2, 2, 2], &[1, 2], &mut Findings::default())?;
//! assert_eq!(tree.children(0).collect::<Vec<u64>>(), [1, 2]);
//!
//! let broken = ImportTree::new(&[0, 2, 1, 2], &[1, 2], &mut Findings::default()).unwrap_err();
//! assert_eq!(broken.rule().id(), "TREE-03");
//! # Ok::<(), Violation>(())
//! ```

#[cfg_attr(not(feature = "suite"), allow(dead_code))]
pub mod json;
mod order;
mod walk;

crate::rule::chapter_rules!("import_tree");
pub(crate) use rules::*;

pub use order::{Algorithm, ModuleGraph, ModuleNode, Order, order};

use crate::rule::{Findings, Kind, Violation};
use crate::wire::{Cursor, Words, Writer};

/// The import tree: row `i` lists the modules that module `i` imports. It borrows the bytes of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportTree<'a> {
    indptr: Words<'a>,
    indices: Words<'a>,
}

impl<'a> ImportTree<'a> {
    /// The longest chain of imports that is not reported (TREE-12). Released loaders recurse along it.
    pub const DEPTH: usize = 16_384;

    /// Creates a tree that was never in a file, and checks every rule. Offsets of violations count as if `indptr` began at byte 0.
    ///
    /// # Errors
    ///
    /// The first rule of TREE-02 to TREE-12 that the tree breaks. A rule that is not a MUST is an error only with strict findings.
    pub fn new(
        indptr: &[u64],
        indices: &[u64],
        findings: &mut Findings,
    ) -> Result<ImportTree<'static>, Violation> {
        let tree = ImportTree {
            indptr: indptr.into(),
            indices: indices.into(),
        };
        tree.check(findings)?;
        Ok(tree)
    }

    /// Reads both vectors and checks every rule of this chapter except TREE-13, which `ImportTree::check_modules` checks.
    ///
    /// # Errors
    ///
    /// Returns WIRE-01 or WIRE-06 if a vector is truncated. Also returns the errors of [`ImportTree::new`], at the byte of the number.
    pub fn read(
        cursor: &mut Cursor<'a>,
        findings: &mut Findings,
    ) -> Result<ImportTree<'a>, Violation> {
        let indptr = cursor.words("indptr", TREE_01)?;
        let indices = cursor.words("indices", TREE_01)?;
        let tree = ImportTree { indptr, indices };
        tree.check(findings).map_err(|broken| {
            // The checks know words and their offsets, but not their field names.
            let field = broken.offset().map(|offset| tree.field_at(offset));
            broken.in_field(field.as_deref().unwrap_or("indptr"))
        })?;
        Ok(tree)
    }

    /// Writes both vectors.
    pub fn write(&self, out: &mut Writer) {
        out.words(&self.indptr);
        out.words(&self.indices);
    }

    /// Returns the tree with all borrowed bytes copied.
    pub fn into_owned(self) -> ImportTree<'static> {
        ImportTree {
            indptr: self.indptr.into_owned(),
            indices: self.indices.into_owned(),
        }
    }

    /// Returns the number of modules in the tree.
    pub fn modules(&self) -> usize {
        self.indptr.len().saturating_sub(1)
    }

    /// Returns the modules that module `parent` imports, in order; empty for a module that does not exist.
    pub fn children(&self, parent: usize) -> impl Iterator<Item = u64> + '_ {
        self.row(parent)
            .filter_map(|position| self.indices.get(position))
    }

    /// Returns whether module 0 imports all others in their order, and no other module imports any. Most libraries have such a tree,
    /// which cannot break a rule about children.
    pub(crate) fn is_flat(&self) -> bool {
        let others = 1..self.modules() as u64;
        // TREE-07 to TREE-12: the children 1, 2, 3, ... of module 0 exist, differ from it, occur once, and import nothing.
        self.row(0).len() == self.indices.len() && self.indices.iter().eq(others)
    }

    /// Returns the start of each row, and the end of the last row.
    pub fn indptr(&self) -> &Words<'a> {
        &self.indptr
    }

    /// Returns the rows, one after the other.
    pub fn indices(&self) -> &Words<'a> {
        &self.indices
    }

    /// Checks that the tree has a row for each of the library's `modules` (TREE-13).
    ///
    /// Only layouts 0.7 and 0.21 can break this: from 0.22 on, the number of rows defines the number of modules.
    pub(crate) fn check_modules(&self, modules: usize) -> Result<(), Violation> {
        // TREE-13: the violation is reported at the count of `indptr`, which comes before its words.
        let at = self.indptr.offset_of(0).saturating_sub(8);
        TREE_13
            .require(self.modules() == modules, at, || {
                format!("the tree has {} rows for {modules} modules", self.modules())
            })
            .map_err(|broken| broken.in_field("indptr"))
    }

    /// Checks TREE-02 to TREE-12.
    fn check(&self, findings: &mut Findings) -> Result<(), Violation> {
        self.check_rows(findings)?;
        // A flat tree, which most libraries have, cannot have a cycle. This check takes no memory.
        if self.is_flat() {
            return Ok(());
        }
        let mut named_by = self.check_children(findings)?;
        // The walk reuses this memory, which is 8 MB for a million modules.
        named_by.fill(walk::UNSEEN);
        walk::check_shape(self, named_by, findings)
    }

    /// Checks `indptr` alone and against the number of children (TREE-02 to TREE-06).
    fn check_rows(&self, findings: &mut Findings) -> Result<(), Violation> {
        let indices = self.indices.len() as u64;
        let count_at = self.indptr.offset_of(0).saturating_sub(8);
        // TREE-02: the loader of 0.27 computes 2^64 - 1 modules from an empty `indptr`, and crashes on one word. The loaders of 0.7 to 0.21
        // treat an empty `indptr` as a missing tree.
        TREE_02.require(self.modules() > 0, count_at, || {
            let words = self.indptr.len();
            format!(
                "indptr has {words} words, which is not a module; the smallest tree has two words"
            )
        })?;
        let (Some(first), Some(last)) = (self.indptr.get(0), self.indptr.last()) else {
            return Ok(());
        };
        let mut start = first;
        for (row, end) in self.indptr.iter().skip(1).enumerate() {
            let at = self.indptr.offset_of(row.saturating_add(1));
            // TREE-03: loaders accept this row and drop its imports, so that a kernel is missing when it is first called.
            TREE_03.require(start <= end, at, || {
                format!("row {row} ends at {end}, before its start {start}")
            })?;
            // TREE-04: loaders read past the end of the vector.
            TREE_04.require(end <= indices, at, || {
                format!("row {row} ends at {end}, but there are only {indices} indices")
            })?;
            start = end;
        }
        let first_at = self.indptr.offset_of(0);
        // TREE-05, TREE-06: children outside of every row belong to no module. No loader reads them, so such a file works.
        findings.expect(TREE_05, Kind::Malformed, first == 0, first_at, || {
            format!("the first row starts at {first}, so {first} indices belong to no module")
        })?;
        let last_at = self.indptr.offset_of(self.modules());
        findings.expect(TREE_06, Kind::Malformed, last >= indices, last_at, || {
            format!("the last row ends at {last}, but there are {indices} indices")
        })
    }

    /// Checks every child against TREE-07, TREE-08 and TREE-10. Returns its memory, for reuse by the next walk.
    fn check_children(&self, findings: &mut Findings) -> Result<Vec<usize>, Violation> {
        let modules = self.modules();
        // The last parent that imported each module. It finds a repetition in a row of any length with one lookup.
        let mut named_by = vec![usize::MAX; modules];
        for parent in 0..modules {
            for (position, child) in self.listed(self.row(parent)) {
                let at = self.indices.offset_of(position);
                let slot = usize::try_from(child)
                    .ok()
                    .and_then(|child| named_by.get_mut(child));
                TREE_07.require(slot.is_some(), at, || {
                    format!("module {parent} imports module {child}, but there are only {modules}")
                })?;
                // TREE-08: loaders accept it. The first lookup through imports overflows the stack, and the module is never freed.
                TREE_08.require_as(Kind::Cycle, child != parent as u64, at, || {
                    format!("module {parent} imports itself")
                })?;
                let Some(slot) = slot else { continue };
                // TREE-10: 0.7 stores an import as often as it was made, and later writers store it once. Loaders import it as often as
                // it is stored.
                findings.expect(TREE_10, Kind::Duplicate, *slot != parent, at, || {
                    format!("module {parent} imports module {child} twice")
                })?;
                *slot = parent;
            }
        }
        // TREE-07 also applies to children outside of every row, although no loader follows them.
        for (position, child) in self.listed(0..self.indices.len()) {
            let kept = child < modules as u64;
            TREE_07.require(kept, self.indices.offset_of(position), || {
                format!("module {child} is listed, but there are only {modules}")
            })?;
        }
        Ok(named_by)
    }

    /// Returns the range of the row of `parent` in `indices`. It never exceeds `indices`, even for wrong rows.
    pub(crate) fn row(&self, parent: usize) -> std::ops::Range<usize> {
        self.start_of(parent)..self.start_of(parent.saturating_add(1))
    }

    /// Returns the start of the row of `parent`, limited to the length of `indices`.
    fn start_of(&self, parent: usize) -> usize {
        let word = self.indptr.get(parent).unwrap_or(0);
        usize::try_from(word)
            .unwrap_or(usize::MAX)
            .min(self.indices.len())
    }

    /// Returns the children at these positions in `indices`, with their positions.
    fn listed(&self, positions: impl Iterator<Item = usize>) -> impl Iterator<Item = (usize, u64)> {
        positions.filter_map(|position| Some((position, self.indices.get(position)?)))
    }

    /// Returns the name of the element at `offset`, for example `indptr[2]`.
    fn field_at(&self, offset: u64) -> String {
        for (name, words) in [("indptr", &self.indptr), ("indices", &self.indices)] {
            let start = words.offset_of(0);
            let index = offset.saturating_sub(start) / 8;
            if offset >= start && index < words.len() as u64 {
                return format!("{name}[{index}]");
            }
        }
        "indptr".into()
    }
}
