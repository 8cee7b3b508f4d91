//! Conversions of a runtime.
//!
//! A runtime shows its conversions in its typed functions. If it provides none for the suite, other functions serve. For most types, any
//! tvm-ffi library has a function whose result shows the converted argument. For the rest, `libtvm_ffi_testing.so` adds functions that
//! return their argument.

use crate::conformance::reply::Rejection;
use crate::conformance::runtime::RawHandle;
use crate::conformance::runtime::ffi::api::FfiApi;
use crate::conformance::runtime::ffi::forms::{make, show, show_as};
use crate::conformance::runtime::ffi::owned::{OwnedValue, int_arg, text_arg};
use crate::conformance::runtime::ffi::{
    NUMBERS, Reply, accepted, c_text, fresh_prefix, system_library, unsupported,
};
use crate::value::dlpack::DLTensor;
use crate::value::{AnyPayload, RawAny, index};
use serde_json::{Value, json};
use std::cell::Cell;

/// Performs `value.convert`.
///
/// VAL-07 to VAL-13: shows the converted value, or the rule that forbids the conversion.
pub(in crate::conformance) fn convert(api: &'static FfiApi, args: &Value) -> Result<Reply, Reply> {
    let wanted = args.get("to").and_then(Value::as_str).unwrap_or_default();
    let value = make(api, args.get("value").unwrap_or(&Value::Null))?;
    match converted(api, &value, wanted) {
        Err(Reply::Reject(rejection)) if !is_of_type(&rejection, wanted, &value) => {
            accepted(json!({"raises": rejection.message}))
        }
        answer => accepted(answer?),
    }
}

/// Returns whether a call rejected its argument because of the type.
///
/// FUN-09: such an error is a TypeError. A call that fails in another way has not judged the argument. The text of a data type that cannot be
/// read is a ValueError in the releases (VAL-13).
fn is_of_type(rejection: &Rejection, wanted: &str, value: &OwnedValue) -> bool {
    match rejection.message.split(':').next() {
        Some("TypeError") => true,
        Some("ValueError") => wanted == "dtype" && value.text().is_some(),
        // Rules have kinds, errors have not.
        _ => rejection.kind.is_some(),
    }
}

/// Shows the result of converting `value` for a parameter of type `wanted`.
pub(in crate::conformance) fn converted(
    api: &'static FfiApi,
    value: &OwnedValue,
    wanted: &str,
) -> Result<Value, Reply> {
    let call = |name: &str, args: &[RawAny]| api.call_global(name, args);
    let raw = value.raw;
    if let Some(converter) = api.suite_function(&format!("convert.{wanted}")) {
        return show(api, &api.call(&converter, &[raw])?);
    }
    Ok(match wanted {
        "int" => element(api, raw)?,
        "int32" => {
            // The depth of an access path is an `i32`.
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
                raw,
            ];
            let path = call("ffi.MakeObjectFromPackedArgs", &path)?;
            let depth = api.field(&path, "depth");
            show(
                api,
                &depth.ok_or_else(|| unsupported("the field `depth` does not show"))?,
            )?
        }
        "bool" => {
            // The parameter says whether imports are searched. Only an imported module has the function.
            let (root, below) = (fresh_prefix(), fresh_prefix());
            api.system_symbol(&c_text(&format!("__tvm_ffi_{below}f")), NUMBERS[0])?;
            let (root, below) = (system_library(api, &root)?, system_library(api, &below)?);
            call("ffi.ModuleImportModule", &[root.raw, below.raw])?;
            let found = call("ffi.ModuleGetFunction", &[root.raw, text_arg(c"f"), raw])?;
            json!(found.raw.type_index != index::NONE)
        }
        "pointer" => pointer(api, raw)?,
        "str" => show(api, &call("ffi.String", &[raw])?)?,
        "bytes" => show(api, &call("ffi.Bytes", &[raw])?)?,
        // The functions for sizes take only an object of exactly this type, but other objects also convert.
        "array" | "map" if matches!(raw.type_index, index::LIST | index::DICT) => {
            through_identity(api, &wanted.replace("array", "arr"), raw)?
        }
        "array" => show_as(api, value, index::ARRAY)?,
        "map" => show_as(api, value, index::MAP)?,
        "list" => {
            call("ffi.ListReserve", &[raw, int_arg(0)])?;
            match show(api, value)? {
                // Each call removes an element from a list that the conversion made.
                Value::Object(form) if raw.type_index == index::ARRAY => {
                    let size = form
                        .get("array")
                        .and_then(Value::as_array)
                        .map_or(0, Vec::len);
                    let taken = (0..size)
                        .map(|at| show(api, &call("ffi.ListPop", &[raw, int_arg(at as i64)])?));
                    json!({"list": taken.collect::<Result<Vec<Value>, Reply>>()?})
                }
                form => form,
            }
        }
        "function" => {
            // The argument is the function to call for every visited object.
            let visitor = call("ffi.Array", &[int_arg(index::OBJECT_BEGIN.into()), raw])?;
            let visitors = call("ffi.Array", &[visitor.raw])?;
            call("ffi.StructuralVisit", &[RawAny::NONE, visitors.raw])?;
            show(api, value)?
        }
        "optional-int" => {
            // The argument is the number of blanks by which JSON is indented.
            let list = call("ffi.Array", &[int_arg(0)])?;
            let text = call("ffi.json.Stringify", &[list.raw, raw])?.text();
            let text = text.unwrap_or_default();
            match text.lines().nth(1) {
                Some(line) => json!(line.len() - line.trim_start().len()),
                None => Value::Null,
            }
        }
        "shape" => match allocated(api, Some(raw), None)? {
            // SAFETY: a tensor has one extent for each dimension.
            Some(tensor) => json!({"shape": unsafe { tensor.dl()?.shape() }}),
            None => through_identity(api, "shape", raw)?,
        },
        "dtype" => match allocated(api, None, Some(raw))? {
            Some(tensor) => json!({"dtype": api.dtype_text(tensor.dl()?.dtype)?}),
            None => through_identity(api, "dtype", raw)?,
        },
        "float" | "device" | "object" => through_identity(api, wanted, raw)?,
        other => return Err(unsupported(format!("there is no type {other}"))),
    })
}

