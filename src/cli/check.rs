//! `tvmspec check`: checks an implementation against the rules.

use super::output::Content;
use super::output_folder::OutputFolder;
use super::{CliError, Exit, output};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};
use std::fs;
use std::io::{self, IsTerminal as _};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tvmspec::conformance::adapter::{self, Limits, Several, family, protocol};
use tvmspec::conformance::case::{Case, Suite};
use tvmspec::conformance::known_failures::KnownFailures;
use tvmspec::conformance::report::{self, ReportFormat};
use tvmspec::conformance::runner::{Report, Run, RunEvent, run_observed, run_parallel, select};
use tvmspec::conformance::{CHAPTERS, chapter};
use tvmspec::release::Release;

/// Test an implementation against the rules: this one, or any that speaks the exec protocol
///
/// Ctrl-C, SIGTERM and SIGHUP end the run. The report then covers the answered cases, marks the others as skipped, and names the
/// signal as a problem. The exit code is 1. Another signal at least a second later ends the program without a report.
#[derive(clap::Args)]
pub(crate) struct CheckArgs {
    /// The implementation: builtin, exec:COMMAND, ffi:LIB[,LIB..][#TARGET], legacy:LIB[,LIB..][@RELEASE][#TARGET],
    /// rpc:HOST:PORT[/KEY][@RELEASE], rpc-tracker:HOST:PORT/KEY[?wait=SECONDS][@RELEASE], device:NAME, liar:NAME
    #[arg(long = "impl", value_name = "SPEC", default_value = "builtin")]
    implementation: String,
    /// Only cases of this chapter; may be repeated
    #[arg(long, value_name = "NAME")]
    chapter: Vec<String>,
    /// Only cases whose id matches, with * for any text and ? for one letter; may be repeated
    #[arg(long, value_name = "GLOB")]
    case: Vec<String>,
    /// Only cases that apply to this TVM release, such as 0.8
    #[arg(long)]
    release: Option<Release>,
    /// Known failures, as TOML: case, verdict, varies, releases, implementation, versions, reason, url, expires
    #[arg(long, value_name = "FILE")]
    known: Option<PathBuf>,
    /// Also run cases that call a C compiler, and fail on unsupported and skipped cases unless --known names them
    #[arg(long)]
    complete: bool,
    /// The format of the report: text, json, junit, md, html; with --list: text, json [default: by the extension of --output, otherwise text]
    #[arg(long, value_name = "FORM")]
    report: Option<ReportFormat>,
    /// Write the report or the list to this file instead of stdout
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Also write the report to a file, in the format of its extension: .html, .json, .md, .txt, or .xml for JUnit; may be repeated
    #[arg(long, value_name = "FILE", value_parser = saved_report, conflicts_with_all = ["list", "show", "export"])]
    save: Vec<SavedReport>,
    /// Time limit for one answer of an implementation in a separate process [default: 10]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    timeout: Option<Duration>,
    /// Limit for the address space of an implementation in a separate process, in MiB (Unix)
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u64).range(1..))]
    memory: Option<u64>,
    /// Stop after this many hangs in a row; 0 for no limit [default: 3]
    #[arg(long, value_name = "N")]
    max_hangs: Option<usize>,
    /// Stop after this many crashes or invalid lines in a row; 0 for no limit [default: 20]
    #[arg(long, value_name = "N")]
    max_crashes: Option<usize>,
    /// Run this many cases at a time, each in a separate process, on a separate server of a tracker, or for builtin in a thread [default:
    /// 1, builtin: 8]
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    /// List the selected cases and stop
    #[arg(long, conflicts_with_all = ["implementation", "known", "complete", "timeout", "memory", "jobs", "max_hangs", "max_crashes"])]
    list: bool,
    /// Print the request and the expected answer of the selected cases and stop
    #[arg(long, conflicts_with_all = ["list", "implementation", "known", "complete", "timeout", "memory", "jobs", "max_hangs", "max_crashes", "report"])]
    show: bool,
    /// Write each selected case to a folder below DIR (request, expected answer, input) and stop
    #[arg(long, value_name = "DIR", conflicts_with_all = ["list", "show", "implementation", "known", "complete", "timeout", "memory", "jobs", "max_hangs", "max_crashes", "report", "output"])]
    export: Option<PathBuf>,
    /// List every operation with its arguments and stop
    #[arg(long, exclusive = true)]
    ops: bool,
    /// Explain the exec protocol on one screen and stop
    #[arg(long, exclusive = true)]
    help_exec: bool,
}

/// A file for the report, and the format that its extension selects.
#[derive(Clone)]
struct SavedReport {
    file: PathBuf,
    form: ReportFormat,
}

/// Parses the name of a file whose extension selects the format of a report.
fn saved_report(name: &str) -> Result<SavedReport, String> {
    let file = PathBuf::from(name);
    match form_of(&file) {
        Some(form) => Ok(SavedReport { file, form }),
        None => Err("its ending is not .html, .json, .md, .txt or .xml".to_owned()),
    }
}

