//! Checks on a tvm-ffi JSON graph that need no knowledge of types (OBJ-18 to OBJ-20).

use super::text::{Build, int_at, read, string_at};
use crate::object::format::key_hash::{UNTRUSTED_CHAIN, hash_text, home, table_size};
use crate::object::{OBJ_18, OBJ_19, OBJ_20, OBJ_28};
use crate::rule::{Findings, Kind, Violation};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

/// The first rule that a graph breaks, with the position of the fault.
#[derive(Debug)]
pub struct GraphFault {
    /// The broken rule.
    pub violation: Violation,
    /// The index that names no node, if that is the fault.
    pub index: Option<i64>,
}

impl fmt::Display for GraphFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.violation.fmt(f)
    }
}

impl std::error::Error for GraphFault {}

impl From<Violation> for GraphFault {
    fn from(violation: Violation) -> GraphFault {
        GraphFault {
            violation,
            index: None,
        }
    }
}

/// Checks the text of a graph against OBJ-18 to OBJ-20 without creating values. The check follows containers from the root.
/// It does not follow the fields of objects, because only the object's type knows which fields are indices. Time and memory are linear in
/// the text.
///
/// # Errors
///
/// Returns the first broken rule. The text can break OBJ-16, OBJ-39 or OBJ-40, and its members OBJ-18. A container that contains itself
/// breaks OBJ-19, and an index without a node breaks OBJ-20. Under strict findings, a repeated member breaks OBJ-28.
pub fn check(text: &[u8], findings: &mut Findings) -> Result<(), GraphFault> {
    // Errors in the text are reported before any rule about the graph.
    let mut tree = Tree::read(text)?;
    tree.repeated.sort_unstable();
    for at in &tree.repeated {
        let name = tree.bytes(JsonRef::new(JsonShape::Text, *at));
        let name = name.unwrap_or_default();
        let name = name.escape_ascii();
        let message = format!("a second `{name}` in an object; the last one counts");
        findings.note(OBJ_28, Kind::Duplicate, *at as u64, message)?;
    }
    let missing = |what: &str| OBJ_18.rejected(Kind::Missing, format!("the graph has no `{what}`"));
    let root = tree.member(tree.root, "root_index");
    let root = root.ok_or_else(|| missing("root_index"))?;
    let nodes = tree.member(tree.root, "nodes");
    let nodes = nodes.ok_or_else(|| missing("nodes"))?;
    let Some(nodes) = tree.items(nodes) else {
        let message = "`nodes` of the graph is not an array";
        return Err(OBJ_18.rejected(Kind::Malformed, message).into());
    };
    // OBJ-18: nodes that the root does not reach are not checked, because a reader does not decode them.
    let mut state = vec![NodeState::New; nodes.len()];
    // An explicit stack instead of recursion: a graph can be as deep as it has nodes. OBJ-41 bounds only the nesting of objects, and this
    // check creates none.
    let mut open: Vec<(usize, std::slice::Iter<'_, JsonRef>)> = Vec::new();
    let mut next = Some(slot(tree.int(root), nodes.len(), || "the root".to_owned())?);
    loop {
        if let Some(at) = next.take()
            && let (Some(state), Some(node)) = (state.get_mut(at), nodes.get(at))
        {
            match state {
                // A node to which two others refer is followed once, so that the time is linear.
                NodeState::Done => {}
                NodeState::Open => {
                    let message = format!("node {at} contains itself");
                    return Err(OBJ_19.rejected(Kind::Cycle, message).into());
                }
                NodeState::New => {
                    *state = NodeState::Open;
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
                // One child at a time: the iterator keeps the other children, so that they are followed in order.
                next = Some(slot(tree.int(*child), nodes.len(), place)?);
            }
            None => {
                if let Some(state) = state.get_mut(*at) {
                    *state = NodeState::Done;
                }
                open.pop();
            }
        }
    }
}

/// State of a node during the walk from the root. If the walk reaches an open node again, the node contains itself (OBJ-19).
#[derive(Clone, Copy)]
enum NodeState {
    /// Not reached yet.
    New,
    /// On the path from the root to the current node.
    Open,
    /// Followed completely, without a cycle.
    Done,
}

/// Returns the position of the node that an index names. `place` describes the location of the index for the message.
fn slot(
    named: Option<i64>,
    count: usize,
    place: impl FnOnce() -> String,
) -> Result<usize, GraphFault> {
    let Some(named) = named else {
        let message = format!(
            "{}: expected the index of a node, found another value",
            place()
        );
        return Err(OBJ_18.rejected(Kind::Malformed, message).into());
    };
    // OBJ-20: a negative index names no node.
    let slot = usize::try_from(named).ok().filter(|slot| *slot < count);
    slot.ok_or_else(|| GraphFault {
        violation: OBJ_20.rejected(
            Kind::Malformed,
            format!(
                "{} names node {named}, but the number of nodes is {count}",
                place()
            ),
        ),
        index: Some(named),
    })
}

/// Key facts about a graph.
#[derive(Clone, Debug)]
#[cfg(feature = "inspect")]
pub(crate) struct Summary {
    /// The type key of the root.
    pub(crate) root: Option<String>,
    /// The type key of each node that has one.
    pub(crate) keys: Vec<String>,
    /// Number of nodes.
    pub(crate) nodes: usize,
    /// The release that wrote the graph, if the graph states one.
    pub(crate) written_by: Option<String>,
}

/// Summarizes a graph. Returns `None` if `text` is not a graph.
#[cfg(feature = "inspect")]
pub(crate) fn summary(text: &[u8], version: &str) -> Option<Summary> {
    let tree = Tree::read(text).ok()?;
    let nodes = tree.items(tree.member(tree.root, "nodes")?)?;
    let root = tree.int(tree.member(tree.root, "root_index")?)?;
    let root = usize::try_from(root).ok()?;
    let key = |node: &JsonRef| tree.text(tree.member(*node, "type")?);
    // OBJ-18: `metadata` is optional, and its content is up to the writer.
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

/// The kind of a [`JsonRef`], which determines the meaning of its number. Values that no check looks at have no shape.
#[derive(Clone, Copy, Debug)]
enum JsonShape {
    /// An integer. The number is the offset of its first digit or sign in the text.
    Int = 1,
    /// A string. The number is the offset of its quote in the text.
    Text,
    /// An array. The number is the position of its [`JsonShape::Length`] among the values.
    Array,
    /// An object. The number is the position of its [`JsonShape::Length`] among the values.
    Object,
    /// The length of a container: the number of values that follow. An object stores names and values alternately.
    Length,
}

/// A value of a [`Tree`] in one word, so that the tree is never much larger than its text.
#[derive(Clone, Copy, Debug, Default)]
struct JsonRef(u64);

impl JsonRef {
    /// Creates a value of a shape, with the number in the upper 61 bits.
    fn new(shape: JsonShape, number: usize) -> JsonRef {
        // No text in memory has 2^61 bytes, so the number always fits.
        JsonRef((number as u64).wrapping_shl(3) | shape as u64)
    }

    /// Returns the number if the value has that shape.
    fn number(self, shape: JsonShape) -> Option<usize> {
        if self.0 & 7 != shape as u64 {
            return None;
        }
        usize::try_from(self.0.wrapping_shr(3)).ok()
    }
}

/// A text and its values, stored flat: nesting in the text causes no nesting in memory.
#[derive(Debug)]
struct Tree<'a> {
    /// The whole text. Numbers and strings are parsed from it again when they are needed.
    text: &'a [u8],
    /// The outermost value.
    root: JsonRef,
    /// The containers, each after the containers inside it. The first entry is the length shared by all empty containers.
    values: Vec<JsonRef>,
    /// Offsets of names that repeat an earlier name of the same object (OBJ-28).
    repeated: Vec<usize>,
}

impl<'a> Tree<'a> {
    /// Parses a text.
    fn read(text: &'a [u8]) -> Result<Tree<'a>, Violation> {
        let mut tree = Tree {
            text,
            root: JsonRef::default(),
            values: vec![JsonRef::new(JsonShape::Length, 0)],
            repeated: Vec::new(),
        };
        tree.root = read(text, &mut tree)?;
        Ok(tree)
    }

    /// Returns the value as an integer; `None` for other values.
    fn int(&self, value: JsonRef) -> Option<i64> {
        int_at(self.text, value.number(JsonShape::Int)?)
    }

    /// Returns the value as a string with its escapes resolved; `None` for other values.
    fn bytes(&self, value: JsonRef) -> Option<Cow<'a, [u8]>> {
        string_at(self.text, value.number(JsonShape::Text)?)
    }

    /// Like `bytes`, but as text: invalid UTF-8 is replaced.
    #[cfg(feature = "inspect")]
    fn text(&self, value: JsonRef) -> Option<String> {
        let bytes = self.bytes(value)?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Returns the content of a container of that shape.
    fn inside(&self, value: JsonRef, shape: JsonShape) -> Option<&[JsonRef]> {
        let (length, rest) = self.values.get(value.number(shape)?..)?.split_first()?;
        rest.get(..length.number(JsonShape::Length)?)
    }

    /// Returns the elements of an array; `None` for other values.
    fn items(&self, value: JsonRef) -> Option<&[JsonRef]> {
        self.inside(value, JsonShape::Array)
    }

    /// Returns member `name` of an object. If the name repeats, the last one counts.
    fn member(&self, value: JsonRef, name: &str) -> Option<JsonRef> {
        let members = self.inside(value, JsonShape::Object)?.as_chunks().0;
        let is_named = |key: JsonRef| self.bytes(key).is_some_and(|key| *key == *name.as_bytes());
        // OBJ-16: a repeated key keeps its last value.
        let found = members.iter().rfind(|[key, _]| is_named(*key));
        found.map(|[_, value]| *value)
    }

    /// Returns the indices in a container node, and nothing for other nodes.
    fn children(&self, node: JsonRef, at: usize) -> Result<&[JsonRef], Violation> {
        let missing =
            |what: &str| OBJ_18.rejected(Kind::Missing, format!("node {at} has no {what}"));
        let key = self.member(node, "type").and_then(|key| self.bytes(key));
        let key = key.ok_or_else(|| missing("text `type`"))?;
        // OBJ-18: None has no `data`. Upstream ignores it.
        if *key == *b"None" {
            return Ok(&[]);
        }
        let data = self.member(node, "data");
        let data = data.ok_or_else(|| missing("member `data`"))?;
        let pairs = match &*key {
            b"ffi.Array" | b"ffi.List" => false,
            b"ffi.Map" | b"ffi.Dict" => true,
            // Other types: only a reader that has the type can interpret their `data`.
            _ => return Ok(&[]),
        };
        let wrong =
            |what: &str| OBJ_18.rejected(Kind::Malformed, format!("`data` of node {at} {what}"));
        let items = self.items(data).ok_or_else(|| wrong("is not an array"))?;
        if pairs && !items.len().is_multiple_of(2) {
            return Err(wrong("has a key without a value"));
        }
        Ok(items)
    }

    /// Returns whether a map of these pairs would have more names in one chain than an untrusted text may have. A map also grows when a
    /// chain finds no free slot. That is not simulated, because at most half of the slots are used.
    fn collide(&self, pairs: &[(JsonRef, JsonRef)]) -> bool {
        let count = pairs.len() as u64;
        // OBJ-39: a chain of so few names is allowed, so no hash is needed.
        if count <= UNTRUSTED_CHAIN {
            return false;
        }
        // The size of the table for this many pairs (OBJ-06): the reader creates the map with all pairs at once.
        let (_, shift) = table_size(count);
        let home = |(name, _): &(JsonRef, JsonRef)| {
            let bytes = self.bytes(*name).unwrap_or_default();
            (home(hash_text(&bytes), shift), *name)
        };
        let mut homes: Vec<(u64, JsonRef)> = pairs.iter().map(home).collect();
        // Names in one chain have the same home slot (OBJ-07), so only names with equal homes are compared.
        homes.sort_unstable_by_key(|(home, _)| *home);
        homes.chunk_by(|(a, _), (b, _)| a == b).any(|chain| {
            let mut names = BTreeSet::new();
            chain.iter().any(|(_, name)| {
                // A repeated name does not count again.
                names.insert(self.bytes(*name));
                names.len() as u64 > UNTRUSTED_CHAIN
            })
        })
    }

    /// Records the offsets of names in `pairs` that repeat an earlier name (OBJ-28).
    fn keep_repeated(&mut self, pairs: &[(JsonRef, JsonRef)]) {
        let hash = |(name, _): &(JsonRef, JsonRef)| {
            let bytes = self.bytes(*name).unwrap_or_default();
            (hash_text(&bytes), *name)
        };
        let mut names: Vec<(u64, JsonRef)> = pairs.iter().map(hash).collect();
        // A stable sort: among equal names, the first in the text is not the repetition.
        names.sort_by_key(|(hash, _)| *hash);
        for equal in names.chunk_by(|(a, _), (b, _)| a == b) {
            if equal.len() == 1 {
                continue;
            }
            let mut seen = BTreeSet::new();
            for (_, name) in equal {
                if !seen.insert(self.bytes(*name)) {
                    self.repeated.extend(name.number(JsonShape::Text));
                }
            }
        }
    }

    /// Appends the length of a container. The caller then appends its values.
    fn container(&mut self, shape: JsonShape, length: usize) -> JsonRef {
        let container = JsonRef::new(shape, self.values.len());
        self.values.push(JsonRef::new(JsonShape::Length, length));
        container
    }
}

impl Build for &mut Tree<'_> {
    type Value = JsonRef;

    fn null(&mut self) -> JsonRef {
        // Zero is not a shape. It is the placeholder for all values that the rules of a graph do not concern.
        JsonRef::default()
    }

    fn truth(&mut self, _: bool) -> JsonRef {
        JsonRef::default()
    }

    fn int(&mut self, _: i64, at: usize) -> JsonRef {
        JsonRef::new(JsonShape::Int, at)
    }

    fn float(&mut self, _: f64) -> JsonRef {
        JsonRef::default()
    }

    fn text(&mut self, _: &[u8], at: usize) -> JsonRef {
        JsonRef::new(JsonShape::Text, at)
    }

    fn array(&mut self, items: Vec<JsonRef>) -> JsonRef {
        if items.is_empty() {
            // All empty containers share the length at position 0. Otherwise a text of many `[]` would cost one word for each.
            return JsonRef::new(JsonShape::Array, 0);
        }
        let array = self.container(JsonShape::Array, items.len());
        self.values.extend(items);
        array
    }

    fn empty_object(&mut self) -> JsonRef {
        JsonRef::new(JsonShape::Object, 0)
    }

    fn object(&mut self, pairs: Vec<(JsonRef, JsonRef)>) -> Option<JsonRef> {
        // OBJ-39: checked while the text is read, because a reader that creates maps also fails at this brace.
        if self.collide(&pairs) {
            return None;
        }
        self.keep_repeated(&pairs);
        let object = self.container(JsonShape::Object, pairs.len().saturating_mul(2));
        let pairs = pairs.into_iter();
        self.values
            .extend(pairs.flat_map(|(name, value)| [name, value]));
        Some(object)
    }
}
