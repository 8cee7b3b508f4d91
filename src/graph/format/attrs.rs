//! The attributes of a graph: one list for each property of its entries.

use super::json_text::JsonText;
use super::node::check_duplicates;
use crate::graph::{
    GRF_13, GRF_14, GRF_15, GRF_16, GRF_17, GRF_18, GRF_21, GRF_22, GRF_51, GRF_52,
};
use crate::release::Release;
use crate::rule::{Findings, Kind, Violation};
use crate::tensor::{Device, Dtype};
use serde_json::{Map, Value, json};

/// The type, the shape and the storage of an entry.
#[derive(Clone, Debug, PartialEq)]
pub struct DataEntry {
    /// The element type. An element of 1 or 4 bits takes a whole byte (GRF-51).
    pub dtype: Dtype,
    /// The extents, none of which is negative (GRF-18); empty for a scalar.
    pub shape: Vec<i64>,
    /// The number of the pool. All entries with this number share it, from its first byte on (GRF-22, GRF-52).
    pub storage_id: usize,
    /// The device *type* number, if the graph has one (`device_index`, from 0.5 on).
    pub device: Option<i32>,
    /// The memory scope, if the graph has one (`storage_scope`, from 0.10 on); empty is the default scope.
    pub scope: Option<String>,
}

/// The last release with a graph executor. Every graph uses its names of dtypes (GRF-17). Newer releases use some of these names, such
/// as `bool`, for other types.
const LAST: Release = Release::of(19);

