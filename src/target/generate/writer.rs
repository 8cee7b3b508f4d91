//! What expressions and statements are written with: names, the text so far, and where in the function the writer is.

use super::abi::Abi;
use super::helper_text::Converter;
use super::ir::IrGraph;
use super::names::is_reserved;
use super::scalar::{ScalarType, identifier};
use super::{TGT_88, TGT_89};
use crate::rule::{Kind, Violation};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// How deep statements and expressions are nested (TGT-89).
const DEPTH: usize = 200;
/// How many nodes one module may have, each counted as often as it is referred to (TGT-89).
const NODES: usize = 1 << 20;
/// How many bytes an expression may have (TGT-89).
const EXPRESSION: usize = 1 << 18;

/// The variable that counts the lanes of a vector.
pub(super) const LANE: &str = "lane";

/// Where the code runs, as far as the text depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CodePlace {
    /// A processor, by functions with the convention of this ABI.
    Host(Abi),
    /// An OpenCL device.
    Kernel,
}

/// What a variable is in the code.
#[derive(Clone, Debug)]
pub(super) struct CName {
    /// Its name, or the expression that it is short for.
    pub(super) text: String,
    /// Of an address: what qualifies the type of what is there.
    pub(super) space: &'static str,
}

/// An expression with its type.
#[derive(Clone, Debug)]
pub(super) struct CValue {
    pub(super) text: String,
    pub(super) dtype: ScalarType,
}

/// Writes one module.
#[derive(Debug)]
pub(super) struct CWriter<'a> {
    pub(super) graph: &'a IrGraph,
    pub(super) place: CodePlace,
    /// Names of variables, by their nodes.
    pub(super) names: BTreeMap<usize, CName>,
    used: BTreeSet<String>,
    pub(super) out: String,
    indent: usize,
    path: Vec<String>,
    nodes: usize,
    /// Functions that are called by name, with what holds each: found once, kept for the next call.
    pub(super) called: BTreeMap<String, String>,
    /// Functions of C's library that the text calls.
    pub(super) library: BTreeSet<String>,
    /// The functions for bits of fractions that the text calls.
    pub(super) converters: BTreeSet<Converter>,
    /// Whether the text calls a function that counts bits.
    pub(super) counts: bool,
    /// How many lanes the vectors have of which [`LANE`] is one; 1 outside of any.
    pub(super) lanes: u16,
}

impl<'a> CWriter<'a> {
    /// A writer without a text. One serves all functions of a module: names, limits (TGT-89) and helper functions are the module's.
    pub(super) fn new(graph: &'a IrGraph, place: CodePlace) -> CWriter<'a> {
        CWriter {
            graph,
            place,
            names: BTreeMap::new(),
            used: BTreeSet::new(),
            out: String::new(),
            indent: 0,
            path: Vec::new(),
            nodes: 0,
            called: BTreeMap::new(),
            library: BTreeSet::new(),
            converters: BTreeSet::new(),
            counts: false,
            lanes: 1,
        }
    }

    /// Does `work` one step further inside.
    pub(super) fn within<T>(
        &mut self,
        step: impl Into<String>,
        work: impl FnOnce(&mut Self) -> Result<T, Violation>,
    ) -> Result<T, Violation> {
        self.path.push(step.into());
        let done = work(self);
        self.path.pop();
        done
    }

    /// Steps that are not taken back at once: a chain of statements is followed without nesting.
    pub(super) fn mark(&self) -> usize {
        self.path.len()
    }

    pub(super) fn step(&mut self, step: &str) {
        self.path.push(step.to_owned());
    }

    pub(super) fn back(&mut self, mark: usize) {
        self.path.truncate(mark);
    }

    /// Counts a node, and holds it to the members that its type has.
    pub(super) fn visit(&mut self, at: usize) -> Result<(), Violation> {
        self.nodes = self.nodes.saturating_add(1);
        // TGT-89: a node is counted each time it is met, since the text grows by what is met and not by what is stored.
        // The path has a step for each level inside; what follows in one block is no level (`mark`).
        if self.nodes > NODES || self.path.len() > DEPTH {
            return Err(too_much(format!(
                "node {at} is one too many, or too deep: {NODES} nodes, {DEPTH} deep are read"
            )));
        }
        match self.graph.lacking(at) {
            None => Ok(()),
            Some(name) => Err(self.malformed(at, &format!("has no `{name}`"))),
        }
    }

    /// An expression, if it is not too long.
    pub(super) fn value(&self, text: String, dtype: ScalarType) -> Result<CValue, Violation> {
        match text.len() <= EXPRESSION {
            true => Ok(CValue { text, dtype }),
            false => Err(too_much(format!(
                "an expression of more than {EXPRESSION} bytes"
            ))),
        }
    }

    /// The violation of a node that is not written here: which, and where it is.
    pub(super) fn unsupported(&self, at: usize, why: &str) -> Violation {
        let key = self.graph.type_key(at);
        let path = self.path.join(".");
        let message =
            format!("{path}: {key} (node {at}){why} is not in the subset that is written");
        TGT_88.rejected(Kind::Unsupported, message)
    }

    /// The violation of a node that lacks what its type has: which, and where it is.
    pub(super) fn malformed(&self, at: usize, what: &str) -> Violation {
        let key = self.graph.type_key(at);
        let path = self.path.join(".");
        let message = format!("{path}: {key} (node {at}) {what}");
        TGT_88.rejected(Kind::Malformed, message)
    }

    /// The node that a member names, which has to be there.
    pub(super) fn required(&self, at: usize, name: &str) -> Result<usize, Violation> {
        let child = self.graph.child(at, name);
        child.ok_or_else(|| self.malformed(at, &format!("has no `{name}`")))
    }

    /// What is in the array that a member names, which has to be there.
    pub(super) fn required_list(&self, at: usize, name: &str) -> Result<&'a [usize], Violation> {
        let graph = self.graph;
        Ok(graph.items(self.required(at, name)?))
    }

