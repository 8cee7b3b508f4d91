//! Tests that `explain` agrees with the `Upstream:` paragraph of every rule, for the files of the suite that break the rule.
//!
//! `upstream.toml` states the behaviour of releases, from the paragraphs and from runs of real releases. The test fails for a paragraph
//! without a row, and for a row without a file.

use super::golden;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use tvmspec::conformance::case::{Case, Expect, Suite};
use tvmspec::examine::answer_of_files;
use tvmspec::release::{Layout, Release, Releases};

/// The behaviour of releases, by number, or the reason why there is no file.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    /// The reason why no file can break the rule, for example because it binds behaviour and not stored bytes.
    #[serde(default)]
    no_file: Option<String>,
    /// Files below `golden/` that break the rule, in addition to the cases.
    #[serde(default)]
    files: Vec<String>,
    /// They load the file, and report no fault.
    #[serde(default)]
    accepts: Vec<String>,
    /// They reject it, or crash.
    #[serde(default)]
    rejects: Vec<String>,
    /// The content of memory decides.
    #[serde(default)]
    memory: Vec<String>,
    /// Cases with a different row.
    #[serde(default)]
    case: BTreeMap<String, Row>,
}

impl Row {
    /// Returns the correct outcomes for `release`; empty if the row says nothing about it.
    fn outcomes(&self, release: Release) -> BTreeSet<&'static str> {
        let holds = |ranges: &[String]| {
            ranges
                .iter()
                .any(|range| range.parse::<Releases>().unwrap().contains(release))
        };
        let mut outcomes = BTreeSet::new();
        if holds(&self.accepts) {
            outcomes.extend(["loads", "silent"]);
        }
        if holds(&self.rejects) {
            outcomes.insert("fails");
        }
        if holds(&self.memory) {
            outcomes.extend(["unknown", "fails", "silent"]);
        }
        outcomes
    }
}

/// Returns the rules that have the paragraph.
fn described() -> BTreeSet<String> {
    let spec = Path::new(env!("CARGO_MANIFEST_DIR")).join("spec");
    let mut rules = BTreeSet::new();
    for file in fs::read_dir(spec).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_none_or(|end| end != "md") || path.ends_with("README.md") {
            continue;
        }
        let text = fs::read_to_string(path).unwrap();
        let mut rule = None;
        for line in text.lines() {
            if let Some(heading) = line.strip_prefix("### ") {
                let id = heading.split(' ').next().unwrap();
                rule = id.contains('-').then(|| id.to_owned());
            } else if line.starts_with("## ") {
                rule = None;
            } else if line.starts_with("Upstream:") {
                rules.extend(rule.clone());
            }
        }
    }
    rules
}

/// Returns the rule that the input of a case breaks, if any.
fn broken(case: &Case) -> Option<&str> {
    match &case.expect {
        Expect::Reject(breach) => Some(&breach.rule),
        Expect::Accept(_) => Some(case.findings.first()?.rule.as_str()),
        Expect::Either => case.rules.first().map(String::as_str),
    }
}

fn string(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u64).to_le_bytes(), bytes].concat()
}

fn words(words: &[u64]) -> Vec<u8> {
    let count = [words.len() as u64];
    let all = count.iter().chain(words);
    all.flat_map(|word| word.to_le_bytes()).collect()
}

/// Creates a library binary of host code and one module.
fn library(layout: Layout, kind: &str, payload: &[u8]) -> Vec<u8> {
    let (kind, tree) = (string(kind.as_bytes()), [words(&[0, 1, 1]), words(&[1])]);
    string(&match layout {
        Layout::V0_2 => [&1_u64.to_le_bytes(), &*kind, payload].concat(),
        Layout::V0_22 => [&*tree.concat(), &string(b"_lib"), &kind, &string(payload)].concat(),
        _ => [
            &3_u64.to_le_bytes(),
            &*string(b"_lib"),
            &kind,
            payload,
            &string(b"_import_tree"),
            &tree.concat(),
        ]
        .concat(),
    })
}

/// Creates a library binary of host code and modules without content, `modules` in total.
fn library_of_tree(layout: Layout, tree: &[u8], modules: usize) -> Vec<u8> {
    let host = string(b"_lib").repeat(modules.min(1));
    let others = modules.saturating_sub(1);
    if layout == Layout::V0_22 {
        // C source: text, format, no names, no constants.
        let content = [string(b"x"), string(b"c"), words(&[]), words(&[])].concat();
        let module = [string(b"c"), string(&content)].concat();
        return string(&[tree.to_vec(), host, module.repeat(others)].concat());
    }
    let module = if layout == Layout::V0_21 {
        [
            string(b"c"),
            string(b"x"),
            string(b"c"),
            words(&[]),
            words(&[]),
        ]
        .concat()
    } else {
        // No names of constants, no constants, and no functions.
        [string(b"metadata"), words(&[]).repeat(4)].concat()
    };
    let entries = (modules as u64 + 1).to_le_bytes().to_vec();
    let body = [
        entries,
        host,
        module.repeat(others),
        string(b"_import_tree"),
        tree.to_vec(),
    ];
    string(&body.concat())
}

