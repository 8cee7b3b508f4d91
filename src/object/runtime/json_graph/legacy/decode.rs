//! A legacy graph as a value: real objects of every type that this process knows (OBJ-33).

use crate::function::{Error, Result};
use crate::object::format::legacy::numbers::{Number, NumberFields, float, parse, truth};
use crate::object::format::legacy::{Container, LegacyGraph, LegacyNode};
use crate::object::reflect::record::{can_create, create, fields_of};
use crate::object::walk::depth;
use crate::object::{Array, Map, OBJ_23, OBJ_27, OBJ_33, Shape, Tensor};
use crate::rule::{Findings, Kind, Violation};
use crate::tensor::{Sizing, TensorRecord};
use crate::value::types::{self, FieldInfo, TypeInfo};
use crate::value::{Any, Bytes, DLDevice, Str, dtype_from_text, index};
use crate::wire::Cursor;
use base64::prelude::{BASE64_STANDARD, Engine as _};

impl LegacyGraph {
    /// [`LegacyGraph::read`] that holds numbers to OBJ-36, too, in nodes of all types that describe themselves to this process.
    #[cfg_attr(not(feature = "suite"), allow(dead_code))]
    pub(crate) fn verify_known(
        text: &[u8],
        findings: &mut Findings,
    ) -> std::result::Result<LegacyGraph, Violation> {
        LegacyGraph::verify_with(text, &numbers, findings)
    }

    /// The value of the root. Containers, strings, shapes, tensors and boxed numbers become what they are; types that
    /// describe themselves to reflection become their objects. A node of any other type becomes a map of `type_key` and,
    /// where it has them, `repr` and `attrs`, the attributes still text: what they mean, only their type knows.
    ///
    /// A graph that was not read by [`LegacyGraph::read`] may break OBJ-23, OBJ-24 and OBJ-27 here.
    ///
    /// # Errors
    ///
    /// OBJ-33 for a node of a known type whose attributes or representation are not those of the type, OBJ-36 for a number that is
    /// none, OBJ-39 for keys that share a chain of more than 256, OBJ-41 for a graph that nests deeper than 1,000, a ValueError where
    /// the stack of the thread is too short for it, a rule of chapter `tensor` for a tensor record; what the setter of a field fails
    /// with. For a graph that was not read, OBJ-23, OBJ-24 and OBJ-27, too.
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

/// A legacy graph that becomes a value. Nodes that the root does not reach are left alone.
struct LegacyDecoder<'a> {
    /// The graph, whose nodes are decoded when something refers to them.
    graph: &'a LegacyGraph,
    /// The value of each node that is read; a node that two others refer to is one object.
    done: Vec<Option<Any>>,
    /// Whether a node is on the way: one that is met again contains itself (OBJ-27).
    open: Vec<bool>,
    /// Number of nodes on the way.
    depth: usize,
    /// How many objects nest in each that is done. Not what `depth` bounds: children may be done before their parents.
    height: Vec<usize>,
    /// The largest height among the children met so far of the node on the way.
    below: usize,
}

/// The error for a node whose representation or attributes its type does not have (OBJ-33).
fn wrong(node: &LegacyNode, what: impl AsRef<str>) -> Error {
    let message = format!("a `{}` {}", node.type_key, what.as_ref());
    OBJ_33.rejected(Kind::Malformed, message).into()
}

