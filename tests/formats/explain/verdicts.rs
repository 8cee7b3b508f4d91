//! Libraries with flipped bits: the results of `verify` and of the loader of 0.27.

use super::{Wheel, ask, flipped, flips, golden, outcomes, spread};
use crate::support::schema;
use std::collections::BTreeMap;
use std::fs;
use tvmspec::blob::container;
use tvmspec::blob::pack::{self, LinkOptions, SymbolNaming};
use tvmspec::blob::{Blob, LIBRARY, LibraryModule, StoredModule};
use tvmspec::import_tree::ImportTree;
use tvmspec::release::{Layout, Release};
use tvmspec::rule::Findings;
use tvmspec::wire::{Cursor, Writer};

/// Files of every form for which `explain` gives a verdict per release.
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

/// Returns the range of `bytes` that a loader of TVM reads: the blob, or everything.
pub(crate) fn window(bytes: &[u8]) -> std::ops::Range<usize> {
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
fn files_rejected_by_verify_never_load() {
    let folder = tempfile::tempdir().unwrap();
    let each = flips(176).div_ceil(FILES.len());
    let (mut broken, mut clean, mut unread) = (0, 0, 0);
    let mut reply = BTreeMap::<String, usize>::new();
    let mut lies = Vec::new();
    let schema = schema::schema(include_str!("../../../spec/schema/explain.json"));
    for name in FILES {
        let bytes = fs::read(golden(name)).unwrap();
        let window = window(&bytes);
        // Most bits in the blob, some anywhere.
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

/// Creates a library with a module of every kind that the wheel loads without a device.
fn every_kind() -> Vec<u8> {
    let read = |name: &str| fs::read(golden(name)).unwrap();
    let constants = read("blob/const-loader-c.bin");
    let code = read("blob/relax-vm.bin");
    let payload = |bytes: &[u8], kind: &str| {
        let blob = Blob::read(bytes, Layout::V0_22).unwrap().value;
        let module = blob.modules.iter().find(|module| module.kind() == kind);
        module.unwrap().payload().unwrap().to_vec()
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
            .map(|(kind, payload)| match payload {
                None => LibraryModule::Host,
                Some(payload) => StoredModule::new(kind, payload, Layout::V0_22).into(),
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
        // A new file each time, because a library that another process has mapped must not change.
        let _ = fs::remove_file(&path);
        let content = bit.map_or(bytes.clone(), |bit| flipped(&bytes, bit));
        fs::write(&path, content).unwrap();
        let explained = ask(&["explain", "--release", &release, "--json"], &path).unwrap();
        let (outcome, why) = outcomes(&explained).remove(0);
        let answer = wheel.ask(&path);
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
