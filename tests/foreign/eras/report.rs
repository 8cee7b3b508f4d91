//! The report of the eras, and the eras in which a rule explains a byte.

use super::{Artifact, NOT_RUN, artifacts, each_file, eras, is_not_run, not_loaded, tvmspec};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

/// File with the reading of each rule: the output of `tvmspec rule`.
const RULES: &str = "golden/eras/rules.json";

#[test]
fn the_report_is_what_the_goldens_say() {
    let eras_of = eras_of_rules();
    let rows: Vec<String> = eras_of
        .iter()
        .map(|(rule, eras)| format!(" {rule:?}: {}", serde_json::json!(eras)))
        .collect();
    for (name, text) in [
        ("conformance/reports/eras.md", report(&eras_of)),
        (RULES, format!("{{\n{}\n}}\n", rows.join(",\n"))),
    ] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
        if env::var_os("BLESS").is_some() {
            fs::write(&path, &text).unwrap();
        }
        let there = fs::read_to_string(&path).unwrap_or_default();
        assert!(there == text, "{name} differs: BLESS=1 rewrites it");
    }
}

fn report(eras_of: &BTreeMap<String, Vec<String>>) -> String {
    let (eras, artifacts) = (eras(), artifacts());
    let mut page = String::from(
        "# The same twenty artifacts by compilers of six releases\n\n\
         Written by `BLESS=1 cargo test --test foreign eras` from golden/eras, whose README says where each release came from and how to repeat it.\n\
         The test checks every cell. `read`: no violation, no finding, and the same bytes after decoding and encoding (JSON of objects is read\n\
         only, a graph keeps its meaning); `explain` says that the release itself loads it. `ran`: all of this, and outputs equal to the\n\
         recorded ones to the last bit. A number refers to the reason below.\n\n",
    );
    let mut reasons: Vec<String> = Vec::new();
    let _ = writeln!(page, "| artifact | {} |", eras.join(" | "));
    let _ = writeln!(page, "|---|{}", "---|".repeat(eras.len()));
    let names: Vec<&Artifact> = artifacts
        .iter()
        .filter(|artifact| artifact.era == eras[0])
        .collect();
    for first in names {
        let _ = write!(
            page,
            "| `{}`: {} |",
            first.name,
            first.entry["what"].as_str().unwrap()
        );
        for era in &eras {
            let artifact = artifacts
                .iter()
                .find(|artifact| artifact.era == *era && artifact.name == first.name)
                .unwrap();
            let _ = write!(page, " {} |", cell(artifact, &mut reasons));
        }
        page.push('\n');
    }
    page.push('\n');
    for (index, reason) in reasons.iter().enumerate() {
        let _ = writeln!(page, "{}. {reason}", index + 1);
    }
    page.push_str(
        "\n## Rules by the eras whose files they were read in\n\n\
         A rule is listed where `dump` shows it for a byte of an era's file. The others are shown by cases alone.\n\n\
         | rules | eras |\n|---|---|\n",
    );
    for (eras, rules) in by_eras(eras_of) {
        let _ = writeln!(page, "| {} | {} |", rules.join(", "), eras.join(", "));
    }
    page
}

fn cell(artifact: &Artifact, reasons: &mut Vec<String>) -> String {
    let mut number = |why: &str| {
        let at = reasons.iter().position(|reason| reason == why);
        let at = at.unwrap_or_else(|| {
            reasons.push(why.to_owned());
            reasons.len() - 1
        });
        at + 1
    };
    if let Some(why) = artifact.entry["why"].as_str() {
        return format!("no ({})", number(why));
    }
    if is_not_run(artifact) {
        return format!("read ({})", number(NOT_RUN.2));
    }
    let ran = artifact.run().map(|run| match run["device"].as_str() {
        None | Some("cpu") => "ran".to_owned(),
        Some(device) => format!("ran on {}", device.trim_end_matches(":0")),
    });
    let done = ran.unwrap_or_else(|| "read".to_owned());
    let rejected = artifact
        .files()
        .iter()
        .find_map(|file| not_loaded(&artifact.era, file));
    match rejected {
        Some((_, why)) => format!("{done} ({})", number(why)),
        None => done,
    }
}

/// Returns the eras in whose files each rule explains a byte.
fn eras_of_rules() -> BTreeMap<String, Vec<String>> {
    let mut eras_of: BTreeMap<String, Vec<String>> = BTreeMap::new();
    each_file(|artifact, _, path| {
        let output = tvmspec()
            .args(["dump", "--json"])
            .arg(path)
            .output()
            .unwrap();
        // JSON files have no fields to dump.
        let Ok(Value::Array(units)) = serde_json::from_slice(&output.stdout) else {
            return;
        };
        let fields = units
            .iter()
            .flat_map(|unit| unit["fields"].as_array().into_iter().flatten());
        for rule in fields.filter_map(|field| field["rule"].as_str()) {
            let eras = eras_of.entry(rule.to_owned()).or_default();
            if !eras.contains(&artifact.era) {
                eras.push(artifact.era.clone());
            }
        }
    });
    eras_of
}

/// Groups the rules by their set of eras. The largest sets come first.
fn by_eras(eras_of: &BTreeMap<String, Vec<String>>) -> Vec<(Vec<String>, Vec<String>)> {
    let mut rows: BTreeMap<Vec<String>, Vec<String>> = BTreeMap::new();
    for (rule, eras) in eras_of {
        rows.entry(eras.clone()).or_default().push(rule.clone());
    }
    let mut rows: Vec<_> = rows.into_iter().collect();
    rows.sort_by_key(|(eras, rules)| (usize::MAX - eras.len(), rules[0].clone()));
    rows
}
