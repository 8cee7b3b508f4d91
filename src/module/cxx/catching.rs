//! Calls a function of C++ and catches what it throws.
//!
//! Rust cannot: an exception of C++ that reaches `catch_unwind` ends the process. So the call is made by a few
//! instructions of our own, whose frame has a personality that stops every exception there. The frame unwinds like any
//! other, so nothing on the C++ side is left undestroyed.
//!
//! For x86-64 Linux, where the layout of what is thrown is that of the Itanium C++ ABI.

use crate::function::{Error, ErrorKind};
use crate::value::header::{Header, ObjectRef};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::null_mut;

type MachineWord = *mut c_void;

/// Calls `function` with up to four words and returns its word, or what it throws as an error.
///
/// # Safety
///
/// `function` follows the C calling convention, reads no more than the four words as its arguments, and they are what it
/// expects.
pub(super) unsafe fn call(
    function: *const c_void,
    args: [MachineWord; 4],
) -> Result<MachineWord, Error> {
    let mut thrown: *mut Unwind = null_mut();
    // SAFETY: `function` follows the C calling convention and takes these words, by this contract; the frame catches all that is thrown.
    let returned = unsafe { tvmspec_catching_call(function, args.as_ptr(), &raw mut thrown) };
    if thrown.is_null() {
        return Ok(returned);
    }
    // SAFETY: the landing stored an exception of C++ that was just caught, and has no other owner.
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
        args: *const MachineWord,
        thrown: *mut *mut Unwind,
    ) -> MachineWord;
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

/// Answers the unwinder what the frame of [`tvmspec_catching_call`] does with an exception: it stops there, unless the
/// thread is being ended or it is a panic of Rust, which only Rust may stop.
unsafe extern "C" fn personality(
    _version: c_int,
    actions: c_int,
    class: u64,
    thrown: *mut Unwind,
    context: *mut c_void,
) -> c_int {
    const SEARCH: c_int = 1;
    const FORCED: c_int = 8;
    const HANDLER_FOUND: c_int = 6;
    const INSTALL_CONTEXT: c_int = 7;
    const CONTINUE: c_int = 8;
    const GNU_CXX: u64 = u64::from_be_bytes(*b"GNUCC++\0");
    // A thread that ends unwinds by force, and nothing may stop it; a panic of Rust, or an exception of a third language, is for
    // the handler of its own language further up.
    if actions & FORCED != 0 || class & !0xff != GNU_CXX {
        return CONTINUE;
    }
    if actions & SEARCH != 0 {
        return HANDLER_FOUND;
    }
    // What this frame does not stop ended above, so this is the frame that the search ended at.
    const RAX: c_int = 0;
    // SAFETY: the unwinder passes the context of our frame, whose landing takes the exception in rax.
    unsafe { _Unwind_SetGR(context, RAX, thrown.expose_provenance()) };
    // SAFETY: the landing is in the function of that frame.
    unsafe { _Unwind_SetIP(context, tvmspec_catching_landing as *const () as usize) };
    INSTALL_CONTEXT
}

/// The error that an exception is, which ends with this.
///
/// In front of the unwinder's part stand, at 80 bytes, the type of what was thrown; that itself comes behind it. An
/// exception that was thrown once more through `std::exception_ptr` is elsewhere, and its first word is the address.
///
/// # Safety
///
/// `thrown` is an exception of C++ that was caught, and that has no other owner.
unsafe fn error_of(thrown: *mut Unwind) -> Error {
    // SAFETY: `thrown` is an exception, by this contract, and begins as those of every language do.
    let class = unsafe { (*thrown).class };
    let bytes = thrown.cast::<u8>();
    let object: *mut u8 = if class & 0xff == 1 {
        // SAFETY: of one that was thrown again, the first word of the part in front says where it is.
        unsafe { bytes.wrapping_sub(80).cast::<*mut u8>().read() }
    } else {
        bytes.wrapping_add(size_of::<Unwind>())
    };
    let front = object.wrapping_sub(80 + size_of::<Unwind>());
    // SAFETY: the part in front of an exception begins with the type of what was thrown.
    let own = unsafe { front.cast::<CxxType>().read() };
    // SAFETY: what was thrown is an object of that type, and alive until `finish`.
    let error = unsafe { described(own, object) };
    // SAFETY: `thrown` was caught, by this contract, and is not used again.
    unsafe { finish(thrown) };
    error
}

/// # Safety
///
/// `object` is a live object of the C++ type `own`.
unsafe fn described(own: CxxType, object: *mut u8) -> Error {
    // SAFETY: `object` is a live object of the type `own`, by this contract.
    if let Some(object) = unsafe { part(own, object, b"N3tvm3ffi5ErrorE") } {
        let error = object.cast::<*mut Header>().wrapping_add(1);
        // SAFETY: behind the table an exception of this class has a pointer to an error object.
        let error = unsafe { error.read() };
        if !error.is_null() {
            // SAFETY: which it owns.
            let error = unsafe { ObjectRef::retain(error) };
            if let Ok(error) = Error::from_object(error) {
                return error;
            }
        }
    }
    // SAFETY: `object` is a live object of the type `own`, by this contract.
    if let Some(object) = unsafe { part(own, object, b"St9exception") } {
        type What = unsafe extern "C" fn(*mut u8) -> *const c_char;
        // SAFETY: an object of a class with virtual functions begins with a pointer to its table.
        let table = unsafe { object.cast::<*const What>().read() };
        // SAFETY: two destructors come in front of `what` in the table.
        let what = unsafe { table.wrapping_add(2).read() };
        // SAFETY: `what` takes the object.
        let what = unsafe { what(object) };
        if !what.is_null() {
            // SAFETY: and returns a C string that lives as long as the object.
            let text = unsafe { CStr::from_ptr(what) }.to_string_lossy();
            return Error::new(ErrorKind::Internal, text.into_owned());
        }
    }
    // SAFETY: `own` is type information, by this contract.
    let name = unsafe { name_of(own) };
    let name = String::from_utf8_lossy(name).into_owned();
    Error::new(
        ErrorKind::Internal,
        format!("an exception of the C++ type `{name}`"),
    )
}

