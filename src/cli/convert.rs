//! `tvmspec convert FILE [--layout L] -o OUT`: writes the library binary of a file in another layout or another file format.

use super::convert_params::CacheForm;
use super::input::Input;
use super::library::{LibraryChoice, PayloadPlaces, warn_of_left_out};
use super::package::Packaging;
use super::replace_blob::WholeLibrary;
use super::{CliError, Exit, convert_params};
use std::collections::HashMap;
use std::path::PathBuf;
use tvmspec::blob::LibraryModule;
use tvmspec::release::{Layout, Release};

#[derive(clap::Args)]
pub(crate) struct ConvertArgs {
    /// The file to read, or - for stdin
    file: PathBuf,
    /// The layout to write [default: that of the file]
    #[arg(long, value_name = "0.2|0.7|0.21|0.22")]
    layout: Option<Layout>,
    /// Read the library binary in this layout, even if symbol and bytes indicate another one
    #[arg(long, value_name = "L")]
    from: Option<Layout>,
    /// The number of the library binary, from 0, if the file has several
    #[arg(long, value_name = "N")]
    blob: Option<usize>,
    /// Keep everything else in the file unchanged, including host code; only between layouts with the same symbol
    #[arg(long)]
    whole: bool,
    /// Store float32 in a tensor cache as bfloat16, as TVM does by default; the lower half of each value is lost
    #[arg(long)]
    bf16: bool,
    /// The release that wrote a parameter file, because type codes differ between releases (TEN-02)
    #[arg(long, value_name = "R")]
    written_by: Option<Release>,
    #[command(flatten)]
    packaging: Packaging,
}

/// Reads the library binary, converts it to the layout of `--layout` or keeps its own, and writes the file of `-o`.
pub(crate) fn run(args: ConvertArgs) -> Result<Exit, CliError> {
    let form = CacheForm {
        is_bf16: args.bf16,
        written_by: args.written_by,
    };
    // Opened once, because a pipe cannot be read twice.
    let input = Input::open(&args.file)?;
    if let Some(exit) = convert_params::convert(&input, args.packaging.output(), form)? {
        return Ok(exit);
    }
    let choice = LibraryChoice {
        input: &input,
        layout: args.from,
        blob: args.blob,
    };
    // Requires a whole library binary: converting the readable part of a broken one would silently lose modules.
    choice.with_valid_blob(|unit, blob, findings| {
        let layout = args.layout.unwrap_or(blob.layout);
        // BLOB-17: if the other layout cannot hold something, the command fails, but the file breaks no rule.
        let converted = blob.convert(layout).map_err(|broken| {
            let message = format!(
                "{} cannot go from layout {} to {}: {}",
                unit.name,
                blob.layout,
                layout,
                broken.message()
            );
            CliError::broken(&unit.name, &broken, message)
        })?;
        // A payload that did not change is copied unchanged, including bytes that no reader checks.
        let places = converted
            .modules
            .iter()
            .filter_map(LibraryModule::stored)
            .map(|module| (module.offset, &module.payload));
        let written: HashMap<_, _> = places.collect();
        let is_kept = |module: &&LibraryModule<'_>| {
            let module = module.stored();
            module.is_some_and(|module| written.get(&module.offset) == Some(&&module.payload))
        };
        let kept = PayloadPlaces::from_modules(blob.modules.iter().filter(is_kept));
        warn_of_left_out(unit, findings, &kept);
        if args.whole {
            let library = WholeLibrary {
                name: input.line(),
                bytes: input.bytes().into(),
                index: args.blob,
            };
            return args.packaging.replace_in_library(&converted, &library);
        }
        args.packaging.warn_of_machine(input.bytes());
        args.packaging.write(&converted)
    })
}
