//! Operations of chapter `import_tree`.

use crate::conformance::module::loading;
use crate::conformance::op::{
    Answer, Handler, Op, OpError, base64, data, fields_to_json, without_offset,
};
use crate::import_tree::{Algorithm, ImportTree, json, order};
use crate::rule::Findings;
use crate::wire::{Cursor, Span, Trace, Writer};
use serde_json::Value;

/// Every operation of this chapter.
pub(crate) const OPS: &[Op] = &[
    Op {
        name: "import_tree.decode",
        help: "`data`: both vectors; `modules`: the number of modules in the file, if known; returns {indptr, indices}",
        run: Handler::Partly(decode, loading::import_tree),
    },
    Op {
        name: "import_tree.encode",
        help: "`value`: {indptr, indices}; returns the bytes",
        run: Handler::Here(encode),
    },
    Op {
        name: "import_tree.order",
        help: "`value`: {modules: [{dso or kind, imports}]}, `release`: decides which kinds are merged, `algorithm`: 0.7, 0.8 or topological; returns {order, indptr, indices}",
        run: Handler::Here(ordered),
    },
    Op {
        name: "import_tree.fields",
        help: "`data`: both vectors; returns where each field lies, its name, its rule and its value",
        run: Handler::Here(fields),
    },
];

/// Runs `import_tree.fields`, which returns the place of each number of both vectors.
fn fields(args: &Value) -> Result<Answer, OpError> {
    let spans = trace("import_tree.fields", &data(args)?, args);
    Ok(Answer::new(fields_to_json(&spans), Findings::default()))
}

/// Returns the fields of both vectors, as far as they can be read.
pub(crate) fn trace(_op: &str, data: &[u8], _args: &Value) -> Vec<Span> {
    let trace = Trace::new();
    let mut findings = Findings::default();
    let mut cursor = Cursor::traced(data, &trace);
    // A violation ends the reading; only the fields before it are needed.
    let read = ImportTree::read(&mut cursor, &mut findings);
    let _ = read.and_then(|_| cursor.finish("the import tree", &mut findings));
    trace.into_spans()
}

/// Runs `import_tree.decode` (TREE-01 to TREE-13), which returns the rows. TREE-13 needs the number of modules, which a blob stores apart
/// from the tree.
fn decode(args: &Value) -> Result<Answer, OpError> {
    let bytes = data(args)?;
    let mut findings = Findings::default();
    let mut cursor = Cursor::new(&bytes);
    let tree = ImportTree::read(&mut cursor, &mut findings)?;
    cursor.finish("the import tree", &mut findings)?;
    if let Some(modules) = args.get("modules").and_then(Value::as_u64) {
        tree.check_modules(usize::try_from(modules).unwrap_or(usize::MAX))?;
    }
    Ok(Answer::new(json::from_tree(&tree), findings))
}

/// Runs `import_tree.encode`, which returns both vectors. A tree that breaks a rule is rejected like its bytes.
fn encode(args: &Value) -> Result<Answer, OpError> {
    let mut findings = Findings::default();
    let value = args.get("value").unwrap_or(&Value::Null);
    let tree = json::to_tree(value, &mut findings)?;
    let tree = tree.map_err(without_offset)?;
    let mut out = Writer::new();
    tree.write(&mut out);
    Ok(Answer::new(base64(&out.into_bytes()), findings))
}

/// Runs `import_tree.order` (TREE-20 to TREE-28), which returns the modules of a graph in the order in which a release stores them, and
/// their tree.
fn ordered(args: &Value) -> Result<Answer, OpError> {
    let value = args.get("value").unwrap_or(&Value::Null);
    let release = args.get("release").and_then(Value::as_str);
    let release = release.map(str::parse).transpose()?;
    let graph = json::to_graph(value, release)?;
    let algorithm = match args.get("algorithm").and_then(Value::as_str) {
        Some(name) => name.parse()?,
        None => Algorithm::default(),
    };
    let ordered = order(&graph, algorithm)?;
    Ok(Answer::new(json::from_order(&ordered), Findings::default()))
}
