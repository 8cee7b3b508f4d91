//! JSON as `save_json` writes it: with the numbers that standard JSON has not (OBJ-16, OBJ-17).

use crate::object::json_graph::text::{self, Build};
use crate::rule::Violation;
use std::collections::BTreeMap;

/// How deep the values of a graph nest: node, data, member, and what a function of a type made of an object.
const DEEPEST: u8 = 16;

/// A value of a text.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum IrJson {
    /// `null`; a truth value or a fraction, which nothing here asks for; and a value nested deeper than any graph.
    #[default]
    Null,
    Int(i64),
    Text(String),
    /// A field of 0.20 and before, which is a text whatever it states (OBJ-22): a name, a number, an index.
    Word(String),
    /// Elements, and how deep they nest.
    Array(Vec<IrJson>, u8),
    /// Members, and how deep they nest.
    Object(BTreeMap<String, IrJson>, u8),
}

impl IrJson {
    /// Reads a text.
    pub(super) fn read(text: &[u8]) -> Result<IrJson, Violation> {
        text::read(text, Builder)
    }

    /// A member of an object.
    pub(super) fn member(&self, name: &str) -> Option<&IrJson> {
        match self {
            IrJson::Object(members, _) => members.get(name),
            _ => None,
        }
    }

    /// The elements of the array that a member is; none of anything else.
    pub(super) fn items_of(&self, name: &str) -> impl Iterator<Item = &IrJson> {
        let items = match self.member(name) {
            Some(IrJson::Array(items, _)) => items.as_slice(),
            _ => &[],
        };
        items.iter()
    }

    /// The text that it is.
    pub(super) fn text(&self) -> Option<&str> {
        match self {
            IrJson::Text(text) | IrJson::Word(text) => Some(text),
            _ => None,
        }
    }

    /// The index of a node that it is.
    pub(super) fn index(&self) -> Option<usize> {
        match self {
            IrJson::Word(text) => text.parse().ok(),
            IrJson::Int(index) => usize::try_from(*index).ok(),
            _ => None,
        }
    }

    /// How deep values nest in this one; 0 for a plain one. Counted when a value is made, so that nothing is walked for it.
    fn depth(&self) -> u8 {
        match self {
            IrJson::Array(_, depth) | IrJson::Object(_, depth) => *depth,
            _ => 0,
        }
    }
}

/// Makes values bottom up. What nests deeper than [`DEEPEST`] becomes null on the way, and is no member that a type has.
struct Builder;

/// One level more than the deepest of these; `None` for more than a graph has.
fn around<'a>(values: impl Iterator<Item = &'a IrJson>) -> Option<u8> {
    let inside = values.map(IrJson::depth).max().unwrap_or_default();
    inside.checked_add(1).filter(|depth| *depth <= DEEPEST)
}

impl Build for Builder {
    type Value = IrJson;

    /// Null is also what a missing node is.
    fn null(&mut self) -> IrJson {
        IrJson::Null
    }

    fn truth(&mut self, _: bool) -> IrJson {
        IrJson::Null
    }

    /// Only whole numbers of 64 bits come here (OBJ-16).
    fn int(&mut self, value: i64, _: usize) -> IrJson {
        IrJson::Int(value)
    }

    fn float(&mut self, _: f64) -> IrJson {
        IrJson::Null
    }

    /// A name of the compiler is UTF-8; what is not shows as such, and is no name that is looked for.
    fn text(&mut self, bytes: &[u8], _: usize) -> IrJson {
        IrJson::Text(String::from_utf8_lossy(bytes).into_owned())
    }

    fn array(&mut self, items: Vec<IrJson>) -> IrJson {
        match around(items.iter()) {
            Some(depth) => IrJson::Array(items, depth),
            None => IrJson::Null,
        }
    }

    fn empty_object(&mut self) -> IrJson {
        IrJson::Object(BTreeMap::new(), 1)
    }

    /// Names and their values; a name of a graph is text.
    fn object(&mut self, pairs: Vec<(IrJson, IrJson)>) -> Option<IrJson> {
        let Some(depth) = around(pairs.iter().map(|(_, value)| value)) else {
            return Some(IrJson::Null);
        };
        let named = pairs.into_iter().map(|(name, value)| match name {
            IrJson::Text(name) => (name, value),
            _ => (String::new(), value),
        });
        // OBJ-16: of a name that repeats the last counts. Names of a tree do not collide.
        Some(IrJson::Object(named.collect(), depth))
    }
}
