//! The operations of chapter value, asked of a runtime.
//!
//! How a runtime converts shows in its typed functions. One that brings none for the suite has others: for every type there is one that a tvm-ffi library has anyway, and
//! whose result shows what the argument was taken for; where there is none, the functions that `libtvm_ffi_testing.so`
//! adds, which give back what they take.

use crate::conformance::runtime::ffi::api::{Api, Handle, SafeCall};
use crate::conformance::runtime::ffi::forms::{make, show, show_as, type_key};
use crate::conformance::runtime::ffi::held::{Held, int_arg, text_arg};
use crate::conformance::runtime::ffi::{
    NUMBERS, Reply, c_text, fresh_prefix, seen, system_library, told, unsupported,
};
use crate::conformance::value::custom;
use crate::value::dlpack::DLTensor;
use crate::value::header::Header;
use crate::value::{AnyView, ByteArray, BytesObj, Payload, RawAny, index, str_bytes};
use serde_json::{Value, json};
use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU64, Ordering};

/// `value.cell`: of a value that the runtime made itself, not one that it was handed.
pub(in crate::conformance) fn cell(api: &'static Api, args: &Value) -> Result<Reply, Reply> {
    let form = args.get("value").unwrap_or(&Value::Null);
    let held = match made_from(form) {
        Some(node) => {
            let graph = json!({"root_index": 0, "nodes": [node]}).to_string();
            api.call_global("ffi.FromJSONGraphString", &[api.text(&graph)?.raw])?
        }
        None => make(api, form)?,
    };
    let raw = held.raw;
    let mut said = json!({
        "type": type_key(api, raw.type_index),
        "index": raw.type_index,
        "aux": raw.aux,
    });
    if raw.type_index < index::OBJECT_BEGIN {
        said["payload"] = json!(format!("{:016x}", raw.bits().swap_bytes()));
        return told(said);
    }
    // SAFETY: an object that we hold begins with a header.
    let header = unsafe { &*held.pointer().cast::<Header>() };
    said["header"] = json!({
        "strong": header.strong_count(),
        "weak": header.weak_count(),
        "index": header.type_index,
        "padding": header.padding,
    });
    if matches!(raw.type_index, index::STR | index::BYTES) {
        // SAFETY: the tag says that address and length stand behind the header.
        let ByteArray { data, size } = unsafe { (*held.pointer().cast::<BytesObj>()).cell };
        // SAFETY: one more byte belongs to a string.
        let end = unsafe { *data.wrapping_add(size) };
        let offset = data as usize - held.pointer() as usize;
        said["string"] = json!({"offset": offset, "size": size, "end": end});
    }
    told(said)
}

/// The node of a JSON graph that a runtime makes the value of; `None` for what the interface has a function for.
fn made_from(form: &Value) -> Option<Value> {
    Some(match form {
        Value::Null => json!({"type": "None"}),
        Value::Bool(_) => json!({"type": "bool", "data": form}),
        Value::Number(_) => json!({"type": "int", "data": form}),
        Value::Object(object) => match object.iter().next()? {
            (kind, number) if kind == "float" && number.is_number() => {
                json!({"type": "float", "data": number})
            }
            (kind, text) if kind == "dtype" => json!({"type": "DataType", "data": text}),
            (kind, pair) if kind == "device" => json!({"type": "Device", "data": pair}),
            _ => return None,
        },
        _ => return None,
    })
}

/// `value.convert`.
pub(in crate::conformance) fn convert(api: &'static Api, args: &Value) -> Result<Reply, Reply> {
    let wanted = args.get("to").and_then(Value::as_str).unwrap_or_default();
    let value = make(api, args.get("value").unwrap_or(&Value::Null))?;
    told(converted(api, &value, wanted)?)
}

