//! Reader of legacy graphs (OBJ-21 to OBJ-30, OBJ-36, OBJ-37).

use super::check::{check_container, check_cycles};
use super::numbers::{self, NumberFields};
use super::text::{LegacyReader, is_plain};
use super::{LegacyGraph, LegacyNode};
use crate::object::{OBJ_21, OBJ_22, OBJ_23, OBJ_25, OBJ_26, OBJ_28, OBJ_29, OBJ_30, OBJ_37};
use crate::rule::{Findings, Kind, Strictness, Violation};
use crate::tensor::TensorRecord;
use crate::wire::Cursor;
use base64::prelude::{BASE64_STANDARD, Engine as _};
use std::collections::BTreeMap;

impl LegacyGraph {
    /// Reads a graph and checks every rule that does not depend on the types of its nodes.
    ///
    /// Does not follow attributes, because only a type knows which texts are references.
    ///
    /// # Errors
    ///
    /// Returns the first broken rule: OBJ-21 to OBJ-27, or a rule of tensor records. Under [`Strictness::Strict`], an oddity is also an
    /// error: OBJ-28 to OBJ-30, OBJ-37, or one in a tensor record.
    pub fn read(text: &[u8], findings: &mut Findings) -> Result<LegacyGraph, Violation> {
        LegacyGraph::read_as(text, None, findings)
    }

    /// Like [`LegacyGraph::read`], but also checks numbers against OBJ-36. It knows the types that the form defines and the types that
    /// every process registers.
    ///
    /// # Errors
    ///
    /// Fails like [`LegacyGraph::read`]. Also returns OBJ-36 for a text that is not a number.
    pub fn verify(text: &[u8], findings: &mut Findings) -> Result<LegacyGraph, Violation> {
        LegacyGraph::verify_with(text, &numbers::described, findings)
    }

    /// Like [`LegacyGraph::verify`], with `fields` as the source of numeric fields.
    pub(crate) fn verify_with(
        text: &[u8],
        fields: &dyn Fn(&str) -> NumberFields,
        findings: &mut Findings,
    ) -> Result<LegacyGraph, Violation> {
        LegacyGraph::read_as(text, Some(fields), findings)
    }

    /// Reads a graph. `numbers` returns the numeric fields of a type; if it is given, each node is checked against OBJ-36.
    fn read_as(
        text: &[u8],
        numbers: Option<&dyn Fn(&str) -> NumberFields>,
        findings: &mut Findings,
    ) -> Result<LegacyGraph, Violation> {
        let mut reader = LegacyReader::new(text);
        // Offset of the brace. A missing member is reported here.
        let start = reader.next_offset();
        let (mut root, mut nodes, mut tensors, mut attrs) = (None, None, None, None);
        let mut begun = false;
        while let Some((key, at)) = reader.member("a graph", &mut begun)? {
            // A wrong value is reported at its first byte, and a repeated member at its name.
            let value_at = reader.next_offset();
            let again = match key.as_slice() {
                b"root" => {
                    let value = reader.number("root")?;
                    root.replace((value, value_at)).is_some()
                }
                b"nodes" => {
                    let value = read_nodes(&mut reader, numbers, findings)?;
                    nodes.replace((value, value_at)).is_some()
                }
                // Kept as text: the release, which decides how their bytes are counted, may be in a later member.
                b"b64ndarrays" => tensors.replace(read_texts(&mut reader)?).is_some(),
                b"attrs" => attrs.replace(read_attrs(&mut reader, findings)?).is_some(),
                // OBJ-22: releases reject members that they do not declare.
                other => return Err(unknown("a graph", other, at)),
            };
            note_repeated(findings, again, "the graph", &key, at)?;
        }
        let missing = |what: &str| {
            let message = format!("the graph has no `{what}`");
            OBJ_22.broken(Kind::Missing, start, message)
        };
        // Checked at the end: members may have any order, so a missing one is known only at the closing brace.
        let (root, root_at) = root.ok_or_else(|| missing("root"))?;
        let ((nodes, starts), nodes_at) = nodes.ok_or_else(|| missing("nodes"))?;
        let rest_at = reader.next_offset();
        if !reader.remaining().is_empty() {
            // OBJ-29 is a finding: C++ ignores bytes after the graph, and Python from 0.16 on rejects them.
            let message = "bytes follow the graph";
            findings.note(OBJ_29, Kind::Trailing, rest_at, message)?;
        }
        let count = nodes.len();
        OBJ_23
            .require(root.is_some_and(|root| root < count), root_at, || {
                let root = root.map_or("beyond 64 bits".to_owned(), |root| root.to_string());
                format!("the root is node {root}, but the number of nodes is {count}")
            })
            .map_err(|broken| broken.in_field("root"))?;
        // OBJ-30: a graph without nodes has already failed OBJ-23 above, because its root names no node.
        if nodes.first().is_some_and(|node| !node.type_key.is_empty()) {
            findings.note(
                OBJ_30,
                Kind::Malformed,
                nodes_at,
                "node 0 is not the null node",
            )?;
        }
        // OBJ-27, along `data` only: only its type knows which attributes are references.
        check_cycles(&nodes, &starts)?;
        let mut graph = LegacyGraph {
            root: root.unwrap_or_default(),
            nodes,
            tensors: None,
            attrs: attrs.unwrap_or_default(),
        };
        // Tensors can be counted only after the release is known.
        if let Some(list) = tensors {
            let mut records = Vec::new();
            for (text, at) in &list {
                records.push(graph.read_tensor(text, *at, findings)?);
            }
            graph.tensors = Some(records);
        }
        Ok(graph)
    }

