//! Runs graphs: any text with any parameter file, and generated graphs that share memory in unusual ways.
//!
//! Checks, under AddressSanitizer and with kernels that touch every byte of every argument:
//! * Nothing panics.
//! * An input holds the data that was set.
//! * Every output can be read whole.
//!
//! Memory comes from a device with a limit of 8 MiB.
#![no_main]

#[path = "bounded/mod.rs"]
mod bounded;

use arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;
use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::Arc;
use tvmspec::device::Device;
use tvmspec::function::Function;
use tvmspec::graph::executor::{Executor, ExecutorDevice};
use tvmspec::graph::{Graph, Plan};
use tvmspec::rule::Findings;
use tvmspec::tensor::{Dtype, Params, Sizing, TensorRecord};
use tvmspec::value::{Any, DLTensor, cast};
use tvmspec::wire::Cursor;

/// The largest total size of all pools, in bytes. It is small, because a run touches each byte several times.
const MOST: u64 = 1 << 20;

fuzz_target!(|data: &[u8]| {
    let Some((selector, bytes)) = data.split_first() else { return };
    if selector & 1 == 0 {
        // JSON has no zero byte. The parameters follow the first zero byte.
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        let (text, rest) = bytes.split_at(end);
        let Ok(text) = std::str::from_utf8(text) else { return };
        let mut cursor = Cursor::new(rest.get(1..).unwrap_or_default());
        let params = Params::detect(&mut cursor, &mut Findings::default()).map(|(params, _)| params);
        run(text, &params.unwrap_or_default());
    } else if let Ok((text, params)) = invent(&mut Unstructured::new(bytes)) {
        run(&text, &params);
    }
});

fn run(text: &str, params: &Params<'_>) {
    let Ok(graph) = Graph::read(text, &mut Findings::default()) else { return };
    let small = Plan::from_graph(&graph).is_ok_and(|plan| plan.total_bytes() <= MOST);
    let touched = graph.entries.iter().map(|entry| bytes(entry.dtype, &entry.shape)).fold(0, u64::saturating_add);
    if !small || touched > 8 * MOST || graph.nodes.len() > 1000 {
        return;
    }
    let graph = Arc::new(graph);
    // SAFETY: the bounded device keeps the rules of memory, as stated in `bounded::install`.
    let place = unsafe { ExecutorDevice::with_api(Device::CPU, bounded::install()) };
    let kernel = |_: &str| Ok(Some(Function::from_packed(touch)));
    let Ok(mut executor) = Executor::new(Arc::clone(&graph), &kernel, vec![place]) else { return };
    let _ = executor.load_params(params);
    for (name, record) in params.iter() {
        // If a name occurs twice, the last parameter is used.
        let Some(input) = executor.input_index(name).filter(|input| executor.is_param(*input)) else { continue };
        let shows = executor.input(input).and_then(|input| Ok(input.to_host().expect("the host is readable")));
        if params.get(name) == Some(record) && shared(&graph, input) == 1 {
            let shows = shows.expect("an input that was set");
            assert!(record.data().starts_with(&shows), "`{name}` does not hold the data that was set");
        }
    }
    for input in 0..executor.input_count() {
        let _ = executor.clear_input(input);
    }
    let _ = executor.run();
    for output in 0..executor.output_count() {
        let Ok(tensor) = executor.output(output) else { continue };
        let bytes = tensor.to_host().expect("the host is readable");
        std::hint::black_box(bytes.iter().fold(0, |all, byte| all ^ byte));
        if let Ok(object) = tensor.to_host_object() {
            let _ = object.to_bytes();
        }
    }
    if let Ok(mut second) = Executor::new(Arc::clone(&graph), &kernel, vec![place]) {
        let names: Vec<String> = graph.inputs().map(|(_, name)| name.to_owned()).collect();
        let _ = second.share_inputs(&executor, names.iter().map(String::as_str));
        drop(executor);
        let _ = second.run();
        for node in 0..graph.nodes.len().min(8) {
            let _ = second.run_node(node);
        }
    }
}

/// Counts the entries that use the memory of `input`.
fn shared(graph: &Graph, input: usize) -> usize {
    let entry = graph.node_row_ptr.get(graph.arg_nodes[input]).and_then(|entry| graph.entries.get(*entry));
    graph.entries.iter().filter(|other| Some(other.storage_id) == entry.map(|entry| entry.storage_id)).count()
}

/// Computes the bytes of a tensor in a graph independently, with whole bytes for each element.
fn bytes(dtype: Dtype, shape: &[i64]) -> u64 {
    let element = (u64::from(dtype.bits) * u64::from(dtype.lanes)).div_ceil(8);
    shape.iter().fold(element, |all, extent| all.saturating_mul(extent.unsigned_abs()))
}

