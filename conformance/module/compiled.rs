//! What compiled code sees of a runtime: libraries are written around addresses of this process, loaded by the runtime and
//! called through it. `module.symbols`, `module.call`, `module.life`, `module.environment`, `module.constants`.

use super::backend;
use super::loading::stored;
use crate::conformance::function::driver::{numbered, remove};
use crate::conformance::runtime::ffi::api::{Api, Handle, SafeCall};
use crate::conformance::runtime::ffi::forms::{make, show};
use crate::conformance::runtime::ffi::held::{Held, bool_arg, bytes_arg, int_arg, text_arg};
use crate::conformance::runtime::ffi::{
    NUMBERS, Reply, bytes, c_text, fresh_prefix, seen, system_library, tensors, told, unsupported,
};
use crate::conformance::runtime::number::number_of;
use crate::conformance::runtime::shell::{self, Content};
use crate::module::exports;
use crate::module::{Convention, Dialect};
use crate::payload::{self, Field};
use crate::release::{Layout, Release};
use crate::rule::{Findings, Kind, Violation};
use crate::value::dlpack::DLTensor;
use crate::value::legacy::{TVMValue, code};
use crate::value::{ByteArray, RawAny, index};
use crate::wire::Cursor;
use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::{Value, json};
use std::cell::{Cell, RefCell};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::PathBuf;

const NAMES: Dialect = Dialect::of(Layout::V0_22);
const CONTEXT: &str = NAMES.context.text();
const PREFIX: &str = NAMES.prefix;

/// A library on disk, for as long as the case takes.
pub(super) struct Written {
    _folder: tempfile::TempDir,
    pub(super) path: PathBuf,
}

impl Written {
    /// With symbols that lead into this process, and symbols that name bytes.
    pub(super) fn of(
        symbols: &[(&str, Content)],
        data: &[(&str, &[u8])],
    ) -> Result<Written, Reply> {
        let written = Written::in_folder()?;
        shell::write_symbols(symbols, data, &written.path)
            .map_err(|error| unsupported(format!("no library can be made here: {error}")))?;
        Ok(written)
    }

    /// From its bytes.
    pub(super) fn from(library: &[u8]) -> Result<Written, Reply> {
        let written = Written::in_folder()?;
        let skipped = |error: std::io::Error| Reply::Skipped(error.to_string());
        std::fs::write(&written.path, library).map_err(skipped)?;
        Ok(written)
    }

    fn in_folder() -> Result<Written, Reply> {
        let folder = tempfile::tempdir().map_err(|error| Reply::Skipped(error.to_string()))?;
        let path = folder.path().join("case.so");
        Ok(Written {
            _folder: folder,
            path,
        })
    }

    /// The module that the runtime makes of it.
    fn module(&self, api: &'static Api) -> Result<Held, Reply> {
        let path = c_text(&self.path.to_string_lossy());
        Ok(api.call_global("ffi.ModuleLoadFromFile", &[text_arg(&path)])?)
    }

    /// What is in a slot of the library, which is loaded.
    pub(super) fn slot(&self, name: &str) -> Result<Handle, Reply> {
        // SAFETY: it is loaded already, and has no code that runs on loading.
        let library = unsafe { libloading::Library::new(&self.path) };
        let library = library.map_err(|error| unsupported(error.to_string()))?;
        // SAFETY: a slot is an address.
        let slot = unsafe { library.get::<*const Handle>(name) };
        let slot = slot.map_err(|error| unsupported(error.to_string()))?;
        // SAFETY: the runtime wrote the context into this library, which is still loaded.
        Ok(unsafe { **slot })
    }