/// A file to explain.
struct Question {
    name: String,
    /// The layout, if the bytes do not show it.
    layout: Option<Layout>,
    /// The releases that support the other content of the file.
    releases: Releases,
    bytes: Vec<u8>,
    /// The side file of a device module.
    side: Option<Vec<u8>>,
}

/// Creates a question about a file whose bytes show its format, or whose layout is stated.
fn question(layout: Option<Layout>, bytes: Vec<u8>) -> Question {
    Question {
        name: "file".into(),
        layout,
        releases: Releases::ALL,
        bytes,
        side: None,
    }
}

/// Returns the files for a case.
fn questions(case: &Case) -> Vec<Question> {
    let layout = || case.args.get("layout")?.as_str()?.parse::<Layout>().ok();
    let bytes = || case.bytes().unwrap_or_default().to_vec();
    let text = |name: &str| Some(case.args.get(name)?.as_str()?.to_owned());
    match case.op.as_str() {
        "blob.decode" => vec![question(layout(), bytes())],
        "blob.find" | "graph.decode" | "vm.decode" | "object.decode" | "tensor.decode" => {
            // A lone type is not a file.
            let form = case.args.get("form").and_then(Value::as_str);
            if matches!(form, Some("dtype" | "device")) {
                return Vec::new();
            }
            vec![question(None, bytes())]
        }
        "object.from_graph" | "object.from_legacy_graph" => {
            let request = case.request();
            let text = match &request["value"] {
                Value::String(text) => text.clone(),
                value => value.to_string(),
            };
            vec![question(None, text.into_bytes())]
        }
        "payload.decode" => match (case.args["kind"].as_str(), layout()) {
            (Some(kind), Some(layout)) => {
                vec![question(Some(layout), library(layout, kind, &bytes()))]
            }
            _ => Vec::new(),
        },
        "import_tree.decode" => {
            let tree = bytes();
            let rows = tree
                .first_chunk()
                .map_or(0, |rows| u64::from_le_bytes(*rows));
            let modules = case.args.get("modules").and_then(Value::as_u64);
            // A count of rows that no file can have stands for no modules.
            let rows = if rows > 1 << 20 { 0 } else { rows };
            let modules = modules.unwrap_or(rows.saturating_sub(1)) as usize;
            let layouts = [
                (Layout::V0_7, Releases::between(7, 19)),
                (Layout::V0_21, Releases::ALL),
                (Layout::V0_22, Releases::ALL),
            ];
            let asked = layouts.into_iter().filter(|(layout, _)| {
                Release::all().any(|one| Layout::of(one) == *layout && case.releases.contains(one))
            });
            asked
                .map(|(layout, releases)| Question {
                    releases,
                    ..question(Some(layout), library_of_tree(layout, &tree, modules))
                })
                .collect()
        }
        "payload.file_read" => vec![Question {
            name: text("path").unwrap_or_default(),
            side: text("side").map(String::into_bytes),
            ..question(None, bytes())
        }],
        _ => Vec::new(),
    }
}

/// Returns whether the release rejects the file for another reason: it lacks the kind or the form of a module.
fn is_another(why: &str) -> bool {
    let others = [
        "no loader",
        "has no such executable",
        "a runtime loads only its own",
        "the magic of 0.23",
        "VM code does not start",
    ];
    others.iter().any(|other| why.contains(other))
}

/// Returns the verdict of `explain` for each release that reads the layout of the file; `None` if the file is not recognised.
fn explained(question: &Question) -> Option<Vec<(Release, String, String)>> {
    let command = match question.layout {
        Some(layout) => format!("explain --layout {layout}"),
        None => "explain".to_owned(),
    };
    let (name, side) = (&question.name, question.side.as_deref());
    let (_, text) = answer_of_files(&command, name, &question.bytes, side).ok()?;
    let accounts: Value = serde_json::from_str(&text).unwrap();
    let mut all = Vec::new();
    for load in accounts
        .as_array()?
        .iter()
        .flat_map(|one| one["loads"].as_array().unwrap())
    {
        let range = load["releases"].as_str().unwrap();
        let range: Releases = range.parse().unwrap();
        let text = |name: &str| load[name].as_str().unwrap().to_owned();
        let (outcome, why) = (text("outcome"), text("why"));
        for release in Release::all().filter(|release| range.contains(*release)) {
            let is_read = question
                .layout
                .is_none_or(|layout| Layout::of(release) == layout);
            if is_read && question.releases.contains(release) {
                all.push((release, outcome.clone(), why.clone()));
            }
        }
    }
    Some(all)
}

