//! Holding a JSON graph to what no type decides (OBJ-18 to OBJ-20).

use super::{OBJ_18, OBJ_19, OBJ_20, json, lookup_in, sequence_of};
use crate::rule::{Kind, Violation};
use crate::value::{Any, AnyView, index, str_bytes};

/// What is wrong with a graph.
#[derive(Debug)]
pub struct Fault {
    /// The broken rule.
    pub violation: Violation,
    /// The index that names no node, where that is what is wrong.
    pub index: Option<i64>,
}

impl From<Violation> for Fault {
    fn from(violation: Violation) -> Fault {
        Fault {
            violation,
            index: None,
        }
    }
}

/// Follows containers from the root. Which field of an object is an index only its type knows: those are not followed.
pub fn check(text: &[u8]) -> Result<(), Fault> {
    let graph = json::read(text)?;
    let root = member(&graph, "root_index");
    let root = root.ok_or_else(|| missing("the graph has no `root_index`"))?;
    let nodes = member(&graph, "nodes");
    let nodes = nodes.ok_or_else(|| missing("the graph has no `nodes`"))?;
    if nodes.type_index() != index::ARRAY {
        let message = "`nodes` of the graph is no array";
        return Err(OBJ_18.refused(Kind::Malformed, message).into());
    }
    let nodes = sequence_of(nodes.view()).unwrap_or_default();

    let mut state = vec![State::New; nodes.len()];
    let mut open: Vec<(usize, std::vec::IntoIter<Any>)> = Vec::new();
    let mut next = Some(slot(&root, nodes.len(), || "the root".to_owned())?);
    loop {
        if let Some(at) = next.take() {
            match state[at] {
                State::Done => {}
                State::Open => {
                    let message = format!("node {at} contains itself");
                    return Err(OBJ_19.refused(Kind::Cycle, message).into());
                }
                State::New => {
                    state[at] = State::Open;
                    open.push((at, children(&nodes[at], at)?.into_iter()));
                }
            }
        }
        let Some((at, rest)) = open.last_mut() else {
            return Ok(());
        };
        match rest.next() {
            Some(child) => {
                next = Some(slot(&child, nodes.len(), || {
                    format!("`data` of node {at}")
                })?);
            }
            None => {
                state[*at] = State::Done;
                open.pop();
            }
        }
    }
}

#[derive(Clone, Copy)]
enum State {
    New,
    Open,
    Done,
}

/// Member `name` of a map.
pub(crate) fn member(map: &Any, name: &str) -> Option<Any> {
    if map.type_index() != index::MAP {
        return None;
    }
    lookup_in(map.view(), Any::from(name).view()).ok()?
}

fn missing(message: impl Into<String>) -> Violation {
    OBJ_18.refused(Kind::Missing, message)
}

/// The node that an index names.
fn slot(value: &Any, count: usize, place: impl FnOnce() -> String) -> Result<usize, Fault> {
    let view: AnyView<'_> = value.view();
    if view.type_index() != index::INT {
        let message = format!("{} holds what is no index", place());
        return Err(OBJ_18.refused(Kind::Malformed, message).into());
    }
    let named = view.as_raw().int();
    let slot = usize::try_from(named).ok().filter(|slot| *slot < count);
    slot.ok_or_else(|| Fault {
        violation: OBJ_20.refused(
            Kind::Malformed,
            format!("{} names node {named}, there are {count}", place()),
        ),
        index: Some(named),
    })
}

/// The indices in a container; nothing for any other node.
fn children(node: &Any, at: usize) -> Result<Vec<Any>, Violation> {
    let key = member(node, "type");
    let key = key.as_ref().map(Any::view);
    let key = key.as_ref().and_then(str_bytes);
    let key = key.ok_or_else(|| missing(format!("node {at} has no text `type`")))?;
    if key == b"None" {
        return Ok(Vec::new());
    }
    let data =
        member(node, "data").ok_or_else(|| missing(format!("node {at} has no member `data`")))?;
    let pairs = match key {
        b"ffi.Array" | b"ffi.List" => false,
        b"ffi.Map" | b"ffi.Dict" => true,
        _ => return Ok(Vec::new()),
    };
    let wrong = |what: &str| OBJ_18.refused(Kind::Malformed, format!("`data` of node {at} {what}"));
    if data.type_index() != index::ARRAY {
        return Err(wrong("is no array"));
    }
    let items = sequence_of(data.view()).unwrap_or_default();
    if pairs && !items.len().is_multiple_of(2) {
        return Err(wrong("has a key without a value"));
    }
    Ok(items.into_owned())
}
