//! The same twenty artifacts by compilers of several releases (golden/eras): each is read, written to the same bytes, loads in its own
//! release, and runs where it runs. `BLESS=1 cargo test --test eras` writes conformance/reports/eras.md and golden/eras/rules.json anew.
#![cfg(feature = "cli")]

#[path = "../support/skip.rs"]
mod skip;

use serde_json::Value;
use skip::skipped;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{env, fs};
use tvmspec::blob::container::{self, FileForm};
use tvmspec::blob::{Blob, detect::detect};
use tvmspec::device::{Attribute, AttributeValue as Attr, Device, Manager};
use tvmspec::examine::document;
use tvmspec::graph::Graph;
use tvmspec::payload;
use tvmspec::release::Release;
use tvmspec::rule::Findings;
use tvmspec::tensor::Params;
use tvmspec::wire::{Cursor, Writer};

/// Where each rule was read: what `tvmspec rule` prints.
const RULES: &str = "golden/eras/rules.json";

/// Files that their own release does not load as they are: the eras, the file, how it ends, and why.
const NOT_LOADED: [(&[&str], &str, &str, &str); 4] = [
    (WITHOUT_METAL, "metal.so", "fails", METAL),
    (WITHOUT_METAL, "tree.so", "fails", METAL),
    (ALL, "system-library.so", "silent", SYSTEM),
    (ALL, "system-library.tar", "silent", SYSTEM),
];
/// Artifacts that ran in their own release and are rejected here.
const NOT_RUN: (&[&str], &str, &str) = (&["0.13", "0.16"], "const-loader", CONSTANTS);
const CONSTANTS: &str =
    "its initialiser takes an array of the old object world, which is unsupported here (VAL-19)";
const ALL: &[&str] = &["0.13", "0.16", "0.22", "0.25", "0.26", "0.27"];
const WITHOUT_METAL: &[&str] = &["0.13", "0.16", "0.22"];
const METAL: &str = "a compiler without Metal writes an order of fields that the loader of its own release does not take";
const SYSTEM: &str = "a system library registers itself; its symbols have a prefix that the loader of files does not look for";

/// What an era made of one artifact: a row of its `made.json`.
struct Artifact {
    era: String,
    name: String,
    entry: Value,
}

impl Artifact {
    fn files(&self) -> Vec<String> {
        let files = self.entry["files"].as_array().into_iter().flatten();
        files
            .map(|file| file.as_str().unwrap().to_owned())
            .collect()
    }

    fn path(&self, file: &str) -> PathBuf {
        folder().join(&self.era).join(file)
    }

    /// How it runs, where it does.
    fn run(&self) -> Option<&Value> {
        self.entry.get("run")
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/eras")
}

fn eras() -> Vec<String> {
    let entries = fs::read_dir(folder()).unwrap().flatten();
    let mut eras: Vec<String> = entries
        .filter(|entry| entry.path().is_dir())
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    eras.sort_unstable_by_key(|era| era.parse::<Release>().unwrap());
    eras
}

fn made(era: &str) -> Value {
    let text = fs::read_to_string(folder().join(era).join("made.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn artifacts() -> Vec<Artifact> {
    let of = |era: String| {
        let made = made(&era);
        let rows = made["artifacts"].as_object().unwrap().clone();
        rows.into_iter().map(move |(name, entry)| Artifact {
            era: era.clone(),
            name,
            entry,
        })
    };
    eras().into_iter().flat_map(of).collect()
}

fn tvmspec() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tvmspec"));
    command.current_dir(env!("CARGO_MANIFEST_DIR"));
    command
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)))
}

/// Every file that an artifact has, once.
fn each_file(mut check: impl FnMut(&Artifact, &str, &Path)) {
    let mut files = 0;
    for artifact in artifacts() {
        for file in artifact.files() {
            check(&artifact, &file, &artifact.path(&file));
            files += 1;
        }
    }
    assert!(files > 100, "{files} files of all eras");
}

