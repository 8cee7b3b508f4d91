//! The header and the C example agree with the library.

use super::{golden, runs_here};
use crate::support::cargo;
use crate::support::skip::skipped;
use std::path::PathBuf;

/// Returns the names of the functions that `text` declares or defines after `marker`.
fn names_behind(text: &str, marker: &str) -> std::collections::BTreeSet<String> {
    let mut found = std::collections::BTreeSet::new();
    for (at, _) in text.match_indices(marker) {
        let rest = &text[at + marker.len()..];
        let head = &rest[..rest.find('(').unwrap_or(0)];
        let name = head
            .rsplit(|letter: char| !letter.is_ascii_alphanumeric())
            .next()
            .unwrap();
        found.insert(name.to_owned());
    }
    found
}

#[test]
fn header_code_and_library_have_the_same_functions() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap();
    let declared = names_behind(&read("include/tvm_c_runtime_api.h"), "\nTVM_DLL ");
    let folder = std::fs::read_dir(root.join("src/capi/legacy")).unwrap();
    let files = folder.map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap());
    let code: String = files.chain([read("src/capi/backend.rs")]).collect();
    let defined = names_behind(&code, "#[unsafe(no_mangle)]\npub ");
    assert_eq!(declared, defined);
    assert!(declared.len() > 50, "{}", declared.len());

    let library = match cargo::c_library() {
        Ok(library) => library,
        Err(why) => return skipped(why),
    };
    let bytes = std::fs::read(&library).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let symbols = object::Object::dynamic_symbols(&file);
    let exported: std::collections::BTreeSet<&str> = symbols
        .filter(object::ObjectSymbol::is_definition)
        .filter_map(|symbol| object::ObjectSymbol::name(&symbol).ok())
        .collect();
    for name in &declared {
        assert!(exported.contains(name.as_str()), "{name} is not exported");
    }
}

/// Compiles and runs `examples/c/load.c` against the C library, built with the features of this test.
#[test]
fn the_c_example_runs() {
    if !runs_here() {
        return;
    }
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let built = match cargo::c_library() {
        Ok(library) => library,
        Err(why) => return skipped(why),
    };
    let folder = built.parent().unwrap();
    let library = golden("host-0.8.so");
    let reply = |command: &mut std::process::Command| {
        let output = command.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            output.status.success(),
            "{text}{}",
            String::from_utf8_lossy(&output.stderr)
        );
        text
    };
    let place = tempfile::tempdir().unwrap();
    let program = place.path().join("load");
    let compiler = std::process::Command::new("cc")
        .args(["-Wall", "-Werror", "-I"])
        .arg(root.join("include"))
        .arg(root.join("examples/c/load.c"))
        .arg("-L")
        .arg(folder)
        .args(["-ltvmspec", "-o"])
        .arg(&program)
        .status();
    match compiler {
        Ok(status) => {
            assert!(status.success());
            let text = reply(
                std::process::Command::new(&program)
                    .arg(&library)
                    .env("LD_LIBRARY_PATH", folder),
            );
            assert!(
                text.contains("twice(21) = 42") && text.contains("add1 = 1 2 3 4"),
                "{text}"
            );
            assert!(
                text.contains("twice(21, 21) fails: TypeError: twice takes one integer"),
                "{text}"
            );
        }
        Err(error) => skipped(format_args!("there is no C compiler: {error}")),
    }
}
