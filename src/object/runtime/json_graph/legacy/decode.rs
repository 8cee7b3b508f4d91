//! Conversion of a legacy graph to a value, with objects of every type that this process knows (OBJ-33).

use crate::function::{Error, Result};
use crate::object::format::legacy::numbers::{Number, NumberFields, float, parse, parse_bool};
use crate::object::format::legacy::{Container, LegacyGraph, LegacyNode};
use crate::object::reflect::field_access::{can_create, create, fields_of};
use crate::object::walk::depth;
use crate::object::{Array, Map, OBJ_23, OBJ_27, OBJ_33, Shape, Tensor};
use crate::rule::{Findings, Kind, Violation};
use crate::tensor::{Device, Sizing, TensorRecord};
use crate::value::types::{self, FieldInfo, TypeInfo};
use crate::value::{Any, Bytes, Str, dtype_from_text, index};
use crate::wire::Cursor;
use base64::prelude::{BASE64_STANDARD, Engine as _};

impl LegacyGraph {
    /// Like [`LegacyGraph::read`], but also checks numbers against OBJ-36, in nodes of all types that this process has reflection data for.
    #[cfg_attr(not(feature = "suite"), allow(dead_code))]
    pub(crate) fn verify_known(
        text: &[u8],
        findings: &mut Findings,
    ) -> std::result::Result<LegacyGraph, Violation> {
        LegacyGraph::verify_with(text, &numbers, findings)
    }

    /// Returns the value of the root. Containers, strings, shapes, tensors and boxed numbers become the corresponding values. Types with
    /// reflection data become objects. A node of any other type becomes a map of `type_key` and, if present, `repr` and `attrs`. Its
    /// attributes remain text, because only their type knows their meaning.
    ///
    /// For a graph that does not come from [`LegacyGraph::read`], this may fail with OBJ-23, OBJ-24 or OBJ-27.
    ///
    /// # Errors
    ///
    /// * OBJ-33 for a node of a known type whose attributes or representation do not match the type.
    /// * OBJ-36 for a text that is not a number.
    /// * OBJ-39 for keys that share a chain of more than 256, and OBJ-41 for a graph that nests deeper than 1,000.
    /// * A ValueError if the stack of the thread is too small for the graph.
    /// * A rule of chapter `tensor` for a tensor record.
    /// * The errors of the setters of fields.
    /// * OBJ-23, OBJ-24 and OBJ-27 for a graph that does not come from [`LegacyGraph::read`].
    pub fn value(&self) -> Result {
        let mut decoder = LegacyDecoder {
            graph: self,
            done: vec![None; self.nodes.len()],
            open: vec![false; self.nodes.len()],
            depth: 0,
            height: vec![0; self.nodes.len()],
            below: 0,
        };
        decoder.node(self.root)
    }
}

/// The decoder of a legacy graph. It ignores nodes that the root does not reach.
struct LegacyDecoder<'a> {
    /// The graph. A node is decoded when another one refers to it.
    graph: &'a LegacyGraph,
    /// The value of each decoded node, so that a shared node becomes a single object.
    done: Vec<Option<Any>>,
    /// True if a node is being decoded. If an open node is reached again, it contains itself (OBJ-27).
    open: Vec<bool>,
    /// Number of open nodes.
    depth: usize,
    /// The number of objects that nest in each decoded node. `depth` does not bound it, because children may be decoded before their
    /// parents.
    height: Vec<usize>,
    /// The largest height of the current node's children so far.
    below: usize,
}

/// Returns the error for a node whose representation or attributes do not match its type (OBJ-33).
fn mismatch_error(node: &LegacyNode, what: impl AsRef<str>) -> Error {
    let message = format!("a `{}` {}", node.type_key, what.as_ref());
    OBJ_33.rejected(Kind::Malformed, message).into()
}

