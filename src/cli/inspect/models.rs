//! Models, parameters and saved objects, in the report for people at a terminal. Each function appends a section that starts with an
//! empty line. A report without the member has no section.

use super::value_text::{
    count, format_cell, list, names, number, releases_of, rows, section, shape, text,
};
use crate::cli::color::StyledWrite;
use crate::cli::table::size;
use serde_json::Value;

/// Writes an executable of either VM, Relax or Relay: functions, calls, constants, and the code if `--code` added it to the report.
pub(super) fn vm(out: &mut dyn StyledWrite, title: &str, vm: &Value) {
    section(out, title, text(&vm["version"]));
    let functions = list(&vm["functions"]);
    let described = functions.iter().map(|function| {
        let parameters: Vec<&str> = list(&function["parameters"]).iter().map(text).collect();
        vec![
            text(&function["name"]).to_owned(),
            text(&function["kind"]).to_owned(),
            parameters.join(", "),
            format_cell(&function["registers"]),
            format_cell(&function["instructions"]),
        ]
    });
    if !functions.is_empty() {
        // Members that one of the VMs lacks are empty cells.
        let header = [
            "function",
            "kind",
            "parameters",
            "registers",
            "instructions",
        ];
        rows(out, &header, described);
    }
    names(out, "calls", &vm["packed"]);
    if !list(&vm["constants"]).is_empty() {
        let constants = list(&vm["constants"]).iter().enumerate();
        let described = constants.map(|(index, constant)| {
            vec![
                index.to_string(),
                format_cell(&constant["type"]),
                format_cell(&constant["value"]),
            ]
        });
        rows(out, &["constant", "type", "value"], described);
    }
    if !list(&vm["code"]).is_empty() {
        section(out, title, "code");
    }
    for line in list(&vm["code"]) {
        let _ = writeln!(out, "  {}", text(line));
    }
}

/// Writes a table of tensors, with their count and size in the title. Writes nothing if the report has none.
pub(super) fn params(out: &mut dyn StyledWrite, title: &str, tensors: &Value) {
    let Some(tensors) = tensors.as_array() else {
        return;
    };
    let bytes = tensors.iter().map(|tensor| number(&tensor["bytes"])).sum();
    section(
        out,
        title,
        format_args!("{}, {}", tensors.len(), size(bytes)),
    );
    let described = tensors.iter().map(|tensor| {
        vec![
            text(&tensor["name"]).to_owned(),
            format_cell(&tensor["dtype"]),
            shape(&tensor["shape"]),
            size(number(&tensor["bytes"])),
        ]
    });
    if !tensors.is_empty() {
        rows(out, &["name", "dtype", "shape", "data"], described);
    }
}

/// Writes the shards of a tensor cache as a table, and the metadata of its index.
pub(super) fn cache(out: &mut dyn StyledWrite, cache: &Value) {
    if !cache.is_object() {
        return;
    }
    let shards = list(&cache["shards"]);
    let bytes = shards.iter().map(|shard| number(&shard["bytes"])).sum();
    section(
        out,
        "shards",
        format_args!("{}, {}", shards.len(), size(bytes)),
    );
    let described = shards.iter().map(|shard| {
        vec![
            text(&shard["path"]).to_owned(),
            format_cell(&shard["tensors"]),
            size(number(&shard["bytes"])),
            shard["state"]
                .as_str()
                .unwrap_or("not looked at")
                .to_owned(),
        ]
    });
    if !shards.is_empty() {
        rows(out, &["file", "tensors", "data", "state"], described);
    }
    for (name, value) in cache["metadata"].as_object().into_iter().flatten() {
        let _ = writeln!(out, "  {name}  {}", format_cell(value));
    }
}

/// Writes saved objects: the root, the writer, and the types, the most frequent first.
pub(super) fn objects(out: &mut dyn StyledWrite, objects: &Value) {
    // The most frequent types identify the content. Others are only counted.
    const MOST: usize = 24;
    if !objects.is_object() {
        return;
    }
    section(out, "objects", count(&objects["nodes"], "node"));
    let _ = writeln!(out, "  root     {}", text(&objects["root"]));
    // Files of some releases state their writer. For others, the form limits it to a range of releases.
    if let Some(version) = objects["written_by"].as_str() {
        let _ = writeln!(out, "  written  by tvm {version}");
    }
    if let Some(releases) = objects["releases"].as_str() {
        let _ = writeln!(out, "  form     of tvm {}", releases_of(releases));
    }
    if number(&objects["tensors"]) > 0 {
        let _ = writeln!(out, "  tensors  {}", objects["tensors"]);
    }
    let types = objects["types"].as_object();
    let mut types: Vec<(&String, u64)> = types
        .into_iter()
        .flatten()
        .map(|(key, nodes)| (key, number(nodes)))
        .collect();
    // Equally frequent types are sorted by name, so that the same file gives the same text.
    types.sort_by(|left, right| right.1.cmp(&left.1).then_with(|| left.0.cmp(right.0)));
    for (key, nodes) in types.iter().take(MOST) {
        let _ = writeln!(out, "  {nodes:>5}  {key}");
    }
    if types.len() > MOST {
        let _ = writeln!(
            out,
            "  and {} more types (--json has all)",
            types.len() - MOST
        );
    }
}

/// Writes a graph: its size, inputs, calls and outputs.
pub(super) fn graph(out: &mut dyn StyledWrite, graph: &Value) {
    if !graph.is_object() {
        return;
    }
    let about = format!(
        "{}, {}, {} of storage in {}",
        count(&graph["nodes"], "node"),
        count(&graph["operators"], "operator"),
        size(number(&graph["storage"]["bytes"])),
        count(&graph["storage"]["blocks"], "block"),
    );
    section(out, "graph", about);
    let both = [&graph["inputs"], &graph["outputs"]];
    // The column is as wide as the widest name below 40 bytes. Longer names exceed the column.
    let names = both.iter().flat_map(|entries| list(entries));
    let width = names
        .map(|entry| text(&entry["name"]).len())
        .filter(|width| *width < 40);
    let width = width.max().unwrap_or(0);
    let entries = |out: &mut dyn StyledWrite, what: &str, entries: &Value| {
        for entry in list(entries) {
            let (dtype, shape) = (text(&entry["dtype"]), shape(&entry["shape"]));
            let _ = writeln!(
                out,
                "  {what:<7} {:<width$}  {dtype} {shape}",
                text(&entry["name"])
            );
        }
    };
    entries(out, "input", &graph["inputs"]);
    if let Some(functions) = graph["functions"].as_object() {
        for (name, calls) in functions {
            // Most functions of a graph are called once, so that the count is printed only for the others.
            let times = if calls == 1 {
                String::new()
            } else {
                format!("  {calls} times")
            };
            let _ = writeln!(out, "  calls   {name}{times}");
        }
    }
    entries(out, "output", &graph["outputs"]);
}
