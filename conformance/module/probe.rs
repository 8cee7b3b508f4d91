//! Compiled functions that say what they were given.

use super::memory::Memory;
use super::ops::{failed, plain};
use crate::conformance::op::{Answer, Refusal};
use crate::function::{Error, Function};
use crate::module::{Convention, Names, load_symbols};
use crate::object::Tensor;
use crate::release::Layout;
use crate::rule::Strictness;
use crate::value::legacy::TVMValue;
use crate::value::{Any, AnyView, DLDataType, RawAny};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::ffi::{c_int, c_void};
use std::sync::Arc;

thread_local! {
    static SEEN: RefCell<Vec<Value>> = const { RefCell::new(Vec::new()) };
    static CALLED: RefCell<Option<&'static str>> = const { RefCell::new(None) };
}

/// Of the old convention: keeps the codes.
unsafe extern "C-unwind" fn legacy(
    _values: *const TVMValue,
    codes: *const c_int,
    count: c_int,
    _result: *mut TVMValue,
    _result_code: *mut c_int,
    _resource: *mut c_void,
) -> c_int {
    let count = usize::try_from(count).unwrap_or(0);
    // SAFETY: the caller follows the convention.
    let codes = unsafe { std::slice::from_raw_parts(codes, count) };
    SEEN.with_borrow_mut(|seen| seen.extend(codes.iter().map(|code| json!(code))));
    0
}

/// Of the new convention: keeps the type indices.
unsafe extern "C-unwind" fn ffi(
    _this: *mut c_void,
    args: *const RawAny,
    count: i32,
    _result: *mut RawAny,
) -> i32 {
    let count = usize::try_from(count).unwrap_or(0);
    // SAFETY: the caller follows the convention.
    let args = unsafe { AnyView::slice(args, count) };
    SEEN.with_borrow_mut(|seen| seen.extend(args.iter().map(|arg| json!(arg.type_index()))));
    0
}

macro_rules! named {
    ($($function:ident $name:literal)*) => {
        $(
            /// Says its name, whichever way it is called.
            unsafe extern "C-unwind" fn $function(_: *mut c_void, _: *const c_void, _: c_int, _: *mut c_void) -> c_int {
                CALLED.set(Some($name));
                0
            }
        )*

        /// The address of a function that says that it is `name`; names outside the list share one.
        pub(super) fn address(name: &str) -> *const c_void {
            match name {
                $($name => $function as *const c_void,)*
                _ => other as *const c_void,
            }
        }
    };
}

named! {
    f "f"
    tvm_ffi_f "__tvm_ffi_f"
    tvm_ffi_main "__tvm_ffi_main"
    main "main"
    tvm_main "__tvm_main__"
    p_f "p_f"
    tvm_ffi_p_f "__tvm_ffi_p_f"
}

unsafe extern "C-unwind" fn other(
    _: *mut c_void,
    _: *const c_void,
    _: c_int,
    _: *mut c_void,
) -> c_int {
    CALLED.set(Some("another"));
    0
}

/// Which of the functions above `function` calls.
pub(super) fn name_of(function: &Function) -> Result<&'static str, Error> {
    CALLED.set(None);
    function.call(&[])?;
    Ok(CALLED.take().unwrap_or("nothing"))
}

/// `module.call`.
pub(super) fn call(args: &Value) -> Result<Answer, Refusal> {
    let value = &args["value"];
    let layout: Layout = value["layout"]
        .as_str()
        .unwrap_or("0.22")
        .parse()
        .map_err(Refusal::Unsupported)?;
    let names = Names::of(layout);
    let address = match names.convention {
        Convention::Legacy => legacy as *const c_void,
        _ => ffi as *const c_void,
    };
    let memory = Memory::default()
        .slot(names.context.text())
        .code(&format!("{}f", names.prefix), address);
    // SAFETY: symbols in memory, whose code is the function above of the convention that they name.
    let loaded = unsafe { load_symbols(Arc::new(memory), Strictness::Lenient) };
    let module = loaded
        .map_err(|error| Refusal::Unsupported(error.to_string()))?
        .module;
    // The dialect of 0.2 cannot be told from that of 0.7, and need not be.
    let function = module.require("f").map_err(failed)?;
    let values: Vec<Any> = value["args"]
        .as_array()
        .into_iter()
        .flatten()
        .map(argument)
        .collect();
    let views: Vec<AnyView<'_>> = values.iter().map(Any::view).collect();
    SEEN.with_borrow_mut(Vec::clear);
    function.call(&views).map_err(|error| {
        let kind = crate::rule::Kind::Unsupported;
        Refusal::from(crate::module::MOD_25.refused(kind, error.message()))
    })?;
    Ok(plain(json!(SEEN.take())))
}

/// A JSON value as an argument; `{"tensor": [2, 3]}` is a float32 tensor, `{"array": []}` an array object.
fn argument(value: &Value) -> Any {
    match value {
        Value::Null => Any::none(),
        Value::Bool(value) => (*value).into(),
        Value::Number(number) => match number.as_i64() {
            Some(number) => number.into(),
            None => number.as_f64().unwrap_or(0.0).into(),
        },
        Value::String(text) => text.as_str().into(),
        other => {
            let Some(shape) = other.get("tensor").and_then(Value::as_array) else {
                return Any::from(crate::object::Array::new([]).into_object());
            };
            let shape: Vec<i64> = shape.iter().filter_map(Value::as_i64).collect();
            let dtype = DLDataType {
                code: 2,
                bits: 32,
                lanes: 1,
            };
            Tensor::empty(&shape, dtype).map_or_else(|_| Any::none(), Any::from)
        }
    }
}
