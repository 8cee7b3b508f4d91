//! Symbols and functions of the tvm-ffi wheel compared with those of this library. Nothing is missing, and neither side can change
//! unnoticed.
#![cfg(feature = "frontend")]

use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use tvmspec::function::registry::{self, Details};
use tvmspec::object;
use tvmspec::value::types::{self, MethodInfo, TypeInfo};

fn root() -> PathBuf {
    std::env::var_os("CARGO_MANIFEST_DIR")
        .expect("cargo sets it")
        .into()
}

fn inventory() -> Value {
    let path = root().join("golden/object/inventory-0.1.15.post2.json");
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// Checks whether the C interface covers a name of the wheel here, whichever functions register it.
fn is_module_function(name: &str) -> bool {
    name.starts_with("ffi.Module") || name == "ffi.SystemLib"
}

#[test]
fn global_functions() {
    object::init();
    let own: BTreeSet<&str> = registry::names().into_iter().collect();
    let wheel = inventory();
    let wheel = wheel["global_functions"].as_object().unwrap();
    let missing: BTreeSet<&str> = wheel
        .keys()
        .map(String::as_str)
        .filter(|name| !own.contains(name) && !is_module_function(name))
        .collect();
    println!(
        "{} of {} functions missing: {missing:#?}",
        missing.len(),
        wheel.len()
    );
    assert_eq!(missing, BTreeSet::new());
    let mut differs = Vec::new();
    for (name, metadata) in wheel {
        let Some(Details { metadata: own, .. }) = registry::details(name) else {
            continue;
        };
        if own != metadata.as_str().unwrap_or_default() {
            differs.push(format!("{name}\n  wheel {metadata}\n  own   {own:?}"));
        }
    }
    println!(
        "{} functions with other metadata:\n{}",
        differs.len(),
        differs.join("\n")
    );
}

#[test]
fn types_with_their_fields_and_methods() {
    object::init();
    for wheel in inventory()["types"].as_array().unwrap() {
        let key = wheel["key"].as_str().unwrap();
        let own = types::index_of(key).and_then(types::info);
        let own: &TypeInfo = own.unwrap_or_else(|| panic!("type {key} is missing"));
        assert_eq!(
            i64::from(own.type_index()),
            wheel["index"].as_i64().unwrap(),
            "{key}"
        );
        assert_eq!(
            types::key_hash(key.as_bytes()),
            wheel["key_hash"].as_u64().unwrap(),
            "{key}"
        );
        assert_eq!(
            own.ancestors().len() as i64,
            wheel["depth"].as_i64().unwrap(),
            "{key}"
        );
        let names = |list: &Value| -> Vec<String> {
            let items = list.as_array().unwrap().iter();
            items
                .map(|name| name.as_str().unwrap().to_owned())
                .collect()
        };
        let fields: Vec<String> = own
            .fields()
            .iter()
            .map(|field| field.name().to_owned())
            .collect();
        let absent: Vec<String> = names(&wheel["fields"])
            .into_iter()
            .filter(|name| !fields.contains(name))
            .collect();
        if !absent.is_empty() {
            println!("{key}: fields missing: {absent:?}");
        }
        let methods: Vec<String> = own
            .methods()
            .iter()
            .map(|method: &MethodInfo| method.name().to_owned())
            .collect();
        assert_eq!(methods, names(&wheel["methods"]), "{key}");
    }
}

/// Checks that the C interface defines every symbol of the wheel, and that the header declares those of C.
#[test]
fn symbols_and_header() {
    let mut source = String::new();
    let mut folders = vec![root().join("src/capi/ffi")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            match entry.path() {
                path if path.is_dir() => folders.push(path),
                path => source.push_str(&fs::read_to_string(path).unwrap()),
            }
        }
    }
    let header = fs::read_to_string(root().join("include/tvm_ffi_c_api.h")).unwrap();
    let mut missing = BTreeSet::new();
    let inventory = inventory();
    for symbol in inventory["symbols"].as_array().unwrap() {
        let symbol = symbol.as_str().unwrap();
        let defined =
            source.contains(&format!("fn {symbol}(")) || source.contains(&format!("\"{symbol}\""));
        if !defined {
            missing.insert(symbol);
        }
        if symbol.starts_with("TVMFFI") {
            assert!(
                header.contains(&format!("{symbol}(")),
                "the header lacks {symbol}"
            );
        }
    }
    assert_eq!(missing, BTreeSet::new());
    for line in header
        .lines()
        .filter(|line| line.contains("TVMFFI") && line.ends_with(");"))
    {
        let name = line
            .split('(')
            .next()
            .unwrap()
            .rsplit([' ', '*'])
            .next()
            .unwrap();
        if name.starts_with("TVMFFI") {
            assert!(
                source.contains(&format!("fn {name}(")),
                "{name} is declared and not defined"
            );
        }
    }
}