impl LegacyDecoder<'_> {
    /// Returns the value of node `at`. Each node is decoded once, so that a shared node becomes a single object.
    fn node(&mut self, at: usize) -> Result {
        let graph = self.graph;
        // OBJ-23: upstream accepts an index equal to the number of nodes, and reads past the end of the list.
        let Some(node) = graph.nodes.get(at) else {
            let message = format!("node {at} of {}", graph.nodes.len());
            return Err(OBJ_23.rejected(Kind::Malformed, message).into());
        };
        if let Some(done) = &self.done[at] {
            self.below = self.below.max(self.height[at]);
            return Ok(done.clone());
        }
        if self.open[at] {
            let message = format!("node {at} contains itself");
            return Err(OBJ_27.rejected(Kind::Cycle, message).into());
        }
        depth::check_saved(self.depth + 1)?;
        depth::check_stack()?;
        self.open[at] = true;
        self.depth += 1;
        // OBJ-41: the height starts at 0 for the children of this node. The height of the node's earlier siblings is restored
        // afterwards.
        let beside = std::mem::take(&mut self.below);
        let value = self.decode(node)?;
        // The height is checked because objects are dropped recursively.
        let height = self.below + 1;
        depth::check_saved(height)?;
        self.height[at] = height;
        self.below = beside.max(height);
        self.depth -= 1;
        self.open[at] = false;
        self.done[at] = Some(value.clone());
        Ok(value)
    }

    /// Decodes one node. The function is short because it is part of the recursion, and a thread may have little stack.
    fn decode(&mut self, node: &LegacyNode) -> Result {
        match node.container() {
            // Before the types of the process: `ffi.Array` has a type there, but no fields.
            Some(Container::Array) => Ok(Array::new(self.children(node)?).into()),
            Some(_) => {
                let children = self.children(node)?;
                map(node, children)
            }
            // OBJ-33: only the type key decides, no matter in which release the type had these fields.
            None => match described(&node.type_key) {
                Some(info) => self.object(node, info),
                None => decode_leaf(node),
            },
        }
    }

    /// Returns the values of the nodes in `data`.
    fn children(&mut self, node: &LegacyNode) -> Result<Vec<Any>> {
        let mut children = Vec::with_capacity(node.data.len());
        for child in &node.data {
            children.push(self.node(*child)?);
        }
        Ok(children)
    }

    /// Creates an object of a type with reflection data, field by field (OBJ-33).
    fn object(&mut self, node: &LegacyNode, info: &'static TypeInfo) -> Result {
        // Extra attributes are ignored, as in releases, because a type may have lost a field since.
        let object = create(info)?;
        for field in fields_of(&object) {
            // OBJ-33: a missing attribute is an error, unless the field has a default.
            if !node.attrs.contains_key(field.name()) && field.set_default()? {
                continue;
            }
            let value = self.field(node, &field)?;
            field.set(value.view())?;
        }
        Ok(object.into())
    }

    /// Returns the value of a field from the attribute of the same name.
    fn field(&mut self, node: &LegacyNode, field: &FieldInfo) -> Result {
        let text = attribute(node, field.name())?;
        // OBJ-33: an absent field is `null` in 0.21. Earlier releases use the index of the null node.
        if text == "null" {
            return Ok(Any::none());
        }
        Ok(match field.static_type_index {
            index::NONE => Any::none(),
            // OBJ-36: the whole text must be a number. Releases accept a prefix, so that `3abc` is 3.
            index::BOOL => parse_bool(node, text)?.into(),
            index::INT => parse::<i64>(node, text)?.into(),
            index::FLOAT => float(node, text)?.into(),
            index::DATA_TYPE => dtype_from_text(text)?.into(),
            index::TENSOR if self.tensors_apart() => {
                let at = parse(node, text)?;
                let record = self.graph.tensor(at).ok_or_else(|| {
                    mismatch_error(node, format!("refers to tensor {at}, which is not there"))
                })??;
                Tensor::from_record(&record)?.into()
            }
            _ => self.node(parse(node, text)?)?,
        })
    }

    /// Returns whether tensor fields refer to `b64ndarrays`, as up to 0.20. In 0.21 a tensor is a node.
    fn tensors_apart(&self) -> bool {
        match self.graph.release() {
            // OBJ-26: a graph without a release refers to them if the member is not empty: 0.21 always writes it empty.
            Some(release) => release.minor() <= 20,
            None => self
                .graph
                .tensors
                .as_ref()
                .is_some_and(|list| !list.is_empty()),
        }
    }
}

/// Returns the text of an attribute. A missing attribute is an error of kind `missing` (OBJ-33).
fn attribute<'n>(node: &'n LegacyNode, name: &str) -> Result<&'n str> {
    let text = node.attrs.get(name).map(Vec::as_slice);
    // OBJ-33: the field may be newer than the graph. That is still an error, because only a default could supply its value.
    let text = text.ok_or_else(|| {
        let message = format!("a `{}` has no attribute `{name}`", node.type_key);
        Error::from(OBJ_33.rejected(Kind::Missing, message))
    })?;
    std::str::from_utf8(text).map_err(|_| mismatch_error(node, format!("has bytes under `{name}`")))
}

/// Returns a map with the content of a node of an unknown type. Only the compiler that wrote it knows the meaning of its attributes
/// (OBJ-33).
fn record(node: &LegacyNode) -> Result {
    let mut map = Map::new();
    map.set("type_key", node.type_key.as_str())?;
    // OBJ-31: the file leaves out empty members too, so absent and empty are the same.
    if !node.repr.is_empty() {
        map.set("repr", Str::new(&node.repr))?;
    }
    if !node.global_key.is_empty() {
        map.set("global_key", Str::new(&node.global_key))?;
    }
    if !node.attrs.is_empty() {
        let mut attrs = Map::new();
        for (name, text) in &node.attrs {
            // OBJ-39: the names come from a file, whose writer could make them share a chain.
            attrs.set_untrusted(name.as_str(), Str::new(text))?;
        }
        map.set("attrs", attrs)?;
    }
    Ok(map.into())
}