    /// Returns the bytes of the record in `text`, whose string starts at `at`.
    fn read_tensor(
        &self,
        text: &[u8],
        at: u64,
        findings: &mut Findings,
    ) -> Result<Vec<u8>, Violation> {
        // OBJ-26: every tensor is checked here, although a value is created only when a field refers to it.
        let bytes = BASE64_STANDARD.decode(text).map_err(|error| {
            OBJ_26
                .broken(
                    Kind::Malformed,
                    at,
                    format!("a tensor is not base64: {error}"),
                )
                .in_field("b64ndarrays")
        })?;
        // Byte n of the record is encoded from letter n / 3 * 4 on, counted after the quote.
        let place = |offset: u64| {
            let letters = (offset / 3).saturating_mul(4);
            at.saturating_add(1).saturating_add(letters)
        };
        // The record's offsets count from its own start, and a strict list would end at the first finding. Findings are therefore
        // collected, and moved to offsets in the text below.
        let mut inner = Findings::new(Strictness::Lenient);
        let mut cursor = Cursor::new(&bytes);
        TensorRecord::read(&mut cursor, self.sizing(), &mut inner)
            .and_then(|_| cursor.finish("the tensor", &mut inner))
            .map_err(|broken| {
                let offset = broken.offset().unwrap_or(0);
                let field = format!("b64ndarrays.{}", broken.field());
                let base = place(offset).saturating_sub(offset);
                broken.shifted(base).in_field(field)
            })?;
        for finding in inner {
            let at = place(finding.offset);
            findings.note(finding.rule, Kind::Malformed, at, finding.message)?;
        }
        Ok(bytes)
    }
}

/// Reads the tensors as text, each with its offset.
fn read_texts(reader: &mut LegacyReader<'_>) -> Result<Vec<(Vec<u8>, u64)>, Violation> {
    let (mut texts, mut begun) = (Vec::new(), false);
    while reader.element("b64ndarrays", &mut begun)? {
        let at = reader.next_offset();
        texts.push((reader.string("a tensor")?, at));
    }
    Ok(texts)
}

/// Reads the nodes, each with its offset.
fn read_nodes(
    reader: &mut LegacyReader<'_>,
    numbers: Option<&dyn Fn(&str) -> NumberFields>,
    findings: &mut Findings,
) -> Result<(Vec<LegacyNode>, Vec<u64>), Violation> {
    let (mut nodes, mut starts, mut begun) = (Vec::new(), Vec::new(), false);
    // Indices may point forward, so they are checked when the number of nodes is known.
    let mut largest = None;
    while reader.element("nodes", &mut begun)? {
        let at = reader.next_offset();
        // A violation names the node, because an offset alone is hard to find in a text of one line.
        let index = nodes.len();
        let node = read_node(reader, findings, at, &mut largest)
            .and_then(|(node, places)| {
                if let Some(fields) = numbers {
                    numbers::check(&node, fields, |name| places.find(reader, name))?;
                }
                Ok(node)
            })
            .map_err(|broken| broken.in_field(format!("nodes[{index}]")))?;
        nodes.push(node);
        starts.push(at);
    }
    if let Some((value, at)) = largest {
        // If the largest index is a node, all are. Among equal indices, the first one is reported.
        OBJ_23.require(value < nodes.len() as u128, at, || {
            let value = match value {
                BEYOND => "beyond 64 bits".to_owned(),
                value => value.to_string(),
            };
            format!(
                "`data` names node {value}, but the number of nodes is {}",
                nodes.len()
            )
        })?;
    }
    Ok((nodes, starts))
}

