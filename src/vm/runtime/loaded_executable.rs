//! An executable together with the bytes that it borrows from.

use crate::function::{Error, ErrorKind};
use crate::module::Symbols;
use crate::release::Layout;
use crate::rule::{Findings, Violation};
use crate::vm::Executable;
use crate::wire::Cursor;
use std::collections::HashMap;
use std::sync::Arc;

/// An executable that owns, or keeps mapped, the bytes that it borrows from. Constants are not copied until a machine needs them.
pub struct LoadedExecutable {
    /// The executable, which borrows from `bytes`. Its real lifetime is the lifetime of this value.
    executable: Executable<'static>,
    /// The index into the function table by name. If several functions have the same name, it is the index of the last one (PAY-95).
    by_name: HashMap<String, usize>,
    layout: Layout,
    bytes: &'static [u8],
    _owner: BytesOwner,
}

debug_fields!(LoadedExecutable: layout);

/// The owner of the bytes, which keeps them in place.
enum BytesOwner {
    /// The library that the bytes are mapped with.
    Library(#[allow(dead_code, reason = "held, and not read")] Arc<dyn Symbols>),
    // Not a box, because moving a box asserts that no other pointer reads its contents.
    Memory(#[allow(dead_code, reason = "held, and not read")] Vec<u8>),
}

impl LoadedExecutable {
    /// Reads the executable in `payload`, which is part of `library`.
    ///
    /// # Errors
    ///
    /// A rule of chapter payload, or VM-01 to VM-05.
    ///
    /// # Safety
    ///
    /// `payload` stays valid and unchanged as long as a clone of `library` does: its [`Symbols::data`] returned those bytes.
    pub unsafe fn from_library(
        payload: &[u8],
        layout: Layout,
        library: &Arc<dyn Symbols>,
    ) -> Result<LoadedExecutable, Violation> {
        // SAFETY: the bytes stay as long as `library`. `_owner` is a clone of it and is dropped together with everything that
        // borrows from them.
        let bytes = unsafe { std::mem::transmute::<&[u8], &'static [u8]>(payload) };
        LoadedExecutable::new(bytes, layout, BytesOwner::Library(Arc::clone(library)))
    }

    /// Reads the executable in `bytes`, as a `.vmexec` file of `layout`.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Executable::read`].
    pub fn from_bytes(
        bytes: impl Into<Box<[u8]>>,
        layout: Layout,
    ) -> Result<LoadedExecutable, Violation> {
        let owned = Vec::from(bytes.into());
        // SAFETY: moving the vector does not move its heap block. The block does not change, because nothing borrows `_owner`.
        let bytes = unsafe { std::mem::transmute::<&[u8], &'static [u8]>(&*owned) };
        LoadedExecutable::new(bytes, layout, BytesOwner::Memory(owned))
    }

    /// Reads the executable in the file at `path`, as `layout` stores it.
    ///
    /// # Errors
    ///
    /// Returns a RuntimeError with the path if the file cannot be read; otherwise as [`LoadedExecutable::from_bytes`].
    pub fn from_file(
        path: impl AsRef<std::path::Path>,
        layout: Layout,
    ) -> Result<LoadedExecutable, Error> {
        let path = path.as_ref();
        // Read and not mapped, because a mapped file may change while it is borrowed from.
        let bytes = std::fs::read(path).map_err(|error| {
            Error::new(ErrorKind::Runtime, format!("{}: {error}", path.display()))
        })?;
        Ok(LoadedExecutable::from_bytes(bytes, layout)?)
    }

    /// Reads the executable in `bytes`, which `owner` keeps in place.
    fn new(
        bytes: &'static [u8],
        layout: Layout,
        owner: BytesOwner,
    ) -> Result<LoadedExecutable, Violation> {
        // Findings are dropped, because loading an executable reports only errors.
        let mut cursor = Cursor::new(bytes);
        let executable = Executable::read(layout, &mut cursor, &mut Findings::default())?;
        // If two functions have one name, the last one counts (PAY-95).
        let functions = executable.code().functions.iter().enumerate();
        let by_name = functions
            .map(|(index, function)| (function.name.clone().into_owned(), index))
            .collect();
        Ok(LoadedExecutable {
            executable,
            by_name,
            layout,
            bytes,
            _owner: owner,
        })
    }

    /// Returns the executable. It borrows from this value and must not outlive it, although its type permits that.
    pub fn executable(&self) -> &Executable<'_> {
        &self.executable
    }

    /// Returns the layout of the library that it came from.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// Returns the bytes that it was read from.
    pub fn bytes(&self) -> &[u8] {
        self.bytes
    }

    /// Returns the index of the function called `name`.
    pub fn function(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }
}
