//! Modules of C++: calls to their virtual functions, with exceptions caught.
//!
//! A result that owns something is written to a place whose address is passed before the module. Any other result is returned in a
//! register.

use super::vtable::ModuleVirtuals;
use crate::function::{Error, ErrorKind, Function};
use crate::module::Module;
use crate::object::sequence_of;
use crate::value::header::{Header, ObjectRef};
use crate::value::{Any, RawAny, bytes_bytes, str_bytes};
use std::cell::Cell;
use std::ffi::{CStr, c_char, c_void};
use std::mem::offset_of;
use std::sync::{Mutex, PoisonError};

/// Offset in the table of virtual functions.
type VirtualOffset = usize;

/// Returns the kind. If its function throws, returns an empty text, because every caller needs a name to continue.
pub(in crate::module) fn kind(module: &Module) -> String {
    // SAFETY: the function in this slot takes only the module.
    let Ok(text) = (unsafe { call(module, offset_of!(ModuleVirtuals, kind), []) }) else {
        return String::new();
    };
    // SAFETY: `kind` of a C++ module returns a C string that lives as long as the module.
    let text = unsafe { CStr::from_ptr(text.cast::<c_char>()) };
    text.to_string_lossy().into_owned()
}

/// Returns the property mask (MOD-15), or 0, like for an unknown kind, if its function throws.
pub(in crate::module) fn property_mask(module: &Module) -> u32 {
    // SAFETY: the function in this slot takes only the module.
    let mask = unsafe { call(module, offset_of!(ModuleVirtuals, property_mask), []) };
    // An int is in the lower half of the register.
    mask.map_or(0, |mask| mask.addr() as u32)
}

/// Returns the module's own function `name`.
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

/// Returns whether the module itself has a function with this name.
pub(in crate::module) fn implements(module: &Module, name: &str) -> Result<bool, Error> {
    let name = Any::from(name);
    let name = std::ptr::from_ref(name.as_raw()).cast_mut().cast();
    // SAFETY: the function in this slot takes a text by its address.
    let answer = unsafe { call(module, offset_of!(ModuleVirtuals, implements), [name]) }?;
    // A C++ bool is the lowest byte of the register; the other bytes are undefined.
    Ok(answer.addr() as u8 != 0)
}

/// Returns the documentation of a function, which few modules provide.
pub(in crate::module) fn doc(module: &Module, name: &str) -> Result<Option<String>, Error> {
    let doc = value(module, offset_of!(ModuleVirtuals, doc), Some(name))?;
    Ok(text_of(&doc))
}

/// Returns the metadata of a function as JSON.
pub(in crate::module) fn metadata(module: &Module, name: &str) -> Result<Option<String>, Error> {
    let metadata = value(module, offset_of!(ModuleVirtuals, metadata), Some(name))?;
    Ok(text_of(&metadata))
}

/// Returns the source in a format; empty if the module has none.
pub(in crate::module) fn source(module: &Module, format: &str) -> Result<String, Error> {
    let source = value(
        module,
        offset_of!(ModuleVirtuals, inspect_source),
        Some(format),
    )?;
    Ok(text_of(&source).unwrap_or_default())
}

/// Returns the payload as a library stores it.
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

/// Writes a file with the module's own function, which knows its formats.
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

/// Returns the formats in which the module can be written to a file.
pub(in crate::module) fn write_formats(module: &Module) -> Result<Vec<String>, Error> {
    let made = object(module, offset_of!(ModuleVirtuals, write_formats), None)?;
    let made = made.map(Any::from).unwrap_or_default();
    let formats = sequence_of(made.view()).unwrap_or_default();
    Ok(formats.iter().filter_map(text_of).collect())
}