    /// Whether this process has it mapped.
    #[cfg(target_os = "linux")]
    pub(super) fn is_mapped(&self) -> Result<bool, Reply> {
        let maps = std::fs::read_to_string("/proc/self/maps");
        let maps = maps.map_err(|error| Reply::Skipped(error.to_string()))?;
        Ok(maps.contains(&*self.path.to_string_lossy()))
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn is_mapped(&self) -> Result<bool, Reply> {
        Err(unsupported("what is mapped does not show on this system"))
    }
}

fn address(body: SafeCall) -> Content {
    Content::Jump(body as usize)
}

pub(super) fn texts(value: Option<&Value>) -> impl Iterator<Item = &str> {
    let list = value.and_then(Value::as_array).into_iter().flatten();
    list.filter_map(Value::as_str)
}

pub(super) fn lookup(
    api: &'static Api,
    module: &Held,
    name: &str,
    deep: bool,
) -> Result<Held, Reply> {
    let name = c_text(name);
    let args = [module.raw, text_arg(&name), bool_arg(deep)];
    Ok(api.call_global("ffi.ModuleGetFunction", &args)?)
}

/// `module.symbols`: which function is found under a name, and which slots the runtime filled.
pub(super) fn symbols(api: &'static Api, args: &Value) -> Result<Reply, Reply> {
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
    // Slots are filled with what the runtime beside the interface registers.
    if texts(value.get("slots")).next().is_some() && !backend::is_there(api) {
        return Err(unsupported(
            "none of the libraries is the runtime that compiled code calls",
        ));
    }
    let numbered = exports.iter().zip(NUMBERS);
    let mut symbols: Vec<(&str, Content)> = numbered
        .map(|(name, body)| (*name, address(body)))
        .collect();
    symbols.extend(texts(value.get("slots")).map(|name| (name, Content::Slot)));
    symbols.push((CONTEXT, Content::Slot));
    let written = Written::of(&symbols, &[])?;
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
    seen("function", json!({"function": found, "slots": filled}))
}

thread_local! {
    static SEEN: RefCell<Vec<Value>> = const { RefCell::new(Vec::new()) };
    /// Whether what an argument points to is read, too.
    static READS: Cell<bool> = const { Cell::new(false) };
}

/// Notes an argument of this type or code, and with [`READS`] what `content` makes of it.
fn note(kind: i32, content: impl FnOnce() -> Value) {
    let seen = match READS.get() {
        true => json!([kind, content()]),
        false => json!(kind),
    };
    SEEN.with_borrow_mut(|all| all.push(seen));
}

/// The number that stands at `pointer`, text, bytes, or the extents of a tensor, by the form that a type or a code has.
///
/// # Safety
///
/// `pointer` leads to what `form` says.
unsafe fn content_of(form: Pointed, pointer: *const c_void) -> Value {
    match form {
        Pointed::Text => {
            // SAFETY: a C string, by this contract.
            let text = unsafe { CStr::from_ptr(pointer.cast()) };
            json!(text.to_string_lossy())
        }
        Pointed::Bytes => {
            // SAFETY: a byte array, by this contract.
            let array = unsafe { &*pointer.cast::<ByteArray>() };
            // SAFETY: it says where its bytes are, and how many.
            let bytes = unsafe { std::slice::from_raw_parts(array.data.cast::<u8>(), array.size) };
            json!({"bytes": BASE64_STANDARD.encode(bytes)})
        }
        Pointed::Tensor => {
            // SAFETY: the description of a tensor, by this contract.
            let tensor = unsafe { &*pointer.cast::<DLTensor>() };
            // SAFETY: a tensor has as many extents as dimensions.
            json!({"tensor": unsafe { tensor.shape() }})
        }
    }
}

enum Pointed {
    Text,
    Bytes,
    Tensor,
}

unsafe extern "C" fn note_types(_: Handle, args: *const RawAny, count: i32, _: *mut RawAny) -> i32 {
    for at in 0..usize::try_from(count).unwrap_or(0) {
        // SAFETY: there are that many arguments.
        let raw = unsafe { *args.wrapping_add(at) };
        note(raw.type_index, || {
            let form = match raw.type_index {
                index::RAW_STR => Pointed::Text,
                index::BYTE_ARRAY => Pointed::Bytes,
                index::DLTENSOR_PTR => Pointed::Tensor,
                index::INT | index::BOOL => return json!(raw.int()),
                _ => return Value::Null,
            };
            // SAFETY: a cell of this type points to this.
            unsafe { content_of(form, raw.ptr()) }
        });
    }
    0
}

/// The same for the convention of 0.20 and before: the codes.
unsafe extern "C" fn note_codes(
    values: *const TVMValue,
    codes: *const c_int,
    count: c_int,
    _: *mut TVMValue,
    _: *mut c_int,
    _: Handle,
) -> c_int {
    for at in 0..usize::try_from(count).unwrap_or(0) {
        // SAFETY: there are that many codes.
        let code = unsafe { *codes.wrapping_add(at) };
        // SAFETY: there are that many values.
        let value = unsafe { *values.wrapping_add(at) };
        // SAFETY: all eight bytes are written, so they may be read as an address.
        let pointer = unsafe { value.v_handle };
        note(code, || {
            let form = match code {
                code::STR => Pointed::Text,
                code::BYTES => Pointed::Bytes,
                code::DLTENSOR => Pointed::Tensor,
                code::INT => return json!(pointer as i64),
                _ => return Value::Null,
            };
            // SAFETY: a value of this code points to this.
            unsafe { content_of(form, pointer) }
        });
    }
    0
}

thread_local! {
    static LEFT: RefCell<CString> = RefCell::default();
}

/// The same, which fails and leaves the text of the case, by the function of the runtime that compiled code has for it.
unsafe extern "C" fn fail_codes(
    _: *const TVMValue,
    _: *const c_int,
    _: c_int,
    _: *mut TVMValue,
    _: *mut c_int,
    _: Handle,
) -> c_int {
    type Leave = unsafe extern "C" fn(*const c_char);
    let leave = LEAVE.get();
    if !leave.is_null() {
        // SAFETY: `call` put the function of this name here, which has this type.
        let leave = unsafe { std::mem::transmute::<Handle, Leave>(leave) };
        // SAFETY: a text, which is copied.
        LEFT.with_borrow(|text| unsafe { leave(text.as_ptr()) });
    }
    -1
}

thread_local! {
    static LEAVE: Cell<Handle> = const { Cell::new(std::ptr::null_mut()) };
}

/// The layout of a case, which the runtime must load.
fn layout(api: &'static Api, args: &Value) -> Result<Layout, Reply> {
    let named = args.pointer("/value/layout").and_then(Value::as_str);
    let layout: Layout = named.unwrap_or("0.22").parse().map_err(unsupported)?;
    match api.runtime.loads(layout) {
        true => Ok(layout),
        false => Err(unsupported(format!(
            "this runtime loads no library of {layout}"
        ))),
    }
}

/// `module.call`: the types, or codes, that a compiled function is called with.
pub(super) fn call(api: &'static Api, args: &Value) -> Result<Reply, Reply> {
    let value = args.get("value").unwrap_or(&Value::Null);
    let names = Dialect::of(layout(api, args)?);
    let fails = value.get("fails").and_then(Value::as_str);
    let body = match (names.convention, fails) {
        (Convention::Legacy, None) => Content::Jump(note_codes as *const () as usize),
        (Convention::Legacy, Some(text)) => {
            LEFT.set(c_text(text));
            let leave = api.runtime.symbol("TVMAPISetLastError");
            LEAVE.set(
                leave
                    .filter(|_| !text.is_empty())
                    .unwrap_or(std::ptr::null_mut()),
            );
            Content::Jump(fail_codes as *const () as usize)
        }
        _ => address(note_types),
    };
    let name = format!("{}f", names.prefix);
    let written = Written::of(&[(&name, body), (names.context.text(), Content::Slot)], &[])?;
    let function = lookup(api, &written.module(api)?, "f", false)?;
    let forms = value.get("args").and_then(Value::as_array);
    let passed = forms.into_iter().flatten();
    let passed: Vec<Passed> = passed
        .map(|form| Passed::of(api, form))
        .collect::<Result<_, Reply>>()?;
    let cells: Vec<RawAny> = passed.iter().map(Passed::raw).collect();
    SEEN.take();
    READS.set(value.get("reads") == Some(&Value::Bool(true)));
    match (api.call(&function, &cells), fails) {
        (Err(raised), Some(_)) if raised.broken.is_none() => {
            told(json!({"error": [raised.kind, raised.message]}))
        }
        (result, _) => {
            result?;
            told(json!(SEEN.take()))
        }
    }
}

/// An argument of a call.
enum Passed {
    Value(Held),
    /// Bytes that the caller keeps, and in front of them where they are. In a box, so that the address of that stays.
    View(Box<(ByteArray, Vec<u8>)>),
}

impl Passed {
    fn of(api: &'static Api, form: &Value) -> Result<Passed, Reply> {
        if let Some(text) = form.get("view").and_then(Value::as_str) {
            let bytes = BASE64_STANDARD.decode(text);
            let bytes = bytes.map_err(|why| Reply::ProtocolError(why.to_string()))?;
            return Ok(Passed::View(Box::new((ByteArray::of(&bytes), bytes))));
        }
        let value = match (form, form.get("tensor"), form.get("array")) {
            (Value::Number(number), ..) if number.is_f64() => make(api, &json!({"float": number}))?,
            (_, Some(shape), _) => tensors::zeros(api, shape)?,
            (_, _, Some(_)) => api.call_global("ffi.Array", &[])?,
            _ => make(api, form)?,
        };
        Ok(Passed::Value(value))
    }

