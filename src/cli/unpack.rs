//! `tvmspec unpack FILE -o DIR`: what `pack` makes a library binary of.

use super::library::Choice;
use super::output::{self, Content};
use super::{Error, Exit};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use tvmspec::blob::{Blob, LIBRARY, Module};
use tvmspec::import_tree::ImportTree;
use tvmspec::release::Layout;

/// The folder gets `manifest.json` and a file for each payload; `tvmspec pack DIR/manifest.json` writes the same bytes again.
///
/// Bytes that no reader looks at (`tvmspec verify` reports them) are left out.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The file to read, or - for stdin
    file: PathBuf,
    /// The folder to write, made where it is missing
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// Read the library binary in this layout, whatever symbol and bytes say
    #[arg(long, value_name = "0.2|0.7|0.21|0.22")]
    layout: Option<Layout>,
    /// Which library binary, counted from 0, of a file that has several
    #[arg(long, value_name = "N")]
    blob: Option<usize>,
}

pub(crate) fn run(args: Args) -> Result<Exit, Error> {
    let choice = Choice {
        file: &args.file,
        layout: args.layout,
        blob: args.blob,
    };
    choice.whole(|_, blob| unpack(blob, &args.output))
}

fn unpack(blob: Blob<'_>, folder: &Path) -> Result<Exit, Error> {
    let layout = blob.layout;
    let listed = as_listed(blob)?;
    std::fs::create_dir_all(folder)?;
    let mut modules = Vec::new();
    for (index, module) in listed.modules.iter().enumerate() {
        let Some(payload) = &module.payload else {
            modules.push(json!({"kind": module.kind}));
            continue;
        };
        let name = file_name(index, module);
        output::write(&folder.join(&name), payload, Content::Binary)?;
        modules.push(json!({"kind": module.kind, "file": name}));
    }
    let mut manifest = json!({"layout": layout.name(), "modules": modules});
    if let Some(tree) = &listed.tree {
        manifest["import_tree"] = rows(tree);
    }
    // Last: where it is, all of its files are.
    let text = output::json_text(&manifest)?;
    let path = folder.join("manifest.json");
    output::write(&path, text.as_bytes(), Content::Text)?;
    Ok(Exit::Good)
}

/// The library in the form of a manifest: with a host library on top, also where the layout has none to store.
fn as_listed(blob: Blob<'_>) -> Result<Blob<'_>, Error> {
    if blob.layout == Layout::V0_2 {
        return blob.convert(Layout::V0_7).map_err(Error::new);
    }
    if !blob.modules.is_empty() {
        return Ok(blob);
    }
    let library = Module {
        kind: LIBRARY.into(),
        payload: None,
        offset: 0,
    };
    Ok(Blob {
        modules: vec![library],
        ..blob
    })
}

/// The number keeps names apart, whatever characters a kind has.
fn file_name(index: usize, module: &Module<'_>) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    let kind = module.kind.replace(|letter| !plain(letter), "_");
    format!("{index}.{kind}")
}

fn rows(tree: &ImportTree<'_>) -> Value {
    json!({"indptr": tree.indptr().to_vec(), "indices": tree.indices().to_vec()})
}
