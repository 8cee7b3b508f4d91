//! Misuse of modules, devices, executors and machines from a program without `unsafe`: it is rejected, and nothing crashes.
#![cfg(feature = "cli")]
#![forbid(unsafe_code)]

mod linked_parameters;

use std::collections::BTreeMap;
use std::sync::Arc;
use tvmspec::device::simulated::Simulated;
use tvmspec::device::{DeviceApi, Manager, Stream};
use tvmspec::function::{Error, Function, registry};
use tvmspec::graph::executor::{Executor, ExecutorDevice};
use tvmspec::graph::{DataEntry, Graph, Node, NodeEntry, TvmOpParam};
use tvmspec::module::{Module, ModuleKind};
use tvmspec::object::Tensor;
use tvmspec::tensor::{Device, Dtype};
use tvmspec::value::{Any, AnyView, cast, index, types};

/// Returns a pointer that is available to safe code but has the wrong type for every use here: the hook of a type.
fn wrong_typed_pointer() -> Any {
    tvmspec::object::init();
    let column = types::column("__s_mutate__").unwrap();
    column.value(index::STR).unwrap().to_any()
}

/// Returns a graph with one input and one call of `touch`, which writes a second entry, the output.
fn graph(dtype: Dtype, extent: i64) -> Graph {
    let entry = |storage_id| DataEntry {
        dtype,
        shape: vec![extent],
        storage_id,
        device: None,
        scope: None,
    };
    let first = NodeEntry {
        node: 0,
        index: 0,
        version: 0,
    };
    let call = TvmOpParam {
        func_name: "touch".into(),
        num_inputs: 1,
        num_outputs: 1,
        flatten_data: false,
        attrs: BTreeMap::new(),
    };
    Graph {
        nodes: vec![
            Node {
                name: "x".into(),
                inputs: Vec::new(),
                call: None,
            },
            Node {
                name: "y".into(),
                inputs: vec![first],
                call: Some(call),
            },
        ],
        arg_nodes: vec![0],
        node_row_ptr: vec![0, 1, 2],
        heads: vec![NodeEntry { node: 1, ..first }],
        entries: vec![entry(0), entry(1)],
    }
}

