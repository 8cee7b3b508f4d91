//! `tvmspec pack MANIFEST -o OUT`: a library binary from a list of modules.
//!
//! The way: [`manifest::read`], a [`ManifestEntry`] for each module, then a [`Blob`] with the tree of the manifest
//! ([`as_listed`]) or with that of a release ([`ordered`]), which [`Packaging`] writes.

use super::manifest::{self, ManifestEntry};
use super::package::Packaging;
use super::whole::WholeLibrary;
use super::{CliError, Exit};
use serde_json::Value;
use std::path::{Path, PathBuf};
use tvmspec::blob::pack::ExportModule;
use tvmspec::blob::{Blob, LIBRARY};
use tvmspec::import_tree::{Algorithm, ImportTree, ModuleGraph, ModuleNode, TREE_25, order};
use tvmspec::release::{Layout, ParseError};
use tvmspec::rule::{Findings, Violation};

/// Behind the options in `--help`: the manifest by example.
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
    /// The list of modules, in TOML or JSON; --help shows one
    manifest: PathBuf,
    /// The layout to write
    #[arg(long, value_name = "0.2|0.7|0.21|0.22")]
    layout: Option<Layout>,
    /// The order of modules: that of 0.7, of 0.8 and later, or parents before children, which stores every graph
    #[arg(long, value_name = "0.7|0.8|topological")]
    order: Option<Algorithm>,
    #[command(flatten)]
    packaging: Packaging,
}

/// Packs the manifest. Options go before what the manifest states.
///
/// # Errors
///
/// The manifest cannot be read or is not of its form, a payload cannot be read or encoded, the modules have no order
/// (TREE-24, TREE-25), the layout cannot hold them (BLOB-17), or the output cannot be written. Messages about the
/// manifest begin with its name.
pub(crate) fn run(args: PackArgs) -> Result<Exit, CliError> {
    let (manifest, folder) = manifest::read(&args.manifest)?;
    let named = |error: String| {
        CliError::new(format!(
            "{}: {error}",
            super::output::file_name(&args.manifest)
        ))
    };
    let unknown = |error: ParseError| named(error.to_string());
    let modules = manifest.get("modules").and_then(Value::as_array);
    let modules = modules
        .filter(|modules| !modules.is_empty())
        .ok_or_else(|| named("it has no modules; `tvmspec pack --help` shows a manifest".into()))?;
    let layout = match (args.layout, manifest.get("layout")) {
        (Some(layout), _) => layout,
        (None, Some(Value::String(name))) => name.parse().map_err(unknown)?,
        (None, _) => {
            return Err(named(
                "no layout; give --layout, or `layout = \"0.22\"` in it".into(),
            ));
        }
    };
    let algorithm = match (args.order, manifest.get("order")) {
        (Some(algorithm), _) => algorithm,
        (None, Some(Value::String(name))) => name.parse().map_err(unknown)?,
        (None, _) => Algorithm::default(),
    };
    // BLOB-14: layout 0.2 is the one-level content of a later layout, whose payloads have the same forms.
    let first = match layout {
        Layout::V0_2 => Layout::V0_7,
        layout => layout,
    };
    let read: Result<Vec<ManifestEntry>, String> = modules
        .iter()
        .enumerate()
        .map(|(index, value)| {
            ManifestEntry::read(value, first, &folder)
                .map_err(|error| format!("module {index}: {error}"))
        })
        .collect();
    // BLOB-14: it is packed in layout 0.7 and converted at the end, which rejects a tree that layout 0.2 cannot hold
    // (BLOB-17).
    let entries = read.map_err(named)?;
    let whole = whole_library(&manifest, &folder).map_err(named)?;
    if whole.is_some() && entries.iter().any(|entry| entry.code.is_some()) {
        return Err(named(
            "`library` has its host code already; leave `code` out, or `library`".into(),
        ));
    }
    if entries.iter().any(|entry| entry.code.is_some()) {
        // BLOB-70: the files of host code have the order of a walk along the imports.
        if manifest
            .get("import_tree")
            .is_some_and(|tree| !tree.is_null())
        {
            return Err(named(
                "host code is ordered by `imports`; leave `import_tree` out".into(),
            ));
        }
        let modules: Result<Vec<ExportModule>, String> = entries
            .into_iter()
            .enumerate()
            .map(|(index, entry)| {
                entry
                    .into_export()
                    .map_err(|error| format!("module {index}: {error}"))
            })
            .collect();
        return args
            .packaging
            .export(&modules.map_err(named)?, algorithm, layout);
    }
    // The JSON form of a library binary without a tree has null there.
    let blob = match manifest.get("import_tree").filter(|tree| !tree.is_null()) {
        // An explicit tree numbers the modules as they are listed: they must not move.
        Some(tree) => as_listed(entries, tree, first).map_err(named)?,
        None => ordered(entries, algorithm, first).map_err(|broken| {
            let hint = match broken.rule() {
                // TREE-25: the graph has no cycle, only the order of the release rejects it.
                TREE_25 => "; `--order topological` stores it so that every loader accepts it",
                _ => "",
            };
            named(format!("{broken}{hint}"))
        })?,
    };
    let blob = match layout == first {
        true => blob,
        false => blob
            .convert(layout)
            .map_err(|broken| named(broken.message().to_owned()))?,
    };
    match whole {
        Some(library) => args.packaging.replace_in_library(&blob, &library),
        None => args.packaging.write(&blob),
    }
}

