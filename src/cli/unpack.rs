//! `tvmspec unpack FILE -o DIR`: what `pack` makes a library binary of.

use super::library::LibraryChoice;
use super::output::{self, Content};
use super::{CliError, Exit};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use tvmspec::blob::Blob;
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
    choice.whole(|_, blob| write_out(blob, &args))
}

/// Writes the files of `unpack` into `folder`, the manifest last.
///
/// # Errors
///
/// The folder cannot be made, or a file in it not be written; the folder then has no manifest.
fn write_out(blob: Blob<'_>, args: &UnpackArgs) -> Result<Exit, CliError> {
    let folder: &Path = &args.output;
    let mut unpacked = unpack(blob).map_err(CliError::new)?;
    let failed = |error| CliError::new(format!("cannot write to {}: {error}", folder.display()));
    std::fs::create_dir_all(folder).map_err(failed)?;
    let path = folder.join("manifest.json");
    // An older manifest goes first, and the new one comes last: where one is, all of its files are.
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    for (name, payload) in &unpacked.files {
        output::write(&folder.join(name), payload, Content::Binary)?;
    }
    if args.whole {
        let extension = args
            .file
            .extension()
            .and_then(|extension| extension.to_str());
        let name = format!("library.{}", extension.unwrap_or("bin"));
        output::write(
            &folder.join(&name),
            &super::input::read(&args.file)?,
            Content::Binary,
        )?;
        unpacked.manifest["library"] = name.into();
        if let Some(index) = args.blob {
            unpacked.manifest["blob"] = index.into();
        }
    }
    let text = output::json_text(&unpacked.manifest)?;
    output::write(&path, text.as_bytes(), Content::Text)?;
    Ok(Exit::Good)
}