/// Appends an import. The class rejects a cycle (MOD-10).
pub(in crate::module) fn import(module: &Module, other: &Module) -> Result<(), Error> {
    let mut handle = other.as_object().as_ptr();
    let handle: *mut c_void = (&raw mut handle).cast();
    let slot = offset_of!(ModuleVirtuals, import_module);
    // SAFETY: a `Module const&` is the address of a handle; the function takes its own reference if it keeps the module.
    run_exclusively(|| unsafe { call(module, slot, [handle]) }).map(drop)
}

/// Removes all imports.
pub(in crate::module) fn clear_imports(module: &Module) -> Result<(), Error> {
    let slot = offset_of!(ModuleVirtuals, clear_imports);
    // SAFETY: the function in this slot takes only the module.
    run_exclusively(|| unsafe { call(module, slot, []) }).map(drop)
}

/// Runs `body` while no other thread reads or changes imports of C++ modules through this crate, because their array has no lock.
/// `body` may call this function again.
pub(in crate::module) fn run_exclusively<T>(body: impl FnOnce() -> T) -> T {
    static LOCK: Mutex<()> = Mutex::new(());
    thread_local! {
        static HELD: Cell<bool> = const { Cell::new(false) };
    }
    /// Resets the flag on drop, also when `body` panics.
    struct EndOfLock;
    impl Drop for EndOfLock {
        fn drop(&mut self) {
            HELD.set(false);
        }
    }
    // MOD-10: an import checks for cycles, which reads the imports of this and other C++ modules on the same thread.
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

/// Calls a function that takes at most one text and returns a value.
fn value(module: &Module, slot: VirtualOffset, text: Option<&str>) -> Result<Any, Error> {
    // Initialized to None: a function that throws leaves the place unchanged, and it is read afterwards.
    let mut place = RawAny::NONE;
    place_result(module, slot, (&raw mut place).cast(), text)?;
    // SAFETY: the place holds an owned value that the function wrote, or still None.
    Ok(unsafe { Any::from_raw(place) })
}

/// Calls a function that takes at most one text and returns an object or null.
fn object(
    module: &Module,
    slot: VirtualOffset,
    text: Option<&str>,
) -> Result<Option<ObjectRef>, Error> {
    let mut place: *mut Header = std::ptr::null_mut();
    place_result(module, slot, (&raw mut place).cast(), text)?;
    // SAFETY: the place holds an owned reference or null that the function wrote, or still null.
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
    // SAFETY: these are the place of the result, the module, and the address of a text, which a function without a text does not read.
    unsafe { invoke(module, slot, [place, this, text.cast_mut().cast(), NULL]) }.map(drop)
}

const NULL: *mut c_void = std::ptr::null_mut();

/// Calls a function whose result is returned in a register.
///
/// # Safety
///
/// `args` are the arguments after the module that the function in `slot` takes.
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
    // SAFETY: the words are the module and `args`, which the function takes after it.
    unsafe { invoke(module, slot, words) }
}

/// # Safety
///
/// `words` are the arguments that the function in `slot` takes.
#[cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]
unsafe fn invoke(
    module: &Module,
    slot: VirtualOffset,
    words: [*mut c_void; 4],
) -> Result<*mut c_void, Error> {
    // SAFETY: a module has a pointer to its table before its header.
    let table = unsafe { module.context().cast::<*const u8>().read() };
    // Found by its offset in the table, not by its name: the symbols of a derived class's functions are unknown here.
    let entry = table.wrapping_add(slot).cast::<*const c_void>();
    // SAFETY: the table has a function in every slot.
    let function = unsafe { entry.read() };
    // SAFETY: the entry is a C++ function in the C calling convention, and the words are its arguments.
    unsafe { super::catching::call(function, words) }
}

/// Rejects the call. For other machines, the convention for results with a destructor is not documented.
#[cfg(not(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64")))]
unsafe fn invoke(_: &Module, _: VirtualOffset, _: [*mut c_void; 4]) -> Result<*mut c_void, Error> {
    let text = "modules that C++ made are called on x86-64 Linux alone";
    Err(Error::new(ErrorKind::Runtime, text))
}
