//! The parsed grammar of the specification. `spec/wire.md` explains the notation.

mod parser;

use parser::Parser;

/// A production: the bytes for a name, in some releases.
#[derive(Clone, Debug)]
pub(crate) struct Production {
    pub(crate) name: String,
    /// The first and the last release, as the number after `0.`.
    pub(crate) releases: (u8, u8),
    /// `true` for the payload of a module of the kind `name`.
    pub(crate) is_kind: bool,
    /// In order: the first one that reads counts.
    pub(crate) alternatives: Vec<Vec<Item>>,
    /// The original text.
    pub(crate) text: String,
}

impl Production {
    /// Returns the text after the name.
    pub(crate) fn body(&self) -> &str {
        let (_, body) = self.text.split_once("::=").unwrap_or_default();
        body.trim()
    }
}

/// An element of a sequence.
#[derive(Clone, Debug)]
pub(crate) enum Item {
    /// A field; without a name, the fields of another production.
    Field {
        name: Option<String>,
        kind: Kind,
        is: Option<Literal>,
    },
    /// `{a = b}`: if it does not hold, the sequence does not read.
    Guard(Sum, Relation, Sum),
}

/// The type of a field.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    /// `u32`, `string`, ...
    Plain(String),
    /// `vector<..>`; a map is a vector of pairs.
    Vector(Vec<Item>),
    /// `window<..>`: a length, and content that fills that many bytes.
    Window(Vec<Item>),
    /// `(..)`.
    Group(Vec<Item>),
    /// `kind[count]`, without a count before it.
    Times(Box<Kind>, Sum),
    /// `raw[length]`.
    Raw(Sum),
    /// A production, in the release of the reading, of a number, or of a field.
    Name(String, At),
    /// `payload<kind>`: the production of the kind that a field names.
    Payload(String),
}

/// The release of a referenced production.
#[derive(Clone, Debug)]
pub(crate) enum At {
    Here,
    Release(u8),
    Field(String),
}

#[derive(Clone, Debug)]
pub(crate) enum Literal {
    Number(i128),
    Text(String),
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Relation {
    Equal,
    Greater,
}

/// A sum of products, with the sign of each.
#[derive(Clone, Debug)]
pub(crate) struct Sum(pub(crate) Vec<(bool, Vec<(bool, Atom)>)>);

/// A part of an expression.
#[derive(Clone, Debug)]
pub(crate) enum Atom {
    Number(i128),
    Field(String),
    /// `#names`: the number of elements.
    Count(String),
    /// `product(shape)`: the product of the elements.
    Product(String),
    Inner(Sum),
}

/// Returns every production in the blocks ```` ```grammar ```` of a chapter.
pub(crate) fn productions(chapter: &str) -> Vec<Production> {
    let mut found = Vec::new();
    let mut block: Option<bool> = None;
    let mut open = String::new();
    for line in chapter.lines() {
        match (block, line) {
            (None, "```grammar") => block = Some(false),
            (None, "```grammar kinds") => block = Some(true),
            (None, _) => {}
            (Some(is_kind), _) => {
                let ends = line == "```";
                if (ends || !line.starts_with(' ')) && !open.is_empty() {
                    found.push(Parser::production(&open, is_kind));
                    open.clear();
                }
                if ends {
                    block = None;
                } else if !line.is_empty() {
                    open.push_str(line);
                    open.push('\n');
                }
            }
        }
    }
    assert!(block.is_none(), "a block of grammar is not closed");
    found
}

/// Parses a single sequence: the type of a case of `wire`.
pub(crate) fn sequence(text: &str) -> Vec<Item> {
    let mut parser = Parser {
        rest: text,
        whole: text,
    };
    let items = parser.items();
    parser.expect_end();
    items
}
