//! The JSON form of a legacy graph; `spec/object.md` fixes it, `spec/schema/object.json` has its schema.

use super::{LegacyGraph, LegacyNode};
use crate::release::ParseError;
use crate::rule::Violation;
use crate::tensor::json as tensor;
use crate::wire::Writer;
use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fmt;

/// Returns the graph as `{"root", "nodes": [{"type_key", ...}], "tensors": [...], "attrs": {...}}`.
///
/// # Errors
///
/// Returns the rule that a tensor of the graph breaks.
pub fn to_json(graph: &LegacyGraph) -> Result<Value, Violation> {
    let mut form = Map::new();
    form.insert("root".into(), graph.root.into());
    form.insert("nodes".into(), graph.nodes.iter().map(of_node).collect());
    // Absent and empty differ: 0.2 and 0.3 have no such member (OBJ-32).
    if let Some(list) = &graph.tensors {
        let records = (0..list.len()).filter_map(|index| graph.tensor(index));
        let forms = records.map(|record| Ok(tensor::from_record(&record?)));
        form.insert(
            "tensors".into(),
            forms.collect::<Result<Value, Violation>>()?,
        );
    }
    form.insert("attrs".into(), of_attrs(&graph.attrs));
    Ok(Value::Object(form))
}

/// Returns the form of a node. Empty members are left out.
fn of_node(node: &LegacyNode) -> Value {
    let mut form = Map::new();
    form.insert("type_key".into(), node.type_key.as_str().into());
    // OBJ-31: the file also leaves out empty members.
    for (name, bytes) in [("global_key", &node.global_key), ("repr", &node.repr)] {
        if !bytes.is_empty() {
            form.insert(name.into(), of_text(bytes));
        }
    }
    if !node.attrs.is_empty() {
        form.insert("attrs".into(), of_attrs(&node.attrs));
    }
    if !node.keys.is_empty() {
        form.insert(
            "keys".into(),
            node.keys.iter().map(|key| of_text(key)).collect(),
        );
    }
    if !node.data.is_empty() {
        form.insert("data".into(), json!(node.data));
    }
    Value::Object(form)
}

/// Returns names and texts as a JSON object.
fn of_attrs(attrs: &BTreeMap<String, Vec<u8>>) -> Value {
    let attrs = attrs.iter();
    Value::Object(
        attrs
            .map(|(name, text)| (name.clone(), of_text(text)))
            .collect(),
    )
}

/// Returns a string, or `{"bytes": "<base64>"}` if the bytes are not UTF-8.
fn of_text(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.into(),
        Err(_) => json!({"bytes": BASE64_STANDARD.encode(bytes)}),
    }
}

/// Reads the graph from its form.
///
/// # Errors
///
/// Returns [`FormError::Form`] for JSON that is not of this form. Returns [`FormError::Broken`] with the rule of chapter `tensor` that a
/// tensor breaks.
pub fn from_json(form: &Value) -> Result<LegacyGraph, FormError> {
    let nodes = form.get("nodes").and_then(Value::as_array);
    let nodes = nodes.ok_or("a graph has an array `nodes`")?;
    let mut graph = LegacyGraph {
        root: index(form.get("root").unwrap_or(&Value::Null))?,
        nodes: nodes.iter().map(to_node).collect::<Result<_, _>>()?,
        tensors: None,
        attrs: to_attrs(form.get("attrs"))?,
    };
    if let Some(list) = form.get("tensors") {
        let list = list.as_array().ok_or("`tensors` is an array")?;
        // OBJ-26: the size of a record follows the release in `tvm_version`.
        let sizing = graph.release().map(crate::tensor::Sizing::of);
        let record = |form: &Value| -> Result<Vec<u8>, FormError> {
            let owned = tensor::to_tensor(form).map_err(FormError::Form)?;
            let mut out = Writer::new();
            owned
                .record(sizing)
                .map_err(FormError::Broken)?
                .write(&mut out);
            Ok(out.into_bytes())
        };
        graph.tensors = Some(list.iter().map(record).collect::<Result<_, _>>()?);
    }
    Ok(graph)
}

/// The reason why a form is not a graph.
#[derive(Debug)]
pub enum FormError {
    /// The JSON does not match the form. The message names the missing or wrong member.
    Form(ParseError),
    /// A tensor breaks a rule.
    Broken(Violation),
}

impl fmt::Display for FormError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FormError::Form(wrong) => wrong.fmt(f),
            FormError::Broken(broken) => broken.fmt(f),
        }
    }
}

impl std::error::Error for FormError {}

impl From<&str> for FormError {
    fn from(what: &str) -> FormError {
        FormError::Form(what.into())
    }
}

/// Reads a node from its form. This is the inverse of [`of_node`].
fn to_node(form: &Value) -> Result<LegacyNode, FormError> {
    let list = |name: &str| {
        form.get(name)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
    };
    // An absent member is empty, as in a node read from a file.
    let text = |name: &str| form.get(name).map_or(Ok(Vec::new()), to_text);
    // The key is required. It is empty for null.
    let key = form.get("type_key").and_then(Value::as_str);
    Ok(LegacyNode {
        type_key: key.ok_or("a node has a string `type_key`")?.to_owned(),
        global_key: text("global_key")?,
        repr: text("repr")?,
        attrs: to_attrs(form.get("attrs"))?,
        keys: list("keys").map(to_text).collect::<Result<_, _>>()?,
        data: list("data").map(index).collect::<Result<_, _>>()?,
    })
}

/// Reads attributes from their form. This is the inverse of [`of_attrs`]. An absent member has no attributes.
fn to_attrs(form: Option<&Value>) -> Result<BTreeMap<String, Vec<u8>>, FormError> {
    let attrs = form.and_then(Value::as_object).into_iter().flatten();
    attrs
        .map(|(name, value)| Ok((name.clone(), to_text(value)?)))
        .collect()
}

/// Reads a text from its form. This is the inverse of [`of_text`].
fn to_text(form: &Value) -> Result<Vec<u8>, FormError> {
    if let Some(text) = form.as_str() {
        return Ok(text.as_bytes().to_vec());
    }
    let bytes = form.get("bytes").and_then(Value::as_str);
    let bytes = bytes.and_then(|text| BASE64_STANDARD.decode(text).ok());
    // C++ strings contain any bytes, but JSON text is UTF-8. Therefore a text has two forms.
    bytes.ok_or_else(|| {
        FormError::Form(ParseError::new(format!(
            "{form} is neither a string nor bytes in base64"
        )))
    })
}

/// Reads the index of a node, counted from 0.
fn index(form: &Value) -> Result<usize, FormError> {
    let index = form.as_u64().and_then(|index| usize::try_from(index).ok());
    index.ok_or_else(|| FormError::Form(ParseError::new(format!("{form} is not an index"))))
}
