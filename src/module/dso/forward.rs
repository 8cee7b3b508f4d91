//! Shows the C interface to libraries that the dynamic linker would not show it to.
//!
//! Code that a C compiler made calls `TVMFFIErrorSetRaisedFromCStrParts` and its like as symbols of the process (MOD-05).
//! They are among those where the program was linked with `-rdynamic`, or has opened this library with `RTLD_GLOBAL`. A Rust
//! program that depends on this crate does neither, nor does a program that opens the C library as `ctypes` does.
//!
//! So a small shared object of which every function jumps to one of ours is written into memory, and opened for all to see.
//! The dynamic linker finds these functions while a [`ShownExports`] lives, which is while it opens a library, and binds that library
//! at once. Otherwise they are hidden: a runtime that the process loads later has to find its own functions, not these.

use super::stub;
use crate::module::exports;
use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_LAZY, RTLD_NOW};
use std::ffi::c_void;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

/// How a library that is opened now reaches the C interface.
enum Reach {
    /// Its functions are symbols of the process.
    Process,
    /// By way of the functions that jump to them.
    Jumps(Jumps),
    /// Not at all: this is another machine, or memory cannot hold code that was written into it.
    Nothing,
}

/// The functions that jump to ours.
#[derive(Debug)]
pub(crate) struct Jumps {
    /// The head of its hash chain: with 0 there nothing is found.
    chain: &'static AtomicU32,
    /// How many [`ShownExports`] there are.
    shown: Mutex<usize>,
}

/// How libraries reach our C interface, found out once: a library is not opened before this is known (MOD-26).
fn reach() -> &'static Reach {
    static REACH: OnceLock<Reach> = OnceLock::new();
    REACH.get_or_init(|| {
        if is_visible() {
            Reach::Process
        } else {
            Jumps::open().map_or(Reach::Nothing, |(library, jumps)| {
                // It is never closed.
                std::mem::forget(library);
                Reach::Jumps(jumps)
            })
        }
    })
}

/// Whether a library that this process opens reaches the C interface.
#[cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]
pub(super) fn is_reachable() -> bool {
    !matches!(reach(), Reach::Nothing)
}

/// While one of these lives, the dynamic linker finds the jumps.
#[derive(Debug)]
#[must_use = "the exports are shown until it is dropped"]
pub(crate) struct ShownExports(&'static Jumps);

/// Shows the C interface to the dynamic linker; `None` when it sees it anyway, or never will.
pub(super) fn show() -> Option<ShownExports> {
    match reach() {
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
    /// The object, hidden, and the jumps in it while it is open.
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
        // SAFETY: the word is in the tables of the object that was just opened, aligned and mapped to be written; the
        // dynamic linker reads it and writes it no more.
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
        // 1 is the first symbol of the chain. Under the lock, so that the end of one load does not hide them from another.
        self.chain.store(u32::from(*shown > 0), Ordering::Release);
    }
}

/// Whether a look-up among the symbols of the process finds our functions.
fn is_visible() -> bool {
    const ONE: &str = "TVMFFIErrorSetRaisedFromCStrParts";
    let own = exports::find(ONE).map(|export| export.address());
    own.is_some() && address_in_process(ONE) == own
}

/// What a look-up among the symbols of the process finds.
pub(super) fn address_in_process(name: &str) -> Option<*mut c_void> {
    // SAFETY: the process itself is open, and stays open: nothing is initialized or ended.
    let process = unsafe { Library::open(None::<&Path>, RTLD_LAZY) }.ok()?;
    // SAFETY: only its address is taken.
    let seen = unsafe { process.get::<*const ()>(name) }.ok()?;
    Some(seen.as_raw_ptr())
}

/// Opens a shared object that is no file.
#[cfg(not(target_os = "linux"))]
fn in_memory(_bytes: &[u8]) -> Option<Library> {
    None
}

/// Opens a shared object that is no file.
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
    // First for systems that execute a file in memory only with the second flag, then for those that do not know that flag.
    let made = [CLOSE_ON_EXEC | EXECUTABLE, CLOSE_ON_EXEC]
        .into_iter()
        // SAFETY: a text and flags are what this call of the system takes.
        .map(|flags| unsafe { syscall(CREATE, NAME, flags) })
        .find(|made| *made >= 0)?;
    // SAFETY: the file was made for us just now.
    let mut file = unsafe { File::from_raw_fd(made.try_into().ok()?) };
    file.write_all(bytes).ok()?;
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let library = open(path.as_ref())?;
    // The dynamic linker knows libraries by their paths, so this number must not come to mean another file.
    std::mem::forget(file);
    Some(library)
}

fn open(path: &Path) -> Option<Library> {
    // SAFETY: it has no initializers, and jumps to functions of the types that their names promise.
    unsafe { Library::open(Some(path), RTLD_NOW | RTLD_GLOBAL) }.ok()
}
