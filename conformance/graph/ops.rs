//! Operations of the chapter graph.

use crate::conformance::op::{self, Answer, Op, Refusal};
use crate::graph::{Graph, Plan};
use crate::rule::{Findings, Kind};
use crate::wire::WIRE_05;
use serde_json::Value;

/// What a case of this chapter can ask.
pub const OPS: &[Op] = &[Op {
    name: "graph.decode",
    help: "data: the graph JSON in normal form, with the number of entries and the storage plan",
    run: decode,
}];

fn decode(args: &Value) -> Result<Answer, Refusal> {
    let data = op::data(args)?;
    let text = std::str::from_utf8(&data).map_err(|error| {
        WIRE_05.broken(
            Kind::Malformed,
            error.valid_up_to() as u64,
            "the graph is not UTF-8",
        )
    })?;
    let mut findings = Findings::default();
    let graph = Graph::read(text, &mut findings)?;
    let plan = Plan::of(&graph)?;
    let mut value = graph.to_json();
    if let Value::Object(members) = &mut value {
        members.insert("entries".into(), graph.entries.len().into());
        members.insert("storage".into(), plan.to_json());
    }
    Ok(Answer::new(value, findings))
}
