//! `explain` does not lie: single bits are flipped in libraries of every era, and what it says is held against `verify`, which
//! knows what is broken, and against the loader of the real 0.27, which knows what loads.
//!
//! `TVMSPEC_FLIPS=1000 cargo test --test explain -- --nocapture` flips more, and prints the tables.
#![cfg(feature = "cli")]

#[path = "../support/schema.rs"]
mod schema;
#[path = "../support/skip.rs"]
mod skip;

use object::{Object as _, ObjectSection as _, SectionKind};
use serde_json::Value;
use skip::skipped;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use tvmspec::blob::container;
use tvmspec::blob::pack::{self, LinkOptions, SymbolNaming};
use tvmspec::blob::{Blob, LIBRARY, StoredModule};
use tvmspec::examine::loading;
use tvmspec::import_tree::ImportTree;
use tvmspec::release::{Layout, Release};
use tvmspec::rule::Findings;
use tvmspec::wire::{Cursor, Writer};

/// Files of every form about which `explain` speaks release by release.
const FILES: [&str; 27] = [
    "blob/opencl-0.6.bin",
    "blob/two-imports-0.6.bin",
    "blob/opencl-0.8.bin",
    "blob/metal-0.8.bin",
    "blob/graph-factory.bin",
    "blob/relay-vm.bin",
    "blob/opencl-0.19.bin",
    "blob/opencl-0.21.bin",
    "blob/opencl.bin",
    "blob/metal.bin",
    "blob/webgpu.bin",
    "blob/tree3.bin",
    "blob/const-loader-c.bin",
    "blob/relax-vm.bin",
    "blob/containers/cuda-0.27.so",
    "blob/containers/relax_vm-0.27.so",
    "blob/containers/host_opencl-0.19.so",
    "blob/containers/host_opencl-0.21.so",
    "blob/containers/tree3-0.8.so",
    "blob/containers/devc-0.8.o",
    "blob/containers/macho-arm64.dylib",
    "blob/containers/pe-x86_64.dll",
    "vm/basic.vmexec",
    "graph/mlp.json",
    "tensor/all_dtypes-0.8.params",
    "object/0.8/irmodule-relay.json",
    "object/map.json",
];

/// How many bits are flipped.
fn flips(usual: usize) -> usize {
    match std::env::var("TVMSPEC_FLIPS") {
        Ok(count) => count.parse().expect("TVMSPEC_FLIPS is a number"),
        Err(_) => usual,
    }
}

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("golden")
        .join(name)
}

/// What the program prints as JSON; `None` where it could not read the file at all.
fn ask(words: &[&str], file: &Path) -> Option<Value> {
    let output = Command::new(env!("CARGO_BIN_EXE_tvmspec"))
        .args(words)
        .arg(file)
        .output()
        .unwrap();
    let code = output.status.code();
    assert!(
        matches!(code, Some(0..=2)),
        "{words:?} of {} ends with {code:?}: {}",
        file.display(),
        String::from_utf8_lossy(&output.stderr)
    );
    (code != Some(2)).then(|| serde_json::from_slice(&output.stdout).unwrap())
}

/// Every outcome that `explain` returns, with its reason.
fn outcomes(explained: &Value) -> Vec<(String, String)> {
    let accounts = explained.as_array().unwrap();
    accounts
        .iter()
        .flat_map(|account| account["loads"].as_array().unwrap())
        .map(|load| {
            let text = |key: &str| load[key].as_str().unwrap().to_owned();
            (text("outcome"), text("why"))
        })
        .collect()
}

/// Bits spread over `bits`, the same ones every time.
fn spread(bits: usize, count: usize) -> impl Iterator<Item = usize> {
    let mut state = 27_u64;
    (0..count).map(move |_| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % bits
    })
}

fn flipped(bytes: &[u8], bit: usize) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[bit / 8] ^= 1 << (bit % 8);
    bytes
}

/// The bits of `bytes` that matter to a loader of TVM: those of the blob, or all.
fn window(bytes: &[u8]) -> std::ops::Range<usize> {
    let file = container::open(bytes).unwrap();
    let found = file
        .blobs()
        .find_map(|(_, blob)| Some((usize::try_from(blob.offset?).ok()?, blob.bytes.len())));
    match found {
        Some((start, length)) => start..start + length,
        None => 0..bytes.len(),
    }
}

