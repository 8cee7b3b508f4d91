//! Linking of the files of a plan, with the C compiler of the system or a compiler of the caller.

use super::{ExportPlan, ObjectTarget, SymbolNaming, c_text, object};
use crate::blob::container;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

/// Options for linking, and additional input.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct LinkOptions {
    /// Object files, archives and sources of the host code, passed to the compiler unchanged.
    pub inputs: Vec<PathBuf>,
    /// More arguments for the compiler, after all others.
    pub options: Vec<OsString>,
    /// The compiler. The default is `$CC` or `cc`; with C++ sources, it is `$CXX` or `c++`. With `triple`, the default is `TRIPLE-gcc` or
    /// `TRIPLE-g++`.
    pub compiler: Option<OsString>,
    /// The target machine of the library, as an LLVM triple; the default is this machine.
    pub triple: Option<String>,
    /// The program that compiles LLVM's text and bitcode to objects; the default is `$LLC` or `llc`.
    pub llc: Option<OsString>,
    /// The directory in which the files of a plan are written and kept; the default is a temporary one.
    pub workspace: Option<PathBuf>,
}

/// One call of a compiler from the caller: the arguments of `fcompile` in `export_library`.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct LinkJob<'j> {
    /// The library to write. It is renamed after the call has succeeded and the library binary was found in it.
    pub output: &'j Path,
    /// The files of the plan, then those of [`LinkOptions::inputs`].
    pub inputs: &'j [PathBuf],
    /// [`LinkOptions::options`].
    pub options: &'j [OsString],
}

/// Links `blob` (header included) and the inputs of `with` into the shared library `output`.
///
/// The library is written next to `output`, read back, and then renamed, so that a failure leaves the old file unchanged. The error
/// contains the output of the compiler.
///
/// # Errors
///
/// Fails if a file cannot be read or written, if the compiler is missing or fails, or if `blob` is not found in the library.
pub fn shared(
    blob: &[u8],
    naming: &SymbolNaming,
    with: &LinkOptions,
    output: &Path,
) -> io::Result<()> {
    let plan = ExportPlan {
        files: vec![part(blob, naming, with)?],
        blob: Some(blob.to_vec()),
    };
    export_with(&plan, output, with, |job| link(job, with, LinkKind::Shared))
}

/// Writes the library of `plan` to `output`. The extension decides the form:
///
/// * `.so`, `.dylib`, `.dll`: a linked library
/// * `.o`, `.obj`: one object of all files
/// * `.tar`: an archive of the files
/// * `.c`, `.cc`, `.cpp`: one text, if all files are C
///
/// The library is written next to `output`, read back and then renamed, so that a failure leaves the old file unchanged.
///
/// # Errors
///
/// Fails for an unknown extension, and like [`shared`]. Returns BLOB-73 or BLOB-74 for files that a text or an archive cannot contain.
pub fn export(plan: &ExportPlan, output: &Path, with: &LinkOptions) -> io::Result<()> {
    let extension = output.extension().and_then(|extension| extension.to_str());
    match extension {
        Some("so" | "dylib" | "dll") => {
            export_with(plan, output, with, |job| link(job, with, LinkKind::Shared))
        }
        Some("o" | "obj") => {
            export_with(plan, output, with, |job| link(job, with, LinkKind::Object))
        }
        Some("tar") => {
            let archive = super::tar(&plan.files).map_err(io::Error::other)?;
            export_with(plan, output, with, |job| {
                std::fs::write(job.output, &archive)
            })
        }
        Some("c" | "cc" | "cpp") => {
            let text = plan.c_source().map_err(io::Error::other)?;
            export_with(plan, output, with, |job| std::fs::write(job.output, &text))
        }
        _ => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!(
                "the name {} does not state the form to write: it ends in .so, .o, .tar or .c",
                output.display()
            ),
        )),
    }
}

