//! Memory of models: inputs by reference, two devices, and linked parameters.

use super::{can_run, golden, recorded};
use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex};
use tvmspec::device::simulated::Simulated;
use tvmspec::function::{Error, Function};
use tvmspec::graph::executor::{Executor, ExecutorDevice};
use tvmspec::graph::{Graph, Model};
use tvmspec::module::{self, Data, Module, SymbolName, Symbols, load_symbols};
use tvmspec::object::Tensor;
use tvmspec::rule::{Findings, Strictness, Violation};
use tvmspec::tensor::{Device, Dtype, Params};
use tvmspec::value::legacy::{TVMValue, code};
use tvmspec::value::{Any, AnyView, DLTensor, cast};
use tvmspec::wire::Cursor;

#[test]
fn memory_by_reference_is_read_and_written_in_place() {
    if !can_run() {
        return;
    }
    let io = recorded("v0.8/mlp");
    let (x, expected) = (&io["in_x"], &io["out_0"]);
    // SAFETY: a golden of a release, with the graph that it was compiled for.
    let model = unsafe { Model::load_on(golden("models/v0.8/mlp.so"), &[Device::CPU]) };
    let mut model = model.unwrap();
    let executor = model.executor();
    let index = executor.input_index("x").unwrap();
    assert!(index < executor.input_count());
    assert_eq!(executor.input_index("y"), None);
    assert!(executor.planned_bytes() >= expected.to_bytes().unwrap().len() as u64);
    let fresh = || Tensor::empty(expected.shape(), expected.dl().dtype).unwrap();
    let (own, copied) = (fresh(), fresh());
    executor.set_input_by_reference(index, x).unwrap();
    executor.run().unwrap();
    executor.copy_output(0, &copied).unwrap();
    let flat = Tensor::empty(&[1], expected.dl().dtype).unwrap();
    assert!(executor.copy_output(0, &flat).is_err());
    executor.set_output_by_reference(0, &own).unwrap();
    executor.run().unwrap();
    for output in [copied, own] {
        assert_eq!(output.to_bytes().unwrap(), expected.to_bytes().unwrap());
    }
}

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

/// Library with parameters as `link-params` compiles it: a function returns the address of each parameter.
struct Linked {
    context: Box<[u8; 8]>,
}

/// Parameters that its function returns, by storage id.
static PARAMETERS: Mutex<BTreeMap<i64, Tensor>> = Mutex::new(BTreeMap::new());

unsafe extern "C-unwind" fn lookup_linked_param(
    args: *const TVMValue,
    _: *const c_int,
    _: c_int,
    result: *mut TVMValue,
    result_code: *mut c_int,
    _: *mut c_void,
) -> c_int {
    // SAFETY: there is a first argument.
    let id = unsafe { *args };
    // SAFETY: the first argument is the storage id, an integer.
    let id = unsafe { id.v_int64 };
    let parameters = PARAMETERS.lock().unwrap();
    let v_handle = parameters
        .get(&id)
        .map_or(std::ptr::null_mut(), |tensor| tensor.dl().data);
    // SAFETY: the convention has an out pointer for the result.
    unsafe { result.write(TVMValue { v_handle }) };
    // SAFETY: there is also an out pointer for its code.
    unsafe { result_code.write(code::HANDLE) };
    0
}

impl Symbols for Linked {
    fn address(&self, name: SymbolName<'_>) -> Option<NonNull<c_void>> {
        match name.text() {
            "_lookup_linked_param" => NonNull::new(lookup_linked_param as *mut c_void),
            "__tvm_module_ctx" => Some(NonNull::from(&*self.context).cast()),
            _ => None,
        }
    }

    fn data(&self, _: SymbolName<'_>) -> Result<Option<Data<'_>>, Violation> {
        Ok(None)
    }

    fn is_code(&self, address: NonNull<c_void>) -> bool {
        address != NonNull::from(&*self.context).cast()
    }

    fn is_writable(&self, _: NonNull<c_void>, _: usize) -> bool {
        false
    }

    fn list(&self) -> Vec<(String, bool)> {
        Vec::new()
    }

    fn describe(&self) -> String {
        "linked parameters".to_owned()
    }
}

#[test]
fn linked_parameters_are_used_in_place() {
    if !can_run() {
        return;
    }
    let text = std::fs::read_to_string(golden("mlp.json")).unwrap();
    let graph = Graph::read(&text, &mut Findings::default()).unwrap();
    let file = std::fs::read(golden("models/v0.8/mlp.params")).unwrap();
    let (params, _) = Params::detect(&mut Cursor::new(&file), &mut Findings::default()).unwrap();
    let mut memory = BTreeMap::new();
    let mut named = "";
    for (name, record) in params.iter() {
        let (node, known) = graph.inputs().find(|(_, known)| *known == name).unwrap();
        let entry = &graph.entries[graph.node_row_ptr[node]];
        let tensor = Tensor::empty(record.shape(), Dtype::FLOAT32).unwrap();
        tensor.fill(record.data()).unwrap();
        memory.insert(entry.storage_id as i64, tensor);
        named = known;
    }
    // SAFETY: a golden of a release, with the graph that it was compiled for.
    let kernels = unsafe { module::load(golden("models/v0.8/mlp.kernels.so")) }.unwrap();
    let io = recorded("v0.8/mlp");
    let by_function = memory.clone();
    let lookup = Function::from_packed(move |args| {
        let found = by_function.get(&i64::try_from(args[1])?).cloned();
        Ok(found.map_or(Any::none(), Any::from))
    });
    PARAMETERS.lock().unwrap().extend(memory);
    let linked = Arc::new(Linked {
        context: Box::new([0; 8]),
    });
    // SAFETY: its one function follows the convention that the other symbol names, and returns memory that stays.
    let library = unsafe { load_symbols(linked, Strictness::Lenient) }.unwrap();
    let library = library.module;
    library.import(kernels.clone()).unwrap();
    for (library, lookup) in [(library, Any::none()), (kernels, lookup.into())] {
        let create = tvmspec::function::registry::require("tvm.graph_executor.create").unwrap();
        let args = [
            text.as_str().into(),
            library.into(),
            lookup,
            1i64.into(),
            0i64.into(),
        ];
        let args: Vec<AnyView<'_>> = args.iter().map(Any::view).collect();
        let executor = create.call_packed(&args).unwrap();
        let executor = cast::<Module>(executor.view()).unwrap();
        let call = |name: &str, args: &[Any]| {
            let args: Vec<AnyView<'_>> = args.iter().map(Any::view).collect();
            executor.require(name).unwrap().call_packed(&args)
        };
        for (name, tensor) in &io {
            if let Some(name) = name.strip_prefix("in_") {
                call("set_input", &[name.into(), tensor.clone().into()]).unwrap();
            }
        }
        call("run", &[]).unwrap();
        let output = call("get_output", &[0i64.into()]).unwrap();
        let output = cast::<Tensor>(output.view()).unwrap();
        assert_eq!(output.to_bytes().unwrap(), io["out_0"].to_bytes().unwrap());
        // The memory of a linked parameter may be constant.
        let linked = call("get_input", &[named.into()]).unwrap();
        let error = call("set_input", &[named.into(), linked]).unwrap_err();
        assert!(
            error.message().contains("is linked into the library"),
            "{error}"
        );
    }
}
