//! Shared code of `pack` and `convert`: writes a library binary into a file of the form that its extension selects.
//!
//! Every form is read back before the file appears. Otherwise a library that a loader rejects or silently misreads would be noticed
//! only much later.

use super::interruptible;
use super::output::{self, Content};
use super::replace_blob::{self, WholeLibrary};
use super::verdict::Verdict;
use super::{CliError, Exit};
use std::ffi::OsString;
use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};
use tvmspec::blob::container::{self, ContainerPart, FileForm, incompatibility, is_native};
use tvmspec::blob::pack::{self, ExportModule, LinkOptions, ObjectTarget, SymbolNaming};
use tvmspec::blob::{Blob, LIBRARY, LibraryModule, detect};
use tvmspec::examine::explain::is_image;
use tvmspec::import_tree::Algorithm;
use tvmspec::release::{Layout, Release};
use tvmspec::rule::Violation;

/// The output file of a library binary, its form and its symbol.
#[derive(clap::Args)]
pub(crate) struct Packaging {
    /// The file to write. Its extension selects the form: .bin (only the library binary), .c, .o, .so or .tar; - for stdout
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    /// Write as this release does, if the releases of a layout differ, as in C text [default: the last release of the layout]
    #[arg(long, value_name = "R")]
    release: Option<Release>,
    /// Make the output register itself as a system library, optionally under PREFIX
    #[arg(long, value_name = "PREFIX", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    system_lib: Option<String>,
    /// The target machine of an object file or a library, as an LLVM triple [default: this one]
    #[arg(long, value_name = "TRIPLE")]
    target: Option<String>,
    /// Object files, archives and sources of the host code to link into a .so
    #[arg(long, value_name = "FILE", num_args = 1..)]
    with: Vec<PathBuf>,
    /// The compiler for linking [default: $CC, or cc; with --target TRIPLE-gcc]
    #[arg(long, value_name = "CC")]
    cc: Option<OsString>,
    /// An argument to pass to the compiler after all others; may be repeated
    #[arg(long = "option", value_name = "ARG", allow_hyphen_values = true)]
    options: Vec<OsString>,
    /// Write the files to link into this directory, and keep them
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,
}

impl Packaging {
    /// Returns the file to write.
    pub(crate) fn output(&self) -> &Path {
        &self.output
    }
}

/// The form of the file, which the extension of its name selects.
enum PackageForm {
    /// Only the library binary (`.bin`), also for stdout.
    Bin,
    /// C text with its bytes (BLOB-58, BLOB-59).
    C,
    /// An object file that defines its symbol (BLOB-66).
    Object,
    /// A shared library, linked by the C compiler of this system.
    Shared,
    /// An archive of the files that would be linked (BLOB-74).
    Tar,
}

impl Packaging {
    /// Writes `blob` in its layout. If the layout cannot hold it, the command fails, but no file breaks a rule.
    pub(crate) fn write(&self, blob: &Blob<'_>) -> Result<Exit, CliError> {
        let form = self.form(false)?;
        let bytes = blob.write().map_err(|broken| self.not_writable(&broken))?;
        // `Blob::write` accepts payloads unchanged. Only reading back detects one in the form of another layout.
        read_back(&bytes, blob).map_err(|why| self.not_written(&why))?;
        let naming = self.naming(blob.layout)?;
        // `_lib` is the library around the library binary. Its code is in no payload, and only --with can add it.
        let lacks_code = self.with.is_empty() && blob.modules.iter().any(LibraryModule::is_host);
        let verdict = self.judge(&bytes, Some(blob.layout))?;
        // A linked file is judged as a whole, unless the user links it into something else.
        let is_judged_whole =
            matches!(form, PackageForm::Shared) && (self.release.is_some() || !lacks_code);
        if !is_judged_whole || verdict.is_rejected() {
            verdict.report(&self.output)?;
        }
        match form {
            PackageForm::Bin => output::write(&self.output, &bytes, Content::Binary)?,
            PackageForm::C => {
                let text = pack::c_text(&bytes, &naming);
                self.check_written_file(text.as_bytes(), &bytes, blob.layout)?;
                output::write(&self.output, text.as_bytes(), Content::Text)?;
            }
            PackageForm::Object => {
                let object =
                    pack::object(&bytes, &naming, self.machine()?).map_err(CliError::new)?;
                self.check_written_file(&object, &bytes, blob.layout)?;
                output::write(&self.output, &object, Content::Binary)?;
            }
            PackageForm::Shared => {
                if lacks_code {
                    output::warning(format_args!(
                        "{} has no host code: pass the object files of `{LIBRARY}` by --with",
                        output::file_name(&self.output)
                    ));
                }
                let with = self.linking();
                // `pack::shared` reads its output back, so that nothing is left to check here.
                self.link("link", lacks_code, |file| {
                    pack::shared(&bytes, &naming, &with, file)
                })?;
            }
            PackageForm::Tar => {
                let name = format!("{}devc.o", naming.prefix());
                let object =
                    pack::object(&bytes, &naming, self.machine()?).map_err(CliError::new)?;
                let archive = pack::tar(&[(name, object)]).map_err(CliError::new)?;
                self.check_written_file(&archive, &bytes, blob.layout)?;
                output::write(&self.output, &archive, Content::Binary)?;
            }
        }
        Ok(Exit::Good)
    }

