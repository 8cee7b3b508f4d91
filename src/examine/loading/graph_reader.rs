//! The reader of graph text in the executors of 0.2 to 0.19. It differs from a JSON reader.
//!
//! | text | JSON | executors |
//! |---|---|---|
//! | escapes `\"`, `\\`, `\n`, `\r`, `\t` | yes | yes |
//! | other escapes: `\u0061`, `\/`, `\b`, `\f` | yes | no |
//! | control characters in a string | no | all except carriage return and line feed |
//! | a sign or zeros before a number | no | yes |
//! | numbers with a point or an exponent, words | yes | no |
//! | the end of the text instead of closing brackets | no | after an element or a member |
//! | text after the closing brace, or after the member `metadata` (0.6 and later) | no | yes |

use crate::graph::{Graph, Plan};
use crate::rule::{Findings, Violation};
use serde_json::{Map, Value};

/// A graph as the executors read it.
pub(super) struct ReadGraph {
    /// The graph up to the member `metadata`, which is left out with everything after it.
    pub(super) graph: Value,
    /// True if reading ended at the member `metadata`.
    pub(super) has_metadata: bool,
}

impl ReadGraph {
    /// Reads `text` as the executors do, up to the point where they stop.
    ///
    /// # Errors
    ///
    /// Returns the reason why the executors reject it.
    pub(super) fn read(text: &[u8]) -> Result<ReadGraph, String> {
        // Python frontends pass the graph as text.
        if let Err(error) = std::str::from_utf8(text) {
            let at = error.valid_up_to();
            return Err(format!(
                "Python takes no text that is not UTF-8: byte {at:#x}"
            ));
        }
        let mut reader = Reader {
            text,
            at: 0,
            has_metadata: false,
        };
        reader.begin(b'{')?;
        let graph = reader.object(1)?;
        Ok(ReadGraph {
            graph,
            has_metadata: reader.has_metadata,
        })
    }

    /// Returns the first rule that the graph breaks, apart from rules about its text.
    pub(super) fn fault(&self) -> Option<Violation> {
        let graph = Graph::read(&self.graph.to_string(), &mut Findings::default());
        graph.and_then(|graph| Plan::from_graph(&graph)).err()
    }
}

/// The maximum nesting depth of a graph's members.
const DEEPEST: usize = 8;

/// The depth of the graph and of its nodes. Values are one deeper than the object or list around them.
const GRAPH: usize = 1;
const NODE: usize = 3;

/// The depth from which executors read no object. An attribute of the graph is only a type name and a list of texts or numbers.
const NO_OBJECT: usize = 5;

/// The members of a graph, except `metadata`, which ends reading, and the members of a node. Executors reject a graph that has any
/// other member (GRF-03, GRF-13).
const GRAPH_MEMBERS: [&str; 5] = ["nodes", "arg_nodes", "node_row_ptr", "heads", "attrs"];
const NODE_MEMBERS: [&str; 6] = ["op", "name", "inputs", "attr", "attrs", "control_deps"];

/// Returns whether executors read a member of this name in an object at `depth`.
fn is_member(depth: usize, name: &str) -> bool {
    match depth {
        GRAPH => GRAPH_MEMBERS.contains(&name),
        NODE => NODE_MEMBERS.contains(&name),
        NO_OBJECT.. => false,
        _ => true,
    }
}

/// The state of reading one text.
struct Reader<'t> {
    text: &'t [u8],
    at: usize,
    has_metadata: bool,
}

