//! Conversion of graph nodes to values (OBJ-18 to OBJ-20).

use super::reflected_type;
use crate::function::{Error, ErrorKind, Function, Result};
use crate::object::reflect::builtin::enum_index;
use crate::object::reflect::column;
use crate::object::reflect::field_access::{create, fields_of};
use crate::object::walk::depth;
use crate::object::{Array, Dict, List, Map, OBJ_18, OBJ_19, OBJ_20, Shape};
use crate::object::{lookup_in, sequence_of};
use crate::rule::Kind;
use crate::tensor::Device;
use crate::value::types::{self, FieldInfo};
use crate::value::{Any, AnyView, Argument, Bytes, Str, cast, dtype_from_text, index, str_bytes};
use base64::prelude::{BASE64_STANDARD, Engine as _};

/// Returns the value of a graph. Decodes only nodes that the root reaches. Rejects a cycle (OBJ-19), for which the reference
/// implementation overflows the stack.
///
/// # Errors
///
/// * OBJ-18 for a malformed graph or node, as a ValueError or TypeError, or as a KeyError for a node without `type` or `data`.
/// * OBJ-19 for a cycle, and OBJ-20 for an index that names no node.
/// * OBJ-39 for keys that share a chain of more than 256, and OBJ-41 for a graph that nests deeper than 1,000 objects.
/// * A ValueError if the stack of the thread is too small for the graph.
/// * An InternalError for a type that this process does not know.
/// * A TypeError for `data` of the wrong type, or without a field of its type.
/// * The errors of `__data_from_json__` and of the setters of fields.
pub fn decode(graph: AnyView<'_>) -> Result {
    if graph.type_index() != index::MAP {
        return Err(reject("Invalid JSON Object Graph, expected an object"));
    }
    let root = required_member(graph, "root_index", index::INT, "integer")?;
    let nodes = required_member(graph, "nodes", index::ARRAY, "array")?;
    // OBJ-18: other members of a graph or a node are ignored, as in upstream.
    let nodes = sequence_of(nodes.view()).unwrap_or_default().into_owned();
    let mut decoder = GraphDecoder {
        done: vec![None; nodes.len()],
        open: vec![false; nodes.len()],
        height: vec![0; nodes.len()],
        nodes,
        depth: 0,
        below: 0,
    };
    decoder.node(cast(root.view())?)
}

/// Returns a member that every graph must have.
fn required_member(graph: AnyView<'_>, name: &str, type_index: i32, words: &str) -> Result {
    let message = format!("Invalid JSON Object Graph, expected `{name}` {words} field");
    match member_of(graph, name)? {
        Some(part) if part.type_index() == type_index => Ok(part),
        Some(_) => Err(reject(message)),
        None => Err(missing(ErrorKind::Value, message)),
    }
}

/// Returns the member of a map with that name, if it exists.
fn member_of(map: AnyView<'_>, name: &str) -> Result<Option<Any>> {
    lookup_in(map, Any::from(name).view())
}

/// Returns a member that a node must have.
fn data_of(node: AnyView<'_>, name: &str) -> Result<Any> {
    member_of(node, name)?.ok_or_else(|| missing(ErrorKind::Key, format!("a node has no `{name}`")))
}

/// The state of a decoder.
struct GraphDecoder {
    /// The nodes as JSON values, by index.
    nodes: Vec<Any>,
    /// The value of each decoded node, so that a shared node becomes a single object.
    done: Vec<Option<Any>>,
    /// True if a node is being decoded. If an open node is reached again, it contains itself (OBJ-19).
    open: Vec<bool>,
    /// Number of open nodes.
    depth: usize,
    /// The number of objects that nest in each decoded node. `depth` does not bound it, because children may be decoded before their
    /// parents.
    height: Vec<usize>,
    /// The largest height of the current node's children so far.
    below: usize,
}

