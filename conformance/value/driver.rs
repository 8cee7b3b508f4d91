//! Operations of chapter value, performed through the C interface of a runtime: cells, ownership, lifetimes, types, texts.

use super::convert::converted;
use super::reflection;
use crate::conformance::runtime::case_numbers::{number_of, number_or};
use crate::conformance::runtime::ffi::api::{FfiApi, FfiCallback};
use crate::conformance::runtime::ffi::forms::{make, show, type_key};
use crate::conformance::runtime::ffi::owned::{OwnedValue, int_arg, text_arg};
use crate::conformance::runtime::ffi::{
    Reply, accepted, c_text, lock_process_state, unsupported, value_of, view_reply,
};
use crate::conformance::value::custom;
use crate::value::header::{self, Header};
use crate::value::{AnyPayload, AnyView, ByteArray, BytesObj, RawAny, index, str_bytes};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};

/// Performs `value.cell`: shows the cell of a value that the runtime itself has made.
///
/// A number or a device is made from a JSON graph (OBJ-18). If C code passed it in, the operation would show the bytes of the suite. All 16
/// bytes of the cell are compared (VAL-01, VAL-02), for an object also its header (VAL-04), and for a text the place of its bytes (VAL-06).
pub(in crate::conformance) fn cell(api: &'static FfiApi, args: &Value) -> Result<Reply, Reply> {
    let form = args.get("value").unwrap_or(&Value::Null);
    let held = match graph_node_for(form) {
        Some(node) => {
            let graph = json!({"root_index": 0, "nodes": [node]}).to_string();
            api.call_global("ffi.FromJSONGraphString", &[api.text(&graph)?.raw])?
        }
        None => make(api, form)?,
    };
    let raw = held.raw;
    let mut members = json!({
        "type": type_key(api, raw.type_index),
        "index": raw.type_index,
        "aux": raw.aux,
    });
    if raw.type_index < index::OBJECT_BEGIN {
        members["payload"] = json!(format!("{:016x}", raw.bits().swap_bytes()));
        return accepted(members);
    }
    // SAFETY: an object begins with a header, and `held` holds the object.
    let header = unsafe { &*held.pointer().cast::<Header>() };
    members["header"] = json!({
        "strong": header.strong_count(),
        "weak": header.weak_count(),
        "index": header.type_index,
        "padding": header.padding,
    });
    if matches!(raw.type_index, index::STR | index::BYTES) {
        // SAFETY: the tag says that address and length follow the header.
        let ByteArray { data, size } = unsafe { (*held.pointer().cast::<BytesObj>()).cell };
        // VAL-06: this byte is read although the size does not include it, because frontends pass the address on as a C string.
        // SAFETY: a string has one more byte after its text.
        let end = unsafe { *data.wrapping_add(size) };
        let offset = data as usize - held.pointer() as usize;
        members["string"] = json!({"offset": offset, "size": size, "end": end});
    }
    accepted(members)
}

