//! Libraries of the files of a plan, made by the C compiler of the system or by one that the caller brings.

use super::{ExportPlan, ObjectTarget, SymbolNaming, c_text, object};
use crate::blob::container;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

/// How a library is linked, and what goes into it besides the files of a plan.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct LinkOptions {
    /// Object files, archives and sources of the host code, handed to the compiler as they are.
    pub inputs: Vec<PathBuf>,
    /// More arguments for the compiler, behind all others.
    pub options: Vec<OsString>,
    /// The compiler; where this is empty `$CC`, or `cc` (`$CXX`, or `c++`, where there is C++ to compile), and with `triple` its
    /// `TRIPLE-gcc` or `TRIPLE-g++`.
    pub compiler: Option<OsString>,
    /// The machine that the library is for, as an LLVM triple; this one where it is empty.
    pub triple: Option<String>,
    /// What makes objects of LLVM's text and bitcode; `$LLC`, or `llc`, where this is empty.
    pub llc: Option<OsString>,
    /// The directory that the files of a plan are written to and stay in; a temporary one where this is empty.
    pub workspace: Option<PathBuf>,
}

/// One call of a compiler, for those who bring their own: what `fcompile` gets in `export_library`.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct LinkJob<'j> {
    /// The library to write. It is renamed when the call has succeeded and the library binary is found in it.
    pub output: &'j Path,
    /// The files of the plan, then those of [`LinkOptions::inputs`].
    pub inputs: &'j [PathBuf],
    /// [`LinkOptions::options`].
    pub options: &'j [OsString],
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

