//! The Kaitai Struct descriptions in `spec/ksy` read every golden as the library does.
//!
//! They are written by hand from the specification: a second, independent reading. The compiler, the runtime for JavaScript and a
//! parser of YAML are the packages of npm that `.ci/run` installs into the folder that `TVMSPEC_KAITAI` names, `~/.cache/tvmspec-kaitai`
//! where it names none. `tests/formats/kaitai/read.js` compiles and reads.
#![cfg(feature = "suite")]

#[path = "../support/cases.rs"]
mod cases;
#[path = "../support/folder.rs"]
mod folder;
#[path = "../support/goldens/mod.rs"]
mod goldens;
#[path = "../support/skip.rs"]
mod skip;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use goldens::compare::{self, Field, Value};
use goldens::{Format, Reading, Subject, root, subjects};
use serde_json::{Value as Json, json};
use skip::skipped;
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use tvmspec::release::Layout;
use tvmspec::rule::Kind;

/// The packages that are needed, below `node_modules`.
const PACKAGES: [&str; 3] = ["kaitai-struct-compiler", "kaitai-struct", "yaml"];

/// The folder of the packages, or what is missing.
fn packages() -> Result<PathBuf, String> {
    let node = Command::new("node").arg("--version").output();
    if !node.is_ok_and(|out| out.status.success()) {
        return Err("`node` is not installed".to_owned());
    }
    let named = std::env::var_os("TVMSPEC_KAITAI").map(PathBuf::from);
    let home =
        || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache/tvmspec-kaitai"));
    let Some(folder) = named.or_else(home) else {
        return Err("TVMSPEC_KAITAI names no folder".to_owned());
    };
    let modules = folder.join("node_modules");
    match PACKAGES.iter().find(|name| !modules.join(name).is_dir()) {
        Some(name) => Err(format!("{} has no {name}", modules.display())),
        None => Ok(modules),
    }
}

/// What the descriptions read of each subject; an error is why they do not.
fn read(modules: &PathBuf, subjects: &[Subject]) -> Vec<Result<Vec<Field>, String>> {
    let built = tempfile::tempdir().expect("a folder");
    let mut child = Command::new("node")
        .arg(root().join("tests/formats/kaitai/read.js"))
        .arg(root().join("spec/ksy"))
        .arg(built.path())
        .env("NODE_PATH", modules)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("node starts");
    let requests: Vec<String> = subjects
        .iter()
        .map(|subject| request(subject).to_string())
        .collect();
    let mut input = child.stdin.take().expect("it is piped");
    // The script reads all of it before it answers.
    input
        .write_all(requests.join("\n").as_bytes())
        .expect("node reads");
    drop(input);
    let out = child.wait_with_output().expect("node ends");
    assert!(
        out.status.success(),
        "the descriptions do not compile, or the script fails"
    );
    let text = String::from_utf8(out.stdout).expect("JSON");
    let answers: Vec<_> = text.lines().map(answer).collect();
    assert_eq!(answers.len(), subjects.len(), "an answer for each request");
    answers
}

fn request(subject: &Subject) -> Json {
    // A kind may have several forms, of which the bytes do not say which: the newest that reads (PAY-09).
    const FORMS: [u8; 5] = [24, 20, 13, 9, 2];
    let minor = |layout: &Layout| layout.releases().since.minor();
    let (names, prefix, tries) = match &subject.format {
        Format::Wire(kind) => (vec!["TvmWire"], "", vec![json!([kind])]),
        Format::Dtype => (vec!["TvmTensor", "Dtype"], "dtype", vec![json!([])]),
        Format::Device => (vec!["TvmTensor", "Device"], "device", vec![json!([])]),
        Format::Tensor(_) => (vec!["TvmTensor"], "", vec![json!([])]),
        Format::Params(_) => (vec!["TvmParams"], "", vec![json!([])]),
        Format::RelayCode => (vec!["TvmRelayVm"], "", vec![json!([])]),
        Format::ImportTree => (vec!["TvmImportTree"], "", vec![json!([])]),
        Format::Payload(kind, layout) => {
            // None that came after the last release of the layout.
            let last = layout.releases().until.minor();
            let tries = FORMS
                .iter()
                .filter(|form| **form <= last)
                .map(|form| json!([kind, minor(layout), form, true]));
            (vec!["TvmPayload"], "", tries.collect())
        }
        Format::Blob(layout) => {
            let tries = FORMS.iter().map(|form| json!([minor(layout), form]));
            (vec!["TvmLibrary"], "", tries.collect())
        }
    };
    let whole = matches!(
        &subject.format,
        Format::Payload(_, Layout::V0_22) | Format::Blob(_)
    );
    let bytes = BASE64_STANDARD.encode(&subject.bytes);
    json!({"type": names, "prefix": prefix, "tries": tries, "whole": whole, "bytes": bytes})
}

fn answer(line: &str) -> Result<Vec<Field>, String> {
    let answer: Json = serde_json::from_str(line).expect("JSON");
    let Some(fields) = answer["fields"].as_array() else {
        return Err(answer["error"].as_str().unwrap_or("no reason").to_owned());
    };
    let place =
        |value: &Json| usize::try_from(value.as_u64().expect("an offset")).expect("an offset");
    let field = |field: &Json| {
        let text = field[4].as_str().expect("a value is a text");
        Field {
            path: field[0].as_str().expect("a path").to_owned(),
            start: place(&field[1]),
            end: place(&field[2]),
            value: match field[3].as_str() {
                // A float without a fraction is an integer to JavaScript.
                Some("number")
                    if field[0]
                        .as_str()
                        .is_some_and(|path| path.ends_with(".float")) =>
                {
                    Value::Float(text.parse().expect("a float"))
                }
                Some("number") => Value::Number(text.parse().expect("an integer")),
                Some("float") => Value::Float(text.parse().expect("a float")),
                _ => Value::Bytes(goldens::unhex(text)),
            },
        }
    };
    Ok(fields.iter().map(field).collect())
}