impl GraphDecoder {
    /// Returns the value of node `at`. Each node is decoded once, so that a shared node becomes a single object.
    fn node(&mut self, at: i64) -> Result {
        // OBJ-20: a negative index names no node. It must not wrap to a large one.
        let slot = usize::try_from(at)
            .ok()
            .filter(|&slot| slot < self.nodes.len());
        let Some(slot) = slot else {
            return Err(OBJ_20
                .rejected(
                    Kind::Malformed,
                    format!("Invalid JSON Object Graph: invalid node index {at}"),
                )
                .into());
        };
        if let Some(done) = &self.done[slot] {
            self.below = self.below.max(self.height[slot]);
            return Ok(done.clone());
        }
        OBJ_19.demand(Kind::Cycle, !self.open[slot], || {
            format!("Invalid JSON Object Graph: node {at} contains itself")
        })?;
        depth::check_saved(self.depth + 1)?;
        depth::check_stack()?;
        // Not reset if decoding fails, because an error ends the whole graph.
        self.open[slot] = true;
        self.depth += 1;
        // The height starts at 0 for the children of this node. The height of the node's earlier siblings is restored afterwards.
        let beside = std::mem::take(&mut self.below);
        let node = self.nodes[slot].clone();
        let value = self.decode(node.view())?;
        // OBJ-41 bounds the nesting in every decoding order, because objects are dropped recursively.
        let height = self.below + 1;
        depth::check_saved(height)?;
        self.height[slot] = height;
        self.below = beside.max(height);
        self.depth -= 1;
        self.open[slot] = false;
        self.done[slot] = Some(value.clone());
        Ok(value)
    }

    /// Returns the value of a node, depending on its type key (OBJ-18).
    fn decode(&mut self, node: AnyView<'_>) -> Result {
        if node.type_index() != index::MAP {
            let message = format!(
                "Cannot convert from type `{}` to `Map<str, Any>`",
                types::key_of(node.type_index())
            );
            return Err(Error::of_violation(
                ErrorKind::Type,
                OBJ_18.rejected(Kind::Malformed, message),
            ));
        }
        let key = cast::<String>(data_of(node, "type")?.view())?;
        // An InternalError without a rule: the known types depend on the loaded libraries.
        let type_index = types::index_of(&key)
            .ok_or_else(|| Error::new(ErrorKind::Internal, format!("Cannot find type `{key}`")))?;
        // OBJ-18: `None` has no `data`.
        if type_index == index::NONE {
            return Ok(Any::none());
        }
        // OBJ-18: a container without `data` is `missing`, although it could be read as empty.
        let data = data_of(node, "data")?.clone();
        let data = data.view();
        Ok(match type_index {
            // Values convert like arguments (VAL-10), as in upstream: an int is also a float, and a bool is also an int.
            index::BOOL => cast::<bool>(data)?.into(),
            index::INT => cast::<i64>(data)?.into(),
            index::FLOAT => cast::<f64>(data)?.into(),
            index::DATA_TYPE => dtype_from_text(&cast::<String>(data)?)?.into(),
            index::DEVICE => device(&cast::<Array>(data)?)?.into(),
            index::STR => cast::<Str>(data)?.into(),
            index::BYTES => {
                let text = cast::<String>(data)?;
                let bytes = BASE64_STANDARD
                    .decode(text.as_bytes())
                    // OBJ-18: the kind and message match upstream.
                    .map_err(|_| Error::new(ErrorKind::Internal, "invalid base64 encoding"))?;
                Bytes::new(&bytes).into()
            }
            index::ARRAY => Array::new(self.list(data)?).into(),
            index::LIST => List::new(self.list(data)?).into(),
            // OBJ-18: if keys are equal, the last value counts, as in the map that upstream fills.
            index::MAP => {
                let mut map = Map::new();
                for (key, value) in self.pairs(data)? {
                    // OBJ-39: keys from a file may all share one chain.
                    map.set_untrusted(key, value)?;
                }
                map.into()
            }
            index::DICT => {
                let dict = Dict::new();
                for (key, value) in self.pairs(data)? {
                    dict.set_untrusted(key, value)?;
                }
                dict.into()
            }
            index::SHAPE => cast::<Shape>(data)?.into(),
            own => self.object(own, data)?,
        })
    }

    /// Returns the values of the nodes that `data` names.
    fn list(&mut self, data: AnyView<'_>) -> Result<Vec<Any>> {
        let items = cast::<Array>(data)?;
        items
            .as_slice()
            .iter()
            .map(|item| self.node(cast(item.view())?))
            .collect()
    }

    /// Returns the pairs of a map or dict, whose keys and values alternate (OBJ-18).
    fn pairs(&mut self, data: AnyView<'_>) -> Result<Vec<(Any, Any)>> {
        let count = cast::<Array>(data)?.len();
        let paired = OBJ_18.demand(Kind::Malformed, count.is_multiple_of(2), || {
            format!(
                "Invalid JSON Object Graph: Map/Dict data must contain an even number of [key, value] entries, got {count}"
            )
        });
        // OBJ-18: upstream raises a ValueError. The violation alone would become another kind.
        paired.map_err(|broken| Error::of_violation(ErrorKind::Value, broken))?;
        let mut items = self.list(data)?.into_iter();
        let mut pairs = Vec::with_capacity(count / 2);
        while let (Some(key), Some(value)) = (items.next(), items.next()) {
            pairs.push((key, value));
        }
        Ok(pairs)
    }

