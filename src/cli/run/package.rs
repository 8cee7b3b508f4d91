//! Files that `run` does not load directly: packages, whose members it uses, and other files, for which it prints advice.

use crate::cli::full::call::not_loaded;
use crate::cli::full::input::{Input, subject};
use crate::cli::{CliError, output};
use flate2::read::MultiGzDecoder;
use std::io::Read;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use tvmspec::blob::container::FileForm;
use tvmspec::examine::explain::{Package, is_image};
use tvmspec::module::Module;

/// An unpacked package.
pub(super) struct UnpackedPackage {
    /// Removed when this value is dropped.
    _folder: TempDir,
    pub(super) lib: PathBuf,
    /// The graph; `None` for a library that contains the whole model.
    pub(super) graph: Option<PathBuf>,
    pub(super) params: Option<PathBuf>,
}

/// Unpacks a package whose library is linked. Returns `None` for a library, and for a path that cannot be read.
///
/// Returns an error with advice for any other form. If `is_remote`, any other form counts as a library, because a server may link it.
pub(super) fn unpack(path: &Path, is_remote: bool) -> Result<Option<UnpackedPackage>, CliError> {
    // The loader reports a file that cannot be read.
    let Ok(input) = Input::open(path) else {
        return Ok(None);
    };
    let form = FileForm::detect(input.bytes());
    if is_image(form) {
        return Ok(None);
    }
    if let Ok(subject) = subject(&input, path, None)
        && let Some(package) = Package::recognize(&subject.file).filter(Package::is_runnable)
    {
        return extract(&input, form, &package).map(Some);
    }
    match not_loaded(path).filter(|_| !is_remote) {
        Some(advice) => Err(CliError::Message(advice)),
        None => Ok(None),
    }
}

/// Writes the members of a package to a folder, each under its own name.
fn extract(
    input: &Input,
    form: FileForm,
    package: &Package<'_>,
) -> Result<UnpackedPackage, CliError> {
    let wrong = |error: std::io::Error| {
        CliError::Message(format!("cannot unpack {}: {error}", input.line()))
    };
    let folder = tempfile::tempdir()?;
    let reader: Box<dyn Read> = match form {
        FileForm::GzipTar => Box::new(MultiGzDecoder::new(input.bytes())),
        _ => Box::new(input.bytes()),
    };
    let at = |member: Option<&str>| {
        let name = member?.rsplit('/').next()?;
        Some(folder.path().join(name))
    };
    let wanted = [package.library, package.graph, package.params];
    for entry in tar::Archive::new(reader).entries().map_err(wrong)? {
        let mut entry = entry.map_err(wrong)?;
        let member = entry.path().map_err(wrong)?.to_string_lossy().into_owned();
        let wanted = wanted.into_iter().find(|wanted| *wanted == Some(&*member));
        if let Some(path) = wanted.and_then(at) {
            entry.unpack(path).map_err(wrong)?;
        }
    }
    Ok(UnpackedPackage {
        lib: at(package.library).unwrap_or_default(),
        graph: at(package.graph),
        params: at(package.params),
        _folder: folder,
    })
}

/// Explains why a loaded library is not a model that runs here, and what to do.
pub(super) fn no_model(path: &Path, module: &Module) -> String {
    let name = output::file_name(path);
    let modules = module.walk();
    let has = |kind: &str| modules.iter().any(|module| module.kind() == kind);
    let mut functions = modules.iter().filter_map(Module::functions).flatten();
    let entry = functions.find(|function| function.ends_with("___tvm_main__"));
    if let Some(entry) = entry {
        return format!(
            "{name} is a model of the AOT executor, which is a function: `tvmspec call {name} {entry}` with the inputs (@x.npy), then the outputs (out:float32[1,10])"
        );
    }
    if has("VMExecutable") {
        return format!(
            "{name} is a model of the Relay VM (0.6 to 0.19), which does not run here: compile it for the graph executor (relay.build), or run it with that TVM; `tvmspec call` calls its kernels"
        );
    }
    format!(
        "{name} is a `{}` module, no model; `tvmspec call` calls its functions, --graph with --lib runs a graph on it",
        module.kind()
    )
}
