//! An executable together with the bytes that it is read from.

use crate::function::{Error, ErrorKind};
use crate::module::Symbols;
use crate::release::Layout;
use crate::rule::{Findings, Violation};
use crate::vm::Executable;
use crate::wire::Cursor;
use std::collections::HashMap;
use std::sync::Arc;

/// An executable that owns, or keeps mapped, the bytes that it borrows from. Constants stay where they are until a
/// machine wants them.
pub struct LoadedExecutable {
    /// Borrows from `bytes`: the lifetime is one that this type alone keeps to.
    executable: Executable<'static>,
    /// Index into the function table; of functions of one name that of the last (PAY-95).
    by_name: HashMap<String, usize>,
    layout: Layout,
    bytes: &'static [u8],
    _owner: BytesOwner,
}

/// What keeps the bytes in place.
enum BytesOwner {
    /// The library that the bytes are mapped with.
    Library(#[allow(dead_code, reason = "held, and not read")] Arc<dyn Symbols>),
    // No box: moving one claims that no other pointer reads its contents.
    Memory(#[allow(dead_code, reason = "held, and not read")] Vec<u8>),
}

impl LoadedExecutable {
    /// The executable in `payload`, which lies in `library`.
    ///
    /// # Errors
    ///
    /// A rule of chapter payload, or VM-01 to VM-05.
    ///
    /// # Safety
    ///
    /// `payload` stays, unchanged, as long as a clone of `library` does: [`Symbols::data`] of it returned those bytes.
    pub unsafe fn from_library(
        payload: &[u8],
        layout: Layout,
        library: &Arc<dyn Symbols>,
    ) -> Result<LoadedExecutable, Violation> {
        // SAFETY: the bytes stay as long as `library`, of which `_owner` is a clone that goes with all that borrows from them.
        let bytes = unsafe { std::mem::transmute::<&[u8], &'static [u8]>(payload) };
        LoadedExecutable::new(bytes, layout, BytesOwner::Library(Arc::clone(library)))
    }

    /// The executable in `bytes`, as a `.vmexec` file of `layout`.
    ///
    /// # Errors
    ///
    /// What [`Executable::read`] rejects.
    pub fn from_bytes(
        bytes: impl Into<Box<[u8]>>,
        layout: Layout,
    ) -> Result<LoadedExecutable, Violation> {
        let owned = Vec::from(bytes.into());
        // SAFETY: the heap block stays where it is when the vector is moved, and unchanged, for nothing borrows `_owner`.
        let bytes = unsafe { std::mem::transmute::<&[u8], &'static [u8]>(&*owned) };
        LoadedExecutable::new(bytes, layout, BytesOwner::Memory(owned))
    }

    /// The executable in the file at `path`, as `layout` stores it.
    ///
    /// # Errors
    ///
    /// A RuntimeError with the path when the file cannot be read; as [`LoadedExecutable::from_bytes`].
    pub fn from_file(
        path: impl AsRef<std::path::Path>,
        layout: Layout,
    ) -> Result<LoadedExecutable, Error> {
        let path = path.as_ref();
        // Read and not mapped: a mapped file may change below what borrows from it.
        let bytes = std::fs::read(path).map_err(|error| {
            Error::new(ErrorKind::Runtime, format!("{}: {error}", path.display()))
        })?;
        Ok(LoadedExecutable::from_bytes(bytes, layout)?)
    }

    /// The executable in `bytes`, which `owner` keeps in place.
    fn new(
        bytes: &'static [u8],
        layout: Layout,
        owner: BytesOwner,
    ) -> Result<LoadedExecutable, Violation> {
        // Findings go nowhere: what loads an executable is no tool that reports.
        let mut cursor = Cursor::new(bytes);
        let executable = Executable::read(layout, &mut cursor, &mut Findings::default())?;
        // Of two functions with one name the last one counts (PAY-95).
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

    /// The executable. It borrows from this value, whatever its type says: do not let it outlive it.
    pub fn executable(&self) -> &Executable<'_> {
        &self.executable
    }

    /// The layout of the library that it came from.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// The bytes that it was read from.
    pub fn bytes(&self) -> &[u8] {
        self.bytes
    }

    /// Index of the function called `name`.
    pub fn function(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }
}
