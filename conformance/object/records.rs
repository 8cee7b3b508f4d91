//! Types that a case defines by reflection, as Python does for its dataclasses, and the reflection data of any type.
//!
//! The C functions for types are looked up by name when they are needed, because releases of tvm-ffi have different sets of them. A case
//! that needs a missing function is unsupported.

use crate::conformance::runtime::RawHandle;
use crate::conformance::runtime::case_numbers::{NoNumber, number_or};
use crate::conformance::runtime::ffi::api::FfiApi;
use crate::conformance::runtime::ffi::owned::{OwnedValue, Raised, int_arg};
use crate::conformance::runtime::ffi::{Reply, unsupported};
use crate::conformance::runtime::{Runtime, function_of};
use crate::lock::lock;
use crate::value::types::{Column, FieldInfo, Getter, MethodInfo, TypeInfo, TypeMetadata, flag};
use crate::value::{ByteArray, Header, RawAny, index};
use serde_json::{Value, json};
use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

/// A setter of a field without the flag [`flag::SETTER_IS_FUNCTION`], as C++ registers it.
type Setter = unsafe extern "C-unwind" fn(*mut c_void, *const RawAny) -> i32;

/// Looks up a C function for types, which some releases lack.
fn symbol<F: Copy>(runtime: &dyn Runtime, name: &str) -> Result<F, Reply> {
    // SAFETY: each caller names the type that the C header declares for this function.
    let found = unsafe { function_of(runtime, name) };
    found.ok_or_else(|| unsupported(format!("this runtime has no {name}")))
}

/// Returns the type index and the size in bytes of a declared field type.
fn declared(name: &str) -> Result<(i32, usize), Reply> {
    let object = size_of::<*const Header>();
    Ok(match name {
        "any" => (index::ANY, size_of::<RawAny>()),
        "int" => (index::INT, 8),
        "float" => (index::FLOAT, 8),
        "bool" => (index::BOOL, 1),
        "dtype" => (index::DATA_TYPE, 4),
        "device" => (index::DEVICE, 8),
        "object" => (index::OBJECT, object),
        "array" => (index::ARRAY, object),
        "list" => (index::LIST, object),
        "map" => (index::MAP, object),
        "dict" => (index::DICT, object),
        _ => return Err(unsupported(format!("no field is declared as `{name}`"))),
    })
}

/// Returns the flags of a field by their names. Setters are function objects, as in Python, so that every release can write the field.
fn flags(field: &Value) -> Result<i64, Reply> {
    let names = field.get("flags").and_then(Value::as_array);
    let mut flags = flag::WRITABLE | flag::SETTER_IS_FUNCTION;
    for name in names.into_iter().flatten().filter_map(Value::as_str) {
        flags |= match name {
            "ignore" => flag::EQ_HASH_IGNORE,
            "pattern" => flag::DEF_PATTERN,
            "simple" => flag::DEF_SIMPLE,
            "factory" => flag::DEFAULT_IS_FACTORY,
            "no-repr" => flag::REPR_OFF,
            "no-compare" => flag::COMPARE_OFF,
            "no-hash" => flag::HASH_OFF,
            "no-init" => flag::INIT_OFF,
            "keyword" => flag::KEYWORD_ONLY,
            _ => return Err(unsupported(format!("no field has a flag `{name}`"))),
        };
    }
    Ok(flags)
}

