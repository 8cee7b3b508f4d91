//! Operations of the chapter value: cells, conversions, reference counts, types, texts, the old value model.

use super::custom;
use crate::conformance::op::{Answer, Op, Refusal};
use crate::function::{Error, Function, registry};
use crate::object::form::{from_json, to_json};
use crate::release::Release;
use crate::rule::{Findings, Violation};
use crate::value::header::{self, Header};
use crate::value::legacy::{self, TVMValue};
use crate::value::types::{self, NewType};
use crate::value::{
    Any, AnyView, Argument, ByteArray, BytesObj, DLDataType, DLDevice, ObjectRef, Payload, RawAny,
    cast, device_from_text, dtype_from_text, dtype_to_text, index,
};
use serde_json::{Value, json};
use std::ffi::CString;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

/// What a case of this chapter can ask.
pub(crate) const OPS: &[Op] = &[
    Op {
        name: "value.cell",
        help: "value: the cell of a value: type key and index, auxiliary word, payload; of an object its header",
        run: cell,
    },
    Op {
        name: "value.convert",
        help: "value, to (int, int32, bool, ...; spec/value.md lists them): the result of the conversion",
        run: convert,
    },
    Op {
        name: "value.own",
        help: "value {c_str} or {byte_array} or {rvalue}: the owned value, and whether the slot is empty after",
        run: own,
    },
    Op {
        name: "value.life",
        help: "value {weak}: the flags with which the deleter is called as references go",
        run: life,
    },
    Op {
        name: "value.types",
        help: "value {new: [{key, parent, slots, overflow, depth}], ask: [[key, ancestor]]}: indices from the first one, and answers",
        run: type_table,
    },
    Op {
        name: "value.dtype",
        help: "value, custom {name: code} (optional: the custom types of the process): text to [code, bits, lanes], or the other way",
        run: dtype,
    },
    Op {
        name: "value.device",
        help: "value: text to [type, number]",
        run: device,
    },
    Op {
        name: "value.legacy",
        help: "value {code, hex}: the value that 8 bytes and a type code of 0.2 to 0.20 stand for",
        run: from_legacy,
    },
    Op {
        name: "value.legacy_code",
        help: "value, release: the type code under which a value is passed up to 0.20",
        run: to_legacy,
    },
];

fn answer(value: Value) -> Result<Answer, Refusal> {
    Ok(Answer::new(value, Findings::default()))
}

fn value_of(args: &Value) -> Result<&Value, Refusal> {
    args.get("value")
        .ok_or_else(|| Refusal::Unsupported("the request has no value".into()))
}

fn any_of(args: &Value) -> Result<Any, Refusal> {
    from_json(value_of(args)?).map_err(Refusal::Unsupported)
}

fn cell(args: &Value) -> Result<Answer, Refusal> {
    let value = any_of(args)?;
    let raw = value.as_raw();
    let mut said = json!({
        "type": types::key_of(raw.type_index),
        "index": raw.type_index,
        "aux": raw.aux,
    });
    match value.as_object() {
        None => said["payload"] = json!(format!("{:016x}", raw.bits().swap_bytes())),
        Some(object) => {
            let header = object.header();
            said["header"] = json!({
                "strong": header.strong_count(),
                "weak": header.weak_count(),
                "index": header.type_index,
                "padding": header.padding,
            });
            if matches!(raw.type_index, index::STR | index::BYTES) {
                let bytes = raw.ptr().cast::<BytesObj>();
                // SAFETY: the index is that of a heap string, which lives while `value` does.
                let cell = unsafe { (*bytes).cell };
                let (offset, size) = (cell.data as usize - bytes as usize, cell.size);
                // SAFETY: a heap string made here has one more byte behind its data.
                let end = unsafe { *cell.data.wrapping_add(size) };
                said["string"] = json!({"offset": offset, "size": size, "end": end});
            }
        }
    }
    answer(said)
}

