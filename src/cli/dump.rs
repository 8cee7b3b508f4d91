//! `tvmspec dump FILE`: every byte with its field and its rule.

use super::hexdump::{Dump, Mark};
use super::input::Input;
use super::output::Shown;
use super::subject::{Format, Reading, Unit};
use super::{Error, Exit, output, subject};
use serde::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::json;
use std::cell::Cell;
use std::fmt::{self, Write as _};
use std::path::PathBuf;
use tvmspec::blob::container::Part;
use tvmspec::release::Layout;
use tvmspec::wire::Span;

/// Offsets count from the start of the library binary. What no field covers is called unread: it lies behind a broken
/// rule. A file of more fields than memory is spent on ends with the offset to go on from. Compiled code without a library binary
/// has no fields, and the dump is empty. Exit code 1 if a rule is broken.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The file, or - for stdin
    file: PathBuf,
    /// Leave nothing out: long fields and long vectors are shown whole
    #[arg(long)]
    all: bool,
    /// Read library binaries in this layout, whatever symbol and bytes say
    #[arg(long, value_name = "0.2|0.7|0.21|0.22")]
    layout: Option<Layout>,
    /// Read the file as the payload of a module of this kind, as --layout stores it [default layout: 0.22]
    #[arg(long, value_name = "KIND")]
    kind: Option<String>,
    /// Leave out the fields that end at this offset or before
    #[arg(long, value_name = "OFFSET", default_value = "0", hide_default_value = true, value_parser = offset)]
    from: u64,
    /// Print JSON: a list of {"name", "format", "bytes", "fields": [{"start", "end", "field", "value", "rule"}]}
    #[arg(long)]
    json: bool,
}

/// An offset as the dump writes it, 0x1f8, or in decimal.
fn offset(text: &str) -> Result<u64, String> {
    let number = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    number.map_err(|error| error.to_string())
}

pub(crate) fn run(args: Args) -> Result<Exit, Error> {
    let input = Input::open(&args.file)?;
    let file;
    let units = match &args.kind {
        Some(kind) => vec![subject::payload_of(
            &input,
            kind,
            args.layout.unwrap_or(Layout::V0_22),
        )?],
        None => {
            file = subject::contents(&input)?;
            let units = subject::units(&input, &file, args.layout);
            if units.is_empty() {
                if !file.parts.iter().any(Part::is_compiled) {
                    return Err(subject::nothing(&input, &file));
                }
                // Compiled code has no fields of ours, and that it has none is the answer.
                output::note(subject::host_only(&input));
            }
            units
        }
    };
    let broken = Cell::new(false);
    if args.json {
        output::json(&Listed {
            units: &units,
            from: args.from,
            broken: &broken,
        })?;
    } else {
        output::stream(|out| {
            for unit in &units {
                let reading = unit.trace_from(args.from);
                broken.set(broken.get() || reading.broken.is_some());
                let headed = units.len() > 1
                    || matches!(&unit.format, Format::Library { symbol, .. } if !symbol.is_empty());
                if headed {
                    let (name, title, length) = (&unit.name, unit.title(), unit.bytes.len());
                    writeln!(out, "# {name}, {title}, {length} bytes")?;
                }
                dump(out, unit, &reading, &args)?;
            }
            Ok(())
        })?;
    }
    Ok(if broken.get() { Exit::Bad } else { Exit::Good })
}

fn dump(out: &mut Shown<'_>, unit: &Unit<'_>, reading: &Reading, args: &Args) -> fmt::Result {
    let mut marks: Vec<Mark> = reading
        .findings
        .iter()
        .map(|finding| Mark {
            offset: finding.offset,
            text: format!("{} finding: {}", finding.rule, finding.message),
        })
        .collect();
    if let Some(broken) = &reading.broken {
        marks.push(Mark {
            offset: broken.offset().unwrap_or(0),
            text: format!("{} broken: {}", broken.rule(), broken.message()),
        });
    }
    marks.sort_by_key(|mark| mark.offset);
    Dump {
        bytes: &unit.bytes,
        spans: &reading.spans,
        marks: &marks,
        whole: args.all,
        from: args.from,
        to: reading.left_out,
    }
    .render(out)
}

/// The units as JSON, written one by one: only one is in memory at a time.
struct Listed<'d, 'a> {
    units: &'d [Unit<'a>],
    from: u64,
    broken: &'d Cell<bool>,
}

impl Serialize for Listed<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.units.iter().map(|unit| {
            let reading = unit.trace_from(self.from);
            self.broken
                .set(self.broken.get() || reading.broken.is_some());
            Fields { unit, reading }
        }))
    }
}

struct Fields<'d, 'a> {
    unit: &'d Unit<'a>,
    reading: Reading,
}

impl Serialize for Fields<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("name", &self.unit.name)?;
        map.serialize_entry("format", &self.unit.title())?;
        map.serialize_entry("bytes", &self.unit.bytes.len())?;
        map.serialize_entry("fields", &Spans(&self.reading.spans))?;
        if let Some(offset) = self.reading.left_out {
            map.serialize_entry("left_out_from", &offset)?;
        }
        let broken = self.reading.broken.as_ref().map(ToString::to_string);
        map.serialize_entry("broken", &broken)?;
        map.end()
    }
}

struct Spans<'d>(&'d [Span]);

impl Serialize for Spans<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|span| {
            json!({
                "start": span.start,
                "end": span.end,
                "field": span.field,
                "value": span.value,
                "rule": span.rule.id(),
            })
        }))
    }
}
