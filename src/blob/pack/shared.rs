//! A shared library, made by the C compiler of the system.

use super::{Naming, Target, c_text, object};
use crate::blob::container;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

/// What goes into a shared library besides the blob.
#[derive(Clone, Debug, Default)]
pub struct LinkOptions {
    /// Object files, archives and sources of the host code, handed to the compiler as they are.
    pub inputs: Vec<PathBuf>,
    /// More arguments for the compiler, behind all others.
    pub options: Vec<OsString>,
    /// The compiler; `$CC`, or `cc`, where this is empty (`$CXX`, or `c++`, where there is C++ to compile).
    pub compiler: Option<OsString>,
}

/// Links `blob` (header included) and the inputs of `with` into the shared library `output`.
///
/// The library is written beside `output` and then renamed, so that a failure leaves what was there; before that it is
/// read back. The error has what the compiler printed.
///
/// # Errors
///
/// What the system answers for the files; what the compiler printed when it is missing or fails; and a library from which
/// `blob` does not read back.
pub fn shared(blob: &[u8], naming: &Naming, with: &LinkOptions, output: &Path) -> io::Result<()> {
    let scratch = Scratch::beside(output)?;
    let (part, source) = part(blob, naming)?;
    let part_path = scratch.path.join(part);
    std::fs::write(&part_path, source)?;
    let made = scratch.path.join("library");

    // BLOB-60: the text of a system library is C++, and a C compiler would not link what it needs.
    let cxx = std::iter::once(&part_path)
        .chain(&with.inputs)
        .any(|input| is_cxx(input));
    let mut command = Command::new(with.compiler.clone().unwrap_or_else(|| compiler(cxx)));
    command
        .args(["-shared", "-fPIC", "-o"])
        .arg(&made)
        .arg(&part_path);
    if cfg!(target_vendor = "apple") {
        // The runtime's functions are found when the library is loaded.
        command.args(["-undefined", "dynamic_lookup"]);
    }
    command.args(&with.inputs).args(&with.options);
    let name = command.get_program().to_string_lossy().into_owned();
    let result = command.output().map_err(|error| {
        io::Error::new(
            error.kind(),
            format!("cannot run the C compiler `{name}`: {error}; set CC to one that is there"),
        )
    })?;
    if !result.status.success() {
        let words = String::from_utf8_lossy(&result.stderr);
        return Err(io::Error::other(format!(
            "`{name}` failed ({}):\n{}",
            result.status,
            words.trim_end()
        )));
    }
    // BLOB-53: what a linker made is looked into as any other file, before it takes the name of a library that worked.
    read_back(&made, blob)?;
    std::fs::rename(&made, output)
}

/// The library that was linked is one in which the library binary is found: a linker may leave out what nothing refers to.
///
/// # Errors
///
/// A library that cannot be read, that breaks a rule, or that has no blob of these bytes.
fn read_back(made: &Path, blob: &[u8]) -> io::Result<()> {
    let bytes = std::fs::read(made)?;
    let file = container::open(&bytes).map_err(|broken| {
        io::Error::other(format!("the linked library does not read back: {broken}"))
    })?;
    if !file.blobs().any(|(_, found)| found.bytes == blob) {
        return Err(io::Error::other(
            "the library binary is not found in the linked library",
        ));
    }
    Ok(())
}

/// The blob as a file that the compiler takes: an object file where one can be written, otherwise C.
fn part(blob: &[u8], naming: &Naming) -> io::Result<(&'static str, Vec<u8>)> {
    // The object file first: a compiler takes far longer to read the bytes as text.
    let written = Target::host().map(|target| object(blob, naming, target));
    match written {
        Some(Ok(file)) => Ok(("devc.o", file)),
        // BLOB-67: no object file announces itself on this machine; the text does, as C++ (BLOB-60).
        _ if naming.register().is_some() => Ok(("devc.cc", c_text(blob, naming).into_bytes())),
        _ => Ok(("devc.c", c_text(blob, naming).into_bytes())),
    }
}

/// Whether the compiler takes the file for C++.
fn is_cxx(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    matches!(extension, Some("cc" | "cpp" | "cxx" | "C"))
}

/// The compiler that the environment names, or the usual one; a variable that is empty names none.
fn compiler(cxx: bool) -> OsString {
    let (variable, usual) = if cxx { ("CXX", "c++") } else { ("CC", "cc") };
    std::env::var_os(variable)
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| usual.into())
}

/// A directory for what is being made; gone when dropped.
struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// A new directory beside `output`, on the same file system, so that renaming moves no bytes.
    fn beside(output: &Path) -> io::Result<Scratch> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = output
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty());
        // Process and count keep runs at the same time apart; a folder that is there all the same is an error.
        let name = format!(".tvmspec-{}-{count}", std::process::id());
        let path = folder.unwrap_or(Path::new(".")).join(name);
        std::fs::create_dir(&path)?;
        Ok(Scratch { path })
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed is litter, not an error.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}