/// The offsets of a node's representation and attributes.
struct NodeOffsets {
    /// Offset of the quote of the last representation, or of the node's brace if it has none.
    repr: u64,
    /// Offset of the brace of the last `attrs`, or of the node's brace if it has none.
    attrs: u64,
}

impl NodeOffsets {
    /// Returns the offset of an attribute, or of the representation if `name` is `None`.
    fn find(&self, reader: &LegacyReader<'_>, name: Option<&str>) -> u64 {
        let Some(name) = name else {
            return self.repr;
        };
        let (mut reader, mut begun) = (reader.reader_at(self.attrs), false);
        // The attributes are read again instead of stored: offsets are needed only for wrong ones, which are rare.
        let mut place = self.attrs;
        // If a name repeats, the last one counts.
        while let Ok(Some((key, _))) = reader.member("attrs", &mut begun) {
            let at = reader.next_offset();
            if key == name.as_bytes() {
                place = at;
            }
            // Cannot fail: the text has already been read once.
            if reader.string("an attribute").is_err() {
                break;
            }
        }
        place
    }
}

/// Replaces an index that does not fit a machine word.
const BEYOND: u128 = u128::MAX;

/// Reads a node. `largest` is the largest index in any `data` so far, with its offset.
fn read_node(
    reader: &mut LegacyReader<'_>,
    findings: &mut Findings,
    start: u64,
    largest: &mut Option<(u128, u64)>,
) -> Result<(LegacyNode, NodeOffsets), Violation> {
    let mut node = LegacyNode::default();
    let mut places = NodeOffsets {
        repr: start,
        attrs: start,
    };
    // OBJ-25: stored separately until both are known, because they may come in either order.
    let (mut text, mut bytes) = (Vec::new(), Vec::new());
    let (mut seen, mut begun): (Vec<Vec<u8>>, bool) = (Vec::new(), false);
    while let Some((key, at)) = reader.member("a node", &mut begun)? {
        let value_at = reader.next_offset();
        match key.as_slice() {
            b"repr_str" | b"repr_b64" => places.repr = value_at,
            b"attrs" => places.attrs = value_at,
            _ => {}
        }
        match key.as_slice() {
            b"type_key" => {
                let name = reader.string("type_key")?;
                node.type_key = utf8(name, "a type key", value_at)?;
            }
            b"global_key" => node.global_key = reader.string("global_key")?,
            b"repr_str" => text = reader.string("repr_str")?,
            b"repr_b64" => bytes = read_bytes(reader, findings)?,
            b"attrs" => node.attrs = read_attrs(reader, findings)?,
            b"keys" => {
                let mut begun = false;
                // OBJ-28: if a member repeats, the last one counts.
                node.keys.clear();
                while reader.element("keys", &mut begun)? {
                    node.keys.push(reader.string("a key")?);
                }
            }
            b"data" => {
                let mut begun = false;
                // As for `keys`: the last one counts.
                node.data.clear();
                while reader.element("data", &mut begun)? {
                    let at = reader.next_offset();
                    let value = reader.number("data")?;
                    // Compared in 128 bits, so that an index beyond a word is larger than all others on every platform.
                    let wide = value.map_or(BEYOND, |value| value as u128);
                    if largest.is_none_or(|(known, _)| wide > known) {
                        *largest = Some((wide, at));
                    }
                    // OBJ-23: an index beyond a word names no node. It is recorded in `largest`, so the check at the end fails.
                    node.data.push(value.unwrap_or(usize::MAX));
                }
            }
            other => return Err(unknown("a node", other, at)),
        }
        let again = seen.contains(&key);
        note_repeated(findings, again, "the node", &key, at)?;
        if !again {
            seen.push(key);
        }
    }
    // From here on a node has one representation, no matter which member it came from. The writer chooses the member again.
    OBJ_25.require_as(
        Kind::Duplicate,
        text.is_empty() || bytes.is_empty(),
        start,
        || "a node has both `repr_str` and `repr_b64`".to_owned(),
    )?;
    OBJ_25.require(text.iter().all(|byte| is_plain(*byte)), start, || {
        "`repr_str` holds a byte that is not from space to `~`".to_owned()
    })?;
    // OBJ-42: attribute names are those that a frontend reads from a live node. This library is only a runtime and has no functions for
    // that, so nodes of these releases are read only from their JSON.
    // OBJ-25: releases drop these attributes silently, and would write the graph back without them.
    let alone = node.attrs.is_empty() || text.is_empty() && bytes.is_empty();
    OBJ_25.require(alone, start, || {
        "a node has a representation and attributes".to_owned()
    })?;
    node.repr = if text.is_empty() { bytes } else { text };
    check_container(&node, start)?;
    Ok((node, places))
}

