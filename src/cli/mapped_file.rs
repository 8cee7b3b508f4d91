//! Mapped files. If a file becomes shorter while it is read, the command ends with a message and exit code 2. In the process of another
//! program, reads return zeros from then on, and the command fails.
//!
//! A page of a map after the new end of its file cannot be read, and the kernel sends SIGBUS. A private map does not help, because an
//! untouched page still comes from the file. Reading the file instead would copy a library of a gigabyte of which only headers are
//! needed. Therefore the signal handler ends the process, or puts zeros in the place of the map. Files below the limit of
//! [`input`](super::input) are read. SIGBUS at any other address, for example in the code of a model, has its usual effect.

use super::embedding;
use memmap2::Mmap;
use std::fs::File;
use std::io;

/// A file in memory. It may change while it is read, which every reader of untrusted bytes tolerates.
pub(super) struct MappedFile {
    #[cfg(unix)]
    watched: shortened::Watched,
    map: Mmap,
    /// Its name in messages.
    name: String,
}

impl MappedFile {
    /// Maps `file`. Returns `None` if too many files are mapped to watch another one. `name` is for the message.
    pub(super) fn new(file: &File, name: &str) -> io::Result<Option<MappedFile>> {
        // SAFETY: the map is read-only and private to this process. If another process shrinks or rewrites the file while
        // it is mapped, reads see other bytes or end the process; this program changes no file in place (see `output`)
        // and holds the map for one command only. Every reader of it tolerates any bytes.
        let map = unsafe { Mmap::map(file) }?;
        // On Windows, no process can shorten a mapped file.
        #[cfg(unix)]
        let Some(watched) = shortened::Watched::new(&map, name)? else {
            return Ok(None);
        };
        Ok(Some(MappedFile {
            #[cfg(unix)]
            watched,
            map,
            name: name.to_owned(),
        }))
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.map
    }

    /// Returns whether the file became shorter while it was read.
    pub(super) fn is_shortened(&self) -> bool {
        #[cfg(unix)]
        return self.watched.is_shortened();
        #[cfg(not(unix))]
        false
    }
}

impl Drop for MappedFile {
    fn drop(&mut self) {
        if self.is_shortened() {
            // The caller of an embedded command cannot ask its inputs.
            embedding::with_exchange(|exchange| exchange.shortened = Some(self.name.clone()));
        }
    }
}

#[cfg(unix)]
mod shortened {
    use super::embedding;
    use std::ffi::{c_int, c_void};
    use std::io;
    use std::mem;
    use std::ptr;
    use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
    use std::sync::{Mutex, OnceLock};

    /// A map as the signal handler sees it. A handler must not lock or allocate, so that the fields are atomic.
    struct Slot {
        /// Address of the first byte; 0 if the slot is free, [`TAKEN`] while it is being filled.
        start: AtomicUsize,
        /// Length in bytes.
        length: AtomicUsize,
        /// The text for stderr; null if the slot is free.
        message: AtomicPtr<String>,
        /// Set by the handler if zeros are in the place of the map.
        is_shortened: AtomicBool,
    }

    /// Marks a slot that is being filled. No map has this address.
    const TAKEN: usize = 1;

    /// The maps that are watched. A command maps only a few files at a time.
    static SLOTS: [Slot; 16] = [const {
        Slot {
            start: AtomicUsize::new(0),
            length: AtomicUsize::new(0),
            message: AtomicPtr::new(ptr::null_mut()),
            is_shortened: AtomicBool::new(false),
        }
    }; 16];

    /// A map for which SIGBUS ends the process with a message, until this value is dropped.
    pub(super) struct Watched(&'static Slot);

    impl Watched {
        /// Watches `map`. Returns `None` if there is no free slot.
        pub(super) fn new(map: &[u8], name: &str) -> io::Result<Option<Watched>> {
            install()?;
            let take = |slot: &&'static Slot| {
                let taken =
                    slot.start
                        .compare_exchange(0, TAKEN, Ordering::Acquire, Ordering::Relaxed);
                taken.is_ok()
            };
            let Some(slot) = SLOTS.iter().find(take) else {
                return Ok(None);
            };
            let message =
                format!("error: cannot read {name}: it became shorter while it was read\n");
            slot.message
                .store(Box::into_raw(Box::new(message)), Ordering::Relaxed);
            slot.is_shortened.store(false, Ordering::Relaxed);
            slot.length.store(map.len(), Ordering::Relaxed);
            slot.start.store(map.as_ptr().addr(), Ordering::Release);
            Ok(Some(Watched(slot)))
        }

        /// Returns whether zeros are in the place of the map.
        pub(super) fn is_shortened(&self) -> bool {
            self.0.is_shortened.load(Ordering::Relaxed)
        }
    }

