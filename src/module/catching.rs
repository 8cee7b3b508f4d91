//! Calls a function of C++ and catches what it throws.
//!
//! Rust cannot: an exception of C++ that reaches `catch_unwind` ends the process. So the call is made by a few
//! instructions of our own, whose frame has a personality that stops every exception there. Such a frame unwinds like any
//! other, so nothing on the C++ side is left undestroyed.
//!
//! For x86-64 Linux, where the layout of what is thrown is that of the Itanium C++ ABI.

use crate::function::Error;
use crate::value::header::{Header, ObjectRef};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::null_mut;

type Word = *mut c_void;

/// Calls `function` with up to four words and gives the word that it returns, or what it throws as an error.
///
/// # Safety
///
/// `function` follows the C calling convention, reads no more than the four words as its arguments, and they are what it
/// expects.
pub(super) unsafe fn call(function: *const c_void, args: [Word; 4]) -> Result<Word, Error> {
    let mut thrown: *mut Unwind = null_mut();
    // SAFETY: says the caller; the frame catches all that is thrown.
    let returned = unsafe { tvmspec_catching_call(function, args.as_ptr(), &raw mut thrown) };
    if thrown.is_null() {
        return Ok(returned);
    }
    // SAFETY: it was just caught, and nobody else has it.
    Err(unsafe { error_of(thrown) })
}

// The third word (where to put the exception) survives the call in rbx, which every function keeps and the unwinder
// restores. Behind the call, rax is what was returned; at the landing, the exception, as `personality` put it there.
std::arch::global_asm!(
    ".pushsection .text.tvmspec_catching_call,\"ax\",@progbits",
    ".globl tvmspec_catching_call",
    ".hidden tvmspec_catching_call",
    ".type tvmspec_catching_call,@function",
    "tvmspec_catching_call:",
    ".cfi_startproc",
    ".cfi_personality 0x1b, {personality}",
    "push rbp",
    ".cfi_def_cfa_offset 16",
    ".cfi_offset rbp, -16",
    "mov rbp, rsp",
    ".cfi_def_cfa_register rbp",
    "push rbx",
    "sub rsp, 8",
    ".cfi_offset rbx, -24",
    "mov rbx, rdx",
    "mov rax, rdi",
    "mov r10, rsi",
    "mov rdi, [r10]",
    "mov rsi, [r10 + 8]",
    "mov rdx, [r10 + 16]",
    "mov rcx, [r10 + 24]",
    "call rax",
    "2:",
    "add rsp, 8",
    "pop rbx",
    "pop rbp",
    ".cfi_remember_state",
    ".cfi_def_cfa rsp, 8",
    "ret",
    ".cfi_restore_state",
    ".globl tvmspec_catching_landing",
    ".hidden tvmspec_catching_landing",
    "tvmspec_catching_landing:",
    "mov [rbx], rax",
    "xor eax, eax",
    "jmp 2b",
    ".cfi_endproc",
    ".size tvmspec_catching_call, . - tvmspec_catching_call",
    ".popsection",
    personality = sym personality,
);

unsafe extern "C" {
    fn tvmspec_catching_call(
        function: *const c_void,
        args: *const Word,
        thrown: *mut *mut Unwind,
    ) -> Word;
    fn tvmspec_catching_landing();
    fn _Unwind_SetGR(context: *mut c_void, register: c_int, value: usize);
    fn _Unwind_SetIP(context: *mut c_void, address: usize);
    fn _Unwind_DeleteException(thrown: *mut Unwind);
}

/// What is thrown, as every language begins it.
#[repr(C, align(16))]
struct Unwind {
    /// Vendor and language, and in the last byte which form of theirs: a number, so the text runs backwards in memory.
    class: u64,
    cleanup: usize,
    private: [usize; 2],
}

/// Says to the unwinder what the frame of [`tvmspec_catching_call`] does with an exception: it stops there, unless the
/// thread is being ended or it is a panic of Rust, which only Rust may stop.
unsafe extern "C" fn personality(
    _version: c_int,
    actions: c_int,
    class: u64,
    thrown: *mut Unwind,
    context: *mut c_void,
) -> c_int {
    const SEARCH: c_int = 1;
    const HANDLER_FRAME: c_int = 4;
    const FORCED: c_int = 8;
    const HANDLER_FOUND: c_int = 6;
    const INSTALL_CONTEXT: c_int = 7;
    const CONTINUE: c_int = 8;
    const GNU_CXX: u64 = u64::from_be_bytes(*b"GNUCC++\0");
    if actions & FORCED != 0 || class & !0xff != GNU_CXX {
        return CONTINUE;
    }
    if actions & SEARCH != 0 {
        return HANDLER_FOUND;
    }
    if actions & HANDLER_FRAME == 0 {
        return CONTINUE;
    }
    const RAX: c_int = 0;
    // SAFETY: the context is that of our frame; the landing takes the exception in rax.
    unsafe {
        _Unwind_SetGR(context, RAX, thrown.expose_provenance());
        _Unwind_SetIP(context, tvmspec_catching_landing as *const () as usize);
    }
    INSTALL_CONTEXT
}

