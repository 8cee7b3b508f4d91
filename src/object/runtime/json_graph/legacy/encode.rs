//! Conversion of a value to a legacy graph, with the node numbers and spelling of a release (OBJ-33).

use crate::function::{Error, Result};
use crate::object::format::legacy::{LegacyGraph, LegacyNode, VERSION};
use crate::object::reflect::field_access::{OwnField, can_create, fields_of};
use crate::object::walk::depth;
use crate::object::walk::text::general;
use crate::object::{Dict, OBJ_27, OBJ_33, Tensor, extents_of, pairs_of, sequence_of};
use crate::release::Release;
use crate::rule::Kind;
use crate::tensor::{Sizing, TensorRecord};
use crate::value::header::ObjectRef;
use crate::value::types::{self, TypeInfo};
use crate::value::{Any, AnyView, bytes_bytes, cast, dtype_to_text, index, str_bytes};
use crate::wire::Writer;
use base64::prelude::{BASE64_STANDARD, Engine as _};
use std::collections::HashMap;

impl LegacyGraph {
    /// Returns the graph of `value` as `release` writes it: the null node, then every object once, before its children.
    ///
    /// # Errors
    ///
    /// * OBJ-33 of kind unsupported if the release has no node for the value: a number before 0.18, a list, or a type without reflection
    ///   data.
    /// * OBJ-27 for a cycle.
    /// * OBJ-41 for a value that nests deeper than 1,000 objects, and a ValueError if the stack of the thread is too small for it.
    /// * OBJ-11 for a tensor that is not compact on the CPU, and VAL-18 for a data type without a text.
    /// * The errors of the getters of fields, and of the hash of a key.
    pub fn from_value(value: AnyView<'_>, release: Release) -> Result<LegacyGraph> {
        let mut encoder = LegacyEncoder {
            release,
            nodes: vec![LegacyNode::default()],
            tensors: Vec::new(),
            by_address: HashMap::new(),
            by_value: Dict::new(),
            kept: Vec::new(),
            open: Vec::new(),
        };
        // OBJ-30: None is node 0. If `value` is None, the graph has no other node.
        let root = encoder.node(value)?;
        Ok(LegacyGraph {
            root,
            nodes: encoder.nodes,
            // OBJ-32: the member exists from 0.4 on, even if it is empty.
            tensors: (release.minor() >= 4).then_some(encoder.tensors),
            attrs: [(VERSION.to_owned(), format!("{release}.0").into_bytes())].into(),
        })
    }
}

/// The encoder of a legacy graph.
struct LegacyEncoder {
    /// The release that determines the node types and the spelling.
    release: Release,
    /// The nodes, by index. An open node is empty until its children are numbered.
    nodes: Vec<LegacyNode>,
    /// Records of the tensors that fields refer to (OBJ-26).
    tensors: Vec<Vec<u8>>,
    /// Nodes by address. Up to 0.20, objects are shared by identity.
    by_address: HashMap<usize, usize>,
    /// Nodes by value. 0.21 shares values that are equal as map keys.
    by_value: Dict,
    /// References to the encoded objects. They prevent that an object created by a getter is freed and its address is reused.
    kept: Vec<Any>,
    /// Indices of the open nodes.
    open: Vec<usize>,
}

impl LegacyEncoder {
    /// Returns whether the graph uses the type keys of tvm-ffi and has nodes for plain values, as in 0.21.
    fn new_era(&self) -> bool {
        self.release.minor() >= 21
    }

    /// Returns the index of the node for a value. Short for the same reason as [`LegacyEncoder::encode`].
    fn node(&mut self, value: AnyView<'_>) -> Result<usize> {
        // OBJ-30: node 0 is the null node, to which absent references refer.
        if value.is_none() {
            return Ok(0);
        }
        let (at, is_known) = self.find_or_add_node(value)?;
        if !is_known {
            let node = self.encode(value)?;
            self.nodes[at] = *node;
            self.open.pop();
        }
        Ok(at)
    }

    /// Returns the node of a value, and whether it existed before. A new node is open afterwards.
    fn find_or_add_node(&mut self, value: AnyView<'_>) -> Result<(usize, bool)> {
        let address = value.as_object().map(|object| object.as_ptr() as usize);
        if let Some(known) = self.find_node(value, address)? {
            if self.open.contains(&known) {
                let message = format!("a `{}` contains itself", types::key_of(value.type_index()));
                return Err(OBJ_27.rejected(Kind::Cycle, message).into());
            }
            return Ok((known, true));
        }
        depth::check_saved(self.open.len() + 1)?;
        depth::check_stack()?;
        // OBJ-30: a node gets its number before its children do, so that it precedes them. 0.22 has the opposite order (OBJ-18).
        let at = self.nodes.len();
        self.nodes.push(LegacyNode::default());
        // OBJ-33: in 0.21 all equal values share a node. Up to 0.20, only references to one object do.
        if self.new_era() {
            self.by_value.set(value.to_any(), at as i64)?;
        } else if let Some(address) = address {
            self.by_address.insert(address, at);
            self.kept.push(value.to_any());
        }
        self.open.push(at);
        Ok((at, false))
    }

