//! The verdict of each release on saved objects.

use super::account::loads;
use crate::examine::loading::object_types::{TABLED, asked};
use crate::examine::loading::{Load, LoadOutcome};
use crate::object::json_graph::legacy::{LegacyGraph, LegacyNode};
use crate::object::json_graph::{self, legacy};
use crate::release::{Release, Releases};
use crate::rule::{Findings, Kind, Violation};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_core::de::IgnoredAny;
use serde_json::Value;

/// Returns the verdicts on a graph of 0.2 to 0.21.
///
/// Accepts the same text as upstream's reader, including truncated text, and reports where that differs from the rules.
pub(super) fn old(text: &[u8], only: Option<Release>) -> Vec<(Releases, Load)> {
    let whole = closed(text);
    // Kept for the verdict: the completed graph is readable but differs from the graph that was written.
    let cut = whole.is_some();
    let graph = LegacyGraph::read(whole.as_deref().unwrap_or(text), &mut Findings::default());
    let number = LegacyGraph::verify(text, &mut Findings::default()).err();
    let number = number.filter(|broken| broken.rule().id() == "OBJ-36");
    let outline = graph.is_err().then(|| outline(text)).flatten();
    // OBJ-21: the C++ reader knows five escapes and accepts raw bytes. It can therefore read texts that Python rejects as JSON.
    let json = serde_json::from_slice::<IgnoredAny>(text).is_ok();
    loads(only, |release| {
        // OBJ-18: from 0.22 on, the text has another form.
        if !legacy::RELEASES.contains(release) {
            return Load::fails("tvm-ffi reads another form");
        }
        let known = match &graph {
            Ok(graph) => graph.releases(),
            // OBJ-21 to OBJ-33: not every release checks each of them.
            Err(broken) => {
                let load = broken_graph(broken, release);
                // A release that does not check this rule still looks for types and attributes.
                return match load.outcome {
                    LoadOutcome::Silent => outline
                        .as_ref()
                        .and_then(|outline| types(outline, release))
                        .unwrap_or(load),
                    _ => load,
                };
            }
        };
        // OBJ-22, OBJ-32: releases added members and type keys, and readers reject unknown ones.
        if !known.is_some_and(|known| known.contains(release)) {
            return Load::fails("it does not know a member or a container of this graph");
        }
        if !json && release >= Release::of(16) {
            return Load::fails(
                "Python upgrades the text first and rejects what is not JSON; the C++ reader beneath takes it",
            );
        }
        if let Ok(graph) = &graph
            && let Some(load) = types(graph, release)
        {
            return load;
        }
        // OBJ-21.
        if cut {
            return Load::silent(
                "it treats the end of the text as the missing brackets: everything that followed is lost",
            );
        }
        if let Some(broken) = &number {
            return Load::silent(format!(
                "it takes the number that a text begins with, and rejects one that begins with none: {broken}"
            ));
        }
        Load::loads("by `load_json`")
    })
}

/// Returns the types and the attribute names of the nodes of a graph that breaks a rule; `None` if the text is not JSON.
fn outline(text: &[u8]) -> Option<LegacyGraph> {
    let graph: Value = serde_json::from_slice(text).ok()?;
    let bytes = |value: &Value| value.as_str().unwrap_or_default().as_bytes().to_vec();
    let attrs = |value: Option<&Value>| {
        let attrs = value.and_then(Value::as_object).into_iter().flatten();
        attrs
            .map(|(name, value)| (name.clone(), bytes(value)))
            .collect()
    };
    let nodes = graph.get("nodes")?.as_array()?.iter().map(|node| {
        let texts = ["repr_str", "repr_b64"].into_iter();
        let repr = texts.filter_map(|name| node.get(name)).map(bytes).next();
        Some(LegacyNode {
            type_key: node.get("type_key")?.as_str()?.to_owned(),
            repr: repr.unwrap_or_default(),
            attrs: attrs(node.get("attrs")),
            ..LegacyNode::default()
        })
    });
    Some(LegacyGraph {
        nodes: nodes.collect::<Option<_>>()?,
        attrs: attrs(graph.get("attrs")),
        ..LegacyGraph::default()
    })
}

