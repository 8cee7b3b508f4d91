//! Tests the generated tables of the README and the lists on the front page of the documentation. `BLESS=1
//! cargo test --test project readme` writes them.
#![cfg(feature = "suite")]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use tvmspec::conformance::CHAPTERS;
use tvmspec::conformance::case::Suite;
use tvmspec::rule::Level;
use tvmspec::spec;

#[test]
fn the_table_of_chapters_is_true() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/README.md");
    let readme = fs::read_to_string(path).unwrap();
    let (before, rest) = readme
        .split_once("<!-- chapters -->\n")
        .expect("where the table begins");
    let (table, after) = rest
        .split_once("<!-- end of chapters -->")
        .expect("where the table ends");
    let expected = chapters();
    if std::env::var_os("BLESS").is_some() {
        fs::write(
            path,
            format!("{before}<!-- chapters -->\n{expected}<!-- end of chapters -->{after}"),
        )
        .unwrap();
    } else {
        assert!(
            table == expected,
            "the table should be\n{expected}\nBLESS=1 cargo test --test project readme writes it"
        );
    }
}

#[test]
fn the_front_page_lists_every_feature() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/");
    let read = |name: &str| fs::read_to_string(format!("{root}{name}")).unwrap();
    let table: toml::Table = read("Cargo.toml").parse().unwrap();
    let features = table["features"].as_table().unwrap();
    let features = features.keys().filter(|name| *name != "default");
    let page = read("src/lib.rs");
    let rows = page
        .lines()
        .filter_map(|line| line.strip_prefix("//! | `")?.split_once(" | "));
    let listed: BTreeSet<&str> = rows
        .flat_map(|(names, _)| names.split(['`', ',', ' ']))
        .filter(|name| !name.is_empty())
        .collect();
    assert_eq!(listed, features.map(String::as_str).collect());
}

/// Cargo resolves the crates from `Cargo.lock`, without the network and without building anything.
#[test]
#[cfg(target_os = "linux")]
fn the_front_page_counts_the_crates_of_each_feature() {
    let root = env!("CARGO_MANIFEST_DIR");
    let page = fs::read_to_string(format!("{root}/src/lib.rs")).unwrap();
    let table = page
        .lines()
        .skip_while(|line| *line != "//! | feature | adds | crates |")
        .skip(2)
        .map_while(|line| line.strip_prefix("//! | ")?.strip_suffix(" |"));
    let (mut wrong, mut rows) = (Vec::new(), 0);
    for row in table {
        rows += 1;
        let (name, rest) = row.split_once(" | ").expect("a row has three cells");
        let stated = rest.rsplit_once(" | ").expect("a row has three cells").1;
        let features = name.replace(['`', ' '], "").replace("none", "");
        let tree = std::process::Command::new(env!("CARGO"))
            .args(["tree", "--offline", "--edges", "normal", "--prefix", "none"])
            .args(["--no-default-features", "--features", &features])
            .current_dir(root)
            .output()
            .expect("cargo runs");
        assert!(tree.status.success(), "{tree:?}");
        let tree = String::from_utf8(tree.stdout).expect("names are text");
        let crates: BTreeSet<&str> = tree
            .lines()
            .map(|line| line.trim_end_matches(" (*)"))
            .filter(|line| !line.starts_with("tvmspec "))
            .collect();
        if stated != crates.len().to_string() {
            wrong.push(format!("{name}: {}, not {stated}", crates.len()));
        }
    }
    assert!(rows > 10, "the table has another head");
    assert!(wrong.is_empty(), "{wrong:?}");
}

fn chapters() -> String {
    let mut cases = BTreeMap::new();
    for case in &Suite::expect_ours().cases {
        *cases
            .entry(case.id.split('/').next().unwrap_or_default())
            .or_insert(0) += 1;
    }
    let mut table = String::from("| chapter | rules | of them MUST | cases |\n|---|---|---|---|\n");
    for chapter in CHAPTERS {
        let name = chapter.name;
        let rules = spec::rules().iter().filter(|rule| rule.chapter == name);
        let must = rules
            .clone()
            .filter(|rule| rule.level == Level::Must)
            .count();
        let count = cases.get(name).copied().unwrap_or(0);
        writeln!(
            table,
            "| [{name}](spec/{name}.md) | {} | {must} | {count} |",
            rules.count()
        )
        .unwrap();
    }
    table
}

/// Compares `spec/index.md`: every rule by its title, to read a chapter at a glance.
#[test]
fn the_index_of_the_specification_is_true() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/spec/index.md");
    let expected = index();
    if std::env::var_os("BLESS").is_some() {
        fs::write(path, expected).unwrap();
    } else {
        assert!(
            fs::read_to_string(path).unwrap() == expected,
            "BLESS=1 cargo test --test project readme writes spec/index.md anew"
        );
    }
}

fn index() -> String {
    let mut text = String::from(
        "# Every rule\n\nGenerated from the chapters by `BLESS=1 cargo test --test project readme`. `tvmspec rule ID` shows all that is known of one.\n",
    );
    for chapter in CHAPTERS {
        let name = chapter.name;
        let rules = spec::rules().iter().filter(|rule| rule.chapter == name);
        write!(
            text,
            "\n## [{name}]({name}.md)\n\n| rule | | who | releases | kind |\n|---|---|---|---|---|\n"
        )
        .unwrap();
        for rule in rules {
            let list = |words: Vec<&str>| words.join(", ");
            writeln!(
                text,
                "| {} {} | {} | {} | {} | {} |",
                rule.id,
                rule.title,
                rule.level.name(),
                list(rule.who.iter().map(|who| who.name()).collect()),
                rule.releases,
                list(rule.kinds.iter().map(|kind| kind.name()).collect()),
            )
            .unwrap();
        }
    }
    text
}
