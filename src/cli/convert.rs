//! `tvmspec convert FILE [--layout L] -o OUT`: the library binary of a file, in another layout or another form of file.

use super::library::{LibraryChoice, PayloadPlaces, warn_of_left_out};
use super::output::line_of;
use super::package::Packaging;
use super::whole::WholeLibrary;
use super::{CliError, Exit, output};
use std::collections::HashMap;
use std::path::PathBuf;
use tvmspec::blob::StoredModule;
use tvmspec::examine::loading::refusal;
use tvmspec::release::{Layout, Release};
use tvmspec::rule::Findings;

/// The input is any container; its host code is not touched, and not carried over: pass objects of it by --with.
///
/// What a layout cannot hold is rejected with the reason. Bytes that no reader looks at are left out, with a warning.
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
    #[command(flatten)]
    packaging: Packaging,
}

/// Reads the library binary, rewrites it in the layout of `--layout`, or its own, and writes the file of `-o`. Warns of each
/// module that no release of that layout loads, which is no failure: the file may be meant for another reader.
pub(crate) fn run(args: ConvertArgs) -> Result<Exit, CliError> {
    let choice = LibraryChoice {
        file: &args.file,
        layout: args.from,
        blob: args.blob,
    };
    // The whole of it: a conversion of what is left of a broken one would lose modules without a word.
    choice.whole(|input, unit, blob, findings| {
        let layout = args.layout.unwrap_or(blob.layout);
        // BLOB-17: what the other layout cannot hold is an error about this command, not a broken rule of the file.
        let converted = blob.convert(layout).map_err(|broken| {
            CliError::new(format!(
                "{} cannot go from layout {} to {}: {}",
                line_of(&unit.name),
                blob.layout,
                layout,
                broken.message()
            ))
        })?;
        for (index, module) in converted.modules.iter().enumerate() {
            if let Some(why) = unreadable(module, layout) {
                output::warning(format_args!(
                    "no release that reads layout {layout} loads module {index}: {why}"
                ));
            }
        }
        // A payload that is as it was keeps its place, with whatever no reader looks at.
        let places = converted
            .modules
            .iter()
            .map(|module| (module.offset, &module.payload));
        let written: HashMap<_, _> = places.collect();
        let is_kept =
            |module: &&StoredModule<'_>| written.get(&module.offset) == Some(&&module.payload);
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
        args.packaging.write(&converted)
    })
}

/// Why no release of `layout` loads the module, as of the last of them; `None` where one does.
fn unreadable(module: &StoredModule<'_>, layout: Layout) -> Option<String> {
    let payload = module.decode(layout, &mut Findings::default()).ok()??;
    // A payload that does not decode above, or of an unknown kind, has no form to compare: nothing is claimed about
    // it.
    let mut why = None;
    // One release that reads it is enough: forms changed inside a layout (PAY-09), and the file may be meant for that one.
    for release in Release::all().filter(|release| layout.releases().contains(*release)) {
        why = Some(refusal(release, &module.kind, Some(&payload))?);
    }
    why
}