/// Defines a type `{key, kind, fields: [{name, type, flags, default}], size, record}` and returns its index.
///
/// A type keeps its key for the life of the process, because texts and hashes contain the key. A second definition of the same key
/// therefore returns the existing type. A definition that must be rejected has a `fresh` key.
///
/// The steps are those of `py_class`. First come the index, each field with its getter and setter, and the metadata. Then a function makes
/// the constructor and the comparisons (OBJ-15). `"record": false` skips that last step.
pub(super) fn define(
    api: &'static FfiApi,
    form: &Value,
    parent: Option<i32>,
    default: impl Fn(&Value) -> Result<Option<OwnedValue>, Reply>,
) -> Result<i32, DefineError> {
    static RUN: AtomicU32 = AtomicU32::new(0);
    // A thread that finds a type must also find all its fields, so only one thread defines a type at a time.
    static WHOLE: Mutex<()> = Mutex::new(());
    let _whole = lock(&WHOLE);
    let parent = parent.unwrap_or(index::OBJECT);
    let above = api.type_info(parent);
    let above = above.ok_or_else(|| unsupported("there is no parent type of that key"))?;
    let key = form.get("key").and_then(Value::as_str).unwrap_or("Own");
    let key = match form.get("fresh").and_then(Value::as_bool) {
        Some(true) => format!("case{}.{key}", RUN.fetch_add(1, Ordering::Relaxed)),
        _ => format!("case.{key}"),
    };
    if let Some(known) = api.type_index(&key) {
        return Ok(known);
    }
    let type_index = api.new_type(&key, [-1, above.type_depth + 1, 0, 1, parent])?;
    // OBJ-15: the new fields follow those of the parent, so that an object of the type is also an object of the parent type.
    let mut end = size_of_type(above).max(size_of::<Header>());
    let fields = form.get("fields").and_then(Value::as_array);
    for field in fields.into_iter().flatten() {
        let (field_type, size) =
            declared(field.get("type").and_then(Value::as_str).unwrap_or("any"))?;
        let default = default(field)?;
        let offset = field.get("offset").and_then(Value::as_u64);
        let offset = offset.map_or(end.next_multiple_of(8), |offset| offset as usize);
        add(api, type_index, field, (field_type, size, offset), default)?;
        end = end.max(offset + size);
    }
    let size = number_or(form, "size", end.next_multiple_of(8) as i64)?;
    let metadata = TypeMetadata {
        doc: ByteArray::EMPTY,
        creator: None,
        total_size: i32::try_from(size.max(0)).map_err(|_| unsupported("a type of that size"))?,
        structural_kind: number_or(form, "kind", 0)?,
    };
    let register: unsafe extern "C" fn(i32, *const TypeMetadata) -> i32 =
        symbol(api.runtime, "TVMFFITypeRegisterMetadata")?;
    // SAFETY: the metadata has no documentation and no creator, and the size is that of the objects.
    api.check(unsafe { register(type_index, &metadata) })?;
    if form.get("record").and_then(Value::as_bool) != Some(false) {
        let args = [int_arg(type_index.into()), int_arg(size)];
        api.call_global("ffi._PyClassRegisterTypeAttrColumns", &args)?;
    }
    Ok(type_index)
}

/// An error of a definition: the runtime rejects it or lacks the function for it.
pub(super) enum DefineError {
    Raised(Raised),
    Reply(Reply),
}

impl From<Raised> for DefineError {
    fn from(raised: Raised) -> DefineError {
        DefineError::Raised(raised)
    }
}

impl From<NoNumber> for DefineError {
    fn from(none: NoNumber) -> DefineError {
        Reply::from(none).into()
    }
}

impl From<Reply> for DefineError {
    fn from(reply: Reply) -> DefineError {
        DefineError::Reply(reply)
    }
}

/// Returns the key of a type.
pub(super) fn key(api: &'static FfiApi, type_index: i32) -> Result<String, Reply> {
    let info = api.type_info(type_index);
    let info = info.ok_or_else(|| unsupported(format!("there is no type {type_index}")))?;
    // SAFETY: types live as long as the process.
    let key = unsafe { info.type_key.as_slice() };
    Ok(String::from_utf8_lossy(key).into_owned())
}

/// Returns the size of an object in bytes, or 0 if the type has no metadata or no fixed size.
fn size_of_type(info: &TypeInfo) -> usize {
    // SAFETY: the pointer is null, or points to metadata that lives as long as the type.
    let metadata = unsafe { info.metadata.load(Ordering::Acquire).as_ref() };
    metadata.map_or(0, |metadata| {
        usize::try_from(metadata.total_size).unwrap_or(0)
    })
}

/// Registers one field with a type, a size in bytes, and an offset from the header.
///
/// The runtime makes the getter and the setter from the index of the field type. Both are never freed, like the type.
fn add(
    api: &'static FfiApi,
    type_index: i32,
    field: &Value,
    (field_type, size, offset): (i32, usize, usize),
    default: Option<OwnedValue>,
) -> Result<(), DefineError> {
    let name = field.get("name").and_then(Value::as_str).unwrap_or("field");
    let getter = api.call_global("ffi.MakeFieldGetter", &[int_arg(field_type.into())])?;
    // SAFETY: the function returns the address of a getter as a number.
    let getter = unsafe { std::mem::transmute::<u64, Option<Getter>>(getter.raw.bits()) };
    let converter: &'static SetterConverter =
        Box::leak(Box::new(SetterConverter { api, field_type }));
    let convert: unsafe extern "C-unwind" fn(*mut c_void, *const RawAny, *mut RawAny) -> i32 =
        convert;
    let addresses = [
        std::ptr::from_ref(converter) as i64,
        convert as usize as i64,
    ];
    let [converter, convert] = addresses.map(int_arg);
    let args = [int_arg(field_type.into()), converter, convert];
    let setter = api.call_global("ffi.MakeFieldSetter", &args)?;
    let mut flags = flags(field)?;
    if default.is_some() {
        flags |= flag::HAS_DEFAULT;
    }
    let info = FieldInfo {
        name: ByteArray::of(name.as_bytes()),
        doc: ByteArray::EMPTY,
        metadata: ByteArray::EMPTY,
        flags,
        size: size as i64,
        alignment: size.min(8) as i64,
        offset: offset as i64,
        getter,
        // The type keeps the setter for the life of the process.
        setter: ManuallyDrop::new(setter).pointer(),
        default: default.as_ref().map_or(RawAny::NONE, |default| default.raw),
        static_type_index: field_type,
    };
    let register: unsafe extern "C" fn(i32, *const FieldInfo) -> i32 =
        symbol(api.runtime, "TVMFFITypeRegisterField")?;
    // SAFETY: the getter and the setter fit this kind of field, and every object of the type has the field.
    Ok(api.check(unsafe { register(type_index, &info) })?)
}

