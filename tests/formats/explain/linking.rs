//! What the dynamic loader and linkers make of the tables of a library.

use super::{Wheel, ask, compile, flipped, flips, golden, outcomes, reply, spread};
use crate::support::skip::skipped;
use object::{Object as _, ObjectSection as _, SectionKind};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;
use tvmspec::blob::container;
use tvmspec::examine::loading;
use tvmspec::release::Release;

/// The bytes of a library that `explain` does not look at: instructions, and data without relocations, unwind tables and debug
/// sections among it. What flips in them may crash a library, and no reader of files can tell.
fn overlooked(bytes: &[u8]) -> Vec<std::ops::Range<usize>> {
    let file = object::File::parse(bytes).unwrap();
    let blobs = container::open(bytes).unwrap();
    let found = blobs.blobs().next().map(|(_, blob)| {
        let start = blob.offset.unwrap() as usize;
        start..start + blob.bytes.len()
    });
    let blob = found.unwrap_or(0..0);
    let sections = file.sections().filter(|section| {
        let table = section.name().unwrap().starts_with(".got");
        let data = matches!(
            section.kind(),
            SectionKind::Text
                | SectionKind::Data
                | SectionKind::ReadOnlyData
                | SectionKind::ReadOnlyString
                | SectionKind::Debug
                | SectionKind::DebugString
                | SectionKind::OtherString
                | SectionKind::Other
        );
        data && !table
    });
    let ranges = sections.filter_map(|section| section.file_range());
    ranges
        .map(|(start, length)| start as usize..(start + length) as usize)
        .flat_map(|range| {
            [
                range.start..range.end.min(blob.start.max(range.start)),
                blob.end.max(range.start)..range.end,
            ]
        })
        .filter(|range| !range.is_empty())
        .collect()
}

/// Bits anywhere in a library: what its tables are held to, against what a dynamic loader makes of them.
#[test]
fn the_dynamic_loader_does_what_explain_states() {
    let Some(mut wheel) = Wheel::start() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let libraries = [
        (
            "blob/containers/cpu_llvm-0.27.so",
            wheel.release.clone(),
            "tvm",
        ),
        (
            "blob/containers/relax_vm-0.27.so",
            wheel.release.clone(),
            "tvm",
        ),
        ("blob/containers/host_only-0.8.so", "0.8".to_owned(), "open"),
    ];
    let mut lies = Vec::new();
    for (name, release, how) in libraries {
        let bytes = fs::read(golden(name)).unwrap();
        let (file, window) = (object::File::parse(&*bytes).unwrap(), overlooked(&bytes));
        assert!(
            file.sections()
                .any(|section| section.name() == Ok(".dynamic"))
        );
        let mut table = BTreeMap::<(bool, String, bool), usize>::new();
        let bits = spread(bytes.len() * 8, flips(40));
        for bit in std::iter::once(None).chain(bits.map(Some)) {
            let path = folder.path().join("flipped.so");
            let _ = fs::remove_file(&path);
            let content = bit.map_or(bytes.clone(), |bit| flipped(&bytes, bit));
            fs::write(&path, content).unwrap();
            let answer = wheel.ask(how, &path);
            let loads = answer == "loads";
            let explained = ask(&["explain", "--release", &release, "--json"], &path);
            let (mut outcome, mut why) = match &explained {
                Some(explained) => outcomes(explained).remove(0),
                None => ("unreadable".to_owned(), String::new()),
            };
            if explained.is_some_and(|explained| explained[0]["here"]["good"] == false) {
                (outcome, why) = ("not here".to_owned(), String::new());
            }
            let skip = bit.is_some_and(|bit| window.iter().any(|range| range.contains(&(bit / 8))));
            let lie = match outcome.as_str() {
                "loads" | "silent" => !loads,
                "fails" => loads,
                _ => false,
            };
            if lie && !skip {
                lies.push(format!(
                    "{name}, bit {bit:?}: reply {outcome} ({why}), it {answer}"
                ));
            }
            match bit {
                None => assert!(
                    loads && outcome == "loads",
                    "{name}: {outcome}, {why}; {answer}"
                ),
                Some(_) => *table.entry((skip, outcome, loads)).or_default() += 1,
            }
        }
        for skip in [false, true] {
            let place = if skip {
                "instructions and data"
            } else {
                "tables and the library binary"
            };
            println!("{name}, {release}, {place}: it loads, it does not");
            for outcome in [
                "loads",
                "silent",
                "not here",
                "unknown",
                "unreadable",
                "fails",
            ] {
                let count = |loads| {
                    table
                        .get(&(skip, outcome.to_owned(), loads))
                        .copied()
                        .unwrap_or(0)
                };
                println!("{outcome:<12} {:>8} {:>9}", count(true), count(false));
            }
        }
    }
    wheel.stop();
    assert!(lies.is_empty(), "{} lies:\n{}", lies.len(), lies.join("\n"));
}

/// Where a Python package of the real TVM keeps its libraries.
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

#[test]
fn what_lld_puts_into_the_protected_range_is_not_written() {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return skipped("it is compiled for x86-64 Linux");
    }
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("padded.so");
    let source = "__attribute__((section(\".relro_padding,\\\"aw\\\",@nobits#\"))) char pad[64];
        int g(void) { return 1; }
        int (*const table[2])(void) = {g, g};
        int __tvm_ffi_f(void* self, const void* args, int n, void* out) { return 0; }";
    compile(source, &library, &["-nostdlib", "-Wl,-z,relro"]);
    let mut bytes = fs::read(&library).unwrap();
    let word = |bytes: &[u8], at: usize| {
        u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize
    };
    // As lld of 18 and later has it: the protected range goes on to the end of the page that the section is in.
    let headers = word(&bytes, 32);
    let relro = (headers..)
        .step_by(56)
        .find(|at| bytes[*at..at + 4] == 0x6474_e552u32.to_le_bytes())
        .unwrap();
    let (start, size) = (word(&bytes, relro + 16), word(&bytes, relro + 40));
    let end = (start + size + 1).next_multiple_of(4096);
    bytes[relro + 40..relro + 48].copy_from_slice(&((end - start) as u64).to_le_bytes());
    fs::write(&library, &bytes).unwrap();
    let (code, text) = reply("0.27", &library);
    assert_eq!(code, Some(0), "{text}");
    // Any other section without bytes is there to be written.
    let at = bytes
        .windows(15)
        .position(|text| text == b".relro_padding\0")
        .unwrap();
    bytes[at + 1] = b'x';
    fs::write(&library, &bytes).unwrap();
    let (code, text) = reply("0.27", &library);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("not in a segment as its header"), "{text}");
}