/// Stands for a kernel that copies its first argument to the second. Safe code can only read both, so it does nothing.
fn touch(args: &[AnyView<'_>]) -> Result<Any, Error> {
    assert_eq!(args.len(), 2);
    Ok(Any::none())
}

fn executor(dtype: Dtype, extent: i64) -> Executor {
    let kernels = |_: &str| Ok(Some(Function::from_packed(touch)));
    let cpu = ExecutorDevice::new(Device::CPU).unwrap();
    Executor::new(Arc::new(graph(dtype, extent)), &kernels, vec![cpu]).unwrap()
}

#[test]
fn functions_that_cannot_check_their_arguments_are_not_found() {
    tvmspec::object::init();
    for name in [
        "ffi.ModuleLoadFromFile",
        "ffi.Module.load_from_file.so",
        "runtime.ModuleLoadFromFile",
        "runtime.TVMSetStream",
        "runtime.Device_SetStream",
        "runtime.Device_StreamFree",
        "runtime.Device_StreamSync",
        "runtime.Device_StreamSyncFromTo",
        "vm.builtin.tuple_reset_item",
        "ffi.FunctionFromExternC",
        "ffi.MakeFieldSetter",
    ] {
        // The functions that load code are registered only after the first call through the C interface.
        let loads = name.contains("ModuleLoad") || name.contains("load_from_file");
        assert!(
            loads || registry::names().contains(&name),
            "{name} is not there"
        );
        assert!(registry::lookup(name).is_none(), "{name}");
        registry::require(name).unwrap_err();
        struct Empty;
        impl ModuleKind for Empty {
            fn kind(&self) -> &str {
                "empty"
            }
            fn function(&self, _: &Module, _: &str) -> Result<Option<Function>, Error> {
                Ok(None)
            }
        }
        let module = Module::new(Empty);
        let found = module.from_environment(name, tvmspec::release::Release::LAST);
        assert!(found.is_err(), "{name}");
    }
}

#[test]
fn a_device_is_no_address_that_a_function_makes_up() {
    let made_up = || Function::from_packed(|_| Ok(wrong_typed_pointer()));
    let error = registry::register("device_api.webgpu", made_up(), true).unwrap_err();
    assert!(error.message().contains("device table"), "{error}");
    registry::register_typed("device_api.webgpu", wrong_typed_pointer).unwrap_err();
    assert!(Manager::global().api(Device::new(15, 0).kind).is_err());
}

#[test]
fn an_input_is_as_large_as_its_entry() {
    let bits = Dtype {
        code: Dtype::UINT,
        bits: 1,
        lanes: 1,
    };
    // A graph stores each of these in a byte, but a tensor packs eight into one.
    let mut executor = executor(bits, 100_000);
    let packed = Tensor::empty(&[100_000], bits).unwrap();
    executor.set_input(0, &packed).unwrap();
    executor.copy_output(0, &packed).unwrap();
    // A tensor from a machine has only the packed bytes.
    let to_device = registry::require("vm.builtin.to_device").unwrap();
    let copy = to_device
        .call([packed.clone().into(), Any::from(1), Any::from(0)])
        .unwrap();
    let copy: Tensor = tvmspec::value::cast(copy.view()).unwrap();
    if copy.dl().data != packed.dl().data {
        executor.set_input(0, &copy).unwrap_err();
        executor.copy_output(0, &copy).unwrap_err();
        let error = executor.set_input_by_reference(0, &copy).unwrap_err();
        assert_eq!(error.violation().unwrap().rule().id(), "GRF-33", "{error}");
        executor.set_output_by_reference(0, &copy).unwrap_err();
    }
    let short = Tensor::empty(&[10], bits).unwrap();
    executor.set_input(0, &short).unwrap_err();
    executor.copy_output(0, &short).unwrap_err();
    executor.output(0).unwrap().copy_out(&short).unwrap_err();
    executor.set_input_by_reference(0, &short).unwrap_err();
    executor.set_input(7, &packed).unwrap_err();
    executor.copy_output(7, &packed).unwrap_err();
}

#[test]
fn what_is_handed_in_by_reference_is_kept() {
    let float = Dtype::scalar(Dtype::FLOAT, 32);
    let mut executor = executor(float, 1 << 16);
    let input = Tensor::empty(&[1 << 16], float).unwrap();
    let output = Tensor::empty(&[1 << 16], float).unwrap();
    executor.set_input_by_reference(0, &input).unwrap();
    executor.set_output_by_reference(0, &output).unwrap();
    drop((input, output));
    executor.run().unwrap();
    let seen = executor.output(0).unwrap().to_object();
    drop(executor);
    assert_eq!(seen.to_bytes().unwrap().len(), 4 << 16);
}

#[test]
fn a_machine_is_no_address_that_a_caller_makes_up() {
    for name in ["vm.builtin.alloc_storage", "vm.builtin.alloc_shape_heap"] {
        let function = registry::require(name).unwrap();
        let error = function
            .call_packed(&[wrong_typed_pointer().view(), 8i64.into()])
            .unwrap_err();
        assert!(error.message().contains("not a machine"), "{error}");
    }
}

#[test]
fn a_view_of_a_tensor_has_no_more_elements_than_it() {
    let reshape = registry::require("vm.builtin.reshape").unwrap();
    let bits = Dtype::scalar(1, 1);
    let nine = Tensor::empty(&[9], bits).unwrap();
    let shape = tvmspec::object::Shape::new(&[16]);
    // Both shapes need two packed bytes, but sixteen bytes in the layout with one byte per element.
    let larger = reshape.call_packed(&[Any::from(nine.clone()).view(), Any::from(shape).view()]);
    larger.unwrap_err();
    let shape = tvmspec::object::Shape::new(&[3, 3]);
    let same = reshape
        .call_packed(&[Any::from(nine).view(), Any::from(shape).view()])
        .unwrap();
    assert_eq!(cast::<Tensor>(same.view()).unwrap().shape(), [3, 3]);
    // The product of the extents before the last needs more than 127 bits, and there is no element.
    let nothing = Tensor::empty(&[0], Dtype::FLOAT32).unwrap();
    let extents = [1 << 62, 1 << 62, 8, 0];
    let shape = tvmspec::object::Shape::new(&extents);
    let same = reshape
        .call_packed(&[Any::from(nothing).view(), Any::from(shape).view()])
        .unwrap();
    assert_eq!(cast::<Tensor>(same.view()).unwrap().shape(), extents);
}

#[test]
fn a_stream_is_one_of_the_device_that_is_called() {
    let simulated = Simulated::new(1);
    let (own, other) = (Device::ext_dev(0), Device::cuda(0));
    let stream = simulated.create_stream(own).unwrap();
    assert_eq!(stream.handle_for(own).unwrap(), stream.handle());
    let error = stream.handle_for(other).unwrap_err();
    assert!(error.reason().to_string().contains("DEV-38"), "{error}");
    // The driver is not called, whether it is installed or not.
    tvmspec::device::stream::set(other, stream).unwrap_err();
    assert_eq!(tvmspec::device::stream::current(other), Stream::DEFAULT);
    #[cfg(feature = "cuda")]
    {
        let cuda = tvmspec::device::cuda::cuda();
        cuda.set_stream(other, stream).unwrap_err();
        cuda.sync(other, stream).unwrap_err();
        cuda.sync_streams(other, stream, Stream::DEFAULT)
            .unwrap_err();
    }
}

#[test]
fn a_graph_that_was_not_read_is_checked_before_it_runs() {
    let float = Dtype::scalar(Dtype::FLOAT, 32);
    let rejected = |change: fn(&mut Graph)| {
        let mut graph = graph(float, 4);
        change(&mut graph);
        let kernels = |_: &str| Ok(Some(Function::from_packed(touch)));
        let cpu = ExecutorDevice::new(Device::CPU).unwrap();
        let made = Executor::new(Arc::new(graph), &kernels, vec![cpu]);
        let error = made.expect_err("an error");
        let rule = error.violation().expect("a rule").rule().id();
        format!("{rule}: {}", error.message())
    };
    for (expected, change) in [
        (
            "node_row_ptr is",
            (|graph| graph.node_row_ptr.truncate(1)) as fn(&mut Graph),
        ),
        ("node_row_ptr is", |graph| {
            graph.node_row_ptr = vec![0, 1, 9]
        }),
        ("node_row_ptr is", |graph| {
            graph.nodes[1].call.as_mut().unwrap().num_outputs = 2;
        }),
        ("entries are described", |graph| graph.entries.truncate(1)),
        ("has no output", |graph| graph.heads[0].index = 1),
        ("has no output", |graph| graph.nodes[1].inputs[0].node = 7),
        (
            "GRF-10: node 1 reads node 1: expected a node before it",
            |graph| {
                graph.nodes[1].inputs[0].node = 1;
            },
        ),
        ("is not an input", |graph| graph.arg_nodes = vec![1]),
        ("is not an input", |graph| graph.arg_nodes = vec![2]),
        ("storage ids", |graph| graph.entries[1].storage_id = 2),
    ] {
        let message = rejected(change);
        assert!(message.contains(expected), "{expected}: {message}");
    }
    let executor = executor(float, 4);
    assert!(executor.entry(1).is_some());
    assert!(executor.entry(2).is_none());
}

#[test]
fn a_shape_heap_of_several_threads_is_used_by_one_at_a_time() {
    let heap = Tensor::empty(&[2], Dtype::INT64).unwrap();
    let call = |name: &str, args: &[i64], shape: Option<[i64; 2]>| {
        let function = registry::require(&format!("vm.builtin.{name}")).unwrap();
        let shape = shape.map(|extents| Any::from(tvmspec::object::Shape::new(&extents)));
        let heap = Any::from(heap.clone());
        let all = shape.iter().chain([&heap]).map(Any::view);
        let all = all.chain(args.iter().map(|number| AnyView::from(*number)));
        function.call_packed(&all.collect::<Vec<_>>()).unwrap()
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for value in 0..2000 {
                // Both extents are stored, in cells 0 and 1.
                call("match_shape", &[2, 1, 0, 1, 1], Some([value, value]));
            }
        });
        for _ in 0..2000 {
            let made = call("make_shape", &[2, 1, 0, 1, 1], None);
            let extents = tvmspec::object::extents_of(made.view()).unwrap();
            assert_eq!(extents[0], extents[1]);
            let bytes = heap.to_bytes().unwrap();
            assert_eq!(bytes[..8], bytes[8..]);
        }
    });
}
