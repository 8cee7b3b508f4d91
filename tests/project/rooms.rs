//! Tests that the parts of a chapter exist in all folders, and that rules, code and cases name each other.
#![cfg(feature = "suite")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{env, fs};
use tvmspec::conformance::CHAPTERS;
use tvmspec::conformance::case::{Expect, Suite};
use tvmspec::rule::Level;
use tvmspec::spec;

/// Chapters without a golden file, because a calling convention and a registry leave no bytes.
const NO_BYTES: [&str; 1] = ["function"];

/// Chapters whose bytes come from outside, and that need a fuzz target.
const FORMATS: [&str; 10] = [
    "wire",
    "tensor",
    "payload",
    "import_tree",
    "blob",
    "object",
    "target",
    "graph",
    "vm",
    "rpc",
];

fn root() -> PathBuf {
    env::var_os("CARGO_MANIFEST_DIR")
        .expect("cargo sets it")
        .into()
}

/// Returns whether this is the output of `cargo package`, which stores the original table next to its own.
fn is_package() -> bool {
    exists("Cargo.toml.orig")
}

fn exists(name: &str) -> bool {
    root().join(name).exists()
}

#[test]
fn a_chapter_is_in_every_room_that_it_belongs_to() {
    let mut missing = Vec::new();
    for chapter in CHAPTERS {
        let name = chapter.name;
        let mut rooms = vec![
            format!("spec/{name}.md"),
            format!("conformance/{name}/cases"),
        ];
        let programs = ["formats", "runtime", "devices", "models"];
        if !programs
            .iter()
            .any(|program| exists(&format!("tests/{program}/{name}.rs")))
        {
            rooms.push(format!("tests/*/{name}.rs"));
        }
        if !exists(&format!("src/{name}.rs")) {
            rooms.push(format!("src/{name}/mod.rs"));
        }
        if !NO_BYTES.contains(&name) {
            rooms.push(format!("golden/{name}"));
        }
        if FORMATS.contains(&name) && !is_package() {
            rooms.push(format!("fuzz/fuzz_targets/{name}.rs"));
        }
        missing.extend(rooms.into_iter().filter(|room| !exists(room)));
    }
    assert!(missing.is_empty(), "missing: {missing:#?}");
}

/// Returns the rooms that a file of `src/` names by `crate::`, except in comments.
fn rooms_named_in(text: &str) -> BTreeSet<String> {
    let code: String = text
        .lines()
        .map(|line| line.split("//").next().unwrap_or_default())
        .collect::<Vec<_>>()
        .join("\n");
    let word = |text: &str| -> String {
        text.trim_start()
            .chars()
            .take_while(|c| c.is_alphanumeric() || *c == '_')
            .collect()
    };
    let mut rooms = BTreeSet::new();
    for (at, _) in code.match_indices("crate::") {
        let behind = &code[at + "crate::".len()..];
        let Some(group) = behind.strip_prefix('{') else {
            rooms.insert(word(behind));
            continue;
        };
        // `use crate::{blob, payload::{self, Payload}}` names two rooms: the names at the first level of the group.
        let mut depth = 0;
        let mut begins = true;
        for (at, c) in group.char_indices() {
            match c {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => begins = true,
                c if c.is_whitespace() => {}
                _ if begins => {
                    rooms.insert(word(&group[at..]));
                    begins = false;
                }
                _ => {}
            }
        }
    }
    rooms
}

#[test]
fn a_chapter_uses_only_chapters_above_it() {
    let chapters: Vec<&str> = CHAPTERS.iter().map(|chapter| chapter.name).collect();
    // The modules around the chapters use them, and no chapter uses these modules.
    let around = ["capi", "cli", "conformance", "content", "examine", "spec"];
    let source = root().join("src");
    let mut files = Vec::new();
    walk(&source, &mut files);
    let mut up = Vec::new();
    let mut down = 0;
    for file in files
        .iter()
        .filter(|file| file.extension().is_some_and(|end| end == "rs"))
    {
        let name = name_below(&source, file);
        let room = name.split(['/', '.']).next().unwrap_or_default();
        let Some(own) = chapters.iter().position(|chapter| *chapter == room) else {
            continue;
        };
        for used in rooms_named_in(&fs::read_to_string(file).expect("listed just now")) {
            match chapters.iter().position(|chapter| *chapter == used) {
                Some(other) if other > own => {
                    up.push(format!("src/{name} uses {used}, which is below {room}"))
                }
                Some(other) if other < own => down += 1,
                None if around.contains(&used.as_str()) => {
                    up.push(format!("src/{name} uses {used}, which is no chapter"))
                }
                _ => {}
            }
        }
    }
    assert!(
        down > 100,
        "only {down} uses found: the test reads the source wrongly"
    );
    assert_eq!(
        up,
        Vec::<String>::new(),
        "a chapter uses only chapters above it"
    );
}