/// The context of `convert`, which the setter of a field calls for each value.
struct SetterConverter {
    api: &'static FfiApi,
    field_type: i32,
}

/// Checks a value before it is written to a field. A field of any type takes every value, an object field takes an object or None, and any
/// other field takes only its own type.
///
/// The runtime gets the address of this function, as it gets the converter of Python. None of the conversions of VAL-07 is done.
unsafe extern "C-unwind" fn convert(
    this: *mut c_void,
    value: *const RawAny,
    out: *mut RawAny,
) -> i32 {
    // SAFETY: `add` made the setter with a pointer to its converter.
    let converter = unsafe { &*this.cast::<SetterConverter>() };
    // SAFETY: a setter passes the address of a value.
    let value = unsafe { &*value };
    let fits = match converter.field_type {
        index::ANY => true,
        index::OBJECT => value.type_index == index::NONE || value.type_index >= index::OBJECT_BEGIN,
        own => value.type_index == own,
    };
    if !fits {
        converter
            .api
            .raise(c"TypeError", c"the field is of another type");
        return -1;
    }
    match converter.api.own(value) {
        Ok(owned) => {
            // SAFETY: `out` is a place for the result, which takes the reference.
            unsafe { out.write(ManuallyDrop::new(owned).raw) };
            0
        }
        Err(_) => -1,
    }
}

/// Returns a list that belongs to a type.
///
/// # Safety
///
/// `first` is the address of `count` elements that live as long as the process.
unsafe fn list<T>(first: *const T, count: i32) -> &'static [T] {
    match usize::try_from(count) {
        // SAFETY: there are `count` elements, by the contract of this function.
        Ok(count) if count > 0 => unsafe { std::slice::from_raw_parts(first, count) },
        _ => &[],
    }
}

/// Returns the fields of this type only, without those of its ancestors.
fn fields(info: &TypeInfo) -> &'static [FieldInfo] {
    let first = info.fields.load(Ordering::Acquire);
    // SAFETY: the type has this number of fields at that address, and they live as long as the type.
    unsafe { list(first.cast_const(), info.num_fields.load(Ordering::Acquire)) }
}

/// Returns the methods of this type only.
fn methods(info: &TypeInfo) -> &'static [MethodInfo] {
    let first = info.methods.load(Ordering::Acquire);
    // SAFETY: the type has this number of methods at that address, and they live as long as the type.
    unsafe { list(first.cast_const(), info.num_methods.load(Ordering::Acquire)) }
}

/// Returns the ancestors, starting with the root.
fn ancestors(info: &TypeInfo) -> &'static [&'static TypeInfo] {
    // SAFETY: the number of ancestors is the depth of the type, and types are never freed.
    unsafe { list(info.ancestors.cast(), info.type_depth) }
}

/// Returns a text of reflection, which may not be valid UTF-8.
fn text(bytes: &ByteArray) -> String {
    // SAFETY: the texts of a type live as long as the type.
    String::from_utf8_lossy(unsafe { bytes.as_slice() }).into_owned()
}

/// Finds a field of a type or of one of its ancestors.
pub(super) fn field(
    api: &'static FfiApi,
    type_index: i32,
    name: &str,
) -> Option<&'static FieldInfo> {
    let info = api.type_info(type_index)?;
    let all = [info].into_iter().chain(ancestors(info).iter().copied());
    let mut all = all.flat_map(fields);
    all.find(|field| text(&field.name) == name)
}

/// Returns the address of the field in the object. Reflection counts offsets from the header.
fn field_address(field: &FieldInfo, object: &OwnedValue) -> RawHandle {
    object.pointer().wrapping_byte_offset(field.offset as isize)
}

