//! Behaviour of our own modules that no C function shows, through the Rust interface.

use super::symbol_memory::SymbolMemory;
use crate::conformance::runtime::ffi::fresh_prefix;
#[cfg(unix)]
use crate::function::take_raised;
use crate::function::{Error, Function, legacy, registry};
use crate::lock::lock;
#[cfg(unix)]
use crate::module::dso::trampolines::Jumps;
use crate::module::workspace::{self, WorkspaceRequest};
use crate::module::{
    Dialect, Module, ModuleKind, SymbolName, Symbols, context, load, load_named, load_symbols,
    parallel, property_mask, register_loader, system, system_library,
};
use crate::object::Array;
use crate::release::{Layout, ParseError, Release};
use crate::rule::Strictness;
use crate::value::legacy::TVMValue;
use crate::value::{Any, AnyView, Bytes, cast};
use std::cell::RefCell;
use std::collections::HashMap;
#[cfg(unix)]
use std::ffi::c_char;
use std::ffi::c_void;
#[cfg(unix)]
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex};

/// Returns the function that a case calls `module.NAME`.
pub(in crate::conformance) fn function(name: &str) -> Option<Function> {
    Some(match name {
        "numbers" => Function::from_packed(numbered),
        "asked" => Function::from_packed(|_| {
            // MOD-09: taking the list leaves an empty one for the next lookup.
            let searched = SEARCHED.take();
            Ok(serde_json::json!(searched).to_string().into())
        }),
        "environment" => Function::from_typed(environment),
        "mask" => Function::from_typed(mask),
        "host" => Function::from_typed(host),
        "register" => Function::from_packed(register),
        "address" => Function::from_typed(address),
        "require" => Function::from_typed(|module: Module, name: String| module.require(&name)),
        "save" => Function::from_typed(|module: Module| -> Result<Any, Error> {
            Ok(Bytes::new(&module.save_to_bytes()?).into())
        }),
        "hindrance" => Function::from_typed(|module: Module| {
            let own = module.implementation();
            own.and_then(|own| own.why_not_runnable())
        }),
        "memory" => Function::from_typed(memory),
        "loader" => Function::from_typed(|kind: String| {
            register_loader(&kind, |entry| Ok(sized(1000 + length(entry.payload))));
        }),
        "sizes" => Function::from_typed(sizes),
        "global_loader" => Function::from_typed(global_loader),
        "context" => Function::from_packed(in_context),
        "in_system" => Function::from_typed(in_system),
        "codes" => Function::from_packed(codes),
        "there_and_back" => Function::from_packed(there_and_back),
        "result" => Function::from_packed(result),
        "workspace" => Function::from_typed(workspace_of),
        "needing" => Function::from_packed(needing),
        "threads" => Function::from_typed(threads),
        "nothing_of_code" => Function::from_typed(nothing_of_code),
        "result_code" => Function::from_packed(result_code),
        "opened" => Function::from_typed(opened),
        #[cfg(unix)]
        "jumps" => {
            let (library, jumps) = opened_jumps()?;
            Function::from_typed(|| seen_through(library, jumps))
        }
        "system_slot" => Function::from_typed(system_slot),
        _ => return None,
    })
}

