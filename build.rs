//! Defines and documents every rule's constant, and puts the specification inside the library; with feature `embed` also the cases and
//! goldens.
//!
//! The constants are in `$OUT_DIR/rules`, where `chapter_rules!` includes them. The rest is for feature `suite` only: tables of
//! `include_str!` and `include_bytes!`, sorted by name, in `$OUT_DIR/embedded.rs`.

#[path = "conformance/tree.rs"]
#[cfg_attr(
    not(feature = "embed"),
    expect(
        dead_code,
        reason = "without it, the library lists the files when it runs"
    )
)]
mod tree;

#[path = "build/rule_docs.rs"]
mod rule_docs;

use rule_docs::is_rule;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};
use tree::files;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=build");
    // Compiled code looks for the C interface among the symbols of the process. This option reaches only the programs of this package.
    // Other programs use `src/module/dso/trampolines.rs`, or need the option too on processors for which that writes no code.
    if env::var("CARGO_CFG_TARGET_FAMILY").is_ok_and(|family| family == "unix") {
        println!("cargo::rustc-link-arg=-rdynamic");
    }
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    println!("cargo::rerun-if-changed={}", root.join("spec").display());
    let spec = files(&root, "spec", |name| {
        !name.contains('/') && name.ends_with(".md")
    });
    rule_docs::write(&root, &spec, &out.join("rules"));
    if env::var_os("CARGO_FEATURE_SUITE").is_none() {
        return;
    }
    println!(
        "cargo::rerun-if-changed={}",
        root.join("conformance/known").display()
    );

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
    #[cfg(feature = "embed")]
    embed(&mut code, &root, &out);
    fs::write(out.join("embedded.rs"), code).expect("OUT_DIR is writable");
}

/// Writes the table of the deflated cases and goldens.
#[cfg(feature = "embed")]
fn embed(code: &mut String, root: &Path, out: &Path) {
    use flate2::{Compression, write::DeflateEncoder};
    use std::io::Write as _;
    for room in ["conformance", "golden"] {
        println!("cargo::rerun-if-changed={}", root.join(room).display());
    }
    let names = tree::suite_files(root);
    for name in &names {
        let file = out.join("suite").join(name);
        let content = fs::read(root.join(name)).expect("listed just now");
        let mut deflated = DeflateEncoder::new(Vec::new(), Compression::default());
        deflated.write_all(&content).expect("memory grows");
        fs::create_dir_all(file.parent().expect("below the folder")).expect("OUT_DIR is writable");
        fs::write(file, deflated.finish().expect("memory grows")).expect("OUT_DIR is writable");
    }
    table(code, out, "SUITE", "[u8]", "suite", &names);
}

/// Writes the table of the lines of code that name each rule, sorted by its id. If only comments name a rule, these are its lines.
/// Imports do not count.
fn places(code: &mut String, root: &Path) {
    println!("cargo::rerun-if-changed={}", root.join("src").display());
    let mut places = BTreeMap::<String, Vec<String>>::new();
    let mut mentions = BTreeMap::<String, Vec<String>>::new();
    for file in files(root, "src", |name| name.ends_with(".rs")) {
        let text = fs::read_to_string(root.join("src").join(&file)).expect("listed just now");
        let mut in_import = false;
        for (line, number) in text.lines().zip(1..) {
            let statement = line.trim_start().trim_start_matches("pub ");
            if in_import || statement.starts_with("use ") {
                in_import = !line.trim_end().ends_with(';');
                continue;
            }
            if line.trim_start().starts_with("//") {
                let words =
                    line.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-');
                for word in words.filter(|word| is_rule(word, '-')) {
                    let of = mentions.entry(word.to_owned()).or_default();
                    of.push(format!("src/{file}:{number}"));
                }
                continue;
            }
            let words = line.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
            for word in words.filter(|word| is_rule(word, '_')) {
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

/// Writes a table of files, sorted by name.
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
