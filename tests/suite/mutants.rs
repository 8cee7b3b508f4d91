//! The handwritten mutants: wrong behaviours of this crate, stored as data. A case that names the broken rule must detect each.
//!
//! `rule_off.rs` switches off rules that are checks. A rule that describes a behaviour has no check, so
//! `conformance/mutants/<chapter>.toml` describes a careless implementation instead. `conformance/mutants/run` applies it to a copy
//! of the source. This file reads those lists and checks that they match the current source.
#![cfg(feature = "suite")]

use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::{env, fs};
use tvmspec::rule::Level;
use tvmspec::spec;

/// Name of the mutant's switch in `put`.
const SWITCH: &str = "MUTATED";

/// A list of mutants.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    mutant: Vec<Mutant>,
}

/// One wrong behaviour.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Mutant {
    /// Chapter and a unique name in it, for example `value/padding-set`.
    id: String,
    /// Rule that the mutant breaks. The case that detects it names this rule.
    pub(crate) rule: String,
    /// The wrong behaviour, in one line.
    wrong: String,
    /// Replacements in product code. All are active together.
    edit: Vec<Edit>,
}

/// Change of product code that the switch activates.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Edit {
    /// Path from the root of the project, for example `src/value/header.rs`.
    file: String,
    /// Text that occurs exactly once in the file.
    find: String,
    /// Rust code that contains the switch.
    put: String,
}

/// Returns every list in `conformance/mutants/`, by chapter.
pub(crate) fn lists() -> Result<BTreeMap<String, Vec<Mutant>>, String> {
    let mut lists = BTreeMap::new();
    let folder = root().join("conformance/mutants");
    for entry in fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))? {
        let path = entry.map_err(|error| error.to_string())?.path();
        let Some(chapter) = name_of_list(&path) else {
            continue;
        };
        let text = fs::read_to_string(&path).map_err(|error| error.to_string())?;
        let list = parse(&chapter, &text).map_err(|error| format!("{chapter}.toml: {error}"))?;
        lists.insert(chapter, list);
    }
    Ok(lists)
}

/// Returns the root of the project from the environment, so that a copy of the source tests its own files.
fn root() -> PathBuf {
    env::var_os("CARGO_MANIFEST_DIR")
        .expect("cargo sets it")
        .into()
}

/// Returns the chapter of a list. `accepted.toml` belongs to the automatic mutants and is not a list.
fn name_of_list(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?.strip_suffix(".toml")?;
    (name != "accepted").then(|| name.to_owned())
}

/// Parses the mutants of one list.
fn parse(chapter: &str, text: &str) -> Result<Vec<Mutant>, String> {
    let list: List = toml::from_str(text).map_err(|error| error.to_string())?;
    for mutant in &list.mutant {
        let id = &mutant.id;
        let name = id
            .strip_prefix(chapter)
            .and_then(|rest| rest.strip_prefix('/'));
        if name.is_none_or(str::is_empty) {
            return Err(format!("the id `{id}` is not {chapter}/NAME"));
        }
        if mutant.wrong.trim().is_empty() || mutant.wrong.contains('\n') {
            return Err(format!("`wrong` of {id} is not one line"));
        }
        let has_text = |edit: &Edit| !edit.find.trim().is_empty();
        if mutant.edit.is_empty() || !mutant.edit.iter().all(has_text) {
            return Err(format!("{id} has no edit, or one without a text"));
        }
    }
    Ok(list.mutant)
}