impl LegacyDecoder<'_> {
    /// The value of node `at`, read once: what two nodes refer to is one object.
    fn node(&mut self, at: usize) -> Result {
        let graph = self.graph;
        // OBJ-23: upstream takes the number of nodes itself for an index, and reads what is behind the list.
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
        // OBJ-41: children of this node count from 0; its siblings read so far count again when it is done.
        let beside = std::mem::take(&mut self.below);
        let value = self.decode(node)?;
        // Objects are dropped by recursion.
        let height = self.below + 1;
        depth::check_saved(height)?;
        self.height[at] = height;
        self.below = beside.max(height);
        self.depth -= 1;
        self.open[at] = false;
        self.done[at] = Some(value.clone());
        Ok(value)
    }

    /// Short, as what it calls by recursion is: a thread may have little stack.
    fn decode(&mut self, node: &LegacyNode) -> Result {
        match node.container() {
            // Before the types of the process: `ffi.Array` has a type there, and no fields.
            Some(Container::Array) => Ok(Array::new(self.children(node)?).into()),
            Some(_) => {
                let children = self.children(node)?;
                map(node, children)
            }
            // OBJ-33: by the type key alone, in whatever release the type had these fields.
            None => match described(&node.type_key) {
                Some(info) => self.object(node, info),
                None => plain(node),
            },
        }
    }

    /// The values of the nodes in `data`.
    fn children(&mut self, node: &LegacyNode) -> Result<Vec<Any>> {
        let mut children = Vec::with_capacity(node.data.len());
        for child in &node.data {
            children.push(self.node(*child)?);
        }
        Ok(children)
    }

    /// An object of a type that this process describes, field by field (OBJ-33).
    fn object(&mut self, node: &LegacyNode, info: &'static TypeInfo) -> Result {
        // Extra attributes are left alone, as releases do: a type may have lost a field since.
        let object = create(info)?;
        for field in fields_of(&object) {
            // OBJ-33: an attribute that a field needs and that is absent is `missing`; one with a default is not needed.
            if !node.attrs.contains_key(field.name()) && field.set_default()? {
                continue;
            }
            let value = self.field(node, &field)?;
            field.set(value.view())?;
        }
        Ok(object.into())
    }

    /// The value of a field, from the attribute of its name.
    fn field(&mut self, node: &LegacyNode, field: &FieldInfo) -> Result {
        let text = attribute(node, field.name())?;
        // OBJ-33: an absent field is `null` in 0.21, and the index of the null node before.
        if text == "null" {
            return Ok(Any::none());
        }
        Ok(match field.static_type_index {
            index::NONE => Any::none(),
            // OBJ-36: a number to its end, where releases take what the text begins with: `3abc` is 3 to them.
            index::BOOL => truth(node, text)?.into(),
            index::INT => parse::<i64>(node, text)?.into(),
            index::FLOAT => float(node, text)?.into(),
            index::DATA_TYPE => dtype_from_text(text)?.into(),
            index::TENSOR if self.tensors_apart() => {
                let at = parse(node, text)?;
                let record = self.graph.tensor(at).ok_or_else(|| {
                    wrong(node, format!("refers to tensor {at}, which is not there"))
                })??;
                Tensor::from_record(&record)?.into()
            }
            _ => self.node(parse(node, text)?)?,
        })
    }

    /// Up to 0.20 a field that is a tensor refers to `b64ndarrays`; 0.21 makes it a node.
    fn tensors_apart(&self) -> bool {
        match self.graph.release() {
            // OBJ-26: a graph that does not state its release has them where the member is not empty: 0.21 writes it, and leaves it
            // empty.
            Some(release) => release.minor() <= 20,
            None => self
                .graph
                .tensors
                .as_ref()
                .is_some_and(|list| !list.is_empty()),
        }
    }
}

/// The text of an attribute. Absent it is `missing` (OBJ-33).
fn attribute<'n>(node: &'n LegacyNode, name: &str) -> Result<&'n str> {
    let text = node.attrs.get(name).map(Vec::as_slice);
    // OBJ-33: what no attribute has may be a field that came later, and is still an error: only a default says what it would be.
    let text = text.ok_or_else(|| {
        let message = format!("a `{}` has no attribute `{name}`", node.type_key);
        Error::from(OBJ_33.rejected(Kind::Missing, message))
    })?;
    std::str::from_utf8(text).map_err(|_| wrong(node, format!("has bytes under `{name}`")))
}

/// A map of what a node of an unknown type has: only the compiler that wrote it knows what its attributes mean (OBJ-33).
fn record(node: &LegacyNode) -> Result {
    let mut map = Map::new();
    map.set("type_key", node.type_key.as_str())?;
    // Empty members are not in the file either (OBJ-31), so that an absent one and an empty one are the same.
    if !node.repr.is_empty() {
        map.set("repr", Str::new(&node.repr))?;
    }
    if !node.global_key.is_empty() {
        map.set("global_key", Str::new(&node.global_key))?;
    }
    if !node.attrs.is_empty() {
        let mut attrs = Map::new();
        for (name, text) in &node.attrs {
            // OBJ-39: the names are those of a file, whose writer could let them share a chain.
            attrs.set_untrusted(name.as_str(), Str::new(text))?;
        }
        map.set("attrs", attrs)?;
    }
    Ok(map.into())
}

/// The representation of a node, itself base64 of bytes (OBJ-33).
fn decode_base64(node: &LegacyNode) -> Result<Vec<u8>> {
    let bytes = BASE64_STANDARD.decode(&node.repr);
    bytes.map_err(|_| wrong(node, "is represented by base64"))
}