/// Returns the format of a report that the extension of a file selects.
fn form_of(file: &Path) -> Option<ReportFormat> {
    Some(match file.extension()?.to_str()? {
        "html" => ReportFormat::Html,
        "json" => ReportFormat::Json,
        "md" => ReportFormat::Markdown,
        "txt" => ReportFormat::Text,
        "xml" => ReportFormat::Junit,
        _ => return None,
    })
}

/// Parses a time above 0, in seconds with or without a fraction.
pub(super) fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text
        .parse()
        .map_err(|_| "not a number of seconds".to_owned())?;
    // Rejects NaN and values that no duration holds, for which `from_secs_f64` would panic.
    match Duration::try_from_secs_f64(seconds) {
        Ok(limit) if !limit.is_zero() => Ok(limit),
        _ => Err("not a positive number of seconds".to_owned()),
    }
}

/// Runs the suite against the implementation of `--impl`. If it cannot be judged, for example because it is missing or misspelt,
/// returns an error and no verdict.
pub(crate) fn run(args: CheckArgs) -> Result<Exit, CliError> {
    if args.help_exec {
        output::print(protocol::TEACH)?;
        return Ok(Exit::Good);
    }
    if args.ops {
        let ops = CHAPTERS.iter().flat_map(|chapter| chapter.ops());
        let lines: String = ops
            .map(|op| format!("{:<20} {}\n", op.name, op.help))
            .collect();
        output::print(&lines)?;
        return Ok(Exit::Good);
    }
    if let Some(unknown) = args.chapter.iter().find(|name| chapter(name).is_none()) {
        let names: Vec<&str> = CHAPTERS.iter().map(|chapter| chapter.name).collect();
        return Err(CliError::new(format!(
            "there is no chapter `{unknown}`: {}",
            names.join(", ")
        )));
    }
    has_effect(&args)?;
    let mut order = Run::default();
    order.selection.chapters = args.chapter;
    order.selection.cases = args.case;
    order.selection.release = args.release;
    order.known = read_known_failures(args.known)?;
    order.hangs = args.max_hangs.unwrap_or(order.hangs);
    order.crashes = args.max_crashes.unwrap_or(order.crashes);
    order.complete = args.complete;
    order.implementation = args.implementation;
    let mut jobs = args.jobs;
    if order.implementation == BUILTIN {
        // Many cases of chapter rpc wait, so that more of them than cores run at once.
        jobs = jobs.or(NonZeroUsize::new(8));
        let others = CHAPTERS.iter().filter(|chapter| !chapter.independent);
        order.in_turn = others.map(|chapter| chapter.name.to_owned()).collect();
    }
    let suite = Suite::ours()?;
    let selected = select(suite, &order.selection)?;
    let form = args
        .report
        .or_else(|| form_of(args.output.as_deref()?))
        .unwrap_or(ReportFormat::Text);
    if args.list {
        let text = match form {
            ReportFormat::Json => output::json_text(&list(suite, &selected))?,
            _ => selected.iter().map(|case| line(case)).collect(),
        };
        write(args.output.as_deref(), &text)?;
        return Ok(Exit::Good);
    }
    if args.show {
        let text: String = selected.iter().map(|case| format_case(case)).collect();
        write(args.output.as_deref(), &text)?;
        return Ok(Exit::Good);
    }
    if let Some(folder) = &args.export {
        selected.iter().try_for_each(|case| export(folder, case))?;
        return Ok(Exit::Good);
    }
    let mut limits = Limits::default();
    limits.timeout = args.timeout.unwrap_or(limits.timeout);
    limits.memory = args.memory;
    if order.implementation != BUILTIN {
        // All children of this process are testees.
        family::adopt();
    }
    let end = order.end.clone();
    family::end_on_signals(move |signal| drop(end.set(family::signal_name(signal).to_owned())))?;
    let report = judged(suite, &order, limits, jobs, selected.len())?;
    for SavedReport { file, form } in &args.save {
        write(Some(file), &report::render(*form, &report))?;
    }
    match args.output.as_deref() {
        // The other formats are for programs, and are written below.
        None if form == ReportFormat::Text => {
            output::stream(|out| report::render_text(out, &report))?;
        }
        file => write(file, &report::render(form, &report))?,
    }
    Ok(if report.is_good() {
        Exit::Good
    } else {
        Exit::Bad
    })
}

/// Runs the cases with `jobs` testees at once if that is more than one.
fn judged<'a>(
    suite: &'a Suite,
    order: &Run,
    limits: Limits,
    jobs: Option<NonZeroUsize>,
    cases: usize,
) -> Result<Report<'a>, CliError> {
    let Some(jobs) = jobs.filter(|jobs| jobs.get() > 1) else {
        let mut adapter = adapter::open(&order.implementation, limits)?;
        let progress = progress(cases);
        let report = run_observed(suite, &mut *adapter, order, &mut |outcome| {
            progress.set_message(outcome.case.id.clone());
            progress.inc(1);
        });
        // Cleared even if the run failed. Otherwise the message would follow the bar on the same line.
        progress.finish_and_clear();
        return Ok(report?);
    };
    let several = Several::check(&order.implementation, limits)
        .map_err(|why| CliError::new(format!("--jobs {jobs}: {why}")))?;
    let progress = progress(cases);
    let report = run_parallel(
        suite,
        &|| several.open(),
        jobs,
        order,
        &mut |event| match event {
            RunEvent::Done(outcome) => {
                progress.set_message(outcome.case.id.clone());
                progress.inc(1);
            }
            RunEvent::Without(why) => {
                progress.suspend(|| output::note(format_args!("one of {jobs} jobs less: {why}")));
            }
        },
    );
    progress.finish_and_clear();
    Ok(report?)
}

