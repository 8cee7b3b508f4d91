//! The nodes of a graph to values (OBJ-18 to OBJ-20).

use super::described;
use crate::function::{Error, ErrorKind, Function, Result};
use crate::object::reflect::builtin::enum_index;
use crate::object::reflect::column;
use crate::object::reflect::record::{create, fields_of};
use crate::object::walk::depth;
use crate::object::{Array, Dict, List, Map, OBJ_18, OBJ_19, OBJ_20, Shape};
use crate::object::{lookup_in, sequence_of};
use crate::rule::Kind;
use crate::value::types::{self, FieldInfo};
use crate::value::{
    Any, AnyView, Argument, Bytes, DLDevice, Str, cast, dtype_from_text, index, str_bytes,
};
use base64::prelude::{BASE64_STANDARD, Engine as _};

/// The value of a graph. Only what the root reaches is decoded; a cycle is rejected (OBJ-19), where the reference runs out
/// of stack.
///
/// # Errors
///
/// OBJ-18 for a graph or a node of another form: a ValueError, a TypeError, or a KeyError for a node without `type` or `data`. OBJ-19
/// for a cycle, OBJ-20 for an index that names no node, OBJ-39 for keys that share a chain of more than 256, OBJ-41 for a graph that
/// nests deeper than 1,000 objects, and a ValueError where the stack of the thread is too short for it. An InternalError for a type
/// that this process does not know, a TypeError for `data` of another type or without a field of its type; what
/// `__data_from_json__` or the setter of a field fails with.
pub fn decode(graph: AnyView<'_>) -> Result {
    if graph.type_index() != index::MAP {
        return Err(reject("Invalid JSON Object Graph, expected an object"));
    }
    let root = part(graph, "root_index", index::INT, "integer")?;
    let nodes = part(graph, "nodes", index::ARRAY, "array")?;
    // OBJ-18: other members of a graph or a node are left alone, as upstream does.
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

/// A member that every graph has.
fn part(graph: AnyView<'_>, name: &str, type_index: i32, words: &str) -> Result {
    let message = format!("Invalid JSON Object Graph, expected `{name}` {words} field");
    match member_of(graph, name)? {
        Some(part) if part.type_index() == type_index => Ok(part),
        Some(_) => Err(reject(message)),
        None => Err(missing(ErrorKind::Value, message)),
    }
}

/// The member of a map by its name, if it is there.
fn member_of(map: AnyView<'_>, name: &str) -> Result<Option<Any>> {
    lookup_in(map, Any::from(name).view())
}

/// A member that a node has.
fn data_of(node: AnyView<'_>, name: &str) -> Result<Any> {
    member_of(node, name)?.ok_or_else(|| missing(ErrorKind::Key, format!("a node has no `{name}`")))
}

/// A graph that is being read.
struct GraphDecoder {
    /// The nodes as JSON values, by index.
    nodes: Vec<Any>,
    /// The value of each node that is read; a node that two others refer to is one object.
    done: Vec<Option<Any>>,
    /// Whether a node is on the way: one that is met again contains itself (OBJ-19).
    open: Vec<bool>,
    /// Number of nodes on the way.
    depth: usize,
    /// How many objects nest in each that is done. Not what `depth` bounds: children may be done before their parents.
    height: Vec<usize>,
    /// The largest height among the children met so far of the node on the way.
    below: usize,
}

impl GraphDecoder {
    /// The value of node `at`, read once: what two nodes refer to is one object.
    fn node(&mut self, at: i64) -> Result {
        // OBJ-20: a negative index names no node, and is no large one.
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
        // Not closed again where reading fails: the error ends the whole graph.
        self.open[slot] = true;
        self.depth += 1;
        // Children of this node count from 0; its siblings read so far count again when it is done.
        let beside = std::mem::take(&mut self.below);
        let node = self.nodes[slot].clone();
        let value = self.decode(node.view())?;
        // OBJ-41 bounds what nests, in whatever order it was read: the objects are dropped by recursion.
        let height = self.below + 1;
        depth::check_saved(height)?;
        self.height[slot] = height;
        self.below = beside.max(height);
        self.depth -= 1;
        self.open[slot] = false;
        self.done[slot] = Some(value.clone());
        Ok(value)
    }

    /// The value of a node by its type key (OBJ-18).
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
        // An InternalError and no rule: which types there are depends on what the process has loaded.
        let type_index = types::index_of(&key)
            .ok_or_else(|| Error::new(ErrorKind::Internal, format!("Cannot find type `{key}`")))?;
        // OBJ-18: `None` has no `data`.
        if type_index == index::NONE {
            return Ok(Any::none());
        }
        // OBJ-18: a container without `data` is `missing`, even where it could be read as empty.
        let data = data_of(node, "data")?.clone();
        let data = data.view();
        Ok(match type_index {
            // Casts are those of arguments (VAL-10), as upstream: an int is a float, too, and a bool an int.
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
                    // OBJ-18: kind and message are those of upstream.
                    .map_err(|_| Error::new(ErrorKind::Internal, "invalid base64 encoding"))?;
                Bytes::new(&bytes).into()
            }
            index::ARRAY => Array::new(self.list(data)?).into(),
            index::LIST => List::new(self.list(data)?).into(),
            // OBJ-18: of keys that are equal the last value counts, as in the map that upstream fills.
            index::MAP => {
                let mut map = Map::new();
                for (key, value) in self.pairs(data)? {
                    // OBJ-39: keys of a file may all share one chain.
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

    /// The values of the nodes that `data` names.
    fn list(&mut self, data: AnyView<'_>) -> Result<Vec<Any>> {
        let items = cast::<Array>(data)?;
        items
            .as_slice()
            .iter()
            .map(|item| self.node(cast(item.view())?))
            .collect()
    }

    /// The pairs of a map or dict: keys and values in turn (OBJ-18).
    fn pairs(&mut self, data: AnyView<'_>) -> Result<Vec<(Any, Any)>> {
        let count = cast::<Array>(data)?.len();
        let paired = OBJ_18.demand(Kind::Malformed, count.is_multiple_of(2), || {
            format!(
                "Invalid JSON Object Graph: Map/Dict data must contain an even number of [key, value] entries, got {count}"
            )
        });
        // OBJ-18: a ValueError, as upstream raises it: a violation by itself would be of another kind.
        paired.map_err(|broken| Error::of_violation(ErrorKind::Value, broken))?;
        let mut items = self.list(data)?.into_iter();
        let mut pairs = Vec::with_capacity(count / 2);
        while let (Some(key), Some(value)) = (items.next(), items.next()) {
            pairs.push((key, value));
        }
        Ok(pairs)
    }

    /// An entry of an enumeration, what the hook of the type makes of `data`, or an object field by field (OBJ-18).
    fn object(&mut self, type_index: i32, data: AnyView<'_>) -> Result {
        if types::is_instance(type_index, enum_index()) {
            return enum_member(type_index, data);
        }
        // OBJ-18: such a type keeps its data in a form of its own; what it makes of `data` is not looked into.
        if let Some(hook) = column::DATA_FROM_JSON.value(type_index) {
            return cast::<Function>(hook)?.call(&[data]);
        }
        let info = described(type_index)?;
        // Upstream ends the process for a node of `ffi.Object`, which has no creator; here it is an error like that of any type
        // without one.
        let object = create(info)?;
        // After `create`: a type that cannot be made is the error, whatever its data is.
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
                // OBJ-15: an object has all its fields. One that an older graph does not know has its default.
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

    /// The value of a field: in place for the five types that OBJ-18 names, else that of a node.
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

/// A device from type and number.
fn device(parts: &Array) -> Result<DLDevice> {
    let [device_type, device_id] = parts.as_slice() else {
        return Err(reject(format!(
            "Invalid JSON Object Graph: Device data must be an array of [device_type, device_id], got {} element(s)",
            parts.len()
        )));
    };
    Ok(DLDevice {
        device_type: cast(device_type.view())?,
        device_id: cast(device_id.view())?,
    })
}

/// The member of an enumeration that has this number or name.
fn enum_member(type_index: i32, data: AnyView<'_>) -> Result {
    // OBJ-18: by its number where the type is numbered. The type has no index of its own in the ABI, so it is looked up by its key.
    let numbered = types::index_of("ffi.IntEnum")
        .is_some_and(|numbered| types::is_instance(type_index, numbered));
    let key = if numbered {
        Any::from(cast::<i64>(data)?)
    } else {
        Any::from(cast::<Str>(data)?)
    };
    // The entries of a type are in one of its attributes, by name or number.
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

/// The ValueError for a graph of another form.
fn reject(message: impl Into<String>) -> Error {
    Error::of_violation(ErrorKind::Value, OBJ_18.rejected(Kind::Malformed, message))
}

/// What a graph lacks.
fn missing(kind: ErrorKind<'_>, message: impl Into<String>) -> Error {
    Error::of_violation(kind, OBJ_18.rejected(Kind::Missing, message))
}
