//! Reading and writing the graph JSON.

use super::text::Json;
use super::*;
use crate::rule::{Findings, Kind, Violation};
use crate::tensor::Device;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::collections::BTreeSet;

const TOP: [&str; 5] = ["nodes", "arg_nodes", "node_row_ptr", "heads", "attrs"];

impl Graph {
    /// Reads graph JSON and holds it to every rule of the chapter.
    ///
    /// # Errors
    ///
    /// The first broken rule, with the byte offset of the JSON value that breaks it. Oddities go to `findings`.
    pub fn read(text: &str, findings: &mut Findings) -> Result<Graph, Violation> {
        let document = Json::document(text)?;
        let top = Top::read(&document, findings)?;
        let nodes = read_nodes(top.nodes, findings)?;
        let arg_nodes = read_indices(top.arg_nodes, GRF_11, "arg_nodes")?;
        let node_row_ptr = read_indices(top.node_row_ptr, GRF_12, "node_row_ptr")?;
        let count = check_rows(&nodes, &node_row_ptr, top.node_row_ptr)?;
        let entries = read_entries(top.attrs, count, findings)?;
        let heads = read_entry_list(top.heads, "heads")?;
        let graph = Graph {
            nodes,
            arg_nodes,
            node_row_ptr,
            heads,
            entries,
        };
        graph.check_references(&top)?;
        Ok(graph)
    }

    /// [`Graph::read`] of what may not even be UTF-8.
    ///
    /// # Errors
    ///
    /// GRF-01 at the first byte that is not UTF-8, of kind [`Kind::Truncated`] where the text ends inside a letter; as
    /// [`Graph::read`].
    pub fn read_bytes(bytes: &[u8], findings: &mut Findings) -> Result<Graph, Violation> {
        let text = std::str::from_utf8(bytes).map_err(|error| {
            let at = error.valid_up_to();
            // Of a text that is cut, the last letter may be, too.
            let kind = match error.error_len() {
                Some(_) => Kind::Malformed,
                None => Kind::Truncated,
            };
            let shown = bytes.get(at).copied().unwrap_or_default();
            let message = format!("the graph is not UTF-8: byte {shown:#04x}");
            GRF_01.broken(kind, at as u64, message)
        })?;
        Graph::read(text, findings)
    }

    /// The graph JSON in normal form: entries as three numbers, members in the order of the released writers.
    pub fn to_json(&self) -> Value {
        let nodes: Vec<Value> = self.nodes.iter().map(Node::to_json).collect();
        let entries = |list: &[EntryRef]| -> Value {
            list.iter()
                .map(|entry| json!([entry.node, entry.index, entry.version]))
                .collect()
        };
        let mut attrs = Map::new();
        let column =
            |value: fn(&Entry) -> Value| Value::Array(self.entries.iter().map(value).collect());
        attrs.insert(
            "dltype".into(),
            json!(["list_str", column(|entry| dtype_text(entry.dtype).into())]),
        );
        if self.entries.iter().any(|entry| entry.device.is_some()) {
            attrs.insert(
                "device_index".into(),
                json!([
                    "list_int",
                    column(|entry| entry.device.unwrap_or(Device::CPU_KIND).into())
                ]),
            );
        }
        attrs.insert(
            "storage_id".into(),
            json!(["list_int", column(|entry| entry.storage_id.into())]),
        );
        attrs.insert(
            "shape".into(),
            json!(["list_shape", column(|entry| entry.shape.clone().into())]),
        );
        if self.entries.iter().any(|entry| entry.scope.is_some()) {
            let scope = column(|entry| entry.scope.clone().unwrap_or_default().into());
            attrs.insert("storage_scope".into(), json!(["list_str", scope]));
        }
        json!({
            "nodes": nodes,
            "arg_nodes": self.arg_nodes,
            "heads": entries(&self.heads),
            "attrs": attrs,
            "node_row_ptr": self.node_row_ptr,
        })
    }

