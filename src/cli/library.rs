//! The one library binary that a command works on.

use super::diagnostic::DiagnosedBytes;
use super::input::Input;
use super::{CliError, Exit};
use std::path::Path;
use tvmspec::blob::{Blob, PartialBlob};
use tvmspec::examine::{Format, NotExaminable, Subject, Unit};
use tvmspec::release::Layout;

/// Which file, and which library binary in it.
///
/// `convert`, `extract` and `unpack` work on one library binary, where `inspect` and `verify` report on all.
pub(crate) struct LibraryChoice<'c> {
    /// The file, or `-` for stdin.
    pub(crate) file: &'c Path,
    /// Overrides what symbols and bytes indicate (BLOB-18).
    pub(crate) layout: Option<Layout>,
    /// Its number, where the file has several.
    pub(crate) blob: Option<usize>,
}

impl LibraryChoice<'_> {
    /// Reads the library binary as far as it is good, and hands it to `work`, with the file and the place in it.
    ///
    /// # Errors
    ///
    /// The file cannot be read, its container is broken, it has no library binary, or several and no number; or what
    /// `work` returns.
    pub(crate) fn partial(
        self,
        work: impl FnOnce(&Input, &Unit<'_>, PartialBlob<'_>) -> Result<Exit, CliError>,
    ) -> Result<Exit, CliError> {
        let input = Input::open(self.file)?;
        let subject = subject(&input, self.layout)?;
        let units = subject.units();
        let unit = pick(&subject, &units, self.blob)?;
        match unit.library() {
            Some(partial) => work(&input, unit, partial),
            None => Err(CliError::new(subject.nothing())),
        }
    }

    /// [`LibraryChoice::partial`] for work that needs all of it: where a rule is broken, the command shows the place and fails.
    ///
    /// # Errors
    ///
    /// See [`LibraryChoice::partial`]. A broken rule is [`Exit::Bad`].
    pub(crate) fn whole(
        self,
        work: impl FnOnce(&Input, &Unit<'_>, Blob<'_>) -> Result<Exit, CliError>,
    ) -> Result<Exit, CliError> {
        self.partial(|input, unit, partial| match partial.broken {
            None => work(input, unit, partial.blob),
            Some(broken) => {
                let place = DiagnosedBytes {
                    name: &unit.name,
                    bytes: &unit.bytes,
                    // Read a second time, with a record of the fields: only the diagnostic needs one.
                    spans: &unit.trace().spans,
                };
                eprint!("{}", place.violation(&broken));
                Ok(Exit::Bad)
            }
        })
    }
}

/// Opens the container in the input, for commands to which a broken container is an input that they cannot read.
/// `layout` overrides what symbols and bytes indicate (BLOB-18).
///
/// # Errors
///
/// The container breaks a rule: the message points to `verify`, which shows the place.
pub(crate) fn subject(input: &Input, layout: Option<Layout>) -> Result<Subject<'_>, CliError> {
    Subject::open(&input.name, input.bytes(), layout)
        .map_err(|broken| CliError::new(NotExaminable::broken(&input.name, &broken)))
}

/// Picks the library binary that a command is about: the only one, or number `wanted`, counted from 0 in the order of
/// the file.
///
/// # Errors
///
/// There is none, or none of this number, or several and no number: the message lists them with the option that
/// selects each.
fn pick<'u, 'a>(
    subject: &Subject<'_>,
    units: &'u [Unit<'a>],
    wanted: Option<usize>,
) -> Result<&'u Unit<'a>, CliError> {
    let libraries: Vec<&Unit<'a>> = units
        .iter()
        // --blob counts library binaries alone: a file may have parameters or a graph beside them.
        .filter(|unit| matches!(unit.format, Format::Library { .. }))
        .collect();
    match (libraries.as_slice(), wanted) {
        // Whatever the number is: what the file is helps more than that it has none of that number.
        ([], _) => Err(CliError::new(subject.nothing())),
        ([one], None) => Ok(one),
        (several, Some(index)) => several.get(index).copied().ok_or_else(|| {
            CliError::new(format!(
                "there is no library binary {index} in {}: it has {}, counted from 0",
                subject.name,
                several.len()
            ))
        }),
        (several, None) => {
            let names: Vec<String> = several
                .iter()
                .enumerate()
                .map(|(index, unit)| format!("\n  --blob {index}  {}", unit.name))
                .collect();
            Err(CliError::new(format!(
                "{} has {} library binaries; choose one:{}",
                subject.name,
                several.len(),
                names.concat()
            )))
        }
    }
}