    /// Returns the existing node of a value.
    fn find_node(&self, value: AnyView<'_>, address: Option<usize>) -> Result<Option<usize>> {
        if self.new_era() {
            let known = self.by_value.get(value)?;
            let known = known.map(|known| cast::<i64>(known.view())).transpose()?;
            return Ok(known.and_then(|known| usize::try_from(known).ok()));
        }
        Ok(address.and_then(|address| self.by_address.get(&address).copied()))
    }

    /// Chooses a type key: `old` in releases from `since` to 0.20, and `new` in 0.21.
    fn key(&self, value: AnyView<'_>, old: &str, since: u8, new: &str) -> Result<String> {
        match self.release.minor() {
            21.. => Ok(new.to_owned()),
            minor if minor >= since => Ok(old.to_owned()),
            _ => Err(self.unsupported_value(value)),
        }
    }

    /// Returns the error for a value that has no node in the release (OBJ-33).
    fn unsupported_value(&self, value: AnyView<'_>) -> Error {
        let message = format!(
            "{} cannot save a `{}`",
            self.release,
            types::key_of(value.type_index())
        );
        OBJ_33.rejected(Kind::Unsupported, message).into()
    }

    /// Encodes one node. The function is short because it is part of the recursion, and a thread may have little stack.
    fn encode(&mut self, value: AnyView<'_>) -> Result<Box<LegacyNode>> {
        let mut node = Box::<LegacyNode>::default();
        match value.type_index() {
            index::ARRAY => {
                node.type_key = self.key(value, "Array", 2, "ffi.Array")?;
                for item in sequence_of(value).unwrap_or_default().iter() {
                    node.data.push(self.node(item.view())?);
                }
            }
            // OBJ-33: lists and dicts are newer than this form and have no node in it.
            index::MAP => self.map(value, &mut node)?,
            index::STR | index::BYTES | index::SHAPE | index::TENSOR => {
                return self.encode_leaf(value);
            }
            own => match value.as_object() {
                Some(object) => match types::info(own).filter(|info| can_create(info)) {
                    Some(info) => self.object(object, info, &mut node)?,
                    None => return Err(self.unsupported_value(value)),
                },
                None => return self.encode_leaf(value),
            },
        }
        Ok(node)
    }

    /// Returns the node of a value that refers to no other value.
    fn encode_leaf(&self, value: AnyView<'_>) -> Result<Box<LegacyNode>> {
        // No release before 0.21 has a node for these values, so the old key is never written.
        const NEVER: u8 = 21;
        let raw = value.as_raw();
        let mut node = Box::<LegacyNode>::default();
        let mut attr = |name: &str, text: String| {
            node.attrs.insert(name.to_owned(), text.into_bytes());
        };
        match raw.type_index {
            index::BOOL => {
                let set = raw.int() != 0;
                node.type_key = self.key(value, "runtime.BoxBool", 18, "bool")?;
                if self.new_era() {
                    attr("v_int64", i64::from(set).to_string());
                } else {
                    // OBJ-36: a word here, but 0 or 1 in an attribute.
                    node.repr = set.to_string().into();
                }
            }
            index::INT => {
                node.type_key = self.key(value, "runtime.BoxInt", 18, "int")?;
                if self.new_era() {
                    attr("v_int64", raw.int().to_string());
                } else {
                    node.repr = raw.int().to_string().into();
                }
            }
            index::FLOAT => {
                node.type_key = self.key(value, "runtime.BoxFloat", 18, "float")?;
                // OBJ-33: in both forms releases write six digits or decimals of a boxed float, and lose the rest.
                if self.new_era() {
                    attr("v_float64", format!("{:.6}", raw.float()).to_lowercase());
                } else {
                    node.repr = general(raw.float(), 6).into();
                }
            }
            index::DATA_TYPE => {
                attr("v_type", dtype_to_text(raw.dtype())?);
                node.type_key = self.key(value, "", NEVER, "DataType")?;
            }
            index::DEVICE => {
                let device = raw.device();
                attr("v_device_id", device.id.to_string());
                attr("v_device_type", device.kind.to_string());
                node.type_key = self.key(value, "", NEVER, "Device")?;
            }
            index::SMALL_STR | index::STR => {
                node.type_key = self.key(value, "runtime.String", 7, "ffi.String")?;
                node.repr = str_bytes(&value).unwrap_or_default().to_vec();
            }
            index::SMALL_BYTES | index::BYTES => {
                node.type_key = self.key(value, "", NEVER, "ffi.Bytes")?;
                node.repr = bytes_bytes(&value).unwrap_or_default().to_vec();
            }
            index::SHAPE => {
                node.type_key = self.key(value, "runtime.ShapeTuple", 12, "ffi.Shape")?;
                let extents = extents_of(value).unwrap_or_default();
                // OBJ-33: base64 of the count as u64 and the extents as i64.
                let mut bytes = (extents.len() as u64).to_le_bytes().to_vec();
                bytes.extend(extents.iter().flat_map(|extent| extent.to_le_bytes()));
                node.repr = BASE64_STANDARD.encode(bytes).into();
            }
            index::TENSOR => {
                node.type_key = self.key(value, "runtime.NDArray", 9, "ffi.NDArray")?;
                node.repr = BASE64_STANDARD.encode(self.tensor_record(value)?).into();
            }
            _ => return Err(self.unsupported_value(value)),
        }
        Ok(node)
    }

