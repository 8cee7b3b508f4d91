//! The rules that need the whole graph: no cycle, every module reachable, limited depth. The walk does not recurse, because a chain can
//! be as long as the file.
//!
//! One word for each module stores its state: not visited, on the current path, or finished. For a finished module, the word is the length
//! of the longest chain of imports below it.

use super::{ImportTree, TREE_09, TREE_11, TREE_12};
use crate::rule::{Findings, Kind, Violation};
use std::ops::Range;

/// Value in `below`: the module was not visited yet.
pub(super) const UNSEEN: usize = usize::MAX;
/// Value in `below`: the module is on the path from the start of the walk to the current module. Meeting it again is a cycle.
const OPEN: usize = usize::MAX - 1;

/// Checks `tree` against TREE-09, TREE-11 and TREE-12, in time linear in modules and edges. `below` must hold [`UNSEEN`] for every module.
pub(super) fn check_shape(
    tree: &ImportTree<'_>,
    below: Vec<usize>,
    findings: &mut Findings,
) -> Result<(), Violation> {
    let modules = tree.modules();
    let path = Vec::new();
    let mut walk = TreeWalk { tree, below, path };
    // TREE-11: the walk from the root comes first, because loaders drop every module that the root does not reach.
    walk.from(0)?;
    let mut lost = None;
    for start in 1..modules {
        if walk.depth_below(start) == UNSEEN {
            lost = lost.or(Some(start));
            // A cycle is reported even if the root does not reach it.
            walk.from(start)?;
        }
    }
    if let Some(lost) = lost {
        let at = tree.indptr().offset_of(lost);
        let message = format!("module {lost} is not reached from module 0; loaders drop it");
        findings.note(TREE_11, Kind::Malformed, at, message)?;
    }
    // TREE-12: only the chain below the root counts, because lookups of functions recurse along it.
    let depth = walk.depth_below(0);
    let root_at = tree.indptr().offset_of(0);
    findings.expect(
        TREE_12,
        Kind::Limit,
        depth <= ImportTree::DEPTH,
        root_at,
        || {
            format!(
                "a chain of {depth} imports hangs below module 0; released loaders recurse along it and may run out of stack beyond {}",
                ImportTree::DEPTH
            )
        },
    )
}

/// A depth-first walk with an explicit stack.
struct TreeWalk<'t, 'a> {
    tree: &'t ImportTree<'a>,
    /// The longest chain of imports below each finished module; other modules are [`UNSEEN`] or [`OPEN`].
    below: Vec<usize>,
    /// The path from the start of the walk to the current module. These modules are [`OPEN`].
    path: Vec<OpenModule>,
}

/// A module on the current path.
struct OpenModule {
    module: usize,
    /// The part of its row that is not visited yet.
    row: Range<usize>,
    /// The longest chain below it that was found so far.
    depth: usize,
}

impl OpenModule {
    /// Adds a finished child, below which a chain of `below` imports hangs.
    fn record_child_depth(&mut self, below: usize) {
        self.depth = self.depth.max(below.saturating_add(1));
    }
}

impl TreeWalk<'_, '_> {
    /// Returns the word of `module`.
    fn depth_below(&self, module: usize) -> usize {
        self.below.get(module).copied().unwrap_or(0)
    }

    /// Sets the word of `module`.
    fn set(&mut self, module: usize, below: usize) {
        if let Some(slot) = self.below.get_mut(module) {
            *slot = below;
        }
    }

    /// Visits every module that `start` reaches and that was not visited before.
    fn from(&mut self, start: usize) -> Result<(), Violation> {
        self.open(start, self.tree.row(start));
        while let Some(step) = self.path.last_mut() {
            let Some(position) = step.row.next() else {
                self.close();
                continue;
            };
            let module = step.module;
            let child = self.tree.indices().get(position);
            let Some(child) = child.and_then(|child| usize::try_from(child).ok()) else {
                continue;
            };
            match self.below.get(child).copied().unwrap_or(0) {
                UNSEEN => self.open(child, self.tree.row(child)),
                OPEN => {
                    // TREE-09: loaders also accept a longer cycle, but a lookup through imports overflows the stack.
                    let at = self.tree.indices().offset_of(position);
                    // TREE-08 has rejected a module that imports itself; this check is about longer cycles.
                    TREE_09.require_as(Kind::Cycle, child == module, at, || {
                        self.describe_cycle(child)
                    })?;
                }
                // TREE-12: a module below two parents is visited once, and its depth is kept.
                below => step.record_child_depth(below),
            }
        }
        Ok(())
    }

    /// Adds `module` to the end of the path.
    fn open(&mut self, module: usize, row: Range<usize>) {
        if let Some(slot) = self.below.get_mut(module) {
            *slot = OPEN;
            self.path.push(OpenModule {
                module,
                row,
                depth: 0,
            });
        }
    }

    /// Finishes the last module of the path, after its row was visited.
    fn close(&mut self) {
        if let Some(OpenModule { module, depth, .. }) = self.path.pop() {
            self.set(module, depth);
            // TREE-12: the whole chain below the module is known only now.
            if let Some(parent) = self.path.last_mut() {
                parent.record_child_depth(depth);
            }
        }
    }

    /// Returns the cycle that starts at `again` as module numbers, shortened for a message.
    fn describe_cycle(&self, again: usize) -> String {
        const SHOWN: usize = 8;
        let mut names: Vec<String> = self
            .path
            .iter()
            .map(|step| step.module)
            // The path to the cycle is not part of it.
            .skip_while(|module| *module != again)
            .map(|module| module.to_string())
            .collect();
        if names.len() > SHOWN {
            let left_out = names.len().saturating_sub(SHOWN);
            // A cycle may be as long as the file.
            names.truncate(SHOWN);
            names.push(format!("({left_out} more)"));
        }
        names.push(again.to_string());
        format!("modules import each other: {}", names.join(" -> "))
    }
}
