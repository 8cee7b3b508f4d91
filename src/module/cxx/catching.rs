//! Calls a C++ function and catches its exceptions.
//!
//! Rust cannot do this: a C++ exception that reaches `catch_unwind` ends the process. A small trampoline in assembly therefore makes the
//! call. The personality of its frame stops every C++ exception there. The frame unwinds like any other, so that all C++ destructors run.
//!
//! Only for x86-64 Linux, where exceptions have the layout of the Itanium C++ ABI.

use crate::function::{Error, ErrorKind};
use crate::value::header::{Header, ObjectRef};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::null_mut;

type MachineWord = *mut c_void;

/// Calls `function` with up to four words. Returns the word that it returns, or its exception as an error.
///
/// # Safety
///
/// `function` follows the C calling convention, takes at most four words as arguments, and `args` are valid values for them.
pub(super) unsafe fn call(
    function: *const c_void,
    args: [MachineWord; 4],
) -> Result<MachineWord, Error> {
    let mut thrown: *mut Unwind = null_mut();
    // SAFETY: `function` follows the C calling convention and takes these words, by this contract. The frame catches every exception.
    let returned = unsafe { tvmspec_catching_call(function, args.as_ptr(), &raw mut thrown) };
    if thrown.is_null() {
        return Ok(returned);
    }
    // SAFETY: the landing stored an exception of C++ that was just caught, and has no other owner.
    Err(unsafe { error_of(thrown) })
}

// The third word, the place for the exception, is kept in rbx during the call, because every function preserves rbx and the unwinder
// restores it. After the call, rax contains the result. At the landing pad it contains the exception, which `personality` stored there.
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

/// The header of an exception, which is the same for every language.
#[repr(C, align(16))]
struct Unwind {
    /// Vendor and language as a number, so that the text is reversed in memory; the last byte is the variant.
    class: u64,
    cleanup: usize,
    private: [usize; 2],
}

/// Tells the unwinder how the frame of [`tvmspec_catching_call`] handles an exception. The frame stops every exception except two: the
/// forced unwinding of a cancelled thread, and a Rust panic, which only Rust may stop.
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
    // A cancelled thread unwinds by force, which must not be stopped. A Rust panic, or an exception of a third language, belongs to a
    // handler of that language further up the stack.
    if actions & FORCED != 0 || class & !0xff != GNU_CXX {
        return CONTINUE;
    }
    if actions & SEARCH != 0 {
        return HANDLER_FOUND;
    }
    // Exceptions that this frame does not stop returned above, so that the search ended at this frame.
    const RAX: c_int = 0;
    // SAFETY: the unwinder passes the context of our frame, whose landing pad expects the exception in rax.
    unsafe { _Unwind_SetGR(context, RAX, thrown.expose_provenance()) };
    // SAFETY: the landing is in the function of that frame.
    unsafe { _Unwind_SetIP(context, tvmspec_catching_landing as *const () as usize) };
    INSTALL_CONTEXT
}