/// The error that an exception is, which ends with this.
///
/// In front of the unwinder's part stand, at 80 bytes, the type of what was thrown; that itself stands behind it. An
/// exception that was thrown once more through `std::exception_ptr` stands elsewhere, and its first word says where.
unsafe fn error_of(thrown: *mut Unwind) -> Error {
    // SAFETY: an exception of C++, in the layout above.
    unsafe {
        let again = (*thrown).class & 0xff == 1;
        let front = thrown.cast::<u8>().sub(80);
        let object: *mut u8 = match again {
            true => front.cast::<*mut u8>().read(),
            false => thrown.cast::<u8>().add(size_of::<Unwind>()),
        };
        let front = object.sub(80 + size_of::<Unwind>());
        let error = described(front.cast::<Type>().read(), object);
        finish(thrown);
        error
    }
}

/// # Safety
///
/// `object` is a live object of the C++ type `own`.
unsafe fn described(own: Type, object: *mut u8) -> Error {
    // SAFETY: says the caller; an object is of the types that were found in it.
    unsafe {
        if let Some(object) = part(own, object, b"N3tvm3ffi5ErrorE") {
            // Behind the table such an exception owns an error object.
            let error = object.cast::<*mut Header>().add(1).read();
            if let Some(Ok(error)) =
                (!error.is_null()).then(|| Error::from_object(ObjectRef::retain(error)))
            {
                return error;
            }
        }
        if let Some(object) = part(own, object, b"St9exception") {
            // Two destructors stand in front of `what` in the table.
            type What = unsafe extern "C" fn(*mut u8) -> *const c_char;
            let what = object.cast::<*const What>().read().add(2).read()(object);
            if !what.is_null() {
                let text = CStr::from_ptr(what).to_string_lossy();
                return Error::new("InternalError", text.into_owned());
            }
        }
        let name = String::from_utf8_lossy(name_of(own)).into_owned();
        Error::new(
            "InternalError",
            format!("an exception of the C++ type `{name}`"),
        )
    }
}

/// Type information of C++: a table, the name, and for a class with bases what they are.
///
/// | bytes  | one public base at the front | any other bases                          |
/// |--------|------------------------------|------------------------------------------|
/// | 16..24 | its type                     | flags, and how many bases, 4 bytes each  |
/// | 24..40 |                              | the first base: its type, where it is    |
type Type = *const Word;

/// The name of a type as it is mangled. A star in front says that the name is not unique in the process.
///
/// # Safety
///
/// `of` is type information, which stays while the library that brought it does.
unsafe fn name_of<'a>(of: Type) -> &'a [u8] {
    // SAFETY: says the caller.
    let name = unsafe { CStr::from_ptr(of.add(1).cast::<*const c_char>().read()) };
    let name = name.to_bytes();
    name.strip_prefix(b"*").unwrap_or(name)
}

/// Where in `object`, which is an `own`, the part of the type `wanted` lies, if it has one.
///
/// # Safety
///
/// `object` is a live object of the C++ type `own`.
unsafe fn part(own: Type, object: *mut u8, wanted: &[u8]) -> Option<*mut u8> {
    // SAFETY: type information in the layout above. In front of the functions of every table stand the type of what has
    // the table, and before that other offsets, such as those of virtual bases.
    unsafe {
        if name_of(own) == wanted {
            return Some(object);
        }
        let form = own.cast::<*const Type>().read().sub(1).read();
        match name_of(form) {
            b"N10__cxxabiv120__si_class_type_infoE" => {
                part(own.add(2).cast::<Type>().read(), object, wanted)
            }
            b"N10__cxxabiv121__vmi_class_type_infoE" => {
                const VIRTUAL: isize = 1;
                let count = own.cast::<u32>().add(5).read() as usize;
                (0..count).find_map(|base| {
                    let base = own.add(3 + 2 * base);
                    let place = base.cast::<isize>().add(1).read();
                    let offset = match place & VIRTUAL {
                        0 => place >> 8,
                        _ => {
                            let table = object.cast::<*const u8>().read();
                            table.offset(place >> 8).cast::<isize>().read()
                        }
                    };
                    part(base.cast::<Type>().read(), object.offset(offset), wanted)
                })
            }
            _ => None,
        }
    }
}

/// Ends an exception as a handler in C++ does, so that the count of those in flight stays right. The C++ runtime is there:
/// it threw.
unsafe fn finish(thrown: *mut Unwind) {
    use libloading::os::unix::{Library, RTLD_LAZY};
    type Begin = unsafe extern "C" fn(*mut Unwind) -> *mut c_void;
    type End = unsafe extern "C" fn();
    // SAFETY: the program itself, which is open.
    let process = unsafe { Library::open(None::<&std::ffi::OsStr>, RTLD_LAZY) };
    let (begin, end) = match &process {
        // SAFETY: the names are those of the C++ ABI, and so are the types.
        Ok(process) => unsafe {
            (
                process.get::<Begin>(b"__cxa_begin_catch\0").ok(),
                process.get::<End>(b"__cxa_end_catch\0").ok(),
            )
        },
        Err(_) => (None, None),
    };
    // SAFETY: the exception is caught and described; it is not used again.
    unsafe {
        match (begin, end) {
            (Some(begin), Some(end)) => {
                begin(thrown);
                end();
            }
            _ => _Unwind_DeleteException(thrown),
        }
    }
}
