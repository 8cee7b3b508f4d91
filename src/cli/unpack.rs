//! `tvmspec unpack FILE -o DIR`: what `pack` makes a library binary of.

use super::input::{self, Input};
use super::library::{LibraryChoice, PayloadPlaces, warn_of_left_out};
use super::output::{self, Content};
use super::output_folder::OutputFolder;
use super::{CliError, Exit, whole};
use serde_json::Value;
use std::path::{Path, PathBuf};
use tvmspec::blob::Blob;
use tvmspec::blob::container::FileForm;
use tvmspec::examine::unpack::unpack;
use tvmspec::file_name::FileNames;
use tvmspec::release::Layout;

/// The folder gets `manifest.json` and a file for each payload; `tvmspec pack DIR/manifest.json` writes the same bytes again.
///
/// Bytes that no reader looks at (`tvmspec verify` reports them) are left out, with a warning. A folder with the manifest of another
/// library is rejected.
#[derive(clap::Args)]
pub(crate) struct UnpackArgs {
    /// The file to read, or - for stdin
    file: PathBuf,
    /// The folder to write, made where it is missing
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// Read the library binary in this layout, whatever symbol and bytes indicate
    #[arg(long, value_name = "0.2|0.7|0.21|0.22")]
    layout: Option<Layout>,
    /// Which library binary, counted from 0, of a file that has several
    #[arg(long, value_name = "N")]
    blob: Option<usize>,
    /// Keep the whole file beside the payloads: `pack` then puts the library binary back into it, and host code stays as it is
    #[arg(long)]
    whole: bool,
    /// Write into a folder with the manifest of another library, too; the files that it lists are removed
    #[arg(long)]
    force: bool,
}

/// Writes the manifest and the payloads of the library binary into the folder of `-o`.
pub(crate) fn run(args: UnpackArgs) -> Result<Exit, CliError> {
    let choice = LibraryChoice {
        file: &args.file,
        layout: args.layout,
        blob: args.blob,
    };
    // Stdout for other commands; here it would become a folder of that name.
    if args.output.as_os_str() == "-" {
        return Err(CliError::new(
            "a folder cannot go to stdout: name one with -o",
        ));
    }
    choice.whole(|input, unit, blob, findings| {
        // Payloads are written as they are.
        let kept = PayloadPlaces::of(&blob.modules);
        let exit = write_out(input, blob, &args)?;
        warn_of_left_out(unit, findings, &kept);
        Ok(exit)
    })
}

/// Writes the files of `unpack` into the folder of `-o`.
fn write_out(input: &Input, blob: Blob<'_>, args: &UnpackArgs) -> Result<Exit, CliError> {
    let mut unpacked = unpack(blob).map_err(CliError::new)?;
    let mut files: Vec<(String, &[u8], Content)> = Vec::new();
    for (name, payload) in &unpacked.files {
        files.push((name.clone(), payload, Content::Binary));
    }
    if args.whole {
        let form = FileForm::of(input.bytes());
        let extension = args
            .file
            .extension()
            .and_then(|extension| extension.to_str());
        // Stdin has no name, and a name no extension always.
        let usual = whole::extensions(form).first().copied();
        let extension = extension.or(usual).unwrap_or("bin");
        let name = FileNames::default().add("library", extension);
        unpacked.manifest["library"] = name.as_str().into();
        if let Some(index) = args.blob {
            unpacked.manifest["blob"] = index.into();
        }
        let content = match form {
            FileForm::ElfShared | FileForm::MachOShared => Content::Library,
            _ => Content::Binary,
        };
        files.push((name, input.bytes(), content));
    }
    let text = output::json_text(&unpacked.manifest)?;
    files.push((MANIFEST.to_owned(), text.as_bytes(), Content::Text));
    let mut folder = OutputFolder::open(&args.output, &[])?;
    // After the folder is locked: another process may have just written the manifest.
    let stale = stale(&args.output, &unpacked.manifest, args.force)?;
    for (name, bytes, content) in &files {
        folder.write(name, bytes, *content)?;
    }
    // An older manifest goes first, and the new one comes last: where one is, all of its files are.
    folder.remove(MANIFEST)?;
    folder.finish()?;
    for name in stale {
        // One that is written anew is no longer the other library's.
        if files.iter().all(|(written, _, _)| *written != name) {
            folder.remove(&name)?;
        }
    }
    Ok(Exit::Good)
}

/// The files in `folder` that the manifest of another library in it lists; none where there is no manifest, or the same one.
fn stale(folder: &Path, manifest: &Value, force: bool) -> Result<Vec<String>, CliError> {
    let path = folder.join(MANIFEST);
    if !path.is_file() {
        return Ok(Vec::new());
    }
    // A manifest that cannot be read is not this one.
    let old: Value = match input::read(&path) {
        Ok(bytes) => serde_json::from_slice(&bytes).unwrap_or_default(),
        Err(_) => Value::Null,
    };
    if old == *manifest {
        return Ok(Vec::new());
    }
    if !force {
        return Err(CliError::new(format!(
            "{} has the manifest of another library: name another folder, or let --force replace it and remove the files that it lists",
            output::file_name(folder)
        )));
    }
    let modules = old["modules"].as_array().into_iter().flatten();
    let names = modules
        .map(|module| &module["file"])
        .chain([&old["library"]]);
    let names = names.filter_map(Value::as_str);
    // As `unpack` names files: a manifest written by hand may list any, and those of other folders stay.
    let own = names.filter(|name| Path::new(name).components().count() == 1);
    let there = own.filter(|name| folder.join(name).is_file() && *name != MANIFEST);
    Ok(there.map(str::to_owned).collect())
}

/// The name of the manifest.
const MANIFEST: &str = "manifest.json";
