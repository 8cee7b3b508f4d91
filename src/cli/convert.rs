//! `tvmspec convert FILE [--layout L] -o OUT`: writes the library binary of a file in another layout or another file format.

use super::convert_params::CacheForm;
use super::library::{LibraryChoice, PayloadPlaces, warn_of_left_out};
use super::output::line_of;
use super::package::Packaging;
use super::whole::WholeLibrary;
use super::{CliError, Exit, convert_params};
use std::collections::HashMap;
use std::path::PathBuf;
use tvmspec::blob::LibraryModule;
use tvmspec::release::{Layout, Release};

/// The input is any container; its host code is not touched, and not carried over: pass objects of it by --with.
///
/// The index of a tensor cache, or its folder, becomes a parameter file, and a parameter file a tensor cache (-o DIR/tensor-cache.json),
/// in shards of 32 MiB.
///
/// What a layout cannot hold is rejected with the reason, and so is what the release of --release does not load. Bytes that no reader
/// looks at are left out, with a warning.
#[derive(clap::Args)]
pub(crate) struct ConvertArgs {
    /// The file to read, or - for stdin
    file: PathBuf,
    /// The layout to write [default: that of the file]
    #[arg(long, value_name = "0.2|0.7|0.21|0.22")]
    layout: Option<Layout>,
    /// Read the file in this layout, whatever symbol and bytes indicate
    #[arg(long, value_name = "L")]
    from: Option<Layout>,
    /// Which library binary, counted from 0, of a file that has several
    #[arg(long, value_name = "N")]
    blob: Option<usize>,
    /// Keep the rest of the file, host code included, byte for byte; for layouts with the same symbol
    #[arg(long)]
    whole: bool,
    /// Store float32 in a tensor cache as bfloat16, as TVM does by default: the lower half of each is lost
    #[arg(long)]
    bf16: bool,
    /// The release that wrote a parameter file, which says what its type codes mean where releases differ (TEN-02)
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
    if let Some(exit) = convert_params::convert(&args.file, args.packaging.output(), form)? {
        return Ok(exit);
    }
    let choice = LibraryChoice {
        file: &args.file,
        layout: args.from,
        blob: args.blob,
    };
    // Requires a whole library binary: converting the readable part of a broken one would silently lose modules.
    choice.whole(|input, unit, blob, findings| {
        let layout = args.layout.unwrap_or(blob.layout);
        // BLOB-17: if the other layout cannot hold something, the command fails, but the file breaks no rule.
        let converted = blob.convert(layout).map_err(|broken| {
            CliError::new(format!(
                "{} cannot go from layout {} to {}: {}",
                line_of(&unit.name),
                blob.layout,
                layout,
                broken.message()
            ))
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
        let kept = PayloadPlaces::of(blob.modules.iter().filter(is_kept));
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
