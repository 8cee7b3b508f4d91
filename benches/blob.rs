//! Times the reading and writing of library binaries, against a copy of the same bytes. Run: `cargo bench --bench blob`.

use divan::{Bencher, counter::BytesCount};
use tvmspec::blob::{Blob, LibraryModule, StoredModule};
use tvmspec::import_tree::ImportTree;
use tvmspec::release::Layout;
use tvmspec::rule::Findings;

fn main() {
    divan::main();
}

/// Makes a host library that imports `modules` modules of an unknown kind, with 1 KiB each.
fn blob(modules: usize) -> Vec<u8> {
    let payload = vec![0x5A; 1024];
    let mut listed = vec![LibraryModule::Host];
    listed.extend((0..modules).map(|_| {
        LibraryModule::from(StoredModule::new("acme", payload.as_slice(), Layout::V0_22))
    }));
    let count = modules as u64;
    let mut indptr = vec![count; modules + 2];
    indptr[0] = 0;
    let indices: Vec<u64> = (1..=count).collect();
    let tree = ImportTree::new(&indptr, &indices, &mut Findings::default()).unwrap();
    Blob {
        layout: Layout::V0_22,
        modules: listed,
        tree: Some(tree),
    }
    .write()
    .unwrap()
}

#[divan::bench(args = [1_000, 10_000, 100_000])]
fn read(bencher: Bencher, modules: usize) {
    let bytes = blob(modules);
    bencher
        .counter(BytesCount::of_slice(&bytes))
        .bench(|| Blob::read(&bytes, Layout::V0_22).unwrap().value);
}

#[divan::bench(args = [1_000, 10_000, 100_000])]
fn copy(bencher: Bencher, modules: usize) {
    let bytes = blob(modules);
    bencher
        .counter(BytesCount::of_slice(&bytes))
        .bench(|| bytes.clone());
}

#[divan::bench(args = [1_000, 10_000])]
fn write(bencher: Bencher, modules: usize) {
    let bytes = blob(modules);
    let blob = Blob::read(&bytes, Layout::V0_22).unwrap().value;
    bencher
        .counter(BytesCount::of_slice(&bytes))
        .bench(|| blob.write().unwrap());
}
