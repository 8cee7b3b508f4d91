//! The operation `vm.run` on the Relax VM of a runtime.
//!
//! | step | action |
//! |---|---|
//! | `[NAME, ...]` | calls a function of the machine's module, or of the registry if it begins with `vm.builtin.` |
//! | `["tensor", TYPE, EXTENTS, BASE64]` | creates a tensor; an optional byte offset of its first element and optional strides follow |
//! | `["@executable", NAME, ...]` | calls a function of the executable's module |
//! | `["@unready", NAME, ...]` | calls a function of a second machine, which has no devices |
//! | `["@fails", NAME, ...]` | calls the function, and returns `{"error": true}` if that fails |
//! | `["@where", NAME, ...]` | returns the lines after the message of a call's error; only for this crate |
//! | `["@same", VALUE, VALUE]` | returns whether two values are one object |
//! | `["@memory", {"ref": n}]` | returns a number for the address of a tensor: 0 for the first, equal numbers for equal addresses |
//! | `["@drop", {"ref": n}]` | drops the result of a step |
//! | `["@log"]` | returns the calls of functions of the form `{"watch": n}` since the last time |
//! | `["@alive"]` | returns the live memory on the device that counts, and the number of its calls |
//! | `["@no_memory", n]` | makes that device reject one request for memory, after n more |
//! | `["@own", NAME, ...]` | calls a function of `rust_interface.rs`; only for this crate |

use crate::conformance::device::counting_device::{self, UsageCount};
use crate::conformance::module::linked_library::why_not_to_run;
use crate::conformance::runtime::RawHandle;
use crate::conformance::runtime::case_numbers::{NoNumber, number_of};
use crate::conformance::runtime::ffi::api::FfiApi;
use crate::conformance::runtime::ffi::owned::{OwnedValue, Raised, bool_arg, int_arg, read_bytes};
use crate::conformance::runtime::ffi::{
    NUMBERS, Reply, accepted, bytes, c_text, forms, fresh_prefix, system_library, tensors,
    unsupported,
};
use crate::value::{AnyPayload, RawAny, index};
use serde_json::{Value, json};
use std::cell::{Cell, RefCell};
use std::ffi::CStr;
use std::io::Write as _;
use std::ptr;

/// Runs `vm.run`: returns the results of the steps on one machine.
pub(in crate::conformance) fn run(api: &'static FfiApi, args: &Value) -> Result<Reply, Reply> {
    let devices = match args.get("devices") {
        Some(numbers) => each(api, list(numbers)?, &[])?,
        None => [1, 0, 2].map(|number| api.share(int_arg(number))).into(),
    };
    // VM-30: three numbers for each device, of which the first is its type.
    let mut kinds = devices.iter().step_by(3);
    let counts = kinds.any(|kind| kind.raw.int() == i64::from(counting_device::KIND));
    let balance = args.get("balance").is_some_and(|wish| *wish == true);
    let count = (counts || balance).then(|| counting(api)).transpose()?;
    // The callback `watch` gets only its number, and finds the interface here.
    API.set(Some(api));
    LOG.take();
    let results = steps(api, args, &devices, count.as_ref())?;
    match count.filter(|_| balance) {
        // Counted after the machine and all values of the steps are freed.
        Some(count) => accepted(json!({"results": results, "alive": count.shown()})),
        None => accepted(results),
    }
}

/// Begins a count. Devices that count are simulated, and do not exist in a foreign runtime.
///
/// The C interface represents a device by its functions in the registry, which in a foreign runtime are C++ objects.
fn counting(api: &'static FfiApi) -> Result<UsageCount, Reply> {
    match api.suite_function("vm.text") {
        Some(_) => UsageCount::begin().map_err(|error| Reply::Skipped(error.to_string())),
        None => Err(unsupported("the device that counts is one of this crate")),
    }
}