    /// Exports `modules`, some of which are host code, in `layout` (BLOB-70 to BLOB-74).
    pub(crate) fn export(
        &self,
        modules: &[ExportModule],
        algorithm: Algorithm,
        layout: Layout,
    ) -> Result<Exit, CliError> {
        if matches!(self.form(true)?, PackageForm::Bin) {
            return Err(CliError::new(
                "a .bin has no place for host code: name a .so, .o, .tar or .c",
            ));
        }
        let naming = self.naming(layout)?;
        // If no object files can be written for this machine, the library binary is written as C text.
        let machine = match &self.target {
            Some(_) => Some(self.machine()?),
            None => ObjectTarget::host(),
        };
        let plan = pack::plan(modules, &naming, algorithm, machine).map_err(CliError::new)?;
        if let Some(bytes) = &plan.blob {
            let blob = pack::pack(modules, layout, algorithm).map_err(CliError::new)?;
            read_back(bytes, &blob).map_err(|why| self.not_written(&why))?;
        }
        self.link("export", false, |file| {
            pack::export(&plan, file, &self.linking())
        })?;
        Ok(Exit::Good)
    }

    /// Replaces the library binary of `library` with `blob` (BLOB-75). The form is that of the library.
    pub(crate) fn replace_in_library(
        &self,
        blob: &Blob<'_>,
        library: &WholeLibrary<'_>,
    ) -> Result<Exit, CliError> {
        if let Some(option) = self.first_stated_option() {
            return Err(CliError::new(format!(
                "{option} has no effect: the library stays as it is, but for its library binary"
            )));
        }
        // Checked before writing, because payloads in the form of another layout may read back as something else.
        library.is_for(blob.layout)?;
        let bytes = blob.write().map_err(|broken| self.not_writable(&broken))?;
        read_back(&bytes, blob).map_err(|why| self.not_written(&why))?;
        let (made, form) = library.replace(&bytes)?;
        self.judge(&made, None)?.report(&self.output)?;
        // Stdout has no extension, and accepts every form.
        let endings = replace_blob::extensions(form);
        let fits = endings.contains(&extension(&self.output)) || self.output.as_os_str() == "-";
        if !fits {
            return Err(CliError::new(format!(
                "the name {} is of another form: {} stays what it is, {}, whose name ends in .{}",
                output::file_name(&self.output),
                library.name,
                form.title(),
                endings.join(", .")
            )));
        }
        self.check_written_file(&made, &bytes, blob.layout)?;
        let content = match form {
            FileForm::CText => Content::Text,
            FileForm::ElfShared | FileForm::MachOShared => Content::Library,
            _ => Content::Binary,
        };
        output::write(&self.output, &made, content)?;
        Ok(Exit::Good)
    }

    /// Creates a file with `make`, which gets its path, judges it with `explain`, and moves it into place. If the file `lacks_code`,
    /// which the user adds later, a rejection is only a warning.
    fn link(
        &self,
        verb: &str,
        lacks_code: bool,
        make: impl FnOnce(&Path) -> io::Result<()>,
    ) -> Result<(), CliError> {
        let folder = self
            .output
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        output::check(&self.output, Content::Library)?;
        let made = interruptible::link(|| {
            let staged = tempfile::Builder::new()
                .prefix(".tvmspec-")
                .tempdir_in(folder)?;
            let file = staged
                .path()
                .join(self.output.file_name().unwrap_or_default());
            make(&file)?;
            let verdict = self.judge(&std::fs::read(&file)?, None);
            let reported = verdict.and_then(|verdict| match (lacks_code, self.release) {
                // A warning has already said that it is incomplete.
                (true, None) => Ok(()),
                (true, Some(_)) => verdict.rejection_to_doubt().report(&self.output),
                (false, _) => verdict.report(&self.output),
            });
            if reported.is_ok() {
                std::fs::rename(&file, &self.output)?;
            }
            Ok(reported)
        });
        made.map_err(|error| {
            CliError::new(format!(
                "cannot {verb} {}: {error}",
                output::file_name(&self.output)
            ))
        })?
    }

