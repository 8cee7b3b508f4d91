//! The functions that real runtimes export.

use super::reply;
use crate::support::skip::skipped;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use tvmspec::blob::container;
use tvmspec::examine::loading;
use tvmspec::release::Release;

/// A Python program that prints the libraries of the real TVM.
const FOLDERS: &str = "
import os, tvm, tvm_ffi
print(tvm.__version__.split('.')[1])
for package in (tvm_ffi, tvm):
    for folder, _, names in os.walk(os.path.dirname(package.__file__)):
        for name in names:
            if name in ('libtvm_ffi.so', 'libtvm_runtime.so'):
                print(os.path.join(folder, name))
";

#[test]
fn the_real_libraries_export_what_the_table_says() {
    let python = std::env::var("TVMSPEC_PYTHON").unwrap_or_else(|_| "python3".into());
    let output = Command::new(&python).args(["-c", FOLDERS]).output();
    let Some(output) = output.ok().filter(|output| output.status.success()) else {
        return skipped(format_args!(
            "`{python}` cannot import tvm and tvm_ffi; set TVMSPEC_PYTHON to a Python that can"
        ));
    };
    let text = String::from_utf8(output.stdout).unwrap();
    let mut lines = text.lines();
    let release = Release::new(lines.next().unwrap().parse().unwrap()).unwrap();
    let mut defined = BTreeSet::new();
    for library in lines {
        let bytes = fs::read(library).unwrap();
        let linkage = container::linkage(container::FileForm::detect(&bytes), &bytes);
        assert!(linkage.is_runtime(), "{library}");
        defined.extend(linkage.defines.into_iter().map(str::to_owned));
        let (code, text) = reply("0.27", Path::new(library));
        assert_eq!(code, Some(1), "{text}");
        assert!(text.contains("a TVM runtime"), "{text}");
    }
    for (name, ranges) in loading::exports() {
        let has = ranges.iter().any(|range| range.contains(release));
        assert_eq!(defined.contains(name), has, "{name} in {release}");
    }
}

/// A Python program that prints the release and the global functions of the real TVM.
const NAMES: &str = "
import tvm
from tvm_ffi.registry import list_global_func_names
print(tvm.__version__.split('.')[1])
print('\\n'.join(list_global_func_names()))
";

/// Returns the rows of the table of global functions: name, releases, options, place.
fn globals() -> Vec<Vec<String>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("spec/evidence/tables");
    let text = fs::read_to_string(folder.join("global_functions.tsv")).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| line.split('\t').map(str::to_owned).collect())
        .collect()
}

/// Returns whether ranges such as `16-19 22-27` contain a release.
fn holds(ranges: &str, release: Release) -> bool {
    ranges.split(' ').any(|range| {
        let (since, until) = range.split_once('-').unwrap();
        (since.parse().unwrap()..=until.parse().unwrap()).contains(&release.minor())
    })
}

#[test]
fn the_real_runtime_registers_what_the_table_says() {
    let python = std::env::var("TVMSPEC_PYTHON").unwrap_or_else(|_| "python3".into());
    let output = Command::new(&python).args(["-c", NAMES]).output();
    let Some(output) = output.ok().filter(|output| output.status.success()) else {
        return skipped(format_args!(
            "`{python}` cannot import tvm and tvm_ffi; set TVMSPEC_PYTHON to a Python that can"
        ));
    };
    let text = String::from_utf8(output.stdout).unwrap();
    let (release, names) = text.split_once('\n').unwrap();
    let release = Release::new(release.parse().unwrap()).unwrap();
    let names: BTreeSet<&str> = names.lines().collect();
    let table = globals();
    let every_build = table.iter().filter(|row| row[2] == "-" && row[3] == "-");
    for row in every_build.filter(|row| holds(&row[1], release)) {
        assert!(names.contains(row[0].as_str()), "{} in {release}", row[0]);
    }
    let there = table.iter().filter(|row| holds(&row[1], release));
    let there: BTreeSet<&str> = there.map(|row| row[0].as_str()).collect();
    let native = table.iter().filter(|row| row[2] != "python");
    for name in native.map(|row| row[0].as_str()) {
        assert!(
            there.contains(name) || !names.contains(name),
            "{name} in {release}"
        );
    }
}

#[test]
fn builtins_are_the_same_in_both_tables() {
    let builtins =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("spec/evidence/tables/vm_builtins.json");
    let builtins: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(builtins).unwrap()).unwrap();
    let table = globals();
    for (name, releases) in builtins.as_object().unwrap() {
        let releases: tvmspec::release::Releases = releases.as_str().unwrap().parse().unwrap();
        let rows = table.iter().filter(|row| row[0] == *name);
        for release in Release::all() {
            assert_eq!(
                rows.clone().any(|row| holds(&row[1], release)),
                releases.contains(release),
                "{name} in {release}"
            );
        }
    }
}