/// Returns the verdict of `release` if it lacks a type or a value, or requires a missing attribute; `None` if nothing is missing.
fn types(graph: &LegacyGraph, release: Release) -> Option<Load> {
    // A graph without a version counts as written by the release that reads it, so that nothing is upgraded.
    let writer = graph.release().unwrap_or(release);
    if release >= Release::of(16) && !graph.attrs.contains_key(legacy::VERSION) {
        return Some(Load::fails(
            "Python asks for `tvm_version` in the attributes of the text, which has none",
        ));
    }
    // OBJ-22: 0.7 renamed most types, and Python renames them when it reads the text.
    if writer < Release::of(7) && release >= Release::of(7) {
        return Some(Load::unknown(format!(
            "Python rewrites a text of {writer} first, and what it makes of these types was not read"
        )));
    }
    let mut named = None;
    for node in &graph.nodes {
        let key = node.type_key.as_str();
        let plain: Option<&[&str]> = match key {
            "" | "Array" | "Map" | "StrMap" => Some(&[]),
            "ffi.Array" | "ffi.Map" | "ffi.String" | "ffi.Bytes" | "ffi.Shape" | "ffi.NDArray" => {
                Some(&[])
            }
            "runtime.BoxInt" | "runtime.BoxFloat" | "runtime.BoxBool" => Some(&[]),
            "int" | "bool" => Some(&["v_int64"]),
            "float" => Some(&["v_float64"]),
            "DataType" => Some(&["v_type"]),
            "Device" => Some(&["v_device_type", "v_device_id"]),
            _ => None,
        };
        let lacks =
            |name: &&str| !node.attrs.contains_key(*name) && !is_added(key, name, writer, release);
        let missing = match plain {
            Some(names) => names.iter().copied().find(|name| lacks(name)),
            None => match asked(key, release) {
                // Up to 0.5, many types belong to HalideIR and are not in the table.
                None if release < Release::of(6) => {
                    return Some(Load::unknown(format!(
                        "it loads it if it has the type `{}`",
                        shown(key)
                    )));
                }
                None => return Some(Load::fails(format!("it has no type `{}`", shown(key)))),
                // OBJ-25: an object with a representation or a global key has no attributes.
                Some(_) if !node.repr.is_empty() || !node.global_key.is_empty() => None,
                Some(mut names) => names.find(|name| lacks(name)),
            },
        };
        if let Some(name) = missing {
            return Some(Load::fails(format!(
                "`{}` has no attribute `{name}`, which it asks for",
                shown(key)
            )));
        }
        if let Some(name) = ["v_int64", "v_float64", "v_device_type", "v_device_id"]
            .into_iter()
            .find(|name| {
                node.attrs
                    .get(*name)
                    .is_some_and(|text| !begins_with_number(name, text))
            })
        {
            return Some(Load::fails(format!(
                "it reads no number from `{name}` of `{}`",
                shown(key)
            )));
        }
        if let Some(load) = number(node, release) {
            return Some(load);
        }
        // OBJ-33.
        if key == "runtime.BoxBool" && !matches!(&*node.repr, b"true" | b"false") {
            return Some(Load::fails("it reads a bool from `true` and `false` only"));
        }
        if matches!(key, "runtime.NDArray" | "ffi.NDArray")
            && BASE64_STANDARD.decode(&node.repr).is_err()
        {
            return Some(Load::fails("the text of a tensor is not base64"));
        }
        // OBJ-25: an object that exists once in a process is found by its name.
        let once = matches!(
            key,
            "Op" | "ir.Op"
                | "relay.Op"
                | "EnvFunc"
                | "ir.EnvFunc"
                | "TargetKind"
                | "target.TargetKind"
        );
        // OBJ-32: a target kind that is stored with all its attributes is not looked up by name.
        let is_whole = matches!(key, "TargetKind" | "target.TargetKind") && node.repr.is_empty();
        if once && !is_whole && named.is_none() {
            let name = String::from_utf8_lossy(&node.repr).into_owned();
            named = Some(if name.is_empty() {
                key.to_owned()
            } else {
                name
            });
        }
        // OBJ-32: a target kind is stored with all its attributes up to 0.17, and as its name from 0.18 on.
        if is_whole && release >= Release::of(18) {
            return Some(Load::fails(
                "it looks a target kind up by its name, which the text does not have where it looks",
            ));
        }
    }
    // This release may lack an operator or a target kind of another release.
    let name = named.filter(|_| writer != release)?;
    Some(Load::unknown(format!(
        "it loads it if it has `{}` and whatever else the text names",
        shown(&name)
    )))
}

