//! `tvmspec pack MANIFEST -o OUT`: builds a library binary from a list of modules.
//!
//! Steps: [`manifest::read`] returns a value, which becomes a [`Manifest`], then a library binary, which [`Packaging`] writes.

use super::manifest::{self, NamedFiles};
use super::package::Packaging;
use super::replace_blob::WholeLibrary;
use super::{CliError, Exit};
use std::path::PathBuf;
use tvmspec::blob::pack::ExportModule;
use tvmspec::examine::manifest::Manifest;
use tvmspec::import_tree::Algorithm;
use tvmspec::import_tree::rules::TREE_25;
use tvmspec::release::Layout;
use tvmspec::rule::Violation;

/// The text after the options in `--help`: an example of a manifest.
const HELP: &str = "\
The manifest is TOML or JSON:

  layout = \"0.22\"             # unless --layout does
  order = \"0.8\"               # 0.7, 0.8 or topological; unless --order does

  [[modules]]                 # the first module is the root
  kind = \"_lib\"               # the host library; several are merged, as the release does
  imports = [1]               # positions in this list

  [[modules]]
  kind = \"opencl\"
  file = \"opencl.payload\"     # the payload as it is stored, beside the manifest, or
  # payload = \"<base64>\"      # the same here, or
  # decoded = \"opencl.json\"   # its decoded JSON form: a file, or the value itself;
                              # `tvmspec extract --json` writes one

Host code goes into a .so, .o, .tar or .c with the rest: each `_lib` names its file,
an object, C or C++ source, or LLVM's text or bitcode (.ll, .bc):

  [[modules]]
  kind = \"_lib\"
  code = \"host.c\"
  imports = [1]

Modules are put into the order in which that release stores them. With an explicit tree
they stay where they are, and `imports` is left out:

  [import_tree]
  indptr = [0, 1, 1]
  indices = [1]

With `library = \"model.so\"` the library binary goes into that file, in the place of its own,
and the host code stays byte for byte; `tvmspec unpack --whole` writes such a manifest. The
form of the file stays, too: -o has its extension, and no option of linking has an effect. `strip`
keeps what was put into it.

The JSON form of a library binary (chapter blob) is such a manifest.";

#[derive(clap::Args)]
#[command(after_long_help = HELP)]
pub(crate) struct PackArgs {
    /// The list of modules, in TOML or JSON; --help shows an example
    manifest: PathBuf,
    /// The layout to write
    #[arg(long, value_name = "0.2|0.7|0.21|0.22")]
    layout: Option<Layout>,
    /// The order of modules: that of 0.7, that of 0.8 and later, or topological (importers before their imports), which can store every
    /// graph
    #[arg(long, value_name = "0.7|0.8|topological")]
    order: Option<Algorithm>,
    #[command(flatten)]
    packaging: Packaging,
}

/// Packs the manifest. Options override the manifest.
pub(crate) fn run(args: PackArgs) -> Result<Exit, CliError> {
    let (value, mut files, name) = manifest::read(&args.manifest)?;
    let named = |error: String| CliError::new(format!("{name}: {error}"));
    let file = |name: &str| files.load(name);
    let manifest = Manifest::read(&value, args.layout, args.order, file);
    let manifest = manifest.map_err(|error| match error.broken() {
        Some(broken) => CliError::broken(&name, broken, format!("{name}: {error}")),
        None => files.error(format!("{name}: {error}")),
    })?;
    let whole = whole_library(&manifest, &mut files);
    let whole = whole.map_err(|error| files.error(format!("{name}: {error}")))?;
    if manifest.modules.iter().any(|module| module.code.is_some()) {
        if whole.is_some() {
            return Err(named(
                "`library` has its host code already; leave `code` out, or `library`".into(),
            ));
        }
        // BLOB-70: the files of host code are ordered by a walk along the imports.
        if manifest.tree.is_some() {
            return Err(named(
                "host code is ordered by `imports`; leave `import_tree` out".into(),
            ));
        }
        let modules = manifest.modules.into_iter().enumerate();
        let modules = modules.map(|(index, module)| {
            manifest::into_export(module, &mut files)
                .map_err(|error| format!("module {index}: {error}"))
        });
        let modules: Result<Vec<ExportModule>, String> = modules.collect();
        let modules = modules.map_err(|error| files.error(format!("{name}: {error}")))?;
        return args
            .packaging
            .export(&modules, manifest.order, manifest.layout);
    }
    let blob = manifest.into_blob().map_err(|error| {
        let hint = match error.broken().map(Violation::rule) {
            // TREE-25: the graph has no cycle, and only the order of the release rejects it.
            Some(TREE_25) => ". `--order topological` stores it so that every loader accepts it",
            _ => "",
        };
        match error.broken() {
            Some(broken) => CliError::broken(&name, broken, format!("{name}: {error}{hint}")),
            None => named(format!("{error}{hint}")),
        }
    })?;
    match whole {
        Some(library) => args.packaging.replace_in_library(&blob, &library),
        None => args.packaging.write(&blob),
    }
}

/// Opens the library that is kept, except for its library binary. `unpack --whole` writes its name into the manifest.
fn whole_library(
    manifest: &Manifest,
    files: &mut NamedFiles,
) -> Result<Option<WholeLibrary<'static>>, String> {
    let Some(name) = &manifest.library else {
        return Ok(None);
    };
    Ok(Some(WholeLibrary {
        name: name.clone(),
        bytes: files.load(name)?.into(),
        index: manifest.blob,
    }))
}