    /// The text of a node that is a literal.
    pub(super) fn literal(&self, at: usize) -> Result<&'a str, Violation> {
        let graph = self.graph;
        let text = graph.text(at, "value").or_else(|| graph.plain(at));
        text.ok_or_else(|| self.malformed(at, "is not text"))
    }

    /// The number of a node that is a constant; `None` for any other expression.
    pub(super) fn constant(&self, at: usize) -> Result<Option<i64>, Violation> {
        if self.graph.key(at) != "IntImm" {
            return Ok(None);
        }
        match self.graph.number(at, "value") {
            Some(number) => Ok(i64::try_from(number).ok()),
            None => Err(self.malformed(at, "has no `value`")),
        }
    }

    /// A name that nothing has so far, as close to `wish` as that allows.
    pub(super) fn fresh(&mut self, wish: &str) -> String {
        let wish = identifier(wish);
        // Names of C and of the functions that are called; `_` in front of a figure is how the next are made.
        let mut name = if is_reserved(&wish) {
            format!("{wish}_")
        } else {
            wish
        };
        let stem = name.clone();
        let mut next = 1_usize;
        while !self.used.insert(name.clone()) {
            name = format!("{stem}_{next}");
            next = next.saturating_add(1);
        }
        name
    }

    /// Names the variable of a node.
    pub(super) fn declare(&mut self, var: usize) -> String {
        let name = self.graph.text(var, "name").unwrap_or("v").to_owned();
        let text = self.fresh(&name);
        let space = "";
        self.names.insert(
            var,
            CName {
                text: text.clone(),
                space,
            },
        );
        text
    }

    /// The name of a function of C's library, which the text calls.
    pub(super) fn of_library(&mut self, name: impl Into<String>) -> String {
        let name = name.into();
        self.library.insert(name.clone());
        name
    }

    /// Writes a line, indented.
    pub(super) fn line(&mut self, text: &str) {
        let indent = self.indent.saturating_mul(2);
        // Writing to a string does not fail.
        let _ = writeln!(self.out, "{:indent$}{text}", "");
    }

    /// Lines between braces.
    pub(super) fn braces(
        &mut self,
        head: &str,
        body: impl FnOnce(&mut Self) -> Result<(), Violation>,
    ) -> Result<(), Violation> {
        self.line(format!("{head} {{").trim_start());
        self.indent = self.indent.saturating_add(1);
        let done = body(self);
        self.indent = self.indent.saturating_sub(1);
        self.line("}");
        done
    }
}

/// TGT-89: not by a check that can be switched off, since without it the text of a small graph has no end.
fn too_much(message: String) -> Violation {
    // TGT-89: nothing bounds it upstream. Expressions share nodes, so that their text doubles with each level.
    TGT_89.rejected(Kind::Limit, message)
}