/// Exports like [`export`], but with `compile` instead of the system's compiler, for any extension.
///
/// # Errors
///
/// Fails if a file cannot be read or written, if `compile` fails, or if the library binary is not found in its output.
pub fn export_with(
    plan: &ExportPlan,
    output: &Path,
    with: &LinkOptions,
    compile: impl FnOnce(&LinkJob<'_>) -> io::Result<()>,
) -> io::Result<()> {
    let scratch = Scratch::create_beside(output)?;
    let folder = match &with.workspace {
        Some(workspace) => {
            std::fs::create_dir_all(workspace)?;
            workspace
        }
        None => &scratch.path,
    };
    let mut inputs = Vec::new();
    for (name, content) in &plan.files {
        let path = folder.join(name);
        WrittenFile::write_beside(&path, content)?.rename(&path)?;
        inputs.push(path);
    }
    inputs.extend(with.inputs.iter().cloned());
    let made = scratch.path.join("library");
    compile(&LinkJob {
        output: &made,
        inputs: &inputs,
        options: &with.options,
    })?;
    // BLOB-53: the linker's output is checked like any other file, before it replaces a library that worked.
    read_back(&made, plan.blob.as_deref())?;
    std::fs::rename(&made, output)
}

/// The output of a link.
#[derive(Clone, Copy, PartialEq)]
enum LinkKind {
    /// A shared library.
    Shared,
    /// One object of several.
    Object,
}

/// Calls the C compiler of the system, or the one in `with`.
fn link(job: &LinkJob<'_>, with: &LinkOptions, kind: LinkKind) -> io::Result<()> {
    let mut inputs = Vec::new();
    for input in job.inputs {
        inputs.push(if is_llvm(input) {
            assemble(input, job, with)?
        } else {
            input.clone()
        });
    }
    // BLOB-60: the text of a system library is C++, and a C compiler would not link the C++ runtime.
    let cxx = inputs.iter().any(|input| is_cxx(input));
    for (index, input) in inputs.iter_mut().enumerate() {
        // A relocatable link takes only objects. A C++ compiler would compile C as C++, whose functions have mangled names.
        let first = match kind {
            LinkKind::Object => is_source(input),
            LinkKind::Shared => cxx && is_c(input),
        };
        if first {
            let made = job.output.with_file_name(format!("part{index}.o"));
            let mut command = driver(with, is_cxx(input));
            if is_c(input) {
                command.args(["-x", "c"]);
            }
            command.args(["-fPIC", "-c", "-o"]).arg(&made).arg(&*input);
            finish(command.args(job.options), "C compiler", hint(with))?;
            *input = made;
        }
    }
    let mut command = driver(with, cxx);
    match kind {
        LinkKind::Shared => command.args(["-shared", "-fPIC", "-o"]),
        LinkKind::Object => command.args(["-r", "-nostdlib", "-o"]),
    };
    command.arg(job.output);
    let apple = |triple: &String| triple.contains("apple");
    let for_apple = with
        .triple
        .as_ref()
        .map_or(cfg!(target_vendor = "apple"), apple);
    if for_apple && kind == LinkKind::Shared {
        // The functions of the runtime are found when the library is loaded.
        command.args(["-undefined", "dynamic_lookup"]);
    }
    let command = command.args(&inputs).args(job.options);
    finish(command, "C compiler", hint(with))
}

/// Returns advice on how to choose another compiler. The environment is used only if neither a compiler nor a machine is given.
fn hint(with: &LinkOptions) -> &'static str {
    if with.compiler.is_none() && with.triple.is_none() {
        "set CC (CXX for C++) to one that is there"
    } else {
        "name one that is there (--cc)"
    }
}

/// Returns the compiler in `with`, or the usual one for its machine.
fn driver(with: &LinkOptions, cxx: bool) -> Command {
    let usual = || match &with.triple {
        // The name that distributions use for a cross compiler.
        Some(triple) => format!("{triple}-{}", if cxx { "g++" } else { "gcc" }).into(),
        None => compiler(cxx),
    };
    Command::new(with.compiler.clone().unwrap_or_else(usual))
}

/// Compiles LLVM's text or bitcode at `input` to an object file.
fn assemble(input: &Path, job: &LinkJob<'_>, with: &LinkOptions) -> io::Result<PathBuf> {
    let name = input.file_stem().unwrap_or_default();
    let mut object = job.output.with_file_name(name).into_os_string();
    object.push(".llvm.o");
    let variable = std::env::var_os("LLC").filter(|name| !name.is_empty());
    let llc = with
        .llc
        .clone()
        .or(variable)
        .unwrap_or_else(|| "llc".into());
    let mut command = Command::new(llc);
    command.args(["-filetype=obj", "-relocation-model=pic"]);
    if let Some(triple) = &with.triple {
        command.arg(format!("-mtriple={triple}"));
    }
    let hint = match with.llc {
        Some(_) => "name one that is there",
        None => "set LLC to one that is there",
    };
    let command = command.arg("-o").arg(&object).arg(input);
    finish(command, "LLVM compiler", hint)?;
    Ok(object.into())
}