/// Loads the executable from a file, creates a machine on the devices, and runs the steps. Returns their results.
///
/// Results are converted at the end, because a step may write to an earlier result. The executable is passed as a file, because
/// every release since 0.22 has `ffi.Module.load_from_file.*`, and no other way is common to all.
fn steps(
    api: &'static FfiApi,
    args: &Value,
    devices: &[OwnedValue],
    count: Option<&UsageCount>,
) -> Result<Value, Reply> {
    let data = bytes(args)?;
    // VM-12: a compiled function is machine code, and its library is the root of the executable.
    let is_library = data.starts_with(b"\x7fELF");
    if let Some(why) = why_not_to_run(api).filter(|_| is_library) {
        return Err(unsupported(why));
    }
    let (load, ending) = if is_library {
        ("ffi.ModuleLoadFromFile", ".so")
    } else {
        api.reads_code(&data)?;
        ("ffi.Module.load_from_file.relax.VMExecutable", "")
    };
    let file = tempfile::Builder::new().suffix(ending).tempfile();
    let mut file = file.map_err(skipped)?;
    file.write_all(&data).map_err(skipped)?;
    let path = api.text(&file.path().to_string_lossy())?;
    let executable = api.call_global(load, &[path.raw])?;
    let make = function(api, &executable, "vm_load_executable")?;
    let machine = api.call(&make, &[])?;
    let start = function(api, &machine, "vm_initialization")?;
    api.call(&start, &raw(devices))?;
    let mut run = MachineScript {
        api,
        executable,
        machine,
        count,
        results: Vec::new(),
        addresses: Vec::new(),
    };
    for step in list(&args["steps"])? {
        let result = run.step(step)?;
        run.results.push(result);
    }
    let shown = run.results.iter().map(|result| match result {
        StepValue::OwnedValue(held) => show(api, held),
        StepValue::Shown(value) => Ok(value.clone()),
    });
    shown.collect()
}

/// Returns the reply if a file cannot be created here, which is a fault of this machine and not of the runtime.
fn skipped(error: std::io::Error) -> Reply {
    Reply::Skipped(error.to_string())
}

/// Returns the items of a list that the case must have.
fn list(value: &Value) -> Result<&[Value], Reply> {
    let wrong = || Reply::ProtocolError(format!("case states no list \"{value}\""));
    Ok(value.as_array().ok_or_else(wrong)?)
}

/// Returns the cells of values, which the caller keeps alive for the call.
fn raw(values: &[OwnedValue]) -> Vec<RawAny> {
    values.iter().map(|value| value.raw).collect()
}

/// The result of a step: a value of the runtime, or JSON.
enum StepValue {
    OwnedValue(OwnedValue),
    Shown(Value),
}

/// The running script, with the machine and the executable that it calls.
struct MachineScript<'a> {
    api: &'static FfiApi,
    executable: OwnedValue,
    machine: OwnedValue,
    count: Option<&'a UsageCount>,
    results: Vec<StepValue>,
    /// The addresses of tensors, in the order of their first use.
    addresses: Vec<usize>,
}

impl MachineScript<'_> {
    /// Runs one step of the table above. An error ends the operation, unless the step is `@fails` or `@where`.
    fn step(&mut self, step: &Value) -> Result<StepValue, Reply> {
        let [Value::String(name), values @ ..] = list(step)? else {
            return Err(no_step(step));
        };
        Ok(StepValue::Shown(match (name.as_str(), values) {
            ("tensor", values) => return Ok(StepValue::OwnedValue(tensor(self.api, values)?)),
            ("@fails", [Value::String(name), values @ ..]) => {
                match self.call(name, &self.values(values)?) {
                    Ok(value) => return Ok(StepValue::OwnedValue(value)),
                    Err(_) => json!({"error": true}),
                }
            }
            ("@where", [Value::String(name), values @ ..]) => self.places(name, values)?,
            ("@executable", [Value::String(name), values @ ..]) => {
                let function = function(self.api, &self.executable, name)?;
                let values = raw(&self.values(values)?);
                return Ok(StepValue::OwnedValue(self.api.call(&function, &values)?));
            }
            ("@unready", [Value::String(name), values @ ..]) => {
                let make = function(self.api, &self.executable, "vm_load_executable")?;
                let machine = self.api.call(&make, &[])?;
                let function = function(self.api, &machine, name)?;
                let values = raw(&self.values(values)?);
                return Ok(StepValue::OwnedValue(self.api.call(&function, &values)?));
            }
            ("@same", values) => match &*self.values(values)? {
                [one, two] => json!(
                    one.raw.type_index == two.raw.type_index && one.raw.bits() == two.raw.bits()
                ),
                _ => return Err(no_step(step)),
            },
            ("@memory", [value]) => {
                let held = argument(self.api, value, &self.results)?;
                let address = held.dltensor().ok_or_else(|| no_step(step))?;
                // VM-50: a view shares the memory of its tensor, possibly at an offset. Addresses differ between runs, so they are
                // numbered.
                let address = address.data.addr() + address.byte_offset as usize;
                let known = self.addresses.iter().position(|other| *other == address);
                json!(known.unwrap_or_else(|| {
                    self.addresses.push(address);
                    self.addresses.len() - 1
                }))
            }
            ("@drop", [value]) => {
                let at = value.get("ref").and_then(Value::as_u64);
                let slot = at.and_then(|at| self.results.get_mut(at as usize));
                *slot.ok_or_else(|| no_step(step))? = StepValue::Shown(Value::Null);
                Value::Null
            }
            ("@log", []) => Value::Array(LOG.take()),
            ("@alive", []) => self.count.ok_or_else(|| no_step(step))?.shown(),
            ("@no_memory", [after]) => {
                let after: u64 = number_of(after)?;
                let count = self.count.ok_or_else(|| no_step(step))?;
                count.run_out(after as usize);
                Value::Null
            }
            ("@own", [Value::String(name), values @ ..]) => {
                let own = self.api.suite_function(&format!("vm.{name}"));
                let own =
                    own.ok_or_else(|| unsupported("no C function of a machine reaches it"))?;
                let mut args = vec![self.executable.raw];
                let values = self.values(values)?;
                args.extend(raw(&values));
                let text = self.api.call(&own, &args)?.text().unwrap_or_default();
                serde_json::from_str(&text).map_err(|wrong| unsupported(wrong.to_string()))?
            }
            (name, _) if name.starts_with('@') => return Err(no_step(step)),
            (name, values) => {
                let values = self.values(values)?;
                return Ok(StepValue::OwnedValue(self.call(name, &values)?));
            }
        }))
    }

    /// Converts the arguments of a step.
    fn values(&self, values: &[Value]) -> Result<Vec<OwnedValue>, Reply> {
        each(self.api, values, &self.results)
    }

    /// Calls a function of the machine, or a builtin as bytecode does. Builtins are global functions, whose first argument may be
    /// the machine.
    fn call(&self, name: &str, values: &[OwnedValue]) -> Result<OwnedValue, Raised> {
        let called = if name.starts_with("vm.builtin.") {
            global(self.api, name)?
        } else {
            function(self.api, &self.machine, name)?
        };
        self.api.call(&called, &raw(values))
    }

    /// Returns the lines after the message of an error.
    ///
    /// Releases have a C++ traceback there, or nothing.
    fn places(&self, name: &str, values: &[Value]) -> Result<Value, Reply> {
        if self.api.suite_function("vm.text").is_none() {
            return Err(unsupported("it does not say where"));
        }
        match self.call(name, &self.values(values)?) {
            Ok(_) => Ok(Value::Null),
            Err(raised) => {
                let lines = raised.message.lines();
                let lines = lines.filter_map(|line| line.strip_prefix("  in "));
                Ok(lines.collect())
            }
        }
    }
}