/// The library that the manifest keeps whole: `unpack --whole` names the file that the library binary is from.
///
/// # Errors
///
/// As [`manifest::load`]; a number without a library, or one that is none.
fn whole_library(manifest: &Value, folder: &Path) -> Result<Option<WholeLibrary<'static>>, String> {
    let number = manifest.get("blob");
    let Some(name) = manifest.get("library") else {
        return match number {
            Some(_) => Err(
                "`blob` is the number of a library binary in `library`, which is missing".into(),
            ),
            None => Ok(None),
        };
    };
    let index = number.map(|wanted| {
        manifest::position(wanted).ok_or("`blob` is not the number of a library binary")
    });
    Ok(Some(WholeLibrary {
        name: name.as_str().unwrap_or_default().to_owned(),
        bytes: manifest::load(folder, name)?.into(),
        index: index.transpose()?,
    }))
}

/// The modules in the order of the manifest, with its tree. Nothing is merged.
///
/// # Errors
///
/// A module has `imports` as well, or the tree breaks a rule of its own (TREE-01 to TREE-09).
fn as_listed(
    entries: Vec<ManifestEntry>,
    tree: &Value,
    layout: Layout,
) -> Result<Blob<'static>, String> {
    if entries.iter().any(|entry| !entry.imports.is_empty()) {
        return Err("`imports` and `import_tree` say the same thing; leave one out".into());
    }
    // What is odd in the tree is what the user wants to be packed, and is not noted here.
    let mut findings = Findings::default();
    let tree = tvmspec::import_tree::json::to_tree(tree, &mut findings)?;
    let tree = tree.map_err(|broken| broken.to_string())?;
    Ok(Blob {
        layout,
        modules: entries
            .into_iter()
            .map(ManifestEntry::into_module)
            .collect(),
        tree: Some(tree),
    })
}

/// The modules in the order in which a release stores them, and their tree: those of the host code are one entry
/// (TREE-20).
///
/// # Errors
///
/// TREE-24 and TREE-25 for a graph that cannot be stored in this order, TREE-09 for a cycle in the tree, and what else
/// `order` rejects.
fn ordered(
    entries: Vec<ManifestEntry>,
    algorithm: Algorithm,
    layout: Layout,
) -> Result<Blob<'static>, Violation> {
    let lone = matches!(entries.as_slice(), [root] if root.kind == LIBRARY);
    if lone && matches!(layout, Layout::V0_7 | Layout::V0_21) {
        // BLOB-03, BLOB-16: what those layouts have for a library without imports: a count of 0, no entry and no tree.
        return Ok(Blob {
            layout,
            modules: Vec::new(),
            tree: None,
        });
    }
    let nodes = entries.iter().map(|entry| ModuleNode {
        kind: entry.kind.clone(),
        dso: entry.kind == LIBRARY,
        imports: entry.imports.clone(),
    });
    let stored = order(
        &ModuleGraph {
            modules: nodes.collect(),
        },
        algorithm,
    )?;
    let tree = ImportTree::new(&stored.indptr, &stored.indices, &mut Findings::default())?;
    let mut entries: Vec<Option<ManifestEntry>> = entries.into_iter().map(Some).collect();
    // TREE-20, BLOB-12: a group of several is the merged host library, one entry for all of them.
    let modules = stored
        .groups
        .iter()
        .filter_map(|group| entries.get_mut(*group.first()?)?.take())
        .map(ManifestEntry::into_module)
        .collect();
    Ok(Blob {
        layout,
        modules,
        tree: Some(tree),
    })
}
