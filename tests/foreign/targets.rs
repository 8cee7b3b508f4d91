//! Targets as real releases read them: every kind, option and tag, and every error of an option in both forms. The input also
//! includes 700 random texts, 700 random objects, and the targets of the suite's cases of any release.
//!
//! `TVMSPEC_PYTHON` is a Python with TVM. `TVMSPEC_PYTHON_0_16` is one with the package `hhb-tvm` 3.2.3, which is 0.16.dev0.
//! `TVMSPEC_PYTHON_0_8_COMPILER` and `TVMSPEC_PYTHON_0_19_COMPILER` are Pythons with that release and its compiler library, which
//! may be built without LLVM.
#![cfg(feature = "target")]

use crate::support::observed_targets;
use crate::support::skip::skipped;
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use std::{env, fs};
use tvmspec::release::Release;
use tvmspec::target::{OptionType, Targets};

/// Returns how the Python of this variable reads targets, or `None` if the variable is not set.
fn seen_by(variable: &str, seed: u64) -> Option<Value> {
    let python = env::var_os(variable)?;
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("seen.json");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let ran = Command::new(python)
        .arg(root.join("golden/target/observe.py"))
        .arg(&out)
        .args(["--every", "--count", "700", "--seed", &seed.to_string()])
        .arg("--cases")
        .arg(root.join("conformance/target/cases"))
        .current_dir(folder.path())
        .output()
        .expect("Python runs");
    let errors = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{errors}");
    Some(serde_json::from_str(&fs::read_to_string(out).expect("its output")).expect("JSON"))
}

/// Checks that both read the same targets, and declare the same options with the same types.
fn assert_same_targets(observed: &Value, release: Release, forked: &[&str]) {
    let found = observed_targets::compare(observed, release, forked);
    let different = found.different.join("\n");
    println!(
        "{release}: {} equal, {} of them rejected",
        found.equal, found.rejected
    );
    assert!(
        found.different.is_empty(),
        "{} equal, {} not:\n{different}",
        found.equal,
        found.different.len()
    );
    assert!(found.equal > 2000, "{} equal", found.equal);
    let targets = Targets::new(release);
    for (name, kind) in observed["kinds"].as_object().expect("kinds") {
        let is_forked = |text: &str| forked.iter().any(|part| text.contains(part));
        let Some(ours) = targets.kind(name).filter(|_| !is_forked(name)) else {
            assert!(is_forked(name), "{name} is no kind here");
            continue;
        };
        let options = kind["options"].as_object().expect("options");
        for (name, theirs) in options.iter().filter(|(name, _)| !is_forked(name)) {
            let option = ours
                .find(name)
                .unwrap_or_else(|| panic!("{}: no {name}", ours.name));
            let family = match option.option_type {
                OptionType::Int | OptionType::Bool => &["IntImm", "int", "bool", "runtime.Box"][..],
                OptionType::Str => &["runtime.String", "str"],
                OptionType::List(_) => &["Array"],
                OptionType::Target => &["Target", "target.Target"],
                _ => &["Map"],
            };
            let theirs = theirs.as_str().expect("a type");
            assert!(
                family.iter().any(|start| theirs.starts_with(start)),
                "{}: {name} is {theirs}",
                ours.name
            );
        }
        let more: Vec<_> = ours
            .options
            .iter()
            .filter(|option| !options.contains_key(&option.name))
            .collect();
        assert!(more.is_empty(), "{}: they lack {more:?}", ours.name);
    }
}

#[test]
fn the_wheel_reads_targets_as_we_do() {
    let Some(observed) = seen_by("TVMSPEC_PYTHON", 7) else {
        return skipped("TVMSPEC_PYTHON names no Python with TVM");
    };
    let minor = observed["minor"]
        .as_u64()
        .and_then(|minor| u8::try_from(minor).ok());
    assert_same_targets(&observed, Release::of(minor.expect("a release")), &[]);
}

#[test]
fn the_package_of_0_16_dev0_reads_targets_as_we_do() {
    let Some(observed) = seen_by("TVMSPEC_PYTHON_0_16", 7) else {
        return skipped("TVMSPEC_PYTHON_0_16 names no Python with TVM 0.16.dev0");
    };
    // The vendor forked in January 2024, and 0.16.0 changed targets until April: the tag of H100, options of `llvm` and its default
    // triple (TGT-54), and CUDA architectures with a letter (TGT-50, TGT-51).
    assert_same_targets(&observed, Release::of(15), &observed_targets::FORKED);
    // Everything else is as in 0.16.0.
    let forked = [
        &observed_targets::FORKED[..],
        &observed_targets::CHANGED_BY_0_16,
    ]
    .concat();
    assert_same_targets(&observed, Release::of(16), &forked);
}

#[test]
fn the_compiler_of_0_8_reads_targets_as_we_do() {
    let Some(observed) = seen_by("TVMSPEC_PYTHON_0_8_COMPILER", 7) else {
        return skipped("TVMSPEC_PYTHON_0_8_COMPILER names no Python with TVM 0.8.0");
    };
    assert_same_targets(&observed, Release::of(8), &[]);
}

#[test]
fn the_compiler_of_0_19_reads_targets_as_we_do() {
    let Some(observed) = seen_by("TVMSPEC_PYTHON_0_19_COMPILER", 7) else {
        return skipped("TVMSPEC_PYTHON_0_19_COMPILER names no Python with TVM 0.19.0");
    };
    assert_same_targets(&observed, Release::of(19), &[]);
}
