//! Registered data of a type: fields, methods, metadata, attributes (VAL-15), and their content in the table of types.

use crate::conformance::runtime::ffi::api::FfiApi;
use crate::conformance::runtime::ffi::forms::make;
use crate::conformance::runtime::ffi::{Reply, unsupported};
use crate::conformance::runtime::function_of;
use crate::value::types::{FieldInfo, MethodInfo, TypeMetadata, flag};
use crate::value::{ByteArray, Header, RawAny, index};
use serde_json::{Value, json};

/// Performs one step about the type `type_index`. The answer to a registration is null.
pub(super) fn step(
    api: &'static FfiApi,
    type_index: i32,
    what: &str,
    step: &Value,
) -> Result<Value, Reply> {
    let text = |at: usize| step.get(at).and_then(Value::as_str).unwrap_or_default();
    // The texts are overwritten after the call, because the runtime must keep a copy.
    let mut name = text(2).to_owned().into_bytes();
    let mut doc = text(3).to_owned().into_bytes();
    match what {
        "field" => field(api, type_index, [&name, &doc])?,
        "method" => method(api, type_index, [&name, &doc])?,
        "metadata" => metadata(api, type_index, &name)?,
        "attr" => {
            let value = make(api, step.get(3).unwrap_or(&Value::Null))?;
            api.set_attr(type_index, text(2), &value.raw)?;
        }
        "show" => return Ok(shown(api, type_index)),
        other => return Err(unsupported(format!("there is no step {other}"))),
    }
    name.fill(b'?');
    doc.fill(b'?');
    Ok(Value::Null)
}

/// Calls the C function of this name with the index of a type and the data to register.
fn register<T>(api: &'static FfiApi, name: &str, type_index: i32, what: &T) -> Result<(), Reply> {
    // SAFETY: each caller names a function that takes an index and the address of a `T`, by the C header.
    let function =
        unsafe { function_of::<unsafe extern "C" fn(i32, *const T) -> i32>(api.runtime, name) };
    let function = function.ok_or_else(|| unsupported(format!("this runtime has no {name}")))?;
    // SAFETY: `what` is complete, and its texts live until the call returns.
    Ok(api.check(unsafe { function(type_index, what) })?)
}

/// Registers a field of eight bytes after the header. It has no getter, because the cases only look at its reflection data.
fn field(api: &'static FfiApi, type_index: i32, [name, doc]: [&[u8]; 2]) -> Result<(), Reply> {
    let info = FieldInfo {
        name: ByteArray::of(name),
        doc: ByteArray::of(doc),
        metadata: ByteArray::of(doc),
        flags: 0,
        size: 8,
        alignment: 8,
        offset: size_of::<Header>() as i64,
        getter: None,
        setter: std::ptr::null_mut(),
        default: RawAny::NONE,
        static_type_index: index::INT,
    };
    register(api, "TVMFFITypeRegisterField", type_index, &info)
}

/// Registers a method with the value None, because nothing calls it.
fn method(api: &'static FfiApi, type_index: i32, [name, doc]: [&[u8]; 2]) -> Result<(), Reply> {
    let info = MethodInfo {
        name: ByteArray::of(name),
        doc: ByteArray::of(doc),
        metadata: ByteArray::of(doc),
        flags: flag::STATIC_METHOD,
        method: RawAny::NONE,
    };
    register(api, "TVMFFITypeRegisterMethod", type_index, &info)
}

/// Registers metadata of a type that adds no fields.
fn metadata(api: &'static FfiApi, type_index: i32, doc: &[u8]) -> Result<(), Reply> {
    let metadata = TypeMetadata {
        doc: ByteArray::of(doc),
        creator: None,
        total_size: size_of::<Header>() as i32,
        structural_kind: 0,
    };
    register(api, "TVMFFITypeRegisterMetadata", type_index, &metadata)
}

/// Shows names, documentation and metadata of the fields and methods, and the documentation of the type.
fn shown(api: &'static FfiApi, type_index: i32) -> Value {
    let Some(info) = api.type_info(type_index) else {
        return Value::Null;
    };
    let text = |bytes: &ByteArray| {
        // SAFETY: the texts of a type live as long as the type, which is never freed.
        String::from_utf8_lossy(unsafe { bytes.as_slice() }).into_owned()
    };
    let texts = |name, doc, metadata| json!([text(name), text(doc), text(metadata)]);
    let fields = info.fields().iter();
    let fields = fields.map(|field| texts(&field.name, &field.doc, &field.metadata));
    let methods = info.methods().iter();
    let methods = methods.map(|method| texts(&method.name, &method.doc, &method.metadata));
    json!({
        "fields": fields.collect::<Vec<Value>>(),
        "methods": methods.collect::<Vec<Value>>(),
        "doc": info.metadata().map(|metadata| text(&metadata.doc)),
    })
}
