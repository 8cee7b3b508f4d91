//! Tests that the productions of the specification describe the bytes. A small reader that knows only their notation reads every golden
//! file like the library, from the first byte to the last.
//!
//! `BLESS=1 cargo test --test formats grammar` writes the generated parts: the productions of module kinds in `spec/payload.md`, from
//! the table of kinds, and the examples in `spec/bytes/`.
#![cfg(feature = "suite")]

mod kinds;
mod pages;
mod read;
mod text;

use crate::support::folder;
use crate::support::goldens;
use crate::support::goldens::compare::{self, Field};
use crate::support::goldens::{Format, Subject, root, subjects};
use read::{Fault, Grammar, Leaf, Reading};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use tvmspec::blob::container;
use tvmspec::release::Layout;
use tvmspec::rule::Kind;
use tvmspec::tensor::Sizing;

/// Chapters with productions. Each uses those of the chapters before it.
const CHAPTERS: [&str; 4] = ["tensor", "payload", "import_tree", "blob"];

const BEGIN: &str = "<!-- grammar: written by BLESS=1 cargo test --test formats grammar -->\n";
const END: &str = "<!-- end of grammar -->\n";

fn chapter(name: &str) -> String {
    let path = root().join(format!("spec/{name}.md"));
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn grammar() -> Grammar {
    let chapters = CHAPTERS.iter().map(|name| chapter(name));
    Grammar {
        productions: chapters.flat_map(|text| text::productions(&text)).collect(),
    }
}

fn of_layout(layout: Layout) -> (u8, u8) {
    let releases = layout.releases();
    (releases.since.minor(), releases.until.minor())
}

fn of_sizing(sizing: Sizing) -> (u8, u8) {
    match sizing {
        Sizing::V0_2 => (2, 3),
        Sizing::V0_4 => (4, 6),
        Sizing::V0_7 => (7, 27),
    }
}

/// Reads a subject by the productions.
fn read<'g>(grammar: &'g Grammar, subject: &Subject) -> Result<Reading<'g>, Fault> {
    let bytes = &subject.bytes;
    match &subject.format {
        Format::Wire(name) => grammar.read_items(&text::sequence(&format!("value:{name}")), bytes),
        Format::Dtype => grammar.read_items(&text::sequence("dtype:dtype"), bytes),
        Format::Device => grammar.read_items(&text::sequence("device:device"), bytes),
        Format::Tensor(sizing) => grammar.read("tensor", of_sizing(*sizing), bytes),
        Format::Params(Some(sizing)) => grammar.read("params", of_sizing(*sizing), bytes),
        Format::Params(None) => grammar.read("params", (2, 27), bytes),
        Format::Payload(kind, layout) => grammar.read_payload(kind, of_layout(*layout), bytes),
        Format::RelayCode => grammar.read("relay_code", (6, 19), bytes),
        Format::ImportTree => grammar.read("import_tree", (7, 27), bytes),
        Format::Blob(layout) => grammar.read("blob", of_layout(*layout), bytes),
    }
}

fn fields(leaves: &[Leaf], bytes: &[u8]) -> Vec<Field> {
    let field = |leaf: &Leaf| Field {
        path: leaf.path.clone(),
        start: leaf.bytes.start,
        end: leaf.bytes.end,
        value: match leaf.value {
            read::Value::Number(number) => compare::Value::Number(number),
            read::Value::Count(count, _) => compare::Value::Number(count as i128),
            read::Value::Float(float) => compare::Value::Float(float),
            read::Value::Run => compare::Value::Bytes(bytes[leaf.bytes.clone()].to_vec()),
        },
    };
    leaves.iter().map(field).collect()
}

#[test]
fn every_golden_reads_by_the_productions_as_it_reads_here() {
    let grammar = grammar();
    let (mut fields_compared, mut wrong) = (0, Vec::new());
    let (mut same, mut rejected, mut rules) = (0, 0, BTreeMap::<&str, usize>::new());
    let subjects = subjects();
    for subject in &subjects {
        let reading = subject.read();
        let theirs = read(&grammar, subject);
        match (&reading.broken, theirs) {
            (None, Ok(theirs)) => {
                match compare::compare_fields(
                    &reading,
                    &subject.bytes,
                    &fields(&theirs.leaves, &subject.bytes),
                ) {
                    Ok(count) => {
                        fields_compared += count;
                        same += 1;
                    }
                    Err(why) => wrong.push(format!("{}: {why}", subject.name)),
                }
            }
            (None, Err(fault)) => wrong.push(format!(
                "{}: at {:#x}, {}",
                subject.name, fault.at, fault.why
            )),
            (Some(_), Err(_)) => rejected += 1,
            // Truncated bytes end before their productions do. Other rules go beyond productions.
            (Some(broken), Ok(_))
                if broken.kind() == Kind::Truncated && !SAYS_MORE.contains(&broken.rule().id()) =>
            {
                wrong.push(format!("{}: {broken}", subject.name));
            }
            (Some(broken), Ok(_)) => *rules.entry(broken.rule().id()).or_default() += 1,
        }
    }
    let beyond: usize = rules.values().sum();
    println!(
        "{} runs of bytes: {same} read alike, {fields_compared} fields; {rejected} rejected by both",
        subjects.len()
    );
    println!("{beyond} rejected here by rules beyond the productions: {rules:?}");
    assert!(
        wrong.is_empty(),
        "{} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(same > 200 && rejected > 50, "too few to say anything");
}

/// Rules that count bytes as truncated although every field is present, because the words of code contradict each other.
const SAYS_MORE: [&str; 1] = ["PAY-88"];

/// Writes generated text if blessed, and compares it otherwise.
fn bless_or_compare(path: &str, expected: &str) {
    let file = root().join(path);
    if std::env::var_os("BLESS").is_some() {
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder).expect("a writable folder");
        }
        fs::write(&file, expected).expect("a writable file");
        return;
    }
    let there = fs::read_to_string(&file).unwrap_or_default();
    assert!(
        there == expected,
        "BLESS=1 cargo test --test formats grammar writes {path} anew"
    );
}

