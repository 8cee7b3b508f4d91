//! Holding a JSON graph of tvm-ffi to what no type decides (OBJ-18 to OBJ-20).

use super::text::{Build, read};
use crate::object::{OBJ_18, OBJ_19, OBJ_20};
use crate::rule::{Kind, Violation};

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
///
/// # Errors
///
/// The first rule that is broken.
pub fn check(text: &[u8]) -> Result<(), Fault> {
    let tree = Tree::read(text)?;
    let missing = |what: &str| OBJ_18.refused(Kind::Missing, format!("the graph has no `{what}`"));
    let root = tree.member(tree.root, "root_index");
    let root = root.ok_or_else(|| missing("root_index"))?;
    let nodes = tree.member(tree.root, "nodes");
    let nodes = nodes.ok_or_else(|| missing("nodes"))?;
    let Some(nodes) = tree.items(nodes) else {
        let message = "`nodes` of the graph is no array";
        return Err(OBJ_18.refused(Kind::Malformed, message).into());
    };
    let mut state = vec![State::New; nodes.len()];
    let mut open: Vec<(usize, std::slice::Iter<'_, Json>)> = Vec::new();
    let mut next = Some(slot(root, nodes.len(), || "the root".to_owned())?);
    loop {
        if let Some(at) = next.take()
            && let (Some(state), Some(node)) = (state.get_mut(at), nodes.get(at))
        {
            match state {
                State::Done => {}
                State::Open => {
                    let message = format!("node {at} contains itself");
                    return Err(OBJ_19.refused(Kind::Cycle, message).into());
                }
                State::New => {
                    *state = State::Open;
                    open.push((at, tree.children(*node, at)?.iter()));
                }
            }
        }
        let Some((at, rest)) = open.last_mut() else {
            return Ok(());
        };
        match rest.next() {
            Some(child) => {
                let place = || format!("`data` of node {at}");
                next = Some(slot(*child, nodes.len(), place)?);
            }
            None => {
                if let Some(state) = state.get_mut(*at) {
                    *state = State::Done;
                }
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

/// The node that an index names.
fn slot(value: Json, count: usize, place: impl FnOnce() -> String) -> Result<usize, Fault> {
    let Json::Int(named) = value else {
        let message = format!("{} holds what is no index", place());
        return Err(OBJ_18.refused(Kind::Malformed, message).into());
    };
    let slot = usize::try_from(named).ok().filter(|slot| *slot < count);
    slot.ok_or_else(|| Fault {
        violation: OBJ_20.refused(
            Kind::Malformed,
            format!("{} names node {named}, there are {count}", place()),
        ),
        index: Some(named),
    })
}

/// A graph in a few numbers.
#[derive(Clone, Debug)]
pub(crate) struct Summary {
    /// The type key of the root.
    pub(crate) root: Option<String>,
    /// The type key of each node that has one.
    pub(crate) keys: Vec<String>,
    /// How many nodes there are.
    pub(crate) nodes: usize,
    /// The release that wrote it, as far as it says so.
    pub(crate) written_by: Option<String>,
}

/// Sums up a graph; `None` where `text` is none.
pub(crate) fn summary(text: &[u8], version: &str) -> Option<Summary> {
    let tree = Tree::read(text).ok()?;
    let nodes = tree.items(tree.member(tree.root, "nodes")?)?;
    let Json::Int(root) = tree.member(tree.root, "root_index")? else {
        return None;
    };
    let root = usize::try_from(root).ok()?;
    let key = |node: &Json| tree.text(tree.member(*node, "type")?);
    let metadata = tree.member(tree.root, "metadata");
    Some(Summary {
        root: nodes.get(root).and_then(key),
        keys: nodes.iter().filter_map(key).collect(),
        nodes: nodes.len(),
        written_by: metadata
            .and_then(|metadata| tree.member(metadata, version))
            .and_then(|text| tree.text(text)),
    })
}

/// A value of a [`Tree`], which holds what is longer than a word. Nothing nests in memory as it nests in the text.
#[derive(Clone, Copy, Debug, Default)]
enum Json {
    #[default]
    Other,
    Int(i64),
    /// Where the text starts, and its length.
    Text(usize, usize),
    Array(usize),
    Object(usize),
}

#[derive(Debug, Default)]
struct Tree {
    root: Json,
    texts: Vec<u8>,
    /// The first is that of all empty arrays.
    arrays: Vec<Vec<Json>>,
    /// The first is that of all empty objects.
    objects: Vec<Vec<(Json, Json)>>,
}

impl Tree {
    fn read(text: &[u8]) -> Result<Tree, Violation> {
        let mut tree = Tree {
            arrays: vec![Vec::new()],
            objects: vec![Vec::new()],
            ..Tree::default()
        };
        tree.root = read(text, &mut tree)?;
        Ok(tree)
    }

    fn bytes(&self, value: Json) -> Option<&[u8]> {
        let Json::Text(start, length) = value else {
            return None;
        };
        self.texts.get(start..)?.get(..length)
    }

    fn text(&self, value: Json) -> Option<String> {
        let bytes = self.bytes(value)?;
        Some(String::from_utf8_lossy(bytes).into_owned())
    }

    fn items(&self, value: Json) -> Option<&[Json]> {
        let Json::Array(index) = value else {
            return None;
        };
        self.arrays.get(index).map(Vec::as_slice)
    }

    /// Member `name` of an object: the last of that name.
    fn member(&self, value: Json, name: &str) -> Option<Json> {
        let Json::Object(index) = value else {
            return None;
        };
        let mut members = self.objects.get(index)?.iter().rev();
        let found = members.find(|(key, _)| self.bytes(*key) == Some(name.as_bytes()));
        found.map(|(_, value)| *value)
    }

    /// The indices in a container; nothing for any other node.
    fn children(&self, node: Json, at: usize) -> Result<&[Json], Violation> {
        let missing =
            |what: &str| OBJ_18.refused(Kind::Missing, format!("node {at} has no {what}"));
        let key = self.member(node, "type").and_then(|key| self.bytes(key));
        let key = key.ok_or_else(|| missing("text `type`"))?;
        if key == b"None" {
            return Ok(&[]);
        }
        let data = self.member(node, "data");
        let data = data.ok_or_else(|| missing("member `data`"))?;
        let pairs = match key {
            b"ffi.Array" | b"ffi.List" => false,
            b"ffi.Map" | b"ffi.Dict" => true,
            _ => return Ok(&[]),
        };
        let wrong =
            |what: &str| OBJ_18.refused(Kind::Malformed, format!("`data` of node {at} {what}"));
        let items = self.items(data).ok_or_else(|| wrong("is no array"))?;
        if pairs && !items.len().is_multiple_of(2) {
            return Err(wrong("has a key without a value"));
        }
        Ok(items)
    }
}

impl Build for &mut Tree {
    type Value = Json;

    fn null(&mut self) -> Json {
        Json::Other
    }

    fn truth(&mut self, _: bool) -> Json {
        Json::Other
    }

    fn int(&mut self, value: i64) -> Json {
        Json::Int(value)
    }

    fn float(&mut self, _: f64) -> Json {
        Json::Other
    }

    fn text(&mut self, bytes: &[u8]) -> Json {
        let start = self.texts.len();
        self.texts.extend_from_slice(bytes);
        Json::Text(start, bytes.len())
    }

    fn array(&mut self, items: Vec<Json>) -> Json {
        if items.is_empty() {
            return Json::Array(0);
        }
        self.arrays.push(items);
        Json::Array(self.arrays.len().saturating_sub(1))
    }

    fn empty_object(&mut self) -> Json {
        Json::Object(0)
    }

    fn object(&mut self, pairs: Vec<(Json, Json)>) -> Option<Json> {
        self.objects.push(pairs);
        Some(Json::Object(self.objects.len().saturating_sub(1)))
    }
}