fn convert(args: &Value) -> Result<Answer, Refusal> {
    fn to<T: Argument>(view: AnyView<'_>) -> Result<Any, Violation>
    where
        Any: From<T>,
    {
        cast::<T>(view).map(Any::from)
    }
    let value = any_of(args)?;
    let view = value.view();
    let wanted = args.get("to").and_then(Value::as_str).unwrap_or_default();
    let converted = match wanted {
        "int" => to::<i64>(view)?,
        "int32" => to::<i32>(view)?,
        "bool" => to::<bool>(view)?,
        "float" => to::<f64>(view)?,
        "pointer" => {
            let pointer = cast::<*mut std::ffi::c_void>(view)?;
            // SAFETY: a case looks at the pointer and does not follow it.
            unsafe { Any::handle(pointer) }
        }
        "str" => to::<crate::value::Str>(view)?,
        "bytes" => to::<crate::value::Bytes>(view)?,
        "dtype" => to::<DLDataType>(view)?,
        "device" => to::<DLDevice>(view)?,
        "object" => to::<ObjectRef>(view)?,
        "shape" => to::<crate::object::Shape>(view)?,
        "array" => to::<crate::object::Array>(view)?,
        "list" => to::<crate::object::List>(view)?,
        "map" => to::<crate::object::Map>(view)?,
        "function" => to::<crate::function::Function>(view)?,
        "optional-int" => to::<Option<i64>>(view)?,
        other => return Err(Refusal::Unsupported(format!("there is no type {other}"))),
    };
    answer(to_json(converted.view()))
}

fn own(args: &Value) -> Result<Answer, Refusal> {
    let value = value_of(args)?;
    let text = |name: &str| value.get(name).and_then(Value::as_str);
    if let Some(text) = text("c_str") {
        let text = CString::new(text).map_err(|wrong| Refusal::Unsupported(wrong.to_string()))?;
        let owned = AnyView::c_str(&text).to_any();
        return answer(json!({"value": to_json(owned.view()), "index": owned.type_index()}));
    }
    if let Some(text) = text("byte_array") {
        let array = ByteArray::of(text.as_bytes());
        let ptr = (&raw const array).cast_mut().cast();
        // SAFETY: the array and its bytes live for the call.
        let view = unsafe { AnyView::from_raw(RawAny::of(index::BYTE_ARRAY, Payload { ptr })) };
        let owned = view.to_any();
        return answer(json!({"value": to_json(owned.view()), "index": owned.type_index()}));
    }
    let form = value
        .get("rvalue")
        .ok_or_else(|| Refusal::Unsupported("nothing to own".into()))?;
    let object = from_json(form)
        .map_err(Refusal::Unsupported)?
        .into_object()
        .map_err(|_| Refusal::Unsupported("only an object can be moved".into()))?;
    let mut slot: *mut Header = object.into_raw();
    let ptr = (&raw mut slot).cast();
    // SAFETY: the slot lives for the call and holds an owned reference.
    let owned =
        unsafe { AnyView::from_raw(RawAny::of(index::RVALUE_REF, Payload { ptr })) }.to_any();
    let strong = owned
        .as_object()
        .map(|object| object.header().strong_count());
    // SAFETY: what is left in the slot is ours.
    let left = unsafe { ObjectRef::from_nullable(slot) };
    answer(json!({
        "value": to_json(owned.view()),
        "slot_empty": left.is_none(),
        "strong": strong,
    }))
}

static FLAGS: Mutex<Vec<i32>> = Mutex::new(Vec::new());
static LIFE: Mutex<()> = Mutex::new(());

unsafe extern "C-unwind" fn log_deletion(object: *mut Header, flags: i32) {
    if let Ok(mut log) = FLAGS.lock() {
        log.push(flags);
    }
    if flags & header::DELETE_WEAK != 0 {
        // SAFETY: made as a box in `life`, and nothing refers to it.
        drop(unsafe { Box::from_raw(object) });
    }
}

fn life(args: &Value) -> Result<Answer, Refusal> {
    let weak = value_of(args)?
        .get("weak")
        .and_then(Value::as_u64)
        .unwrap_or(0);
    let _one = LIFE.lock();
    if let Ok(mut log) = FLAGS.lock() {
        log.clear();
    }
    let object = Box::into_raw(Box::new(Header::new(index::OBJECT, log_deletion)));
    let mut upgraded = Vec::new();
    // SAFETY: the object is fresh.
    unsafe { header::inc_ref(object) };
    for _ in 0..weak {
        // SAFETY: two strong references are ours, so the object is alive.
        unsafe { header::inc_weak(object) };
    }
    // SAFETY: the reference added above.
    unsafe { header::dec_ref(object) };
    // SAFETY: the reference of a fresh object.
    unsafe { header::dec_ref(object) };
    for _ in 0..weak {
        // SAFETY: a weak reference of ours is left.
        upgraded.push(unsafe { header::upgrade(object) }.is_some());
        // SAFETY: one of the weak references added above.
        unsafe { header::dec_weak(object) };
    }
    let flags = FLAGS.lock().map(|log| log.clone()).unwrap_or_default();
    answer(json!({"flags": flags, "upgraded": upgraded}))
}

fn type_table(args: &Value) -> Result<Answer, Refusal> {
    static RUN: AtomicU32 = AtomicU32::new(0);
    let run = RUN.fetch_add(1, Ordering::Relaxed);
    let value = value_of(args)?;
    let name = |key: &str| match types::index_of(key) {
        Some(_) => key.to_owned(),
        None => format!("case{run}.{key}"),
    };
    let index_of = |key: &str| types::index_of(&name(key)).unwrap_or(-1);
    let mut given = Vec::new();
    for new in value
        .get("new")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        let text = |field: &str| new.get(field).and_then(Value::as_str);
        let number = |field: &str| new.get(field).and_then(Value::as_i64).map(|n| n as i32);
        let key = name(text("key").unwrap_or_default());
        given.push(types::get_or_alloc(NewType {
            key: &key,
            static_index: number("index").unwrap_or(-1),
            depth: number("depth"),
            child_slots: number("slots").unwrap_or(0),
            can_overflow: new.get("overflow").and_then(Value::as_bool).unwrap_or(true),
            parent: index_of(text("parent").unwrap_or("ffi.Object")),
        })?);
    }
    let first = given.first().copied().unwrap_or(0);
    let asked: Vec<bool> = value
        .get("ask")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|pair| {
            let (own, ancestor) = (pair.get(0)?.as_str()?, pair.get(1)?.as_str()?);
            Some(types::is_instance(index_of(own), index_of(ancestor)))
        })
        .collect();
    let given: Vec<i32> = given.into_iter().map(|index| index - first).collect();
    answer(json!({"given": given, "is": asked}))
}

