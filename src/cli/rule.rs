//! `tvmspec rule ID`: prints everything known about a rule: text, evidence, place in the code, cases, files, known failures.

use super::table::paragraph_lines;
use super::{CliError, Exit, output};
use serde_json::{Value as Json, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::LazyLock;
use tvmspec::conformance::case::{Case, CaseInput, Expect, Suite};
use tvmspec::conformance::known_failures::{self, glob};
use tvmspec::release::{Release, Releases};
use tvmspec::rule::Kind;
use tvmspec::spec::{self, Evidence, RuleText, without_links};

/// The releases in whose files each rule was applied, as `tests/foreign/eras.rs` writes it: an object of lists by rule id.
// Compiled in, like the rules and the cases, so that the command works without the repository.
const ERAS: &str = include_str!("../../golden/eras/rules.json");

/// Show a rule: its text, evidence, code, cases, files and known failures
#[derive(clap::Args)]
pub(crate) struct RuleArgs {
    /// Rule ids, in which * stands for any text: BLOB-07, 'TREE-*'
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
    /// Print JSON, as spec/schema/rule.json describes it
    #[arg(long)]
    json: bool,
    /// Print one line for each rule
    #[arg(short, long, conflicts_with = "json")]
    list: bool,
}

/// Prints the matching rules, in the order of the ids on the command line, then in the order of the specification.
pub(crate) fn run(args: RuleArgs) -> Result<Exit, CliError> {
    let rules = matching(&args.ids)?;
    if !args.list {
        // Pages name the cases, so that the suite must be loaded first.
        Suite::ours()?;
    }
    if args.list {
        // Not escaped, because the rules are part of this program.
        output::print(&rules.iter().map(|rule| line(rule)).collect::<String>())?;
    } else if args.json {
        output::json(&values(&rules))?;
    } else {
        let pages: Vec<String> = rules.iter().map(|rule| page(rule)).collect();
        output::print(&pages.join("\n"))?;
    }
    Ok(Exit::Good)
}

/// Returns the rules with these ids, in which `*` stands for any text.
pub(super) fn matching(ids: &[String]) -> Result<Vec<&'static RuleText>, CliError> {
    let mut rules: Vec<&RuleText> = Vec::new();
    for id in ids {
        // Ids are upper case, but users may type lower case.
        let wanted = id.to_ascii_uppercase();
        let before = rules.len();
        rules.extend(spec::rules().iter().filter(|rule| glob(&wanted, &rule.id)));
        if rules.len() == before {
            return Err(unknown(id));
        }
    }
    Ok(rules)
}

/// Returns the JSON form of each rule.
pub(super) fn values(rules: &[&RuleText]) -> Vec<Json> {
    rules.iter().map(|rule| as_json(rule)).collect()
}

/// Creates the error for an id that no rule has, with the known prefixes.
fn unknown(id: &str) -> CliError {
    // Prefixes and not ids, because there are hundreds of ids.
    let prefixes: BTreeSet<&str> = spec::rules()
        .iter()
        .filter_map(|rule| rule.id.split_once('-').map(|(prefix, _)| prefix))
        .collect();
    let prefixes: Vec<&str> = prefixes.into_iter().collect();
    CliError::new(format!(
        "there is no rule `{id}`: ids begin with {}; `tvmspec rule --list '*'` lists all",
        prefixes.join(", ")
    ))
}

/// Formats a rule as a line of --list: id, level, releases, title.
fn line(rule: &RuleText) -> String {
    let releases = rule.releases.to_string();
    format!(
        "{:<8} {:<9} {releases:<12} {}\n",
        rule.id,
        rule.level.name(),
        rule.title
    )
}

/// Returns the cases of a rule. The encoding case that the suite derives from each decoding case (`#encode`) is left out.
fn cases(rule: &RuleText) -> impl Iterator<Item = &'static Case> + '_ {
    Suite::expect_ours()
        .cases
        .iter()
        .filter(|case| case.rules.contains(&rule.id) && !case.id.ends_with("#encode"))
}