#[test]
fn every_golden_is_read_alike() {
    let modules = match packages() {
        Ok(modules) => modules,
        Err(why) => return skipped(why),
    };
    let (subjects, unsaid): (Vec<_>, Vec<_>) = subjects().into_iter().partition(is_stated);
    let theirs = read(&modules, &subjects);
    let (mut fields, mut wrong) = (0, Vec::new());
    let (mut alike, mut rejected, mut rules) = (0, 0, BTreeMap::<&str, usize>::new());
    let mut rooms = BTreeMap::<String, usize>::new();
    let mut odd = 0;
    for (subject, theirs) in subjects.iter().zip(&theirs) {
        let ours = subject.read();
        match (&ours.broken, theirs) {
            (None, Ok(theirs)) => match compare::same(&ours, &subject.bytes, theirs) {
                Ok(count) => {
                    alike += 1;
                    odd += usize::from(!ours.findings.is_empty());
                    fields += count;
                    *rooms.entry(room(subject)).or_default() += 1;
                }
                Err(why) => wrong.push(format!("{}: {why}", subject.name)),
            },
            (None, Err(why)) => wrong.push(format!("{}: {why}", subject.name)),
            (Some(_), Err(_)) => rejected += 1,
            (Some(broken), Ok(_))
                if broken.kind() == Kind::Truncated && broken.rule().id() != "PAY-88" =>
            {
                wrong.push(format!("{}: {broken}", subject.name));
            }
            (Some(broken), Ok(_)) => *rules.entry(broken.rule().id()).or_default() += 1,
        }
    }
    println!(
        "{} runs of bytes of goldens and cases",
        subjects.len() + unsaid.len()
    );
    println!(
        "{alike} read alike ({odd} with findings), {fields} fields with names, places and values: {rooms:?}"
    );
    println!(
        "{rejected} rejected by both; {} rejected here by rules that a description cannot state: {rules:?}",
        rules.values().sum::<usize>()
    );
    let unsaid: Vec<&str> = unsaid.iter().map(|subject| subject.name.as_str()).collect();
    println!(
        "{} of wire types that tvm_wire.ksy has not: {unsaid:?}",
        unsaid.len()
    );
    assert!(
        wrong.is_empty(),
        "{} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(alike > 200 && rejected > 50, "too few to say anything");
}

/// The chapter that a golden lies in, or whose case it is.
fn room(subject: &Subject) -> String {
    let name = subject
        .name
        .trim_start_matches("case ")
        .trim_start_matches("golden/");
    name.split('/').next().unwrap_or_default().to_owned()
}

/// Kaitai has no types with parameters of types: the description lists those that it has.
fn is_stated(subject: &Subject) -> bool {
    let listed =
        std::fs::read_to_string(root().join("spec/ksy/tvm_wire.ksy")).expect("a description");
    match &subject.format {
        Format::Wire(kind) => listed.contains(&format!("'\"{kind}\"'")),
        _ => true,
    }
}

/// What is damaged is not read alike, or the comparison says nothing.
#[test]
fn a_damaged_golden_is_not_read_alike() {
    let modules = match packages() {
        Ok(modules) => modules,
        Err(why) => return skipped(why),
    };
    let mut damaged = Vec::new();
    let mut originals = Vec::new();
    for subject in subjects().into_iter().filter(is_stated) {
        let ours = subject.read();
        if ours.broken.is_some() || subject.bytes.len() > 4096 {
            continue;
        }
        for at in places(&ours) {
            let mut bytes = subject.bytes.clone();
            bytes[at] ^= 0x10;
            damaged.push(Subject {
                name: format!("{} with another byte at {at:#x}", subject.name),
                bytes,
                ..subject.clone()
            });
            originals.push(subject.clone());
        }
    }
    let theirs = read(&modules, &damaged);
    let mut unnoticed = Vec::new();
    let mut rejected = 0;
    for ((subject, original), theirs) in damaged.iter().zip(&originals).zip(&theirs) {
        match theirs {
            Err(_) => rejected += 1,
            Ok(theirs) if compare::same(&original.read(), &original.bytes, theirs).is_ok() => {
                unnoticed.push(subject.name.as_str())
            }
            Ok(_) => {}
        }
    }
    println!(
        "{} damaged runs of bytes: {rejected} rejected, the others read otherwise",
        damaged.len()
    );
    assert!(damaged.len() > 1000, "too few to say anything");
    assert!(
        unnoticed.is_empty(),
        "{} are taken for undamaged: {unnoticed:#?}",
        unnoticed.len()
    );
}

/// The first byte of a few fields: the first ones, the last ones, and some between. Numbers beyond 2^53 are left out, which
/// JavaScript rounds.
fn places(ours: &Reading) -> Vec<usize> {
    const MOST: usize = 12;
    let exact = ours.spans.iter().filter(|span| {
        let number = span.value.parse::<i128>();
        number.is_ok_and(|number| number.abs() < 1 << 53) || span.value.parse::<f64>().is_err()
    });
    let all: Vec<usize> = exact
        .map(|span| usize::try_from(span.start).expect("an offset"))
        .collect();
    let step = all.len().div_ceil(MOST).max(1);
    let mut chosen: Vec<usize> = all.iter().copied().step_by(step).collect();
    chosen.extend(all.last());
    chosen.dedup();
    chosen
}