    /// GRF-09 to GRF-11: every reference hits something, and nodes read only what stands before them.
    fn check_references(&self, top: &Top<'_>) -> Result<(), Violation> {
        for (index, node) in self.nodes.iter().enumerate() {
            for (nth, input) in node.inputs.iter().enumerate() {
                let place = || Some(top.nodes.at(index)?.member("inputs")?.at(nth)?.offset());
                let field = || format!("nodes[{index}].inputs[{nth}]");
                self.check_entry(*input, place, field)?;
                let offset = where_broken(input.node < index, place);
                GRF_10
                    .require(input.node < index, offset, || {
                        format!("node {index} reads node {}, which runs later", input.node)
                    })
                    .map_err(|broken| broken.in_field(field()))?;
            }
        }
        for (nth, head) in self.heads.iter().enumerate() {
            let place = || Some(top.heads.at(nth)?.offset());
            self.check_entry(*head, place, || format!("heads[{nth}]"))?;
        }
        for (nth, index) in self.arg_nodes.iter().enumerate() {
            let is_input = self
                .nodes
                .get(*index)
                .is_some_and(|node| node.call.is_none());
            let offset = where_broken(is_input, || Some(top.arg_nodes.at(nth)?.offset()));
            GRF_11
                .require(is_input, offset, || {
                    format!(
                        "node {index} is not an input of this graph of {} nodes",
                        self.nodes.len()
                    )
                })
                .map_err(|broken| broken.in_field(format!("arg_nodes[{nth}]")))?;
        }
        Ok(())
    }

    fn check_entry(
        &self,
        entry: EntryRef,
        place: impl FnOnce() -> Option<u64>,
        field: impl FnOnce() -> String,
    ) -> Result<(), Violation> {
        let known = self.entry_id(entry).is_some();
        GRF_09
            .require(known, where_broken(known, place), || {
                format!(
                    "there is no output {} of node {} in this graph of {} nodes",
                    entry.index,
                    entry.node,
                    self.nodes.len()
                )
            })
            .map_err(|broken| broken.in_field(field()))
    }
}

/// The offset to blame. A reference is looked for again only where it is wrong.
fn where_broken(kept: bool, place: impl FnOnce() -> Option<u64>) -> u64 {
    let broken = (!kept).then(place);
    broken.flatten().unwrap_or_default()
}

impl Node {
    fn to_json(&self) -> Value {
        let inputs: Vec<Value> = self
            .inputs
            .iter()
            .map(|entry| json!([entry.node, entry.index, entry.version]))
            .collect();
        let Some(call) = &self.call else {
            return json!({ "op": "null", "name": self.name, "inputs": inputs });
        };
        json!({ "op": "tvm_op", "name": self.name, "attrs": call.attrs_json(), "inputs": inputs })
    }
}

impl Call {
    /// The node attributes, all of them strings, in the order of the released writers.
    pub(super) fn attrs_json(&self) -> Map<String, Value> {
        let mut attrs = Map::new();
        attrs.insert("num_outputs".into(), self.num_outputs.to_string().into());
        attrs.insert("num_inputs".into(), self.num_inputs.to_string().into());
        attrs.insert(
            "flatten_data".into(),
            u8::from(self.flatten_data).to_string().into(),
        );
        attrs.insert("func_name".into(), self.func_name.clone().into());
        attrs.extend(
            self.attrs
                .iter()
                .map(|(key, value)| (key.clone(), value.clone().into())),
        );
        attrs
    }
}

/// The five members that a graph must have (GRF-02, GRF-03).
struct Top<'a> {
    nodes: Json<'a>,
    arg_nodes: Json<'a>,
    node_row_ptr: Json<'a>,
    heads: Json<'a>,
    attrs: Json<'a>,
}