    /// Returns an entry of an enumeration, the result of the type's hook for `data`, or an object built field by field (OBJ-18).
    fn object(&mut self, type_index: i32, data: AnyView<'_>) -> Result {
        if types::is_instance(type_index, enum_index()) {
            return enum_member(type_index, data);
        }
        // OBJ-18: such a type defines its own form of `data`, which is not checked here.
        if let Some(hook) = column::DATA_FROM_JSON.value(type_index) {
            return cast::<Function>(hook)?.call_packed(&[data]);
        }
        let info = reflected_type(type_index)?;
        // Upstream aborts the process for a node of `ffi.Object`, which has no creator. Here this is an error, as for any type without a
        // creator.
        let object = create(info)?;
        // Checked after `create`, so that a type without a creator is reported first, even if its data are invalid too.
        if data.type_index() != index::MAP {
            return Err(Error::new(
                ErrorKind::Type,
                format!(
                    "Cannot convert from type `{}` to `Map<str, Any>`",
                    types::key_of(data.type_index())
                ),
            ));
        }
        for field in fields_of(&object) {
            match member_of(data, field.name())? {
                Some(stored) => {
                    let value = self.field(&field, stored.view())?;
                    field.set(value.view())?;
                }
                // OBJ-15: an object has all its fields. A field that an older graph does not know gets its default.
                None if field.set_default()? => {}
                None => {
                    return Err(Error::new(
                        ErrorKind::Type,
                        format!(
                            "Required field `{}` not set in type `{}`",
                            field.name(),
                            info.key()
                        ),
                    ));
                }
            }
        }
        Ok(object.into())
    }

    /// Returns the value of a field: stored in place for the five types that OBJ-18 names, otherwise in a node.
    fn field(&mut self, field: &FieldInfo, stored: AnyView<'_>) -> Result {
        Ok(match field.static_type_index {
            index::NONE => Any::none(),
            index::BOOL => cast::<bool>(stored)?.into(),
            index::INT => cast::<i64>(stored)?.into(),
            index::FLOAT => cast::<f64>(stored)?.into(),
            index::DATA_TYPE => dtype_from_text(&cast::<String>(stored)?)?.into(),
            _ => self.node(cast(stored)?)?,
        })
    }
}

/// Reads a device from its type and number.
fn device(parts: &Array) -> Result<Device> {
    let [device_type, device_id] = parts.as_slice() else {
        return Err(reject(format!(
            "Invalid JSON Object Graph: Device data must be an array of [device_type, device_id], got {} element(s)",
            parts.len()
        )));
    };
    Ok(Device {
        kind: cast(device_type.view())?,
        id: cast(device_id.view())?,
    })
}

/// Returns the member of an enumeration with this number or name.
fn enum_member(type_index: i32, data: AnyView<'_>) -> Result {
    // OBJ-18: numbered types are looked up by number. `ffi.IntEnum` has no fixed index in the ABI, so its key is looked up.
    let numbered = types::index_of("ffi.IntEnum")
        .is_some_and(|numbered| types::is_instance(type_index, numbered));
    let key = if numbered {
        Any::from(cast::<i64>(data)?)
    } else {
        Any::from(cast::<Str>(data)?)
    };
    // The entries of a type are in one of its attributes, by name and number.
    let found = match column::ENUM
        .value(type_index)
        .and_then(|state| state.as_object().cloned())
    {
        Some(state) => {
            let indexes = fields_of(&state).find(|field| field.name() == "indexes");
            match indexes {
                Some(field) => lookup_in(field.get()?.view(), key.view())?,
                None => None,
            }
        }
        None => None,
    };
    found.ok_or_else(|| {
        let shown = match str_bytes(&key.view()) {
            Some(name) => String::from_utf8_lossy(name).into_owned(),
            None => i64::try_from_view(key.view())
                .unwrap_or_default()
                .to_string(),
        };
        Error::new(
            ErrorKind::Value,
            format!(
                "Enum `{}` has no instance with index {shown}",
                types::key_of(type_index)
            ),
        )
    })
}

/// Returns the ValueError for a malformed graph.
fn reject(message: impl Into<String>) -> Error {
    Error::of_violation(ErrorKind::Value, OBJ_18.rejected(Kind::Malformed, message))
}

/// Returns the error for a missing part of a graph.
fn missing(kind: ErrorKind<'_>, message: impl Into<String>) -> Error {
    Error::of_violation(kind, OBJ_18.rejected(Kind::Missing, message))
}