    /// Warns if the code of the file `bytes`, which is not copied, is for another machine than the output.
    pub(crate) fn warn_of_machine(&self, bytes: &[u8]) {
        let is_code = matches!(
            extension(&self.output),
            "o" | "obj" | "so" | "dylib" | "dll" | "tar"
        );
        if self.target.is_some() || self.cc.is_some() || !is_code {
            return;
        }
        let Ok(file) = container::open(bytes) else {
            return;
        };
        let is_foreign = |part: &&ContainerPart<'_>| {
            if is_image(part.form) {
                part.member.is_empty() && incompatibility(bytes).is_some()
            } else {
                !is_native(part)
            }
        };
        let foreign = file.parts.iter().find(is_foreign);
        if let Some(machine) = foreign.and_then(|part| part.machine.as_ref()) {
            output::warning(format_args!(
                "{} is for this machine, and the code of the input is for {}, {} bits: pass --target TRIPLE for that one",
                output::file_name(&self.output),
                machine.architecture,
                machine.bits
            ));
        }
    }

    /// Judges the content to write with `explain`: a whole file, or a library binary in `layout`.
    fn judge(&self, bytes: &[u8], layout: Option<Layout>) -> Result<Verdict, CliError> {
        let name = output::file_name(&self.output).to_string();
        Verdict::judge(&name, bytes, layout, self.release)
    }

    /// Returns the first option on the command line other than `-o`.
    fn first_stated_option(&self) -> Option<&'static str> {
        let stated = [
            ("--release", self.release.is_some()),
            ("--system-lib", self.system_lib.is_some()),
            ("--target", self.target.is_some()),
            ("--with", !self.with.is_empty()),
            ("--cc", self.cc.is_some()),
            ("--option", !self.options.is_empty()),
            ("--workspace", self.workspace.is_some()),
        ];
        stated
            .into_iter()
            .find(|(_, is_stated)| *is_stated)
            .map(|(option, _)| option)
    }

    /// Returns the linker arguments other than the files of a plan.
    fn linking(&self) -> LinkOptions {
        let mut options = LinkOptions::default();
        options.inputs = self.with.clone();
        options.options = self.options.clone();
        options.compiler = self.cc.clone();
        options.triple = self.target.clone();
        options.workspace = self.workspace.clone();
        options
    }

    /// Reads the file around the library binary back. The library binary must be found by its symbol, unchanged and in its layout
    /// (BLOB-18, BLOB-52).
    fn check_written_file(
        &self,
        file: &[u8],
        bytes: &[u8],
        layout: Layout,
    ) -> Result<(), CliError> {
        let again = container::open(file).map_err(|broken| self.not_written(&broken))?;
        let found = again.blobs().any(|(_, found)| {
            // BLOB-18: symbol and bytes together decide how a loader reads it.
            found.bytes == bytes && detect::detect(bytes, Some(&found.symbol)) == layout
        });
        if !found {
            return Err(self.not_written(&"the library binary is not found in it"));
        }
        Ok(())
    }

    /// Creates the error for a library binary that its layout cannot hold.
    fn not_writable(&self, broken: &Violation) -> CliError {
        let name = self.output.display().to_string();
        CliError::broken(&name, broken, format!("cannot be written: {broken}"))
    }

    /// Creates the error for an output that does not read back.
    fn not_written(&self, why: &dyn Display) -> CliError {
        CliError::new(format!(
            "{} is not written, because reading it back fails: {why}",
            output::file_name(&self.output)
        ))
    }

    /// Returns the form that the name of the output selects. `has_code` is whether host code is included.
    fn form(&self, has_code: bool) -> Result<PackageForm, CliError> {
        let form = match extension(&self.output) {
            // Checked before the extensions, because stdout has none.
            _ if self.output.as_os_str() == "-" => PackageForm::Bin,
            "bin" | "library_bin" | "mblob" => PackageForm::Bin,
            "c" | "cc" | "cpp" => PackageForm::C,
            "o" | "obj" => PackageForm::Object,
            "so" | "dylib" | "dll" => PackageForm::Shared,
            "tar" => PackageForm::Tar,
            _ => {
                return Err(CliError::new(format!(
                    "the name {} does not state the form to write: it ends in .bin, .c, .o, .so or .tar",
                    output::file_name(&self.output)
                )));
            }
        };
        if let Some(system) = self.other_system() {
            return Err(CliError::new(format!(
                "{} is the name of a file for {system}, and what is written is for another system: name it as this system does, or pass --target TRIPLE",
                output::file_name(&self.output)
            )));
        }
        if !self.with.is_empty() && !matches!(form, PackageForm::Shared) {
            return Err(CliError::new("--with is for a .so: nothing else is linked"));
        }
        if self.target.is_some() && matches!(form, PackageForm::Bin | PackageForm::C) {
            return Err(CliError::new(
                "--target is for a .o, .so or .tar: the same bytes and the same text are for all machines",
            ));
        }
        if self.system_lib.is_some() && matches!(form, PackageForm::Bin) {
            return Err(CliError::new(
                "--system-lib is for what has a symbol: a .bin has none",
            ));
        }
        // The compiler is needed to join several objects into one, but not for the library binary alone.
        let compiled = match form {
            PackageForm::Shared => true,
            PackageForm::Object => has_code,
            _ => false,
        };
        if (self.cc.is_some() || !self.options.is_empty()) && !compiled {
            return Err(CliError::new(
                "--cc and --option are for a .so, and for a .o with host code: no compiler is called for anything else",
            ));
        }
        if self.workspace.is_some() && !compiled && !has_code {
            return Err(CliError::new(
                "--workspace is for what is linked, and this is not",
            ));
        }
        Ok(form)
    }

    /// Returns the system to which the extension of the output belongs, if it is not the target system. With `--cc` nothing is known,
    /// because it may name a cross compiler.
    fn other_system(&self) -> Option<&'static str> {
        let is_for = |words: [&str; 2], here: bool| match &self.target {
            Some(triple) => words.iter().any(|word| triple.contains(word)),
            None => here || self.cc.is_some(),
        };
        match extension(&self.output) {
            "dll" | "obj" if !is_for(["windows", "mingw"], cfg!(windows)) => Some("Windows"),
            "dylib" if !is_for(["apple", "darwin"], cfg!(target_vendor = "apple")) => Some("macOS"),
            _ => None,
        }
    }

    /// Returns the symbol of the library binary, and whether it registers itself. Both follow the release of `--release`, or the last
    /// release of `layout`.
    fn naming(&self, layout: Layout) -> Result<SymbolNaming, CliError> {
        // BLOB-59: the releases of a layout write the same bytes, but different C text.
        let release = self.release.unwrap_or(layout.releases().until);
        if Layout::of(release) != layout {
            return Err(CliError::new(format!(
                "release {release} writes layout {}, not {layout}",
                Layout::of(release)
            )));
        }
        let prefix = self.system_lib.as_deref().unwrap_or_default();
        SymbolNaming::of(release, self.system_lib.is_some(), prefix).map_err(CliError::new)
    }

    /// Returns the machine of an object file: that of `--target`, or this one.
    fn machine(&self) -> Result<ObjectTarget, CliError> {
        match &self.target {
            Some(triple) => ObjectTarget::from_triple(triple).map_err(CliError::new),
            None => ObjectTarget::host().ok_or_else(|| {
                CliError::new("object files for this machine cannot be written; write C text")
            }),
        }
    }
}