    fn raw(&self) -> RawAny {
        match self {
            Passed::Value(value) => value.raw,
            Passed::View(bytes) => bytes_arg(&bytes.0),
        }
    }
}

/// `module.life`: whether the library stays while a function of it does, and no longer.
pub(super) fn life(api: &'static Api, args: &Value) -> Result<Reply, Reply> {
    let names = Dialect::of(layout(api, args)?);
    let name = format!("{}f", names.prefix);
    let slot = names.context.text();
    let written = Written::of(&[(&name, address(NUMBERS[0])), (slot, Content::Slot)], &[])?;
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
    let with_function = written.is_mapped()?;
    drop(function);
    let after = written.is_mapped()?;
    told(json!({"with_function": with_function, "after": after}))
}

/// `module.environment`: what a library finds that looks for functions, as compiled code does.
pub(super) fn environment(api: &'static Api, args: &Value) -> Result<Reply, Reply> {
    let prefix = fresh_prefix();
    let mut registered = Vec::new();
    let found = environment_steps(api, &prefix, args, &mut registered);
    for name in registered {
        remove(api, &name)?;
    }
    told(found?)
}

fn environment_steps(
    api: &'static Api,
    prefix: &str,
    args: &Value,
    registered: &mut Vec<String>,
) -> Result<Value, Reply> {
    let value = args.get("value").unwrap_or(&Value::Null);
    let functions = |list: Option<&Value>| -> Result<Vec<(String, i64)>, Reply> {
        let list = list.and_then(Value::as_object).into_iter().flatten();
        list.map(|(name, number)| match number.as_i64() {
            Some(number @ 0..8) => Ok((format!("{prefix}{name}"), number)),
            _ => Err(unsupported("functions give numbers up to 7")),
        })
        .collect()
    };
    let own: Vec<(String, i64)> = functions(value.get("own"))?;
    let own: Vec<(String, i64)> = own
        .into_iter()
        .map(|(name, number)| (format!("{PREFIX}{name}"), number))
        .collect();
    let mut symbols = vec![(CONTEXT, Content::Slot)];
    symbols.extend(
        own.iter()
            .map(|(name, number)| (&**name, address(NUMBERS[*number as usize]))),
    );
    let written = Written::of(&symbols, &[])?;
    let root = written.module(api)?;
    let context = written.slot(CONTEXT)?;
    if context.is_null() {
        return Err(unsupported(
            "the runtime does not say what the context of a library is",
        ));
    }
    let module = |list: Option<&Value>| -> Result<Held, Reply> {
        let behind = fresh_prefix();
        for (name, number) in functions(list)? {
            let symbol = c_text(&format!("{PREFIX}{behind}{name}"));
            api.system_symbol(&symbol, NUMBERS[number as usize])?;
        }
        Ok(system_library(api, &behind)?)
    };
    let import =
        |into: &Held, what: &Held| api.call_global("ffi.ModuleImportModule", &[into.raw, what.raw]);
    let release = value.get("release").and_then(Value::as_str);
    let release: Release = release
        .unwrap_or("0.27")
        .parse()
        .map_err(|wrong: String| unsupported(wrong))?;
    // Others are asked as they are, whatever release it is.
    let older = api.brought("module.environment");
    let older = older.filter(|_| release < Release::of(21));
    let look = |name: &CStr| match &older {
        Some(older) => {
            let release = c_text(&release.to_string());
            api.call(older, &[root.raw, text_arg(name), text_arg(&release)])
        }
        // SAFETY: `root` keeps the library, and what it wrote there is its context.
        None => unsafe { api.looked_up(context, name) },
    };
    let mut found = Vec::new();
    for step in value
        .get("steps")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        if let Some(list) = step.get("import") {
            import(&root, &module(Some(list))?)?;
        }
        if let Some(list) = step.get("import_below") {
            let between = module(None)?;
            import(&between, &module(Some(list))?)?;
            import(&root, &between)?;
        }
        if step.get("clear").is_some() {
            api.call_global("ffi.ModuleClearImports", &[root.raw])?;
        }
        for (name, number) in functions(step.get("register"))? {
            api.set_global(&name, &numbered(api, number)?, true)?;
            registered.push(name);
        }
        if let Some(name) = step.get("lookup").and_then(Value::as_str) {
            let name = c_text(&format!("{prefix}{name}"));
            found.push(match look(&name) {
                Ok(function) => show(api, &api.call(&function, &[])?)?,
                Err(raised) => match &raised.broken {
                    // Where the runtime says what is broken, it is this.
                    Some(broken) if !is_missing(broken) => return Err(raised.into()),
                    _ => json!("missing"),
                },
            });
        }
    }
    Ok(json!(found))
}

