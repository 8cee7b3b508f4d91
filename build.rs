//! Gives every rule's constant its title, and puts the specification, the cases and the golden files inside the library.
//!
//! The titles are texts in `$OUT_DIR/rules`, which `rules!` takes as documentation. The rest is for feature `suite` only: three
//! tables of `include_str!` and `include_bytes!`, sorted by name, in `$OUT_DIR/embedded.rs`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Compiled code looks for the C interface among the symbols of the process. Programs of others do without this, by
    // `src/module/dso/forward.rs`; where that writes no code, they need it too.
    if env::var("CARGO_CFG_TARGET_FAMILY").is_ok_and(|family| family == "unix") {
        println!("cargo::rustc-link-arg=-rdynamic");
    }
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    println!("cargo::rerun-if-changed={}", root.join("spec").display());
    let spec = files(&root, "spec", |name| {
        !name.contains('/') && name.ends_with(".md")
    });
    titles(&root, &spec, &out.join("rules"));
    if env::var_os("CARGO_FEATURE_SUITE").is_none() {
        return;
    }
    for room in ["conformance", "golden"] {
        println!("cargo::rerun-if-changed={}", root.join(room).display());
    }

    let cases = files(&root, "conformance", |name| {
        name.contains("/cases/") && name.ends_with(".json")
    });
    // Dumps, scripts and what only scripts read stand beside the bytes; the suite needs only the bytes.
    let mut golden = files(&root, "golden", |name| {
        ![".md", ".py", ".sh", ".npz"]
            .iter()
            .any(|end| name.ends_with(end))
            // Whole models and what each era writes are read and run by tests; no case names one.
            && !["graph/models/", "eras/"].iter().any(|room| name.starts_with(room))
    });
    let all = golden.clone();
    golden.retain(|name| {
        name.strip_suffix(".txt")
            .is_none_or(|dumped| !all.iter().any(|name| name == dumped))
    });

    let mut code = String::new();
    table(&mut code, &root, "SPEC", "str", "spec", &spec);
    let evidence = files(&root, "spec/evidence", |name| name.ends_with(".toml"));
    table(
        &mut code,
        &root,
        "EVIDENCE",
        "str",
        "spec/evidence",
        &evidence,
    );
    let known = files(&root, "conformance/known", |name| name.ends_with(".toml"));
    table(
        &mut code,
        &root,
        "KNOWN",
        "str",
        "conformance/known",
        &known,
    );
    places(&mut code, &root);
    table(&mut code, &root, "CASES", "str", "conformance", &cases);
    table(&mut code, &root, "GOLDEN", "[u8]", "golden", &golden);
    fs::write(out.join("embedded.rs"), code).expect("OUT_DIR is writable");
}

/// A text for each rule in these chapters: its heading.
fn titles(root: &Path, spec: &[String], folder: &Path) {
    fs::create_dir_all(folder).expect("OUT_DIR is writable");
    for chapter in spec {
        let prose = fs::read_to_string(root.join("spec").join(chapter)).expect("listed just now");
        let headings = prose.lines().filter_map(|line| line.strip_prefix("### "));
        for (id, title) in headings.filter_map(|heading| heading.split_once(' ')) {
            let doc = format!("{id}: {title}. The rule is in `spec/{chapter}`.\n");
            fs::write(folder.join(format!("{}.md", id.replace('-', "_"))), doc)
                .expect("OUT_DIR is writable");
        }
    }
}

/// A table of where code names each rule, sorted by its id; of a rule that is a behaviour and has no line that checks it, where
/// comments do. The tables of rules and imports name them too and are left out.
fn places(code: &mut String, root: &Path) {
    println!("cargo::rerun-if-changed={}", root.join("src").display());
    let mut places = BTreeMap::<String, Vec<String>>::new();
    let mut mentions = BTreeMap::<String, Vec<String>>::new();
    for file in files(root, "src", |name| name.ends_with(".rs")) {
        let text = fs::read_to_string(root.join("src").join(&file)).expect("listed just now");
        let mut aside = None;
        for (line, number) in text.lines().zip(1..) {
            match aside {
                Some(end) => {
                    if line.trim_end().ends_with(end) {
                        aside = None;
                    }
                    continue;
                }
                None if line.contains("#[cfg(test)]") && !line.starts_with(' ') => break,
                None if line.contains("rules! {") => aside = Some("}"),
                None if line
                    .trim_start()
                    .trim_start_matches("pub ")
                    .starts_with("use ") =>
                {
                    if !line.trim_end().ends_with(';') {
                        aside = Some(";");
                    }
                    continue;
                }
                None => {}
            }
            if line.trim_start().starts_with("//") {
                let words =
                    line.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-');
                for word in words.filter(|word| is_constant(&word.replace('-', "_"))) {
                    let of = mentions.entry(word.to_owned()).or_default();
                    of.push(format!("src/{file}:{number}"));
                }
                continue;
            }
            let words = line.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
            for word in words.filter(|word| is_constant(word)) {
                let of = places.entry(word.replace('_', "-")).or_default();
                of.push(format!("src/{file}:{number}"));
            }
        }
    }
    for (id, lines) in mentions {
        places.entry(id).or_insert(lines);
    }
    code.push_str("pub(crate) static PLACES: &[(&str, &[&str])] = &[\n");
    for (id, places) in places {
        writeln!(code, "    ({id:?}, &{places:?}),").expect("strings grow");
    }
    code.push_str("];\n");
}

/// `BLOB_07`: the constant of a rule.
fn is_constant(word: &str) -> bool {
    word.split_once('_').is_some_and(|(chapter, number)| {
        chapter.len() > 1
            && chapter.bytes().all(|byte| byte.is_ascii_uppercase())
            && number.len() == 2
            && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

fn files(root: &Path, room: &str, wanted: impl Fn(&str) -> bool) -> Vec<String> {
    let base = root.join(room);
    let mut names = Vec::new();
    let mut folders = vec![base.clone()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else {
            continue;
        };
        for entry in entries.flatten() {
            let path = entry.path();
            let name = path
                .strip_prefix(&base)
                .expect("below the room")
                .to_string_lossy()
                .replace('\\', "/");
            if name
                .split('/')
                .any(|part| part.starts_with('.') || part == "__pycache__")
            {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else if wanted(&name) {
                names.push(name);
            }
        }
    }
    names.sort();
    names
}

fn table(code: &mut String, root: &Path, name: &str, kind: &str, room: &str, files: &[String]) {
    let include = if kind == "str" {
        "include_str"
    } else {
        "include_bytes"
    };
    writeln!(code, "pub(crate) static {name}: &[(&str, &{kind})] = &[").expect("strings grow");
    for file in files {
        let path = root.join(room).join(file);
        writeln!(code, "    ({file:?}, {include}!({path:?})),").expect("strings grow");
    }
    writeln!(code, "];").expect("strings grow");
}