#[test]
fn the_productions_of_kinds_are_those_of_the_table() {
    let prose = chapter("payload");
    let (before, rest) = prose.split_once(BEGIN).expect("the line that begins them");
    let (_, after) = rest.split_once(END).expect("the line that ends them");
    let kinds = kinds::productions();
    bless_or_compare(
        "spec/payload.md",
        &format!("{before}{BEGIN}\n```grammar kinds\n{kinds}```\n\n{END}{after}"),
    );
}

#[test]
fn each_layout_has_an_example_with_every_byte_named() {
    let (grammar, subjects) = (grammar(), subjects());
    let pages = pages::pages(&grammar, &subjects);
    for (page, text) in &pages {
        bless_or_compare(&format!("spec/bytes/{page}.md"), text);
    }
    assert_eq!(
        pages.keys().copied().collect::<Vec<_>>(),
        ["blob", "import_tree", "payload", "tensor", "wire"]
    );
    // Each production of a kind needs an example.
    let bare: Vec<&str> = grammar
        .productions
        .iter()
        .filter(|one| one.is_kind && !one.name.starts_with('_') && !one.body().is_empty())
        .filter(|one| !pages["payload"].contains(&one.text))
        .map(|one| one.text.as_str())
        .collect();
    assert!(bare.is_empty(), "without an example: {bare:#?}");
}

/// A production that reads no golden could be wrong. Kinds with the same fields stand for each other.
#[test]
fn every_production_reads_a_golden() {
    let grammar = grammar();
    let mut used = BTreeSet::new();
    for subject in subjects()
        .iter()
        .filter(|subject| subject.read().broken.is_none())
    {
        let reading = read(&grammar, subject)
            .unwrap_or_else(|fault| panic!("{}: {}", subject.name, fault.why));
        used.extend(
            reading
                .used
                .iter()
                .map(|one| (one.is_kind, one.body().to_owned())),
        );
    }
    let unused: Vec<&str> = grammar
        .productions
        .iter()
        .filter(|one| !used.contains(&(one.is_kind, one.body().to_owned())))
        .map(|one| one.text.as_str())
        .collect();
    println!(
        "{} productions read something",
        grammar.productions.len() - unused.len()
    );
    assert!(unused.is_empty(), "these read no golden: {unused:#?}");
}

/// Checks that only broken containers and containers without a library binary are left out.
#[test]
fn every_binary_golden_is_read() {
    let left_out = left_out(&subjects());
    for (file, why) in &left_out {
        println!("not read: {file}, {why}");
    }
    let is_data = |why: &&String| {
        !why.starts_with("broken as a container") && !why.starts_with("a container without")
    };
    // TEN-54: a shard is raw data, which its index describes.
    let is_shard = |file: &String| file.contains("/params_shard_");
    let is_foreign = |file: &String| file.ends_with("/mxnet.params");
    assert!(
        !left_out
            .iter()
            .any(|(file, why)| is_data(&why) && !is_shard(file) && !is_foreign(file)),
        "goldens of data are not read"
    );
}

/// Returns the binary files of the binary chapters that are not subjects, each with the reason.
fn left_out(subjects: &[Subject]) -> BTreeMap<String, String> {
    const TEXTS: [&str; 11] = [
        "txt", "json", "py", "npz", "npy", "c", "sh", "md", "h", "cl", "metal",
    ];
    let named: BTreeSet<&str> = subjects
        .iter()
        .map(|subject| subject.name.split(' ').next().unwrap_or_default())
        .collect();
    let mut rest = BTreeMap::new();
    for path in goldens::CHAPTERS
        .iter()
        .flat_map(|chapter| folder::files(&root().join("golden").join(chapter)))
    {
        let name = goldens::below(&root(), &path);
        let extension = path.extension().and_then(|extension| extension.to_str());
        if named.contains(name.as_str()) || extension.is_some_and(|end| TEXTS.contains(&end)) {
            continue;
        }
        let bytes = fs::read(&path).expect("a readable golden");
        let same = |subject: &&Subject| subject.bytes == bytes;
        let why = match container::open(&bytes) {
            _ if subjects.iter().any(|subject| same(&subject)) => continue,
            Err(broken) => format!("broken as a container: {broken}"),
            Ok(file) if file.form.is_object() || file.form.is_archive() => {
                match file.blobs().count() {
                    0 => "a container without a library binary".to_owned(),
                    _ => continue,
                }
            }
            // A container of a case that expects no library binary in it.
            Ok(file) if name.contains("/containers/") => {
                format!("a container without any form: {}", file.form.name())
            }
            Ok(file) => format!("of form {}", file.form.name()),
        };
        rest.insert(name, why);
    }
    rest
}