/// `numbers`: creates a module from its number and the names of its functions, which return the number. `asked` returns the numbers of the
/// modules that were searched for a function since the last call, as text.
fn numbered(args: &[AnyView<'_>]) -> Result<Any, Error> {
    let [number, names @ ..] = args else {
        return Err(Error::new("TypeError", "a number, and names"));
    };
    let number: i64 = cast(*number)?;
    let names = names
        .iter()
        .map(|name| Ok((cast::<String>(*name)?, number)));
    let functions = names.collect::<Result<_, Error>>()?;
    Ok(numbers(number, functions).into())
}

/// Implements `environment`: looks up a name in a module like compiled code of a release.
fn environment(module: Module, name: String, release: String) -> Result<Function, Error> {
    module.from_environment(&name, read(&release)?)
}

/// Implements `mask`: returns the properties of a kind in a release, with or without its runtime.
fn mask(kind: String, release: String, runs: bool) -> Result<i64, Error> {
    Ok(i64::from(property_mask(&kind, read(&release)?, runs)))
}

/// Implements `address`: returns the address for a prefix and a name in the system library, or `None` without such a symbol.
fn address(prefix: String, name: String) -> Result<Any, Error> {
    let found = system::SystemSymbols::new(&prefix).address(SymbolName::of(&name));
    let Some(found) = found else {
        return Ok(Any::none());
    };
    // SAFETY: a case only compares the address, and does not dereference it.
    Ok(unsafe { Any::handle(found.as_ptr()) })
}

/// Implements `sizes`: returns the results of the functions `size` of a module and of its imports.
fn sizes(module: Module) -> Result<Array, Error> {
    let sizes = module.walk().into_iter().filter_map(|module| {
        let size = module.function("size", false).transpose()?;
        Some(size.and_then(|size| size.call_packed(&[])))
    });
    Ok(Array::new(sizes.collect::<Result<Vec<Any>, Error>>()?))
}

/// Implements `codes`: returns the codes of arguments in the old convention.
fn codes(args: &[AnyView<'_>]) -> Result<Any, Error> {
    let passed = legacy::PackedArguments::of(args)?;
    let codes = passed.codes.iter().take(args.len());
    Ok(Array::new(codes.map(|code| Any::from(*code)).collect::<Vec<Any>>()).into())
}

/// Implements `there_and_back`: passes arguments through the old convention and returns them.
fn there_and_back(args: &[AnyView<'_>]) -> Result<Any, Error> {
    let passed = legacy::PackedArguments::of(args)?;
    let both = passed.values.iter().zip(&passed.codes).take(args.len());
    let arrived = both.map(|(value, code)| {
        // SAFETY: the value and its code belong together, and live through `passed` and `args`.
        let view = unsafe { legacy::view(*value, *code) };
        view.map(|view| view.to_any())
    });
    Ok(Array::new(arrived.collect::<Result<Vec<Any>, Error>>()?).into())
}

/// Implements `result`: passes a result through the old convention and returns it.
fn result(args: &[AnyView<'_>]) -> Result<Any, Error> {
    let [result] = args else {
        return Err(Error::new("TypeError", "a result"));
    };
    let mut kept = Any::default();
    let (value, code) = legacy::pass_result(result.to_any(), &mut kept)?;
    // SAFETY: the result and its code belong together; `kept` holds the data that they borrow.
    unsafe { legacy::take_result(value, code) }
}

/// Implements `workspace`: takes workspace of a device, and frees it.
fn workspace_of(device_type: i64, bytes: i64) -> Result<(), Error> {
    let number = |_| Error::new("ValueError", "a number that no device has");
    let failed = |text: String| Error::new("RuntimeError", text);
    let device_type = i32::try_from(device_type).map_err(number)?;
    let request = WorkspaceRequest {
        device_type,
        device_id: 0,
        bytes: u64::try_from(bytes).map_err(number)?,
        hint: (2, 32),
    };
    let memory = workspace::host().alloc(request).map_err(failed)?;
    // SAFETY: the memory was allocated above, on this thread.
    unsafe { workspace::host().free((device_type, 0), memory) }.map_err(failed)
}

/// Implements `needing`: loads a library in memory that needs these names.
fn needing(args: &[AnyView<'_>]) -> Result<Any, Error> {
    let names = args.iter().map(|name| cast::<String>(*name));
    let names = names.collect::<Result<Vec<String>, _>>()?;
    let library = names
        .iter()
        .fold(SymbolMemory::default(), |all, name| all.need(name));
    // SAFETY: the symbols are in memory, and contain no code.
    let loaded = unsafe { load_symbols(Arc::new(library), Strictness::Lenient) }?;
    Ok(loaded.module.into())
}

/// Implements `threads`: returns the number of threads of a launch, from the text of the environment, if any, and the number of processors.
fn threads(text: Option<String>, processors: i64) -> Result<i64, Error> {
    let processors = usize::try_from(processors);
    let processors = processors.map_err(|_| Error::new("ValueError", "less than no processors"))?;
    let threads = parallel::not_configured(text.as_deref(), processors);
    i64::try_from(threads).map_err(|_| Error::new("ValueError", "so many threads"))
}

/// Implements `nothing_of_code`: returns the value of a null handle with this code of the old convention.
fn nothing_of_code(code: i64) -> Result<Any, Error> {
    let code = i32::try_from(code).map_err(|_| Error::new("ValueError", "no code"))?;
    // SAFETY: null is a valid handle of every code.
    Ok(unsafe { legacy::view(TVMValue::ZERO, code) }?.to_any())
}

/// Implements `result_code`: returns the code of a result in the old convention.
fn result_code(args: &[AnyView<'_>]) -> Result<Any, Error> {
    let [result] = args else {
        return Err(Error::new("TypeError", "a result"));
    };
    let mut kept = Any::default();
    let (value, code) = legacy::pass_result(result.to_any(), &mut kept)?;
    // SAFETY: the result and its code belong together; the reference that they own is dropped here.
    drop(unsafe { legacy::take_result(value, code) }?);
    Ok(Any::from(code))
}

/// Implements `opened`: loads a library by the path of a file, or by a name that the dynamic linker searches for.
fn opened(path: String, is_file: bool) -> Result<Module, Error> {
    if !is_file {
        // SAFETY: as below.
        return unsafe { load_named(&path) };
    }
    // SAFETY: a case names a library of the system or its own, which keeps the contract of `load`.
    unsafe { load(path) }
}

/// Implements `jumps`: returns whether the dynamic linker finds a function of the C interface in the library with the trampolines: before
/// it is shown, shown twice, hidden once, and hidden twice. Then returns the error that the function sets on the thread.
#[cfg(unix)]
fn seen_through(library: &libloading::os::unix::Library, jumps: &'static Jumps) -> Array {
    type Raise = unsafe extern "C" fn(*const c_char, *const c_char);
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = lock(&TURN);
    let name = "TVMFFIErrorSetRaisedFromCStr";
    // SAFETY: the function of the C interface with this name has this type.
    let found = || unsafe { library.get::<Raise>(name) }.ok();
    let mut seen = vec![found().is_some()];
    let shown = [jumps.show(), jumps.show()];
    seen.push(found().is_some());
    let raise = found();
    for shown in shown {
        drop(shown);
        seen.push(found().is_some());
    }
    if let Some(raise) = raise {
        // SAFETY: both arguments are C strings.
        unsafe { raise(c"KeyError".as_ptr(), c"by a jump".as_ptr()) };
    }
    let left = take_raised().map(|error| error.to_string());
    let seen = seen.into_iter().map(Any::from);
    seen.chain([Any::from(left)]).collect()
}

/// Returns the library with the trampolines; `None` if memory cannot be executed.
#[cfg(unix)]
fn opened_jumps() -> Option<&'static (libloading::os::unix::Library, Jumps)> {
    static OPENED: OnceLock<Option<(libloading::os::unix::Library, Jumps)>> = OnceLock::new();
    OPENED.get_or_init(Jumps::open).as_ref()
}

/// Implements `system_slot`: registers a context of the system library in a segment, or in other memory. Returns whether it then holds the
/// module.
fn system_slot(in_segment: bool) -> Result<bool, Error> {
    static SLOT: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = lock(&TURN);
    // Leaked memory is in no segment: the case tests whether a loader writes to it.
    let elsewhere = Box::leak(Box::new(AtomicPtr::new(std::ptr::null_mut())));
    let slot: &AtomicPtr<c_void> = if in_segment { &SLOT } else { elsewhere };
    let prefix = fresh_prefix();
    let name = format!("{prefix}{}", Dialect::of(Layout::V0_22).context.text());
    // SAFETY: the slot has room for an address, and is never freed.
    unsafe { system::register(&name, slot.as_ptr().cast()) };
    let module = system_library(&prefix);
    // SAFETY: a null address removes the name.
    unsafe { system::register(&name, std::ptr::null_mut()) };
    Ok(slot.load(Ordering::SeqCst) == module?.context())
}

/// Implements `memory`: loads a library in memory from the name and the bytes of its blob.
fn memory(symbol: String, bytes: Vec<u8>) -> Result<Module, Error> {
    let named = |layout: &Layout| Dialect::of(*layout).blob.text() == symbol;
    let layout = Layout::ALL.into_iter().rev().find(named);
    let context = Dialect::of(layout.unwrap_or(Layout::V0_22)).context.text();
    let memory = SymbolMemory::default().data(&symbol, &bytes).slot(context);
    // SAFETY: the symbols are in memory, and contain no code.
    Ok(unsafe { load_symbols(Arc::new(memory), Strictness::Lenient) }?.module)
}

/// Returns the length of a payload as a value.
fn length(payload: &[u8]) -> i64 {
    i64::try_from(payload.len()).unwrap_or(i64::MAX)
}

/// Creates a module whose function `size` returns `number`.
fn sized(number: i64) -> Module {
    numbers(number, HashMap::from([("size".to_owned(), number)]))
}

/// Implements `global_loader`: registers a loader under a name; `loader` registers one for a kind. Each creates a module whose function
/// `size` returns the length of the payload, plus 1000 for `loader`. A stream is read to its end, and any other argument gives -1. With
/// `wrong` the loader returns no module.
fn global_loader(name: String, wrong: bool) -> Result<(), Error> {
    let loader = Function::from_packed(move |args| {
        let argument = args.first();
        let argument = argument.ok_or_else(|| Error::new("TypeError", "no argument"))?;
        if wrong {
            return Ok(Any::from("no module"));
        }
        let number = match (cast::<Vec<u8>>(*argument), cast::<*mut c_void>(*argument)) {
            (Ok(bytes), _) => length(&bytes),
            // SAFETY: a loader gets a pointer only for a stream.
            (_, Ok(stream)) => unsafe { read_stream(stream) }?,
            _ => -1,
        };
        Ok(sized(number).into())
    });
    registry::register(&name, loader, true)
}

/// Reads a C++ stream to its end, five bytes at a time. Returns a weighted sum of the bytes, followed by their number. Also checks that the
/// stream accepts no writes.
///
/// # Safety
///
/// `stream` must be a stream, whose vtable begins with `read`, `write` and two destructors.
unsafe fn read_stream(stream: *mut c_void) -> Result<i64, Error> {
    type Move = unsafe extern "C-unwind" fn(*mut c_void, *mut u8, usize) -> usize;
    type End = unsafe extern "C-unwind" fn(*mut c_void);
    // SAFETY: a stream begins with the address of its vtable.
    let table = unsafe { stream.cast::<*const (Move, Move, End, End)>().read() };
    // SAFETY: the vtable begins with these functions, by this contract.
    let (read, write, complete, deleting) = unsafe { table.read() };
    let mut all = Vec::new();
    loop {
        // A few bytes at a time, so that most payloads end with a short read.
        let mut room = [0; 5];
        // SAFETY: the arguments are the stream, and room for that many bytes.
        let count = unsafe { read(stream, room.as_mut_ptr(), room.len()) };
        let part = room.get(..count);
        let part = part.ok_or_else(|| Error::new("ValueError", "more than there is room for"))?;
        if part.is_empty() {
            break;
        }
        all.extend_from_slice(part);
    }
    // SAFETY: the arguments are the stream, and that many bytes.
    if unsafe { write(stream, all.as_mut_ptr(), all.len()) } != 0 {
        return Err(Error::new("ValueError", "a payload can be written"));
    }
    for end in [complete, deleting] {
        // SAFETY: the stream is not read again; its owner keeps its memory.
        unsafe { end(stream) };
    }
    // The sum changes if bytes are exchanged or read twice.
    let sum = |sum: i64, byte: &u8| (256 * sum + i64::from(*byte)) % 65521;
    Ok(1000 * all.iter().fold(0, sum) + length(&all))
}

/// Implements `context`: registers a slot once for each address of a list, and returns the value that a library then finds in it.
fn in_context(addresses: &[AnyView<'_>]) -> Result<Any, Error> {
    let name = format!("__{}slot", fresh_prefix());
    for address in addresses {
        let address = usize::try_from(cast::<i64>(*address)?);
        let address = address.map_err(|_| Error::new("ValueError", "a negative address"))?;
        // SAFETY: the library below has the slot, and contains no code.
        unsafe { context::register(&name, std::ptr::without_provenance_mut(address)) };
    }
    let library = Arc::new(SymbolMemory::default().slot(&name));
    // SAFETY: the symbols are in memory, and contain no code.
    let loaded = unsafe { load_symbols(library.clone(), Strictness::Lenient) }?;
    let written = library.written(&name).filter(|_| loaded.slots == [name]);
    let written = written.ok_or_else(|| Error::new("RuntimeError", "the slot is not filled"))?;
    let written = i64::try_from(written);
    Ok(written
        .map_err(|_| Error::new("ValueError", "no address with that name"))?
        .into())
}

/// The blob of a 0.22 library without other modules: its size; a row without imports, which has two ends; its kind.
static ALONE: [u8; 60] = *b"\x34\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x04\0\0\0\0\0\0\0_lib\0\0\0\0\0\0\0\0";

/// Implements `in_system`: loads a blob that is registered with the system library, in a segment or in other memory.
fn in_system(in_segment: bool) -> Result<Module, Error> {
    let prefix = fresh_prefix();
    let name = format!("{prefix}{}", Dialect::of(Layout::V0_22).blob.text());
    let elsewhere;
    let address = if in_segment {
        ALONE.as_ptr()
    } else {
        elsewhere = Box::new(ALONE);
        elsewhere.as_ptr()
    };
    let address = address.cast_mut().cast();
    // SAFETY: the address is that of a blob, which is static in the first case, and unregistered before it is freed in the other.
    unsafe { system::register(&name, address) };
    let module = system_library(&prefix);
    // SAFETY: a null address removes the name.
    unsafe { system::register(&name, std::ptr::null_mut()) };
    module
}

/// Parses a release.
fn read(release: &str) -> Result<Release, Error> {
    let release = release.parse();
    release.map_err(|wrong: ParseError| Error::new("ValueError", wrong.to_string()))
}

/// Implements `host`: returns whether workspace of the default source is aligned.
fn host(bytes: i64) -> Result<bool, Error> {
    let bytes = u64::try_from(bytes).map_err(|_| Error::new("ValueError", "less than no bytes"))?;
    let request = WorkspaceRequest {
        device_type: 1,
        device_id: 0,
        bytes,
        hint: (2, 32),
    };
    let failed = |text: String| Error::new("RuntimeError", text);
    let memory = workspace::host().alloc(request).map_err(failed)?;
    // SAFETY: the memory was allocated above, on this thread.
    unsafe { workspace::host().free((1, 0), memory) }.map_err(failed)?;
    Ok((memory.as_ptr() as usize).is_multiple_of(workspace::ALIGNMENT))
}

/// Implements `register`: registers an address in the system library. Returns whether the name had another address.
fn register(args: &[AnyView<'_>]) -> Result<Any, Error> {
    let [name, address] = args else {
        return Err(Error::new("TypeError", "a name and an address"));
    };
    let (name, address): (String, *mut c_void) = (cast(*name)?, cast(*address)?);
    // SAFETY: a case registers functions of the suite, which are never freed.
    Ok(unsafe { system::register(&name, address) }.into())
}

/// A module with functions that return numbers.
struct Numbers {
    /// Number under which searches of it are recorded.
    number: i64,
    /// Number that each function returns, by name.
    functions: HashMap<String, i64>,
}

thread_local! {
    /// Numbers of the modules that this thread searched, in order.
    static SEARCHED: RefCell<Vec<i64>> = const { RefCell::new(Vec::new()) };
}

impl ModuleKind for Numbers {
    fn kind(&self) -> &str {
        "numbers"
    }

    fn function(&self, _module: &Module, name: &str) -> Result<Option<Function>, Error> {
        SEARCHED.with_borrow_mut(|searched| searched.push(self.number));
        let number = self.functions.get(name).copied();
        Ok(number.map(|number| Function::from_packed(move |_| Ok(Any::from(number)))))
    }
}

/// Creates a module whose functions return the numbers of `functions`; searches of it are recorded under `number`.
pub(super) fn numbers(number: i64, functions: HashMap<String, i64>) -> Module {
    Module::new(Numbers { number, functions })
}
