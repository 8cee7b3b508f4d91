//! The import tree, drawn.

use std::collections::HashSet;

/// Draws who imports whom from `root` down, one module a line: its `label`, indented below whoever imports it.
///
/// A module that is imported twice is drawn whole once; later lines refer to it. A cycle ends where it closes.
pub(super) fn draw(
    root: usize,
    imports: &dyn Fn(usize) -> Vec<usize>,
    label: &dyn Fn(usize) -> String,
) -> String {
    let mut out = String::new();
    let mut drawn = HashSet::new();
    // Explicit, because a chain of imports may be longer than a call stack is deep. Of each module: its index, the
    // lines to draw in front of its children, and those in front of itself.
    let mut stack = vec![(root, String::new(), String::new())];
    while let Some((module, own, below)) = stack.pop() {
        let children = imports(module);
        let again = drawn.contains(&module) && !children.is_empty();
        let note = if again {
            "  (its imports are above)"
        } else {
            ""
        };
        out.push_str(&format!("  {own}{}{note}\n", label(module)));
        if again {
            continue;
        }
        drawn.insert(module);
        for (position, child) in children.iter().enumerate().rev() {
            let (own, next) = match position + 1 == children.len() {
                true => ("└─ ", "   "),
                false => ("├─ ", "│  "),
            };
            stack.push((*child, format!("{below}{own}"), format!("{below}{next}")));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diamond_is_drawn_once_and_a_cycle_ends() {
        let edges = [vec![1, 2], vec![3], vec![3], vec![4, 0], vec![]];
        let imports = |module: usize| edges[module].clone();
        let label = |module: usize| module.to_string();
        let expected = "  0\n  ├─ 1\n  │  └─ 3\n  │     ├─ 4\n  │     └─ 0  (its imports are above)\n  \
                        └─ 2\n     └─ 3  (its imports are above)\n";
        assert_eq!(draw(0, &imports, &label), expected);
    }
}
