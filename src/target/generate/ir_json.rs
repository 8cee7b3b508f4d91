//! JSON as `save_json` writes it, with numbers that standard JSON lacks (OBJ-16, OBJ-17).

use crate::object::json_graph::text::{self, Build};
use crate::rule::Violation;
use std::collections::BTreeMap;

/// The maximum nesting of the values of a graph: node, data, member, and the result of a type's own function.
const DEEPEST: u8 = 16;

/// A value of a text.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum IrJson {
    /// `null`. Also a bool or a fraction, which are not needed here, and a value that is nested too deeply.
    #[default]
    Null,
    Int(i64),
    Text(String),
    /// A field of 0.20 and before. It is always a text (OBJ-22), which may be a name, a number or an index.
    Word(String),
    /// The elements, and their depth of nesting.
    Array(Vec<IrJson>, u8),
    /// The members, and their depth of nesting.
    Object(BTreeMap<String, IrJson>, u8),
}

impl IrJson {
    /// Parses a text.
    pub(super) fn read(text: &[u8]) -> Result<IrJson, Violation> {
        text::read(text, Builder)
    }

    /// Returns a member of an object.
    pub(super) fn member(&self, name: &str) -> Option<&IrJson> {
        match self {
            IrJson::Object(members, _) => members.get(name),
            _ => None,
        }
    }

    /// Returns the elements of an array member; empty for any other member.
    pub(super) fn items_of(&self, name: &str) -> impl Iterator<Item = &IrJson> {
        let items = match self.member(name) {
            Some(IrJson::Array(items, _)) => items.as_slice(),
            _ => &[],
        };
        items.iter()
    }

    /// Returns the value as a text.
    pub(super) fn text(&self) -> Option<&str> {
        match self {
            IrJson::Text(text) | IrJson::Word(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the value as the index of a node.
    pub(super) fn index(&self) -> Option<usize> {
        match self {
            IrJson::Word(text) => text.parse().ok(),
            IrJson::Int(index) => usize::try_from(*index).ok(),
            _ => None,
        }
    }

    /// Returns the depth of nesting in this value; 0 for a plain one. It is counted when a value is created, so that no walk is
    /// needed.
    fn depth(&self) -> u8 {
        match self {
            IrJson::Array(_, depth) | IrJson::Object(_, depth) => *depth,
            _ => 0,
        }
    }
}

/// A builder of values, bottom up. A value nested deeper than [`DEEPEST`] becomes null, and so is not a member of any type.
struct Builder;

/// Returns one level more than the deepest of these, or `None` if it exceeds the maximum.
fn enclosing_level<'a>(values: impl Iterator<Item = &'a IrJson>) -> Option<u8> {
    let inside = values.map(IrJson::depth).max().unwrap_or_default();
    inside.checked_add(1).filter(|depth| *depth <= DEEPEST)
}

impl Build for Builder {
    type Value = IrJson;

    /// Returns null, which also represents a missing node.
    fn null(&mut self) -> IrJson {
        IrJson::Null
    }

    fn truth(&mut self, _: bool) -> IrJson {
        IrJson::Null
    }

    /// Creates an integer. Only 64-bit integers reach this function (OBJ-16).
    fn int(&mut self, value: i64, _: usize) -> IrJson {
        IrJson::Int(value)
    }

    fn float(&mut self, _: f64) -> IrJson {
        IrJson::Null
    }

    /// Returns a text. A name of the compiler is UTF-8. Other bytes become replacement characters, which no lookup finds.
    fn text(&mut self, bytes: &[u8], _: usize) -> IrJson {
        IrJson::Text(String::from_utf8_lossy(bytes).into_owned())
    }

    fn array(&mut self, items: Vec<IrJson>) -> IrJson {
        match enclosing_level(items.iter()) {
            Some(depth) => IrJson::Array(items, depth),
            None => IrJson::Null,
        }
    }

    fn empty_object(&mut self) -> IrJson {
        IrJson::Object(BTreeMap::new(), 1)
    }

    /// Returns an object; all names in a graph are text.
    fn object(&mut self, pairs: Vec<(IrJson, IrJson)>) -> Option<IrJson> {
        let Some(depth) = enclosing_level(pairs.iter().map(|(_, value)| value)) else {
            return Some(IrJson::Null);
        };
        let named = pairs.into_iter().map(|(name, value)| match name {
            IrJson::Text(name) => (name, value),
            _ => (String::new(), value),
        });
        // OBJ-16: if a name repeats, the last value counts. The names cannot collide, because the map is a tree.
        Some(IrJson::Object(named.collect(), depth))
    }
}
