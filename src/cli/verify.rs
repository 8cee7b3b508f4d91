//! `tvmspec verify FILE`: every violation and finding, rule by rule.

use super::diagnostic::{Place, count};
use super::input::Input;
use super::{Error, Exit, output, subject};
use serde_json::{Value, json};
use std::path::PathBuf;
use tvmspec::blob::container::Part;
use tvmspec::release::Layout;
use tvmspec::rule::{Finding, Findings, Violation};

/// How many findings are written out for people.
const MOST: usize = 50;

/// Exit code 0: no rule is broken. 1: one is, or, with --strict, something is odd. 2: the file cannot be read, or nothing in it has
/// rules: it is no file of TVM, or a runtime and no compiled code.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The file, or - for stdin
    file: PathBuf,
    /// Let findings fail, too
    #[arg(long)]
    strict: bool,
    /// Read library binaries in this layout, whatever symbol and bytes say
    #[arg(long, value_name = "0.2|0.7|0.21|0.22")]
    layout: Option<Layout>,
    /// Print JSON: {"file", "violations": [..], "findings": [..]}, and "omitted_findings" where there are more than 10,000
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args) -> Result<Exit, Error> {
    let input = Input::open(&args.file)?;
    let mut report = Report::default();
    match subject::open(&input) {
        Ok(file) => {
            let units = subject::units(&input, &file, args.layout);
            let graph = subject::graph(&input, file.form);
            if units.is_empty() && graph.is_none() {
                if !file.parts.iter().any(Part::is_compiled) {
                    return Err(subject::nothing(&input, &file));
                }
                report.text = format!("{}\n", subject::host_only(&input));
            }
            let whole = Place {
                name: &input.name,
                bytes: input.bytes(),
                spans: &[],
            };
            report.findings(&whole, file.findings.as_slice(), file.findings.omitted());
            if let Some(reading) = &graph {
                report.findings(&whole, &reading.findings, reading.omitted);
                if let Some(broken) = &reading.broken {
                    report.violation(&whole, broken);
                }
            }
            for unit in &units {
                let mut reading = unit.judge();
                if reading.broken.is_some() || !reading.findings.is_empty() {
                    reading = unit.trace();
                }
                let place = Place {
                    name: &unit.name,
                    bytes: &unit.bytes,
                    spans: &reading.spans,
                };
                report.findings(&place, &reading.findings, reading.omitted);
                if let Some(broken) = &reading.broken {
                    report.violation(&place, broken);
                }
            }
        }
        Err(broken) => report.violation(
            &Place {
                name: &input.name,
                bytes: input.bytes(),
                spans: &[],
            },
            &broken,
        ),
    }
    let bad = !report.violations.is_empty() || args.strict && report.found > 0;
    if args.json {
        let omitted = report.found - report.findings.len();
        let mut value = json!({
            "file": input.name,
            "violations": report.violations,
            "findings": report.findings,
        });
        if omitted > 0 {
            value["omitted_findings"] = omitted.into();
        }
        output::json(&value)?;
    } else {
        let counts = count(report.violations.len(), report.found);
        if report.found > MOST {
            let more = report.found - MOST;
            let listed = match report.found > Findings::MOST {
                true => format!("--json lists the first {}", Findings::MOST),
                false => "--json lists all".to_owned(),
            };
            report
                .text
                .push_str(&format!("{more} more findings; {listed}\n"));
        }
        output::show(&format!("{}{counts}\n", report.text))?;
    }
    Ok(if bad { Exit::Bad } else { Exit::Good })
}

#[derive(Default)]
struct Report {
    text: String,
    violations: Vec<Value>,
    /// Those that are listed, [`Findings::MOST`] of all units together.
    findings: Vec<Value>,
    /// How many there are.
    found: usize,
}

impl Report {
    fn violation(&mut self, place: &Place<'_>, broken: &Violation) {
        self.text.push_str(&place.violation(broken));
        self.violations.push(json!({
            "rule": broken.rule().id(),
            "kind": broken.kind().name(),
            "message": broken.message(),
            "in": place.name,
            "offset": broken.offset(),
            "field": match broken.field() {
                "" => broken.offset().map_or("", |offset| place.field_at(offset)),
                field => field,
            },
        }));
    }

    /// `omitted` more were found than are given.
    fn findings(&mut self, place: &Place<'_>, findings: &[Finding], omitted: usize) {
        self.found = self.found.saturating_add(omitted);
        for finding in findings {
            self.finding(place, finding);
        }
    }

    fn finding(&mut self, place: &Place<'_>, finding: &Finding) {
        // What can be read and not be used breaks a MUST all the same.
        let Finding {
            rule,
            kind,
            offset,
            message,
        } = finding;
        if rule.text().is_some_and(|text| text.level.binds()) {
            return self.violation(place, &rule.broken(*kind, *offset, message));
        }
        self.found = self.found.saturating_add(1);
        if self.findings.len() >= Findings::MOST {
            return;
        }
        // Thousands of the same kind tell a person nothing more.
        if self.findings.len() < MOST {
            self.text.push_str(&place.finding(finding));
        }
        self.findings.push(json!({
            "rule": finding.rule.id(),
            "message": finding.message,
            "in": place.name,
            "offset": finding.offset,
            "field": place.field_at(finding.offset),
        }));
    }
}
