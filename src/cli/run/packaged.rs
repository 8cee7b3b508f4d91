//! Files that `run` does not load as they are: packages of tvmc, of which it takes the members, and others, of which it says what they are.

use crate::cli::call::unlinked;
use crate::cli::input::Input;
use crate::cli::{CliError, output};
use std::fs::File;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use tvmspec::blob::container::FileForm;
use tvmspec::module::{Library, Module};

/// A package of tvmc, unpacked.
pub(super) struct TvmcPackage {
    /// Removed when this is dropped.
    _folder: TempDir,
    pub(super) lib: PathBuf,
    pub(super) graph: PathBuf,
    pub(super) params: Option<PathBuf>,
}

/// The members of a package: library, graph, parameters.
const LIB: &str = "mod.so";
const GRAPH: &str = "mod.json";
const PARAMS: &str = "mod.params";
/// The library of a package without a graph, and the one of objects that are not linked.
const VM_LIB: &str = "lib.so";
const OBJECTS: [&str; 2] = ["mod.tar", "lib.tar"];
/// The member that says that a tar is in the Model Library Format.
const METADATA: &str = "metadata.json";

/// Unpacks a package of tvmc (`tvmc compile -o FILE.tar`); `None` for a library, and for a path that cannot be read.
///
/// Fails for any other form, with what to do. A server may link what it is sent: for one any other form is a library.
pub(super) fn unpack(path: &Path, is_remote: bool) -> Result<Option<TvmcPackage>, CliError> {
    // What cannot be read is the loader's to say.
    let Ok(input) = Input::open(path) else {
        return Ok(None);
    };
    let form = FileForm::of(input.bytes());
    drop(input);
    if is_remote {
        return Ok(match form {
            FileForm::Tar => package(path).unwrap_or_default(),
            _ => None,
        });
    }
    let name = output::file_name(path);
    let advice = match form {
        FileForm::Tar => return package(path),
        FileForm::GzipTar => objects(&name, ""),
        FileForm::GraphJson => format!(
            "{name} is graph JSON: write `run --graph {name} --lib LIB`, with --params for its weights"
        ),
        FileForm::Params => format!(
            "{name} is a parameter file: write `run --graph GRAPH --params {name} --lib LIB`"
        ),
        FileForm::RelaxVm | FileForm::RelayVm => format!(
            "{name} is {} without kernels: run the library that `export_library` wrote",
            form.title()
        ),
        FileForm::Archive => format!(
            "{name} is a static archive: link it into a library, `cc -shared -o lib.so -Wl,--whole-archive {name} -Wl,--no-whole-archive`, and run that"
        ),
        _ => match unlinked(path) {
            Some(advice) => advice,
            None => return Ok(None),
        },
    };
    Err(CliError::Message(advice))
}

/// Unpacks a tar that is a package, or says what else it is.
fn package(path: &Path) -> Result<Option<TvmcPackage>, CliError> {
    let name = output::file_name(path);
    let wrong = |error: std::io::Error| CliError::Message(format!("cannot read {name}: {error}"));
    let folder = tempfile::tempdir()?;
    let at = |member: &str| folder.path().join(member);
    let mut members = Vec::new();
    let mut archive = tar::Archive::new(File::open(path)?);
    for entry in archive.entries().map_err(wrong)? {
        let mut entry = entry.map_err(wrong)?;
        let member = entry.path().map_err(wrong)?.to_string_lossy().into_owned();
        let member = member.trim_start_matches("./").to_owned();
        // Only these are written, each under its own name.
        if [LIB, GRAPH, PARAMS].contains(&member.as_str()) {
            entry.unpack(at(&member)).map_err(wrong)?;
        }
        members.push(member);
    }
    let has = |member: &str| members.iter().any(|found| found == member);
    if has(LIB) && has(GRAPH) {
        return Ok(Some(TvmcPackage {
            lib: at(LIB),
            graph: at(GRAPH),
            params: has(PARAMS).then(|| at(PARAMS)),
            _folder: folder,
        }));
    }
    let unpacked = format!("unpack it, `mkdir d && tar -xf {name} -C d`");
    let advice = if has(METADATA) {
        format!(
            "{name} is in the Model Library Format, a project of sources and objects for a device: {unpacked}, link what is in d/codegen and d/lib into lib.so, and write \
             `run --graph d/executor-config/graph/default.graph --params d/parameters/default.params --lib lib.so`"
        )
    } else if has(VM_LIB) {
        format!("{name} is a tvmc package of a VM: {unpacked}, and run d/{VM_LIB}")
    } else if let Some(objects) = OBJECTS.into_iter().find(|objects| has(objects)) {
        let graph = if has(GRAPH) {
            format!("write `run --graph d/{GRAPH} --params d/{PARAMS} --lib lib.so`")
        } else {
            "run that".to_owned()
        };
        format!(
            "{name} is a tvmc package whose library {objects} is not linked: {unpacked}, `mkdir o && tar -xf d/{objects} -C o && cc -shared -fPIC -o lib.so o/*`, and {graph}"
        )
    } else {
        objects(&name, &format!(", {}", members.join(", ")))
    };
    Err(CliError::Message(advice))
}

/// The advice for an archive that `export_library` wrote.
fn objects(name: &str, members: &str) -> String {
    format!(
        "{name} is not loaded: it is a tar archive of objects or sources{members}. Unpack it, `mkdir d && tar -xf {name} -C d`, link them, `cc -shared -fPIC -o lib.so d/*`, and run lib.so"
    )
}

/// Says why a library that was loaded is not a model that runs here, and what to do.
pub(super) fn no_model(path: &Path, module: &Module) -> String {
    let name = output::file_name(path);
    let modules = module.walk();
    let has = |kind: &str| modules.iter().any(|module| module.kind() == kind);
    let mut functions = modules
        .iter()
        .filter_map(Library::of)
        .flat_map(Library::functions);
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
