//! The legacy graph of a value, as a release numbers and spells it (OBJ-33).

use crate::function::{Error, Result};
use crate::object::format::legacy::{LegacyGraph, LegacyNode, VERSION};
use crate::object::reflect::record::{OwnField, can_create, fields_of};
use crate::object::walk::depth;
use crate::object::walk::text::general;
use crate::object::{Dict, OBJ_27, OBJ_33, Tensor, extents_of, pairs_of, sequence_of};
use crate::release::Release;
use crate::rule::Kind;
use crate::tensor::{Dtype, Sizing, TensorRecord};
use crate::value::header::ObjectRef;
use crate::value::types::{self, TypeInfo};
use crate::value::{Any, AnyView, bytes_bytes, cast, dtype_to_text, index, str_bytes};
use crate::wire::Writer;
use base64::prelude::{BASE64_STANDARD, Engine as _};
use std::collections::HashMap;

impl LegacyGraph {
    /// The graph of `value` as `release` writes it: the null node, then every object before its children, each once.
    ///
    /// # Errors
    ///
    /// OBJ-33 of kind unsupported for what the release has no node for: a number before 0.18, a list, a type that does not describe
    /// itself to reflection. OBJ-27 for a cycle, OBJ-41 for a value that nests deeper than 1,000 objects, a ValueError where the stack
    /// of the thread is too short for it, OBJ-11 for a tensor that is not compact on the CPU, VAL-18 for a data type without a
    /// text; what the getter of a field or the hash of a key fails with.
    pub fn of(value: AnyView<'_>, release: Release) -> Result<LegacyGraph> {
        let mut encoder = LegacyEncoder {
            release,
            nodes: vec![LegacyNode::default()],
            tensors: Vec::new(),
            by_address: HashMap::new(),
            by_value: Dict::new(),
            kept: Vec::new(),
            open: Vec::new(),
        };
        // OBJ-30: None is node 0, and then the graph has no other.
        let root = encoder.node(value)?;
        Ok(LegacyGraph {
            root,
            nodes: encoder.nodes,
            // OBJ-32: the member is there from 0.4 on, even when it is empty.
            tensors: (release.minor() >= 4).then_some(encoder.tensors),
            attrs: [(VERSION.to_owned(), format!("{release}.0").into_bytes())].into(),
        })
    }
}

/// A legacy graph that is being written.
struct LegacyEncoder {
    /// The release whose node types and spelling the graph has.
    release: Release,
    /// The nodes, by index; an open one is empty until its children are numbered.
    nodes: Vec<LegacyNode>,
    /// Records of tensors that fields refer to (OBJ-26).
    tensors: Vec<Vec<u8>>,
    /// Up to 0.20 an object is the same if its address is.
    by_address: HashMap<usize, usize>,
    /// 0.21 shares what is equal as the key of a map.
    by_value: Dict,
    /// Objects that getters of fields made: while they are held, no other object comes to be at the address of one.
    kept: Vec<Any>,
    /// Nodes on the way.
    open: Vec<usize>,
}

impl LegacyEncoder {
    /// Whether the graph has the type keys of tvm-ffi and nodes for plain values: 0.21.
    fn new_era(&self) -> bool {
        self.release.minor() >= 21
    }

    /// Short, as [`LegacyEncoder::encode`] is.
    fn node(&mut self, value: AnyView<'_>) -> Result<usize> {
        // OBJ-30: node 0 is the null node, which absent references name.
        if value.is_none() {
            return Ok(0);
        }
        let (at, is_known) = self.place(value)?;
        if !is_known {
            let node = self.encode(value)?;
            self.nodes[at] = *node;
            self.open.pop();
        }
        Ok(at)
    }

    /// Which node a value is, and whether it was one before. If not, it is open now.
    fn place(&mut self, value: AnyView<'_>) -> Result<(usize, bool)> {
        let address = value.as_object().map(|object| object.as_ptr() as usize);
        if let Some(known) = self.known(value, address)? {
            if self.open.contains(&known) {
                let message = format!("a `{}` contains itself", types::key_of(value.type_index()));
                return Err(OBJ_27.rejected(Kind::Cycle, message).into());
            }
            return Ok((known, true));
        }
        depth::check_saved(self.open.len() + 1)?;
        depth::check_stack()?;
        // OBJ-30: a node has its number before its children have theirs, so that it comes before them; 0.22 has it the other way
        // (OBJ-18).
        let at = self.nodes.len();
        self.nodes.push(LegacyNode::default());
        // OBJ-33: in 0.21 everything equal is one node, up to 0.20 an object by its identity.
        if self.new_era() {
            self.by_value.set(value.to_any(), at as i64)?;
        } else if let Some(address) = address {
            self.by_address.insert(address, at);
            self.kept.push(value.to_any());
        }
        self.open.push(at);
        Ok((at, false))
    }

    /// The node of a value that has one.
    fn known(&self, value: AnyView<'_>, address: Option<usize>) -> Result<Option<usize>> {
        if self.new_era() {
            let known = self.by_value.get(value)?;
            let known = known.map(|known| cast::<i64>(known.view())).transpose()?;
            return Ok(known.and_then(|known| usize::try_from(known).ok()));
        }
        Ok(address.and_then(|address| self.by_address.get(&address).copied()))
    }

