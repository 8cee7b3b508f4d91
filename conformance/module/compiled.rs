//! The runtime as compiled code sees it. The runtime loads libraries whose symbols are addresses of this process, and calls these through
//! them: `module.symbols`, `module.call`, `module.life`.

use super::backend;
use super::library_file::{CONTEXT, LibraryFile, address, lookup};
use crate::conformance::runtime::RawHandle;
use crate::conformance::runtime::case_library::SymbolContent;
use crate::conformance::runtime::ffi::api::FfiApi;
use crate::conformance::runtime::ffi::forms::make;
use crate::conformance::runtime::ffi::owned::{OwnedValue, bytes_arg};
use crate::conformance::runtime::ffi::{
    NUMBERS, Reply, accepted, c_text, tensors, unsupported, view_reply,
};
use crate::module::exports;
use crate::module::{Convention, Dialect};
use crate::release::Layout;
use crate::value::dlpack::DLTensor;
use crate::value::legacy::{TVMValue, code};
use crate::value::{ByteArray, RawAny, index};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::{Value, json};
use std::cell::{Cell, RefCell};
use std::ffi::{CStr, CString, c_char, c_int, c_void};

/// Returns the texts of a list; other values in it are skipped.
pub(super) fn texts(value: Option<&Value>) -> impl Iterator<Item = &str> {
    let list = value.and_then(Value::as_array).into_iter().flatten();
    list.filter_map(Value::as_str)
}

/// Runs `module.symbols`: returns the function that is found under a name, and the slots that the runtime filled.
pub(super) fn symbols(api: &'static FfiApi, args: &Value) -> Result<Reply, Reply> {
    let value = args.get("value").unwrap_or(&Value::Null);
    let exports: Vec<&str> = texts(value.get("exports")).collect();
    let older = |slot: &str| !slot.starts_with("__TVMFFI") && !slot.starts_with("__TVMBackend");
    if texts(value.get("slots")).any(older) {
        return Err(unsupported(
            "these slots make a library of before 0.21, which this adapter does not write",
        ));
    }
    if exports.len() > NUMBERS.len() {
        return Err(unsupported(
            "more symbols than there are functions to tell them apart",
        ));
    }
    if let Some(name) = texts(value.get("needs")).find(|name| exports::find(name).is_none()) {
        return Err(unsupported(format!(
            "this adapter writes no library that needs `{name}` from outside"
        )));
    }
    // Slots are filled with functions that the runtime registers, which is another library than the interface.
    if texts(value.get("slots")).next().is_some() && !backend::is_there(api) {
        return Err(unsupported(
            "none of the libraries is the runtime that compiled code calls",
        ));
    }
    let numbered = exports.iter().zip(NUMBERS);
    let mut symbols: Vec<(&str, SymbolContent)> = numbered
        .map(|(name, body)| (*name, address(body)))
        .collect();
    symbols.extend(texts(value.get("slots")).map(|name| (name, SymbolContent::Slot)));
    symbols.push((CONTEXT, SymbolContent::Slot));
    let written = LibraryFile::from_symbols(&symbols, &[])?;
    let module = written.module(api)?;
    let name = value.get("name").and_then(Value::as_str).unwrap_or("f");
    let found = lookup(api, &module, name, false)?;
    let found = match found.raw.type_index {
        index::NONE => None,
        _ => exports.get(api.call(&found, &[])?.raw.int() as usize),
    };
    let mut filled = Vec::new();
    for slot in texts(value.get("slots")) {
        if !written.slot(slot)?.is_null() {
            filled.push(slot);
        }
    }
    filled.sort_unstable();
    view_reply("function", json!({"function": found, "slots": filled}))
}

thread_local! {
    /// Arguments of the compiled function of the case.
    static SEEN: RefCell<Vec<Value>> = const { RefCell::new(Vec::new()) };
    /// Set if the data that an argument points to is also read.
    static READS: Cell<bool> = const { Cell::new(false) };
}

/// Records an argument of this type or code, and with [`READS`] also its content.
fn note(kind: i32, content: impl FnOnce() -> Value) {
    let seen = if READS.get() {
        json!([kind, content()])
    } else {
        json!(kind)
    };
    SEEN.with_borrow_mut(|all| all.push(seen));
}

