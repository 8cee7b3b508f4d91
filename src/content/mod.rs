//! Content of payloads that has its own chapter: code of the Relax VM, the graph of a graph executor.
//!
//! Chapter payload reads the fields. The content is checked here against the rules of chapters graph and vm, which come after payload
//! and blob in the order of chapters. Releases check none of it while they load a library.

mod edit;

use crate::graph::{Graph, Plan};
use crate::payload::{Field, Payload};
use crate::rule::{Findings, Violation};
use crate::vm::Executable;

/// The kinds of module whose `graph_json` a graph executor runs (PAY-40). The field of a vendor's module need not be such a graph
/// (PAY-45).
const FACTORIES: [&str; 2] = ["GraphRuntimeFactory", "GraphExecutorFactory"];

/// Returns whether a module of this kind has content that [`fault_of`] checks.
#[cfg(feature = "inspect")]
pub(crate) fn is_held(kind: &str) -> bool {
    kind.starts_with("relax.") || FACTORIES.contains(&kind)
}

/// Checks the content of a valid payload against the rules of the chapter of its content. `start` is the offset of the payload, to which the
/// offset of the violation refers. For VM code, the offset is the one that was recorded when its words were read.
///
/// Code of the Relax VM is checked against VM-01 to VM-05. A graph is checked against GRF-01 to GRF-24 and GRF-51 to GRF-53, including
/// those of its storage plan.
pub(crate) fn fault_of(payload: &Payload<'_>, start: u64) -> Option<Violation> {
    if let Some(code) = payload.relax_vm() {
        return Executable::new(code.clone()).err();
    }
    if !FACTORIES.contains(&payload.kind()) {
        return None;
    }
    // PAY-40: the graph is the first field, after the length of its text.
    let Some(Field::Text(text)) = payload.fields().first() else {
        return None;
    };
    let at = start.saturating_add(8);
    let graph = Graph::read(text, &mut Findings::default());
    let broken = graph.and_then(|graph| Plan::from_graph(&graph)).err()?;
    let field = match broken.field() {
        "" => "graph_json".to_owned(),
        inner => format!("graph_json.{inner}"),
    };
    // A violation of the plan has no byte. It is placed at the text.
    let placed = match broken.offset() {
        Some(_) => broken.shifted(at),
        None => broken
            .rule()
            .broken(broken.kind(), at, broken.message().to_owned()),
    };
    Some(placed.in_field(field))
}
