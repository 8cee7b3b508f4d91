//! Tests the table of C functions that loaded libraries find.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Collects the names of functions for compiled libraries that the Rust files in `folder` export.
fn exported(folder: &Path, names: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            exported(&path, names);
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let behind = text.split("#[unsafe(no_mangle)]\n").skip(1);
        let heads = behind.filter_map(|text| {
            let text = text.strip_prefix("pub(crate) ").unwrap_or(text);
            text.split_once('(')?.0.rsplit(' ').next()
        });
        names.extend(heads.map(str::to_owned));
        // C++ functions are exported under another name than that of the Rust function. Those of tvm-ffi are for programs that link to
        // it.
        let named = text.split("#[unsafe(export_name = \"").skip(1);
        let named = named.filter_map(|text| Some(text.split_once('"')?.0));
        let named = named.filter(|name| name.starts_with("_ZN3tvm7runtime"));
        names.extend(named.map(str::to_owned));
    }
}

#[test]
fn every_exported_function_is_in_the_table_once() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/capi");
    let mut names = BTreeSet::new();
    exported(&folder, &mut names);
    // Functions of this library beyond the interfaces of TVM are for programs.
    names.retain(|name| !name.starts_with("tvmspec_"));
    // The table names each function in the list of a room, or in quotes.
    let text = fs::read_to_string(folder.join("exports.rs")).unwrap();
    let (_, list) = text.split_once("\nexports! {").expect("the list");
    let of_list = list.split_whitespace().map(|word| word.trim_matches('"'));
    let quoted = text.split('"').skip(1).step_by(2);
    let is_function = |word: &&str| word.starts_with("TVM") || word.starts_with('_');
    let table: Vec<&str> = of_list.chain(quoted).filter(is_function).collect();
    let once: BTreeSet<String> = table.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(table.len(), once.len(), "a function is there twice");
    assert_eq!(once, names);
    assert!(names.len() > 100, "{}", names.len());
}