/// What the runtime takes `value` for where it wants a `wanted`.
pub(in crate::conformance) fn converted(
    api: &'static Api,
    value: &Held,
    wanted: &str,
) -> Result<Value, Reply> {
    let call = |name: &str, args: &[RawAny]| api.call_global(name, args);
    let given = value.raw;
    if let Some(converter) = api.brought(&format!("convert.{wanted}")) {
        return show(api, &api.call(&converter, &[given])?);
    }
    Ok(match wanted {
        "int" => element(api, given)?,
        "int32" => {
            // The depth of an access path is an i32.
            let texts = ["parent", "step", "depth"].map(|name| api.text(name));
            let [parent, step, depth] = texts;
            let Some(path) = api.type_index("ffi.reflection.AccessPath") else {
                return Err(unsupported("this runtime has no type with an i32 in it"));
            };
            let none = RawAny::NONE;
            let path = [
                int_arg(path.into()),
                parent?.raw,
                none,
                step?.raw,
                none,
                depth?.raw,
                given,
            ];
            let path = call("ffi.MakeObjectFromPackedArgs", &path)?;
            let depth = api.field(&path, "depth");
            show(
                api,
                &depth.ok_or_else(|| unsupported("the field `depth` does not show"))?,
            )?
        }
        "bool" => {
            // Whether imports are asked, in a module that has the function only there.
            let (root, below) = (fresh_prefix(), fresh_prefix());
            api.system_symbol(&c_text(&format!("__tvm_ffi_{below}f")), NUMBERS[0])?;
            let (root, below) = (system_library(api, &root)?, system_library(api, &below)?);
            call("ffi.ModuleImportModule", &[root.raw, below.raw])?;
            let found = call("ffi.ModuleGetFunction", &[root.raw, text_arg(c"f"), given])?;
            json!(found.raw.type_index != index::NONE)
        }
        "pointer" => pointer(api, given)?,
        "str" => show(api, &call("ffi.String", &[given])?)?,
        "bytes" => show(api, &call("ffi.Bytes", &[given])?)?,
        // Sizes are asked of an object of that very type, which is not all that converts.
        "array" | "map" if matches!(given.type_index, index::LIST | index::DICT) => {
            given_back(api, &wanted.replace("array", "arr"), given)?
        }
        "array" => show_as(api, value, index::ARRAY)?,
        "map" => show_as(api, value, index::MAP)?,
        "list" => {
            call("ffi.ListReserve", &[given, int_arg(0)])?;
            match show(api, value)? {
                // Each call takes an element out of a list of its own.
                Value::Object(form) if given.type_index == index::ARRAY => {
                    let size = form
                        .get("array")
                        .and_then(Value::as_array)
                        .map_or(0, Vec::len);
                    let taken = (0..size)
                        .map(|at| show(api, &call("ffi.ListPop", &[given, int_arg(at as i64)])?));
                    json!({"list": taken.collect::<Result<Vec<Value>, Reply>>()?})
                }
                form => form,
            }
        }
        "function" => {
            // What to call for every object on the way.
            let visitor = call("ffi.Array", &[int_arg(index::OBJECT_BEGIN.into()), given])?;
            let visitors = call("ffi.Array", &[visitor.raw])?;
            call("ffi.StructuralVisit", &[RawAny::NONE, visitors.raw])?;
            show(api, value)?
        }
        "optional-int" => {
            // By how many blanks JSON is indented.
            let list = call("ffi.Array", &[int_arg(0)])?;
            let text = call("ffi.json.Stringify", &[list.raw, given])?.text();
            let text = text.unwrap_or_default();
            match text.lines().nth(1) {
                Some(line) => json!(line.len() - line.trim_start().len()),
                None => Value::Null,
            }
        }
        "shape" => match allocated(api, Some(given), None)? {
            // SAFETY: a tensor has as many extents as dimensions.
            Some(tensor) => json!({"shape": unsafe { tensor.dl()?.shape() }}),
            None => given_back(api, "shape", given)?,
        },
        "dtype" => match allocated(api, None, Some(given))? {
            Some(tensor) => json!({"dtype": api.dtype_text(tensor.dl()?.dtype)?}),
            None => given_back(api, "dtype", given)?,
        },
        "float" | "device" | "object" => given_back(api, wanted, given)?,
        other => return Err(unsupported(format!("there is no type {other}"))),
    })
}

