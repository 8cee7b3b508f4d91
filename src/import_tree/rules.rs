//! The rules of chapter `import_tree`. The documentation of each constant is the text of the rule in `spec/import_tree.md`.
//! The text of the chapter around the rules follows.
//!
#![doc = include_str!(concat!(env!("OUT_DIR"), "/rules/import_tree.md"))]

crate::rule::rules! {
    TREE_01 TREE_02 TREE_03 TREE_04 TREE_05 TREE_06 TREE_07 TREE_08 TREE_09 TREE_10 TREE_11 TREE_12
    TREE_13 TREE_20 TREE_21 TREE_22 TREE_23 TREE_24 TREE_25 TREE_26 TREE_27 TREE_28
}
