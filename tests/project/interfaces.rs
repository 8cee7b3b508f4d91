//! Checks that each C function and each global function of the interfaces is in the specification, and in a case or among the excuses.
//!
//! The tables are read from every release (`spec/evidence/interfaces.py`, `global_functions.py`). `spec/evidence/uncovered.json` has
//! the reasons for functions without a case. `cargo test --test project interfaces -- --nocapture` prints the numbers.
#![cfg(feature = "suite")]

use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn text(path: &str) -> String {
    fs::read_to_string(root(path)).unwrap_or_else(|why| panic!("{path}: {why}"))
}

fn json(path: &str) -> Map<String, Value> {
    serde_json::from_str(&text(path)).unwrap_or_else(|why| panic!("{path}: {why}"))
}

/// The names that the suite uses: texts in its cases, and words in the code that runs them.
struct SuiteNames {
    in_cases: BTreeSet<String>,
    in_code: BTreeSet<String>,
}

impl SuiteNames {
    fn read() -> SuiteNames {
        let mut names = SuiteNames {
            in_cases: BTreeSet::new(),
            in_code: BTreeSet::new(),
        };
        names.folder(&root("conformance"));
        names
    }

    fn folder(&mut self, folder: &Path) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                self.folder(&path);
                continue;
            }
            let extension = path.extension().and_then(|extension| extension.to_str());
            match extension {
                Some("json") if folder.ends_with("cases") => {
                    let cases = fs::read_to_string(&path).unwrap();
                    self.texts(&serde_json::from_str(&cases).unwrap());
                }
                // The tables of steps name every function, independent of cases.
                Some("rs")
                    if !path.ends_with("c_functions.rs")
                        && !path.ends_with("legacy_c_functions.rs") =>
                {
                    let code = fs::read_to_string(&path).unwrap();
                    let lines = code
                        .lines()
                        .filter(|line| !line.trim_start().starts_with("//"));
                    let words = lines.flat_map(|line| {
                        line.split(|letter: char| {
                            !(letter.is_alphanumeric() || matches!(letter, '_' | '.'))
                        })
                    });
                    self.in_code.extend(words.map(str::to_owned));
                }
                _ => {}
            }
        }
    }

    fn texts(&mut self, value: &Value) {
        match value {
            Value::String(text) => {
                // The prefix marks a result that is not shown.
                self.in_cases
                    .insert(text.trim_start_matches('-').to_owned());
            }
            Value::Array(parts) => parts.iter().for_each(|part| self.texts(part)),
            Value::Object(members) => members.values().for_each(|part| self.texts(part)),
            _ => {}
        }
    }

    fn has(&self, name: &str) -> bool {
        self.in_cases.contains(name) || self.in_code.contains(name)
    }
}

/// Compares functions with the suite and with the excuses. If several excuses are prefixes of a name, the longest one counts.
fn hold(what: &str, functions: &BTreeSet<&str>, excuses: &Value, exact: bool) {
    let names = SuiteNames::read();
    let excuses = excuses.as_object().unwrap();
    let excused = |function: &str| {
        let fits = |start: &&String| {
            if exact {
                start.as_str() == function
            } else {
                function.starts_with(start.as_str())
            }
        };
        excuses.keys().filter(fits).max_by_key(|start| start.len())
    };
    let in_cases = functions
        .iter()
        .filter(|name| names.in_cases.contains(**name))
        .count();
    let covered = functions.iter().filter(|name| names.has(name)).count();
    let open: Vec<&&str> = functions
        .iter()
        .filter(|name| !names.has(name) && excused(name).is_none())
        .collect();
    println!(
        "{what}: {} in all, {in_cases} in cases, {} called by operations, {} with a reason",
        functions.len(),
        covered - in_cases,
        functions.len() - covered - open.len()
    );
    assert!(
        open.is_empty(),
        "{what} without a case and without a reason: {open:?}"
    );
    let used: BTreeSet<&String> = functions
        .iter()
        .filter(|name| !names.has(name))
        .filter_map(|name| excused(name))
        .collect();
    let stale: Vec<&String> = excuses
        .keys()
        .filter(|excuse| !used.contains(excuse))
        .collect();
    assert!(stale.is_empty(), "{what}: reasons for nothing: {stale:?}");
}

#[test]
fn each_c_function_is_specified_and_has_a_case_or_a_reason() {
    let table = json("spec/evidence/tables/c_functions.json");
    let chapters = ["value", "function", "object", "module", "device"];
    let pages: Vec<String> = chapters
        .iter()
        .map(|chapter| text(&format!("spec/{chapter}.md")))
        .collect();
    let functions: BTreeSet<&str> = table.keys().map(String::as_str).collect();
    for name in &functions {
        let listed = format!(" {name}(");
        let count = pages.iter().filter(|page| page.contains(&listed)).count();
        assert_eq!(count, 1, "{name} is in the tables of so many chapters");
    }
    hold(
        "C functions",
        &functions,
        &json("spec/evidence/uncovered.json")["c_functions"],
        true,
    );
}

#[test]
fn each_global_function_is_specified_and_has_a_case_or_a_reason() {
    const FAMILIES: [&str; 5] = ["ffi.", "runtime.", "device_api.", "rpc.", "vm.builtin."];
    let table = text("spec/evidence/tables/global_functions.tsv");
    let page = text("spec/global-functions.md");
    let rows = table
        .lines()
        .map(|line| line.split('\t').collect::<Vec<_>>());
    let native = rows.filter(|row| row.len() == 4 && row[2] != "python");
    let functions: BTreeSet<&str> = native
        .map(|row| row[0])
        .filter(|name| FAMILIES.iter().any(|family| name.starts_with(family)))
        .collect();
    for name in &functions {
        assert!(
            page.contains(&format!("| `{name}` |")),
            "global-functions.md lacks {name}"
        );
    }
    hold(
        "global functions",
        &functions,
        &json("spec/evidence/uncovered.json")["global_functions"],
        false,
    );
}