/// An int is what element of many numbers it stands for.
fn element(api: &'static Api, given: RawAny) -> Result<Value, Reply> {
    let numbers: Vec<RawAny> = (0..100).map(int_arg).collect();
    let numbers = api.call_global("ffi.Array", &numbers)?;
    match api.call_global("ffi.ArrayGetItem", &[numbers.raw, given]) {
        Err(raised) if raised.kind == "IndexError" => Err(unsupported(
            "an int shows as the number of an element, which end at 99",
        )),
        found => show(api, &found?),
    }
}

thread_local! {
    static THIS: Cell<Handle> = const { Cell::new(std::ptr::null_mut()) };
}

unsafe extern "C" fn note_this(this: Handle, _: *const RawAny, _: i32, _: *mut RawAny) -> i32 {
    THIS.set(this);
    0
}

unsafe extern "C" fn nothing(_: Handle) {}

/// An opaque pointer is the first that a C callback is called with.
fn pointer(api: &'static Api, given: RawAny) -> Result<Value, Reply> {
    let body = note_this as unsafe extern "C" fn(Handle, *const RawAny, i32, *mut RawAny) -> i32;
    let body = RawAny::of(
        index::OPAQUE,
        Payload {
            ptr: body as Handle,
        },
    );
    // With nothing to delete a null pointer need not be handed on at all.
    let deleter = nothing as unsafe extern "C" fn(Handle);
    let deleter = RawAny::of(
        index::OPAQUE,
        Payload {
            ptr: deleter as Handle,
        },
    );
    let args = [given, body, deleter];
    let function = api.call_global("ffi.FunctionFromExternC", &args)?;
    THIS.set(std::ptr::dangling_mut());
    api.call(&function, &[])?;
    match THIS.get() {
        null if null.is_null() => Ok(Value::Null),
        other => Ok(json!({"pointer": format!("{:#x}", other as usize)})),
    }
}

/// A tensor of that shape and type, where the libraries have a function that makes one.
fn allocated(
    api: &'static Api,
    shape: Option<RawAny>,
    dtype: Option<RawAny>,
) -> Result<Option<Allocated>, Reply> {
    let Some(allocate) = api.global("runtime.TVMTensorAllocWithScope") else {
        return Ok(None);
    };
    let one = api.call_global("ffi.Shape", &[int_arg(1)])?;
    let (byte, cpu) = (api.dtype("int8")?, crate::value::DLDevice::CPU);
    let mut bits = Payload { bits: 0 };
    bits.dtype = byte;
    let args = [
        shape.unwrap_or(one.raw),
        dtype.unwrap_or(RawAny::of(index::DATA_TYPE, bits)),
        RawAny::of(index::DEVICE, Payload { device: cpu }),
        RawAny::NONE,
    ];
    Ok(Some(Allocated(api.call(&allocate, &args)?)))
}

struct Allocated(Held);

impl Allocated {
    fn dl(&self) -> Result<&DLTensor, Reply> {
        let described = self.0.dltensor();
        described.ok_or_else(|| unsupported("what was allocated is not a tensor"))
    }
}

/// What a function of the testing library gives back.
fn given_back(api: &'static Api, wanted: &str, given: RawAny) -> Result<Value, Reply> {
    let Some(identity) = api.global(&format!("testing.schema_id_{wanted}")) else {
        return Err(unsupported(format!(
            "no function takes a {wanted} that shows what it was taken for; libtvm_ffi_testing.so adds one"
        )));
    };
    // These take the address of the object itself, to which nothing converts.
    let converts = match wanted {
        "arr" => given.type_index == index::LIST,
        "map" => given.type_index == index::DICT,
        _ => false,
    };
    if converts {
        return Err(unsupported(format!(
            "the function of the testing library takes the object of a {wanted}, and no copy of another"
        )));
    }
    show(api, &api.call(&identity, &[given])?)
}

/// `value.dtype`: text and numbers of a data type, with the custom types that the case says.
pub(in crate::conformance) fn dtype(api: &'static Api, args: &Value) -> Result<Reply, Reply> {
    if let Some(types) = args.get("custom") {
        custom::keep(types);
        for (name, body) in [
            ("dtype.get_custom_type_code", custom_code as SafeCall),
            ("dtype.get_custom_type_name", custom_name),
        ] {
            let function = api.function(std::ptr::from_ref(api).cast_mut().cast(), body)?;
            api.set_global(name, &function, true)?;
        }
    }
    match args.get("value") {
        Some(Value::String(_)) => crate::conformance::runtime::ffi::tensors::dtype_parse(api, args),
        _ => crate::conformance::runtime::ffi::tensors::dtype_text(api, args),
    }
}