/// Reads a field.
pub(super) fn read(
    api: &'static FfiApi,
    field: &FieldInfo,
    object: &OwnedValue,
) -> Result<OwnedValue, Raised> {
    let getter = field.getter.ok_or_else(|| Raised::missing("getter"))?;
    let mut out = RawAny::NONE;
    // SAFETY: the object is of a type that has the field.
    api.check(unsafe { getter(field_address(field, object), &mut out) })?;
    Ok(OwnedValue { api, raw: out })
}

/// Writes a field.
pub(super) fn write(
    api: &'static FfiApi,
    field: &FieldInfo,
    object: &OwnedValue,
    value: &OwnedValue,
) -> Result<(), Raised> {
    if field.setter.is_null() {
        return Err(Raised::missing("setter"));
    }
    let at = field_address(field, object);
    if field.flags & flag::SETTER_IS_FUNCTION != 0 {
        let setter = RawAny::of(
            index::FUNCTION,
            crate::value::AnyPayload { ptr: field.setter },
        );
        let at = RawAny::of(index::OPAQUE, crate::value::AnyPayload { ptr: at });
        return api.call(&api.share(setter), &[at, value.raw]).map(drop);
    }
    // SAFETY: without the flag, a setter is a C function of this type.
    let setter = unsafe { std::mem::transmute::<*mut c_void, Setter>(field.setter) };
    // SAFETY: the object is of a type that has the field, and the value lives for the call.
    api.check(unsafe { setter(at, &value.raw) })
}

/// Finds a method of a type.
pub(super) fn method(api: &'static FfiApi, type_index: i32, name: &str) -> Option<OwnedValue> {
    let methods = methods(api.type_info(type_index)?);
    // If two methods have the same name, the last registered one counts.
    let found = methods.iter().rfind(|method| text(&method.name) == name)?;
    Some(api.share(found.method))
}

/// Returns an attribute of a type, if the type has it.
///
/// The column is read directly, at the index of the type minus the first index of the column. C++ does the same, and no function does it.
pub(super) fn attribute(api: &'static FfiApi, type_index: i32, name: &str) -> Option<OwnedValue> {
    let column: unsafe extern "C" fn(*const ByteArray) -> *const Column =
        symbol(api.runtime, "TVMFFIGetTypeAttrColumn").ok()?;
    // SAFETY: the argument is a name.
    let column = unsafe { column(&ByteArray::of(name.as_bytes())) };
    // SAFETY: the pointer is null, or points to a column: address, count and first index of its values. A column is never freed.
    let (data, size, begin) = unsafe { column.cast::<(*const RawAny, i32, i32)>().as_ref()? };
    let at = usize::try_from(type_index.checked_sub(*begin)?).ok()?;
    if at >= usize::try_from(*size).ok()? {
        return None;
    }
    // SAFETY: the column has more than `at` values.
    let value = unsafe { *data.wrapping_add(at) };
    (value.type_index != index::NONE).then(|| api.share(value))
}

/// Returns the number of strong references to an object.
pub(super) fn strong(value: &OwnedValue) -> Option<u32> {
    if value.raw.type_index < index::OBJECT_BEGIN {
        return None;
    }
    // SAFETY: an object begins with a header, and `value` holds the object.
    Some(unsafe { &*value.pointer().cast::<Header>() }.strong_count())
}

/// Shows the reflection data of a type of the runtime.
pub(super) fn reflect(api: &'static FfiApi, type_index: i32) -> Result<Value, Reply> {
    let info = api.type_info(type_index);
    let info = info.ok_or_else(|| unsupported("there is no type of that key"))?;
    let parsed = |text: String| serde_json::from_str(&text).unwrap_or(Value::String(text));
    let fields = fields(info).iter().map(|field| {
        json!({
            "name": text(&field.name), "doc": text(&field.doc), "metadata": parsed(text(&field.metadata)),
            "flags": field.flags, "size": field.size, "alignment": field.alignment, "offset": field.offset,
            "type": field.static_type_index,
        })
    });
    let methods = methods(info).iter().map(|method| {
        json!({
            "name": text(&method.name), "doc": text(&method.doc), "metadata": parsed(text(&method.metadata)),
            "flags": method.flags,
        })
    });
    // SAFETY: the pointer is null, or points to metadata that lives as long as the type.
    let metadata = unsafe { info.metadata.load(Ordering::Acquire).as_ref() };
    let ancestors = ancestors(info).iter().map(|one| text(&one.type_key));
    Ok(json!({
        "ancestors": ancestors.collect::<Vec<_>>(),
        "hash": format!("{:#x}", info.key_hash),
        "fields": fields.collect::<Vec<_>>(),
        "methods": methods.collect::<Vec<_>>(),
        "size": metadata.map(|metadata| metadata.total_size),
        "kind": metadata.map(|metadata| metadata.structural_kind),
    }))
}
