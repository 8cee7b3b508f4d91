//! Throws an error to a C++ caller.
//!
//! The tables of the class `tvm::ffi::Error` are created here from those of libstdc++, if it is in this process. A program that does
//! not link libstdc++ can therefore throw as well. A C++ handler identifies the class by its name, so it accepts these tables.
//!
//! Only for x86-64 Linux, where exceptions have the layout of the Itanium C++ ABI.

use crate::function::Error;
use crate::value::header::{Header, ObjectRef};
use libloading::os::unix::{Library, RTLD_LAZY};
use std::cell::RefCell;
use std::ffi::{c_char, c_int, c_void};
use std::sync::OnceLock;

/// An exception in memory: the table of its class, and the error object that it owns.
#[repr(C)]
pub(crate) struct Exception {
    pub(crate) table: *const c_void,
    pub(crate) error: *mut Header,
}

pub(crate) unsafe extern "C-unwind" fn destroy(exception: *mut c_void) {
    // SAFETY: the C++ runtime calls this with an exception of this class, which has no other user.
    let exception = unsafe { &mut *exception.cast::<Exception>() };
    let error = std::mem::replace(&mut exception.error, std::ptr::null_mut());
    // SAFETY: the exception owned this reference, and no longer holds it.
    drop(unsafe { ObjectRef::from_nullable(error) });
}

pub(crate) unsafe extern "C-unwind" fn delete(exception: *mut c_void) {
    // SAFETY: the C++ runtime calls this instead of `destroy`, with the same argument.
    unsafe { destroy(exception) };
    // SAFETY: exceptions made with `new` come from the C allocator.
    unsafe { crate::value::heap::release(exception.cast()) };
}

/// Implements `std::exception::what`: returns the text of the error, which is valid until the same thread calls this function again.
pub(crate) unsafe extern "C-unwind" fn what(exception: *const c_void) -> *const c_char {
    thread_local! {
        static TEXT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    }
    // SAFETY: the C++ runtime calls this with a live exception of this class.
    let exception = unsafe { &*exception.cast::<Exception>() };
    // SAFETY: the exception owns a live error.
    let object = unsafe { ObjectRef::retain(exception.error) };
    let text = Error::from_object(object).map_or_else(|_| String::new(), |error| error.to_string());
    TEXT.with_borrow_mut(|buffer| {
        buffer.clear();
        buffer.extend(text.bytes().filter(|&byte| byte != 0));
        buffer.push(0);
        buffer.as_ptr().cast()
    })
}

/// Throws `error`. Returns it if libstdc++ is not in this process, because then nothing can catch it.
pub(super) fn throw(error: Error) -> Error {
    let Some(class) = class() else {
        return error;
    };
    // SAFETY: `__cxa_allocate_exception` returns memory for that many bytes, or ends the process.
    let memory = unsafe { (class.allocate)(size_of::<Exception>()) };
    let exception = Exception {
        table: (&raw const class.table[2]).cast(),
        error: error.into_object().into_raw(),
    };
    // SAFETY: the memory was allocated above for an exception.
    unsafe { memory.cast::<Exception>().write(exception) };
    // SAFETY: the memory is from `__cxa_allocate_exception`, and type information and destructor are those of the exception in it.
    unsafe { (class.throw)(memory, class.table[1] as *const c_void, destroy) }
}

type Allocate = unsafe extern "C-unwind" fn(usize) -> *mut c_void;
type Destroy = unsafe extern "C-unwind" fn(*mut c_void);
type Throw = unsafe extern "C-unwind" fn(*mut c_void, *const c_void, Destroy) -> !;

/// The functions and tables for throwing a `tvm::ffi::Error`.
struct Class {
    allocate: Allocate,
    throw: Throw,
    /// Offset to the top, type information, two destructors, `what`.
    table: [usize; 5],
}

/// Returns the class, as soon as libstdc++ is in the process, which a library may load at any time.
fn class() -> Option<&'static Class> {
    static CLASS: OnceLock<Class> = OnceLock::new();
    match CLASS.get() {
        None => Class::make().map(|made| CLASS.get_or_init(|| made)),
        known => known,
    }
}

impl Class {
    /// Looks up libstdc++ only if it is already in the process: without it, there is no frame that could catch an exception.
    fn make() -> Option<Class> {
        const NOT_TO_BE_LOADED: c_int = 4;
        // SAFETY: the library is already loaded, so that no initializer runs.
        let library =
            unsafe { Library::open(Some("libstdc++.so.6"), RTLD_LAZY | NOT_TO_BE_LOADED) };
        let library = library.ok()?;
        // SAFETY: the C++ ABI has this type for the function.
        let allocate = *unsafe { library.get::<Allocate>(b"__cxa_allocate_exception\0") }.ok()?;
        // SAFETY: the C++ ABI has this type for the function.
        let throw = *unsafe { library.get::<Throw>(b"__cxa_throw\0") }.ok()?;
        let table = |name: &[u8]| {
            // SAFETY: tables and type information are words.
            let table = unsafe { library.get::<*const usize>(name) };
            table.ok().map(|table| *table)
        };
        let simple = table(b"_ZTVN10__cxxabiv117__class_type_infoE\0")?;
        let several = table(b"_ZTVN10__cxxabiv121__vmi_class_type_infoE\0")?;
        let exception = table(b"_ZTISt9exception\0")?;
        // The library must stay loaded, because its functions are used from now on.
        std::mem::forget(library);
        // Objects point past the offset to the top and the type information.
        let body = |table: *const usize| table.wrapping_add(2).expose_provenance();
        let reference: &[usize; 2] = Box::leak(Box::new([
            body(simple),
            c"N3tvm3ffi9ObjectRefE".as_ptr().expose_provenance(),
        ]));
        const TWO_BASES: usize = 2 << 32;
        const PUBLIC: usize = 2;
        let information: &[usize; 7] = Box::leak(Box::new([
            body(several),
            c"N3tvm3ffi5ErrorE".as_ptr().expose_provenance(),
            TWO_BASES,
            reference.as_ptr().expose_provenance(),
            8 << 8 | PUBLIC,
            exception.expose_provenance(),
            PUBLIC,
        ]));
        Some(Class {
            allocate,
            throw,
            table: [
                0,
                information.as_ptr().expose_provenance(),
                destroy as *const () as usize,
                delete as *const () as usize,
                what as *const () as usize,
            ],
        })
    }
}