#[test]
fn what_verify_calls_broken_never_loads() {
    let folder = tempfile::tempdir().unwrap();
    let each = flips(176).div_ceil(FILES.len());
    let (mut broken, mut clean, mut unread) = (0, 0, 0);
    let mut reply = BTreeMap::<String, usize>::new();
    let mut lies = Vec::new();
    let schema = schema::schema(include_str!("../../spec/schema/explain.json"));
    for name in FILES {
        let bytes = fs::read(golden(name)).unwrap();
        let window = window(&bytes);
        // Most in the blob, some anywhere.
        let anywhere = (each / 8).max(1);
        let inside = spread(window.len() * 8, each - anywhere).map(|bit| window.start * 8 + bit);
        for bit in inside.chain(spread(bytes.len() * 8, anywhere)) {
            let path = folder.path().join("flipped");
            fs::write(&path, flipped(&bytes, bit)).unwrap();
            let verified = ask(&["verify", "--json"], &path);
            let explained = ask(&["explain", "--json"], &path);
            let (Some(verified), Some(explained)) = (verified, explained) else {
                unread += 1;
                continue;
            };
            schema::conforms(&schema, &explained, name);
            if verified["violations"].as_array().unwrap().is_empty() {
                clean += 1;
                continue;
            }
            broken += 1;
            for (outcome, why) in outcomes(&explained) {
                if outcome == "loads" {
                    lies.push(format!("{name}, bit {bit}: {why}: {verified}"));
                }
                *reply.entry(outcome).or_default() += 1;
            }
        }
    }
    println!("{broken} flips broken, {clean} not, {unread} unreadable; of the broken: {reply:?}");
    assert!(lies.is_empty(), "{} lies:\n{}", lies.len(), lies.join("\n"));
    assert!(broken > clean / 4, "too few flips break anything");
}

/// Imports TVM once, and loads each library that a line names in a process of its own: with TVM's loader, or with the system's
/// alone.
const SERVER: &str = "
import ctypes, os, resource, signal, sys
import tvm, tvm_ffi
print(tvm.__version__.split('.')[1], flush=True)
for line in sys.stdin:
    how, path = line.rstrip('\\n').split(' ', 1)
    child = os.fork()
    if child == 0:
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, 1)
        os.dup2(nothing, 2)
        resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.alarm(20)
        try:
            tvm_ffi.load_module(path) if how == 'tvm' else ctypes.CDLL(path, mode=os.RTLD_NOW)
        except BaseException:
            os._exit(1)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    print('loads' if status == 0 else 'rejects' if os.WIFEXITED(status) else 'dies', flush=True)
";

/// The wheel of `TVMSPEC_PYTHON`, that loads libraries.
struct Wheel {
    process: Child,
    questions: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
    release: String,
}

impl Wheel {
    /// `None`, with a reason printed, where there is none.
    fn start() -> Option<Wheel> {
        let named = std::env::var("TVMSPEC_PYTHON").unwrap_or_else(|_| "python3".into());
        if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
            skipped("the wheel's loader is asked on x86-64 Linux only");
            return None;
        }
        let mut process = match Command::new(&named)
            .args(["-c", SERVER])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
        {
            Ok(process) => process,
            Err(error) => {
                skipped(format_args!("`{named}` cannot be started: {error}"));
                return None;
            }
        };
        let mut answers = BufReader::new(process.stdout.take().unwrap()).lines();
        let Some(Ok(minor)) = answers.next() else {
            let _ = process.wait();
            skipped(format_args!(
                "`{named}` cannot import tvm and tvm_ffi; set TVMSPEC_PYTHON to a Python that can"
            ));
            return None;
        };
        Some(Wheel {
            questions: process.stdin.take().unwrap(),
            process,
            answers,
            release: format!("0.{minor}"),
        })
    }

    /// What becomes of a library: `loads`, `rejects` or `dies`.
    fn ask(&mut self, how: &str, path: &Path) -> String {
        writeln!(self.questions, "{how} {}", path.display()).unwrap();
        self.answers.next().unwrap().unwrap()
    }

    fn stop(self) {
        let Wheel {
            mut process,
            questions,
            ..
        } = self;
        drop(questions);
        let _ = process.wait();
    }
}