impl Reader<'_> {
    /// Returns the message for a text that is rejected at the current byte.
    fn stops(&self, expected: &str) -> String {
        let at = self.at;
        match self.text.get(at) {
            Some(byte) => {
                let found = char::from(*byte).escape_debug();
                format!("its reader expects {expected} and finds `{found}`, byte {at:#x}")
            }
            None => format!("its reader expects {expected} and finds the end of the text"),
        }
    }

    /// Skips white space and returns the next byte without consuming it; `None` at the end.
    fn peek(&mut self) -> Option<u8> {
        loop {
            let byte = *self.text.get(self.at)?;
            if !matches!(byte, b' ' | 0x09..=0x0d) {
                return Some(byte);
            }
            self.step();
        }
    }

    fn step(&mut self) {
        self.at = self.at.saturating_add(1);
    }

    /// Consumes the bracket that opens a value.
    fn begin(&mut self, bracket: u8) -> Result<(), String> {
        if self.peek() != Some(bracket) {
            return Err(self.stops(&format!("`{}`", char::from(bracket))));
        }
        self.step();
        Ok(())
    }

    /// Returns whether another element follows before the closing `bracket`. After an element, the end of the text counts as the
    /// bracket.
    fn follows(&mut self, is_first: bool, bracket: u8) -> Result<bool, String> {
        match self.peek() {
            None if !is_first => Ok(false),
            Some(byte) if byte == bracket => {
                self.step();
                Ok(false)
            }
            _ if is_first => Ok(true),
            Some(b',') => {
                self.step();
                Ok(true)
            }
            _ => Err(self.stops(&format!("`,` or `{}`", char::from(bracket)))),
        }
    }

    /// Reads the members after an opening brace.
    fn object(&mut self, depth: usize) -> Result<Value, String> {
        let mut members = Map::new();
        let mut is_first = true;
        while self.follows(is_first, b'}')? {
            is_first = false;
            let key = self.string()?;
            self.begin(b':')?;
            // GRF-02: nothing after it is read.
            if depth == GRAPH && key == "metadata" {
                self.has_metadata = true;
                break;
            }
            if !is_member(depth, &key) {
                members.insert(key, Value::Null);
                self.end();
                break;
            }
            let value = self.value(depth)?;
            members.insert(key, value);
        }
        let is_node = ["op", "name", "inputs"]
            .iter()
            .all(|name| members.contains_key(*name));
        if depth == NODE && !is_node {
            self.end();
        }
        Ok(Value::Object(members))
    }

    /// Ends reading at the byte where the executors reject the graph. Reading the rest would only take memory.
    fn end(&mut self) {
        self.at = self.text.len();
    }

    fn value(&mut self, depth: usize) -> Result<Value, String> {
        let depth = depth.saturating_add(1);
        match self.peek() {
            Some(b'{' | b'[') if depth > DEEPEST => Err(self.stops("no further list or object")),
            Some(b'{') => {
                self.step();
                self.object(depth)
            }
            Some(b'[') => {
                self.step();
                let mut elements = Vec::new();
                while self.follows(elements.is_empty(), b']')? {
                    elements.push(self.value(depth)?);
                }
                Ok(Value::Array(elements))
            }
            Some(b'"') => self.string().map(Value::String),
            _ => self.number(),
        }
    }

    /// Reads an integer as a C++ stream does, without the text after it. If that text is not valid, the next step rejects it.
    fn number(&mut self) -> Result<Value, String> {
        let start = self.at;
        if matches!(self.text.get(self.at), Some(b'+' | b'-')) {
            self.step();
        }
        while self.text.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.step();
        }
        let digits = self.text.get(start..self.at).unwrap_or_default();
        let digits = std::str::from_utf8(digits).unwrap_or_default();
        let number = digits.parse::<i64>().map(Value::from);
        let number = number.or_else(|_| digits.parse::<u64>().map(Value::from));
        number.map_err(|_| {
            self.at = start;
            self.stops("a number")
        })
    }

    fn string(&mut self) -> Result<String, String> {
        if self.peek() != Some(b'"') {
            return Err(self.stops("`\"`"));
        }
        self.step();
        let mut bytes = Vec::new();
        loop {
            let byte = match self.text.get(self.at) {
                None | Some(b'\r' | b'\n') => return Err(self.stops("the end of a string")),
                Some(b'"') => break,
                Some(b'\\') => {
                    self.step();
                    match self.text.get(self.at) {
                        Some(b'n') => b'\n',
                        Some(b'r') => b'\r',
                        Some(b't') => b'\t',
                        Some(quoted @ (b'"' | b'\\')) => *quoted,
                        _ => {
                            return Err(self
                                .stops("one of the escapes `\\\"`, `\\\\`, `\\n`, `\\r`, `\\t`"));
                        }
                    }
                }
                Some(byte) => *byte,
            };
            bytes.push(byte);
            self.step();
        }
        self.step();
        // The text is UTF-8, and each escape represents an ASCII byte.
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}