/// Converts an exception to an error, and frees the exception.
///
/// The part before the unwinder's header has 80 bytes and begins with the type of the thrown object. The object follows the header. If
/// an exception was rethrown through `std::exception_ptr`, the first word of that part is the address of the object.
///
/// # Safety
///
/// `thrown` is a C++ exception that was caught, and that has no other owner.
unsafe fn error_of(thrown: *mut Unwind) -> Error {
    // SAFETY: `thrown` is an exception, by this contract. Exceptions of every language begin with the same header.
    let class = unsafe { (*thrown).class };
    let bytes = thrown.cast::<u8>();
    let object: *mut u8 = if class & 0xff == 1 {
        // SAFETY: for a rethrown exception, the first word of the part before the header is the address of the object.
        unsafe { bytes.wrapping_sub(80).cast::<*mut u8>().read() }
    } else {
        bytes.wrapping_add(size_of::<Unwind>())
    };
    let front = object.wrapping_sub(80 + size_of::<Unwind>());
    // SAFETY: the part before an exception begins with the type of the thrown object.
    let own = unsafe { front.cast::<CxxType>().read() };
    // SAFETY: the thrown object has that type, and is alive until `finish`.
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
    if let Some(object) = unsafe { find_subobject(own, object, b"N3tvm3ffi5ErrorE") } {
        let error = object.cast::<*mut Header>().wrapping_add(1);
        // SAFETY: in an exception of this class, a pointer to an error object follows the table.
        let error = unsafe { error.read() };
        if !error.is_null() {
            // SAFETY: the exception owns the error, which is therefore alive.
            let error = unsafe { ObjectRef::retain(error) };
            if let Ok(error) = Error::from_object(error) {
                return error;
            }
        }
    }
    // SAFETY: `object` is a live object of the type `own`, by this contract.
    if let Some(object) = unsafe { find_subobject(own, object, b"St9exception") } {
        type What = unsafe extern "C" fn(*mut u8) -> *const c_char;
        // SAFETY: an object of a class with virtual functions begins with a pointer to its table.
        let table = unsafe { object.cast::<*const What>().read() };
        // SAFETY: in the table, `what` follows two destructors.
        let what = unsafe { table.wrapping_add(2).read() };
        // SAFETY: `what` takes the object as its only argument.
        let what = unsafe { what(object) };
        if !what.is_null() {
            // SAFETY: `what` returns a C string that lives as long as the object.
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

/// C++ type information: a table, the name, and for a class with bases their description.
///
/// | bytes  | one public base at offset 0  | any other bases                          |
/// |--------|------------------------------|------------------------------------------|
/// | 16..24 | its type                     | flags, and number of bases, 4 bytes each |
/// | 24..40 |                              | the first base: its type and its place   |
type CxxType = *const MachineWord;

/// Returns the mangled name of a type. A leading star, which is removed, means that the name is not unique in the process.
///
/// # Safety
///
/// `of` is type information, which is valid as long as its library is loaded.
unsafe fn name_of<'a>(of: CxxType) -> &'a [u8] {
    // SAFETY: `of` is type information, by this contract, whose second word is the name.
    let name = unsafe { of.wrapping_add(1).cast::<*const c_char>().read() };
    // SAFETY: a C string, which stays as long as the type information.
    let name = unsafe { CStr::from_ptr(name) }.to_bytes();
    name.strip_prefix(b"*").unwrap_or(name)
}

/// Returns the address of the subobject of type `wanted` in `object`, which has the type `own`.
///
/// # Safety
///
/// `object` is a live object of the C++ type `own`.
unsafe fn find_subobject(own: CxxType, object: *mut u8, wanted: &[u8]) -> Option<*mut u8> {
    // SAFETY: `own` is type information, by this contract.
    if unsafe { name_of(own) } == wanted {
        return Some(object);
    }
    // SAFETY: type information begins with a pointer to the vtable of its class.
    let table = unsafe { own.cast::<*const CxxType>().read() };
    // SAFETY: the word before the functions of every table is the type information of the table's class.
    let form = unsafe { table.wrapping_sub(1).read() };
    // SAFETY: `form` is type information, as read above.
    match unsafe { name_of(form) } {
        b"N10__cxxabiv120__si_class_type_infoE" => {
            // SAFETY: for a single base at offset 0, the third word is its type.
            let base = unsafe { own.wrapping_add(2).cast::<CxxType>().read() };
            // SAFETY: an object of a class with a base at offset 0 begins with an object of the base.
            unsafe { find_subobject(base, object, wanted) }
        }
        b"N10__cxxabiv121__vmi_class_type_infoE" => {
            // SAFETY: for several bases, the second half of the third word is their number.
            let count = unsafe { own.cast::<u32>().wrapping_add(5).read() } as usize;
            (0..count).find_map(|base| {
                let base = own.wrapping_add(3 + 2 * base);
                // SAFETY: from the fourth word on, there are the type and the place of each base.
                let place = unsafe { base.cast::<isize>().wrapping_add(1).read() };
                // SAFETY: from the fourth word on, there are the type and the place of each base.
                let kind = unsafe { base.cast::<CxxType>().read() };
                // SAFETY: `place` states where the base is in an object of this class.
                let object = unsafe { base_at(object, place) };
                // SAFETY: `object` is now the address of an object of the base.
                unsafe { find_subobject(kind, object, wanted) }
            })
        }
        _ => None,
    }
}

/// Returns the address of a base of `object`. `place` states its offset. For a virtual base, it states where the vtable contains the
/// offset.
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
    // SAFETY: `place` states where the table contains the offset.
    let offset = unsafe { table.wrapping_offset(place >> 8).cast::<isize>().read() };
    object.wrapping_offset(offset)
}

/// Frees an exception in the same way as a C++ handler, so that the count of exceptions in flight stays correct. The C++ runtime is
/// loaded, because it threw the exception.
///
/// # Safety
///
/// `thrown` is a C++ exception that was caught, and is not used again.
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
    // SAFETY: pairs with `begin` above; the exception is not used again.
    unsafe { end() };
}
