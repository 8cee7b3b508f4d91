//! A graph on two devices, of which one delays its work.

use std::sync::Arc;
use tvmspec::device::simulated::Simulated;
use tvmspec::function::{Error, Function};
use tvmspec::graph::Graph;
use tvmspec::graph::executor::{Executor, ExecutorDevice};
use tvmspec::object::Tensor;
use tvmspec::rule::Findings;
use tvmspec::tensor::{Device, Dtype};
use tvmspec::value::{Any, AnyView, DLTensor, cast};

#[test]
fn a_graph_on_two_devices_copies_and_waits() {
    let text = r#"{"nodes": [
        {"op": "null", "name": "x", "inputs": []},
        {"op": "tvm_op", "name": "to", "inputs": [[0, 0]],
         "attrs": {"func_name": "__copy", "num_inputs": "1", "num_outputs": "1", "flatten_data": "0"}},
        {"op": "tvm_op", "name": "back", "inputs": [[1, 0]],
         "attrs": {"func_name": "__copy", "num_inputs": "1", "num_outputs": "1", "flatten_data": "0"}},
        {"op": "tvm_op", "name": "y", "inputs": [[2, 0]],
         "attrs": {"func_name": "twice", "num_inputs": "1", "num_outputs": "1", "flatten_data": "0"}}],
      "arg_nodes": [0], "heads": [[3, 0]], "node_row_ptr": [0, 1, 2, 3, 4],
      "attrs": {"dltype": ["list_str", ["float32", "float32", "float32", "float32"]],
        "device_index": ["list_int", [1, 12, 1, 1]], "storage_id": ["list_int", [0, 1, 2, 3]],
        "shape": ["list_shape", [[4], [4], [4], [4]]]}}"#;
    let graph = Arc::new(Graph::read(text, &mut Findings::default()).unwrap());
    let kernels = |name: &str| {
        assert_eq!(name, "twice");
        Ok(Some(Function::from_packed(|args: &[AnyView<'_>]| {
            let [from, to] = [cast::<*mut DLTensor>(args[0])?, cast(args[1])?];
            for at in 0..4 {
                // SAFETY: the executor keeps its arguments for the call.
                let from = unsafe { (*from).data }.cast::<f32>();
                // SAFETY: the executor keeps its arguments for the call.
                let to = unsafe { (*to).data }.cast::<f32>();
                // SAFETY: four floats, on the host.
                let value = unsafe { *from.wrapping_add(at) };
                // SAFETY: four floats, on the host.
                unsafe { *to.wrapping_add(at) = 2.0 * value };
            }
            Ok::<Any, Error>(Any::none())
        })))
    };
    // The simulated device delays all work until it is needed.
    for seed in 0..20 {
        let api: &'static Simulated = Box::leak(Box::new(Simulated::new(seed)));
        // SAFETY: its memory keeps the rules and is not host memory, like that of every device of this type.
        let other = unsafe { ExecutorDevice::with_api(Device::ext_dev(0), api) };
        let places = vec![ExecutorDevice::new(Device::CPU).unwrap(), other];
        let mut executor = Executor::new(Arc::clone(&graph), &kernels, places).unwrap();
        let float = Dtype::FLOAT32;
        let x = Tensor::empty(&[4], float).unwrap();
        for round in 0..3_u8 {
            let values = [f32::from(round), 1.0, 2.0, 3.0];
            let bytes: Vec<u8> = values
                .iter()
                .flat_map(|value| value.to_le_bytes())
                .collect();
            x.fill(&bytes).unwrap();
            executor.set_input(0, &x).unwrap();
            executor.run().unwrap();
            let output = executor.output(0).unwrap().to_host().unwrap();
            let twice: Vec<u8> = values
                .iter()
                .flat_map(|value| (2.0 * value).to_le_bytes())
                .collect();
            assert_eq!(output, twice, "seed {seed}, round {round}");
        }
    }
}
