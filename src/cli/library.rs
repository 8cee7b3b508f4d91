//! Selection of the library binary for a command.

use super::diagnostic::DiagnosedBytes;
use super::input::Input;
use super::output::{self, escape_line};
use super::{CliError, Exit, embedding};
use std::collections::BTreeMap;
use tvmspec::blob::{Blob, LibraryModule, PartialBlob};
use tvmspec::examine::{Format, NotExaminable, Subject, Unit};
use tvmspec::release::Layout;
use tvmspec::rule::{Finding, Findings, Kind};

/// The file, and which of its library binaries.
///
/// `convert`, `extract` and `unpack` work on one library binary, whereas `inspect` and `verify` report on all.
pub(crate) struct LibraryChoice<'c> {
    /// The open file.
    pub(crate) input: &'c Input,
    /// Overrides what symbols and bytes indicate (BLOB-18).
    pub(crate) layout: Option<Layout>,
    /// Its number, if the file has several.
    pub(crate) blob: Option<usize>,
}

impl LibraryChoice<'_> {
    /// Reads the library binary as far as it is valid, and passes it to `work` with the unit.
    pub(crate) fn with_partial_blob(
        self,
        work: impl FnOnce(&Unit<'_>, PartialBlob<'_>) -> Result<Exit, CliError>,
    ) -> Result<Exit, CliError> {
        let subject = subject(self.input, self.layout)?;
        let units = subject.units();
        let unit = pick(&subject, &units, self.blob)?;
        match unit.library() {
            Some(partial) => work(unit, partial),
            None => Err(CliError::line(subject.not_examinable())),
        }
    }

    /// Like [`LibraryChoice::with_partial_blob`], for work that needs all of it: if a rule is broken, the command prints the place and fails.
    pub(crate) fn with_valid_blob(
        self,
        work: impl FnOnce(&Unit<'_>, Blob<'_>, &Findings) -> Result<Exit, CliError>,
    ) -> Result<Exit, CliError> {
        self.with_partial_blob(|unit, partial| match partial.broken {
            None => work(unit, partial.blob, &partial.findings),
            Some(broken) if embedding::is_embedded() => {
                Err(CliError::broken(&unit.name, &broken, &broken))
            }
            Some(broken) => {
                let place = DiagnosedBytes {
                    name: &unit.name,
                    bytes: &unit.bytes,
                    // Read a second time with a record of the fields, which only the diagnostic needs.
                    spans: &unit.trace().spans,
                };
                output::note_of(|out| place.violation(out, &broken));
                Ok(Exit::Bad)
            }
        })
    }
}

/// Warns about bytes of the library binary that the output lacks, because no reader checks them. Payloads of `kept` are written
/// unchanged, so that their bytes are not lost.
pub(crate) fn warn_of_left_out(unit: &Unit<'_>, findings: &Findings, kept: &PayloadPlaces) {
    /// The number of warnings, because a hostile file may cause thousands.
    const MOST: usize = 20;
    let lost = |finding: &&Finding| finding.kind == Kind::Trailing && !kept.has(finding.offset);
    let lost: Vec<&Finding> = findings.as_slice().iter().filter(lost).collect();
    for finding in lost.iter().take(MOST) {
        output::warning(format_args!(
            "{}, byte {:#x}: {}; they are left out [{}]",
            escape_line(&unit.name),
            finding.offset,
            escape_line(&finding.message),
            finding.rule
        ));
    }
    if lost.len() > MOST {
        let more = lost.len() - MOST;
        output::warning(format_args!(
            "{more} more runs of bytes are left out; `tvmspec verify` lists them"
        ));
    }
}

/// The positions of payloads in a library binary: the length of each by its offset.
pub(crate) struct PayloadPlaces(BTreeMap<u64, u64>);

impl PayloadPlaces {
    /// Collects the payloads of these modules.
    pub(crate) fn from_modules<'m>(
        modules: impl IntoIterator<Item = &'m LibraryModule<'m>>,
    ) -> PayloadPlaces {
        let payload = |module: &LibraryModule<'_>| {
            let module = module.stored()?;
            Some((module.offset, module.payload.len() as u64))
        };
        PayloadPlaces(modules.into_iter().filter_map(payload).collect())
    }

    /// Returns whether the byte at `offset` belongs to a payload.
    fn has(&self, offset: u64) -> bool {
        let before = self.0.range(..=offset).next_back();
        before.is_some_and(|(start, length)| offset - start < *length)
    }
}

/// Opens the container in the input, for commands that cannot work on a broken container. `layout` overrides the layout that symbols
/// and bytes indicate (BLOB-18).
pub(crate) fn subject(input: &Input, layout: Option<Layout>) -> Result<Subject<'_>, CliError> {
    Subject::open(&input.name, input.bytes(), layout).map_err(|broken| {
        let message = NotExaminable::broken(&input.name, &broken);
        CliError::broken(&input.name, &broken, message)
    })
}

/// Selects the library binary for a command: the only one, or number `wanted`, counted from 0 in the order of the file.
pub(super) fn pick<'u, 'a>(
    subject: &Subject<'_>,
    units: &'u [Unit<'a>],
    wanted: Option<usize>,
) -> Result<&'u Unit<'a>, CliError> {
    let libraries: Vec<&Unit<'a>> = units
        .iter()
        // --blob counts only library binaries, because a file may also have parameters or a graph.
        .filter(|unit| matches!(unit.format, Format::Library { .. }))
        .collect();
    match (libraries.as_slice(), wanted) {
        // Independent of the number: the description of the file helps more than a message about a missing number.
        ([], _) => Err(CliError::line(subject.not_examinable())),
        ([one], None) => Ok(one),
        (several, Some(index)) => several.get(index).copied().ok_or_else(|| {
            CliError::new(format!(
                "there is no library binary {index} in {}: it has {}, counted from 0",
                escape_line(subject.name),
                several.len()
            ))
        }),
        (several, None) => {
            let names: Vec<String> = several
                .iter()
                .enumerate()
                .map(|(index, unit)| format!("\n  --blob {index}  {}", escape_line(&unit.name)))
                .collect();
            Err(CliError::new(format!(
                "{} has {} library binaries; choose one:{}",
                escape_line(subject.name),
                several.len(),
                names.concat()
            )))
        }
    }
}