/// Returns the content at `pointer` in the form of its type or code: text, bytes, or the extents of a tensor.
///
/// # Safety
///
/// `pointer` must point to data of the form `form`.
unsafe fn content_of(form: PointeeForm, pointer: *const c_void) -> Value {
    match form {
        PointeeForm::Text => {
            // SAFETY: a C string, by this contract.
            let text = unsafe { CStr::from_ptr(pointer.cast()) };
            json!(text.to_string_lossy())
        }
        PointeeForm::Bytes => {
            // SAFETY: a byte array, by this contract.
            let array = unsafe { &*pointer.cast::<ByteArray>() };
            // SAFETY: the array states the address and number of its bytes.
            let bytes = unsafe { std::slice::from_raw_parts(array.data.cast::<u8>(), array.size) };
            json!({"bytes": BASE64_STANDARD.encode(bytes)})
        }
        PointeeForm::Tensor => {
            // SAFETY: the description of a tensor, by this contract.
            let tensor = unsafe { &*pointer.cast::<DLTensor>() };
            // SAFETY: a tensor has as many extents as dimensions.
            json!({"tensor": unsafe { tensor.shape() }})
        }
    }
}

/// The form of the data that an argument points to.
enum PointeeForm {
    /// A text with a terminating zero.
    Text,
    /// A byte array: length and address.
    Bytes,
    /// The description of a tensor.
    Tensor,
}

/// Records the type of each argument, as a compiled function of the newest convention.
unsafe extern "C" fn note_types(
    _: RawHandle,
    args: *const RawAny,
    count: i32,
    _: *mut RawAny,
) -> i32 {
    for at in 0..usize::try_from(count).unwrap_or(0) {
        // SAFETY: there are that many arguments.
        let raw = unsafe { *args.wrapping_add(at) };
        note(raw.type_index, || {
            let form = match raw.type_index {
                index::RAW_STR => PointeeForm::Text,
                index::BYTE_ARRAY => PointeeForm::Bytes,
                index::DLTENSOR_PTR => PointeeForm::Tensor,
                index::INT | index::BOOL => return json!(raw.int()),
                _ => return Value::Null,
            };
            // SAFETY: a cell of this type points to data of this form.
            unsafe { content_of(form, raw.ptr()) }
        });
    }
    0
}

/// Records the code of each argument, as a compiled function of the convention up to 0.20.
unsafe extern "C" fn note_codes(
    values: *const TVMValue,
    codes: *const c_int,
    count: c_int,
    _: *mut TVMValue,
    _: *mut c_int,
    _: RawHandle,
) -> c_int {
    for at in 0..usize::try_from(count).unwrap_or(0) {
        // SAFETY: there are that many codes.
        let code = unsafe { *codes.wrapping_add(at) };
        // SAFETY: there are that many values.
        let value = unsafe { *values.wrapping_add(at) };
        // SAFETY: all eight bytes are initialized, so that they may be read as an address.
        let pointer = unsafe { value.v_handle };
        note(code, || {
            let form = match code {
                code::STR => PointeeForm::Text,
                code::BYTES => PointeeForm::Bytes,
                code::DLTENSOR => PointeeForm::Tensor,
                code::INT => return json!(pointer as i64),
                _ => return Value::Null,
            };
            // SAFETY: a value of this code points to data of this form.
            unsafe { content_of(form, pointer) }
        });
    }
    0
}

thread_local! {
    /// Text that the function of the case leaves as its error.
    static LEFT: RefCell<CString> = RefCell::default();
}

/// Fails, as a compiled function of the convention up to 0.20. Passes the text of the case to the runtime's function for errors.
unsafe extern "C" fn fail_codes(
    _: *const TVMValue,
    _: *const c_int,
    _: c_int,
    _: *mut TVMValue,
    _: *mut c_int,
    _: RawHandle,
) -> c_int {
    type Leave = unsafe extern "C" fn(*const c_char);
    let leave = LEAVE.get();
    if !leave.is_null() {
        // SAFETY: `call` stored the function of this name, which has this type.
        let leave = unsafe { std::mem::transmute::<RawHandle, Leave>(leave) };
        // SAFETY: the function copies the text.
        LEFT.with_borrow(|text| unsafe { leave(text.as_ptr()) });
    }
    -1
}

thread_local! {
    /// `TVMAPISetLastError` of the runtime; null if the function must leave no text.
    static LEAVE: Cell<RawHandle> = const { Cell::new(std::ptr::null_mut()) };
}

/// Returns the layout of a case, which the runtime must be able to load.
fn layout(api: &'static FfiApi, args: &Value) -> Result<Layout, Reply> {
    let named = args.pointer("/value/layout").and_then(Value::as_str);
    let layout: Layout = named.unwrap_or("0.22").parse().map_err(unsupported)?;
    if api.runtime.loads(layout) {
        Ok(layout)
    } else {
        Err(unsupported(format!(
            "this runtime loads no library of {layout}"
        )))
    }
}

