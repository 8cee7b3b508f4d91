//! Type information and virtual tables of `tvm::ffi::Error` and `tvm::ffi::ModuleObj`, in the layout of the Itanium C++ ABI.
//!
//! A class that C++ derives from one of these names them in its own type information; a handler finds its class by the name in it.

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

// SAFETY: an address or a number of a table that is never written.
unsafe impl Sync for Word {}

impl Word {
    const fn number(value: usize) -> Word {
        Word(std::ptr::without_provenance(value))
    }

    const fn of<T>(target: *const T) -> Word {
        Word(target.cast())
    }

    const fn code(function: *const ()) -> Word {
        Word(function.cast())
    }
}

/// The part of a C++ table that objects point at: behind the offset to the top and the type information.
const fn body<T>(table: *const T) -> Word {
    Word(table.cast::<usize>().wrapping_add(2).cast())
}

/// Name of the class, as C++ mangles it.
#[unsafe(export_name = "_ZTSN3tvm3ffi5ErrorE")]
pub(crate) static ERROR_NAME: [u8; 17] = *b"N3tvm3ffi5ErrorE\0";
/// Name of the class, as C++ mangles it.
#[unsafe(export_name = "_ZTSN3tvm3ffi9ModuleObjE")]
pub(crate) static MODULE_NAME: [u8; 21] = *b"N3tvm3ffi9ModuleObjE\0";
static OBJECT_REF_TEXT: [u8; 21] = *b"N3tvm3ffi9ObjectRefE\0";
static OBJECT_TEXT: [u8; 18] = *b"N3tvm3ffi6ObjectE\0";

/// Two 32-bit fields of a type information as one word: flags and number of bases.
const fn flags_and_bases(flags: u32, bases: u32) -> Word {
    Word::number((bases as usize) << 32 | flags as usize)
}

/// Where a public base lies in the class.
const fn public_base_at(offset: usize) -> Word {
    Word::number(offset << 8 | 2)
}

static OBJECT_REF_INFO: [Word; 2] = [
    body(&raw const CLASS_TABLE),
    Word::of(&raw const OBJECT_REF_TEXT),
];
static OBJECT_INFO: [Word; 2] = [
    body(&raw const CLASS_TABLE),
    Word::of(&raw const OBJECT_TEXT),
];

/// Type information of `tvm::ffi::Error`: an `ObjectRef` at 8 and a `std::exception` at 0.
#[unsafe(export_name = "_ZTIN3tvm3ffi5ErrorE")]
pub(crate) static ERROR_INFO: [Word; 7] = [
    // Two bases, one of them not at the start: the class with multiple bases of the ABI, although neither is virtual.
    body(&raw const VMI_TABLE),
    Word::of(&raw const ERROR_NAME),
    flags_and_bases(0, 2),
    Word::of(&raw const OBJECT_REF_INFO),
    // At 8, behind the table: `std::exception` has virtual functions and takes the start, wherever it stands in the list of bases.
    public_base_at(8),
    Word::of(&raw const STD_EXCEPTION),
    public_base_at(0),
];

/// Virtual table of `tvm::ffi::Error`.
#[unsafe(export_name = "_ZTVN3tvm3ffi5ErrorE")]
pub(crate) static ERROR_TABLE: [Word; 5] = [
    Word::number(0),
    Word::of(&raw const ERROR_INFO),
    Word::code(throwing::destroy as *const ()),
    Word::code(throwing::delete as *const ()),
    Word::code(throwing::what as *const ()),
];

/// Type information of `tvm::ffi::ModuleObj`: an `Object` at 8.
#[unsafe(export_name = "_ZTIN3tvm3ffi9ModuleObjE")]
pub(crate) static MODULE_INFO: [Word; 5] = [
    body(&raw const VMI_TABLE),
    Word::of(&raw const MODULE_NAME),
    // One base, yet the class of tables for several: that for one base has no room for where it lies, which is not 0.
    flags_and_bases(0, 1),
    Word::of(&raw const OBJECT_INFO),
    public_base_at(8),
];

/// Virtual table of the abstract class `tvm::ffi::ModuleObj`. Classes derived from it bring their own copies of all but
/// the last two functions.
#[unsafe(export_name = "_ZTVN3tvm3ffi9ModuleObjE")]
pub(crate) static MODULE_TABLE: [Word; 14] = [
    Word::number(0),
    Word::of(&raw const MODULE_INFO),
    Word::code(__cxa_pure_virtual as *const ()),
    // MOD-15: 0, as for a kind that is in no row.
    Word::code(base_property_mask as *const ()),
    // What each class has to bring; the same function as in C++, which ends the process with a message.
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
    // SAFETY: `out` is the place of the result, as C++ calls it; None is the absent optional, and an empty string where
    // one is needed.
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

/// What an exception of the class begins with.
pub(super) const fn error_table() -> *const c_void {
    body(&raw const ERROR_TABLE).0
}