unsafe extern "C" fn custom_code(
    this: Handle,
    args: *const RawAny,
    _: i32,
    out: *mut RawAny,
) -> i32 {
    // SAFETY: made with an `Api` that is never freed.
    let api: &'static Api = unsafe { &*this.cast() };
    // SAFETY: called with one argument.
    let name = unsafe { *args };
    // SAFETY: an argument of a call lives for the call.
    let name = unsafe { AnyView::from_raw(name) };
    // Releases pass a C string.
    let name = str_bytes(&name).unwrap_or_default();
    let Some(code) = custom::code_of(&String::from_utf8_lossy(name)) else {
        api.raise(c"ValueError", c"no custom type of this name");
        return -1;
    };
    // SAFETY: a place for the result.
    unsafe { out.write(int_arg(code)) };
    0
}

unsafe extern "C" fn custom_name(
    this: Handle,
    args: *const RawAny,
    _: i32,
    out: *mut RawAny,
) -> i32 {
    // SAFETY: made with an `Api` that is never freed.
    let api: &'static Api = unsafe { &*this.cast() };
    // SAFETY: called with one argument.
    let code = unsafe { &*args }.int();
    let name = custom::name_of(code).map(|name| api.text(&name));
    let Some(Ok(name)) = name else {
        api.raise(c"ValueError", c"no custom type of this code");
        return -1;
    };
    // SAFETY: a place for the result, which takes the reference.
    unsafe { out.write(name.raw) };
    std::mem::forget(name);
    0
}

/// `value.device`: text where a device is wanted.
pub(in crate::conformance) fn device(api: &'static Api, args: &Value) -> Result<Reply, Reply> {
    let text = args.get("value").and_then(Value::as_str);
    let text = api.text(text.ok_or_else(|| unsupported("`value` is not a text"))?)?;
    let device = match api.brought("read.device") {
        Some(reader) => show(api, &api.call(&reader, &[text.raw])?)?,
        None => converted(api, &text, "device")?,
    };
    told(device["device"].clone())
}

/// `value.own`.
pub(in crate::conformance) fn own(api: &'static Api, args: &Value) -> Result<Reply, Reply> {
    let value = args.get("value").unwrap_or(&Value::Null);
    let text = |name: &str| value.get(name).and_then(Value::as_str);
    if let Some(text) = text("c_str") {
        let owned = api.own(&text_arg(&c_text(text)))?;
        return told(json!({"value": show(api, &owned)?, "index": owned.raw.type_index}));
    }
    if let Some(text) = text("byte_array") {
        let array = ByteArray::of(text.as_bytes());
        let owned = api.own(&crate::conformance::runtime::ffi::held::bytes_arg(&array))?;
        return told(json!({"value": show(api, &owned)?, "index": owned.raw.type_index}));
    }
    let form = value
        .get("rvalue")
        .ok_or_else(|| unsupported("nothing to own"))?;
    let object = make(api, form)?;
    if object.raw.type_index < index::OBJECT_BEGIN {
        return Err(unsupported("only an object can be moved"));
    }
    let mut slot = object.pointer();
    let left = object.raw;
    // The reference is in the slot now.
    std::mem::forget(object);
    let view = RawAny::of(
        index::RVALUE_REF,
        Payload {
            ptr: (&raw mut slot).cast(),
        },
    );
    let owned = api.own(&view)?;
    // SAFETY: an object that we hold begins with a header.
    let strong = unsafe { &*owned.pointer().cast::<Header>() }.strong_count();
    let said = json!({
        "value": show(api, &owned)?,
        "slot_empty": slot.is_null(),
        "strong": strong,
    });
    if !slot.is_null() {
        drop(Held { api, raw: left });
    }
    told(said)
}

