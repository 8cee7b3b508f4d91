//! Conversion of values to graph nodes, children first (OBJ-18, OBJ-19).

use super::reflected_type;
use crate::function::{Error, ErrorKind, Function, Result};
use crate::object::reflect::builtin::{enum_name, enum_number};
use crate::object::reflect::column;
use crate::object::reflect::field_access::{can_create, fields_of};
use crate::object::walk::depth;
use crate::object::{Array, Dict, Map, OBJ_19};
use crate::object::{extents_of, pairs_of, sequence_of};
use crate::rule::Kind;
use crate::value::header::ObjectRef;
use crate::value::types;
use crate::value::{Any, AnyView, bytes_bytes, cast, dtype_to_text, index};
use base64::prelude::{BASE64_STANDARD, Engine as _};

/// Returns the graph of `value`, with `metadata` unless that is None.
///
/// # Errors
///
/// * A ValueError with OBJ-19 for a cycle.
/// * OBJ-41 for a value that nests deeper than 1,000 objects, and a ValueError if the stack of the thread is too small for it.
/// * A TypeError for a type that reflection cannot create again, and a RuntimeError for a value without a node form.
/// * VAL-18 for a data type without a text.
/// * The errors of `__data_to_json__`, of the getters of fields, and of the hash of a key.
pub fn encode(value: AnyView<'_>, metadata: AnyView<'_>) -> Result {
    let mut encoder = GraphEncoder {
        known: Dict::new(),
        nodes: Vec::new(),
        open: Vec::new(),
    };
    let root = encoder.node(value)?;
    let mut graph = Map::new();
    graph.set("root_index", root)?;
    graph.set("nodes", Array::new(encoder.nodes))?;
    if !metadata.is_none() {
        graph.set("metadata", metadata.to_any())?;
    }
    Ok(graph.into())
}

/// The state of an encoder.
struct GraphEncoder {
    /// The encoded values and the indices of their nodes.
    known: Dict,
    /// The finished nodes, by index.
    nodes: Vec<Any>,
    /// Addresses of the open objects: those whose parts are being encoded.
    open: Vec<usize>,
}

impl GraphEncoder {
    /// Returns the index of the node for a value. Equal plain values share a node, and so do references to one object. Children precede
    /// their parents (OBJ-18).
    fn node(&mut self, value: AnyView<'_>) -> Result<i64> {
        // Equal as map keys (OBJ-02): 1, true and 1.0 are three nodes, and two empty arrays are two nodes.
        if let Some(known) = self.known.get(value)? {
            return Ok(cast(known.view())?);
        }
        let entered = value.as_object().map(|object| object.as_ptr() as usize);
        if let Some(at) = entered {
            // OBJ-19: without this check the writer would recurse until the stack overflows, like the reader of releases.
            if self.open.contains(&at) {
                let key = types::key_of(value.type_index());
                let name = key.strip_prefix("ffi.").unwrap_or(key);
                let message =
                    format!("Cycle detected during serialization: a {name} contains itself");
                return Err(Error::of_violation(
                    ErrorKind::Value,
                    OBJ_19.rejected(Kind::Cycle, message),
                ));
            }
            depth::check_saved(self.open.len() + 1)?;
            // OBJ-41 counts objects, but a thread may have too little stack for that many.
            depth::check_stack()?;
            self.open.push(at);
        }
        // Children get their indices first, because they precede the node (OBJ-18).
        let node = self.encode(value)?;
        if entered.is_some() {
            self.open.pop();
        }
        let at = self.nodes.len() as i64;
        self.nodes.push(node);
        // The dict keeps the value alive, so that no other object can reuse its address meanwhile.
        self.known.set(value.to_any(), at)?;
        Ok(at)
    }

