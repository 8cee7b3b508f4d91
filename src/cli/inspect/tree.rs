//! The import tree, drawn with the lines of boxes:
//!
//! ```text
//! 0 _lib
//! ├─ 1 opencl
//! └─ 2 cuda
//! ```
//!
//! A file decides how the tree looks, and a hostile one has cycles, chains and modules that all others import: the
//! drawing is bounded.

use std::collections::HashSet;

/// How deep is drawn. Every level indents all below it, so a chain of `n` modules would take `n` squared characters.
// TREE-12: a chain of 16,384 imports is no finding.
const DEEPEST: usize = 100;

/// How many lines are drawn. Modules are drawn once, but what they import is a line each time: `n` modules can take
/// `n` squared lines.
const MOST: usize = 4_000;

/// Draws which module imports which from `root` down, one module a line: its `label`, indented below its importer.
///
/// A module that is imported twice is drawn whole once; later lines refer to it. A cycle ends where it closes,
/// and what is below [`DEEPEST`] is left out with a note.
pub(super) fn draw(
    root: usize,
    imports: &dyn Fn(usize) -> Vec<usize>,
    label: &dyn Fn(usize) -> String,
) -> String {
    let mut out = String::new();
    let mut drawn = HashSet::new();
    // Explicit, because a chain of imports may be longer than a call stack is deep. Of each module: its index, how deep
    // it is, the lines to draw in front of itself, and those in front of its children.
    let mut stack = vec![(root, 0, String::new(), String::new())];
    let mut lines = 0;
    while let Some((module, depth, own, below)) = stack.pop() {
        if lines == MOST {
            out.push_str("  the rest is not drawn; --json lists it\n");
            break;
        }
        lines += 1;
        let mut children = imports(module);
        // Those behind are not reached.
        children.truncate(MOST);
        // A module without imports is a line anyway, and needs no note.
        let again = drawn.contains(&module) && !children.is_empty();
        let deep = depth >= DEEPEST && !children.is_empty();
        let note = if again {
            "  (its imports are above)"
        } else if deep {
            "  (its imports are too deep to draw; --json lists them)"
        } else {
            ""
        };
        out.push_str(&format!("  {own}{}{note}\n", label(module)));
        if again || deep {
            continue;
        }
        drawn.insert(module);
        // Backwards, so that the first is on top of the stack and drawn next.
        for (position, child) in children.iter().enumerate().rev() {
            let (own, next) = if position + 1 == children.len() {
                ("└─ ", "   ")
            } else {
                ("├─ ", "│  ")
            };
            let (own, next) = (format!("{below}{own}"), format!("{below}{next}"));
            stack.push((*child, depth + 1, own, next));
        }
    }
    out
}
