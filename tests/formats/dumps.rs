//! Every small golden has its annotated dump beside it, and a dump says what every byte is.
//!
//! `golden/blob/x.bin.txt` is what `tvmspec dump golden/blob/x.bin` prints. `BLESS=1 cargo test --test dumps` writes
//! all of them anew; a difference in one is a difference in what the crate reads.
#![cfg(feature = "cli")]

#[path = "../support/cases.rs"]
mod cases;
#[path = "../support/folder.rs"]
mod folder;

use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Larger goldens are dumped on demand only, and longer dumps are not kept.
const LARGEST: u64 = 64 * 1024;
const LONGEST: usize = 16 * 1024;

#[test]
fn every_small_golden_has_its_dump() {
    let bless = std::env::var_os("BLESS").is_some();
    let (mut dumped, mut wrong) = (0, Vec::new());
    for (file, options) in goldens() {
        // What eras wrote is held to its bytes by tests/foreign/eras.rs; a dump of each would say the same six times.
        if file.starts_with("golden/eras/") {
            continue;
        }
        let output = dump(&file, &options);
        // What is neither a container nor a format of its own, or is broken as a container, has no fields.
        let text = String::from_utf8(output.stdout).expect("a dump is text");
        if !matches!(output.status.code(), Some(0 | 1)) || text.is_empty() {
            let why = String::from_utf8_lossy(&output.stderr);
            println!("skipped {file}, because {}", why.trim());
            continue;
        }
        if text.len() > LONGEST {
            println!("skipped {file}, because its dump has {} bytes", text.len());
            continue;
        }
        dumped += 1;
        let beside = root().join(format!("{file}.txt"));
        if bless {
            fs::write(&beside, &text).expect("a writable dump");
        } else if fs::read_to_string(&beside).is_ok_and(|there| there == text) {
        } else {
            wrong.push(file);
        }
    }
    assert!(dumped > 0, "no golden was dumped");
    assert!(
        wrong.is_empty(),
        "these dumps are missing or differ (BLESS=1 rewrites them): {wrong:#?}"
    );
}

#[test]
fn no_dump_is_left_without_its_golden() {
    let stale: Vec<PathBuf> = folder::files(&root().join("golden"))
        .into_iter()
        .filter(|path| path.extension().is_some_and(|extension| extension == "txt"))
        .filter(|path| !path.with_extension("").exists())
        .collect();
    assert!(stale.is_empty(), "{stale:?}");
}

#[test]
fn a_dump_attributes_every_byte_once() {
    let (mut whole, mut wrong) = (0, Vec::new());
    for (file, mut options) in goldens() {
        options.push("--json".into());
        let output = dump(&file, &options);
        let Ok(Value::Array(units)) = serde_json::from_slice(&output.stdout) else {
            continue;
        };
        for unit in &units {
            let broken = !unit["broken"].is_null();
            let mut at = 0;
            for field in unit["fields"].as_array().into_iter().flatten() {
                let (start, end) = (number(&field["start"]), number(&field["end"]));
                // Behind a broken rule bytes are unread, but never read twice.
                if start < at || (start > at && !broken) {
                    wrong.push(format!(
                        "{file}: {} at {start:#x}, behind {at:#x}",
                        field["field"]
                    ));
                }
                at = at.max(end);
            }
            if at != number(&unit["bytes"]) && !broken {
                wrong.push(format!(
                    "{file}: {at:#x} of {} bytes are read",
                    unit["bytes"]
                ));
            }
            whole += usize::from(!broken);
        }
    }
    assert!(whole > 0, "no golden was read whole");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Every small binary golden, by name, with the options that say how its case reads it.
fn goldens() -> BTreeMap<String, Vec<String>> {
    let mut options: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for path in folder::files(&root().join("conformance")) {
        let ending = path.extension().and_then(|ending| ending.to_str());
        if ending != Some("json") || !path.parent().is_some_and(|room| room.ends_with("cases")) {
            continue;
        }
        for case in cases::cases(&path) {
            let (Some(file), Some(op)) = (case["input"]["file"].as_str(), case["op"].as_str())
            else {
                continue;
            };
            let args = &case["args"];
            let mut words = Vec::new();
            for (name, wanted) in [
                ("layout", "blob.decode payload.decode"),
                ("kind", "payload.decode"),
            ] {
                if wanted.contains(op)
                    && let Some(value) = args[name].as_str()
                {
                    words.extend([format!("--{name}"), value.to_owned()]);
                }
            }
            let entry = options.entry(format!("golden/{file}")).or_default();
            if entry.is_empty() {
                *entry = words;
            }
        }
    }
    let texts = [
        "txt", "json", "py", "md", "npz", "npy", "c", "h", "ll", "rs", "sh",
    ];
    folder::files(&root().join("golden"))
        .into_iter()
        .filter(|path| {
            let extension = path.extension().and_then(|extension| extension.to_str());
            !texts.contains(&extension.unwrap_or_default())
        })
        .filter(|path| fs::metadata(path).is_ok_and(|file| file.len() <= LARGEST))
        .map(|path| {
            let name = path.strip_prefix(root()).expect("below the root");
            let name = name.to_str().expect("a name in UTF-8").replace('\\', "/");
            let words = options.remove(&name).unwrap_or_default();
            (name, words)
        })
        .collect()
}

fn dump(file: &str, options: &[String]) -> std::process::Output {
    Command::new(env!("CARGO_BIN_EXE_tvmspec"))
        .args(["dump", file])
        .args(options)
        .current_dir(root())
        // In a pipe a row is a line, unless the environment states a width.
        .env_remove("COLUMNS")
        .output()
        .expect("tvmspec runs")
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_default()
}
