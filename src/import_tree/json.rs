//! The JSON forms of this chapter; `spec/import_tree.md` defines them, and `spec/schema/import_tree.json` is their schema.

use super::order::is_exportable;
use super::{ImportTree, ModuleGraph, ModuleNode, Order};
use crate::release::{ParseError, Release};
use crate::rule::{Findings, Violation};
use crate::wire::json::object;
use serde_json::{Value, json};

/// Returns `{"indptr": [...], "indices": [...]}`.
pub(crate) fn from_tree(tree: &ImportTree<'_>) -> Value {
    object([
        ("indptr", tree.indptr().to_vec().into()),
        ("indices", tree.indices().to_vec().into()),
    ])
}

/// Creates the tree of `{"indptr": [...], "indices": [...]}` and checks every rule. The outer error is about the JSON, and the inner
/// error is about the tree.
///
/// # Errors
///
/// Returns a [`ParseError`] if an array is missing or contains a value that is not a u64. The inner error is the error of
/// [`ImportTree::new`].
pub fn to_tree(
    value: &Value,
    findings: &mut Findings,
) -> Result<Result<ImportTree<'static>, Violation>, ParseError> {
    let indptr = read_u64_array(value, "indptr")?;
    let indices = read_u64_array(value, "indices")?;
    Ok(ImportTree::new(&indptr, &indices, findings))
}

/// Creates the graph of `{"modules": [{"dso": true, "imports": [1, 2]}, ...]}`. A module may have a `kind`. Without `dso`, the `kind` and
/// `release` decide.
pub(crate) fn to_graph(value: &Value, release: Option<Release>) -> Result<ModuleGraph, ParseError> {
    let modules = value
        .get("modules")
        .and_then(Value::as_array)
        .ok_or("a module graph has an array `modules`")?;
    let node = |node: &Value| {
        let imports = read_u64_array(node, "imports")?.into_iter();
        let kind = node.get("kind").and_then(Value::as_str);
        let dso = node.get("dso").and_then(Value::as_bool);
        // TREE-20: a release decides by the kind; `dso` overrides that, as a user-defined kind can.
        let by_kind = || Some(is_exportable(kind?, release?));
        Ok(ModuleNode {
            kind: kind.unwrap_or_default().to_owned(),
            dso: dso
                .or_else(by_kind)
                .ok_or("a module has a bool `dso`, or a `kind` and the request a `release`")?,
            imports: imports
                // TREE-28: a number beyond `usize` is not a module either.
                .map(|child| usize::try_from(child).unwrap_or(usize::MAX))
                .collect(),
        })
    };
    let modules = modules
        .iter()
        .map(node)
        .collect::<Result<_, ParseError>>()?;
    Ok(ModuleGraph { modules })
}

/// Returns `{"order": [[0], [1, 2], ...], "indptr": [...], "indices": [...]}`.
pub(crate) fn from_order(order: &Order) -> Value {
    json!({
        // The groups contain module numbers of the request.
        "order": order.groups,
        "indptr": order.indptr,
        "indices": order.indices,
    })
}

/// Reads the member `name`, an array of u64.
fn read_u64_array(value: &Value, name: &str) -> Result<Vec<u64>, ParseError> {
    let list = value
        .get(name)
        .and_then(Value::as_array)
        .ok_or_else(|| ParseError::new(format!("there is no array `{name}`")))?;
    let word = |word: &Value| {
        word.as_u64()
            .ok_or_else(|| ParseError::new(format!("`{name}` holds {word}, which is not a u64")))
    };
    list.iter().map(word).collect()
}