/// Base64 of a count, u64, and that many i64.
fn shape(node: &LegacyNode) -> Result<Shape> {
    let bytes = decode_base64(node)?;
    // Chunks and not a cursor: a rest of fewer than 8 bytes is no word, and makes the count wrong.
    let mut words = bytes
        .chunks(8)
        .map(|word| word.try_into().map(i64::from_le_bytes));
    let count = words.next().and_then(std::result::Result::ok);
    let extents: std::result::Result<Vec<i64>, _> = words.collect();
    match extents {
        Ok(extents) if count == i64::try_from(extents.len()).ok() => Ok(Shape::new(&extents)),
        _ => Err(wrong(node, "does not hold as many extents as it counts")),
    }
}

/// The numbers among the fields of a type that this process knows.
fn numbers(key: &str) -> NumberFields {
    let fields = described(key).into_iter().flat_map(TypeInfo::all_fields);
    let number = |field: &FieldInfo| {
        let number = match field.static_type_index {
            index::BOOL => Number::Bool,
            index::INT => Number::Int,
            index::FLOAT => Number::Float,
            // Any other field is a text or the index of a node, that of a device as well (OBJ-33).
            _ => return None,
        };
        Some((field.name().to_owned(), number))
    };
    fields.filter_map(number).collect()
}

/// A type whose objects reflection can make.
fn described(key: &str) -> Option<&'static TypeInfo> {
    let info = types::index_of(key).and_then(types::info)?;
    // Below are plain values, whose nodes have a form of their own (OBJ-33).
    (info.type_index > index::OBJECT && can_create(info)).then_some(info)
}

/// The map of a node: by its `keys`, or keys and values in turn (OBJ-24).
fn map(node: &LegacyNode, children: Vec<Any>) -> Result {
    let mut map = Map::new();
    if node.keys.is_empty() {
        let mut items = children.into_iter();
        while let (Some(key), Some(value)) = (items.next(), items.next()) {
            // OBJ-39: keys of a file may all share one chain.
            map.set_untrusted(key, value)?;
        }
    } else {
        // OBJ-24: as many keys as values, in a graph that was read.
        for (key, value) in node.keys.iter().zip(children) {
            map.set_untrusted(Str::new(key), value)?;
        }
    }
    Ok(map.into())
}

/// A node that refers to no other.
fn plain(node: &LegacyNode) -> Result {
    let text =
        || std::str::from_utf8(&node.repr).map_err(|_| wrong(node, "is represented by text"));
    let attr = |name: &str| attribute(node, name);
    Ok(match node.type_key.as_str() {
        // OBJ-30: the empty key is the null node. `None` is its name in tvm-ffi.
        "" | "None" => Any::none(),
        // C++ strings hold any bytes, UTF-8 or not.
        "runtime.String" | "ffi.String" => Str::new(&node.repr).into(),
        "ffi.Bytes" => Bytes::new(&node.repr).into(),
        "runtime.BoxInt" => parse::<i64>(node, text()?)?.into(),
        "runtime.BoxFloat" => float(node, text()?)?.into(),
        "runtime.BoxBool" => match text()? {
            "true" => true.into(),
            // OBJ-36: words in this type alone; a bool in an attribute is 0 or 1.
            "false" => false.into(),
            other => return Err(wrong(node, format!("is `{other}`"))),
        },
        "int" => parse::<i64>(node, attr("v_int64")?)?.into(),
        "bool" => truth(node, attr("v_int64")?)?.into(),
        "float" => float(node, attr("v_float64")?)?.into(),
        "DataType" => dtype_from_text(attr("v_type")?)?.into(),
        "Device" => DLDevice {
            device_type: parse(node, attr("v_device_type")?)?,
            device_id: parse(node, attr("v_device_id")?)?,
        }
        .into(),
        "runtime.ShapeTuple" | "ffi.Shape" => shape(node)?.into(),
        "runtime.NDArray" | "ffi.NDArray" => {
            let bytes = decode_base64(node)?;
            let mut cursor = Cursor::new(&bytes);
            // OBJ-33: the node came with 0.9, and with it one way to count the bytes (TEN-31).
            let record = TensorRecord::read(&mut cursor, Sizing::V0_7, &mut Findings::default())?;
            Tensor::from_record(&record)?.into()
        }
        _ => record(node)?,
    })
}
