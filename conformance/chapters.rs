//! The table of chapters that the suite runs, in order. A new chapter adds its entry here.

use super::op::Op;
use crate::rule::Rule;
use crate::wire::Span;
use crate::{
    blob, device, function, graph, import_tree, module, object, payload, rpc, target, tensor,
    value, vm, wire,
};
use serde_json::Value;

/// The suite's description of a chapter.
///
/// ```
/// use tvmspec::conformance::{Chapter, Op, chapter};
///
/// let wire: &Chapter = chapter("wire").expect("a chapter with cases");
/// let ops: Vec<&Op> = wire.ops().collect();
/// assert!(ops.iter().any(|op| op.name == "wire.decode"));
/// assert!(wire.rules().any(|rule| rule.id() == "WIRE-01"));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Chapter {
    /// The name, the same everywhere in the project.
    pub name: &'static str,
    /// The rules that its code enforces, grouped as in its files.
    pub(crate) rule_groups: &'static [&'static [Rule]],
    /// Its operations, grouped as in its files.
    pub(crate) op_groups: &'static [&'static [Op]],
    /// `true` if its operations share no process state with others, so that several can run concurrently.
    pub independent: bool,
    /// Names every byte of an input, for the annotated bytes of a failure.
    pub(crate) trace: Option<TraceOf>,
}

/// Reads the input of an operation (bytes, and the arguments of the case) and names its fields, as far as possible.
pub(crate) type TraceOf = fn(op: &str, data: &[u8], args: &Value) -> Vec<Span>;

/// Every chapter with operations, in dependency order.
pub const CHAPTERS: &[Chapter] = &[
    // The order matters: reports put the first failure nearest to its cause, and rule_off looks for a rule's cases from its chapter
    // on.
    Chapter {
        name: "wire",
        rule_groups: &[wire::RULES],
        op_groups: &[super::wire::ops::OPS],
        independent: true,
        trace: Some(super::wire::ops::trace),
    },
    Chapter {
        name: "tensor",
        rule_groups: &[tensor::RULES],
        op_groups: &[super::tensor::ops::OPS],
        independent: true,
        trace: Some(super::tensor::ops::trace),
    },
    Chapter {
        name: "payload",
        rule_groups: &[payload::RULES],
        op_groups: &[super::payload::ops::OPS],
        independent: true,
        trace: Some(super::payload::ops::trace),
    },
    Chapter {
        name: "import_tree",
        rule_groups: &[import_tree::RULES],
        op_groups: &[super::import_tree::ops::OPS],
        independent: true,
        trace: Some(super::import_tree::ops::trace),
    },
    Chapter {
        name: "blob",
        rule_groups: &[blob::RULES],
        op_groups: &[
            super::blob::ops::OPS,
            super::blob::containers::OPS,
            super::blob::packing::OPS,
        ],
        independent: true,
        trace: Some(super::blob::ops::trace),
    },
    Chapter {
        name: "value",
        rule_groups: &[value::RULES],
        op_groups: &[super::value::ops::OPS],
        independent: false,
        trace: None,
    },
    Chapter {
        name: "function",
        rule_groups: &[function::RULES],
        op_groups: &[super::function::ops::OPS, super::function::legacy::OPS],
        independent: false,
        trace: None,
    },
    Chapter {
        name: "object",
        rule_groups: &[object::RULES],
        op_groups: &[super::object::ops::OPS],
        independent: false,
        trace: None,
    },
    Chapter {
        name: "module",
        rule_groups: &[module::RULES],
        op_groups: &[super::module::ops::OPS, super::module::backend_ops::OPS],
        independent: false,
        trace: None,
    },
    Chapter {
        name: "device",
        rule_groups: &[device::RULES],
        op_groups: &[super::device::ops::OPS],
        independent: false,
        trace: None,
    },
    Chapter {
        name: "target",
        rule_groups: &[target::RULES],
        op_groups: &[super::target::ops::OPS],
        independent: false,
        trace: None,
    },
    Chapter {
        name: "graph",
        rule_groups: &[graph::RULES],
        op_groups: &[super::graph::ops::OPS],
        independent: false,
        trace: None,
    },
    Chapter {
        name: "vm",
        rule_groups: &[vm::RULES],
        op_groups: &[super::vm::ops::OPS],
        independent: false,
        trace: None,
    },
    Chapter {
        name: "rpc",
        rule_groups: &[rpc::RULES],
        op_groups: &[super::rpc::ops::OPS],
        independent: true,
        trace: Some(super::rpc::ops::trace),
    },
];

/// Returns the chapter with this name.
pub fn chapter(name: &str) -> Option<&'static Chapter> {
    CHAPTERS.iter().find(|chapter| chapter.name == name)
}

impl Chapter {
    /// Returns the rules that its code enforces.
    pub fn rules(&self) -> impl Iterator<Item = Rule> {
        self.rule_groups.iter().copied().flatten().copied()
    }

    /// Returns its operations.
    pub fn ops(&self) -> impl Iterator<Item = &'static Op> {
        self.op_groups.iter().copied().flatten()
    }
}