/// Returns the files that the cases of the rule read, by their paths below `golden/`.
fn goldens(rule: &RuleText) -> BTreeSet<&'static str> {
    cases(rule)
        .filter_map(|case| match &case.input {
            CaseInput::File(name) => Some(name.as_str()),
            CaseInput::Hex(_) | CaseInput::Value(_) => None,
        })
        .collect()
}

/// Returns the releases of `golden/eras` in whose files the rule was applied; empty for most rules.
fn eras(rule: &RuleText) -> &'static [String] {
    // Parsed only once, when the first rule is printed.
    static ALL: LazyLock<BTreeMap<String, Vec<String>>> =
        LazyLock::new(|| serde_json::from_str(ERAS).expect("a test writes this file"));
    ALL.get(&rule.id).map_or(&[], Vec::as_slice)
}

/// Returns the known failures of cases of the rule: the file of known failures, the case, and the entry. An entry may apply to many
/// cases.
fn failures(
    rule: &RuleText,
) -> Vec<(
    &'static str,
    &'static str,
    &'static known_failures::KnownFailure,
)> {
    let mut found = Vec::new();
    // Collected once. Otherwise each of hundreds of entries would search all cases.
    let cases: Vec<&'static Case> = cases(rule).collect();
    for (file, known) in known_failures::embedded() {
        for entry in &known.entries {
            // An entry names its cases by a pattern.
            let hit = cases.iter().filter(|case| glob(&entry.case, &case.id));
            found.extend(hit.map(|case| (*file, case.id.as_str(), entry)));
        }
    }
    found
}

/// Joins the elements with commas.
fn join_with_commas<T: std::fmt::Display>(list: &[T]) -> String {
    let words: Vec<String> = list.iter().map(ToString::to_string).collect();
    words.join(", ")
}

/// Formats all that is known about a rule for people: title, level and releases, the text, then the sections that are not empty.
fn page(rule: &RuleText) -> String {
    let mut page = format!("{} {}\n", rule.id, rule.title);
    let mut obliged = format!(
        "{} for {}, {}",
        rule.level.name(),
        join_with_commas(&rule.who),
        format_release_range(rule)
    );
    // A rule without kinds rejects nothing, because it is about behaviour.
    if !rule.kinds.is_empty() {
        let _ = write!(obliged, "; rejected as {}", join_with_commas(&rule.kinds));
    }
    let _ = writeln!(page, "  {obliged}\n  spec/{}.md", rule.chapter);
    let text = without_links(&rule.text);
    for paragraph in text.split("\n\n").filter(|text| !text.is_empty()) {
        page.push('\n');
        for line in paragraph_lines(paragraph, 2) {
            let _ = writeln!(page, "  {line}");
        }
    }
    section(&mut page, "evidence", evidence(spec::evidence(&rule.id)));
    let places = spec::code_locations(&rule.id)
        .iter()
        .map(ToString::to_string);
    section(&mut page, "code", places.collect());
    section(&mut page, "cases", cases(rule).map(format_case).collect());
    let files = goldens(rule)
        .into_iter()
        .map(|name| format!("golden/{name}"));
    section(&mut page, "files", files.collect());
    let eras = eras(rule);
    if !eras.is_empty() {
        let line = format!("golden/eras, written by {}", eras.join(", "));
        section(&mut page, "read in files of eras", vec![line]);
    }
    let failures = failures(rule).into_iter();
    let known = failures.map(|(file, case, entry)| {
        let releases = entry.releases.map(|range| format!(" in {range}"));
        let (verdict, releases) = (&entry.verdict, releases.unwrap_or_default());
        format!("{file} {case}: {verdict}{releases}, {}", entry.reason)
    });
    section(&mut page, "known to fail", known.collect());
    page
}

/// Describes the releases in which a rule holds: `in every release`, `since 0.22`, `up to 0.6`, `from 0.7 to 0.21`.
fn format_release_range(rule: &RuleText) -> String {
    let (since, until) = (rule.releases.since, rule.releases.until);
    let all = Releases::ALL;
    match (since == all.since, until == all.until) {
        (true, true) => "in every release".to_owned(),
        (false, true) => format!("since {since}"),
        (true, false) => format!("up to {until}"),
        // Checked before the range, which would name the same release twice.
        (false, false) if since == until => format!("in {since} alone"),
        (false, false) => format!("from {since} to {until}"),
    }
}