/// A library with a module of every kind that the wheel loads without a device.
fn every_kind() -> Vec<u8> {
    let read = |name: &str| fs::read(golden(name)).unwrap();
    let constants = read("blob/const-loader-c.bin");
    let code = read("blob/relax-vm.bin");
    let payload = |bytes: &[u8], kind: &str| {
        let blob = Blob::read(bytes, Layout::V0_22, &mut Findings::default()).unwrap();
        let module = blob.modules.iter().find(|module| module.kind == kind);
        module.unwrap().payload.clone().unwrap().into_owned()
    };
    let names = |out: &mut Writer| out.vector(&["f", "g"], |out, name| out.str(name));
    let mut source = Writer::new();
    source.bytes(b"int f(void) { return 0; }");
    source.str("c");
    names(&mut source);
    names(&mut source);
    let mut object = Writer::new();
    object.bytes(&read("blob/containers/elf-x86_64.o")[..200]);
    names(&mut object);
    let modules = [
        ("const_loader", Some(payload(&constants, "const_loader"))),
        (
            "relax.VMExecutable",
            Some(payload(&code, "relax.VMExecutable")),
        ),
        (LIBRARY, None),
        ("c", Some(source.into_bytes())),
        ("static_library", Some(object.into_bytes())),
    ];
    let mut tree = Writer::new();
    tree.vector(&[0_u64, 1, 2, 4, 4, 4], |out, word| out.u64(*word));
    tree.vector(&[1_u64, 2, 3, 4], |out, word| out.u64(*word));
    let tree = tree.into_bytes();
    let blob = Blob {
        layout: Layout::V0_22,
        modules: modules
            .into_iter()
            .map(|(kind, payload)| StoredModule {
                kind: kind.into(),
                payload: payload.map(Into::into),
                offset: 0,
            })
            .collect(),
        tree: Some(ImportTree::read(&mut Cursor::new(&tree), &mut Findings::default()).unwrap()),
    };
    blob.write().unwrap()
}

#[test]
fn the_real_loader_does_what_explain_states() {
    let Some(mut wheel) = Wheel::start() else {
        return;
    };
    let release = wheel.release.clone();
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("whole.so");
    let naming = SymbolNaming::library(Release::of(27));
    pack::shared(&every_kind(), &naming, &LinkOptions::default(), &library).unwrap();
    let bytes = fs::read(&library).unwrap();
    let window = window(&bytes);
    let mut table = BTreeMap::<(String, bool), usize>::new();
    let mut lies = Vec::new();
    let bits = spread(window.len() * 8, flips(100)).map(|bit| window.start * 8 + bit);
    for bit in std::iter::once(None).chain(bits.map(Some)) {
        let path = folder.path().join("flipped.so");
        // Anew each time: a library that is mapped elsewhere must not change.
        let _ = fs::remove_file(&path);
        let content = bit.map_or(bytes.clone(), |bit| flipped(&bytes, bit));
        fs::write(&path, content).unwrap();
        let explained = ask(&["explain", "--release", &release, "--json"], &path).unwrap();
        let (outcome, why) = outcomes(&explained).remove(0);
        let answer = wheel.ask("tvm", &path);
        let loads = answer == "loads";
        let lie = match outcome.as_str() {
            "loads" | "silent" => !loads,
            "fails" => loads,
            _ => false,
        };
        if lie {
            lies.push(format!("bit {bit:?}: reply {outcome} ({why}), it {answer}"));
        }
        if bit.is_none() {
            assert_eq!(outcome, "loads", "the whole library: {why}");
        } else {
            *table.entry((outcome, loads)).or_default() += 1;
        }
    }
    wheel.stop();
    println!("explain for {release} says: it loads, it does not");
    for outcome in ["loads", "silent", "unknown", "fails"] {
        let count = |loads| {
            table
                .get(&(outcome.to_owned(), loads))
                .copied()
                .unwrap_or(0)
        };
        println!("{outcome:<12} {:>8} {:>9}", count(true), count(false));
    }
    assert!(lies.is_empty(), "{} lies:\n{}", lies.len(), lies.join("\n"));
    let unknown: usize = [true, false]
        .iter()
        .filter_map(|loads| table.get(&("unknown".to_owned(), *loads)))
        .sum();
    let all: usize = table.values().sum();
    assert!(
        unknown * 3 <= all,
        "{unknown} of {all} are unknown: that says too little"
    );
}

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

/// What the C compiler makes of `source`; a message where there is none.
fn compile(source: &str, output: &Path, words: &[&str]) {
    let text = output.with_extension("c");
    fs::write(&text, source).unwrap();
    let status = Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .arg(output)
        .arg(&text)
        .args(words)
        .status()
        .unwrap();
    assert!(status.success(), "{}", output.display());
}

/// What `explain --release R` ends with and says.
fn reply(release: &str, file: &Path) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_tvmspec"))
        .args(["explain", "--release", release])
        .arg(file)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let words: Vec<&str> = text.split_whitespace().collect();
    (output.status.code(), words.join(" "))
}

