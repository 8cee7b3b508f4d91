//! Measures the time that the graph executor adds to its kernels, and the time to load 100 MB of parameters.
//!
//! Run: `cargo bench --no-default-features --features graph --bench graph`. The chain is a model of 1,000 tiny operators, compiled by
//! release 0.8.0 for x86-64 Linux.

use divan::{Bencher, black_box, counter::BytesCount};
use std::sync::{Arc, LazyLock};
use tvmspec::function::Function;
use tvmspec::graph::Graph;
use tvmspec::graph::executor::{Executor, ExecutorDevice};
use tvmspec::graph::module::GraphExecutorFactory;
use tvmspec::module::{Module, load_library};
use tvmspec::rule::{Findings, Strictness};
use tvmspec::tensor::{Device, Dtype, Params, Sizing, TensorRecord};
use tvmspec::value::{Any, AnyView};
use tvmspec::wire::{Cursor, Writer};

fn main() {
    divan::main();
}

fn chain() -> (Module, Executor) {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/golden/graph/models/v0.8/chain1000.so"
    );
    // SAFETY: the library is a golden, and its graph is the one it was compiled for.
    let module = unsafe { load_library(path, Strictness::Lenient) }
        .unwrap_or_else(|error| panic!("{error}"))
        .module;
    let factory = GraphExecutorFactory::from_module(&module).expect("a factory");
    let cpu = ExecutorDevice::new(Device::CPU).expect("a CPU");
    let executor = factory.create(&module, vec![cpu]).expect("an executor");
    (module, executor)
}

#[divan::bench(sample_count = 300, sample_size = 20)]
fn chain_by_executor(bencher: Bencher<'_, '_>) {
    let (_module, mut executor) = chain();
    bencher.bench_local(|| executor.run().expect("a run"));
}

/// Calls the same functions with the same arguments, one after another.
#[divan::bench(sample_count = 300, sample_size = 20)]
fn chain_by_loop(bencher: Bencher<'_, '_>) {
    let (module, executor) = chain();
    let graph = Arc::clone(executor.graph());
    let mut calls: Vec<(Function, Vec<AnyView<'_>>)> = Vec::new();
    for (index, node) in graph.nodes.iter().enumerate() {
        let Some(call) = &node.call else { continue };
        let imports = module.imports();
        let function = imports
            .iter()
            .find_map(|import| import.function(&call.func_name, true).ok().flatten())
            .expect("a function");
        let inputs = node
            .inputs
            .iter()
            .filter_map(|input| graph.entry_id(*input));
        let outputs = graph.node_row_ptr[index]..graph.node_row_ptr[index + 1];
        let views = inputs
            .chain(outputs)
            // SAFETY: the tensors are entries of the executor, and it outlives the calls.
            .filter_map(|id| Some(unsafe { AnyView::dltensor(executor.entry(id)?.as_dltensor()) }));
        calls.push((function, views.collect()));
    }
    bencher.bench_local(|| {
        for (function, views) in &calls {
            function.call_packed(views).expect("a call");
        }
    });
}

const TENSORS: usize = 100;
const FLOATS: usize = 250_000;

/// A graph, and 100 MB of parameters for it.
static PARAMS: LazyLock<(String, Vec<u8>)> = LazyLock::new(|| {
    let mut names = Vec::new();
    let mut nodes = Vec::new();
    for index in 0..TENSORS {
        names.push(format!("p{index}"));
        nodes.push(format!(r#"{{"op":"null","name":"p{index}","inputs":[]}}"#));
    }
    let list = |item: &dyn Fn(usize) -> String, count: usize| {
        (0..count).map(item).collect::<Vec<_>>().join(",")
    };
    let graph = format!(
        r#"{{"nodes":[{}],"arg_nodes":[{}],"heads":[[0,0,0]],"node_row_ptr":[{}],"attrs":{{"dltype":["list_str",[{}]],"storage_id":["list_int",[{}]],"shape":["list_shape",[{}]]}}}}"#,
        nodes.join(","),
        list(&|index| index.to_string(), TENSORS),
        list(&|index| index.to_string(), TENSORS + 1),
        list(&|_| r#""float32""#.to_owned(), TENSORS),
        list(&|index| index.to_string(), TENSORS),
        list(&|_| format!("[{FLOATS}]"), TENSORS),
    );
    let data: Vec<u8> = (0..FLOATS * 4).map(|at| (at % 251) as u8).collect();
    let float = Dtype::scalar(Dtype::FLOAT, 32);
    let records = names.into_iter().map(|name| {
        let record = TensorRecord::new(float, &[FLOATS as i64], data.clone(), Sizing::V0_7);
        (name.into(), record.expect("a tensor"))
    });
    let mut out = Writer::new();
    Params::new(records.collect()).write(&mut out);
    (graph, out.into_bytes())
});

/// Reads the graph, plans and allocates its memory, and sets every parameter.
#[divan::bench(sample_count = 20, sample_size = 1)]
fn load_100_mb(bencher: Bencher<'_, '_>) {
    let (text, file) = &*PARAMS;
    let nothing = |_: &str| Ok(Some(Function::from_packed(|_| Ok(Any::none()))));
    bencher
        .counter(BytesCount::new(file.len()))
        .bench_local(|| {
            let graph = Graph::read(text, &mut Findings::default()).expect("a graph");
            let cpu = ExecutorDevice::new(Device::CPU).expect("a CPU");
            let mut executor =
                Executor::new(Arc::new(graph), &nothing, vec![cpu]).expect("an executor");
            let mut cursor = Cursor::new(file);
            let (params, _) =
                Params::detect(&mut cursor, &mut Findings::default()).expect("parameters");
            assert_eq!(executor.load_params(&params).expect("loaded"), TENSORS);
            executor
        });
}

/// Copies the same bytes into fresh memory.
#[divan::bench(sample_count = 20, sample_size = 1)]
fn memcpy_100_mb(bencher: Bencher<'_, '_>) {
    let (_, file) = &*PARAMS;
    bencher
        .counter(BytesCount::new(file.len()))
        .bench_local(|| black_box(file.to_vec()));
}
