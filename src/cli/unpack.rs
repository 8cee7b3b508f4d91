//! `tvmspec unpack FILE -o DIR`: writes a manifest and payloads from which `pack` rebuilds the library binary.

use super::input::{self, Input};
use super::library::{LibraryChoice, PayloadPlaces, warn_of_left_out};
use super::output::{self, Content};
use super::output_folder::OutputFolder;
use super::{CliError, Exit, replace_blob};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use tvmspec::blob::Blob;
use tvmspec::blob::container::FileForm;
use tvmspec::examine::unpack::unpack;
use tvmspec::file_name::FileNames;
use tvmspec::release::Layout;

#[derive(clap::Args)]
pub(crate) struct UnpackArgs {
    /// The file to read, or - for stdin
    file: PathBuf,
    /// The folder to write; created if it does not exist
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// Read the library binary in this layout, even if symbol and bytes indicate another one
    #[arg(long, value_name = "0.2|0.7|0.21|0.22")]
    layout: Option<Layout>,
    /// The number of the library binary, from 0, if the file has several
    #[arg(long, value_name = "N")]
    blob: Option<usize>,
    /// Also store the whole file. `pack` then replaces only its library binary, and keeps the host code
    #[arg(long)]
    whole: bool,
    /// Replace the manifest of another library in the folder, and remove the files that it lists
    #[arg(long)]
    force: bool,
}

/// Writes the manifest and the payloads of the library binary into the folder of `-o`.
pub(crate) fn run(args: UnpackArgs) -> Result<Exit, CliError> {
    // Other commands write `-` to stdout. Here it would become a folder of that name.
    if args.output.as_os_str() == "-" {
        return Err(CliError::new(
            "a folder cannot go to stdout: name one with -o",
        ));
    }
    let input = Input::open(&args.file)?;
    let choice = LibraryChoice {
        input: &input,
        layout: args.layout,
        blob: args.blob,
    };
    choice.with_valid_blob(|unit, blob, findings| {
        // Payloads are written unchanged.
        let kept = PayloadPlaces::from_modules(&blob.modules);
        let exit = write_out(&input, blob, &args)?;
        warn_of_left_out(unit, findings, &kept);
        Ok(exit)
    })
}

/// Writes the files of `unpack` into the folder of `-o`.
fn write_out(input: &Input, blob: Blob<'_>, args: &UnpackArgs) -> Result<Exit, CliError> {
    let mut unpacked = unpack(blob).map_err(CliError::new)?;
    let form = FileForm::detect(input.bytes());
    if args.whole {
        let extension = args
            .file
            .extension()
            .and_then(|extension| extension.to_str());
        // Stdin has no name, and a name may have no extension.
        let usual = replace_blob::extensions(form).first().copied();
        let extension = extension.or(usual).unwrap_or("bin");
        unpacked.library = Some(FileNames::default().add("library", extension));
        unpacked.blob = args.blob;
    }
    let text = output::json_text(&unpacked)?;
    let mut folder = OutputFolder::open(&args.output, &[])?;
    // After the folder is locked, because another process may have just written the manifest.
    let stale = stale_files(&args.output, &text, args.force)?;
    for (name, payload) in unpacked.files() {
        folder.write(name, payload, Content::Binary)?;
    }
    if let Some(name) = &unpacked.library {
        let content = match form {
            FileForm::ElfShared | FileForm::MachOShared => Content::Library,
            _ => Content::Binary,
        };
        folder.write(name, input.bytes(), content)?;
    }
    folder.write(MANIFEST, text.as_bytes(), Content::Text)?;
    // The old manifest is removed first, and the new one is written last. If a manifest exists, all of its files exist.
    folder.remove(MANIFEST)?;
    folder.finish()?;
    let written = unpacked.files().map(|(name, _)| name);
    let written: HashSet<&str> = written.chain(unpacked.library.as_deref()).collect();
    for name in stale {
        // A file that was written now does not belong to the other library.
        if !written.contains(name.as_str()) {
            folder.remove(&name)?;
        }
    }
    Ok(Exit::Good)
}

/// Returns the files in `folder` that the manifest of another library in it lists. Returns none if there is no manifest, or if it
/// equals `text`.
fn stale_files(folder: &Path, text: &str, force: bool) -> Result<Vec<String>, CliError> {
    let path = folder.join(MANIFEST);
    if !path.is_file() {
        return Ok(Vec::new());
    }
    // A manifest that cannot be read is a different one.
    let old = input::read(&path).unwrap_or_default();
    if old == text.as_bytes() {
        return Ok(Vec::new());
    }
    if !force {
        return Err(CliError::new(format!(
            "{} has the manifest of another library: name another folder, or let --force replace it and remove the files that it lists",
            output::file_name(folder)
        )));
    }
    let old: OldManifest = serde_json::from_slice(&old).unwrap_or_default();
    let names = old.modules.into_iter().map(|module| module.file);
    let names = names.chain([old.library]).flatten();
    // Only names as `unpack` writes them: a manifest written by hand may list any path, and files of other folders stay.
    let own = names.filter(|name| Path::new(name).components().count() == 1);
    let there = own.filter(|name| folder.join(name).is_file() && *name != MANIFEST);
    Ok(there.collect())
}

/// The files that a manifest lists.
#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct OldManifest {
    modules: Vec<OldModule>,
    library: Option<String>,
}

/// The file of a module.
#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct OldModule {
    file: Option<String>,
}

/// The name of the manifest.
const MANIFEST: &str = "manifest.json";
