//! Every rule whose `Upstream:` paragraph says what releases do: `explain` says it too, of the files of the suite that break the rule.
//!
//! `upstream.toml` states the truth, read from the paragraphs and from runs of real releases. A rule with a paragraph and without a row,
//! or a row without a file, fails.

use super::golden;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use tvmspec::conformance::case::{Case, Expect, Suite};
use tvmspec::examine::answer_of_files;
use tvmspec::release::{Layout, Release, Releases};

/// What releases do, by their numbers, or why there is no file to ask about.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    /// The rule binds what runs, not what is stored: no file breaks it.
    #[serde(default)]
    no_file: Option<String>,
    /// Files below `golden/` that break it, where no case is one, or besides.
    #[serde(default)]
    files: Vec<String>,
    /// They load the file, and nobody says that something is wrong.
    #[serde(default)]
    accepts: Vec<String>,
    /// They reject it, or end.
    #[serde(default)]
    rejects: Vec<String>,
    /// What is in memory decides.
    #[serde(default)]
    memory: Vec<String>,
    /// Cases of which something else is true.
    #[serde(default)]
    case: BTreeMap<String, Row>,
}

impl Row {
    /// The outcomes that are true of `release`; empty where the row says nothing of it.
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

/// The rules that have the paragraph.
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

/// The rule that the input of a case breaks, where it breaks one.
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

/// A library binary of host code and one module.
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

/// A library binary of host code and modules without content, `modules` together.
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
        // No names of constants, none of them, and no functions.
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

/// A file to ask about.
struct Question {
    name: String,
    /// Where the bytes do not say it.
    layout: Option<Layout>,
    /// The releases that have what is in it besides.
    releases: Releases,
    bytes: Vec<u8>,
    /// The side file of a device module.
    side: Option<Vec<u8>>,
}

/// One whose bytes say what they are, or with a layout.
fn question(layout: Option<Layout>, bytes: Vec<u8>) -> Question {
    Question {
        name: "file".into(),
        layout,
        releases: Releases::ALL,
        bytes,
        side: None,
    }
}

/// The files that a case is about.
fn questions(case: &Case) -> Vec<Question> {
    let layout = || case.args.get("layout")?.as_str()?.parse::<Layout>().ok();
    let bytes = || case.bytes().unwrap_or_default().to_vec();
    let text = |name: &str| Some(case.args.get(name)?.as_str()?.to_owned());
    match case.op.as_str() {
        "blob.decode" => vec![question(layout(), bytes())],
        "blob.find" | "graph.decode" | "vm.decode" | "object.decode" | "tensor.decode" => {
            // A lone type is no file.
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
            // A count of rows that nobody has is one of no modules.
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

/// Whether a release that lacks the kind or the form of a module rejects it for that.
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

/// What `explain` says of each release that reads the layout of the file; `None` where the file is none that it knows.
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
        // A derived case is about the bytes of its origin, or about their beginnings.
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

/// What was asked, and what was answered wrongly.
#[derive(Default)]
struct Tally {
    rules: usize,
    answers: usize,
    lies: Vec<String>,
}

impl Tally {
    /// Asks about a file, and compares with the row in the releases that read its layout.
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

/// Real releases were given the files of the suite: `explain` says what they did.
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