/// Type information of C++: a table, the name, and for a class with bases what they are.
///
/// | bytes  | one public base at the front | any other bases                          |
/// |--------|------------------------------|------------------------------------------|
/// | 16..24 | its type                     | flags, and how many bases, 4 bytes each  |
/// | 24..40 |                              | the first base: its type, where it is    |
type CxxType = *const MachineWord;

/// The name of a type as it is mangled. A star in front means that the name is not unique in the process.
///
/// # Safety
///
/// `of` is type information, which stays while the library that brought it does.
unsafe fn name_of<'a>(of: CxxType) -> &'a [u8] {
    // SAFETY: `of` is type information, by this contract, whose second word is the name.
    let name = unsafe { of.wrapping_add(1).cast::<*const c_char>().read() };
    // SAFETY: a C string, which stays as long as the type information.
    let name = unsafe { CStr::from_ptr(name) }.to_bytes();
    name.strip_prefix(b"*").unwrap_or(name)
}

/// Where in `object`, which is an `own`, the part of the type `wanted` lies, if it has one.
///
/// # Safety
///
/// `object` is a live object of the C++ type `own`.
unsafe fn part(own: CxxType, object: *mut u8, wanted: &[u8]) -> Option<*mut u8> {
    // SAFETY: `own` is type information, by this contract.
    if unsafe { name_of(own) } == wanted {
        return Some(object);
    }
    // SAFETY: type information begins with a pointer to the table of its own class.
    let table = unsafe { own.cast::<*const CxxType>().read() };
    // SAFETY: in front of the functions of every table stands the type of what has the table.
    let form = unsafe { table.wrapping_sub(1).read() };
    // SAFETY: and that is type information.
    match unsafe { name_of(form) } {
        b"N10__cxxabiv120__si_class_type_infoE" => {
            // SAFETY: of one base at the front, the third word is its type.
            let base = unsafe { own.wrapping_add(2).cast::<CxxType>().read() };
            // SAFETY: an object of a class with one base at the front is one of the base.
            unsafe { part(base, object, wanted) }
        }
        b"N10__cxxabiv121__vmi_class_type_infoE" => {
            // SAFETY: of several bases, the second half of the third word counts them.
            let count = unsafe { own.cast::<u32>().wrapping_add(5).read() } as usize;
            (0..count).find_map(|base| {
                let base = own.wrapping_add(3 + 2 * base);
                // SAFETY: each of them has its type and where it is, from the fourth word on.
                let place = unsafe { base.cast::<isize>().wrapping_add(1).read() };
                // SAFETY: each of them has its type and where it is, from the fourth word on.
                let kind = unsafe { base.cast::<CxxType>().read() };
                // SAFETY: `place` says where the base lies in an object of this class.
                let object = unsafe { base_at(object, place) };
                // SAFETY: there lies an object of the base.
                unsafe { part(kind, object, wanted) }
            })
        }
        _ => None,
    }
}

/// The base of `object` that lies where `place` says: at an offset, or at one that the table of the object has, in front of
/// its functions, for a virtual base.
///
/// # Safety
///
/// `object` is a live object of a class with a base at `place`.
unsafe fn base_at(object: *mut u8, place: isize) -> *mut u8 {
    const VIRTUAL: isize = 1;
    if place & VIRTUAL == 0 {
        return object.wrapping_offset(place >> 8);
    }
    // SAFETY: an object with a virtual base begins with a pointer to its table.
    let table = unsafe { object.cast::<*const u8>().read() };
    // SAFETY: `place` says where in the table the offset stands.
    let offset = unsafe { table.wrapping_offset(place >> 8).cast::<isize>().read() };
    object.wrapping_offset(offset)
}

/// Ends an exception as a handler in C++ does, so that the count of those in flight stays right. The C++ runtime is there:
/// it threw.
///
/// # Safety
///
/// `thrown` is an exception of C++ that was caught, and is not used again.
unsafe fn finish(thrown: *mut Unwind) {
    use libloading::os::unix::{Library, RTLD_LAZY};
    type Begin = unsafe extern "C" fn(*mut Unwind) -> *mut c_void;
    type End = unsafe extern "C" fn();
    // SAFETY: the program itself, which is open.
    let process = unsafe { Library::open(None::<&std::ffi::OsStr>, RTLD_LAZY) };
    let found = process.as_ref().ok().and_then(|process| {
        // SAFETY: the C++ ABI has this type for the function.
        let begin = unsafe { process.get::<Begin>(b"__cxa_begin_catch\0") }.ok()?;
        // SAFETY: the C++ ABI has this type for the function.
        let end = unsafe { process.get::<End>(b"__cxa_end_catch\0") }.ok()?;
        Some((begin, end))
    });
    let Some((begin, end)) = found else {
        // SAFETY: the exception is caught and not used again, by this contract.
        return unsafe { _Unwind_DeleteException(thrown) };
    };
    // SAFETY: the exception is caught, by this contract, and nothing else has begun to handle it.
    unsafe { begin(thrown) };
    // SAFETY: ends what was just begun; the exception is not used again.
    unsafe { end() };
}