/// Returns the reply for a malformed step, which is a protocol error and not a verdict about the runtime.
fn no_step(step: &Value) -> Reply {
    Reply::ProtocolError(format!("case states no step \"{step}\""))
}

/// Returns a global function. If the release lacks it, the step fails as a call would.
fn global(api: &'static FfiApi, name: &str) -> Result<OwnedValue, Raised> {
    let missing = || Raised::missing(&format!("function `{name}`"));
    api.global(name).ok_or_else(missing)
}

/// Returns a function of a module. If it is missing, the step fails, as for every caller.
fn function(api: &'static FfiApi, module: &OwnedValue, name: &str) -> Result<OwnedValue, Raised> {
    let text = api.text(name)?;
    let args = [module.raw, text.raw, bool_arg(false)];
    let found = api.call_global("ffi.ModuleGetFunction", &args)?;
    if found.raw.type_index == index::FUNCTION {
        return Ok(found);
    }
    let (kind, message) = ("ValueError".to_owned(), format!("no function {name}"));
    Err(Raised {
        kind,
        message,
        broken: None,
    })
}

/// Converts each form, in order.
fn each(
    api: &'static FfiApi,
    values: &[Value],
    results: &[StepValue],
) -> Result<Vec<OwnedValue>, Reply> {
    let values = values.iter();
    values.map(|value| argument(api, value, results)).collect()
}

/// Converts one form of the chapter: JSON's own; `{"shape"}`, `{"dtype"}`, `{"function"}`, `{"ref"}`. `{"watch": n}` is a function
/// that returns n, or true, and logs its arguments. `{"params": n}` is a module whose `get_params` returns n. A list is a tuple.
fn argument(
    api: &'static FfiApi,
    value: &Value,
    results: &[StepValue],
) -> Result<OwnedValue, Reply> {
    if let Some(items) = value.as_array() {
        let items = each(api, items, results)?;
        return Ok(api.call_global("ffi.Array", &raw(&items))?);
    }
    if let Some(at) = value.get("ref") {
        let at: u64 = number_of(at)?;
        return match results.get(at as usize) {
            Some(StepValue::OwnedValue(held)) => Ok(api.share(held.raw)),
            _ => Err(Reply::ProtocolError(format!(
                "case states no value {value}"
            ))),
        };
    }
    if let Some(name) = value.get("function").and_then(Value::as_str) {
        return Ok(global(api, name)?);
    }
    if let Some(answer) = value.get("watch") {
        let answer = match answer {
            Value::Bool(true) => WATCH_TRUE,
            number => number_of::<u64>(number)? as usize,
        };
        return Ok(api.function(ptr::without_provenance_mut(answer), watch)?);
    }
    if let Some(answer) = value.get("params") {
        let answer: u64 = number_of(answer)?;
        let number = NUMBERS.get(answer as usize);
        let number = number.ok_or_else(|| NoNumber::for_form(value))?;
        let prefix = fresh_prefix();
        api.system_symbol(&c_text(&format!("__tvm_ffi_{prefix}get_params")), *number)?;
        return Ok(system_library(api, &prefix)?);
    }
    match value.as_f64().filter(|_| value.is_f64()) {
        Some(float) => Ok(api.share(RawAny::of(index::FLOAT, AnyPayload { float }))),
        None => forms::make(api, value),
    }
}

