//! `tvmspec check`: holds an implementation to the rules.

use super::{Error, Exit, output};
use indicatif::{ProgressBar, ProgressStyle};
use std::fs;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::time::Duration;
use tvmspec::conformance::adapter::{self, Limits, protocol};
use tvmspec::conformance::case::Suite;
use tvmspec::conformance::known::Known;
use tvmspec::conformance::report::{self, Form};
use tvmspec::conformance::runner::{Run, Selection, run_observed};
use tvmspec::conformance::{CHAPTERS, chapter};
use tvmspec::release::Release;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The implementation: builtin, exec:COMMAND, ffi:LIB[,LIB..], legacy:LIB[,LIB..], device:NAME, liar:NAME
    #[arg(long = "impl", value_name = "SPEC", default_value = "builtin")]
    implementation: String,
    /// Only cases of this chapter; may be given several times
    #[arg(long, value_name = "NAME")]
    chapter: Vec<String>,
    /// Only cases whose id matches, with * for any text and ? for one letter; may be given several times
    #[arg(long, value_name = "GLOB")]
    case: Vec<String>,
    /// Only what holds in this TVM release, such as 0.8
    #[arg(long)]
    release: Option<Release>,
    /// Failures that are known, as TOML: case, verdict, varies, reason, url, expires
    #[arg(long, value_name = "FILE")]
    known: Option<PathBuf>,
    /// The form of the report: text, json, junit, md, html
    #[arg(long, value_name = "FORM", default_value = "text")]
    report: Form,
    /// Write the report there instead of to stdout
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// How long one answer may take
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    timeout: Duration,
    /// Address space of an implementation in its own process, in MiB (Unix)
    #[arg(long, value_name = "MIB")]
    memory: Option<u64>,
    /// Give up after so many hangs in a row; 0 for never
    #[arg(long, value_name = "N", default_value_t = 3)]
    max_hangs: usize,
    /// List the selected cases and stop
    #[arg(long)]
    list: bool,
    /// List every operation with its arguments and stop
    #[arg(long)]
    ops: bool,
    /// Teach the exec protocol on one screen and stop
    #[arg(long)]
    help_exec: bool,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text
        .parse()
        .map_err(|_| "not a number of seconds".to_owned())?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(limit) if !limit.is_zero() => Ok(limit),
        _ => Err("not a positive number of seconds".to_owned()),
    }
}

pub(crate) fn run(args: Args) -> Result<Exit, Error> {
    let mut out = io::stdout().lock();
    if args.help_exec {
        out.write_all(protocol::TEACH.as_bytes())?;
        return Ok(Exit::Good);
    }
    if args.ops {
        for op in CHAPTERS.iter().flat_map(|chapter| chapter.ops()) {
            writeln!(out, "{:<20} {}", op.name, op.help)?;
        }
        return Ok(Exit::Good);
    }
    if let Some(unknown) = args.chapter.iter().find(|name| chapter(name).is_none()) {
        let names: Vec<&str> = CHAPTERS.iter().map(|chapter| chapter.name).collect();
        return Err(Error::new(format!(
            "there is no chapter `{unknown}`: {}",
            names.join(", ")
        )));
    }
    let order = Run {
        selection: Selection {
            chapters: args.chapter,
            cases: args.case,
            release: args.release,
        },
        known: known(args.known)?,
        hangs: args.max_hangs,
        implementation: args.implementation,
        ..Run::default()
    };
    let suite = Suite::embedded();
    if args.list {
        for case in suite
            .cases
            .iter()
            .filter(|case| order.selection.takes(case))
        {
            writeln!(
                out,
                "{:<44} {:<14} {}",
                case.id,
                case.releases,
                case.rules.join(" ")
            )?;
        }
        return Ok(Exit::Good);
    }
    let limits = Limits {
        timeout: args.timeout,
        memory: args.memory,
    };
    let mut adapter = adapter::open(&order.implementation, limits)?;
    let selected = suite
        .cases
        .iter()
        .filter(|case| order.selection.takes(case))
        .count();
    let progress = progress(selected);
    let report = run_observed(suite, &mut *adapter, &order, &mut |outcome| {
        progress.set_message(outcome.case.id.clone());
        progress.inc(1);
    });
    progress.finish_and_clear();
    let report = report?;
    let text = report::render(args.report, &report);
    match args.output {
        Some(file) => fs::write(&file, text)
            .map_err(|error| format!("cannot write {}: {error}", file.display()))?,
        // A foreign implementation says what it likes.
        None => out.write_all(output::plain(&text).as_bytes())?,
    }
    Ok(if report.is_good() {
        Exit::Good
    } else {
        Exit::Bad
    })
}

fn known(file: Option<PathBuf>) -> Result<Known, Error> {
    let Some(file) = file else {
        return Ok(Known::default());
    };
    let text = fs::read_to_string(&file)
        .map_err(|error| format!("cannot read {}: {error}", file.display()))?;
    Known::parse(&text).map_err(|error| Error::new(format!("{}: {error}", file.display())))
}

/// Shown only on a terminal, and only when the run takes long enough to be looked at.
fn progress(cases: usize) -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg}");
    let bar = ProgressBar::new(cases as u64);
    match style {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
