//! Reads import trees from any bytes, and orders module graphs. Nothing panics, and an accepted tree writes back the same bytes. An ordered
//! graph reads as a tree.
#![no_main]

#[path = "naive/mod.rs"]
mod naive;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use tvmspec::import_tree::{Algorithm, ImportTree, ModuleGraph, ModuleNode, order};
use tvmspec::rule::{Findings, Strictness};
use tvmspec::wire::{Cursor, Writer};

#[derive(Arbitrary, Debug)]
enum Input<'a> {
    Bytes(&'a [u8]),
    Words(Vec<u8>, Vec<u8>),
    Graph(Vec<(bool, Vec<u8>)>),
    Chain(u8),
}

fuzz_target!(|input: Input<'_>| {
    match input {
        Input::Bytes(bytes) => read(bytes),
        Input::Words(indptr, indices) => {
            let wide = |words: Vec<u8>| words.into_iter().map(u64::from).collect::<Vec<_>>();
            let mut findings = Findings::default();
            if let Ok(tree) = ImportTree::new(&wide(indptr), &wide(indices), &mut findings) {
                let mut out = Writer::new();
                tree.write(&mut out);
                read(&out.into_bytes());
            }
        }
        Input::Graph(nodes) => arrange(nodes),
        Input::Chain(more) if more < 4 => chain(16_383 + u64::from(more)),
        Input::Chain(_) => {}
    }
});

fn read(bytes: &[u8]) {
    let mut findings = Findings::default();
    let mut cursor = Cursor::new(bytes);
    let Ok(tree) = ImportTree::read(&mut cursor, &mut findings) else {
        let second = naive::tree::read(&mut naive::In(bytes), &mut naive::Odd::new());
        assert_eq!(second, None, "what keeps every rule is read");
        return;
    };
    let length = bytes.len() - cursor.remaining();
    let mut odd = naive::Odd::new();
    let rows = naive::tree::read(&mut naive::In(bytes), &mut odd).expect("the second reading accepts it too");
    assert_eq!(naive::findings(&findings, &["TREE"]), odd);
    let read: Vec<Vec<u64>> = (0..tree.modules()).map(|module| tree.children(module).collect()).collect();
    assert_eq!(read, rows);
    let mut out = Writer::new();
    tree.write(&mut out);
    assert!(out.into_bytes() == bytes[..length], "write(read(b)) = b");
    for cut in 0..length.min(256) {
        let cut = ImportTree::read(&mut Cursor::new(&bytes[..cut]), &mut findings);
        assert!(cut.is_err(), "a strict prefix is truncated");
    }
    assert!(tree.children(0).all(|child| child < tree.modules() as u64));
}

/// Checks TREE-12 on chains longer than any input. Every module imports the next one.
fn chain(links: u64) {
    let starts: Vec<u64> = (0..=links).chain([links]).collect();
    let children: Vec<u64> = (1..=links).collect();
    let mut findings = Findings::default();
    ImportTree::new(&starts, &children, &mut findings).expect("a chain is a tree");
    assert_eq!(naive::findings(&findings, &["TREE"]).contains("TREE-12"), links > 16_384);
}

fn arrange(nodes: Vec<(bool, Vec<u8>)>) {
    let count = nodes.len();
    let node = |(dso, imports): (bool, Vec<u8>)| ModuleNode {
        kind: String::new(),
        dso,
        imports: imports.into_iter().map(|child| usize::from(child) % count).collect(),
    };
    let graph = ModuleGraph { modules: nodes.into_iter().map(node).collect() };
    let mut strict = Findings::new(Strictness::Strict);
    let release = order(&graph, Algorithm::V0_8);
    let topological = order(&graph, Algorithm::Topological);
    for ordered in [&release, &topological].into_iter().flatten() {
        ImportTree::new(&ordered.indptr, &ordered.indices, &mut strict).expect("an ordered graph is a tree");
    }
    if let Ok(release) = release {
        assert!(topological.ok() == Some(release), "topological agrees with the release");
    }
    let _ = order(&graph, Algorithm::V0_7);
}
