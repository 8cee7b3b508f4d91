//! `tvmspec dump FILE`: prints every byte with its field and its rule.

use super::color::{BAD, HEAD, ODD, StyledWrite as _};
use super::diagnostic::DiagnosedBytes;
use super::hexdump::{Hexdump, Mark};
use super::input::{Input, payload};
use super::output::{TerminalWriter, escape_line};
use super::table::columns;
use super::{CliError, Exit, output, verify};
use std::fmt::{self, Write as _};
use std::path::PathBuf;
use tvmspec::examine::dump;
use tvmspec::examine::{Format, Reading, Subject, Unit};
use tvmspec::release::Layout;

#[derive(clap::Args)]
pub(crate) struct DumpArgs {
    /// The file, or - for stdin
    file: PathBuf,
    /// Show long fields and long vectors completely
    #[arg(long)]
    all: bool,
    /// Read library binaries in this layout, even if symbol and bytes indicate another one
    #[arg(long, value_name = "0.2|0.7|0.21|0.22")]
    layout: Option<Layout>,
    /// Read the file as the payload of a module of this kind, in the layout of --layout [default layout: 0.22]
    #[arg(long, value_name = "KIND")]
    kind: Option<String>,
    /// Start at this offset, and leave out fields that end at or before it
    #[arg(long, value_name = "OFFSET", default_value = "0", hide_default_value = true, value_parser = offset)]
    from: u64,
    /// Print JSON, as spec/schema/dump.json describes it
    #[arg(long)]
    json: bool,
}

/// Parses an offset in hexadecimal, as the dump writes it (0x1f8), or in decimal.
fn offset(text: &str) -> Result<u64, String> {
    dump::parse_offset(text).ok_or_else(|| "it is not an offset: write 0x1f8 or 504".to_owned())
}

/// Prints the fields of every unit of the file, or those of one payload (`--kind`).
///
/// Returns [`Exit::Bad`] if a rule is broken. Without `--json`, each unit is printed before the next is read, because the fields take
/// many times the size of the bytes.
pub(crate) fn run(args: DumpArgs) -> Result<Exit, CliError> {
    let input = Input::open(&args.file)?;
    let subject = match &args.kind {
        Some(kind) => payload(&input, kind, args.layout)?,
        None => Subject::of_any(&input.name, input.bytes(), args.layout),
    };
    if let Some(broken) = subject.broken().filter(|_| !args.json) {
        let place = DiagnosedBytes {
            name: &input.name,
            bytes: input.bytes(),
            spans: &[],
        };
        output::note_of(|out| place.violation(out, broken));
        return Ok(Exit::Bad);
    }
    let fields = subject.dump_from(args.from).map_err(CliError::line)?;
    let units = fields.units();
    if units.is_empty() && subject.broken().is_none() {
        // Compiled code has no fields with rules. This is a valid answer, not an error.
        output::note(verify::host_only(subject.name));
    }
    let mut broken = false;
    if args.json {
        output::json(&fields)?;
        // Not known earlier, because units are read while their JSON is written.
        broken = fields.is_broken();
    } else {
        output::stream(|out| {
            for (unit, reading) in fields.readings() {
                broken |= reading.broken.is_some();
                // A single unit that is the whole file needs no heading, because the user has just typed its name.
                let headed = units.len() > 1
                    || matches!(&unit.format, Format::Library { symbol, .. } if !symbol.is_empty());
                if headed {
                    let (name, title) = (escape_line(&unit.name), unit.title());
                    let length = unit.bytes.len();
                    out.styled(HEAD, &format!("# {name}, {title}, {length} bytes"))?;
                    out.write_char('\n')?;
                }
                write_out(out, unit, &reading, &args)?;
            }
            Ok(())
        })?;
    }
    Ok(if broken { Exit::Bad } else { Exit::Good })
}

/// Writes the hexdump of a unit, with its findings and its broken rule next to the bytes.
fn write_out(
    out: &mut TerminalWriter,
    unit: &Unit<'_>,
    reading: &Reading,
    args: &DumpArgs,
) -> fmt::Result {
    let mut marks: Vec<Mark> = reading
        .findings
        .iter()
        .map(|finding| Mark {
            offset: finding.offset,
            style: ODD,
            head: "finding:",
            text: format!("{} [{}]", finding.message, finding.rule),
        })
        .collect();
    if let Some(broken) = &reading.broken {
        marks.push(Mark {
            // A value that was never stored as bytes has no offset, and is shown at the start.
            offset: broken.offset().unwrap_or(0),
            style: BAD,
            head: "broken:",
            text: format!("{} [{}]", broken.message(), broken.rule()),
        });
    }
    marks.sort_by_key(|mark| mark.offset);
    Hexdump {
        bytes: &unit.bytes,
        spans: &reading.spans,
        marks: &marks,
        whole: args.all,
        from: args.from,
        to: reading.left_out,
        columns: columns(),
    }
    .render(out)
}