/// Checks that Cargo's table names every folder of `tests/`, and that a `main.rs` declares every file. Others would never run.
#[test]
fn every_test_is_built_once() {
    let table = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let table: toml::Table = table.parse().unwrap();
    let mut named: Vec<&str> = table["test"]
        .as_array()
        .unwrap()
        .iter()
        .map(|test| test["path"].as_str().unwrap())
        .collect();
    named.sort_unstable();
    let mut there = Vec::new();
    for folder in fs::read_dir(root().join("tests")).unwrap().flatten() {
        let main = folder.path().join("main.rs");
        let Ok(program) = fs::read_to_string(&main) else {
            continue;
        };
        there.push(name_below(&root(), &main));
        for entry in fs::read_dir(folder.path()).unwrap().flatten() {
            let path = entry.path();
            let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap();
            if path.extension().is_some_and(|end| end == "rs") && stem != "main" {
                assert!(
                    program.contains(&format!("mod {stem};\n")),
                    "{}",
                    path.display()
                );
            }
        }
    }
    there.sort_unstable();
    assert_eq!(named, there, "Cargo.toml names each program of tests/ once");
}

#[test]
fn every_room_for_cases_is_in_the_table_of_chapters() {
    for entry in fs::read_dir(root().join("conformance")).unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap();
        let is_chapter = entry.path().join("cases").exists();
        let known = CHAPTERS.iter().any(|chapter| chapter.name == name);
        assert_eq!(
            is_chapter, known,
            "conformance/{name} and conformance/chapters.rs disagree"
        );
    }
}

#[test]
fn every_rule_in_code_is_in_the_specification_and_vice_versa() {
    for chapter in CHAPTERS {
        let code: BTreeSet<&str> = chapter.rules().map(|rule| rule.id()).collect();
        let reply: BTreeSet<&str> = spec::rules()
            .iter()
            .filter(|rule| rule.chapter == chapter.name)
            .map(|rule| rule.id.as_str())
            .collect();
        let alone: Vec<_> = code.symmetric_difference(&reply).collect();
        assert!(
            alone.is_empty(),
            "{}: only in code or only in the specification: {alone:?}",
            chapter.name
        );
    }
}

#[test]
fn every_binding_or_disputed_rule_has_a_case() {
    let shown: BTreeSet<&str> = Suite::expect_ours()
        .cases
        .iter()
        .flat_map(|case| &case.rules)
        .map(String::as_str)
        .collect();
    let bare: Vec<&str> = spec::rules()
        .iter()
        .filter(|rule| CHAPTERS.iter().any(|chapter| chapter.name == rule.chapter))
        .filter(|rule| rule.level.is_binding() || rule.level == Level::Disputed)
        .filter(|rule| !shown.contains(rule.id.as_str()))
        .map(|rule| rule.id.as_str())
        .collect();
    assert!(bare.is_empty(), "no case shows {bare:?}");
}

#[test]
fn every_case_names_an_operation_that_exists() {
    let ops: BTreeSet<&str> = CHAPTERS
        .iter()
        .flat_map(|chapter| chapter.ops())
        .map(|op| op.name)
        .collect();
    for case in &Suite::expect_ours().cases {
        assert!(
            ops.contains(case.op.as_str()),
            "{}: there is no `{}`",
            case.id,
            case.op
        );
    }
}

/// Checks that each reject case differs from its parent and expects a rejection of a rule that it names.
#[test]
fn a_reject_case_is_not_its_parent() {
    let suite = Suite::expect_ours();
    for case in &suite.cases {
        let (Some(parent), Expect::Reject(..)) = (&case.parent, &case.expect) else {
            continue;
        };
        let parent = suite.case(parent).unwrap();
        assert_ne!(
            case.request(),
            parent.request(),
            "{} equals its parent",
            case.id
        );
    }
}

#[test]
fn every_golden_file_has_an_origin_and_is_small() {
    const LARGEST: u64 = 500_000;
    let text = fs::read_to_string(root().join("golden/manifest.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_str(&text).unwrap();
    let entries: Vec<&str> = manifest
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["file"].as_str().unwrap())
        .collect();
    let mut sorted = entries.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(
        entries, sorted,
        "golden/manifest.json is not sorted by file, each once"
    );
    let entries: BTreeSet<&str> = entries.into_iter().collect();

    let mut files = Vec::new();
    walk(&root().join("golden"), &mut files);
    let files: Vec<String> = files
        .iter()
        .map(|file| name_below(&root().join("golden"), file))
        .collect();
    for file in &files {
        let size = fs::metadata(root().join("golden").join(file))
            .unwrap()
            .len();
        assert!(size <= LARGEST, "golden/{file} has {size} bytes");
        // Explanations, scripts and dumps were written for this project.
        let beside = [".md", ".py", ".sh", ".c", ".cc", ".h", ".sha256"]
            .iter()
            .any(|end| file.ends_with(end))
            || file
                .strip_suffix(".txt")
                .is_some_and(|dumped| files.iter().any(|file| file == dumped));
        if file != "manifest.json" && !beside {
            assert!(
                entries.contains(file.as_str()),
                "golden/{file} is not in the manifest"
            );
        }
    }
    for entry in entries {
        assert!(
            files.iter().any(|file| file == entry),
            "the manifest names golden/{entry}, which is not there"
        );
    }
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        let hidden = entry.file_name().to_string_lossy().starts_with('.');
        if path.is_dir() && !hidden && !path.ends_with("__pycache__") {
            walk(&path, files);
        } else if path.is_file() && !hidden {
            files.push(path);
        }
    }
}

fn name_below(base: &Path, file: &Path) -> String {
    file.strip_prefix(base)
        .unwrap()
        .to_string_lossy()
        .replace('\\', "/")
}