/// Adds up all bytes of the arguments, and writes the sum into every byte of the last one.
fn touch(args: &[tvmspec::value::AnyView<'_>]) -> tvmspec::function::Result {
    let mut sum = 0_u8;
    for (at, view) in args.iter().enumerate() {
        let tensor = cast::<*mut DLTensor>(*view)?;
        // SAFETY: the executor calls kernels with its own tensors, and they live for the call.
        let (tensor, shape) = unsafe { (&*tensor, (*tensor).shape()) };
        let count = usize::try_from(bytes(tensor.dtype, shape)).expect("a plan of a megabyte");
        let first = tensor.data.cast::<u8>().wrapping_add(usize::try_from(tensor.byte_offset).expect("an offset"));
        for byte in 0..count {
            // SAFETY: a kernel may touch every byte of its argument. This target tests that.
            unsafe {
                let place = first.add(byte);
                sum = sum.wrapping_add(place.read());
                if at + 1 == args.len() {
                    place.write(sum);
                }
            }
        }
    }
    Ok(Any::none())
}

const DTYPES: [(&str, Dtype); 8] = [
    ("float32", Dtype::FLOAT32), ("uint1", Dtype::scalar(1, 1)),
    ("int4", Dtype::scalar(0, 4)), ("float32x4", Dtype { code: 2, bits: 32, lanes: 4 }),
    ("int64", Dtype::INT64), ("bool", Dtype::scalar(1, 1)),
    ("int8x3", Dtype { code: 0, bits: 8, lanes: 3 }), ("handle", Dtype::scalar(3, 64)),
];

/// Makes a graph of a few nodes, and a parameter for some of its inputs.
fn invent(from: &mut Unstructured<'_>) -> Result<(String, Params<'static>)> {
    let inputs = from.int_in_range(1..=3_usize)?;
    let (mut nodes, mut rows, mut entries) = (Vec::new(), vec![0], Vec::<(usize, usize)>::new());
    for node in 0..inputs {
        nodes.push(format!(r#"{{"op": "null", "name": "p{node}", "inputs": []}}"#));
        entries.push((node, 0));
        rows.push(entries.len());
    }
    for node in inputs..inputs + from.int_in_range(1..=4_usize)? {
        let name = *from.choose(&["f", "f", "__nop", "__copy"])?;
        let outputs = if name == "f" { from.int_in_range(1..=2_usize)? } else { 1 };
        let reads = if name == "f" { from.int_in_range(0..=3_usize)? } else { 1 };
        let mut list = Vec::new();
        for _ in 0..reads {
            let (from_node, index) = *from.choose(&entries)?;
            list.push(format!("[{from_node}, {index}, 0]"));
        }
        nodes.push(format!(
            r#"{{"op": "tvm_op", "name": "n{node}", "inputs": [{}], "attrs": {{"func_name": "{name}", "num_inputs": "{reads}",
            "num_outputs": "{outputs}", "flatten_data": "{}"}}}}"#,
            list.join(", "),
            u8::from(from.arbitrary::<bool>()?)
        ));
        entries.extend((0..outputs).map(|output| (node, output)));
        rows.push(entries.len());
    }
    let (mut types, mut shapes, mut storage, mut tensors) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let pools = from.int_in_range(1..=entries.len())?;
    for (node, _) in &entries {
        let (name, dtype) = *from.choose(&DTYPES)?;
        let mut shape = Vec::new();
        for _ in 0..from.int_in_range(0..=3)? {
            let huge = from.ratio(1, 40)?;
            shape.push(if huge { *from.choose(&[1 << 31, 1 << 62, i64::MAX])? } else { from.int_in_range(0..=6_i64)? });
        }
        types.push(format!("\"{name}\""));
        shapes.push(format!("{shape:?}"));
        storage.push(from.int_in_range(0..=pools - 1)?.to_string());
        if *node < inputs && from.arbitrary()? {
            let sizing = *from.choose(&Sizing::ALL)?;
            let bytes = sizing.data_bytes(dtype, &shape).filter(|bytes| *bytes < MOST);
            let data = bytes.and_then(|bytes| usize::try_from(bytes).ok()).map(|bytes| vec![7; bytes]);
            if let Some(Ok(record)) = data.map(|data| TensorRecord::new(dtype, &shape, data, sizing)) {
                tensors.push((Cow::Owned(format!("p{node}")), record));
            }
        }
    }
    let heads = from.choose(&entries)?;
    let mut text = String::new();
    let args: Vec<String> = (0..inputs).map(|node| node.to_string()).collect();
    let _ = write!(
        text,
        r#"{{"nodes": [{}], "arg_nodes": [{}], "node_row_ptr": {rows:?}, "heads": [[{}, {}, 0]], "attrs": {{
        "dltype": ["list_str", [{}]], "storage_id": ["list_int", [{}]], "shape": ["list_shape", [{}]]}}}}"#,
        nodes.join(", "), args.join(", "), heads.0, heads.1, types.join(", "), storage.join(", "), shapes.join(", ")
    );
    Ok((text, Params::new(tensors)))
}