    /// Fills the node of a map (OBJ-24).
    fn map(&mut self, value: AnyView<'_>, node: &mut LegacyNode) -> Result<()> {
        node.type_key = self.key(value, "Map", 2, "ffi.Map")?;
        let pairs = pairs_of(value);
        let pairs = || pairs.iter().flatten();
        // Without pairs there are no other keys, so `named` is true.
        // OBJ-24: `keys` can hold only text. A single key of another type makes all pairs alternate in `data`.
        let named = pairs().all(|(key, _)| str_bytes(&key.view()).is_some());
        for (key, item) in pairs() {
            // OBJ-32: nodes have `keys` from 0.4 on. Otherwise keys and values alternate (OBJ-24).
            if named && self.release.minor() >= 4 {
                // OBJ-24: 0.4 to 0.6 have a separate type for a map with string keys.
                if self.release.minor() <= 6 {
                    node.type_key = "StrMap".to_owned();
                }
                let key = key.view();
                node.keys.push(str_bytes(&key).unwrap_or_default().to_vec());
            } else {
                node.data.push(self.node(key.view())?);
            }
            node.data.push(self.node(item.view())?);
        }
        Ok(())
    }

    /// Fills the node of an object that reflection can create: its type key, and each field as text.
    fn object(&mut self, object: &ObjectRef, info: &TypeInfo, node: &mut LegacyNode) -> Result<()> {
        node.type_key = info.key().to_owned();
        for field in fields_of(object) {
            let text = self.field(field)?;
            node.attrs
                .insert(field.name().to_owned(), text.into_bytes());
        }
        Ok(())
    }

    /// Returns the text of a field: a number, or the index of a node or a tensor (OBJ-33).
    fn field(&mut self, field: OwnField<'_>) -> Result<String> {
        let value = field.get()?;
        let raw = value.as_raw();
        if raw.type_index == index::NONE {
            // Node 0 is the null node (OBJ-30). 0.21 writes the word instead of its index.
            return Ok(if self.new_era() { "null" } else { "0" }.to_owned());
        }
        Ok(match field.static_type_index {
            index::BOOL | index::INT => raw.int().to_string(),
            index::FLOAT => match self.release.minor() {
                // 0.2 to 0.6.0 write six decimals, 0.7 sixteen digits, and later releases seventeen. Only the last read back as the same
                // float.
                ..=6 => format!("{:.6}", raw.float()).to_lowercase(),
                7 => general(raw.float(), 16),
                _ => general(raw.float(), 17),
            },
            index::DATA_TYPE => dtype_to_text(raw.dtype())?,
            // OBJ-26: from 0.4 on tensors are stored separately. 0.21 makes them nodes.
            index::TENSOR if (4..21).contains(&self.release.minor()) => {
                self.tensors.push(self.tensor_record(value.view())?);
                (self.tensors.len() - 1).to_string()
            }
            _ => self.node(value.view())?.to_string(),
        })
    }

    /// Returns the record of a tensor. The release decides how its bytes are counted (OBJ-26).
    fn tensor_record(&self, value: AnyView<'_>) -> Result<Vec<u8>> {
        let tensor = cast::<Tensor>(value)?;
        let dtype = tensor.dl().dtype;
        let sizing = Sizing::of(self.release);
        let mut out = Writer::new();
        TensorRecord::new(dtype, tensor.shape(), tensor.to_bytes()?, sizing)?.write(&mut out);
        Ok(out.into_bytes())
    }
}