impl<'a> Top<'a> {
    fn read(document: &Json<'a>, findings: &mut Findings) -> Result<Top<'a>, Violation> {
        let mut found: [Option<Json<'a>>; 5] = [None; 5];
        for (key, value) in document.members(GRF_01, "")? {
            if key == "metadata" {
                // Released readers from 0.6 on stop here. Whatever they would still need is missing for them.
                break;
            }
            let Some(slot) = TOP
                .iter()
                .position(|name| *name == key)
                .and_then(|index| found.get_mut(index))
            else {
                GRF_03.require_as(Kind::Unsupported, false, value.offset(), || {
                    format!("a graph has no member `{key}`")
                })?;
                continue;
            };
            if slot.is_some() {
                findings.note(
                    GRF_20,
                    Kind::Duplicate,
                    value.offset(),
                    format!("a second `{key}`; the last one counts"),
                )?;
            }
            *slot = Some(value);
        }
        let mut required = TOP.iter().zip(found).map(|(name, value)| {
            value.ok_or_else(|| {
                GRF_02.broken(
                    Kind::Missing,
                    document.offset(),
                    format!("the graph has no `{name}` (before any `metadata`)"),
                )
            })
        });
        let mut next = || required.next().unwrap_or(Ok(*document));
        Ok(Top {
            nodes: next()?,
            arg_nodes: next()?,
            node_row_ptr: next()?,
            heads: next()?,
            attrs: next()?,
        })
    }
}

fn read_nodes(list: Json<'_>, findings: &mut Findings) -> Result<Vec<Node>, Violation> {
    let mut nodes = Vec::new();
    for (index, item) in list.elements(GRF_04, "nodes")?.into_iter().enumerate() {
        let node = read_node(&item, findings).map_err(|broken| {
            let field = match broken.field() {
                "" => format!("nodes[{index}]"),
                field => format!("nodes[{index}].{field}"),
            };
            broken.in_field(field)
        })?;
        nodes.push(node);
    }
    Ok(nodes)
}

fn read_node(item: &Json<'_>, findings: &mut Findings) -> Result<Node, Violation> {
    let (mut op, mut name, mut inputs, mut attrs) = (None, None, None, None);
    let members = item.members(GRF_04, "")?;
    // Both names of the attributes are one member.
    once(&members, findings, |key| match key {
        "attr" => "attrs",
        key => key,
    })?;
    for (key, value) in members {
        match key.as_ref() {
            "op" => op = Some(value.string(GRF_04, "op")?),
            "name" => name = Some(value.string(GRF_04, "name")?),
            "inputs" => inputs = Some(read_entry_list(value, "inputs")?),
            "attr" | "attrs" => attrs = Some(value),
            // Parsed by every release, used by none.
            "control_deps" => drop(read_indices(value, GRF_04, "control_deps")?),
            _ => GRF_05.require_as(Kind::Unsupported, false, value.offset(), || {
                format!("a node has no member `{key}`")
            })?,
        }
    }
    let missing = |what: &str| {
        GRF_04.broken(
            Kind::Missing,
            item.offset(),
            format!("the node has no `{what}`"),
        )
    };
    let op = op.ok_or_else(|| missing("op"))?;
    let name = name.ok_or_else(|| missing("name"))?;
    let inputs = inputs.ok_or_else(|| missing("inputs"))?;
    let call = match (op.as_str(), attrs) {
        ("null", _) => None,
        ("tvm_op", Some(attrs)) => Some(read_call(&attrs, findings)?),
        ("tvm_op", None) => {
            return Err(GRF_07.broken(
                Kind::Missing,
                item.offset(),
                format!("`{name}` calls a function and has no `attrs`"),
            ));
        }
        _ => {
            GRF_06.require_as(Kind::Unsupported, false, item.offset(), || {
                format!("`{op}` is no op: there are `null` and `tvm_op`")
            })?;
            None
        }
    };
    Ok(Node { name, inputs, call })
}

/// GRF-20: the second of two members that mean the same is odd.
fn once(
    members: &[(Cow<'_, str>, Json<'_>)],
    findings: &mut Findings,
    meant: fn(&str) -> &str,
) -> Result<(), Violation> {
    let mut seen = BTreeSet::new();
    for (key, value) in members {
        findings.expect(
            GRF_20,
            Kind::Duplicate,
            seen.insert(meant(key)),
            value.offset(),
            || format!("a second `{}`; the last one counts", key.escape_debug()),
        )?;
    }
    Ok(())
}

fn read_call(attrs: &Json<'_>, findings: &mut Findings) -> Result<Call, Violation> {
    let mut all = Vec::new();
    let members = attrs.members(GRF_07, "attrs")?;
    once(&members, findings, |key| key)?;
    for (key, value) in members {
        let text = value.string(GRF_07, &format!("attrs.{key}"))?;
        all.push((key, text, value.offset()));
    }
    // The last of several counts.
    let find = |name: &str| {
        let found = all.iter().rev().find(|(key, ..)| key == name);
        let found = found.map(|(_, text, offset)| (text.as_str(), *offset));
        found.ok_or_else(|| {
            let message = format!("the node's attrs have no `{name}`");
            GRF_07.broken(Kind::Missing, attrs.offset(), message)
        })
    };
    let number = |name: &str| {
        let (text, offset) = find(name)?;
        text.parse::<usize>().map_err(|_| {
            let message = format!("`{name}` is `{text}`, a number from 0 on is expected");
            GRF_07
                .broken(Kind::Malformed, offset, message)
                .in_field(format!("attrs.{name}"))
        })
    };
    let [func_name, num_inputs, num_outputs, flatten_data] = CALL;
    let mut call = Call {
        func_name: find(func_name)?.0.to_owned(),
        num_inputs: number(num_inputs)?,
        num_outputs: number(num_outputs)?,
        flatten_data: number(flatten_data)? != 0,
        attrs: BTreeMap::new(),
    };
    for (key, text, _) in all {
        if !CALL.contains(&&*key) {
            call.attrs.insert(key.into_owned(), text);
        }
    }
    Ok(call)
}

/// The attributes that say what a call is.
const CALL: [&str; 4] = ["func_name", "num_inputs", "num_outputs", "flatten_data"];

/// GRF-08: an entry is two or three numbers.
fn read_entry_list(list: Json<'_>, what: &str) -> Result<Vec<EntryRef>, Violation> {
    let mut entries = Vec::new();
    for item in list.elements(GRF_08, what)? {
        let numbers = read_indices(item, GRF_08, what)?;
        let entry = match numbers.as_slice() {
            [node, index] => EntryRef {
                node: *node,
                index: *index,
                version: 0,
            },
            [node, index, version] => EntryRef {
                node: *node,
                index: *index,
                version: *version,
            },
            _ => {
                let message = format!(
                    "an entry of {what} has {} numbers, two or three are expected",
                    numbers.len()
                );
                return Err(GRF_08
                    .broken(Kind::Malformed, item.offset(), message)
                    .in_field(what));
            }
        };
        entries.push(entry);
    }
    Ok(entries)
}

fn read_indices(
    list: Json<'_>,
    rule: crate::rule::Rule,
    what: &str,
) -> Result<Vec<usize>, Violation> {
    list.elements(rule, what)?
        .iter()
        .map(|item| item.index(rule, what))
        .collect()
}

/// GRF-12: `node_row_ptr` counts the entries of each node. Returns how many there are.
fn check_rows(nodes: &[Node], rows: &[usize], list: Json<'_>) -> Result<usize, Violation> {
    let mut count = 0;
    let mut counted = vec![count];
    for node in nodes {
        let outputs = node.call.as_ref().map_or(1, |call| call.num_outputs);
        count = outputs.saturating_add(count);
        counted.push(count);
    }
    GRF_12
        .require(rows == counted, list.offset(), || {
            let found = rows.iter().zip(&counted);
            let same = found.take_while(|(row, count)| row == count).count();
            format!(
                "{} values for {} nodes, which have {count} outputs; the first {same} values are right",
                rows.len(),
                nodes.len()
            )
        })
        .map_err(|broken| broken.in_field("node_row_ptr"))?;
    Ok(count)
}

/// GRF-13 to GRF-18: the lists that describe each of `count` entries.
fn read_entries(
    attrs: Json<'_>,
    count: usize,
    findings: &mut Findings,
) -> Result<Vec<Entry>, Violation> {
    let (mut dtypes, mut shapes, mut storage, mut devices, mut scopes) =
        (None, None, None, None, None);
    let members = attrs.members(GRF_13, "attrs")?;
    once(&members, findings, |key| key)?;
    for (key, value) in members {
        let pair = value.elements(GRF_13, &key)?;
        let [tag, list] = pair.as_slice() else {
            let message = format!("attrs.{key} must be a list of a type and a value");
            return Err(GRF_13.broken(Kind::Malformed, value.offset(), message));
        };
        let tag = tag.string(GRF_13, &key)?;
        let expected = match key.as_ref() {
            "dltype" | "storage_scope" => "list_str",
            "storage_id" | "device_index" => "list_int",
            "shape" => "list_shape",
            _ => {
                GRF_16.require_as(Kind::Unsupported, tag == "list_int" || tag == "size_t", value.offset(), || {
                    format!("attrs.{key} is of type `{tag}`: released readers can skip `list_int` and `size_t` only")
                })?;
                findings.note(
                    GRF_21,
                    Kind::Unsupported,
                    value.offset(),
                    format!("attrs.{key} has no meaning"),
                )?;
                continue;
            }
        };
        GRF_13.require(tag == expected, value.offset(), || {
            format!("attrs.{key} is of type `{tag}`, not `{expected}`")
        })?;
        let elements = list.elements(GRF_13, &key)?;
        GRF_15
            .require(elements.len() == count, list.offset(), || {
                format!("{} elements for {count} entries", elements.len())
            })
            .map_err(|broken| broken.in_field(format!("attrs.{key}")))?;
        match key.as_ref() {
            "dltype" => dtypes = Some(elements),
            "shape" => shapes = Some(elements),
            "storage_id" => storage = Some(elements),
            "device_index" => devices = Some(elements),
            _ => scopes = Some(elements),
        }
    }
    let missing = |what: &str| {
        GRF_14.broken(
            Kind::Missing,
            attrs.offset(),
            format!("the graph's attrs have no `{what}`"),
        )
    };
    let dtypes = dtypes.ok_or_else(|| missing("dltype"))?;
    let shapes = shapes.ok_or_else(|| missing("shape"))?;
    let storage = storage.ok_or_else(|| missing("storage_id"))?;
    let mut entries = Vec::new();
    for (index, ((dtype, shape), storage)) in dtypes.iter().zip(&shapes).zip(&storage).enumerate() {
        let entry = Entry {
            dtype: read_dtype(dtype)?,
            shape: read_shape(shape)?,
            storage_id: read_storage(storage, count)?,
            device: nth(&devices, index)
                .map(|item| read_device(&item))
                .transpose()?,
            scope: nth(&scopes, index)
                .map(|item| item.string(GRF_13, "storage_scope"))
                .transpose()?,
        };
        entries.push(entry);
    }
    Ok(entries)
}

fn nth<'a>(list: &Option<Vec<Json<'a>>>, index: usize) -> Option<Json<'a>> {
    list.as_ref()?.get(index).copied()
}