/// Decodes the representation of a node, which is base64 of bytes (OBJ-33).
fn decode_base64(node: &LegacyNode) -> Result<Vec<u8>> {
    let bytes = BASE64_STANDARD.decode(&node.repr);
    bytes.map_err(|_| mismatch_error(node, "is represented by base64"))
}

/// Decodes base64 of a u64 count and that many i64.
fn shape(node: &LegacyNode) -> Result<Shape> {
    let bytes = decode_base64(node)?;
    // Chunks instead of a cursor: a rest of fewer than 8 bytes is not a word, and makes the count wrong.
    let mut words = bytes
        .chunks(8)
        .map(|word| word.try_into().map(i64::from_le_bytes));
    let count = words.next().and_then(std::result::Result::ok);
    let extents: std::result::Result<Vec<i64>, _> = words.collect();
    match extents {
        Ok(extents) if count == i64::try_from(extents.len()).ok() => Ok(Shape::new(&extents)),
        _ => Err(mismatch_error(
            node,
            "does not hold as many extents as it counts",
        )),
    }
}

/// Returns the numeric fields of a type that this process knows.
fn numbers(key: &str) -> NumberFields {
    let fields = described(key).into_iter().flat_map(TypeInfo::all_fields);
    let number = |field: &FieldInfo| {
        let number = match field.static_type_index {
            index::BOOL => Number::Bool,
            index::INT => Number::Int,
            index::FLOAT => Number::Float,
            // Any other field is a text or the index of a node, even a device (OBJ-33).
            _ => return None,
        };
        Some((field.name().to_owned(), number))
    };
    fields.filter_map(number).collect()
}

/// Returns a type whose objects reflection can create.
fn described(key: &str) -> Option<&'static TypeInfo> {
    let info = types::index_of(key).and_then(types::info)?;
    // Smaller indices are plain values, whose nodes have their own form (OBJ-33).
    (info.type_index > index::OBJECT && can_create(info)).then_some(info)
}

/// Returns the map of a node, whose keys are in `keys` or alternate with the values (OBJ-24).
fn map(node: &LegacyNode, children: Vec<Any>) -> Result {
    let mut map = Map::new();
    if node.keys.is_empty() {
        let mut items = children.into_iter();
        while let (Some(key), Some(value)) = (items.next(), items.next()) {
            // OBJ-39: keys from a file may all share one chain.
            map.set_untrusted(key, value)?;
        }
    } else {
        // OBJ-24: a graph that was read has as many keys as values.
        for (key, value) in node.keys.iter().zip(children) {
            map.set_untrusted(Str::new(key), value)?;
        }
    }
    Ok(map.into())
}

/// Returns the value of a node that refers to no other node.
fn decode_leaf(node: &LegacyNode) -> Result {
    let text = || {
        std::str::from_utf8(&node.repr).map_err(|_| mismatch_error(node, "is represented by text"))
    };
    let attr = |name: &str| attribute(node, name);
    Ok(match node.type_key.as_str() {
        // OBJ-30: the empty key is the null node. tvm-ffi calls it `None`.
        "" | "None" => Any::none(),
        // C++ strings may hold invalid UTF-8.
        "runtime.String" | "ffi.String" => Str::new(&node.repr).into(),
        "ffi.Bytes" => Bytes::new(&node.repr).into(),
        "runtime.BoxInt" => parse::<i64>(node, text()?)?.into(),
        "runtime.BoxFloat" => float(node, text()?)?.into(),
        "runtime.BoxBool" => match text()? {
            "true" => true.into(),
            // OBJ-36: only this type uses words. A bool in an attribute is 0 or 1.
            "false" => false.into(),
            other => return Err(mismatch_error(node, format!("is `{other}`"))),
        },
        "int" => parse::<i64>(node, attr("v_int64")?)?.into(),
        "bool" => parse_bool(node, attr("v_int64")?)?.into(),
        "float" => float(node, attr("v_float64")?)?.into(),
        "DataType" => dtype_from_text(attr("v_type")?)?.into(),
        "Device" => Device {
            kind: parse(node, attr("v_device_type")?)?,
            id: parse(node, attr("v_device_id")?)?,
        }
        .into(),
        "runtime.ShapeTuple" | "ffi.Shape" => shape(node)?.into(),
        "runtime.NDArray" | "ffi.NDArray" => {
            let bytes = decode_base64(node)?;
            let mut cursor = Cursor::new(&bytes);
            // OBJ-33: the node exists since 0.9, when sizes were already counted in this way (TEN-31).
            let record = TensorRecord::read(&mut cursor, Sizing::V0_7, &mut Findings::default())?;
            Tensor::from_record(&record)?.into()
        }
        _ => record(node)?,
    })
}