#[test]
fn every_era_has_the_same_twenty_artifacts_or_says_why_not() {
    let names: BTreeMap<String, BTreeSet<String>> = artifacts().iter().fold(
        BTreeMap::new(),
        |mut all: BTreeMap<String, BTreeSet<String>>, artifact| {
            let era = all.entry(artifact.era.clone()).or_default();
            assert!(era.insert(artifact.name.clone()));
            let is_made = !artifact.files().is_empty();
            assert_ne!(
                is_made,
                artifact.entry["why"].is_string(),
                "{} {}",
                artifact.era,
                artifact.name
            );
            all
        },
    );
    assert_eq!(
        names.keys().map(String::as_str).collect::<BTreeSet<_>>(),
        ALL.iter().copied().collect()
    );
    for (era, names) in &names {
        assert_eq!(names.len(), 20, "{era}: {names:?}");
        assert_eq!(Some(names), names_of_first(), "{era}");
    }
    fn names_of_first() -> Option<&'static BTreeSet<String>> {
        static FIRST: std::sync::OnceLock<BTreeSet<String>> = std::sync::OnceLock::new();
        Some(FIRST.get_or_init(|| {
            let first = eras().remove(0);
            let of_first = artifacts()
                .into_iter()
                .filter(|artifact| artifact.era == first);
            of_first.map(|artifact| artifact.name).collect()
        }))
    }
}

#[test]
fn what_an_era_wrote_breaks_no_rule() {
    let mut wrong = Vec::new();
    each_file(|_, _, path| {
        let output = tvmspec()
            .args(["verify", "--json"])
            .arg(path)
            .output()
            .unwrap();
        let reply = json(&output);
        let clean = |list: &str| reply[list].as_array().is_some_and(Vec::is_empty);
        if !output.status.success() || !clean("violations") || !clean("findings") {
            wrong.push(reply);
        }
    });
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn what_an_era_wrote_is_written_to_the_same_bytes() {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    each_file(|_, _, path| {
        *counts.entry(rewritten(path)).or_default() += 1;
    });
    println!("{counts:?}");
    assert!(counts["library binary"] > 60, "{counts:?}");
    for form in ["parameters", "executable", "Relay VM code", "graph"] {
        assert!(counts.contains_key(form), "no {form} in {counts:?}");
    }
}

/// Decodes a file and encodes it; panics where the bytes differ. Answers with what it was.
fn rewritten(path: &Path) -> &'static str {
    let bytes = fs::read(path).unwrap();
    let findings = &mut Findings::default();
    let file = container::open(&bytes).unwrap();
    let name = path.display();
    let mut cursor = Cursor::new(&bytes);
    let mut out = Writer::new();
    let what = match file.form {
        FileForm::Params => {
            let (params, _) = Params::detect(&mut cursor, findings).unwrap();
            params.write(&mut out);
            "parameters"
        }
        FileForm::RelayVm if document::magic_first(&bytes) => {
            let code =
                payload::relay_vm::RelayExecutable::read_code(&mut cursor, findings).unwrap();
            code.write(&mut out).unwrap();
            // What a library stores is the code with its length in front.
            let stored = out.into_bytes();
            assert!(stored[8..] == bytes, "{name}");
            return "Relay VM code";
        }
        FileForm::GraphJson => {
            let graph = Graph::read_bytes(&bytes, findings).unwrap();
            let text = graph.to_json().to_string();
            let again = Graph::read(&text, findings).unwrap();
            assert_eq!(again.to_json(), graph.to_json(), "{name}");
            return "graph";
        }
        FileForm::ObjectJson | FileForm::FfiJson => return "objects (read only)",
        form => match document::payload(form, &bytes) {
            Some((kind, layout)) => {
                let read = payload::read(kind, layout, &mut cursor, findings).unwrap();
                read.write(layout, &mut out).unwrap();
                "executable"
            }
            None => return blobs(&file, path),
        },
    };
    assert!(out.into_bytes() == bytes, "{name}: other bytes");
    what
}

