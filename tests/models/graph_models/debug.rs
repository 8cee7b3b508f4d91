//! The debug dump of a model.

use super::golden;
use std::collections::BTreeMap;
use std::sync::Arc;
use tvmspec::function::{Error, Function};
use tvmspec::graph::executor::{Executor, ExecutorDevice};
use tvmspec::graph::{Graph, debug};
use tvmspec::object::Tensor;
use tvmspec::rule::Findings;
use tvmspec::tensor::{Device, Dtype, Params};
use tvmspec::value::{Any, AnyView, DLTensor, cast};
use tvmspec::wire::Cursor;

/// Returns the kernels of `samples/v0.8/graph-debug`, whose library was not kept.
fn debug_kernels(name: &str) -> Option<Function> {
    type Kernel = fn(&[&[f32]], &mut [Vec<f32>]);
    let kernel: Kernel = match name.strip_prefix("tvmgen_default_fused_")? {
        "nn_contrib_dense_pack_add_nn_relu" => |ins, outs| {
            let [x, weight, bias, ..] = ins else { return };
            for (at, out) in outs[0].iter_mut().enumerate() {
                let (row, column) = (at / 4, at % 4);
                let terms = (0..3).map(|k| x[row * 3 + k] * weight[k * 4 + column]);
                *out = (terms.sum::<f32>() + bias[column]).max(0.0);
            }
        },
        "split" => |ins, outs| {
            let [left, right, ..] = outs else { return };
            for (row, halves) in ins[0].chunks_exact(4).enumerate() {
                left[row * 2..][..2].copy_from_slice(&halves[..2]);
                right[row * 2..][..2].copy_from_slice(&halves[2..]);
            }
        },
        // Uses only the second of two inputs.
        "reshape" => |ins, outs| outs[0].copy_from_slice(ins[1]),
        "exp" => |ins, outs| {
            for (out, x) in outs[0].iter_mut().zip(ins[0]) {
                *out = x.exp();
            }
        },
        _ => return None,
    };
    let outputs = if name.ends_with("split") { 2 } else { 1 };
    Some(Function::from_packed(move |args: &[AnyView<'_>]| {
        let tensors: Vec<*mut DLTensor> = args
            .iter()
            .map(|arg| cast(*arg))
            .collect::<Result<_, _>>()?;
        let slices: Vec<&[f32]> = tensors
            .iter()
            .map(|tensor| {
                // SAFETY: the executor keeps its arguments for the call.
                let tensor = unsafe { &**tensor };
                // SAFETY: an argument has the number of elements that its extents state.
                let count = unsafe { tensor.elements() } as usize;
                // SAFETY: the executor passes compact float32 tensors on the host.
                unsafe { std::slice::from_raw_parts(tensor.data.cast(), count) }
            })
            .collect();
        let (ins, outs) = slices.split_at(slices.len() - outputs);
        let mut results: Vec<Vec<f32>> = outs.iter().map(|out| out.to_vec()).collect();
        kernel(ins, &mut results);
        for (tensor, result) in tensors[ins.len()..].iter().zip(&results) {
            // SAFETY: the executor keeps its arguments for the call.
            let to: *mut f32 = unsafe { (**tensor).data }.cast();
            // SAFETY: the output is on the host and has this number of elements; no slice is read after this.
            unsafe { to.copy_from_nonoverlapping(result.as_ptr(), result.len()) };
        }
        Ok::<Any, Error>(Any::none())
    }))
}

#[test]
fn the_debug_dump_is_the_released_one_but_for_its_quirks() {
    let text = std::fs::read_to_string(golden("shared-storage.json")).unwrap();
    let graph = Arc::new(Graph::read(&text, &mut Findings::default()).unwrap());
    let kernels = |name: &str| Ok(debug_kernels(name));
    let cpu = ExecutorDevice::new(Device::CPU).unwrap();
    let mut executor = Executor::new(Arc::clone(&graph), &kernels, vec![cpu]).unwrap();
    let params = std::fs::read(golden("models/v0.8/graph-debug/params.bin")).unwrap();
    let released = std::fs::read(golden("models/v0.8/graph-debug/output_tensors.params")).unwrap();
    let released = tensors(&released);
    let read = Params::detect(&mut Cursor::new(&params), &mut Findings::default()).unwrap();
    executor.load_params(&read.0).unwrap();
    let x = &released["x____0"];
    let float = Dtype::FLOAT32;
    let input = Tensor::empty(&[2, 3], float).unwrap();
    input.fill(x).unwrap();
    let index = executor.require_input("x").unwrap();
    executor.set_input(index, &input).unwrap();

    let dump = debug::dump(&mut executor).unwrap();
    assert_eq!(dump.folder, "_tvmdbg_device_CPU_0");
    let [dumped, trace, ours] = dump.files.map(|(_, bytes)| bytes);
    let ours = tensors(&ours);
    let names: Vec<&String> = ours.keys().collect();
    assert_eq!(names, released.keys().collect::<Vec<_>>());
    for (name, bytes) in &ours {
        assert_eq!(bytes, &released[name], "{name}");
    }

    let json = |text: &[u8]| -> serde_json::Value { serde_json::from_slice(text).unwrap() };
    let released = |name: &str| {
        let folder = golden("models/v0.8/graph-debug");
        json(&std::fs::read(folder.join(name)).unwrap())
    };
    let mut ours = json(&dumped);
    let theirs = released("_tvmdbg_graph_dump.json");
    // The quirk: `shape` and `T` of node i are those of entry i.
    for (index, node) in ours["nodes"].as_array_mut().unwrap().iter_mut().enumerate() {
        let first = graph.node_row_ptr[index];
        assert_eq!(node["shape"], serde_json::json!(graph.entries[first].shape));
        node["shape"] = serde_json::json!(graph.entries[index].shape);
    }
    assert_eq!(ours, theirs);

    // Times are not compared.
    let events = |trace: &serde_json::Value| -> Vec<(String, String)> {
        let events = trace["traceEvents"].as_array().unwrap().iter();
        events
            .map(|event| (event["name"].to_string(), event["ph"].to_string()))
            .collect()
    };
    let ours = json(&trace);
    let theirs = released("_tvmdbg_execution_trace.json");
    assert_eq!(ours["displayTimeUnit"], theirs["displayTimeUnit"]);
    assert_eq!(events(&ours), events(&theirs));
}

fn tensors(file: &[u8]) -> BTreeMap<String, Vec<u8>> {
    let (params, _) = Params::detect(&mut Cursor::new(file), &mut Findings::default()).unwrap();
    let pairs = params.iter();
    pairs
        .map(|(name, record)| (name.to_owned(), record.data().to_vec()))
        .collect()
}
