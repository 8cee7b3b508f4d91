//! What a payload stores that has a chapter of its own: the code of a Relax VM, the graph of a graph executor.
//!
//! Chapter payload reads the fields, and their content is held to the rules of chapters graph and vm here, beside the chapters: both are
//! below payload and blob, which store it. Releases look at none of it while they load a library.

mod edit;

use crate::graph::{Graph, Plan};
use crate::payload::{Field, Payload};
use crate::rule::{Findings, Violation};
use crate::vm::Executable;

/// The kinds of module whose `graph_json` a graph executor runs (PAY-40). That of a vendor's module need not be such a graph (PAY-45).
const FACTORIES: [&str; 2] = ["GraphRuntimeFactory", "GraphExecutorFactory"];

/// Whether a module of this kind stores something that [`fault_of`] looks at.
#[cfg(feature = "inspect")]
pub(crate) fn is_held(kind: &str) -> bool {
    kind.starts_with("relax.") || FACTORIES.contains(&kind)
}

/// What a payload that keeps the rules of chapter payload breaks of those of the chapter of its content. `start` is its offset, from where
/// the violation counts: of code whose words were read the violation has the offset of the file.
///
/// Code of the Relax VM is held to VM-01 to VM-05, and a graph to GRF-01 to GRF-24 and to GRF-51 to GRF-53, those of its plan of storage
/// included.
pub(crate) fn fault_of(payload: &Payload<'_>, start: u64) -> Option<Violation> {
    if let Some(code) = payload.relax_vm() {
        return Executable::new(code.clone()).err();
    }
    if !FACTORIES.contains(&payload.kind()) {
        return None;
    }
    // PAY-40: the graph is the first field, behind the length of its text.
    let Some(Field::Text(text)) = payload.fields().first() else {
        return None;
    };
    let at = start.saturating_add(8);
    let graph = Graph::read(text, &mut Findings::default());
    let broken = graph.and_then(|graph| Plan::of(&graph)).err()?;
    let field = match broken.field() {
        "" => "graph_json".to_owned(),
        inner => format!("graph_json.{inner}"),
    };
    // The plan blames no byte: there it is the text.
    let placed = match broken.offset() {
        Some(_) => broken.shifted(at),
        None => broken
            .rule()
            .broken(broken.kind(), at, broken.message().to_owned()),
    };
    Some(placed.in_field(field))
}