/// Runs `command`. In the error, `what` is the purpose of the command, and `hint` is advice on how to choose another compiler.
fn finish(command: &mut Command, what: &str, hint: &str) -> io::Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let result = command.output().map_err(|error| {
        io::Error::new(
            error.kind(),
            format!("cannot run the {what} `{name}`: {error}; {hint}"),
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
    Ok(())
}

/// Checks that the linked library contains the library binary, because a linker may drop unreferenced data.
fn read_back(made: &Path, blob: Option<&[u8]>) -> io::Result<()> {
    let Some(blob) = blob else {
        return std::fs::metadata(made).map(drop);
    };
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

/// Packs the blob for the compiler: as an object file if one can be written, otherwise as C.
fn part(blob: &[u8], naming: &SymbolNaming, with: &LinkOptions) -> io::Result<(String, Vec<u8>)> {
    // An object file is preferred, because a compiler takes far longer to read the bytes as text.
    let machine = match &with.triple {
        Some(triple) => Some(ObjectTarget::from_triple(triple).map_err(io::Error::other)?),
        None => ObjectTarget::host(),
    };
    let written = machine.map(|target| object(blob, naming, target));
    match written {
        Some(Ok(file)) => Ok(("devc.o".to_owned(), file)),
        // BLOB-67: no object file can register itself on this machine; the text can, as C++ (BLOB-60).
        _ if naming.register().is_some() => {
            Ok(("devc.cc".to_owned(), c_text(blob, naming).into_bytes()))
        }
        _ => Ok(("devc.c".to_owned(), c_text(blob, naming).into_bytes())),
    }
}

/// Returns whether the compiler treats the file as C++.
fn is_cxx(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    matches!(extension, Some("cc" | "cpp" | "cxx" | "C"))
}

/// Returns whether the file is LLVM's text or bitcode.
fn is_llvm(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    matches!(extension, Some("ll" | "bc"))
}

/// Returns whether the file is C.
fn is_c(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "c")
}

/// Returns whether the file must be compiled before it is linked.
fn is_source(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    is_cxx(path) || is_c(path) || extension == Some("cu")
}

/// Returns the compiler from the environment, or the usual one. An empty variable counts as unset.
fn compiler(cxx: bool) -> OsString {
    let (variable, usual) = if cxx { ("CXX", "c++") } else { ("CC", "cc") };
    std::env::var_os(variable)
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| usual.into())
}

/// Writes a file next to `output` and renames it, so that a failure leaves the old file unchanged.
#[cfg(all(feature = "runtime", any(feature = "rpc", feature = "target")))]
pub(crate) fn write_whole(output: &Path, content: &[u8]) -> io::Result<()> {
    WrittenFile::write_beside(output, content)?.rename(output)
}

/// A written file that is not renamed to its final name yet; it is removed on drop.
pub(crate) struct WrittenFile {
    scratch: Scratch,
}

impl WrittenFile {
    /// Writes `content` next to `output`.
    pub(crate) fn write_beside(output: &Path, content: &[u8]) -> io::Result<WrittenFile> {
        let scratch = Scratch::create_beside(output)?;
        std::fs::write(scratch.path.join("file"), content)?;
        Ok(WrittenFile { scratch })
    }

    /// Renames the file to `output`.
    pub(crate) fn rename(self, output: &Path) -> io::Result<()> {
        std::fs::rename(self.scratch.path.join("file"), output)
    }
}

/// A temporary directory; it is removed on drop.
struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// Creates a directory next to `output`, on the same file system, so that renaming moves no bytes.
    fn create_beside(output: &Path) -> io::Result<Scratch> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let folder = output
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty());
        loop {
            // The process id and the count keep concurrent runs apart. An earlier process with this id may have left its directory.
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let name = format!(".tvmspec-{}-{count}", std::process::id());
            let path = folder.unwrap_or(Path::new(".")).join(name);
            match std::fs::create_dir(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => return made.map(|()| Scratch { path }),
            }
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A directory that cannot be removed is no error.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}
