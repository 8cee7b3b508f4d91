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

/// Python program that prints the libraries of the real TVM.
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
        let linkage = container::linkage(container::FileForm::of(&bytes), &bytes);
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