/// The implementation in this process. Its memory and time cannot be limited without ending the report too.
const BUILTIN: &str = "builtin";

/// Rejects options that have no effect, because a user who sets one expects an effect.
fn has_effect(args: &CheckArgs) -> Result<(), CliError> {
    let unused =
        |option: &str, why: &str| Err(CliError::new(format!("{option} has no effect: {why}")));
    if args.list
        && !matches!(
            args.report,
            None | Some(ReportFormat::Text | ReportFormat::Json)
        )
    {
        return unused("--report", "a list is text or json");
    }
    if args.memory.is_some() && !cfg!(unix) {
        return unused("--memory", "this system does not limit address space");
    }
    let limits = [
        ("--timeout", args.timeout.is_some()),
        ("--memory", args.memory.is_some()),
        ("--max-hangs", args.max_hangs.is_some()),
        ("--max-crashes", args.max_crashes.is_some()),
    ];
    match limits.iter().find(|(_, is_set)| *is_set) {
        Some((option, _)) if args.implementation == BUILTIN => unused(
            option,
            "the built-in implementation runs in this process; try --impl 'exec:tvmspec testee'",
        ),
        _ => Ok(()),
    }
}

/// Formats a case as a line of a list.
fn line(case: &Case) -> String {
    let rules = case.rules.join(" ");
    format!(
        "{:<44} {:<14} {rules}\n",
        case.id,
        case.releases.to_string()
    )
}

/// Formats a case for a reader: its description, the request and the expected answer.
fn format_case(case: &Case) -> String {
    let request = json!({"id": 1, "op": case.op, "args": case.request()});
    let parent = case.parent.as_ref();
    let parent = parent.map_or(String::new(), |parent| format!("parent    {parent}\n"));
    format!(
        "{}\nrules     {}\nreleases  {}\n{parent}why       {}\norigin    {}\ninput     {}\nrequest   {request}\nexpected  {}\n\n",
        case.id,
        case.rules.join(" "),
        case.releases,
        case.why,
        case.origin,
        report::input(case),
        case.expectation(),
    )
}

/// Writes `DIR/<id>/`: `request.json`, `expected.json`, and `input.bin` if the input is bytes.
fn export(folder: &Path, case: &Case) -> Result<(), CliError> {
    // A derived case is `<id>#encode`. `#` starts a comment in shells and a fragment in URLs.
    let id = case.id.replace('#', ".");
    let names: Vec<&str> = id.split('/').collect();
    let mut folder = OutputFolder::open(folder, &names)?;
    let request = json!({"id": 1, "op": case.op, "args": case.request()});
    let texts = [
        ("request.json", output::json_text(&request)?),
        ("expected.json", output::json_text(&case.expectation())?),
    ];
    for (name, text) in texts {
        folder.write(name, text.as_bytes(), Content::Text)?;
    }
    if let Some(bytes) = case.bytes() {
        folder.write("input.bin", bytes, Content::Binary)?;
    }
    folder.finish()
}

/// Returns the cases as JSON, whose schema is `spec/schema/list.json`.
fn list(suite: &Suite, cases: &[&Case]) -> Value {
    let cases = cases.iter().map(|case| {
        json!({
            "case": case.id,
            "chapter": case.chapter,
            "op": case.op,
            "rules": case.rules,
            "releases": case.releases.to_string(),
            "parent": case.parent,
            "why": case.why,
            "origin": case.origin,
        })
    });
    json!({"list": 1, "suite": suite.hash, "cases": cases.collect::<Vec<_>>()})
}

/// Writes a report or a list to the file, or to stdout.
fn write(file: Option<&Path>, text: &str) -> Result<(), CliError> {
    match file {
        Some(file) => output::write(file, text.as_bytes(), Content::Text),
        // `show` escapes names in the report, which come from the user and may contain control sequences.
        None => output::show(text),
    }
}

/// Reads the known failures of `--known`; an empty list without that option.
fn read_known_failures(file: Option<PathBuf>) -> Result<KnownFailures, CliError> {
    let Some(file) = file else {
        return Ok(KnownFailures::default());
    };
    let text = fs::read_to_string(&file)
        .map_err(|error| format!("cannot read {}: {error}", output::file_name(&file)))?;
    KnownFailures::parse(&text)
        .map_err(|error| CliError::new(format!("{}: {error}", output::file_name(&file))))
}

/// Creates the progress bar. It is on stderr, because stdout has the report. It is shown only on a terminal, and only if the run takes
/// long.
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