thread_local! {
    static API: Cell<Option<&'static FfiApi>> = const { Cell::new(None) };
    static LOG: RefCell<Vec<Value>> = const { RefCell::new(Vec::new()) };
}

/// The number of a `watch` that returns true.
const WATCH_TRUE: usize = usize::MAX;

/// Logs its arguments, with only the name of a leading function, and returns the number in `this`.
unsafe extern "C" fn watch(
    this: RawHandle,
    args: *const RawAny,
    count: i32,
    out: *mut RawAny,
) -> i32 {
    let count = usize::try_from(count).unwrap_or(0);
    let mut shown = Vec::new();
    for at in 0..count {
        // SAFETY: there are `count` arguments.
        let cell = unsafe { *args.wrapping_add(at) };
        let value = match (cell.type_index, API.get()) {
            // SAFETY: the tag says that it is a NUL-terminated string, which lives for the call.
            (index::RAW_STR, _) => json!(unsafe { c_str(&cell) }.to_string_lossy()),
            (index::BYTE_ARRAY, _) => {
                let bytes = read_bytes(&cell).map(|bytes| String::from_utf8_lossy(&bytes).into());
                bytes.unwrap_or_else(|| json!("?"))
            }
            (_, Some(api)) => show(api, &api.share(cell)).unwrap_or_else(|_| json!("?")),
            (_, None) => json!("?"),
        };
        shown.push(value);
    }
    LOG.with_borrow_mut(|log| log.push(Value::Array(shown)));
    let (tag, int) = match this.addr() {
        WATCH_TRUE => (index::BOOL, 1),
        number => (index::INT, number as i64),
    };
    // SAFETY: an out pointer for the result.
    unsafe { out.write(RawAny::of(tag, AnyPayload { int })) };
    0
}

/// Returns the text in a cell.
///
/// # Safety
///
/// The cell holds the address of a text that ends with a NUL.
unsafe fn c_str(cell: &RawAny) -> &CStr {
    // SAFETY: it holds an address, by this function's contract.
    let text = unsafe { cell.payload.ptr };
    // SAFETY: the address of a NUL-terminated string, by this function's contract.
    unsafe { CStr::from_ptr(text.cast()) }
}

/// Creates `tensor(type, extents, base64)`, with the optional offset of its first element and optional strides.
fn tensor(api: &'static FfiApi, values: &[Value]) -> Result<OwnedValue, Reply> {
    let [dtype, shape, data, rest @ ..] = values else {
        return Err(no_step(&json!(values)));
    };
    let mut form = json!({"dtype": dtype["dtype"], "shape": shape["shape"], "data": data});
    for (name, member) in ["byte_offset", "strides"].into_iter().zip(rest) {
        form[name] = member.get("shape").unwrap_or(member).clone();
    }
    tensors::make_tensor(api, &form)
}

/// Converts a result back to its form.
fn show(api: &'static FfiApi, value: &OwnedValue) -> Result<Value, Reply> {
    Ok(match value.raw.type_index {
        index::FLOAT => forms::plain_float(f64::from_bits(value.raw.bits())),
        index::TENSOR => match value.dltensor().map(|tensor| tensor.device) {
            Some(device) if device.kind != 1 => {
                json!({"device": [device.kind, device.id]})
            }
            _ => {
                let shown = tensors::tensor_to_json(value)?;
                json!({"tensor": shown["dtype"], "shape": shown["shape"], "data": shown["data"]})
            }
        },
        index::ARRAY => {
            let size = api.call_global("ffi.ArraySize", &[value.raw])?.raw.int();
            let items: Result<Vec<Value>, Reply> = (0..size)
                .map(|at| {
                    let at = int_arg(at);
                    let item = api.call_global("ffi.ArrayGetItem", &[value.raw, at])?;
                    show(api, &item)
                })
                .collect();
            items?.into()
        }
        _ => forms::show(api, value)?,
    })
}
