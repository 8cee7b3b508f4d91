//! The text of a graph as the executors of 0.2 to 0.19 read it, which is not as JSON is read.
//!
//! | text | JSON | their reader |
//! |---|---|---|
//! | escapes `\"`, `\\`, `\n`, `\r`, `\t` | yes | yes |
//! | other escapes: `\u0061`, `\/`, `\b`, `\f` | yes | no |
//! | control characters in a string | no | all but the two that end lines |
//! | a sign or zeros in front of a number | no | yes |
//! | numbers with a point or an exponent, words | yes | no |
//! | the end of the text in place of closing brackets | no | behind an element or a member |
//! | text behind the closing brace, or behind the member `metadata` (0.6 and later) | no | yes |

use crate::graph::{Graph, Plan};
use crate::rule::{Findings, Violation};
use serde_json::{Map, Value};

/// A graph as their reader takes it.
pub(super) struct ReadGraph {
    /// Without the member `metadata`, and what is behind it.
    pub(super) graph: Value,
    /// Whether reading ended at that member.
    pub(super) has_metadata: bool,
}

impl ReadGraph {
    /// Reads `text` up to its end for their reader.
    ///
    /// # Errors
    ///
    /// Why their reader rejects it.
    pub(super) fn read(text: &[u8]) -> Result<ReadGraph, String> {
        // Frontends pass text.
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

    /// The first rule that the graph breaks, apart from how it is written.
    pub(super) fn fault(&self) -> Option<Violation> {
        let graph = Graph::read(&self.graph.to_string(), &mut Findings::default());
        graph.and_then(|graph| Plan::of(&graph)).err()
    }
}

/// How deep a graph nests at most: no member of it is read deeper.
const DEEPEST: usize = 8;

/// The reader of one text.
struct Reader<'t> {
    text: &'t [u8],
    at: usize,
    has_metadata: bool,
}

impl Reader<'_> {
    /// Why it stops here.
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

    /// The next byte that is no blank, which stays; `None` at the end.
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

    /// Takes the bracket that opens a value.
    fn begin(&mut self, bracket: u8) -> Result<(), String> {
        if self.peek() != Some(bracket) {
            return Err(self.stops(&format!("`{}`", char::from(bracket))));
        }
        self.step();
        Ok(())
    }

    /// Whether another element follows before the closing `bracket`. Behind an element the end of the text counts as one.
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

    /// The members behind an opening brace.
    fn object(&mut self, depth: usize) -> Result<Value, String> {
        let mut members = Map::new();
        let mut is_first = true;
        while self.follows(is_first, b'}')? {
            is_first = false;
            let key = self.string()?;
            self.begin(b':')?;
            // GRF-02: nothing behind it is looked at.
            if depth == 1 && key == "metadata" {
                self.has_metadata = true;
                break;
            }
            let value = self.value(depth)?;
            members.insert(key, value);
        }
        Ok(Value::Object(members))
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

    /// An integer, as a stream of C++ takes it. What follows it is for the next step to reject.
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
        // The text is UTF-8, and escapes are bytes of ASCII.
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}
