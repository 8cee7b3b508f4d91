//! Every run of bytes in a golden file or a case of the binary chapters, with its format, and the library's reading of it.
//!
//! The second reading, by the grammar of the specification, is compared with [`Subject::read`].

pub(crate) mod compare;

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use tvmspec::blob::container::{self, FileForm};
use tvmspec::blob::{Blob, detect};
use tvmspec::examine::document;
use tvmspec::import_tree::ImportTree;
use tvmspec::payload::{self, relay_vm};
use tvmspec::release::Layout;
use tvmspec::rule::{Finding, Findings, Violation};
use tvmspec::tensor::{Device, Dtype, Params, Sizing, TensorRecord};
use tvmspec::wire::json::WireType;
use tvmspec::wire::{Cursor, Span, Trace};

/// The format of some bytes, from the first to the last.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Format {
    /// A wire value of this type.
    Wire(String),
    /// Four bytes of a dtype.
    Dtype,
    /// Eight bytes of a device.
    Device,
    /// A tensor record, with bytes counted as in these releases.
    Tensor(Sizing),
    /// A parameter file; without a family of releases, the newest one that fits (TEN-45).
    Params(Option<Sizing>),
    /// The payload of a module of this kind in this layout.
    Payload(String, Layout),
    /// Relay VM code without a length before it.
    RelayCode,
    /// The rows and children of an import tree.
    ImportTree,
    /// A library binary.
    Blob(Layout),
}

/// Some bytes with their origin and their format.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    pub(crate) name: String,
    /// The release that wrote them; `None` if they were assembled by hand.
    pub(crate) release: Option<String>,
    pub(crate) format: Format,
    pub(crate) bytes: Vec<u8>,
}

/// The result of the library's reading.
pub(crate) struct Reading {
    /// Every field, by offset.
    pub(crate) spans: Vec<Span>,
    pub(crate) findings: Vec<Finding>,
    /// The rule that ended reading.
    pub(crate) broken: Option<Violation>,
}

impl Subject {
    pub(crate) fn read(&self) -> Reading {
        let trace = Trace::new();
        let mut findings = Findings::default();
        let notes = &mut findings;
        let mut cursor = Cursor::traced(&self.bytes, &trace);
        let broken = match &self.format {
            Format::Wire(name) => {
                let kind: WireType = name.parse().expect("a case names a type");
                let read = kind.read(&mut cursor, "value").map(drop);
                read.and_then(|()| cursor.finish("the value", notes)).err()
            }
            Format::Dtype => {
                let read = Dtype::read(&mut cursor).map(drop);
                read.and_then(|()| cursor.finish("the dtype", notes)).err()
            }
            Format::Device => {
                let read = Device::read(&mut cursor).map(drop);
                read.and_then(|()| cursor.finish("the device", notes)).err()
            }
            Format::Tensor(sizing) => {
                let read = TensorRecord::read(&mut cursor, *sizing, notes).map(drop);
                read.and_then(|()| cursor.finish("the tensor", notes)).err()
            }
            Format::Params(sizing) => {
                let read = match sizing {
                    Some(sizing) => Params::read(&mut cursor, *sizing, notes).map(drop),
                    None => Params::detect(&mut cursor, notes).map(drop),
                };
                read.and_then(|()| cursor.finish("the file", notes)).err()
            }
            Format::Payload(kind, layout) => {
                let read = payload::read(kind, *layout, &mut cursor, notes).map(drop);
                read.and_then(|()| cursor.finish("the payload", notes))
                    .err()
            }
            Format::RelayCode => {
                let read = relay_vm::RelayExecutable::read_code(&mut cursor, notes).map(drop);
                read.and_then(|()| cursor.finish("the code", notes)).err()
            }
            Format::ImportTree => {
                let read = ImportTree::read(&mut cursor, notes).map(drop);
                read.and_then(|()| cursor.finish("the tree", notes)).err()
            }
            Format::Blob(layout) => {
                let partial = Blob::read_traced(&self.bytes, *layout, &trace);
                findings = partial.findings;
                partial.broken
            }
        };
        Reading {
            spans: trace.into_spans(),
            findings: findings.into_iter().collect(),
            broken,
        }
    }
}

/// Returns all subjects by name: first those that cases decode, then the other golden files. No bytes occur twice in one format.
pub(crate) fn subjects() -> Vec<Subject> {
    let mut found = of_cases();
    found.extend(of_files());
    let mut seen = BTreeSet::new();
    found.retain(|subject| seen.insert((subject.format.clone(), subject.bytes.clone())));
    let origins = origins();
    for subject in &mut found {
        let file = subject.name.split(' ').next().unwrap_or_default();
        if file != "case" {
            subject.release = origins.get(file).cloned();
        }
    }
    found
}

/// The chapters whose goldens are bytes of these formats.
pub(crate) const CHAPTERS: [&str; 6] = ["wire", "tensor", "payload", "import_tree", "blob", "vm"];