fn dtype(args: &Value) -> Result<Answer, Refusal> {
    let value = value_of(args)?;
    if let Some(types) = args.get("custom") {
        custom::keep(types);
        let unknown =
            |what: &str| Error::new("ValueError", format!("no custom type of this {what}"));
        let code_of = Function::named(None, move |name: String| {
            custom::code_of(&name).ok_or_else(|| unknown("name"))
        });
        let name_of = Function::named(None, move |code: i64| {
            custom::name_of(code).ok_or_else(|| unknown("code"))
        });
        for (name, function) in [
            ("dtype.get_custom_type_code", code_of),
            ("dtype.get_custom_type_name", name_of),
        ] {
            registry::register(name, function, true)
                .map_err(|error| Refusal::Unsupported(error.to_string()))?;
        }
    }
    if let Some(text) = value.as_str() {
        let DLDataType { code, bits, lanes } = dtype_from_text(text)?;
        return answer(json!([code, bits, lanes]));
    }
    let part = |at: usize| value.get(at).and_then(Value::as_u64).unwrap_or(0);
    let dtype = DLDataType {
        code: part(0) as u8,
        bits: part(1) as u8,
        lanes: part(2) as u16,
    };
    answer(json!(dtype_to_text(dtype)?))
}

fn device(args: &Value) -> Result<Answer, Refusal> {
    let text = value_of(args)?.as_str().unwrap_or_default();
    let device = device_from_text(text)?;
    answer(json!([device.device_type, device.device_id]))
}

fn release(args: &Value) -> Result<Release, Refusal> {
    let text = args.get("release").and_then(Value::as_str);
    let text = text.ok_or_else(|| Refusal::Unsupported("the request has no release".into()))?;
    text.parse().map_err(Refusal::Unsupported)
}

fn from_legacy(args: &Value) -> Result<Answer, Refusal> {
    let value = value_of(args)?;
    let code = value.get("code").and_then(Value::as_i64).unwrap_or(0) as i32;
    let hex = value.get("hex").and_then(Value::as_str).unwrap_or("0");
    let bits = u64::from_str_radix(hex, 16)
        .map_err(|wrong| Refusal::Unsupported(wrong.to_string()))?
        .swap_bytes();
    let value = TVMValue {
        v_int64: bits as i64,
    };
    // SAFETY: cases name only codes whose value is in the eight bytes, or that are refused unread.
    let view = unsafe { legacy::view_of(value, code) }?;
    let key = types::key_of(view.type_index());
    answer(json!({"type": key, "value": to_json(view)}))
}

fn to_legacy(args: &Value) -> Result<Answer, Refusal> {
    let value = any_of(args)?;
    let release = release(args)?;
    let (_, code) = legacy::argument_of(&value.view(), release)?;
    answer(json!({"code": code, "name": legacy::code_name(code, release)}))
}