/// Appends a heading and its lines, indented. Appends nothing if there are no lines.
fn section(page: &mut String, name: &str, lines: Vec<String>) {
    if lines.is_empty() {
        return;
    }
    let _ = writeln!(page, "\n  {name}");
    for line in lines {
        let _ = writeln!(page, "    {line}");
    }
}

/// Formats the evidence: where the rule is documented, in which source it was found, and in which releases it was observed. Also lists
/// the releases that passed or failed its cases, and the reason for a rule without such evidence.
fn evidence(evidence: Option<&Evidence>) -> Vec<String> {
    let Some(evidence) = evidence else {
        return Vec::new();
    };
    let lists = [
        ("documented", &evidence.documented),
        ("source", &evidence.source),
        ("observed", &evidence.observed),
    ];
    let mut lines: Vec<String> = lists
        .iter()
        .filter(|(_, list)| !list.is_empty())
        .map(|(name, list)| format!("{name:<10} {}", list.join(", ")))
        .collect();
    let judged = [("passed", &evidence.passed), ("failed", &evidence.failed)];
    for (name, releases) in judged {
        if !releases.is_empty() {
            lines.push(format!("{name:<10} {}", texts(releases).join(", ")));
        }
    }
    if let Some(why) = &evidence.inferred {
        lines.push(format!("{:<10} {why}", "inferred"));
    }
    lines
}

/// Formats a case as a line: id, operation, and the expected answer.
fn format_case(case: &Case) -> String {
    format!("{:<44} {:<20} {}", case.id, case.op, format_expected(case))
}

/// Describes the expected answer of a case in a few words.
fn format_expected(case: &Case) -> String {
    match &case.expect {
        Expect::Accept(_) => "accepts".to_owned(),
        Expect::Reject(breach) => format!("rejects as {}", breach.kind),
        Expect::Either => "either".to_owned(),
    }
}

/// Formats the releases for JSON: `"0.22"`.
fn texts(releases: &[Release]) -> Vec<String> {
    releases.iter().map(ToString::to_string).collect()
}

/// Returns an element of the list that `spec/schema/rule.json` describes.
fn as_json(rule: &RuleText) -> Json {
    // For a rule without evidence, the lists are empty, so that every element has the same members.
    let evidence = spec::evidence(&rule.id).cloned().unwrap_or_default();
    let failures = failures(rule).into_iter();
    json!({
        "rule": rule.id,
        "chapter": rule.chapter,
        "title": rule.title,
        "level": rule.level.name(),
        "who": rule.who.iter().map(|who| who.name()).collect::<Vec<_>>(),
        "since": rule.releases.since.to_string(),
        "until": rule.releases.until.to_string(),
        "kinds": rule.kinds.iter().map(|kind: &Kind| kind.name()).collect::<Vec<_>>(),
        "norm": rule.norm(),
        "upstream": rule.upstream(),
        "here": rule.decisions(),
        "evidence": {
            "documented": evidence.documented,
            "source": evidence.source,
            "observed": evidence.observed,
            "passed": texts(&evidence.passed),
            "failed": texts(&evidence.failed),
            "inferred": evidence.inferred,
        },
        "code": spec::code_locations(&rule.id),
        "cases": cases(rule).map(|case| case.id.as_str()).collect::<Vec<_>>(),
        "case_details": cases(rule).map(|case| json!({
            "case": case.id, "op": case.op, "expected": format_expected(case), "why": case.why,
        })).collect::<Vec<_>>(),
        "files": goldens(rule),
        "eras": eras(rule),
        "known_failures": failures.map(|(file, case, entry)| json!({
            "list": file, "case": case, "verdict": entry.verdict, "reason": entry.reason,
            "releases": entry.releases.map(|range| range.to_string()),
        })).collect::<Vec<_>>(),
    })
}
