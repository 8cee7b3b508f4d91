//! Everything that is known of a file, as one JSON value.

use super::graph;
use super::payload;
use super::room::Room;
use crate::cli::diagnostic::Place;
use crate::cli::input::Input;
use crate::cli::subject::{Format, Unit};
use crate::cli::{Error, subject};
use serde_json::{Map, Value, json};
use tvmspec::blob::container::{Form, Part, Role, linkage};
use tvmspec::blob::{LIBRARY, Partial};
use tvmspec::document::objects;
use tvmspec::release::Layout;
use tvmspec::rule::{Finding, Findings, Violation};

/// The report, of which there will be `copies` in memory, and the text of the violations that were met; empty where every rule
/// is kept.
pub(super) fn report(
    input: &Input,
    layout: Option<Layout>,
    copies: u64,
) -> Result<(Value, String), Error> {
    let mut text = String::new();
    let mut top = Map::new();
    top.insert("file".into(), input.name.clone().into());
    top.insert("bytes".into(), input.bytes().len().into());
    let file = match subject::open(input) {
        Ok(file) => file,
        Err(broken) => {
            let place = Place {
                name: &input.name,
                bytes: input.bytes(),
                spans: &[],
            };
            text.push_str(&place.violation(&broken));
            top.insert("form".into(), Form::of(input.bytes()).name().into());
            top.insert("violation".into(), violation(&broken));
            return Ok((Value::Object(top), text));
        }
    };
    top.insert("form".into(), file.form.name().into());
    let linkage = linkage(file.form, input.bytes());
    if !linkage.libraries.is_empty() {
        top.insert("links".into(), linkage.libraries.clone().into());
    }
    if linkage.is_runtime() {
        top.insert("runtime".into(), linkage.defines.len().into());
    }
    let room = Room::of(input.bytes().len(), copies);
    let units = subject::units(input, &file, layout);
    if file.form == Form::Unknown && units.is_empty() {
        return Err(subject::nothing(input, &file));
    }
    if !file.findings.is_empty() {
        let list = room.list(file.findings.as_slice(), finding);
        top.insert("findings".into(), list.into());
    }
    // Units stand in the order of their parts.
    let mut rest = units.as_slice();
    let parts = room.list(file.parts.iter().enumerate(), |(index, part)| {
        let behind = rest.partition_point(|unit| unit.part <= index);
        let (own, others) = rest.split_at(behind);
        rest = others;
        part_value(part, own.iter(), &room, &mut text)
    });
    if file.form.is_object() || file.form.is_archive() || parts.iter().any(has_library) {
        top.insert("parts".into(), parts.into());
    }
    for unit in &units {
        data(unit, &mut top, &room, &mut text);
    }
    if file.form == Form::GraphJson {
        let summary = graph::summary(input.bytes(), &room);
        top.insert("graph".into(), summary.unwrap_or(Value::Null));
    }
    if let Some(summary) = objects::summary(input.bytes(), file.form) {
        top.insert("objects".into(), summary);
    }
    if let Some(reading) = subject::graph(input, file.form) {
        let findings = room.list(&reading.findings, finding);
        top.insert("findings".into(), findings.into());
        if let Some(broken) = &reading.broken {
            let place = Place {
                name: &input.name,
                bytes: input.bytes(),
                spans: &[],
            };
            text.push_str(&format!("\n{}", place.violation(broken)));
            top.insert("violation".into(), violation(broken));
        }
    }
    if room.left_out() > 0 {
        top.insert("left_out".into(), room.left_out().into());
    }
    Ok((Value::Object(top), text))
}

fn has_library(part: &Value) -> bool {
    part["libraries"]
        .as_array()
        .is_some_and(|list| !list.is_empty())
}

