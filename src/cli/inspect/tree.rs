//! The import tree, drawn with the lines of boxes:
//!
//! ```text
//! 0 _lib
//! ├─ 1 opencl
//! └─ 2 cuda
//! ```
//!
//! The file decides the form of the tree. A hostile one has cycles, chains and modules that all others import, so that the drawing is
//! limited.

use std::collections::HashSet;

/// The maximal depth. Each level indents everything below it, so that a chain of `n` modules would take `n` squared characters.
// TREE-12: a chain of up to 16,384 imports is no finding.
const DEEPEST: usize = 100;

/// The maximal number of lines. Each module is expanded once, but each import is a line, so that `n` modules can take `n` squared
/// lines.
const MOST: usize = 4_000;

/// Draws which module imports which, from `root` down, with one module per line: its `label`, indented below its importer.
///
/// A module that is imported twice is expanded once; later lines refer to it. A cycle ends where it closes. Modules deeper than
/// [`DEEPEST`] are left out with a note.
pub(super) fn draw(
    root: usize,
    imports: &dyn Fn(usize) -> Vec<usize>,
    label: &dyn Fn(usize) -> String,
) -> String {
    let mut out = String::new();
    let mut drawn = HashSet::new();
    // An explicit stack, because a chain of imports may be deeper than the call stack allows. For each module: its index, its depth,
    // the prefix of its line, and the prefix of its children.
    let mut stack = vec![(root, 0, String::new(), String::new())];
    let mut lines = 0;
    while let Some((module, depth, own, below)) = stack.pop() {
        if lines == MOST {
            out.push_str("  the rest is not drawn; --json lists it\n");
            break;
        }
        lines += 1;
        let mut children = imports(module);
        // The children after these can never be drawn.
        children.truncate(MOST);
        // A module without imports is only a line, and needs no note.
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
        // In reverse order, so that the first child is on top of the stack and drawn next.
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
