//! `tvmspec unpack FILE -o DIR`: what `pack` makes a library binary of.

use super::input::Input;
use super::library::LibraryChoice;
use super::output::{self, Content};
use super::{CliError, Exit, whole};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use tvmspec::blob::Blob;
use tvmspec::blob::container::FileForm;
use tvmspec::examine::unpack::unpack;
use tvmspec::release::Layout;

/// The folder gets `manifest.json` and a file for each payload; `tvmspec pack DIR/manifest.json` writes the same bytes again.
///
/// Bytes that no reader looks at (`tvmspec verify` reports them) are left out.
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
}

/// Writes the manifest and the payloads of the library binary into the folder of `-o`.
///
/// # Errors
///
/// The file has no library binary, or several and no `--blob`; the folder cannot be written. A broken library binary
/// is [`Exit::Bad`].
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
    choice.whole(|input, _, blob| write_out(input, blob, &args))
}

/// Writes the files of `unpack` into the folder of `-o`.
///
/// # Errors
///
/// As [`put_all`]; a library binary of layout 0.2 that no manifest can list.
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
        let name = format!("library.{}", extension.or(usual).unwrap_or("bin"));
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
    put_all(&args.output, &files)?;
    Ok(Exit::Good)
}

/// The name of the manifest.
const MANIFEST: &str = "manifest.json";

/// Writes `files` into `folder`, all or none, the manifest last: where one is, all of its files are.
///
/// # Errors
///
/// The folder cannot be made, or a file in it not be written: what was there stays.
fn put_all(folder: &Path, files: &[(String, &[u8], Content)]) -> Result<(), CliError> {
    let failed = |error| CliError::new(format!("cannot write to {}: {error}", folder.display()));
    let mut made = MadeFolders::of(folder).map_err(failed)?;
    // Beside their names: a rename in one folder moves no bytes, and is what cannot fail for want of room.
    let staged = tempfile::Builder::new()
        .prefix(".tvmspec-")
        .tempdir_in(folder)
        .map_err(failed)?;
    for (name, bytes, content) in files {
        let path = folder.join(name);
        if path.is_dir() {
            let message = format!("cannot write {}: it is a directory", path.display());
            return Err(CliError::new(message));
        }
        output::write(&staged.path().join(name), bytes, *content)?;
    }
    // An older manifest goes first: the files beside it are about to be others.
    match std::fs::remove_file(folder.join(MANIFEST)) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    for (name, _, _) in files {
        std::fs::rename(staged.path().join(name), folder.join(name)).map_err(failed)?;
    }
    made.0.clear();
    Ok(())
}

/// The folders that were made for the output, the innermost first; gone when dropped, where they are empty.
struct MadeFolders(Vec<PathBuf>);

impl MadeFolders {
    /// Makes `folder`, and the folders around it that are missing.
    fn of(folder: &Path) -> std::io::Result<MadeFolders> {
        let missing = folder
            .ancestors()
            .take_while(|around| !around.as_os_str().is_empty() && !around.exists());
        let made = MadeFolders(missing.map(Path::to_owned).collect());
        std::fs::create_dir_all(folder)?;
        Ok(made)
    }
}

impl Drop for MadeFolders {
    fn drop(&mut self) {
        for folder in &self.0 {
            // One that is not empty is in use.
            let _ = std::fs::remove_dir(folder);
        }
    }
}