/// Runs `module.call`: returns the types, or codes, with which a compiled function is called.
pub(super) fn call(api: &'static FfiApi, args: &Value) -> Result<Reply, Reply> {
    let value = args.get("value").unwrap_or(&Value::Null);
    let names = Dialect::of(layout(api, args)?);
    let fails = value.get("fails").and_then(Value::as_str);
    let body = match (names.convention, fails) {
        (Convention::Legacy, None) => SymbolContent::Jump(note_codes as *const () as usize),
        (Convention::Legacy, Some(text)) => {
            LEFT.set(c_text(text));
            let leave = api.runtime.symbol("TVMAPISetLastError");
            LEAVE.set(
                leave
                    .filter(|_| !text.is_empty())
                    .unwrap_or(std::ptr::null_mut()),
            );
            SymbolContent::Jump(fail_codes as *const () as usize)
        }
        _ => address(note_types),
    };
    // MOD-03: compilers write the prefix of the layout; the runtime looks for `f`.
    let name = format!("{}f", names.prefix);
    let written = LibraryFile::from_symbols(
        &[(&name, body), (names.context.text(), SymbolContent::Slot)],
        &[],
    )?;
    let function = lookup(api, &written.module(api)?, "f", false)?;
    let forms = value.get("args").and_then(Value::as_array);
    let passed = forms.into_iter().flatten();
    let passed: Vec<FfiArgument> = passed
        .map(|form| FfiArgument::of(api, form))
        .collect::<Result<_, Reply>>()?;
    let cells: Vec<RawAny> = passed.iter().map(FfiArgument::raw).collect();
    SEEN.take();
    READS.set(value.get("reads") == Some(&Value::Bool(true)));
    match (api.call(&function, &cells), fails) {
        // An error with a rule is a rejection, even if the function of the case is meant to fail.
        (Err(raised), Some(_)) if raised.broken.is_none() => {
            accepted(json!({"error": [raised.kind, raised.message]}))
        }
        (result, _) => {
            result?;
            accepted(json!(SEEN.take()))
        }
    }
}

/// An argument of a call.
enum FfiArgument {
    /// A value of the runtime, of which we hold a reference.
    Value(OwnedValue),
    /// Bytes that the caller keeps, after the array that describes them. Boxed, so that the address of the array does not change.
    View(Box<(ByteArray, Vec<u8>)>),
}

impl FfiArgument {
    /// Returns the argument of a form: a view of bytes, a tensor or an array with arbitrary content, or a value.
    fn of(api: &'static FfiApi, form: &Value) -> Result<FfiArgument, Reply> {
        if let Some(text) = form.get("view").and_then(Value::as_str) {
            let bytes = BASE64_STANDARD.decode(text);
            let bytes = bytes.map_err(|why| Reply::ProtocolError(why.to_string()))?;
            return Ok(FfiArgument::View(Box::new((ByteArray::of(&bytes), bytes))));
        }
        let value = match (form, form.get("tensor"), form.get("array")) {
            (Value::Number(number), ..) if number.is_f64() => make(api, &json!({"float": number}))?,
            (_, Some(shape), _) => tensors::zeros(api, shape)?,
            (_, _, Some(_)) => api.call_global("ffi.Array", &[])?,
            _ => make(api, form)?,
        };
        Ok(FfiArgument::Value(value))
    }

    /// Returns the cell that is passed.
    fn raw(&self) -> RawAny {
        match self {
            FfiArgument::Value(value) => value.raw,
            FfiArgument::View(bytes) => bytes_arg(&bytes.0),
        }
    }
}

/// Runs `module.life`: returns whether the library stays loaded while a function of it exists, and no longer.
pub(super) fn life(api: &'static FfiApi, args: &Value) -> Result<Reply, Reply> {
    let names = Dialect::of(layout(api, args)?);
    let name = format!("{}f", names.prefix);
    let slot = names.context.text();
    let written = LibraryFile::from_symbols(
        &[(&name, address(NUMBERS[0])), (slot, SymbolContent::Slot)],
        &[],
    )?;
    let steps = texts(args.pointer("/value/globals")).collect::<Vec<_>>();
    let function = {
        let module = written.module(api)?;
        for step in steps {
            let name = match step {
                "add" => "ffi.ModuleGlobalsAdd",
                "remove" => "ffi.ModuleGlobalsRemove",
                other => return Err(unsupported(format!("there is no step {other}"))),
            };
            api.call_global(name, &[module.raw])?;
        }
        lookup(api, &module, "f", false)?
    };
    // The module was dropped, so that only the function can keep the library.
    let with_function = written.is_mapped()?;
    drop(function);
    let after = written.is_mapped()?;
    accepted(json!({"with_function": with_function, "after": after}))
}
