//! Operations of the chapter graph.

use super::driver;
use crate::conformance::op::{self, Answer, Handler, Op, OpError};
use crate::graph::{Graph, Plan};
use crate::rule::Findings;
use serde_json::Value;

/// The operations that a case of this chapter can use.
pub(crate) const OPS: &[Op] = &[
    Op {
        name: "graph.decode",
        help: "data: the graph JSON in normal form, with the number of entries and the storage plan",
        run: Handler::Here(decode),
    },
    Op {
        name: "graph.script",
        help: "value {graph, tensors, devices, debug, steps}: the result of every step",
        run: Handler::Legacy(driver::script),
    },
];

/// Runs `graph.decode`: returns the graph, the number of its entries, and the plan of its memory (GRF-22 to GRF-24).
fn decode(args: &Value) -> Result<Answer, OpError> {
    let data = op::data(args)?;
    let mut findings = Findings::default();
    let graph = Graph::read_bytes(&data, &mut findings)?;
    let plan = Plan::from_graph(&graph)?;
    let mut value = graph.to_json();
    if let Value::Object(members) = &mut value {
        members.insert("entries".into(), graph.entries.len().into());
        members.insert("storage".into(), plan.to_json());
    }
    Ok(Answer::new(value, findings))
}