fn is_missing(broken: &Violation) -> bool {
    broken.rule().id() == "MOD-13" && broken.kind() == Kind::Missing
}

thread_local! {
    /// The constants that initialisers were handed, with the number of the initialiser.
    static HANDED: RefCell<Vec<(usize, Held)>> = const { RefCell::new(Vec::new()) };
    static HANDED_BY: RefCell<Option<&'static Api>> = const { RefCell::new(None) };
}

const INITIALISERS: [SafeCall; 4] = [
    initialise::<0>,
    initialise::<1>,
    initialise::<2>,
    initialise::<3>,
];

unsafe extern "C" fn initialise<const N: usize>(
    _: Handle,
    args: *const RawAny,
    count: i32,
    out: *mut RawAny,
) -> i32 {
    let Some(api) = HANDED_BY.with_borrow(|api| *api).filter(|_| count == 1) else {
        return -1;
    };
    // SAFETY: there is one argument.
    let given = unsafe { *args };
    // SAFETY: a call has a place for its result.
    let out = unsafe { &mut *out };
    HANDED.with_borrow_mut(|handed| handed.push((N, api.share(given))));
    *out = int_arg(0);
    0
}

/// `module.constants`: a payload of kind `const_loader`, and below it a module that notes what it is handed.
pub(super) fn constants(api: &'static Api, args: &Value) -> Result<Reply, Reply> {
    let payload = bytes(args)?;
    let root = stored(api, "const_loader", &payload)?;
    let name = args.get("name").and_then(Value::as_str).unwrap_or_default();
    let mut functions = symbols_of(&payload);
    // PAY-37: one that is listed twice is one function.
    functions.dedup();
    let all = name.starts_with(ALL_CONSTANTS);
    if !all && !functions.iter().any(|symbol| symbol == name) {
        functions.push(name.to_owned());
    }
    if functions.len() > INITIALISERS.len() {
        return Err(unsupported(
            "more functions than there are initialisers to tell them apart",
        ));
    }
    let behind = fresh_prefix();
    for (function, body) in functions.iter().zip(INITIALISERS) {
        api.system_symbol(&c_text(&format!("{PREFIX}{behind}__init_{function}")), body)?;
        api.system_symbol(&c_text(&format!("{PREFIX}{behind}{function}")), NUMBERS[1])?;
    }
    let taker = system_library(api, &behind)?;
    api.call_global("ffi.ModuleImportModule", &[root.raw, taker.raw])?;
    HANDED_BY.set(Some(api));
    HANDED.take();
    let mut found = None;
    for _ in 0..number_of::<i64>(args.get("times"))? {
        found = Some(lookup(api, &root, name, true)?);
    }
    let mut initialised = Vec::new();
    for (number, list) in HANDED.take() {
        let size = api.call_global("ffi.ArraySize", &[list.raw])?.raw.int();
        let shape = |at: i64| -> Result<Value, Reply> {
            let tensor = api.call_global("ffi.ArrayGetItem", &[list.raw, int_arg(at)])?;
            let described = tensor.dltensor();
            let described = described.ok_or_else(|| unsupported("a constant is not a tensor"))?;
            // SAFETY: a tensor has as many extents as dimensions.
            Ok(json!(unsafe { described.shape() }))
        };
        let shapes = (0..size)
            .map(shape)
            .collect::<Result<Vec<Value>, Reply>>()?;
        initialised.push(json!([functions[number], shapes]));
    }
    let mut said = json!({"initialised": initialised});
    if all {
        said["all"] = match found.filter(|found| found.raw.type_index == index::FUNCTION) {
            Some(function) => keys_of(&show(api, &api.call(&function, &[])?)?),
            None => Value::Null,
        };
    }
    told(said)
}

/// The functions that a payload has constants for, as far as it can be read.
pub(super) fn symbols_of(payload: &[u8]) -> Vec<String> {
    let read = payload::read(
        "const_loader",
        Layout::V0_22,
        &mut Cursor::new(payload),
        &mut Findings::default(),
    );
    match read
        .as_ref()
        .ok()
        .and_then(|payload| payload.field("symbols"))
    {
        Some(Field::Symbols(symbols)) => symbols.iter().map(|(name, _)| name.to_string()).collect(),
        _ => Vec::new(),
    }
}

/// The keys of a map in the form of spec/values.md, sorted, since no rule orders them; null for another value.
fn keys_of(map: &Value) -> Value {
    let Some(pairs) = map.get("map").and_then(Value::as_array) else {
        return Value::Null;
    };
    let mut keys: Vec<Value> = pairs
        .iter()
        .filter_map(|pair| pair.get(0).cloned())
        .collect();
    keys.sort_by_key(Value::to_string);
    Value::Array(keys)
}

/// How the function begins whose result is the map of all constants, in every release that has one (MOD-19).
const ALL_CONSTANTS: &str = "get_const_var_";