    impl Drop for Watched {
        fn drop(&mut self) {
            self.0.start.store(TAKEN, Ordering::Relaxed);
            let message = self.0.message.swap(ptr::null_mut(), Ordering::Relaxed);
            // SAFETY: `new` made it of a box. The handler reads it only for an address of the map, which nothing reads any more.
            drop(unsafe { Box::from_raw(message) });
            self.0.start.store(0, Ordering::Release);
        }
    }

    /// The action for SIGBUS before the handler was installed.
    static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

    /// Installs the handler, once.
    fn install() -> io::Result<()> {
        static INSTALLING: Mutex<()> = Mutex::new(());
        let _installing = INSTALLING.lock();
        if BEFORE.get().is_some() {
            return Ok(());
        }
        // SAFETY: zeros are an action without flags whose mask is empty.
        let mut action: libc::sigaction = unsafe { mem::zeroed() };
        let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) = on_bus_error;
        action.sa_sigaction = handler as libc::sighandler_t;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        // SAFETY: zeros are an action without flags whose mask is empty; the call below writes the one before over it.
        let mut before: libc::sigaction = unsafe { mem::zeroed() };
        // SAFETY: both are actions, and the handler calls only what may be called in one.
        let result = unsafe { libc::sigaction(libc::SIGBUS, &raw const action, &raw mut before) };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
        let _ = BEFORE.set(before);
        Ok(())
    }

    /// Ends the process with a message if the address of the fault is in a map, or puts zeros there if the process is that of another
    /// program. For any other address, restores the previous action, which handles
    /// the signal when the same instruction causes it again.
    extern "C" fn on_bus_error(_: c_int, info: *mut libc::siginfo_t, _: *mut c_void) {
        // SAFETY: SA_SIGINFO promises it.
        let info = unsafe { &*info };
        // SAFETY: SIGBUS states the address.
        let address = unsafe { info.si_addr() }.addr();
        let slot = SLOTS.iter().find(|slot| {
            let start = slot.start.load(Ordering::Acquire);
            let length = slot.length.load(Ordering::Relaxed);
            start > TAKEN && (start..start.saturating_add(length)).contains(&address)
        });
        let Some(slot) = slot else {
            let before = BEFORE.get().map_or(ptr::null(), ptr::from_ref);
            // SAFETY: an action that was installed, or null, which changes nothing.
            unsafe { libc::sigaction(libc::SIGBUS, before, ptr::null_mut()) };
            return;
        };
        if !embedding::owns_process() && put_zeros(slot) {
            return;
        }
        let message = slot.message.load(Ordering::Relaxed);
        // SAFETY: the thread that was interrupted reads the map, so that its `Watched`, which owns the message, is alive.
        let message = unsafe { &*message };
        let _ = rustix::io::write(rustix::stdio::stderr(), message.as_bytes());
        // SAFETY: it runs nothing of this process any more.
        unsafe { libc::_exit(2) };
    }

    /// Maps zeros over the map of `slot`. Returns whether the system did so.
    fn put_zeros(slot: &Slot) -> bool {
        let start = ptr::without_provenance_mut(slot.start.load(Ordering::Relaxed));
        let length = slot.length.load(Ordering::Relaxed);
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
        // SAFETY: replaces only pages of the map, which stays mapped until its `MappedFile` is dropped, and whose readers accept any bytes.
        let mapped = unsafe { libc::mmap(start, length, libc::PROT_READ, flags, -1, 0) };
        if mapped == libc::MAP_FAILED {
            return false;
        }
        slot.is_shortened.store(true, Ordering::Relaxed);
        true
    }
}
