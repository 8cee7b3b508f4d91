//! Holding a JSON graph of tvm-ffi to what no type decides (OBJ-18 to OBJ-20).

use super::text::{Build, int_at, read, string_at};
use crate::object::format::key_hash::{UNTRUSTED_CHAIN, hash_text, home, table_size};
use crate::object::{OBJ_18, OBJ_19, OBJ_20, OBJ_28};
use crate::rule::{Findings, Kind, Violation};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

/// The first rule that a graph breaks, and where.
#[derive(Debug)]
pub struct GraphFault {
    /// The broken rule.
    pub violation: Violation,
    /// The index that names no node, where that is what is wrong.
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

/// Holds the text of a graph to OBJ-18 to OBJ-20 without making values: follows containers from the root. Which field of an object is
/// an index only its type knows: those are not followed. Time and memory are linear in the text.
///
/// # Errors
///
/// The first rule that is broken: OBJ-16, OBJ-39 or OBJ-40 for the text, OBJ-18 for its members, OBJ-19 for a container inside itself,
/// OBJ-20 for an index that names no node; under strict findings OBJ-28.
pub fn check(text: &[u8], findings: &mut Findings) -> Result<(), GraphFault> {
    // The text first: what is wrong with it comes before any rule about the graph.
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
    // OBJ-18: nodes that the root does not reach are not looked at, as a reader does not decode them.
    let mut state = vec![NodeState::New; nodes.len()];
    // A stack of its own: a graph may be as deep as it has nodes, and a check makes no objects whose nesting OBJ-41 would bound.
    let mut open: Vec<(usize, std::slice::Iter<'_, JsonRef>)> = Vec::new();
    let mut next = Some(slot(tree.int(root), nodes.len(), || "the root".to_owned())?);
    loop {
        if let Some(at) = next.take()
            && let (Some(state), Some(node)) = (state.get_mut(at), nodes.get(at))
        {
            match state {
                // A node that two others refer to is followed once, so that the time is linear.
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
                // One child at a time: the rest waits in its iterator, so that children are followed in their order.
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

/// How far the walk from the root is with a node; one that is met open contains itself (OBJ-19).
#[derive(Clone, Copy)]
enum NodeState {
    /// Not reached so far.
    New,
    /// On the way from the root to the node at hand.
    Open,
    /// Followed to its end, and free of cycles.
    Done,
}

/// The node that an index names.
fn slot(
    named: Option<i64>,
    count: usize,
    place: impl FnOnce() -> String,
) -> Result<usize, GraphFault> {
    let Some(named) = named else {
        let message = format!("{} holds what is not an index", place());
        return Err(OBJ_18.rejected(Kind::Malformed, message).into());
    };
    // OBJ-20: a negative index names no node.
    let slot = usize::try_from(named).ok().filter(|slot| *slot < count);
    slot.ok_or_else(|| GraphFault {
        violation: OBJ_20.rejected(
            Kind::Malformed,
            format!("{} names node {named}, there are {count}", place()),
        ),
        index: Some(named),
    })
}

/// A graph in a few numbers.
#[derive(Clone, Debug)]
#[cfg(feature = "inspect")]
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
#[cfg(feature = "inspect")]
pub(crate) fn summary(text: &[u8], version: &str) -> Option<Summary> {
    let tree = Tree::read(text).ok()?;
    let nodes = tree.items(tree.member(tree.root, "nodes")?)?;
    let root = tree.int(tree.member(tree.root, "root_index")?)?;
    let root = usize::try_from(root).ok()?;
    let key = |node: &JsonRef| tree.text(tree.member(*node, "type")?);
    // OBJ-18: may be absent; what is in it is the writer's own.
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

/// What a [`JsonRef`] is, and what its number counts. Values that no graph is checked for have none.
#[derive(Clone, Copy, Debug)]
enum JsonShape {
    /// Where it starts in the text.
    Int = 1,
    /// Where its quote is in the text.
    Text,
    /// Where its [`JsonShape::Length`] is among the values.
    Array,
    /// Where its [`JsonShape::Length`] is among the values.
    Object,
    /// How many values follow, those of a container: of an object names and values in turn.
    Length,
}

/// A value of a [`Tree`], in a word, so that no text is worth much more memory than it takes itself.
#[derive(Clone, Copy, Debug, Default)]
struct JsonRef(u64);

impl JsonRef {
    /// A value of a shape, with its number in the upper 61 bits.
    fn new(shape: JsonShape, number: usize) -> JsonRef {
        // A text of 2^61 bytes is none that memory holds.
        JsonRef((number as u64).wrapping_shl(3) | shape as u64)
    }

    /// Its number, if it is of that shape.
    fn number(self, shape: JsonShape) -> Option<usize> {
        if self.0 & 7 != shape as u64 {
            return None;
        }
        usize::try_from(self.0.wrapping_shr(3)).ok()
    }
}

/// A text and its values. Nothing nests in memory as it nests in the text.
#[derive(Debug)]
struct Tree<'a> {
    /// The whole text, from which numbers and strings are read again when they are wanted.
    text: &'a [u8],
    /// The outermost value.
    root: JsonRef,
    /// Container by container, those inside before those around them. The first is that of everything empty.
    values: Vec<JsonRef>,
    /// Positions of the names of members that their object has already (OBJ-28), object by object.
    repeated: Vec<usize>,
}

impl<'a> Tree<'a> {
    /// Reads a text.
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

    /// The integer that a value is; `None` for any other.
    fn int(&self, value: JsonRef) -> Option<i64> {
        int_at(self.text, value.number(JsonShape::Int)?)
    }

    /// The string that a value is, its escapes resolved; `None` for any other.
    fn bytes(&self, value: JsonRef) -> Option<Cow<'a, [u8]>> {
        string_at(self.text, value.number(JsonShape::Text)?)
    }

    /// The same as text, with what is not UTF-8 replaced.
    #[cfg(feature = "inspect")]
    fn text(&self, value: JsonRef) -> Option<String> {
        let bytes = self.bytes(value)?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// What is in a container of that shape.
    fn inside(&self, value: JsonRef, shape: JsonShape) -> Option<&[JsonRef]> {
        let (length, rest) = self.values.get(value.number(shape)?..)?.split_first()?;
        rest.get(..length.number(JsonShape::Length)?)
    }

    /// The elements of an array; `None` for any other value.
    fn items(&self, value: JsonRef) -> Option<&[JsonRef]> {
        self.inside(value, JsonShape::Array)
    }

    /// Member `name` of an object: the last of that name.
    fn member(&self, value: JsonRef, name: &str) -> Option<JsonRef> {
        let members = self.inside(value, JsonShape::Object)?.as_chunks().0;
        let is_named = |key: JsonRef| self.bytes(key).is_some_and(|key| *key == *name.as_bytes());
        // OBJ-16: a repeated key keeps its last value.
        let found = members.iter().rfind(|[key, _]| is_named(*key));
        found.map(|[_, value]| *value)
    }

    /// The indices in a container; nothing for any other node.
    fn children(&self, node: JsonRef, at: usize) -> Result<&[JsonRef], Violation> {
        let missing =
            |what: &str| OBJ_18.rejected(Kind::Missing, format!("node {at} has no {what}"));
        let key = self.member(node, "type").and_then(|key| self.bytes(key));
        let key = key.ok_or_else(|| missing("text `type`"))?;
        // OBJ-18: None has no `data`; upstream ignores any.
        if *key == *b"None" {
            return Ok(&[]);
        }
        let data = self.member(node, "data");
        let data = data.ok_or_else(|| missing("member `data`"))?;
        let pairs = match &*key {
            b"ffi.Array" | b"ffi.List" => false,
            b"ffi.Map" | b"ffi.Dict" => true,
            // Data of any other type is followed by a reader that has the type.
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

    /// Whether a map of these pairs has more names in a chain than a file may choose. That a map grows where a chain finds no
    /// free slot is not counted: at most every second of its slots is taken.
    fn collide(&self, pairs: &[(JsonRef, JsonRef)]) -> bool {
        let count = pairs.len() as u64;
        // OBJ-39: fewer names than a chain may have need no hash.
        if count <= UNTRUSTED_CHAIN {
            return false;
        }
        // The table that this many pairs get at once (OBJ-06): the reader makes the map of all of them.
        let (_, shift) = table_size(count);
        let home = |(name, _): &(JsonRef, JsonRef)| {
            let bytes = self.bytes(*name).unwrap_or_default();
            (home(hash_text(&bytes), shift), *name)
        };
        let mut homes: Vec<(u64, JsonRef)> = pairs.iter().map(home).collect();
        // Names of one chain have one home slot (OBJ-07), so only those of equal homes are compared.
        homes.sort_unstable_by_key(|(home, _)| *home);
        homes.chunk_by(|(a, _), (b, _)| a == b).any(|chain| {
            let mut names = BTreeSet::new();
            chain.iter().any(|(_, name)| {
                // A repeated name is not one more.
                names.insert(self.bytes(*name));
                names.len() as u64 > UNTRUSTED_CHAIN
            })
        })
    }

    /// Keeps the names of `pairs` that are not the first of their text (OBJ-28).
    fn keep_repeated(&mut self, pairs: &[(JsonRef, JsonRef)]) {
        let hash = |(name, _): &(JsonRef, JsonRef)| {
            let bytes = self.bytes(*name).unwrap_or_default();
            (hash_text(&bytes), *name)
        };
        let mut names: Vec<(u64, JsonRef)> = pairs.iter().map(hash).collect();
        // Stable: of names of one text the first in the text is no repetition.
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

    /// Adds the length of a container, which its values follow.
    fn container(&mut self, shape: JsonShape, length: usize) -> JsonRef {
        let container = JsonRef::new(shape, self.values.len());
        self.values.push(JsonRef::new(JsonShape::Length, length));
        container
    }
}

impl Build for &mut Tree<'_> {
    type Value = JsonRef;

    fn null(&mut self) -> JsonRef {
        // A value that no rule of a graph is about is 0, which is no shape.
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
            // All empty containers share the length at 0: a text of `[]` alone would otherwise cost a word for each.
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
        // OBJ-39: while the text is read, since a reader that makes maps fails at this brace as well.
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