fn read_dtype(item: &Json<'_>) -> Result<Dtype, Violation> {
    let text = item.string(GRF_17, "attrs.dltype")?;
    // A text that says more than its dtype can say again (`handle2`) is no graph's.
    let read = Dtype::parse(&text, super::LAST).ok();
    let exact = read.filter(|dtype| Dtype::parse(&dtype_text(*dtype), super::LAST) == Ok(*dtype));
    let dtype = exact.ok_or_else(|| {
        let message = format!("`{text}` is not a dtype");
        GRF_17
            .broken(Kind::Malformed, item.offset(), message)
            .in_field("attrs.dltype")
    })?;
    let bits = u32::from(dtype.bits).saturating_mul(u32::from(dtype.lanes));
    let sized = bits.is_multiple_of(8) || matches!(bits, 1 | 4);
    GRF_51
        .require_as(Kind::Unsupported, sized, item.offset(), || {
            format!("an element of `{text}` has {bits} bits: whole bytes, 1 bit or 4 are possible")
        })
        .map_err(|broken| broken.in_field("attrs.dltype"))?;
    Ok(dtype)
}

/// Graphs spell a bool by its bits.
pub(super) fn dtype_text(dtype: Dtype) -> String {
    dtype
        .text(super::LAST)
        .unwrap_or_default()
        .replace("bool", "uint1")
}