fn blobs(file: &container::File<'_>, path: &Path) -> &'static str {
    let name = path.display();
    let mut seen = "library without imports";
    for (_, found) in file.blobs() {
        let bytes: &[u8] = &found.bytes;
        let layout = found.layout.unwrap_or_else(|| detect(bytes, None));
        let findings = &mut Findings::default();
        let blob = Blob::read(bytes, layout, findings).unwrap();
        assert!(blob.write().unwrap() == bytes, "{name}: other bytes");
        for module in &blob.modules {
            let Some(payload) = module.decode(layout, findings).unwrap() else {
                continue;
            };
            let mut out = Writer::new();
            payload.write(layout, &mut out).unwrap();
            let same = out.into_bytes() == module.payload.as_deref().unwrap();
            assert!(same, "{name}: other bytes of {}", module.kind);
        }
        assert!(findings.is_empty(), "{name}: {findings:?}");
        seen = "library binary";
    }
    seen
}

fn not_loaded(era: &str, file: &str) -> Option<(&'static str, &'static str)> {
    let row = NOT_LOADED
        .iter()
        .find(|(eras, of, ..)| eras.contains(&era) && *of == file);
    row.map(|(_, _, outcome, why)| (*outcome, *why))
}

#[test]
fn an_era_loads_what_it_wrote() {
    let mut wrong = Vec::new();
    each_file(|artifact, file, path| {
        let output = tvmspec()
            .args(["explain", "--json", "--release", &artifact.era])
            .arg(path)
            .output()
            .unwrap();
        let expected = not_loaded(&artifact.era, file).map_or("loads", |(outcome, _)| outcome);
        let accounts = json(&output);
        let loads: Vec<&Value> = accounts
            .as_array()
            .unwrap()
            .iter()
            .flat_map(|account| account["loads"].as_array().unwrap())
            .collect();
        assert!(!loads.is_empty(), "{}", path.display());
        for load in loads {
            if load["outcome"] != expected {
                wrong.push(format!(
                    "{} {file}: {} and not {expected}",
                    artifact.era, load
                ));
            }
        }
    });
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn what_an_era_compiled_returns_the_recorded_outputs() {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return skipped("the goldens are libraries for x86-64 Linux");
    }
    let mut ran: BTreeMap<String, usize> = BTreeMap::new();
    for artifact in artifacts() {
        let Some(run) = artifact.run() else { continue };
        let text = |key: &str| {
            run[key]
                .as_str()
                .unwrap_or_else(|| panic!("no {key} in {run}"))
        };
        let (library, io) = (
            artifact.path(text("library")),
            arrays(&artifact.path(text("io"))),
        );
        if is_not_run(&artifact) {
            let rejected = tvmspec()
                .arg("run")
                .arg(&library)
                .arg("--inputs")
                .arg(artifact.path(text("io")))
                .output()
                .unwrap();
            let reply = String::from_utf8_lossy(&rejected.stderr);
            assert_eq!(rejected.status.code(), Some(2), "{reply}");
            assert!(reply.contains("takes an array object"), "{reply}");
            continue;
        }
        if run["how"] == "run" {
            model(
                tvmspec().arg("run").arg(&library),
                &artifact.path(text("io")),
                &io,
            );
            if artifact.name == "graph" {
                let mut parts = tvmspec();
                parts
                    .arg("run")
                    .arg("--graph")
                    .arg(artifact.path("graph.json"));
                parts.arg("--params").arg(artifact.path("graph.params"));
                parts.arg("--lib").arg(artifact.path("graph-kernels.so"));
                model(&mut parts, &artifact.path(text("io")), &io);
            }
            *ran.entry(artifact.era).or_default() += 1;
            continue;
        }
        let device = text("device");
        if device == "cpu" || is_here(device) {
            call(&library, text("function"), device, &io);
            *ran.entry(artifact.era).or_default() += 1;
        }
    }
    println!("{ran:?}");
    for era in ALL {
        assert!(
            ran.get(*era).is_some_and(|count| *count >= 6),
            "{era}: {ran:?}"
        );
    }
}

fn is_not_run(artifact: &Artifact) -> bool {
    let (eras, name, _) = NOT_RUN;
    eras.contains(&artifact.era.as_str()) && artifact.name == name
}

fn is_here(name: &str) -> bool {
    let device = match name {
        "opencl:0" => Device::new(4, 0),
        "vulkan:0" => Device::new(7, 0),
        other => panic!("no device `{other}` in the test"),
    };
    let exists = Manager::global()
        .api(device.kind)
        .is_ok_and(|api| api.attribute(device, Attribute::Exist) == Ok(Attr::Int(1)));
    if !exists {
        skipped(format!("there is no device {name}"));
    }
    exists
}

/// The arrays of an `.npz`, each as an `.npy` file.
fn arrays(path: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut archive = zip::ZipArchive::new(fs::File::open(path).unwrap()).unwrap();
    let mut arrays = BTreeMap::new();
    for index in 0..archive.len() {
        let mut member = archive.by_index(index).unwrap();
        let name = member.name().unwrap().trim_end_matches(".npy").to_owned();
        let mut bytes = Vec::new();
        member.read_to_end(&mut bytes).unwrap();
        arrays.insert(name, bytes);
    }
    arrays
}

/// What comes behind the header of an `.npy` file of version 1.
fn data(npy: &[u8]) -> &[u8] {
    assert_eq!(&npy[..8], b"\x93NUMPY\x01\0");
    &npy[10 + usize::from(u16::from_le_bytes([npy[8], npy[9]]))..]
}

/// Calls a function of two tensors: one in, one out.
fn call(library: &Path, function: &str, device: &str, io: &BTreeMap<String, Vec<u8>>) {
    let folder = tempfile::tempdir().unwrap();
    let (input, expected) = (folder.path().join("in.npy"), data(&io["out_B"]));
    fs::write(&input, &io["in_A"]).unwrap();
    let output = tvmspec()
        .args(["call", "--device", device, "--save"])
        .arg(folder.path())
        .arg(library)
        .arg(function)
        .arg(format!("@{}", input.display()))
        .arg(format!("out:float32[{}]", expected.len() / 4))
        .output()
        .unwrap();
    let reply = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {reply}", library.display());
    let answer = fs::read(folder.path().join("out_0.npy")).unwrap();
    assert!(
        data(&answer) == expected,
        "{} on {device}: another answer",
        library.display()
    );
}

/// Runs a model; its outputs are those of the release to the last bit.
fn model(command: &mut Command, inputs: &Path, io: &BTreeMap<String, Vec<u8>>) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("out.npz");
    let output = command
        .arg("--inputs")
        .arg(inputs)
        .arg("-o")
        .arg(&file)
        .output()
        .unwrap();
    let reply = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {reply}", inputs.display());
    let answers = arrays(&file);
    let expected: Vec<_> = io
        .iter()
        .filter(|(name, _)| name.starts_with("out_"))
        .collect();
    assert_eq!(answers.len(), expected.len(), "{}", inputs.display());
    for (index, (name, expected)) in expected.into_iter().enumerate() {
        let answer = &answers[&format!("out_{index}")];
        assert!(
            data(answer) == data(expected),
            "{}: {name} differs",
            inputs.display()
        );
    }
}

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
         Written by `BLESS=1 cargo test --test eras` from golden/eras, whose README says where each release came from and how to repeat it.\n\
         The test holds every cell: `read` is no violation and no finding, decoded and encoded to the same bytes (JSON of objects is read\n\
         only, a graph keeps its meaning), and `explain` says that the release itself loads it; `ran` is all that, and outputs equal to the\n\
         recorded ones to the last bit. A number says why not.\n\n",
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

/// The eras in whose files a rule says what a byte is.
fn eras_of_rules() -> BTreeMap<String, Vec<String>> {
    let mut eras_of: BTreeMap<String, Vec<String>> = BTreeMap::new();
    each_file(|artifact, _, path| {
        let output = tvmspec()
            .args(["dump", "--json"])
            .arg(path)
            .output()
            .unwrap();
        // JSON has no fields to dump.
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

/// The same, a row for each set of eras: the largest sets first.
fn by_eras(eras_of: &BTreeMap<String, Vec<String>>) -> Vec<(Vec<String>, Vec<String>)> {
    let mut rows: BTreeMap<Vec<String>, Vec<String>> = BTreeMap::new();
    for (rule, eras) in eras_of {
        rows.entry(eras.clone()).or_default().push(rule.clone());
    }
    let mut rows: Vec<_> = rows.into_iter().collect();
    rows.sort_by_key(|(eras, rules)| (usize::MAX - eras.len(), rules[0].clone()));
    rows
}
