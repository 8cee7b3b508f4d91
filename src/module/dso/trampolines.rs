//! Makes the C interface visible to libraries for which the dynamic linker would not find it.
//!
//! Code from a C compiler calls `TVMFFIErrorSetRaisedFromCStrParts` and similar functions as symbols of the process (MOD-05). They are
//! visible only if the program was linked with `-rdynamic`, or has opened this library with `RTLD_GLOBAL`. A Rust program that depends on
//! this crate does neither, and neither does a program that opens the C library like `ctypes`.
//!
//! Therefore a small shared object is written into memory, in which every function jumps to one of ours. It is opened with global
//! visibility. The dynamic linker finds these functions only while a [`ShownExports`] lives. It lives while a library is opened, whose
//! functions are then bound immediately. Otherwise the functions are hidden, because a runtime that the process loads later must find
//! its own functions.

use super::stub;
use crate::module::exports;
use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_LAZY, RTLD_NOW};
use std::ffi::c_void;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

/// The way that a newly opened library finds the C interface.
enum Reach {
    /// As symbols of the process.
    Process,
    /// Through trampolines that jump to the functions.
    Jumps(Jumps),
    /// Not at all: the machine is not supported, or memory that was written cannot be executed.
    Nothing,
}

/// The trampolines to our functions.
#[derive(Debug)]
pub(crate) struct Jumps {
    /// Head of their hash chain: while it is 0, no trampoline is found.
    chain: &'static AtomicU32,
    /// Number of [`ShownExports`] that exist.
    shown: Mutex<usize>,
}

/// Returns how libraries find our C interface. Determined once, before the first library is opened (MOD-26).
fn export_reach() -> &'static Reach {
    static REACH: OnceLock<Reach> = OnceLock::new();
    REACH.get_or_init(|| {
        if is_visible() {
            Reach::Process
        } else {
            Jumps::open().map_or(Reach::Nothing, |(library, jumps)| {
                // The library is never closed.
                std::mem::forget(library);
                Reach::Jumps(jumps)
            })
        }
    })
}

/// Returns whether a library that this process opens finds the C interface.
#[cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]
pub(super) fn is_reachable() -> bool {
    !matches!(export_reach(), Reach::Nothing)
}

/// While a value of this type exists, the dynamic linker finds the trampolines.
#[derive(Debug)]
#[must_use = "the exports are shown until it is dropped"]
pub(crate) struct ShownExports(&'static Jumps);

/// Shows the C interface to the dynamic linker. Returns `None` if it always sees the interface, or never can.
pub(super) fn show() -> Option<ShownExports> {
    match export_reach() {
        Reach::Jumps(jumps) => Some(jumps.show()),
        Reach::Process | Reach::Nothing => None,
    }
}

impl Drop for ShownExports {
    fn drop(&mut self) {
        self.0.count(|shown| shown.saturating_sub(1));
    }
}

impl Jumps {
    /// Opens the object with hidden trampolines. They are valid while the library is open.
    pub(crate) fn open() -> Option<(Library, Jumps)> {
        let machine = stub::MACHINE?;
        let code = exports::all().iter().map(|export| {
            let address = export.address() as usize;
            (export.name, stub::jump(machine, address))
        });
        let code: Vec<(&str, [u8; 16])> = code.collect();
        let code = code.iter().map(|(name, code)| (*name, &code[..]));
        let stub = stub::library(machine, &[], &code.collect::<Vec<_>>());
        let library = in_memory(&stub.bytes)?;
        // SAFETY: only its address is taken.
        let first = unsafe { library.get::<*const ()>(exports::all().first()?.name) };
        let first = first.ok()?.as_raw_ptr() as usize;
        let chain = first.checked_sub(stub.code)? + stub::CHAIN_HEAD;
        // SAFETY: the word is in the tables of the object that was opened above, aligned and mapped writable; the dynamic linker reads it,
        // and no longer writes it.
        let chain = unsafe { AtomicU32::from_ptr(chain as *mut u32) };
        chain.store(0, Ordering::Release);
        let shown = Mutex::new(0);
        Some((library, Jumps { chain, shown }))
    }

    pub(crate) fn show(&'static self) -> ShownExports {
        self.count(|shown| shown + 1);
        ShownExports(self)
    }

    fn count(&self, change: impl FnOnce(usize) -> usize) {
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        *shown = change(*shown);
        // 1 is the first symbol of the chain. Stored under the lock, so that the end of one load does not hide the symbols from another.
        self.chain.store(u32::from(*shown > 0), Ordering::Release);
    }
}

/// Returns whether a lookup among the symbols of the process finds our functions.
fn is_visible() -> bool {
    const ONE: &str = "TVMFFIErrorSetRaisedFromCStrParts";
    let own = exports::find(ONE).map(|export| export.address());
    own.is_some() && address_in_process(ONE) == own
}

/// Returns the address that a lookup among the symbols of the process finds.
pub(super) fn address_in_process(name: &str) -> Option<*mut c_void> {
    // SAFETY: the process itself is open and stays open, so no initializer or finalizer runs.
    let process = unsafe { Library::open(None::<&Path>, RTLD_LAZY) }.ok()?;
    // SAFETY: only its address is taken.
    let seen = unsafe { process.get::<*const ()>(name) }.ok()?;
    Some(seen.as_raw_ptr())
}

/// Opens a shared object that is not in a file system; not supported on this machine.
#[cfg(not(target_os = "linux"))]
fn in_memory(_bytes: &[u8]) -> Option<Library> {
    None
}

/// Opens a shared object that is not in a file system.
#[cfg(target_os = "linux")]
fn in_memory(bytes: &[u8]) -> Option<Library> {
    use std::ffi::{c_char, c_long, c_uint};
    use std::os::fd::{AsRawFd, FromRawFd};
    const CREATE: c_long = if cfg!(target_arch = "x86_64") {
        319
    } else {
        279
    };
    const CLOSE_ON_EXEC: c_uint = 1;
    const EXECUTABLE: c_uint = 0x10;
    unsafe extern "C" {
        fn syscall(number: c_long, ...) -> c_long;
    }
    const NAME: *const c_char = c"tvmspec".as_ptr();
    // The second flag is required by systems that restrict executable memory files, and unknown to older ones.
    let made = [CLOSE_ON_EXEC | EXECUTABLE, CLOSE_ON_EXEC]
        .into_iter()
        // SAFETY: this system call takes a text and flags.
        .map(|flags| unsafe { syscall(CREATE, NAME, flags) })
        .find(|made| *made >= 0)?;
    // SAFETY: the file was created above, and has no other owner.
    let mut file = unsafe { File::from_raw_fd(made.try_into().ok()?) };
    file.write_all(bytes).ok()?;
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let library = open(path.as_ref())?;
    // The file stays open, because the dynamic linker identifies libraries by their paths: this number must not name another file later.
    std::mem::forget(file);
    Some(library)
}

fn open(path: &Path) -> Option<Library> {
    // SAFETY: the library has no initializers, and its functions have the types that their names promise.
    unsafe { Library::open(Some(path), RTLD_NOW | RTLD_GLOBAL) }.ok()
}