/// Reads the written bytes back by the rules of their layout, and compares kinds, payloads and tree with those of `blob`.
fn read_back(bytes: &[u8], blob: &Blob<'_>) -> Result<(), String> {
    let again = Blob::read(bytes, blob.layout).map_err(|broken| broken.to_string())?;
    let again = again.value;
    // Offsets are not compared, because a module of another file has a different offset, and one of a manifest has none.
    let same = |(one, other): (&LibraryModule<'_>, &LibraryModule<'_>)| {
        one.kind() == other.kind() && one.payload() == other.payload()
    };
    let rows = |blob: &Blob<'_>| {
        let tree = blob.tree.as_ref()?;
        Some((tree.indptr().to_vec(), tree.indices().to_vec()))
    };
    if rows(&again) != rows(blob) || again.modules.len() != blob.modules.len() {
        return Err("it has other modules, or another import tree".into());
    }
    match again
        .modules
        .iter()
        .zip(&blob.modules)
        .position(|pair| !same(pair))
    {
        Some(index) => Err(format!("module {index} is another one")),
        None => Ok(()),
    }
}

/// Returns the extension of the name, without the dot. Returns an empty text for a name without one.
fn extension(path: &Path) -> &str {
    path.extension()
        .and_then(|extension| extension.to_str())
        .unwrap_or("")
}