thread_local! {
    static FLAGS: RefCell<Vec<i32>> = const { RefCell::new(Vec::new()) };
}

unsafe extern "C-unwind" fn note_flags(_: *mut Header, flags: i32) {
    FLAGS.with_borrow_mut(|noted| noted.push(flags));
}

/// `value.life`: what the runtime does as the last strong reference of an object of ours goes. Weak ones are counted by
/// whoever holds them, in the header, so only the flags of that one call show.
pub(in crate::conformance) fn life(api: &'static Api, args: &Value) -> Result<Reply, Reply> {
    let weak = args.pointer("/value/weak").and_then(Value::as_u64);
    let object = Header::new(index::OBJECT, note_flags);
    object
        .combined
        .fetch_add(weak.unwrap_or(0) << 32, Ordering::Relaxed);
    FLAGS.take();
    let pointer = std::ptr::from_ref(&object).cast_mut().cast();
    let first = Held {
        api,
        raw: RawAny::of(index::OBJECT, Payload { ptr: pointer }),
    };
    let second = api.share(first.raw);
    drop(first);
    let early = FLAGS.with_borrow(Vec::len);
    drop(second);
    let flags = FLAGS.take();
    if early > 0 {
        return seen(
            "released",
            json!(["before the last reference was gone", flags]),
        );
    }
    // With weak references left, what frees the memory comes later.
    seen("released", json!(flags))
}

/// `value.types`.
pub(in crate::conformance) fn types(api: &'static Api, args: &Value) -> Result<Reply, Reply> {
    static RUN: AtomicU64 = AtomicU64::new(0);
    let run = RUN.fetch_add(1, Ordering::Relaxed);
    let known = |key: &str| {
        key.starts_with("ffi.")
            .then(|| api.type_index(key))
            .flatten()
    };
    let mut own: Vec<(String, i32)> = Vec::new();
    let index_of = |own: &[(String, i32)], key: &str| {
        let ours = own.iter().rev().find(|(name, _)| name == key);
        ours.map(|(_, index)| *index)
            .or_else(|| known(key))
            .ok_or_else(|| unsupported(format!("there is no type {key}")))
    };
    let list = |name: &str| {
        args.pointer(name)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
    };
    for new in list("/value/new") {
        let text = |field: &str| new.get(field).and_then(Value::as_str);
        let number = |field: &str| i32::try_from(new.get(field)?.as_i64()?).ok();
        let key = text("key").unwrap_or_default();
        let parent = index_of(&own, text("parent").unwrap_or("ffi.Object"))?;
        let above = api.type_info(parent).map_or(0, |info| info.type_depth);
        let overflow = new.get("overflow").and_then(Value::as_bool).unwrap_or(true);
        let numbers = [
            number("index").unwrap_or(-1),
            number("depth").unwrap_or(above + 1),
            number("slots").unwrap_or(0),
            i32::from(overflow),
            parent,
        ];
        let given = api.new_type(&format!("tvmspec.case{run}.{key}"), numbers)?;
        own.push((key.to_owned(), given));
    }
    let first = own.first().map_or(0, |(_, index)| *index);
    let given: Vec<i32> = own.iter().map(|(_, index)| index - first).collect();
    let mut asked = Vec::new();
    for pair in list("/value/ask") {
        let side = |at: usize| index_of(&own, pair.get(at).and_then(Value::as_str).unwrap_or(""));
        asked.push(is_one(api, side(0)?, side(1)?));
    }
    told(json!({"given": given, "is": asked}))
}

/// Whether the table of ancestors says that a type is one of another.
fn is_one(api: &'static Api, own: i32, ancestor: i32) -> bool {
    let (Some(own), Some(ancestor)) = (api.type_info(own), api.type_info(ancestor)) else {
        return false;
    };
    if own.type_index == ancestor.type_index {
        return true;
    }
    if own.type_depth <= ancestor.type_depth {
        return false;
    }
    // SAFETY: there are as many ancestors as the type is deep, and types stay.
    let above = unsafe { *own.ancestors.wrapping_offset(ancestor.type_depth as isize) };
    // SAFETY: an ancestor is a type, and types stay.
    unsafe { (*above).type_index == ancestor.type_index }
}