#[test]
fn explain_says_what_every_upstream_paragraph_says() {
    let table = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/formats/explain/upstream.toml");
    let table: BTreeMap<String, Row> = toml::from_str(&fs::read_to_string(table).unwrap()).unwrap();
    let rules = described();
    let named: BTreeSet<&String> = table.keys().collect();
    let unnamed: Vec<_> = rules.iter().filter(|rule| !named.contains(rule)).collect();
    assert!(unnamed.is_empty(), "no row in upstream.toml: {unnamed:?}");
    let mut cases: BTreeMap<&str, Vec<&Case>> = BTreeMap::new();
    for case in &Suite::ours().unwrap().cases {
        // A derived case has the bytes of its origin, or a part of them.
        if let Some(rule) = broken(case)
            && case.cuts.is_empty()
            && !case.id.contains('#')
        {
            cases.entry(rule).or_default().push(case);
        }
    }
    let mut tally = Tally::default();
    for rule in &rules {
        let row = &table[rule];
        let before = tally.answers;
        for file in &row.files {
            let bytes = fs::read(golden(file)).unwrap();
            tally.ask(rule, file, &question(None, bytes), Releases::ALL, row);
        }
        for case in cases.get(rule.as_str()).into_iter().flatten() {
            let own = row.case.get(&case.id).unwrap_or(row);
            for question in questions(case) {
                tally.ask(rule, &case.id, &question, case.releases, own);
            }
        }
        match (&row.no_file, tally.answers - before) {
            (None, 0) => tally.lies.push(format!("{rule}: no file was asked about")),
            (Some(why), 1..) => tally
                .lies
                .push(format!("{rule}: has files, and the row says: {why}")),
            (None, _) => tally.rules += 1,
            _ => {}
        }
    }
    println!(
        "{} rules with a paragraph, {} of them about files, {} answers, {} lies",
        rules.len(),
        tally.rules,
        tally.answers,
        tally.lies.len()
    );
    assert!(tally.lies.is_empty(), "{}", tally.lies.join("\n"));
}

/// The number of questions, and the wrong answers.
#[derive(Default)]
struct Tally {
    rules: usize,
    answers: usize,
    lies: Vec<String>,
}

impl Tally {
    /// Explains a file, and compares the result with the row for the releases that read its layout.
    fn ask(&mut self, rule: &str, name: &str, question: &Question, releases: Releases, row: &Row) {
        for (release, outcome, why) in explained(question).into_iter().flatten() {
            if !releases.contains(release) {
                continue;
            }
            let truth = row.outcomes(release);
            let fits = truth.contains(outcome.as_str());
            if !fits && is_another(&why) {
                continue;
            }
            self.answers += 1;
            if !fits {
                self.lies.push(format!(
                    "{rule}: {name} in {release}: explain says {outcome}, and {truth:?} is true: {why}"
                ));
            }
        }
    }
}

/// Compares `explain` with the behaviour of real releases for the files of the suite.
#[test]
fn explain_says_what_real_releases_did() {
    let observed = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/formats/explain/observed.tsv");
    let observed = fs::read_to_string(observed).unwrap();
    let cases: BTreeMap<&str, &Case> = {
        let cases = &Suite::ours().unwrap().cases;
        cases.iter().map(|case| (case.id.as_str(), case)).collect()
    };
    let (mut answers, mut unknown, mut lies) = (0, 0, Vec::new());
    for line in observed.lines().filter(|line| !line.starts_with('#')) {
        let (id, releases) = line.split_once('\t').unwrap();
        let case = cases[id];
        let seen: BTreeMap<Release, &str> = releases
            .split(' ')
            .map(|one| one.split_once(':').unwrap())
            .map(|(release, did)| (release.parse().unwrap(), did))
            .collect();
        for question in questions(case) {
            for (release, outcome, why) in explained(&question).into_iter().flatten() {
                let Some(did) = seen.get(&release) else {
                    continue;
                };
                let fits = match outcome.as_str() {
                    "unknown" => {
                        unknown += 1;
                        true
                    }
                    "fails" => *did == "rejects",
                    _ => *did == "accepts",
                };
                if !fits && is_another(&why) {
                    continue;
                }
                answers += 1;
                if !fits {
                    lies.push(format!(
                        "{id}: {release} {did} it, explain says {outcome}: {why}"
                    ));
                }
            }
        }
    }
    println!(
        "{answers} answers, {unknown} of them unknown, {} lies",
        lies.len()
    );
    assert!(lies.is_empty(), "{}", lies.join("\n"));
    assert!(
        unknown * 10 < answers,
        "{unknown} of {answers} answers are unknown"
    );
}
