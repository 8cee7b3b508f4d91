//! `tvmspec dump FILE`: every byte with its field and its rule.

use super::convert::broken_input;
use super::hexdump::{Dump, Mark};
use super::input::Input;
use super::subject::{Format, Reading, Unit};
use super::{Error, Exit, output, subject};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::PathBuf;
use tvmspec::release::Layout;

/// Offsets count from the start of the library binary. What no field covers is called unread: it lies behind a broken
/// rule. Exit code 1 if a rule is broken.
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
    /// Print JSON: a list of {"name", "format", "bytes", "fields": [{"start", "end", "field", "value", "rule"}]}
    #[arg(long)]
    json: bool,
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
            file = subject::open(&input).map_err(|broken| broken_input(&input, &broken))?;
            let units = subject::units(&input, &file, args.layout);
            if units.is_empty() {
                return Err(subject::nothing(&input, &file));
            }
            units
        }
    };
    let readings: Vec<Reading> = units.iter().map(Unit::trace).collect();
    let broken = readings.iter().any(|reading| reading.broken.is_some());
    if args.json {
        let units: Vec<Value> = units.iter().zip(&readings).map(as_json).collect();
        output::json(&Value::from(units))?;
    } else {
        let headed = units.len() > 1
            || matches!(&units[0].format, Format::Library { symbol, .. } if !symbol.is_empty());
        let mut text = String::new();
        for (unit, reading) in units.iter().zip(&readings) {
            if headed {
                let _ = writeln!(
                    text,
                    "# {}, {}, {} bytes",
                    unit.name,
                    unit.title(),
                    unit.bytes.len()
                );
            }
            text.push_str(&dump(unit, reading, args.all));
        }
        output::show(&text)?;
    }
    Ok(if broken { Exit::Bad } else { Exit::Good })
}

fn dump(unit: &Unit<'_>, reading: &Reading, whole: bool) -> String {
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
        whole,
    }
    .render()
}

fn as_json((unit, reading): (&Unit<'_>, &Reading)) -> Value {
    let fields: Vec<Value> = reading
        .spans
        .iter()
        .map(|span| {
            json!({
                "start": span.start,
                "end": span.end,
                "field": span.field,
                "value": span.value,
                "rule": span.rule.id(),
            })
        })
        .collect();
    json!({
        "name": unit.name,
        "format": unit.title(),
        "bytes": unit.bytes.len(),
        "fields": fields,
        "broken": reading.broken.as_ref().map(ToString::to_string),
    })
}