/// Writes the library of `plan` to `output`, in the form that its extension names: `.so`, `.dylib` and `.dll` are linked, `.o` is one
/// object of all files, `.tar` an archive of them, `.c` one text where all of them are C.
///
/// It is written beside `output`, read back and then renamed, so that a failure leaves what was there.
///
/// # Errors
///
/// An extension without a form; as [`shared`]; BLOB-73 and BLOB-74 for what a text or an archive cannot hold.
pub fn export(plan: &ExportPlan, output: &Path, with: &LinkOptions) -> io::Result<()> {
    let extension = output.extension().and_then(|extension| extension.to_str());
    match extension {
        Some("so" | "dylib" | "dll") => {
            export_with(plan, output, with, |job| link(job, with, LinkKind::Shared))
        }
        Some("o") => export_with(plan, output, with, |job| link(job, with, LinkKind::Object)),
        Some("tar") => {
            let archive = super::tar(&plan.files).map_err(io::Error::other)?;
            export_with(plan, output, with, |job| {
                std::fs::write(job.output, &archive)
            })
        }
        Some("c") => {
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

/// [`export`] with `compile` in the place of the system's compiler, whatever the extension.
///
/// # Errors
///
/// What the system answers for the files, what `compile` returns, and a file from which the library binary does not read back.
pub fn export_with(
    plan: &ExportPlan,
    output: &Path,
    with: &LinkOptions,
    compile: impl FnOnce(&LinkJob<'_>) -> io::Result<()>,
) -> io::Result<()> {
    let scratch = Scratch::beside(output)?;
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
        WrittenFile::beside(&path, content)?.rename(&path)?;
        inputs.push(path);
    }
    inputs.extend(with.inputs.iter().cloned());
    let made = scratch.path.join("library");
    compile(&LinkJob {
        output: &made,
        inputs: &inputs,
        options: &with.options,
    })?;
    // BLOB-53: what a linker made is looked into as any other file, before it takes the name of a library that worked.
    read_back(&made, plan.blob.as_deref())?;
    std::fs::rename(&made, output)
}

/// What a linker makes.
#[derive(Clone, Copy, PartialEq)]
enum LinkKind {
    /// A shared library.
    Shared,
    /// One object of several.
    Object,
}

/// Calls the C compiler of the system, or of `with`.
fn link(job: &LinkJob<'_>, with: &LinkOptions, kind: LinkKind) -> io::Result<()> {
    let mut inputs = Vec::new();
    for input in job.inputs {
        inputs.push(if is_llvm(input) {
            assemble(input, job, with)?
        } else {
            input.clone()
        });
    }
    // BLOB-60: the text of a system library is C++, and a C compiler would not link what it needs.
    let cxx = inputs.iter().any(|input| is_cxx(input));
    for (index, input) in inputs.iter_mut().enumerate() {
        // One object is made of objects. And a C++ compiler takes C for C++, whose functions have other names.
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
        // The runtime's functions are found when the library is loaded.
        command.args(["-undefined", "dynamic_lookup"]);
    }
    let command = command.args(&inputs).args(job.options);
    finish(command, "C compiler", hint(with))
}

/// How another compiler is chosen: the environment is looked at only where neither compiler nor machine is named.
fn hint(with: &LinkOptions) -> &'static str {
    if with.compiler.is_none() && with.triple.is_none() {
        "set CC (CXX for C++) to one that is there"
    } else {
        "name one that is there (--cc)"
    }
}

/// The compiler of `with`, or the usual one of its machine.
fn driver(with: &LinkOptions, cxx: bool) -> Command {
    let usual = || match &with.triple {
        // What distributions call a cross compiler of this machine.
        Some(triple) => format!("{triple}-{}", if cxx { "g++" } else { "gcc" }).into(),
        None => compiler(cxx),
    };
    Command::new(with.compiler.clone().unwrap_or_else(usual))
}

/// The object of LLVM's text or bitcode at `input`.
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

/// Runs `command`, which is a `what`; `hint` says how another one is chosen.
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

/// The library that was linked is one in which the library binary is found: a linker may leave out what nothing refers to.
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

/// The blob as a file that the compiler takes: an object file where one can be written, otherwise C.
fn part(blob: &[u8], naming: &SymbolNaming, with: &LinkOptions) -> io::Result<(String, Vec<u8>)> {
    // The object file first: a compiler takes far longer to read the bytes as text.
    let machine = match &with.triple {
        Some(triple) => Some(ObjectTarget::from_triple(triple).map_err(io::Error::other)?),
        None => ObjectTarget::host(),
    };
    let written = machine.map(|target| object(blob, naming, target));
    match written {
        Some(Ok(file)) => Ok(("devc.o".to_owned(), file)),
        // BLOB-67: no object file announces itself on this machine; the text does, as C++ (BLOB-60).
        _ if naming.register().is_some() => {
            Ok(("devc.cc".to_owned(), c_text(blob, naming).into_bytes()))
        }
        _ => Ok(("devc.c".to_owned(), c_text(blob, naming).into_bytes())),
    }
}

/// Whether the compiler takes the file for C++.
fn is_cxx(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    matches!(extension, Some("cc" | "cpp" | "cxx" | "C"))
}

/// Whether the file is LLVM's text or bitcode.
fn is_llvm(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    matches!(extension, Some("ll" | "bc"))
}

/// Whether the file is C.
fn is_c(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "c")
}

/// Whether the file is compiled before it is linked.
fn is_source(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    is_cxx(path) || is_c(path) || extension == Some("cu")
}

/// The compiler that the environment names, or the usual one; a variable that is empty names none.
fn compiler(cxx: bool) -> OsString {
    let (variable, usual) = if cxx { ("CXX", "c++") } else { ("CC", "cc") };
    std::env::var_os(variable)
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| usual.into())
}

/// Writes a file beside `output` and renames it, so that a failure leaves what was there.
#[cfg(all(feature = "runtime", any(feature = "rpc", feature = "target")))]
pub(crate) fn write_whole(output: &Path, content: &[u8]) -> io::Result<()> {
    WrittenFile::beside(output, content)?.rename(output)
}

/// A file that is written and has no name of its own yet; gone when dropped.
pub(crate) struct WrittenFile {
    scratch: Scratch,
}

impl WrittenFile {
    /// Writes `content` beside `output`.
    pub(crate) fn beside(output: &Path, content: &[u8]) -> io::Result<WrittenFile> {
        let scratch = Scratch::beside(output)?;
        std::fs::write(scratch.path.join("file"), content)?;
        Ok(WrittenFile { scratch })
    }

    /// Puts it in the place of `output`.
    pub(crate) fn rename(self, output: &Path) -> io::Result<()> {
        std::fs::rename(self.scratch.path.join("file"), output)
    }
}

/// A directory for what is being made; gone when dropped.
struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// A new directory beside `output`, on the same file system, so that renaming moves no bytes.
    fn beside(output: &Path) -> io::Result<Scratch> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let folder = output
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty());
        loop {
            // Process and count keep runs at the same time apart. A killed process with this number may have left its folder.
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
        // What cannot be removed is litter, not an error.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}