fn read_shape(item: &Json<'_>) -> Result<Vec<i64>, Violation> {
    let mut shape = Vec::new();
    for extent in item.elements(GRF_18, "attrs.shape")? {
        let value = extent.integer(GRF_18, "attrs.shape")?;
        GRF_18
            .require(value >= 0, extent.offset(), || {
                format!("an extent is {value}: shapes of a graph are known")
            })
            .map_err(|broken| broken.in_field("attrs.shape"))?;
        shape.push(value);
    }
    Ok(shape)
}

/// A negative id once meant a shape known at run time only; no released executor has it.
/// Ids without gaps never exceed the entries; a reader that trusts a lone id of 2^31 allocates that many pools.
fn read_storage(item: &Json<'_>, entries: usize) -> Result<usize, Violation> {
    let value = item.integer(GRF_22, "attrs.storage_id")?;
    GRF_22
        .require_as(Kind::Unsupported, value >= 0, item.offset(), || {
            format!("storage id {value}: run-time shapes are not supported")
        })
        .map_err(|broken| broken.in_field("attrs.storage_id"))?;
    let id = usize::try_from(value).unwrap_or(usize::MAX);
    GRF_52
        .require_as(Kind::Limit, id < entries, item.offset(), || {
            format!("storage id {value} in a graph of {entries} entries")
        })
        .map_err(|broken| broken.in_field("attrs.storage_id"))?;
    Ok(id)
}

fn read_device(item: &Json<'_>) -> Result<i32, Violation> {
    let value = item.integer(GRF_13, "attrs.device_index")?;
    i32::try_from(value).map_err(|_| {
        GRF_13
            .broken(
                Kind::Malformed,
                item.offset(),
                format!("device type {value}"),
            )
            .in_field("attrs.device_index")
    })
}