/// Returns the problems of the edits of one file: text that does not occur exactly once, and edits that overlap.
fn problems_of_edits(source: &str, edits: &[(&str, &Edit)]) -> Vec<String> {
    let mut problems = Vec::new();
    let mut places: Vec<(Range<usize>, &str)> = Vec::new();
    for (id, edit) in edits {
        match source.matches(&edit.find).count() {
            1 => {
                let start = source.find(&edit.find).expect("it is there once");
                places.push((start..start + edit.find.len(), id));
            }
            count => problems.push(format!(
                "{id}: {} has {count} times\n{}",
                edit.file, edit.find
            )),
        }
        if !edit.put.contains(SWITCH) {
            problems.push(format!("{id}: {SWITCH} is not in\n{}", edit.put));
        }
        if edit.find.contains(SWITCH) {
            problems.push(format!("{id}: {SWITCH} is in\n{}", edit.find));
        }
    }
    places.sort_by_key(|(place, _)| place.start);
    for pair in places.windows(2) {
        if let [(first, one), (second, other)] = pair
            && second.start < first.end
        {
            problems.push(format!("{one} and {other} change the same text"));
        }
    }
    problems
}

/// A mutant with outdated text could never be applied, and nobody would notice.
#[test]
fn every_mutant_finds_its_text_and_breaks_a_rule_of_its_chapter() {
    let lists = lists().expect("lists that parse");
    let (mut problems, mut ids) = (Vec::new(), BTreeSet::new());
    let mut by_file: BTreeMap<&str, Vec<(&str, &Edit)>> = BTreeMap::new();
    for (chapter, mutant) in lists
        .iter()
        .flat_map(|(chapter, list)| list.iter().map(move |one| (chapter, one)))
    {
        if !ids.insert(mutant.id.as_str()) {
            problems.push(format!("{} is there twice", mutant.id));
        }
        match spec::rule(&mutant.rule) {
            // A SHOULD that describes a behaviour has no check either. No other rule can be broken.
            Some(rule)
                if (rule.level.is_binding() || rule.level == Level::Should)
                    && rule.chapter == *chapter => {}
            _ => problems.push(format!(
                "{}: {} is not a rule of {chapter} that can be broken",
                mutant.id, mutant.rule
            )),
        }
        for edit in &mutant.edit {
            by_file
                .entry(&edit.file)
                .or_default()
                .push((&mutant.id, edit));
        }
    }
    for (file, edits) in by_file {
        match fs::read_to_string(root().join(file)) {
            Ok(source) if file.starts_with("src/") => {
                problems.extend(problems_of_edits(&source, &edits))
            }
            _ => problems.push(format!("{file} is not a file of the product")),
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn a_list_that_is_wrong_says_where() {
    let whole = "[[mutant]]\nid = 'wire/a'\nrule = 'WIRE-01'\nwrong = 'w'\n[[mutant.edit]]\nfile = 'f'\nfind = 'x'\nput = 'MUTATED'\n";
    assert_eq!(parse("wire", whole).map(|list| list.len()), Ok(1));
    for (line, put, problem) in [
        ("'wire/a'", "'blob/a'", "`blob/a` is not wire/NAME"),
        ("'w'", "\"a\\nb\"", "`wrong` of wire/a is not one line"),
        ("find = 'x'", "find = ''", "without a text"),
        ("rule = 'WIRE-01'", "", "missing field `rule`"),
    ] {
        let error = parse("wire", &whole.replace(line, put)).expect_err(put);
        assert!(error.contains(problem), "{error}");
    }
}

#[test]
fn edits_that_cannot_be_planted_are_named() {
    let edit = |find: &str, put: &str| Edit {
        file: "f".into(),
        find: find.into(),
        put: put.into(),
    };
    let problems = |edits: &[Edit]| {
        let named: Vec<_> = edits.iter().map(|edit| ("a", edit)).collect();
        problems_of_edits("one two two three", &named).len()
    };
    assert_eq!(
        problems(&[edit("one", "MUTATED"), edit("three", "MUTATED")]),
        0
    );
    assert_eq!(problems(&[edit("two", "MUTATED")]), 1);
    assert_eq!(problems(&[edit("four", "MUTATED")]), 1);
    assert_eq!(problems(&[edit("one", "mutated")]), 1);
    assert_eq!(
        problems(&[edit("one t", "MUTATED"), edit(" two t", "MUTATED")]),
        1
    );
}
