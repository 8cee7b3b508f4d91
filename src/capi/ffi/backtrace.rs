//! The current backtrace, as the text in errors: most recent call first, up to the boundary to another language.

use crate::value::ByteArray;
use std::cell::RefCell;
use std::ffi::{CStr, c_char};

/// Maximum number of lines, unless `TVM_TRACEBACK_LIMIT` sets another.
const LIMIT: usize = 512;

thread_local! {
    static TRACE: RefCell<(Vec<u8>, ByteArray)> = const { RefCell::new((Vec::new(), ByteArray::EMPTY)) };
}

/// Returns the location of the caller, if both texts are given, and the calls above it. The text is valid until the next call on this
/// thread. Unless `cross_ffi_boundary` is set, it ends at a call through the interface or from Python, which adds its own part.
///
/// # Safety
/// `file` and `function` are C strings or null.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn TVMFFIBacktrace(
    file: *const c_char,
    line: i32,
    function: *const c_char,
    cross_ffi_boundary: i32,
) -> *const ByteArray {
    let named = !file.is_null() && !function.is_null();
    let mut trace = StackTrace::new(cross_ffi_boundary == 0);
    if named {
        // SAFETY: `file` is not null, so a C string, by this contract.
        let file = unsafe { CStr::from_ptr(file) };
        // SAFETY: `function` is not null, so a C string, by this contract.
        let function = unsafe { CStr::from_ptr(function) };
        trace.own_line(file.to_bytes(), line, function.to_bytes());
    }
    stack::walk(&mut |symbol| trace.frame(symbol, named));
    TRACE.with_borrow_mut(|(buffer, array)| {
        *buffer = trace.text;
        *array = ByteArray::of(buffer);
        &raw const *array
    })
}

struct StackTrace {
    text: Vec<u8>,
    lines: usize,
    limit: usize,
    stops_at_boundary: bool,
    /// True if the frame of `TVMFFIBacktrace` was passed.
    began: bool,
    /// True if the frame of its caller was passed.
    passed_caller: bool,
}

/// Symbols at the boundary to another language: calls through the interface, and the interpreter.
const BOUNDARY: [&[u8]; 5] = [
    b"TVMFFIFunctionCall",
    b"slot_tp_call",
    b"object_is_not_callable",
    b"_Py",
    b"PyObject",
];

/// Symbols of internal functions between a function and its caller.
const MACHINERY: [&[u8]; 6] = [
    b"tvm::ffi::Function",
    b"tvm::ffi::detail::",
    b"TVMFFIBacktrace",
    b"TVMFFIErrorSetRaisedFromCStr",
    b"__libc_",
    b"ffi_call_",
];

fn begins_with_any(text: &[u8], list: &[&[u8]]) -> bool {
    list.iter().any(|start| text.starts_with(start))
}

impl StackTrace {
    fn new(stops_at_boundary: bool) -> StackTrace {
        let limit = std::env::var("TVM_TRACEBACK_LIMIT").ok();
        StackTrace {
            text: Vec::new(),
            lines: 0,
            limit: limit
                .and_then(|limit| limit.parse::<u32>().ok())
                .map_or(LIMIT, |limit| limit as usize),
            stops_at_boundary,
            began: false,
            passed_caller: false,
        }
    }

    fn own_line(&mut self, file: &[u8], line: i32, function: &[u8]) {
        self.text.extend_from_slice(b"  File \"");
        self.text.extend_from_slice(file);
        self.text
            .extend_from_slice(format!("\", line {line}, in ").as_bytes());
        self.text.extend_from_slice(function);
        self.text.push(b'\n');
        self.lines += 1;
    }

    /// Processes a frame. Returns false to end the walk. Only the symbol of a frame is known, not its file.
    fn frame(&mut self, symbol: Option<&[u8]>, named: bool) -> bool {
        let symbol = symbol.unwrap_or_default();
        // The first frames, up to `TVMFFIBacktrace`, belong to the walk itself.
        if !self.began {
            self.began = symbol == b"TVMFFIBacktrace";
            return true;
        }
        // The caller's own location is already a line, so its frame would be a duplicate.
        if named && !self.passed_caller {
            self.passed_caller = true;
            return true;
        }
        let ends = self.stops_at_boundary && begins_with_any(symbol, &BOUNDARY);
        if ends || self.lines >= self.limit {
            return false;
        }
        if !symbol.is_empty() && !begins_with_any(symbol, &MACHINERY) {
            self.own_line(b"<unknown>", 0, symbol);
        }
        true
    }
}

