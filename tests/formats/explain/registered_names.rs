//! Comparison of a file with the names that a runtime registers.

use std::fs;
use tvmspec::examine::Subject;
use tvmspec::examine::runtime::{
    MissingName, NeededName, RegisteredNames, RuntimeInterface, missing,
};
use tvmspec::release::Releases;

fn lacks(bytes: &[u8], names: &RegisteredNames) -> Vec<MissingName> {
    let subject = Subject::open("file", bytes, None).unwrap();
    let accounts = subject.explain().unwrap();
    missing(&subject, &accounts, names)
}

fn read(path: &str) -> Vec<u8> {
    fs::read(format!("{}/golden/{path}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

#[test]
fn registered_function_is_not_missing() {
    let file = read("vm/unknown-builtin-0.27.tar");
    let mut names = RegisteredNames::new(RuntimeInterface::Ffi);
    let all = lacks(&file, &names);
    let named = |name: &str| all.iter().find(|missing| missing.name == name);
    let loader = named("ffi.Module.load_from_bytes.relax.VMExecutable").unwrap();
    assert_eq!(loader.what, NeededName::Loader);
    let builtin = named("vm.builtin.no_such_thing").unwrap();
    assert_eq!(builtin.what, NeededName::Builtin);
    assert!(builtin.brought_by.starts_with("no runtime of 0.2 to 0.27"));
    let known = named("vm.builtin.alloc_storage").unwrap();
    assert!(known.brought_by.starts_with("every runtime"));
    // The kernel that the model calls is in its own host code.
    assert!(named("add").is_none(), "{all:?}");
    for name in all.iter().filter(|missing| missing.name != builtin.name) {
        names.functions.insert(name.name.clone());
    }
    assert_eq!(
        lacks(&file, &names).as_slice(),
        std::slice::from_ref(builtin)
    );
    names.functions.insert(builtin.name.clone());
    assert_eq!(lacks(&file, &names), []);
}

#[test]
fn what_host_code_names_is_looked_for() {
    let mut file = read("module/host-0.19.so");
    let names = RegisteredNames::new(RuntimeInterface::Packed);
    assert!(
        lacks(&file, &names)
            .iter()
            .all(|missing| missing.what == NeededName::Symbol)
    );
    file.extend(b"\0tvm.contrib.cblas.matmul\0tvm.contrib.none\0");
    let found = lacks(&file, &names);
    let functions: Vec<_> = found
        .iter()
        .filter(|missing| missing.what == NeededName::Function)
        .map(|missing| (missing.name.as_str(), missing.brought_by.as_str()))
        .collect();
    let [(name, brought_by)] = functions[..] else {
        panic!("{functions:?}")
    };
    assert_eq!(name, "tvm.contrib.cblas.matmul");
    assert!(brought_by.contains("USE_BLAS"), "{brought_by}");
}

#[test]
fn each_interface_is_of_its_releases() {
    for interface in RuntimeInterface::ALL {
        let names = RegisteredNames::new(interface);
        let Releases { since, until } = names.releases();
        let own = interface.releases();
        assert!(own.contains(since) && own.contains(until), "{interface:?}");
    }
}
