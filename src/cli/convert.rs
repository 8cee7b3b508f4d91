//! `tvmspec convert FILE --layout L -o OUT`: the library binary of a file, in another layout.

use super::diagnostic::Place;
use super::input::Input;
use super::package::Packaging;
use super::subject::{Unit, pick};
use super::{Error, Exit, output, subject};
use std::path::PathBuf;
use tvmspec::blob::Module;
use tvmspec::examine::loading::reads;
use tvmspec::release::{Layout, Release};
use tvmspec::rule::{Findings, Violation};

/// The input is any container; its host code is not touched, and not carried over: give objects of it by --with.
///
/// What a layout cannot hold is refused with the reason.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The file to read, or - for stdin
    file: PathBuf,
    /// The layout to write
    #[arg(long, value_name = "0.2|0.7|0.21|0.22")]
    layout: Layout,
    /// Read the file in this layout, whatever symbol and bytes say
    #[arg(long, value_name = "L")]
    from: Option<Layout>,
    /// Which library binary, counted from 0, of a file that has several
    #[arg(long, value_name = "N")]
    blob: Option<usize>,
    #[command(flatten)]
    packaging: Packaging,
}

pub(crate) fn run(args: Args) -> Result<Exit, Error> {
    let input = Input::open(&args.file)?;
    let file = subject::open(&input).map_err(|broken| broken_input(&input, &broken))?;
    let units = subject::units(&input, &file, args.from);
    let unit = pick(&input, &file, &units, args.blob)?;
    let Some(partial) = unit.library() else {
        return Err(subject::nothing(&input, &file));
    };
    if let Some(broken) = &partial.broken {
        report(unit, broken);
        return Ok(Exit::Bad);
    }
    let from = partial.blob.layout;
    let converted = partial.blob.convert(args.layout).map_err(|refused| {
        Error::new(format!(
            "{} cannot go from layout {from} to {}: {}",
            unit.name,
            args.layout,
            refused.message()
        ))
    })?;
    for (index, module) in converted.modules.iter().enumerate() {
        if let Some(why) = unreadable(module, args.layout) {
            output::note(format_args!(
                "warning: no release that reads layout {} loads module {index}: {why}",
                args.layout
            ));
        }
    }
    args.packaging.write(&converted)
}

/// Shows where a library binary is broken.
pub(crate) fn report(unit: &Unit<'_>, broken: &Violation) {
    let reading = unit.trace();
    let place = Place {
        name: &unit.name,
        bytes: &unit.bytes,
        spans: &reading.spans,
    };
    eprint!("{}", place.violation(broken));
}

/// Why no release of `layout` loads the module, as of the last of them; `None` where one does.
fn unreadable(module: &Module<'_>, layout: Layout) -> Option<String> {
    let payload = module.decode(layout, &mut Findings::default()).ok()??;
    let mut why = None;
    for release in Release::all().filter(|release| layout.releases().contains(*release)) {
        why = Some(reads(release, &module.kind, Some(&payload)).err()?);
    }
    why
}

pub(crate) fn broken_input(input: &Input, broken: &Violation) -> Error {
    Error::new(format!(
        "{}: the container itself is broken, {broken}; `tvmspec verify` shows where",
        input.name
    ))
}