/// Reads OBJ-25: base64 of the length, a u64, and that many bytes. An empty string stays empty.
fn read_bytes(
    reader: &mut LegacyReader<'_>,
    findings: &mut Findings,
) -> Result<Vec<u8>, Violation> {
    let at = reader.next_offset();
    let text = reader.string("repr_b64")?;
    if text.is_empty() {
        findings.note(OBJ_37, Kind::Missing, at, "`repr_b64` is empty")?;
        return Ok(text);
    }
    let all = BASE64_STANDARD.decode(&text).map_err(|error| {
        OBJ_25.broken(
            Kind::Malformed,
            at,
            format!("`repr_b64` is not base64: {error}"),
        )
    })?;
    let mut cursor = Cursor::new(&all);
    // A violation is reported at the string, because letters do not map to whole bytes.
    let outside = |broken: Violation| OBJ_25.broken(broken.kind(), at, broken.message());
    // OBJ-25: the u64 is inside the base64, because C++ writes the string as a record with its own length.
    let length = *cursor.u64("length", OBJ_25).map_err(outside)?;
    let bytes = cursor
        .take(length, "bytes", OBJ_25)
        .map_err(outside)?
        .to_vec();
    if !cursor.is_at_end() {
        let message = format!(
            "{} bytes follow those that `repr_b64` counts",
            cursor.remaining()
        );
        // OBJ-29: no release checks for bytes after the counted ones.
        findings.note(OBJ_29, Kind::Trailing, at, message)?;
    }
    let plain = bytes.iter().all(|byte| is_plain(*byte));
    findings.expect(OBJ_37, Kind::Malformed, !plain, at, || {
        "`repr_b64` holds what `repr_str` could".to_owned()
    })?;
    Ok(bytes)
}

/// Reads names and texts. If a name repeats, the last one counts (OBJ-28).
fn read_attrs(
    reader: &mut LegacyReader<'_>,
    findings: &mut Findings,
) -> Result<BTreeMap<String, Vec<u8>>, Violation> {
    let (mut attrs, mut begun) = (BTreeMap::new(), false);
    while let Some((key, at)) = reader.member("attrs", &mut begun)? {
        // OBJ-21: a name is UTF-8, but its value may be any bytes of a C++ string.
        let name = utf8(key.clone(), "the name of an attribute", at)?;
        let value = reader.string("an attribute")?;
        let again = attrs.insert(name, value).is_some();
        note_repeated(findings, again, "attrs", &key, at)?;
    }
    Ok(attrs)
}

/// Converts a name at offset `at` to text (OBJ-21).
fn utf8(bytes: Vec<u8>, what: &str, at: u64) -> Result<String, Violation> {
    String::from_utf8(bytes).map_err(|_| {
        let message = format!("{what} is not UTF-8");
        OBJ_21.broken(Kind::Malformed, at, message)
    })
}

/// Returns the violation for an unknown member (OBJ-22), whose name is at `at`.
fn unknown(what: &str, key: &[u8], at: u64) -> Violation {
    let message = format!("unknown member `{}` in {what}", key.escape_ascii());
    OBJ_22.broken(Kind::Unsupported, at, message)
}

/// Adds a finding for a repeated member (OBJ-28). `again` is true if the member is repeated.
fn note_repeated(
    findings: &mut Findings,
    again: bool,
    what: &str,
    key: &[u8],
    at: u64,
) -> Result<(), Violation> {
    findings.expect(OBJ_28, Kind::Duplicate, !again, at, || {
        let key = key.escape_ascii();
        format!("a second `{key}` in {what}; the last one counts")
    })
}