/// Returns the verdict on an attribute whose text is not a number. Most attributes are numbers. Types are texts, and so are names in
/// releases up to 0.6 and in attributes of operators. The table does not have the types of attributes.
fn number(node: &LegacyNode, release: Release) -> Option<Load> {
    let key = node.type_key.as_str();
    let is_value = matches!(key, "IntImm" | "FloatImm" | "UIntImm");
    if !is_value && (release < Release::of(7) || key.contains("Attrs")) {
        return None;
    }
    let is_text = |name: &str| {
        name.contains("dtype") || name.starts_with("v_") || matches!(name, "name" | "tag")
    };
    let (name, text) = node
        .attrs
        .iter()
        .find(|(name, text)| !(is_text(name) || begins_with_number("v_float64", text)))?;
    let message = format!("it reads no number from `{name}` of `{}`", shown(key));
    // Infinities and NaN are written as words.
    let text = String::from_utf8_lossy(text).to_ascii_lowercase();
    let text = text.trim_start().trim_start_matches(['-', '+']);
    let is_special = text.starts_with("inf") || text.starts_with("nan");
    Some(if is_value && name == "value" && !is_special {
        Load::fails(message)
    } else {
        Load::unknown(format!("{message}, if it takes it for one"))
    })
}

/// Returns whether the text begins with a number in the range of the attribute `name`, as C++ reads it (OBJ-36).
fn begins_with_number(name: &str, text: &[u8]) -> bool {
    let text = String::from_utf8_lossy(text);
    let start = text.trim_ascii_start();
    let digits = start.trim_start_matches(['-', '+']);
    if start.len().saturating_sub(digits.len()) > 1 {
        return false;
    }
    if name == "v_float64" {
        return digits
            .trim_start_matches('.')
            .starts_with(|next: char| next.is_ascii_digit());
    }
    let end = digits.find(|next: char| !next.is_ascii_digit());
    let number = digits
        .get(..end.unwrap_or(digits.len()))
        .unwrap_or_default();
    let largest = if name == "v_int64" {
        i128::from(i64::MAX)
    } else {
        i128::from(i32::MAX)
    };
    // The absolute value of the smallest number is one more than the largest number.
    let most = largest.saturating_add(i128::from(start.starts_with('-')));
    number.parse::<i128>().is_ok_and(|number| number <= most)
}

/// Returns whether Python adds the attribute to a text of an older release: from 0.9 on if loading it fails, from 0.16 on always.
fn is_added(key: &str, name: &str, writer: Release, release: Release) -> bool {
    let between =
        |since: u8, until: u8| release >= Release::of(since) && writer < Release::of(until);
    match name {
        "virtual_device_" => between(9, 9),
        "attrs" => key == "IRModule" && between(9, 8),
        "vdevice" => between(16, 14),
        "predicate" => between(17, 17),
        _ => false,
    }
}

/// Formats a name of the text for a message.
fn shown(name: &str) -> std::borrow::Cow<'_, str> {
    crate::wire::show(name.as_bytes()).into()
}