/// Reads the lists that describe each of `count` entries (GRF-13 to GRF-18).
pub(super) fn read_attrs(
    attrs: JsonText<'_>,
    count: usize,
    findings: &mut Findings,
) -> Result<Vec<DataEntry>, Violation> {
    let (mut dtypes, mut shapes, mut storage, mut devices, mut scopes) =
        (None, None, None, None, None);
    let members = attrs.members(GRF_13, "attrs")?;
    check_duplicates(&members, findings, |key| key)?;
    for (key, value) in members {
        let pair = value.elements(GRF_13, &key)?;
        let [tag, list] = pair.as_slice() else {
            let message = format!("attrs.{key}: expected a list of two, a type and a value");
            return Err(GRF_13.broken(Kind::Malformed, value.offset(), message));
        };
        let tag = tag.string(GRF_13, &key)?;
        let expected = match key.as_ref() {
            // GRF-13: 0.2 to 0.4 skip `device_index`, and 0.2 to 0.9 reject `storage_scope`. Here both are read in every graph.
            "dltype" | "storage_scope" => "list_str",
            "storage_id" | "device_index" => "list_int",
            "shape" => "list_shape",
            _ => {
                // Releases can skip only these two types of lists.
                GRF_16.require_as(Kind::Unsupported, tag == "list_int" || tag == "size_t", value.offset(), || {
                    format!("attrs.{key} is unknown and of type `{tag}`: expected `list_int` or `size_t`, the only types that released readers can skip")
                })?;
                findings.note(
                    GRF_21,
                    Kind::Unsupported,
                    value.offset(),
                    format!("attrs.{key} is unknown: it is ignored"),
                )?;
                continue;
            }
        };
        // GRF-14: from 0.10 on releases mistake `storage_scope` for `dltype`, and accept a graph without types. Here such a graph
        // is rejected.
        GRF_13.require(tag == expected, value.offset(), || {
            format!("attrs.{key}: expected type `{expected}`, found `{tag}`")
        })?;
        let elements = list.elements(GRF_13, &key)?;
        // GRF-15: releases do not check the length of the list before they index it, and read past its end.
        GRF_15
            .require(elements.len() == count, list.offset(), || {
                format!(
                    "expected {count} elements, one for each entry; found {}",
                    elements.len()
                )
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
    // GRF-14: checked after all members are read, because they come in any order.
    let missing = |what: &str| {
        GRF_14.broken(
            Kind::Missing,
            attrs.offset(),
            format!("the `attrs` of the graph lack the required member `{what}`"),
        )
    };
    let dtypes = dtypes.ok_or_else(|| missing("dltype"))?;
    let shapes = shapes.ok_or_else(|| missing("shape"))?;
    let storage = storage.ok_or_else(|| missing("storage_id"))?;
    let mut entries = Vec::new();
    // GRF-15: all three lists have `count` elements, so no element is lost.
    for (index, ((dtype, shape), storage)) in dtypes.iter().zip(&shapes).zip(&storage).enumerate() {
        let entry = DataEntry {
            dtype: read_dtype(dtype)?,
            shape: read_shape(shape)?,
            // GRF-52: checked against the count of `node_row_ptr`, which equals the length of this list (GRF-15).
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

/// Returns element `index` of an optional attribute.
fn nth<'a>(list: &Option<Vec<JsonText<'a>>>, index: usize) -> Option<JsonText<'a>> {
    list.as_ref()?.get(index).copied()
}

/// Parses an element type (GRF-17, GRF-51).
fn read_dtype(item: &JsonText<'_>) -> Result<Dtype, Violation> {
    let text = item.string(GRF_17, "attrs.dltype")?;
    // GRF-17: a dtype is rejected if its own text does not parse back to it, as with `handle2`. It could not be written again.
    let read = Dtype::parse(&text, LAST).ok();
    let exact = read.filter(|dtype| Dtype::parse(&dtype_text(*dtype), LAST) == Ok(*dtype));
    let dtype = exact.ok_or_else(|| {
        let (kind, message) = if text.starts_with("custom[") { (
            Kind::Unsupported,
            format!("`{text}` is a custom type, which the program that runs the graph registers: nothing else knows it"),
        ) } else { (Kind::Malformed, format!("unknown dtype `{text}`: expected a name such as `float32`, `int8` or `uint1`")) };
        GRF_17
            .broken(kind, item.offset(), message)
            .in_field("attrs.dltype")
    })?;
    // GRF-51: executors compute with whole bytes per element. 1 bit (from 0.5 on) and 4 bits (from 0.8 on) take a byte.
    let bits = u32::from(dtype.bits).saturating_mul(u32::from(dtype.lanes));
    let sized = bits.is_multiple_of(8) || matches!(bits, 1 | 4);
    GRF_51
        .require_as(Kind::Unsupported, sized, item.offset(), || {
            format!("an element of `{text}` has {bits} bits: expected whole bytes, 1 bit or 4 bits")
        })
        .map_err(|broken| broken.in_field("attrs.dltype"))?;
    Ok(dtype)
}

/// Returns the name of a dtype in graphs, in which a bool is `uint1` (GRF-17).
pub(crate) fn dtype_text(dtype: Dtype) -> String {
    dtype
        .text(LAST)
        .unwrap_or_default()
        .replace("bool", "uint1")
}

/// Reads a shape (GRF-18).
fn read_shape(item: &JsonText<'_>) -> Result<Vec<i64>, Violation> {
    let mut shape = Vec::new();
    for extent in item.elements(GRF_18, "attrs.shape")? {
        // GRF-18: upstream reads a negative extent as a huge unsigned one, and the product of the extents wraps around.
        let value = extent.integer(GRF_18, "attrs.shape")?;
        GRF_18
            .require(value >= 0, extent.offset(), || {
                format!("expected an extent of 0 or more, found {value}: the shapes of a graph are known before it runs")
            })
            .map_err(|broken| broken.in_field("attrs.shape"))?;
        shape.push(value);
    }
    Ok(shape)
}

/// Reads the pool of an entry. A negative id marks a shape that is only known at run time, which no released executor supports
/// (GRF-22).
///
/// Ids without gaps are smaller than the number of entries. A reader that trusts a lone id of 2^31 creates that many pools
/// (GRF-52).
fn read_storage(item: &JsonText<'_>, entries: usize) -> Result<usize, Violation> {
    let value = item.integer(GRF_22, "attrs.storage_id")?;
    GRF_22
        .require_as(Kind::Unsupported, value >= 0, item.offset(), || {
            format!("storage id {value}: expected 0 or more, because shapes that are known only at run time are not supported")
        })
        .map_err(|broken| broken.in_field("attrs.storage_id"))?;
    // GRF-52: an id that does not fit into a `usize` exceeds any number of entries.
    let id = usize::try_from(value).unwrap_or(usize::MAX);
    GRF_52
        .require_as(Kind::Limit, id < entries, item.offset(), || {
            format!("storage id {value} is too large: a graph of {entries} entries has ids below {entries}")
        })
        .map_err(|broken| broken.in_field("attrs.storage_id"))?;
    Ok(id)
}

/// Reads a device type of 32 bits, as in every C interface of a device. The executor chooses the device of that type (GRF-30).
fn read_device(item: &JsonText<'_>) -> Result<i32, Violation> {
    let value = item.integer(GRF_13, "attrs.device_index")?;
    i32::try_from(value).map_err(|_| {
        GRF_13
            .broken(
                Kind::Malformed,
                item.offset(),
                format!("device type {value} does not fit into 32 bits"),
            )
            .in_field("attrs.device_index")
    })
}

/// Returns the attributes in normal form. `device_index` and `storage_scope` are present if any entry has one (GRF-13).
pub(super) fn attrs_json(entries: &[DataEntry]) -> Map<String, Value> {
    let mut attrs = Map::new();
    let column = |value: fn(&DataEntry) -> Value| Value::Array(entries.iter().map(value).collect());
    attrs.insert(
        "dltype".into(),
        json!(["list_str", column(|entry| dtype_text(entry.dtype).into())]),
    );
    if entries.iter().any(|entry| entry.device.is_some()) {
        attrs.insert(
            "device_index".into(),
            json!([
                "list_int",
                // GRF-15: if one entry has a device, every entry needs a number.
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
    if entries.iter().any(|entry| entry.scope.is_some()) {
        // GRF-13: "" is the default scope.
        let scope = column(|entry| entry.scope.clone().unwrap_or_default().into());
        attrs.insert("storage_scope".into(), json!(["list_str", scope]));
    }
    attrs
}