fn of_cases() -> Vec<Subject> {
    let mut found = Vec::new();
    for chapter in CHAPTERS {
        let room = root().join(format!("conformance/{chapter}/cases"));
        let files = super::folder::files(&room);
        for case in files.iter().flat_map(|file| super::cases::cases(file)) {
            let input = &case["input"];
            let (name, bytes) = match (input["file"].as_str(), input["hex"].as_str()) {
                (Some(file), _) => (
                    format!("golden/{file}"),
                    fs::read(root().join("golden").join(file)).expect("a readable golden"),
                ),
                (None, Some(hex)) => (format!("case {}", text_of(&case["id"])), unhex(hex)),
                (None, None) => continue,
            };
            let Some(format) = asked(&case) else { continue };
            let origin = &case["origin"]["release"];
            found.push(Subject {
                release: origin.as_str().map(str::to_owned),
                name,
                format,
                bytes,
            });
        }
    }
    found
}

/// Returns the format that a case states for its input; `None` for an operation that does not read bytes of one format.
fn asked(case: &Value) -> Option<Format> {
    let args = &case["args"];
    let layout = args["layout"]
        .as_str()
        .map(|layout| layout.parse::<Layout>().expect("a case names a layout"));
    let sizing = args["release"]
        .as_str()
        .map(|release| release.parse::<Sizing>().expect("a case names a release"));
    Some(match text_of(&case["op"]) {
        "wire.decode" => Format::Wire(text_of(&args["type"]).to_owned()),
        "tensor.decode" => match args["form"].as_str().unwrap_or("params") {
            "params" => Format::Params(sizing),
            "tensor" => Format::Tensor(sizing.unwrap_or(Sizing::V0_7)),
            "dtype" => Format::Dtype,
            "device" => Format::Device,
            other => panic!("a form `{other}`"),
        },
        "payload.decode" => {
            Format::Payload(text_of(&args["kind"]).to_owned(), layout.expect("a layout"))
        }
        "vm.decode" | "vm.run" => Format::Payload(
            "relax.VMExecutable".to_owned(),
            layout.unwrap_or(Layout::V0_22),
        ),
        "import_tree.decode" => Format::ImportTree,
        "blob.decode" => Format::Blob(layout.expect("a layout")),
        _ => return None,
    })
}

/// Returns library binaries in containers, parameter files, tensors and executables, anywhere below `golden/`.
fn of_files() -> Vec<Subject> {
    let mut found = Vec::new();
    for path in super::folder::files(&root().join("golden")) {
        let bytes = fs::read(&path).expect("a readable golden");
        let name = below(&root(), &path);
        let Ok(file) = container::open(&bytes) else {
            continue;
        };
        for (part, blob) in file.blobs() {
            let symbol = Some(blob.symbol.as_str()).filter(|symbol| !symbol.is_empty());
            let inside = [part.member.as_str(), blob.symbol.as_str()];
            let inside = inside.iter().filter(|word| !word.is_empty());
            found.push(Subject {
                name: std::iter::once(&name.as_str())
                    .chain(inside)
                    .copied()
                    .collect::<Vec<_>>()
                    .join(" "),
                release: None,
                format: Format::Blob(detect::detect(&blob.bytes, symbol)),
                bytes: blob.bytes.to_vec(),
            });
        }
        let format = match file.form {
            FileForm::Params => Format::Params(None),
            FileForm::Tensor => Format::Tensor(Sizing::V0_7),
            FileForm::RelayVm if document::magic_first(&bytes) => Format::RelayCode,
            form => match document::payload(form, &bytes) {
                Some((kind, layout)) => Format::Payload(kind.to_owned(), layout),
                None => continue,
            },
        };
        found.push(Subject {
            name,
            release: None,
            format,
            bytes,
        });
    }
    found
}

/// Returns the release that wrote each golden file, if one did.
fn origins() -> BTreeMap<String, String> {
    let text = fs::read_to_string(root().join("golden/manifest.json")).expect("a manifest");
    let entries: Vec<Value> = serde_json::from_str(&text).expect("a JSON array");
    let origin = |entry: &Value| {
        let release = entry["origin"]["release"].as_str()?;
        Some((
            format!("golden/{}", text_of(&entry["file"])),
            release.to_owned(),
        ))
    };
    entries.iter().filter_map(origin).collect()
}

pub(crate) fn root() -> PathBuf {
    std::env::var_os("CARGO_MANIFEST_DIR")
        .expect("cargo sets it")
        .into()
}

pub(crate) fn below(base: &Path, path: &Path) -> String {
    let name = path.strip_prefix(base).expect("below the root");
    name.to_str().expect("a name in UTF-8").replace('\\', "/")
}

fn text_of(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

pub(crate) fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| {
        let pair = std::str::from_utf8(pair).expect("hexadecimal digits");
        u8::from_str_radix(pair, 16).expect("hexadecimal digits")
    };
    digits.chunks(2).map(byte).collect()
}
