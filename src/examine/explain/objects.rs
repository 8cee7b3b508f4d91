//! What each release makes of saved objects.

use super::account::loads;
use crate::examine::loading::Load;
use crate::object::json_graph::legacy::LegacyGraph;
use crate::object::json_graph::{self, legacy};
use crate::release::{Release, Releases};
use crate::rule::{Findings, Kind, Violation};
use serde_core::de::IgnoredAny;

/// The graph of 0.2 to 0.21.
///
/// Takes what upstream's reader takes, cut-off text included, and says where that differs from the rules.
pub(super) fn old(text: &[u8], only: Option<Release>) -> Vec<(Releases, Load)> {
    let whole = closed(text);
    // Kept apart: the graph that was completed reads well, and what its release makes of it is not what was written.
    let cut = whole.is_some();
    let graph = LegacyGraph::read(whole.as_deref().unwrap_or(text), &mut Findings::default());
    let number = LegacyGraph::verify(text, &mut Findings::default()).err();
    let number = number.filter(|broken| broken.rule().id() == "OBJ-36");
    // OBJ-21: the C++ reader has five escapes and takes raw bytes, so that a text can be whole for it and no JSON for Python.
    let json = serde_json::from_slice::<IgnoredAny>(text).is_ok();
    loads(only, |release| {
        // OBJ-18: from 0.22 on the text has another form.
        if !legacy::RELEASES.contains(release) {
            return Load::fails("tvm-ffi reads another form");
        }
        let known = match &graph {
            Ok(graph) => graph.releases(),
            // OBJ-21 to OBJ-33: not every release checks each of them.
            Err(broken) => return broken_graph(broken, release),
        };
        // OBJ-22, OBJ-32: members and type keys came with releases, and readers reject those that they do not know.
        if !known.is_some_and(|known| known.contains(release)) {
            return Load::fails("it does not know a member or a container of this graph");
        }
        if !json && release >= Release::of(16) {
            return Load::fails(
                "Python upgrades the text first and rejects what is not JSON; the C++ reader beneath takes it",
            );
        }
        // OBJ-21.
        if cut {
            return Load::silent(
                "it takes the end of the text for every bracket that is missing: what stood behind is lost",
            );
        }
        if let Some(broken) = &number {
            return Load::silent(format!(
                "it takes the number that a text begins with, and rejects one that begins with none: {broken}"
            ));
        }
        Load::whole("by `load_json`, as far as the node types of its release go")
    })
}

/// What a release makes of a graph that breaks a rule: not every rule is looked at by every release.
///
/// A rule that is not among those below is checked by every release.
fn broken_graph(broken: &Violation, release: Release) -> Load {
    let since = release.minor();
    // OBJ-27: cycles are looked for from 0.7 on; OBJ-25: of a representation only that it stands alone.
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

/// The text with the brackets that are missing at its end; `None` where none is, or where its end is no end of a value.
///
/// Brackets inside strings do not count. A closing bracket that does not belong to the last open one is not noticed: the reader of the
/// result rejects it.
fn closed(text: &[u8]) -> Option<Vec<u8>> {
    let mut open = Vec::new();
    let (mut quoted, mut escaped, mut last) = (false, false, 0);
    for &byte in text {
        match byte {
            _ if escaped => escaped = false,
            // A quote behind a backslash does not end the string, and brackets in a string open nothing.
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
    // Right behind an opening bracket a reader expects a value, not the end.
    if open.is_empty() || quoted || matches!(last, b'{' | b'[') {
        return None;
    }
    let mut whole = text.to_vec();
    whole.extend(open.iter().rev());
    Some(whole)
}

/// The graph of 0.22 on.
///
/// Its only faults that a release lets pass are negative indices, up to 0.25 (OBJ-20).
pub(super) fn new(text: &[u8], only: Option<Release>) -> Vec<(Releases, Load)> {
    let fault = json_graph::ffi::check(text, &mut Findings::default()).err();
    loads(only, |release| {
        if release < Release::of(22) {
            return Load::fails("it expects the older form");
        }
        let Some(fault) = &fault else {
            return Load::whole("by `load_json`, as far as the types of its release go");
        };
        let broken = &fault.violation;
        // OBJ-20: indices are checked from 0.26 on. OBJ-19: cycles never.
        // The check says which index is at fault, where it is one: only that rule differs between releases.
        match fault.index {
            _ if broken.rule().id() == "OBJ-19" => Load::fails(format!(
                "it runs out of stack and ends the process: {broken}"
            )),
            Some(index) if release < Release::of(26) && index < 0 => Load::silent(format!(
                "it takes a negative index, which names nothing: {broken}"
            )),
            Some(_) if release < Release::of(26) => Load::fails(format!(
                "it reads behind the nodes and ends the process: {broken}"
            )),
            _ => Load::fails(broken.to_string()),
        }
    })
}