    /// A type key before 0.21, the releases that can save it, and its key in 0.21.
    fn key(&self, value: AnyView<'_>, old: &str, since: u8, new: &str) -> Result<String> {
        match self.release.minor() {
            21.. => Ok(new.to_owned()),
            minor if minor >= since => Ok(old.to_owned()),
            _ => Err(self.nothing(value)),
        }
    }

    /// The error for a value that the release has no node for (OBJ-33).
    fn nothing(&self, value: AnyView<'_>) -> Error {
        let message = format!(
            "{} cannot save a `{}`",
            self.release,
            types::key_of(value.type_index())
        );
        OBJ_33.rejected(Kind::Unsupported, message).into()
    }

    /// Short, as what it calls by recursion is: a thread may have little stack.
    fn encode(&mut self, value: AnyView<'_>) -> Result<Box<LegacyNode>> {
        let mut node = Box::<LegacyNode>::default();
        match value.type_index() {
            index::ARRAY => {
                node.type_key = self.key(value, "Array", 2, "ffi.Array")?;
                for item in sequence_of(value).unwrap_or_default().iter() {
                    node.data.push(self.node(item.view())?);
                }
            }
            // OBJ-33: lists and dicts are younger than this form and have no node in it.
            index::MAP => self.map(value, &mut node)?,
            index::STR | index::BYTES | index::SHAPE | index::TENSOR => return self.plain(value),
            own => match value.as_object() {
                Some(object) => match types::info(own).filter(|info| can_create(info)) {
                    Some(info) => self.object(object, info, &mut node)?,
                    None => return Err(self.nothing(value)),
                },
                None => return self.plain(value),
            },
        }
        Ok(node)
    }

    /// The node of a value that refers to no other.
    fn plain(&self, value: AnyView<'_>) -> Result<Box<LegacyNode>> {
        // Before 0.21 no release has a node for these values, so that the old key is never written.
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
                    // OBJ-36: in words here, where an attribute has 0 or 1.
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
                // OBJ-33: releases write six digits or decimals of a boxed float, in either form, and lose the rest.
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
                attr("v_device_id", device.device_id.to_string());
                attr("v_device_type", device.device_type.to_string());
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
            _ => return Err(self.nothing(value)),
        }
        Ok(node)
    }

    /// Fills the node of a map (OBJ-24).
    fn map(&mut self, value: AnyView<'_>, node: &mut LegacyNode) -> Result<()> {
        node.type_key = self.key(value, "Map", 2, "ffi.Map")?;
        let pairs = pairs_of(value);
        let pairs = || pairs.iter().flatten();
        // Without pairs there are no keys that are not strings.
        // OBJ-24: one key of another type makes all pairs take turns: `keys` has text alone.
        let named = pairs().all(|(key, _)| str_bytes(&key.view()).is_some());
        for (key, item) in pairs() {
            // OBJ-32: nodes have `keys` from 0.4 on; a map with another key than text has keys and values in turn (OBJ-24).
            if named && self.release.minor() >= 4 {
                // OBJ-24: 0.4 to 0.6 have a type of its own for a map of strings.
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

    /// Fills the node of an object that reflection can make: its type key, and each field as text.
    fn object(&mut self, object: &ObjectRef, info: &TypeInfo, node: &mut LegacyNode) -> Result<()> {
        node.type_key = info.key().to_owned();
        for field in fields_of(object) {
            let text = self.field(field)?;
            node.attrs
                .insert(field.name().to_owned(), text.into_bytes());
        }
        Ok(())
    }

    /// The text of a field: a number, or the index of a node or of a tensor (OBJ-33).
    fn field(&mut self, field: OwnField<'_>) -> Result<String> {
        let value = field.get()?;
        let raw = value.as_raw();
        if raw.type_index == index::NONE {
            // Node 0 is the null node (OBJ-30); 0.21 writes the word in place of its index.
            return Ok(if self.new_era() { "null" } else { "0" }.to_owned());
        }
        Ok(match field.static_type_index {
            index::BOOL | index::INT => raw.int().to_string(),
            index::FLOAT => match self.release.minor() {
                // 0.2 to 0.6.0 write six decimals, 0.7 sixteen digits, later releases seventeen: only those read back as the same
                // float.
                ..=6 => format!("{:.6}", raw.float()).to_lowercase(),
                7 => general(raw.float(), 16),
                _ => general(raw.float(), 17),
            },
            index::DATA_TYPE => dtype_to_text(raw.dtype())?,
            // OBJ-26: from 0.4 on tensors are apart; 0.21 makes them nodes.
            index::TENSOR if (4..21).contains(&self.release.minor()) => {
                self.tensors.push(self.tensor_record(value.view())?);
                (self.tensors.len() - 1).to_string()
            }
            _ => self.node(value.view())?.to_string(),
        })
    }

    /// The record of a tensor, whose bytes are counted as the release counts them (OBJ-26).
    fn tensor_record(&self, value: AnyView<'_>) -> Result<Vec<u8>> {
        let tensor = cast::<Tensor>(value)?;
        let dtype = tensor.dl().dtype;
        let dtype = Dtype::from(dtype);
        let sizing = Sizing::of(self.release);
        let mut out = Writer::new();
        TensorRecord::new(dtype, tensor.shape(), tensor.to_bytes()?, sizing)?.write(&mut out);
        Ok(out.into_bytes())
    }
}