/// Shows an int by the element that it selects from an array of numbers.
fn element(api: &'static FfiApi, raw: RawAny) -> Result<Value, Reply> {
    let numbers: Vec<RawAny> = (0..100).map(int_arg).collect();
    let numbers = api.call_global("ffi.Array", &numbers)?;
    match api.call_global("ffi.ArrayGetItem", &[numbers.raw, raw]) {
        Err(raised) if raised.kind == "IndexError" => Err(unsupported(
            "an int shows as the number of an element, which end at 99",
        )),
        found => show(api, &found?),
    }
}

thread_local! {
    static THIS: Cell<RawHandle> = const { Cell::new(std::ptr::null_mut()) };
}

unsafe extern "C" fn note_this(this: RawHandle, _: *const RawAny, _: i32, _: *mut RawAny) -> i32 {
    THIS.set(this);
    0
}

/// Does nothing, as a deleter.
unsafe extern "C" fn ignore_deletion(_: RawHandle) {}

/// Shows an opaque pointer by the first argument of a C callback that is created with it.
fn pointer(api: &'static FfiApi, raw: RawAny) -> Result<Value, Reply> {
    let body = note_this as unsafe extern "C" fn(RawHandle, *const RawAny, i32, *mut RawAny) -> i32;
    let body = RawAny::of(
        index::OPAQUE,
        AnyPayload {
            ptr: body as RawHandle,
        },
    );
    // Without a deleter, a runtime may drop a null pointer and not pass it on.
    let deleter = ignore_deletion as unsafe extern "C" fn(RawHandle);
    let deleter = RawAny::of(
        index::OPAQUE,
        AnyPayload {
            ptr: deleter as RawHandle,
        },
    );
    let args = [raw, body, deleter];
    let function = api.call_global("ffi.FunctionFromExternC", &args)?;
    THIS.set(std::ptr::dangling_mut());
    api.call(&function, &[])?;
    match THIS.get() {
        null if null.is_null() => Ok(Value::Null),
        other => Ok(json!({"pointer": format!("{:#x}", other as usize)})),
    }
}

/// Allocates a tensor of this shape and type, if the libraries have a function for it.
fn allocated(
    api: &'static FfiApi,
    shape: Option<RawAny>,
    dtype: Option<RawAny>,
) -> Result<Option<Allocated>, Reply> {
    let Some(allocate) = api.global("runtime.TVMTensorAllocWithScope") else {
        return Ok(None);
    };
    let one = api.call_global("ffi.Shape", &[int_arg(1)])?;
    let (byte, cpu) = (api.dtype("int8")?, crate::tensor::Device::CPU);
    let mut bits = AnyPayload { bits: 0 };
    bits.dtype = byte;
    let args = [
        shape.unwrap_or(one.raw),
        dtype.unwrap_or(RawAny::of(index::DATA_TYPE, bits)),
        RawAny::of(index::DEVICE, AnyPayload { device: cpu }),
        RawAny::NONE,
    ];
    Ok(Some(Allocated(api.call(&allocate, &args)?)))
}

struct Allocated(OwnedValue);

impl Allocated {
    fn dl(&self) -> Result<&DLTensor, Reply> {
        let described = self.0.dltensor();
        described.ok_or_else(|| unsupported("the allocated value is not a tensor"))
    }
}

/// Shows the result of an identity function of the testing library.
fn through_identity(api: &'static FfiApi, wanted: &str, raw: RawAny) -> Result<Value, Reply> {
    let Some(identity) = api.global(&format!("testing.schema_id_{wanted}")) else {
        return Err(unsupported(format!(
            "no function takes a {wanted} and returns it unchanged; libtvm_ffi_testing.so adds one"
        )));
    };
    // These functions take the address of the object itself, so no conversion takes place.
    let converts = match wanted {
        "arr" => raw.type_index == index::LIST,
        "map" => raw.type_index == index::DICT,
        _ => false,
    };
    if converts {
        return Err(unsupported(format!(
            "the function of the testing library takes the object of a {wanted}, and no copy of another"
        )));
    }
    show(api, &api.call(&identity, &[raw])?)
}
