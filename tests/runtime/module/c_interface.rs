//! The header of 0.8 to 0.20 agrees with the library.

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