fn part_value<'a>(
    part: &Part<'_>,
    units: impl Iterator<Item = &'a Unit<'a>> + Clone,
    room: &Room,
    text: &mut String,
) -> Value {
    let releases = subject::releases(part, units.clone());
    let libraries = units.filter(|unit| matches!(unit.format, Format::Library { .. }));
    let libraries = room.list(libraries, |unit| library(unit, room, text));
    let named = |pick: for<'r> fn(&'r Role<'_>) -> Option<&'r str>| -> Vec<&str> {
        part.symbols
            .iter()
            .filter_map(|symbol| pick(&symbol.role))
            .collect()
    };
    let mut slots = named(|role| match role {
        Role::Slot(api) => Some(api),
        _ => None,
    });
    slots.sort_unstable();
    let mut needs = named(|role| match role {
        Role::Needs(api) => Some(api),
        _ => None,
    });
    needs.sort_unstable();
    let symbol = |wanted: fn(&Role<'_>) -> bool| {
        let found = part.symbols.iter().find(|symbol| wanted(&symbol.role));
        found.map(|symbol| &*symbol.name)
    };
    let mut functions: Vec<&str> = part.functions().collect();
    functions.sort_unstable();
    json!({
        "member": part.member,
        "form": part.form.name(),
        "machine": part.machine.as_ref().map(|machine| json!({
            "architecture": machine.architecture,
            "bits": machine.bits,
            "little_endian": machine.little_endian,
        })),
        "releases": releases.map(|releases| releases.to_string()),
        "prefix": part.prefix(),
        "functions": room.list(functions, Value::from),
        "entry": symbol(|role| matches!(role, Role::Entry)),
        "context": symbol(|role| matches!(role, Role::Context(_))),
        "slots": room.list(slots, Value::from),
        "needs": room.list(needs, Value::from),
        "libraries": libraries,
    })
}

fn library(unit: &Unit<'_>, room: &Room, text: &mut String) -> Value {
    let Some(partial) = unit.library() else {
        return Value::Null;
    };
    let Partial {
        blob,
        findings,
        broken,
    } = &partial;
    let layout = blob.layout;
    let modules = room.list(blob.modules.iter().enumerate(), |(index, module)| {
        let mut value = Map::new();
        value.insert("index".into(), index.into());
        value.insert("kind".into(), module.kind.as_ref().into());
        if let Some(bytes) = &module.payload {
            value.insert("offset".into(), module.offset.into());
            value.insert("bytes".into(), bytes.len().into());
        }
        let imports = room.list(blob.imports(index), Value::from);
        value.insert("imports".into(), imports.into());
        // The oddities of a payload are among those of the blob already.
        if let Ok(Some(decoded)) = module.decode(layout, &mut Findings::default()) {
            payload::describe(&decoded, &mut value, room);
        }
        Value::Object(value)
    });
    let Format::Library { symbol, .. } = &unit.format else {
        return Value::Null;
    };
    if let Some(broken) = broken {
        text.push_str(&told(unit, broken));
    }
    json!({
        "symbol": Some(symbol.as_str()).filter(|symbol| !symbol.is_empty()),
        "offset": unit.offset,
        "bytes": unit.bytes.len(),
        "layout": layout.name(),
        "releases": layout.releases().to_string(),
        "modules": modules,
        "import_tree": blob.tree.as_ref().map(|tree| json!({
            "indptr": room.list(tree.indptr().iter(), Value::from),
            "indices": room.list(tree.indices().iter(), Value::from),
        })),
        "host": blob.modules.iter().any(|module| module.kind == LIBRARY),
        "findings": room.list(findings.as_slice(), finding),
        "violation": broken.as_ref().map(violation),
    })
}

/// A file that is no container: its content under the name of its format.
fn data(unit: &Unit<'_>, top: &mut Map<String, Value>, room: &Room, text: &mut String) {
    if matches!(unit.format, Format::Library { .. }) {
        return;
    }
    let reading = unit.judge();
    let (name, value) = payload::content(unit, room);
    top.insert(name.into(), value);
    let findings = room.list(&reading.findings, finding);
    top.insert("findings".into(), findings.into());
    if let Some(broken) = &reading.broken {
        text.push_str(&told(unit, broken));
        top.insert("violation".into(), violation(broken));
    }
}

fn told(unit: &Unit<'_>, broken: &Violation) -> String {
    let reading = unit.trace();
    let place = Place {
        name: &unit.name,
        bytes: &unit.bytes,
        spans: &reading.spans,
    };
    format!("\n{}", place.violation(broken))
}

fn violation(broken: &Violation) -> Value {
    json!({
        "rule": broken.rule().id(),
        "kind": broken.kind().name(),
        "offset": broken.offset(),
        "field": broken.field(),
        "message": broken.message(),
    })
}

fn finding(finding: &Finding) -> Value {
    json!({
        "rule": finding.rule.id(),
        "offset": finding.offset,
        "message": finding.message,
    })
}