/// Returns the node of a JSON graph from which a runtime makes the value. Returns `None` if the interface has a function for the value.
fn graph_node_for(form: &Value) -> Option<Value> {
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

/// Performs `value.dtype`: converts text and numbers of a data type, with the custom types that the case states.
///
/// If a case has such types, the two functions of VAL-21 are registered over any functions that the process has under these names.
pub(in crate::conformance) fn dtype(api: &'static FfiApi, args: &Value) -> Result<Reply, Reply> {
    // Custom types belong to the process, so two cases at the same time would see each other's types.
    let _alone = lock_process_state();
    let types = args.get("custom");
    custom::keep(types.unwrap_or(&Value::Null));
    if types.is_some() {
        for (name, body) in [
            ("dtype.get_custom_type_code", custom_code as FfiCallback),
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

/// Returns the code of a custom type by its name (VAL-21), as the function that a compiler in the process registers.
unsafe extern "C" fn custom_code(
    this: *mut c_void,
    args: *const RawAny,
    _: i32,
    out: *mut RawAny,
) -> i32 {
    // SAFETY: the function was made with an `FfiApi` that is never freed.
    let api: &'static FfiApi = unsafe { &*this.cast() };
    // SAFETY: the function is called with one argument.
    let name = unsafe { *args };
    // SAFETY: an argument of a call lives for the call.
    let name = unsafe { AnyView::from_raw(name) };
    // Releases pass the name as a C string.
    let name = str_bytes(&name).unwrap_or_default();
    let Some(code) = custom::code_of(&String::from_utf8_lossy(name)) else {
        api.raise(c"ValueError", c"no custom type of this name");
        return -1;
    };
    // SAFETY: `out` is a place for the result.
    unsafe { out.write(int_arg(code)) };
    0
}

/// Returns the name of a custom type by its code (VAL-21).
unsafe extern "C" fn custom_name(
    this: *mut c_void,
    args: *const RawAny,
    _: i32,
    out: *mut RawAny,
) -> i32 {
    // SAFETY: the function was made with an `FfiApi` that is never freed.
    let api: &'static FfiApi = unsafe { &*this.cast() };
    // SAFETY: the function is called with one argument.
    let code = unsafe { &*args }.int();
    let name = custom::name_of(code).map(|name| api.text(&name));
    let Some(Ok(name)) = name else {
        api.raise(c"ValueError", c"no custom type of this code");
        return -1;
    };
    // SAFETY: `out` is a place for the result, which takes the reference.
    unsafe { out.write(name.raw) };
    std::mem::forget(name);
    0
}

/// Performs `value.device`: reads a text as a device.
///
/// VAL-13: a foreign runtime has no function that reads a device, so the conversion of an argument shows it.
pub(in crate::conformance) fn device(api: &'static FfiApi, args: &Value) -> Result<Reply, Reply> {
    let text = args.get("value").and_then(Value::as_str);
    let text = api.text(text.ok_or_else(|| unsupported("`value` is not a text"))?)?;
    let device = match api.suite_function("read.device") {
        Some(reader) => show(api, &api.call(&reader, &[text.raw])?)?,
        None => converted(api, &text, "device")?,
    };
    accepted(device["device"].clone())
}

/// Performs `value.own`.
///
/// VAL-09: a C string and a byte array are copied. An r-value reference gives up its object: afterwards the slot is empty and the count is
/// unchanged. `{"rvalue": null}` is a slot that is empty before the call.
pub(in crate::conformance) fn own(api: &'static FfiApi, args: &Value) -> Result<Reply, Reply> {
    let value = args.get("value").unwrap_or(&Value::Null);
    let text = |name: &str| value.get(name).and_then(Value::as_str);
    if let Some(text) = text("c_str") {
        let owned = api.own(&text_arg(&c_text(text)))?;
        return accepted(json!({"value": show(api, &owned)?, "index": owned.raw.type_index}));
    }
    if let Some(text) = text("byte_array") {
        let array = ByteArray::of(text.as_bytes());
        let owned = api.own(&crate::conformance::runtime::ffi::owned::bytes_arg(&array))?;
        return accepted(json!({"value": show(api, &owned)?, "index": owned.raw.type_index}));
    }
    let form = value
        .get("rvalue")
        .ok_or_else(|| unsupported("nothing to own"))?;
    if form.is_null() {
        // The slot is empty before the call.
        let mut slot: *mut c_void = std::ptr::null_mut();
        let ptr = (&raw mut slot).cast();
        let owned = api.own(&RawAny::of(index::RVALUE_REF, AnyPayload { ptr }))?;
        return accepted(json!({"value": show(api, &owned)?, "index": owned.raw.type_index}));
    }
    let object = make(api, form)?;
    if object.raw.type_index < index::OBJECT_BEGIN {
        return Err(unsupported("only an object can be moved"));
    }
    let mut slot = object.pointer();
    let left = object.raw;
    // From here on the slot owns the reference.
    std::mem::forget(object);
    let view = RawAny::of(
        index::RVALUE_REF,
        AnyPayload {
            ptr: (&raw mut slot).cast(),
        },
    );
    let owned = api.own(&view)?;
    // SAFETY: an object begins with a header, and `owned` holds the object.
    let strong = unsafe { &*owned.pointer().cast::<Header>() }.strong_count();
    let members = json!({
        "value": show(api, &owned)?,
        "slot_empty": slot.is_null(),
        "strong": strong,
    });
    if !slot.is_null() {
        drop(OwnedValue { api, raw: left });
    }
    accepted(members)
}

thread_local! {
    static FLAGS: RefCell<Vec<i32>> = const { RefCell::new(Vec::new()) };
}

/// Notes the flags of VAL-05. This deleter of the object of `value.life` frees nothing, because the object is on the stack.
unsafe extern "C-unwind" fn note_flags(_: *mut Header, flags: i32) {
    FLAGS.with_borrow_mut(|noted| noted.push(flags));
}

/// Performs `value.life`: records how the runtime drops the last strong reference of an object of the suite.
///
/// Weak references are counted by their holders in the header, so only the flags of that one call are visible. This crate's own runtime is
/// tested in full, by functions that it provides. Upgrading is inlined in C++, and no function of the interface does it.
pub(in crate::conformance) fn life(api: &'static FfiApi, args: &Value) -> Result<Reply, Reply> {
    let weak: u64 = number_or(value_of(args), "weak", 0)?;
    let object = Header::new(index::OBJECT, note_flags);
    let ptr = std::ptr::from_ref(&object).cast_mut().cast();
    let own = |step: &str| api.suite_function(&format!("weak.{step}"));
    let own = own("add").zip(own("upgrade")).zip(own("drop"));
    let address = [RawAny::of(index::OPAQUE, AnyPayload { ptr })];
    match &own {
        Some(((add, _), _)) => {
            for _ in 0..weak {
                api.call(add, &address)?;
            }
        }
        None => {
            for _ in 0..weak {
                // SAFETY: the object belongs to this function and lives until its end.
                unsafe { header::inc_weak(ptr.cast()) };
            }
        }
    }
    FLAGS.take();
    let mut upgraded = Vec::new();
    if args.pointer("/value/early").and_then(Value::as_bool) == Some(true) {
        let Some(((_, upgrade), _)) = &own else {
            return Err(unsupported("no C function makes a weak reference strong"));
        };
        upgraded.push(api.call(upgrade, &address)?.raw.int() != 0);
    }
    let first = OwnedValue {
        api,
        raw: RawAny::of(index::OBJECT, AnyPayload { ptr }),
    };
    let second = api.share(first.raw);
    drop(first);
    let early = FLAGS.with_borrow(Vec::len);
    drop(second);
    if early > 0 {
        let flags = json!(["before the last reference was gone", FLAGS.take()]);
        return view_reply("released", flags);
    }
    // If weak references remain, the memory is freed later.
    let Some(((_, upgrade), release)) = own else {
        return view_reply("released", json!(FLAGS.take()));
    };
    for _ in 0..weak {
        upgraded.push(api.call(&upgrade, &address)?.raw.int() != 0);
        api.call(&release, &address)?;
    }
    accepted(json!({"flags": FLAGS.take(), "upgraded": upgraded}))
}

/// Performs `value.types`.
///
/// The operation makes new types with parents and reserved indices (VAL-14), asks whether one type is another (VAL-16), and shows their
/// reflection data. Indices count from the first new type, because the process has other types. Types are never removed, so each run has a
/// unique prefix.
pub(in crate::conformance) fn types(api: &'static FfiApi, args: &Value) -> Result<Reply, Reply> {
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
        let key = text("key").unwrap_or_default();
        let parent = index_of(&own, text("parent").unwrap_or("ffi.Object"))?;
        let above = api.type_info(parent).map_or(0, |info| info.type_depth);
        let overflow = new.get("overflow").and_then(Value::as_bool).unwrap_or(true);
        let numbers = [
            number_or(new, "index", -1)?,
            number_or(new, "depth", above + 1)?,
            number_or(new, "slots", 0)?,
            i32::from(overflow),
            parent,
        ];
        let indices = api.new_type(&format!("tvmspec.case{run}.{key}"), numbers)?;
        own.push((key.to_owned(), indices));
    }
    let first = own.first().map_or(0, |(_, index)| *index);
    let indices: Vec<i32> = own.iter().map(|(_, index)| index - first).collect();
    let mut answers = Vec::new();
    for pair in list("/value/ask") {
        let side = |at: usize| index_of(&own, pair.get(at).and_then(Value::as_str).unwrap_or(""));
        answers.push(is_derived_from(api, side(0)?, side(1)?));
    }
    let mut members = json!({"indices": indices, "is": answers});
    let mut about = Vec::new();
    for step in list("/value/about") {
        let text = |at: usize| step.get(at).and_then(Value::as_str);
        let type_index = match text(1) {
            Some(key) => index_of(&own, key)?,
            // The step is not about a type by its key: the script states the index itself.
            None => number_of(step.get(1))?,
        };
        let what = text(0).unwrap_or_default();
        about.push(reflection::step(api, type_index, what, step)?);
    }
    if !about.is_empty() {
        members["about"] = json!(about);
    }
    accepted(members)
}

/// Returns whether the table of ancestors says that a type is derived from another or equal to it.
///
/// VAL-16: the table is read as inlined C++ code reads it, by the depth of the ancestor. No call would show a wrong depth.
fn is_derived_from(api: &'static FfiApi, own: i32, ancestor: i32) -> bool {
    let (Some(own), Some(ancestor)) = (api.type_info(own), api.type_info(ancestor)) else {
        return false;
    };
    if own.type_index == ancestor.type_index {
        return true;
    }
    if own.type_depth <= ancestor.type_depth {
        return false;
    }
    // SAFETY: the number of ancestors is the depth of the type, and types are never freed.
    let above = unsafe { *own.ancestors.wrapping_offset(ancestor.type_depth as isize) };
    // SAFETY: an ancestor is a type, and types are never freed.
    unsafe { (*above).type_index == ancestor.type_index }
}