#[cfg(any(all(target_os = "linux", target_env = "gnu"), target_os = "macos"))]
mod stack {
    use std::ffi::{CStr, c_char, c_int, c_void};

    #[repr(C)]
    struct SymbolInfo {
        file: *const c_char,
        base: *mut c_void,
        symbol: *const c_char,
        address: *mut c_void,
    }

    type Callback<'a> = &'a mut dyn FnMut(Option<&[u8]>) -> bool;

    // The unwinder that panics also use.
    unsafe extern "C" {
        fn _Unwind_Backtrace(
            step: unsafe extern "C" fn(*mut c_void, *mut c_void) -> c_int,
            data: *mut c_void,
        ) -> c_int;
        fn _Unwind_GetIP(context: *mut c_void) -> usize;
        fn dladdr(address: *const c_void, info: *mut SymbolInfo) -> c_int;
    }

    const GO_ON: c_int = 0;
    const END: c_int = 5;

    /// Calls `frame` with the symbol of each call, innermost first, until it returns false.
    #[inline(never)]
    pub(super) fn walk(mut frame: Callback<'_>) {
        let data = (&raw mut frame).cast();
        // SAFETY: `step` takes the callback that `data` points to, which lives for the call.
        unsafe { _Unwind_Backtrace(step, data) };
    }

    unsafe extern "C" fn step(context: *mut c_void, data: *mut c_void) -> c_int {
        // SAFETY: `data` is the address of the callback that `walk` passed; only the walk uses it until it ends.
        let frame = unsafe { &mut *data.cast::<Callback<'_>>() };
        // The return address follows the call, so the address before it belongs to the caller.
        // SAFETY: the unwinder passes `context` to its callback, valid for the call.
        let address = unsafe { _Unwind_GetIP(context) }.wrapping_sub(1);
        let mut info = SymbolInfo {
            file: std::ptr::null(),
            base: std::ptr::null_mut(),
            symbol: std::ptr::null(),
            address: std::ptr::null_mut(),
        };
        // SAFETY: `dladdr` does not dereference the addresses that it looks up, and writes only `info`.
        let code = unsafe { dladdr(std::ptr::without_provenance(address), &raw mut info) };
        if code == 0 || info.symbol.is_null() {
            return if frame(None) { GO_ON } else { END };
        }
        // SAFETY: a symbol is a C string that lives as long as its library.
        let symbol = unsafe { CStr::from_ptr(info.symbol) };
        let goes_on = with_plain_name(symbol, |name| frame(Some(name)));
        if goes_on { GO_ON } else { END }
    }

    #[cfg(not(all(feature = "cxx", target_arch = "x86_64", target_os = "linux")))]
    fn with_plain_name<T>(symbol: &CStr, then: impl FnOnce(&[u8]) -> T) -> T {
        then(symbol.to_bytes())
    }

    /// Demangles the name if it is a C++ name.
    #[cfg(all(feature = "cxx", target_arch = "x86_64", target_os = "linux"))]
    fn with_plain_name<T>(symbol: &CStr, then: impl FnOnce(&[u8]) -> T) -> T {
        unsafe extern "C" {
            fn __cxa_demangle(
                name: *const c_char,
                buffer: *mut c_char,
                size: *mut usize,
                status: *mut c_int,
            ) -> *mut c_char;
            fn free(memory: *mut c_void);
        }
        if !symbol.to_bytes().starts_with(b"_Z") {
            return then(symbol.to_bytes());
        }
        let mut status = 0;
        let none = std::ptr::null_mut();
        // SAFETY: a C string; the result is memory from `malloc` or null.
        let plain = unsafe { __cxa_demangle(symbol.as_ptr(), none, none.cast(), &raw mut status) };
        if plain.is_null() {
            return then(symbol.to_bytes());
        }
        // SAFETY: a C string, freed below.
        let result = then(unsafe { CStr::from_ptr(plain) }.to_bytes());
        // SAFETY: allocated by `malloc`, and no longer referenced.
        unsafe { free(plain.cast()) };
        result
    }
}

#[cfg(not(any(all(target_os = "linux", target_env = "gnu"), target_os = "macos")))]
mod stack {
    /// Does nothing, because this platform has no unwinder.
    pub(super) fn walk(_: &mut dyn FnMut(Option<&[u8]>) -> bool) {}
}
