//! Modules that C++ made: their virtual functions, called with whatever they throw caught.
//!
//! A result that owns something is written to a place whose address is passed in front of the module; anything else comes back
//! in a register.

use super::virtuals::ModuleVirtuals;
use crate::function::{Error, ErrorKind, Function};
use crate::module::Module;
use crate::object::sequence_of;
use crate::value::header::{Header, ObjectRef};
use crate::value::{Any, RawAny, bytes_bytes, str_bytes};
use std::cell::Cell;
use std::ffi::{CStr, c_char, c_void};
use std::mem::offset_of;
use std::sync::{Mutex, PoisonError};

/// A place in the table of virtual functions.
type VirtualOffset = usize;

/// The kind; empty where its function throws, since every caller needs a name to go on with.
pub(in crate::module) fn kind(module: &Module) -> String {
    // SAFETY: the function in this slot takes nothing behind the module.
    let Ok(text) = (unsafe { call(module, offset_of!(ModuleVirtuals, kind), []) }) else {
        return String::new();
    };
    // SAFETY: `kind` of a C++ module returns a C string that lives as long as the module.
    let text = unsafe { CStr::from_ptr(text.cast::<c_char>()) };
    text.to_string_lossy().into_owned()
}

/// The mask (MOD-15); 0, as of a kind in no row, where its function throws.
pub(in crate::module) fn property_mask(module: &Module) -> u32 {
    // SAFETY: the function in this slot takes nothing behind the module.
    let mask = unsafe { call(module, offset_of!(ModuleVirtuals, property_mask), []) };
    // An int lies in the lower half of the register.
    mask.map_or(0, |mask| mask.addr() as u32)
}

/// The own function `name`.
pub(in crate::module) fn function(module: &Module, name: &str) -> Result<Option<Function>, Error> {
    let made = object(module, offset_of!(ModuleVirtuals, function), Some(name))?;
    let no_function = |_| {
        let text = "a module returned something that is not a function";
        Error::new(ErrorKind::Type, text)
    };
    made.map(Function::from_object)
        .transpose()
        .map_err(no_function)
}

/// Whether the module itself has a function of this name.
pub(in crate::module) fn implements(module: &Module, name: &str) -> Result<bool, Error> {
    let name = Any::from(name);
    let name = std::ptr::from_ref(name.as_raw()).cast_mut().cast();
    // SAFETY: the function in this slot takes a text by its address.
    let answer = unsafe { call(module, offset_of!(ModuleVirtuals, implements), [name]) }?;
    // A C++ bool is the lowest byte of the register; what is above is not defined.
    Ok(answer.addr() as u8 != 0)
}

/// The documentation of a function, which few modules have.
pub(in crate::module) fn doc(module: &Module, name: &str) -> Result<Option<String>, Error> {
    let doc = value(module, offset_of!(ModuleVirtuals, doc), Some(name))?;
    Ok(text_of(&doc))
}

/// The metadata of a function as JSON.
pub(in crate::module) fn metadata(module: &Module, name: &str) -> Result<Option<String>, Error> {
    let metadata = value(module, offset_of!(ModuleVirtuals, metadata), Some(name))?;
    Ok(text_of(&metadata))
}

/// The source in a format; empty for what has none.
pub(in crate::module) fn source(module: &Module, format: &str) -> Result<String, Error> {
    let source = value(
        module,
        offset_of!(ModuleVirtuals, inspect_source),
        Some(format),
    )?;
    Ok(text_of(&source).unwrap_or_default())
}

/// The payload as a library stores it.
pub(in crate::module) fn save_to_bytes(module: &Module) -> Result<Vec<u8>, Error> {
    let bytes = value(module, offset_of!(ModuleVirtuals, save_to_bytes), None)?;
    let bytes = bytes_bytes(&bytes.view()).map(<[u8]>::to_vec);
    bytes.ok_or_else(|| {
        Error::new(
            ErrorKind::Type,
            "a module saved something that is not bytes",
        )
    })
}

/// Writes a file by the module's own function, which knows its formats.
pub(in crate::module) fn write_to_file(
    module: &Module,
    path: &str,
    format: &str,
) -> Result<(), Error> {
    let texts = [Any::from(path), Any::from(format)];
    let [path, format] = texts
        .each_ref()
        .map(|text| std::ptr::from_ref(text.as_raw()).cast_mut().cast());
    // SAFETY: the function in this slot takes two texts by their addresses.
    unsafe {
        call(
            module,
            offset_of!(ModuleVirtuals, write_to_file),
            [path, format],
        )
    }
    .map(drop)
}

/// The formats in which the module can be written to a file.
pub(in crate::module) fn write_formats(module: &Module) -> Result<Vec<String>, Error> {
    let made = object(module, offset_of!(ModuleVirtuals, write_formats), None)?;
    let made = made.map(Any::from).unwrap_or_default();
    let formats = sequence_of(made.view()).unwrap_or_default();
    Ok(formats.iter().filter_map(text_of).collect())
}

