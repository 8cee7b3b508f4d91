//! Tests that the parser reads the prose of the specification as intended.
#![cfg(feature = "suite")]

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use tvmspec::release::Releases;
use tvmspec::rule::Kind;
use tvmspec::spec::{Evidence, Party, evidence, parse, rule, rules};

/// Returns the files of the chapters in `folder`, by the name of the chapter.
fn files(folder: &str) -> impl Iterator<Item = (String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let files = fs::read_dir(folder).unwrap().flatten();
    files.filter_map(|file| {
        let name = file.file_name().into_string().unwrap();
        let chapter = name.strip_suffix(".md").or(name.strip_suffix(".toml"))?;
        Some((chapter.to_owned(), fs::read_to_string(file.path()).unwrap()))
    })
}

#[test]
fn every_chapter_parses_and_no_id_is_there_twice() {
    let mut seen = HashSet::new();
    for (chapter, prose) in files("spec") {
        for rule in parse(&chapter, &prose).unwrap() {
            assert!(seen.insert(rule.id.clone()), "{} is there twice", rule.id);
        }
    }
    assert!(seen.contains("WIRE-01"));
    assert_eq!(seen.len(), rules().len());
}

#[test]
fn every_rule_has_evidence_and_nothing_else_has() {
    for (chapter, text) in files("spec/evidence") {
        let table: toml::Table = text.parse().unwrap();
        for id in table.keys() {
            let of = rule(id).map(|rule| rule.chapter.as_str());
            assert_eq!(of, Some(chapter.as_str()), "{chapter}.toml: {id}");
        }
    }
    let bare: Vec<&str> = rules()
        .iter()
        .map(|rule| rule.id.as_str())
        .filter(|id| evidence(id).is_none_or(|evidence| *evidence == Evidence::default()))
        .collect();
    assert!(bare.is_empty(), "no evidence for {bare:?}");
}

#[test]
fn what_was_judged_is_rules_in_releases_that_have_them() {
    let judged = include_str!("../../spec/evidence/tables/judged.json");
    let judged: serde_json::Value = serde_json::from_str(judged).unwrap();
    let judged = judged.as_object().unwrap();
    assert!(judged.len() > 200, "{} rules", judged.len());
    for id in judged.keys() {
        let releases = rule(id).unwrap_or_else(|| panic!("{id}")).releases;
        let evidence = evidence(id).unwrap();
        let mut both = evidence.passed.iter().chain(&evidence.failed).peekable();
        assert!(both.peek().is_some(), "{id}");
        for release in both {
            assert!(releases.contains(*release), "{id} in {release}");
        }
    }
}

#[test]
fn every_rule_that_binds_has_a_text() {
    let bare: Vec<&str> = rules()
        .iter()
        .filter(|rule| rule.level.is_binding() && rule.norm().is_empty())
        .map(|rule| rule.id.as_str())
        .collect();
    assert!(bare.is_empty(), "a title alone is no obligation: {bare:?}");
}

#[test]
fn a_rule_has_all_its_attributes_or_is_rejected() {
    let good = "### ABC-07 Title here\nlevel: MUST    who: reader, writer    since: 0.7    until: 0.20    kind: truncated, limit\n\nText.\nMore.\n\nUpstream: reads on.\n\nAnd on.\n\nHere: a limit.\n\n## Next\nno text";
    let rules = parse("abc", good).unwrap();
    assert_eq!(rules.len(), 1);
    assert_eq!(rules[0].title, "Title here");
    assert_eq!(rules[0].who, [Party::Reader, Party::Writer]);
    assert_eq!(rules[0].kinds, [Kind::Truncated, Kind::Limit]);
    assert_eq!(rules[0].releases, Releases::between(7, 20));
    assert_eq!(rules[0].norm(), "Text.\nMore.");
    assert_eq!(rules[0].upstream(), "reads on.\n\nAnd on.");
    assert_eq!(rules[0].decisions(), "a limit.");
    let bare = parse(
        "abc",
        "### ABC-08 T\nlevel: LIMIT    who: reader    since: 0.2\n\nHere: x",
    )
    .unwrap();
    assert_eq!(
        (bare[0].norm(), bare[0].upstream(), bare[0].decisions()),
        ("", "", "x")
    );
    for bad in [
        "### ABC-07 T\nwho: reader    since: 0.7",
        "### ABC-07 T\nlevel: MUST    who: reader",
        "### ABC-07 T\nlevel: MUST    since: 0.7",
        "### ABC-07 T\nlevel: OUGHT    who: reader    since: 0.7",
        "### ABC-07 T\nlevel: MUST    who: somebody    since: 0.7",
        "### ABC-07 T\nlevel: MUST    who: reader, reader    since: 0.7",
        "### ABC-07 T\nlevel: MUST    who: reader    since: 0.7    kind: wrong",
        "### ABC-07 T\nlevel: MUST    who: reader    since: 0.7    evidence: x",
        "### ABC-07 T\n",
    ] {
        assert!(parse("abc", bad).is_err(), "{bad}");
    }
}
