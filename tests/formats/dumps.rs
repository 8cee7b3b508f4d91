//! The annotated dump of every small golden equals the committed one, and covers every byte.
//!
//! The dumps of ten typical goldens are stored next to them: `golden/vm/basic.vmexec.txt` is the output of `tvmspec dump
//! golden/vm/basic.vmexec`. `golden/dumps.sha256` has the hashes of the others. `BLESS=1 cargo test --test formats dumps` writes both.
//! A difference shows a change in reading or in printing.
#![cfg(feature = "cli")]

use crate::support::cases;
use crate::support::folder;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

/// One line for each dump that is not stored as text: hash, two spaces, golden, as `sha256sum` prints.
const HASHES: &str = "golden/dumps.sha256";

/// The limits above which goldens and dumps are not compared.
const LARGEST: u64 = 64 * 1024;
const LONGEST: usize = 16 * 1024;

#[test]
fn every_small_golden_has_its_dump() {
    let bless = std::env::var_os("BLESS").is_some();
    let hashes = fs::read_to_string(root().join(HASHES)).expect("committed hashes");
    let mut stale: BTreeSet<&str> = hashes.lines().collect();
    let (mut hashed, mut wrong) = (String::new(), Vec::new());
    for (file, options) in goldens() {
        // tests/foreign/eras.rs compares the bytes of these files. Their dumps would repeat the same text six times.
        if file.starts_with("golden/eras/") {
            continue;
        }
        let output = dump(&file, &options);
        // A file without a known format, or with a broken container, has no fields.
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
        let beside = root().join(format!("{file}.txt"));
        if let Ok(committed) = fs::read_to_string(&beside) {
            if bless {
                fs::write(&beside, &text).expect("a writable dump");
            } else if committed != text {
                wrong.push(file);
            }
            continue;
        }
        let digest = Sha256::digest(&text);
        let hash: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        let line = format!("{hash}  {file}");
        if !stale.remove(line.as_str()) {
            wrong.push(file);
        }
        hashed.push_str(&line);
        hashed.push('\n');
    }
    if bless {
        fs::write(root().join(HASHES), hashed).expect("writable hashes");
        return;
    }
    assert!(
        wrong.is_empty() && stale.is_empty(),
        "these dumps differ (compare `tvmspec dump` before and after; BLESS=1 rewrites them): {wrong:#?}; stale: {stale:#?}"
    );
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
                // After a broken rule, bytes may be unread, but no byte is read twice.
                if start < at || (start > at && !broken) {
                    wrong.push(format!(
                        "{file}: {} at {start:#x}, but the previous field ends at {at:#x}",
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

/// Returns every small binary golden by name, with the options with which its case reads it.
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
        "txt", "json", "py", "md", "npz", "npy", "c", "h", "ll", "rs", "sh", "sha256",
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
        // In a pipe each row is one line, unless the environment states a width.
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