/// Adds an import behind those there are. The class rejects a cycle (MOD-10).
pub(in crate::module) fn import(module: &Module, other: &Module) -> Result<(), Error> {
    let mut handle = other.as_object().as_ptr();
    let handle: *mut c_void = (&raw mut handle).cast();
    let slot = offset_of!(ModuleVirtuals, import_module);
    // SAFETY: a `Module const&` is the address of a handle, which the function counts where it keeps it.
    alone(|| unsafe { call(module, slot, [handle]) }).map(drop)
}

/// Takes all imports away.
pub(in crate::module) fn clear_imports(module: &Module) -> Result<(), Error> {
    let slot = offset_of!(ModuleVirtuals, clear_imports);
    // SAFETY: no arguments.
    alone(|| unsafe { call(module, slot, []) }).map(drop)
}

/// Runs `body` while no other thread reads or changes imports of C++ modules through this crate: their array has no lock
/// of its own. What it calls may come here again.
pub(in crate::module) fn alone<T>(body: impl FnOnce() -> T) -> T {
    static LOCK: Mutex<()> = Mutex::new(());
    thread_local! {
        static HELD: Cell<bool> = const { Cell::new(false) };
    }
    /// Marks the end, also when `body` panics.
    struct EndOfLock;
    impl Drop for EndOfLock {
        fn drop(&mut self) {
            HELD.set(false);
        }
    }
    // MOD-10: an import looks for cycles, which reads the imports of this and other modules of C++ on the same thread.
    if HELD.get() {
        return body();
    }
    let _lock = LOCK.lock().unwrap_or_else(PoisonError::into_inner);
    HELD.set(true);
    let _release = EndOfLock;
    body()
}

fn text_of(value: &Any) -> Option<String> {
    let view = value.view();
    str_bytes(&view).map(|text| String::from_utf8_lossy(text).into_owned())
}

/// A function of at most one text that returns a value.
fn value(module: &Module, slot: VirtualOffset, text: Option<&str>) -> Result<Any, Error> {
    // None before the call: a function that throws leaves the place as it is, and it is read all the same.
    let mut place = RawAny::NONE;
    place_result(module, slot, (&raw mut place).cast(), text)?;
    // SAFETY: the function wrote an owned value there, or nothing, and then None is there.
    Ok(unsafe { Any::from_raw(place) })
}

/// The same that returns an object or nothing.
fn object(
    module: &Module,
    slot: VirtualOffset,
    text: Option<&str>,
) -> Result<Option<ObjectRef>, Error> {
    let mut place: *mut Header = std::ptr::null_mut();
    place_result(module, slot, (&raw mut place).cast(), text)?;
    // SAFETY: the function wrote an owned reference or null there, or nothing, and then null is there.
    Ok(unsafe { ObjectRef::from_nullable(place) })
}

fn place_result(
    module: &Module,
    slot: VirtualOffset,
    place: *mut c_void,
    text: Option<&str>,
) -> Result<(), Error> {
    let this = module.context();
    let text = text.map(Any::from);
    let text = text.as_ref().map_or(std::ptr::null(), |text| text.as_raw());
    // SAFETY: the result's place, the module, and a text by its address, which a function of none does not read.
    unsafe { invoke(module, slot, [place, this, text.cast_mut().cast(), NULL]) }.map(drop)
}

const NULL: *mut c_void = std::ptr::null_mut();

/// A function whose result comes back in a register.
///
/// # Safety
///
/// `args` are what the function in `slot` takes behind the module.
unsafe fn call<const N: usize>(
    module: &Module,
    slot: VirtualOffset,
    args: [*mut c_void; N],
) -> Result<*mut c_void, Error> {
    let mut words = [NULL; 4];
    let all = std::iter::once(module.context()).chain(args);
    words
        .iter_mut()
        .zip(all)
        .for_each(|(word, arg)| *word = arg);
    // SAFETY: the words are the module and `args`, which the function takes behind it.
    unsafe { invoke(module, slot, words) }
}

/// # Safety
///
/// `words` are what the function in `slot` takes.
#[cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]
unsafe fn invoke(
    module: &Module,
    slot: VirtualOffset,
    words: [*mut c_void; 4],
) -> Result<*mut c_void, Error> {
    // SAFETY: a module has a pointer to its table in front of its header.
    let table = unsafe { module.context().cast::<*const u8>().read() };
    // By the place in the table and not by name: the functions of a derived class have no symbols that are known here.
    let entry = table.wrapping_add(slot).cast::<*const c_void>();
    // SAFETY: the table has a function in every slot.
    let function = unsafe { entry.read() };
    // SAFETY: a C++ function in the C calling convention, called with the words that it takes.
    unsafe { super::catching::call(function, words) }
}

/// Elsewhere it is not documented how results that own something travel.
#[cfg(not(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64")))]
unsafe fn invoke(_: &Module, _: VirtualOffset, _: [*mut c_void; 4]) -> Result<*mut c_void, Error> {
    let text = "modules that C++ made are called on x86-64 Linux alone";
    Err(Error::new(ErrorKind::Runtime, text))
}
