//! Type information and vtables of `tvm::ffi::Error` and `tvm::ffi::ModuleObj`, in the layout of the Itanium C++ ABI.
//!
//! The type information of a derived C++ class refers to these. An exception handler finds its class by the name in them.

use super::modules::{clear_imports, import_module};
use super::{returned, throw};
use crate::function::{Error, ErrorKind};
use crate::module::cxx::throwing;
use crate::object::Array;
use crate::value::header::Header;
use crate::value::{Any, RawAny};
use std::ffi::{c_int, c_void};

unsafe extern "C-unwind" {
    fn __cxa_pure_virtual();
    #[link_name = "_ZTVN10__cxxabiv117__class_type_infoE"]
    static CLASS_TABLE: [usize; 4];
    #[link_name = "_ZTVN10__cxxabiv121__vmi_class_type_infoE"]
    static VMI_TABLE: [usize; 4];
    #[link_name = "_ZTISt9exception"]
    static STD_EXCEPTION: [usize; 2];
}

/// A word of a table: an address or a number.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Word(*const c_void);

// SAFETY: an address or a number in a table that is never written.
unsafe impl Sync for Word {}

impl Word {
    const fn number(value: usize) -> Word {
        Word(std::ptr::without_provenance(value))
    }

    const fn address_of<T>(target: *const T) -> Word {
        Word(target.cast())
    }

    const fn code(function: *const ()) -> Word {
        Word(function.cast())
    }
}

/// Returns the part of a C++ vtable that objects point to, after the offset to the top and the type information.
const fn body<T>(table: *const T) -> Word {
    Word(table.cast::<usize>().wrapping_add(2).cast())
}

/// Mangled name of the class.
#[unsafe(export_name = "_ZTSN3tvm3ffi5ErrorE")]
pub(crate) static ERROR_NAME: [u8; 17] = *b"N3tvm3ffi5ErrorE\0";
/// Mangled name of the class.
#[unsafe(export_name = "_ZTSN3tvm3ffi9ModuleObjE")]
pub(crate) static MODULE_NAME: [u8; 21] = *b"N3tvm3ffi9ModuleObjE\0";
static OBJECT_REF_TEXT: [u8; 21] = *b"N3tvm3ffi9ObjectRefE\0";
static OBJECT_TEXT: [u8; 18] = *b"N3tvm3ffi6ObjectE\0";

/// Returns two 32-bit fields of a type information as one word: flags and number of bases.
const fn flags_and_bases(flags: u32, bases: u32) -> Word {
    Word::number((bases as usize) << 32 | flags as usize)
}

/// Returns the entry for a public base at an offset in the class.
const fn public_base_at(offset: usize) -> Word {
    Word::number(offset << 8 | 2)
}

static OBJECT_REF_INFO: [Word; 2] = [
    body(&raw const CLASS_TABLE),
    Word::address_of(&raw const OBJECT_REF_TEXT),
];
static OBJECT_INFO: [Word; 2] = [
    body(&raw const CLASS_TABLE),
    Word::address_of(&raw const OBJECT_TEXT),
];

/// Type information of `tvm::ffi::Error`: an `ObjectRef` at 8 and a `std::exception` at 0.
#[unsafe(export_name = "_ZTIN3tvm3ffi5ErrorE")]
pub(crate) static ERROR_INFO: [Word; 7] = [
    // Two bases, one of them not at the start. The ABI uses its class for multiple bases here, although neither is virtual.
    body(&raw const VMI_TABLE),
    Word::address_of(&raw const ERROR_NAME),
    flags_and_bases(0, 2),
    Word::address_of(&raw const OBJECT_REF_INFO),
    // At 8, after the vtable pointer. `std::exception` has virtual functions and is therefore placed first, at any position in the list
    // of bases.
    public_base_at(8),
    Word::address_of(&raw const STD_EXCEPTION),
    public_base_at(0),
];

/// Vtable of `tvm::ffi::Error`.
#[unsafe(export_name = "_ZTVN3tvm3ffi5ErrorE")]
pub(crate) static ERROR_TABLE: [Word; 5] = [
    Word::number(0),
    Word::address_of(&raw const ERROR_INFO),
    Word::code(throwing::destroy as *const ()),
    Word::code(throwing::delete as *const ()),
    Word::code(throwing::what as *const ()),
];

/// Type information of `tvm::ffi::ModuleObj`: an `Object` at 8.
#[unsafe(export_name = "_ZTIN3tvm3ffi9ModuleObjE")]
pub(crate) static MODULE_INFO: [Word; 5] = [
    body(&raw const VMI_TABLE),
    Word::address_of(&raw const MODULE_NAME),
    // Only one base, but in the class for several bases: the class for one base cannot store an offset other than 0.
    flags_and_bases(0, 1),
    Word::address_of(&raw const OBJECT_INFO),
    public_base_at(8),
];

/// Vtable of the abstract class `tvm::ffi::ModuleObj`. Classes derived from it have their own copies of all functions except the last two.
#[unsafe(export_name = "_ZTVN3tvm3ffi9ModuleObjE")]
pub(crate) static MODULE_TABLE: [Word; 14] = [
    Word::number(0),
    Word::address_of(&raw const MODULE_INFO),
    Word::code(__cxa_pure_virtual as *const ()),
    // MOD-15: returns 0, as for a kind that is in no row.
    Word::code(base_property_mask as *const ()),
    // Functions that each class must define. The entry is the same as in C++, which aborts the process with a message.
    Word::code(__cxa_pure_virtual as *const ()),
    Word::code(__cxa_pure_virtual as *const ()),
    Word::code(base_no_text as *const ()),
    Word::code(base_no_text as *const ()),
    Word::code(base_write as *const ()),
    Word::code(base_formats as *const ()),
    Word::code(base_save as *const ()),
    Word::code(base_no_text as *const ()),
    Word::code(import_module as *const ()),
    Word::code(clear_imports as *const ()),
];

unsafe extern "C-unwind" fn base_property_mask(_: *mut c_void) -> c_int {
    0
}

unsafe extern "C-unwind" fn base_no_text(
    out: *mut RawAny,
    _: *mut c_void,
    _: *const RawAny,
) -> *mut RawAny {
    // SAFETY: `out` is the place of the result, as C++ calls it; None is the absent optional, and an empty string if one is needed.
    unsafe { returned(out, Any::none().into_raw()) }
}

unsafe extern "C-unwind" fn base_write(_: *mut c_void, _: *const RawAny, _: *const RawAny) {
    throw(Error::new(
        ErrorKind::Runtime,
        "this module does not support WriteToFile",
    ))
}

unsafe extern "C-unwind" fn base_save(_: *mut RawAny, _: *mut c_void) -> *mut RawAny {
    throw(Error::new(
        ErrorKind::Runtime,
        "this module does not support SaveToBytes",
    ))
}

unsafe extern "C-unwind" fn base_formats(
    out: *mut *mut Header,
    _: *mut c_void,
) -> *mut *mut Header {
    // SAFETY: `out` is the place of the result, as C++ calls it.
    unsafe { returned(out, Array::new(Vec::new()).into_object().into_raw()) }
}

/// Returns the vtable pointer of an exception of the class.
pub(super) const fn error_table() -> *const c_void {
    body(&raw const ERROR_TABLE).0
}