    /// Returns the node of a value that has none yet.
    fn encode(&mut self, value: AnyView<'_>) -> Result {
        let raw = value.as_raw();
        let key = types::key_of(raw.type_index);
        let data = match raw.type_index {
            index::NONE => return map([("type", Any::from("None"))]),
            // These three are stored as JSON values. The writer handles numbers that JSON does not have (OBJ-17).
            index::BOOL | index::INT | index::FLOAT => value.to_any(),
            index::DATA_TYPE => Any::from(dtype_to_text(raw.dtype())?),
            index::DEVICE => {
                let device = raw.device();
                // OBJ-18: stored by its numbers, which are the same in every process, not by its name.
                let parts = [device.kind, device.id];
                Any::from(Array::new(parts.map(Any::from).to_vec()))
            }
            // Text in a cell has the same key as text on the heap (VAL-03). The same holds for bytes.
            index::SMALL_STR | index::STR => {
                return map([("type", "ffi.String".into()), ("data", value.to_any())]);
            }
            index::SMALL_BYTES | index::BYTES => {
                // JSON has only text, but bytes may be invalid UTF-8.
                let text = BASE64_STANDARD.encode(bytes_bytes(&value).unwrap_or_default());
                return map([("type", "ffi.Bytes".into()), ("data", text.into())]);
            }
            index::ARRAY | index::LIST => {
                let items = sequence_of(value).unwrap_or_default();
                let nodes: Result<Vec<Any>> = items
                    .iter()
                    .map(|item| Ok(Any::from(self.node(item.view())?)))
                    .collect();
                Any::from(Array::new(nodes?))
            }
            index::MAP | index::DICT => {
                let mut nodes = Vec::new();
                for (key, item) in pairs_of(value).iter().flatten() {
                    nodes.push(Any::from(self.node(key.view())?));
                    nodes.push(Any::from(self.node(item.view())?));
                }
                Any::from(Array::new(nodes))
            }
            // OBJ-18: the extents of a shape are stored in place, not as nodes.
            index::SHAPE => extents_of(value)
                .unwrap_or_default()
                .iter()
                .map(|extent| Any::from(*extent))
                .collect::<Array>()
                .into(),
            own => match value.as_object() {
                Some(object) => self.object(object)?,
                None => {
                    return Err(Error::new(
                        ErrorKind::Runtime,
                        format!("Cannot serialize type `{}`", types::key_of(own)),
                    ));
                }
            },
        };
        map([("type", key.into()), ("data", data)])
    }

    /// Returns the `data` of an object: the name or number of an enumeration's entry, the result of the type's hook, or the fields
    /// (OBJ-18).
    fn object(&mut self, object: &ObjectRef) -> Result {
        let own = object.type_index();
        // OBJ-18: an entry exists once per process. The reader looks it up, so its fields are not written.
        if let Some(name) = enum_name(object) {
            // `ffi.IntEnum` has no fixed index in the ABI, so its key is looked up.
            let numbered = types::index_of("ffi.IntEnum")
                .is_some_and(|numbered| types::is_instance(own, numbered));
            return Ok(if numbered {
                enum_number(object).into()
            } else {
                name.into()
            });
        }
        if let Some(hook) = column::DATA_TO_JSON.value(own) {
            return cast::<Function>(hook)?.call_packed(&[AnyView::from(object)]);
        }
        let info = reflected_type(own)?;
        // Checked by the writer, so that it writes no object that cannot be created again.
        if !can_create(info) {
            return Err(Error::new(
                ErrorKind::Type,
                format!(
                    "Type `{}` does not support ToJSONGraph (no native creator or __ffi_new__ type attr)",
                    info.key()
                ),
            ));
        }
        let mut data = Map::new();
        for field in fields_of(object) {
            let value = field.get()?;
            let stored = match field.static_type_index {
                // OBJ-18: the declared type decides. A field of one of these types is stored in place. Any other field is a node, even if
                // it holds a number.
                index::NONE => Any::none(),
                index::BOOL | index::INT | index::FLOAT => value,
                index::DATA_TYPE => Any::from(dtype_to_text(value.as_raw().dtype())?),
                _ => Any::from(self.node(value.view())?),
            };
            data.set(field.name(), stored)?;
        }
        Ok(data.into())
    }
}

/// Creates a map of a few members, in order.
fn map(pairs: impl IntoIterator<Item = (&'static str, Any)>) -> Result<Any> {
    let mut map = Map::new();
    for (key, value) in pairs {
        map.set(key, value)?;
    }
    Ok(map.into())
}
