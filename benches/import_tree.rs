//! Orders modules and reads import trees. The time must grow with modules plus edges, for graphs of every shape.
//!
//! Run: `cargo bench --no-default-features --bench import_tree`. An item is a module or an edge.

use divan::{Bencher, black_box, counter::ItemsCount};
use tvmspec::import_tree::{Algorithm, ImportTree, ModuleGraph, ModuleNode, order};
use tvmspec::rule::Findings;
use tvmspec::wire::{Cursor, Words, Writer};

fn main() {
    divan::main();
}

const SIZES: [usize; 3] = [1_000, 10_000, 100_000];
/// The count of following modules that each module of a dense graph imports.
const DENSE: usize = 100;

fn graph(count: usize, imports: impl Fn(usize) -> std::ops::Range<usize>) -> ModuleGraph {
    let node = |index| ModuleNode {
        kind: String::new(),
        // Every seventh module in the second half is host code, so that both phases have work.
        dso: index > count / 2 && index % 7 == 0,
        // The last import is visited first. The order is descending, so that parents are numbered before children.
        imports: imports(index)
            .filter(|child| *child < count)
            .rev()
            .collect(),
    };
    ModuleGraph {
        modules: (0..count).map(node).collect(),
    }
}

fn chain(count: usize) -> ModuleGraph {
    graph(count, |index| index + 1..index + 2)
}

fn fan(count: usize) -> ModuleGraph {
    graph(count, move |index| if index == 0 { 1..count } else { 0..0 })
}

fn dense(count: usize) -> ModuleGraph {
    graph(count, |index| index + 1..index + 1 + DENSE)
}

fn edges(graph: &ModuleGraph) -> usize {
    graph.modules.iter().map(|node| node.imports.len()).sum()
}

fn bench_order(bencher: Bencher<'_, '_>, graph: &ModuleGraph) {
    let items = graph.modules.len() + edges(graph);
    // The topological order does all the work even for graphs that 0.8 would reject.
    bencher
        .counter(ItemsCount::new(items))
        .bench_local(|| black_box(order(black_box(graph), Algorithm::Topological)));
}

#[divan::bench(args = SIZES)]
fn order_chain(bencher: Bencher<'_, '_>, count: usize) {
    let mut graph = chain(count);
    // A chain through host code cannot be merged, but a chain of device modules can be stored.
    graph.modules.iter_mut().for_each(|node| node.dso = false);
    bench_order(bencher, &graph);
}

#[divan::bench(args = SIZES)]
fn order_fan(bencher: Bencher<'_, '_>, count: usize) {
    bench_order(bencher, &fan(count));
}

#[divan::bench(args = SIZES)]
fn order_dense(bencher: Bencher<'_, '_>, count: usize) {
    let mut graph = dense(count);
    graph.modules.iter_mut().for_each(|node| node.dso = false);
    bench_order(bencher, &graph);
}

#[divan::bench(args = SIZES)]
fn read_dense(bencher: Bencher<'_, '_>, count: usize) {
    let graph = dense(count);
    let mut indptr = vec![0_u64];
    let mut indices = Vec::new();
    for node in &graph.modules {
        indices.extend(node.imports.iter().map(|child| *child as u64));
        indptr.push(indices.len() as u64);
    }
    let mut out = Writer::new();
    out.words(&Words::from(&indptr[..]));
    out.words(&Words::from(&indices[..]));
    let bytes = out.into_bytes();
    bencher
        .counter(ItemsCount::new(count + edges(&graph)))
        .bench_local(|| {
            let mut findings = Findings::default();
            black_box(ImportTree::read(&mut Cursor::new(black_box(&bytes)), &mut findings).unwrap())
        });
}
