//! The rules that need the whole graph: no cycle, everything reached, not too deep. No recursion: a chain is as deep as
//! the file is long.

use super::{ImportTree, TREE_09, TREE_11, TREE_12};
use crate::rule::{Findings, Kind, Violation};
use std::ops::Range;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    Unseen,
    /// On the path from the start of the walk to here.
    Open,
    Done,
}

/// Holds `tree` to TREE-09, TREE-11 and TREE-12. Costs modules plus edges.
pub(super) fn check_shape(tree: &ImportTree<'_>, findings: &mut Findings) -> Result<(), Violation> {
    let modules = tree.modules();
    let mut walk = Walk {
        tree,
        marks: vec![Mark::Unseen; modules],
        below: vec![0; modules],
        path: Vec::new(),
    };
    walk.from(0)?;
    let mut lost = None;
    for start in 1..modules {
        if walk.mark(start) == Mark::Unseen {
            lost = lost.or(Some(start));
            // A cycle is one wherever it stands.
            walk.from(start)?;
        }
    }
    let lost_at = tree.indptr().offset_of(lost.unwrap_or(0));
    findings.expect(TREE_11, Kind::Malformed, lost.is_none(), lost_at, || {
        let lost = lost.unwrap_or(0);
        format!("module {lost} is not reached from module 0; loaders drop it")
    })?;
    let depth = walk.below.first().copied().unwrap_or(0);
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

struct Walk<'t, 'a> {
    tree: &'t ImportTree<'a>,
    marks: Vec<Mark>,
    /// The longest chain of imports below each finished module.
    below: Vec<usize>,
    /// The open modules, each with the part of its row that is still to be walked.
    path: Vec<(usize, Range<usize>)>,
}

impl Walk<'_, '_> {
    fn mark(&self, module: usize) -> Mark {
        self.marks.get(module).copied().unwrap_or(Mark::Done)
    }

    fn from(&mut self, start: usize) -> Result<(), Violation> {
        self.open(start);
        while let Some((module, row)) = self.path.last_mut() {
            let module = *module;
            let Some(position) = row.next() else {
                self.close(module);
                continue;
            };
            let child = self.tree.indices().get(position).unwrap_or(0);
            let Ok(child) = usize::try_from(child) else {
                continue;
            };
            match self.mark(child) {
                Mark::Unseen => self.open(child),
                Mark::Done => self.deepen(module, child),
                Mark::Open => {
                    let at = self.tree.indices().offset_of(position);
                    TREE_09.require_as(Kind::Cycle, child == module, at, || {
                        self.describe_cycle(child)
                    })?;
                }
            }
        }
        Ok(())
    }

    fn open(&mut self, module: usize) {
        if let Some(mark) = self.marks.get_mut(module) {
            *mark = Mark::Open;
            self.path.push((module, self.tree.row(module)));
        }
    }

    fn close(&mut self, module: usize) {
        if let Some(mark) = self.marks.get_mut(module) {
            *mark = Mark::Done;
        }
        self.path.pop();
        if let Some((parent, _)) = self.path.last() {
            self.deepen(*parent, module);
        }
    }

    fn deepen(&mut self, parent: usize, child: usize) {
        let below = self.below.get(child).copied().unwrap_or(0);
        if let Some(depth) = self.below.get_mut(parent) {
            *depth = (*depth).max(below.saturating_add(1));
        }
    }

    fn describe_cycle(&self, again: usize) -> String {
        const SHOWN: usize = 8;
        let mut names: Vec<String> = self
            .path
            .iter()
            .map(|(module, _)| *module)
            .skip_while(|module| *module != again)
            .map(|module| module.to_string())
            .collect();
        if names.len() > SHOWN {
            let left_out = names.len().saturating_sub(SHOWN);
            names.truncate(SHOWN);
            names.push(format!("({left_out} more)"));
        }
        names.push(again.to_string());
        format!("modules import each other: {}", names.join(" -> "))
    }
}