/// Returns the verdict of a release on a graph that breaks a rule. Not every release checks every rule.
///
/// Rules that are not listed below are checked by every release.
fn broken_graph(broken: &Violation, release: Release) -> Load {
    let since = release.minor();
    // OBJ-27: cycles are detected from 0.7 on. OBJ-25: of a representation, releases check only that it stands alone.
    match broken.rule().id() {
        "OBJ-27" if since < 7 => Load::silent(format!(
            "it does not look for cycles, and loads objects that contain themselves: {broken}"
        )),
        "OBJ-25" if since < 7 => {
            Load::fails("it does not know a member or a container of this graph")
        }
        "OBJ-25" if broken.kind() != Kind::Duplicate => Load::silent(format!(
            "it does not check this, and the object may have another content: {broken}"
        )),
        _ => Load::fails(broken.to_string()),
    }
}

/// Returns the text with the missing brackets added at its end. Returns `None` if none is missing, or if the text ends within a value.
///
/// Brackets inside strings do not count. A closing bracket that does not match the last open one is not noticed here: the reader of the
/// result rejects it.
fn closed(text: &[u8]) -> Option<Vec<u8>> {
    let mut open = Vec::new();
    let (mut quoted, mut escaped, mut last) = (false, false, 0);
    for &byte in text {
        match byte {
            _ if escaped => escaped = false,
            // A quote after a backslash does not end the string, and brackets in a string open nothing.
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            _ if quoted => {}
            b'{' => open.push(b'}'),
            b'[' => open.push(b']'),
            b'}' | b']' => {
                open.pop();
            }
            _ => {}
        }
        if !byte.is_ascii_whitespace() {
            last = byte;
        }
    }
    // Directly after an opening bracket a reader expects a value, not the end.
    if open.is_empty() || quoted || matches!(last, b'{' | b'[') {
        return None;
    }
    let mut whole = text.to_vec();
    whole.extend(open.iter().rev());
    Some(whole)
}

/// Returns the verdicts on a graph of 0.22 or later.
///
/// The only faults that a release accepts are negative indices, up to 0.25 (OBJ-20).
pub(super) fn new(text: &[u8], only: Option<Release>) -> Vec<(Releases, Load)> {
    let fault = json_graph::ffi::check(text, &mut Findings::default()).err();
    let summary = json_graph::ffi::summary(text, legacy::VERSION);
    let keys = summary.map(|summary| summary.keys).unwrap_or_default();
    loads(only, |release| {
        if release < Release::of(22) {
            return Load::fails("it expects the older form");
        }
        let Some(fault) = &fault else {
            return new_types(&keys, release);
        };
        let broken = &fault.violation;
        // OBJ-20: indices are checked from 0.26 on. OBJ-19: cycles are never checked.
        // `fault.index` is set if an index is at fault. Releases differ only in that rule.
        match fault.index {
            _ if broken.rule().id() == "OBJ-19" => Load::fails(format!(
                "it runs out of stack and ends the process: {broken}"
            )),
            Some(index) if release < Release::of(26) && index < 0 => Load::silent(format!(
                "it takes a negative index, which names nothing: {broken}"
            )),
            Some(_) if release < Release::of(26) => Load::fails(format!(
                "it reads memory after the list of nodes and ends the process: {broken}"
            )),
            _ => Load::fails(broken.to_string()),
        }
    })
}

/// Returns the verdict on a valid graph with these types.
///
/// Attributes are not compared with a table: most have defaults, and 0.27 has no tag to read a table from.
fn new_types(keys: &[String], release: Release) -> Load {
    let is_plain = |key: &str| {
        matches!(key, "None" | "int" | "bool" | "float" | "DataType")
            || matches!(
                key,
                "ffi.String" | "ffi.Bytes" | "ffi.Array" | "ffi.Map" | "ffi.Shape" | "ffi.Tensor"
            )
    };
    let mut typed = keys.iter().filter(|key| !is_plain(key)).peekable();
    let Some(first) = typed.peek().map(|key| shown(key).into_owned()) else {
        return Load::loads("by `load_json`");
    };
    if release <= TABLED
        && let Some(key) = typed.find(|key| asked(key, release).is_none())
        && Release::all().any(|other| asked(key, other).is_some())
    {
        return Load::fails(format!("it has no type `{}`", shown(key)));
    }
    Load::unknown(format!(
        "it loads it if it has `{first}` and the other types of the text, and finds every attribute that it asks for"
    ))
}