#[test]
fn what_keeps_a_library_from_opening_is_named() {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return skipped("it looks for libraries as Linux does");
    }
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let host = "int __tvm_ffi_f(void* self, const void* args, int n, void* out) { return 0; }";

    // A library that is needed, there and gone.
    let needed = at("libtvmspec_absent.so");
    let search = format!("-L{}", folder.path().display());
    compile("int absent(void) { return 0; }", &needed, &[]);
    let source = format!("int absent(void);\nint use(void) {{ return absent(); }}\n{host}");
    let library = at("needs.so");
    let link = [search.as_str(), "-ltvmspec_absent"];
    compile(&source, &library, &link);
    let (code, text) = reply("0.27", &library);
    assert_eq!(code, Some(1), "{text}");
    assert!(
        text.contains("needs libtvmspec_absent.so, which cannot be found here"),
        "{text}"
    );
    // With its own folder among its paths it is found.
    compile(&source, &library, &[link[0], link[1], "-Wl,-rpath,$ORIGIN"]);
    assert_eq!(reply("0.27", &library).0, Some(0));
    let inspected = ask(&["inspect", "--json"], &library).unwrap();
    let links = inspected["links"].as_array().unwrap();
    assert!(links.contains(&"libtvmspec_absent.so".into()), "{links:?}");

    // A function that only later releases have.
    let library = at("calls.so");
    let source = format!(
        "void* TVMFFIBacktrace(const char*, int, const char*, int);\nvoid* use(void) {{ return TVMFFIBacktrace(0, 0, 0, 0); }}\n{host}"
    );
    compile(&source, &library, &["-Wl,-z,lazy"]);
    assert_eq!(reply("0.22", &library).0, Some(0));
    let plain = source.replace("__tvm_ffi_f", "f");
    compile(&plain, &library, &["-Wl,-z,lazy"]);
    let (code, text) = reply("0.21", &library);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("`TVMFFIBacktrace` (from 0.22 on)"), "{text}");

    // A runtime instead of what it loads.
    let library = at("libruntime.so");
    compile("int TVMFFIFunctionCall(void) { return 0; }", &library, &[]);
    let (code, text) = reply("0.27", &library);
    assert_eq!(code, Some(1), "{text}");
    assert!(
        text.contains("it is the library that loads compiled ones"),
        "{text}"
    );
}

/// A folder of its own below `folder`.
fn folder_of(folder: &Path, name: &str) -> PathBuf {
    let made = folder.join(name);
    fs::create_dir(&made).unwrap();
    made
}

#[test]
fn libraries_are_looked_for_in_the_order_of_the_loader() {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return skipped("it looks for libraries as Linux does");
    }
    let folder = tempfile::tempdir().unwrap();
    let (own, named, linked) = (
        folder_of(folder.path(), "own"),
        folder_of(folder.path(), "named"),
        folder_of(folder.path(), "linked"),
    );
    // Two libraries of one name: only that of the file's own path has the function.
    let name = "libtvmspec_twice.so";
    compile("int twice(void) { return 0; }", &own.join(name), &[]);
    compile("int other(void) { return 0; }", &named.join(name), &[]);
    let source = "int twice(void);\nint __tvm_ffi_f(void* self, const void* args, int n, void* out) { return twice(); }";
    let search = format!("-L{}", own.display());
    let (newer, older) = (own.join("newer.so"), own.join("older.so"));
    let link = [search.as_str(), "-ltvmspec_twice", "-Wl,-z,now"];
    let with = |tags| [&link[..], &["-Wl,-rpath,$ORIGIN", tags]].concat();
    compile(source, &newer, &with("-Wl,--enable-new-dtags"));
    compile(source, &older, &with("-Wl,--disable-new-dtags"));
    let reply = |file: &Path| {
        let output = Command::new(env!("CARGO_BIN_EXE_tvmspec"))
            .args(["explain", "--release", "0.27"])
            .arg(file)
            .env("LD_LIBRARY_PATH", &named)
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        (output.status.code(), text)
    };
    // `DT_RPATH` comes before the environment, `DT_RUNPATH` behind it.
    assert_eq!(reply(&older).0, Some(0));
    let (code, text) = reply(&newer);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("twice"), "{text}");

    // `$ORIGIN` is the folder that the file is opened in, not that of what a link leads to.
    #[cfg(unix)]
    {
        let link = linked.join("link.so");
        std::os::unix::fs::symlink(&older, &link).unwrap();
        fs::remove_file(named.join(name)).unwrap();
        let (code, text) = reply(&link);
        assert_eq!(code, Some(1), "{text}");
        assert!(text.contains(name), "{text}");
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
