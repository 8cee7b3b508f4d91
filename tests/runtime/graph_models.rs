//! Whole models of real releases: recorded inputs in, recorded outputs out, bit for bit.
#![cfg(feature = "cli")]

#[path = "../support/skip.rs"]
mod skip;

use skip::skipped;
use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex};
use tvmspec::device::simulated::Simulated;
use tvmspec::function::{Error, Function};
use tvmspec::graph::executor::{Executor, ExecutorDevice};
use tvmspec::graph::{Graph, Model, debug};
use tvmspec::module::{self, Data, Module, SymbolName, Symbols, load_symbols};
use tvmspec::object::Tensor;
use tvmspec::rule::{Findings, Strictness, Violation};
use tvmspec::tensor::{Device, Params};
use tvmspec::value::legacy::{TVMValue, code};
use tvmspec::value::{Any, AnyView, DLDataType, DLTensor, cast, dtype_from_text};
use tvmspec::wire::Cursor;

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("golden/graph")
        .join(name)
}

/// Model, and the graph that it was exported with; the last one is only there in parts.
const MODELS: [(&str, &str, bool); 7] = [
    ("v0.8/mlp", "mlp.json", true),
    ("v0.8/multi_out", "multi-out.json", true),
    ("v0.8/dtypes", "dtypes.json", true),
    ("v0.19/mlp", "mlp-0.19.json", true),
    ("v0.19/multi_out", "multi-out-0.19.json", true),
    ("v0.19/dtypes", "dtypes-0.19.json", true),
    ("v0.8/resnet8", "resnet8.json", false),
];

/// The libraries are code for one machine.
fn can_run() -> bool {
    let can = cfg!(all(target_os = "linux", target_arch = "x86_64"));
    if !can {
        skipped("the models are compiled for x86-64 Linux");
    }
    can
}

#[test]
fn models_give_the_recorded_outputs_from_one_library() {
    if !can_run() {
        return;
    }
    for (name, _, whole) in MODELS {
        if whole {
            // SAFETY: a golden of a release, with the graph that it was compiled for.
            let model = unsafe { Model::load(golden(&format!("models/{name}.so"))) }.unwrap();
            check(name, model);
        }
    }
}

#[test]
fn models_give_the_recorded_outputs_from_graph_params_and_kernels() {
    if !can_run() {
        return;
    }
    for (name, graph, _) in MODELS {
        check(name, in_parts(name, graph));
    }
}

fn in_parts(name: &str, graph: &str) -> Model {
    let graph = std::fs::read_to_string(golden(graph)).unwrap();
    let params = std::fs::read(golden(&format!("models/{name}.params"))).unwrap();
    let kernels = golden(&format!("models/{name}.kernels.so"));
    // SAFETY: a golden of a release, with the graph that it was compiled for.
    unsafe { Model::from_parts(&graph, &params, kernels, &[Device::CPU]) }.unwrap()
}

/// Twice, because the second run finds the memory of the first.
fn check(name: &str, mut model: Model) {
    let io = recorded(name);
    let inputs: Vec<(&str, &Tensor)> = io
        .iter()
        .filter_map(|(name, tensor)| Some((name.strip_prefix("in_")?, tensor)))
        .collect();
    for _ in 0..2 {
        let outputs = model.run(&inputs).unwrap();
        assert_eq!(outputs.len(), io.len() - inputs.len(), "{name}");
        for (index, output) in outputs.iter().enumerate() {
            let expected = &io[&format!("out_{index}")];
            assert_eq!(output.shape(), expected.shape(), "{name}, output {index}");
            let same = output.to_bytes().unwrap() == expected.to_bytes().unwrap();
            assert!(same, "{name}: output {index} differs from the recorded one");
        }
    }
}

#[test]
fn the_program_prints_the_recorded_outputs() {
    if !can_run() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for (name, graph, whole) in MODELS {
        let model = |end: &str| golden(&format!("models/{name}{end}"));
        let out = folder.path().join(name.replace('/', "-") + ".npz");
        let mut parts = Command::new(env!("CARGO_BIN_EXE_tvmspec"));
        parts.arg("run").arg("--graph").arg(golden(graph));
        parts.arg("--params").arg(model(".params"));
        parts.arg("--lib").arg(model(".kernels.so"));
        let mut one = Command::new(env!("CARGO_BIN_EXE_tvmspec"));
        one.arg("run").arg(model(".so"));
        for mut command in [Some(parts), whole.then_some(one)].into_iter().flatten() {
            command.arg("--inputs").arg(model(".io.npz"));
            let ran = command.arg("-o").arg(&out).output().unwrap();
            let message = String::from_utf8_lossy(&ran.stderr);
            assert!(ran.status.success(), "{name}: {message}");
            let (wrote, io) = (read_npz(&out), recorded(name));
            for (output, expected) in io.iter().filter(|(name, _)| name.starts_with("out_")) {
                let same = wrote[output].to_bytes().unwrap() == expected.to_bytes().unwrap();
                assert!(same, "{name}: {output} differs from the recorded one");
            }
        }
    }
}

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
fn what_is_handed_in_is_checked() {
    if !can_run() {
        return;
    }
    // SAFETY: a golden of a release, with the graph that it was compiled for.
    let mut model = unsafe { Model::load(golden("models/v0.8/mlp.so")) }.unwrap();
    let x = recorded("v0.8/mlp").remove("in_x").unwrap();
    let float = x.dl().dtype;
    let message = |result: Result<Vec<Tensor>, Error>| result.map(drop).unwrap_err().to_string();
    let unset = message(model.run(&[]));
    assert!(unset.contains("never set: x"), "{unset}");
    let name = message(model.run(&[("data", &x)]));
    assert!(name.contains("no input `data`; it has 4: x, "), "{name}");
    let int = DLDataType { code: 0, ..float };
    let int = Tensor::empty(x.shape(), int).unwrap();
    let dtype = message(model.run(&[("x", &int)]));
    assert!(dtype.contains("input `x` is float32"), "{dtype}");
    assert!(dtype.contains("not int32"), "{dtype}");
    let flat = Tensor::empty(&[x.shape().iter().product()], float).unwrap();
    let shape = message(model.run(&[("x", &flat)]));
    assert!(shape.starts_with("TypeError: input `x` is"), "{shape}");
    // None of this broke it.
    check("v0.8/mlp", model);
}

#[test]
fn a_library_without_functions_is_rejected_with_all_names() {
    if !can_run() {
        return;
    }
    let graph = std::fs::read_to_string(golden("resnet8.json")).unwrap();
    let library = golden("models/v0.8/mlp.kernels.so");
    // SAFETY: a golden of a release; nothing of it is called.
    let made = unsafe { Model::from_parts(&graph, &[], library, &[Device::CPU]) };
    let Err(error) = made else {
        panic!("ran resnet8 on the kernels of mlp")
    };
    let missing = error.message().matches("tvmgen_default_fused").count();
    assert!(missing > 5, "{error}");
}

/// The kernels of `samples/v0.8/graph-debug`, whose library was not kept.
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
        // Of a pair, of which it uses the second.
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
                // SAFETY: an argument has as many extents as it says.
                let count = unsafe { tensor.elements() } as usize;
                // SAFETY: the executor hands in compact float32 tensors on the host.
                unsafe { std::slice::from_raw_parts(tensor.data.cast(), count) }
            })
            .collect();
        let (ins, outs) = slices.split_at(slices.len() - outputs);
        let mut results: Vec<Vec<f32>> = outs.iter().map(|out| out.to_vec()).collect();
        kernel(ins, &mut results);
        for (tensor, result) in tensors[ins.len()..].iter().zip(&results) {
            // SAFETY: the executor keeps its arguments for the call.
            let to: *mut f32 = unsafe { (**tensor).data }.cast();
            // SAFETY: an output of as many elements, on the host; no slice is read any more.
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
    let cpu = ExecutorDevice::of(Device::CPU).unwrap();
    let mut executor = Executor::new(Arc::clone(&graph), &kernels, vec![cpu]).unwrap();
    let params = std::fs::read(golden("models/v0.8/graph-debug/params.bin")).unwrap();
    let released = std::fs::read(golden("models/v0.8/graph-debug/output_tensors.params")).unwrap();
    let released = tensors(&released);
    let read = Params::detect(&mut Cursor::new(&params), &mut Findings::default()).unwrap();
    executor.load_params(&read.0).unwrap();
    let x = &released["x____0"];
    let float = DLDataType {
        code: 2,
        bits: 32,
        lanes: 1,
    };
    let input = Tensor::empty(&[2, 3], float).unwrap();
    input.fill(x).unwrap();
    let index = executor.require_input("x").unwrap();
    executor.set_input(index, &input).unwrap();

    let folder = tempfile::tempdir().unwrap();
    let dumped = debug::dump(&mut executor, folder.path()).unwrap();
    assert!(dumped.ends_with("_tvmdbg_device_CPU_0"));
    let ours = std::fs::read(dumped.join("output_tensors.params")).unwrap();
    let ours = tensors(&ours);
    let names: Vec<&String> = ours.keys().collect();
    assert_eq!(names, released.keys().collect::<Vec<_>>());
    for (name, bytes) in &ours {
        assert_eq!(bytes, &released[name], "{name}");
    }

    let json = |path: PathBuf| -> serde_json::Value {
        serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
    };
    let mut ours = json(dumped.join("_tvmdbg_graph_dump.json"));
    let theirs = json(golden("models/v0.8/graph-debug/_tvmdbg_graph_dump.json"));
    // The quirk: `shape` (and `T`) of node i are those of entry i.
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
    let ours = json(dumped.join("_tvmdbg_execution_trace.json"));
    let theirs = json(golden(
        "models/v0.8/graph-debug/_tvmdbg_execution_trace.json",
    ));
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
    // The simulated device does nothing before it must.
    for seed in 0..20 {
        let api: &'static Simulated = Box::leak(Box::new(Simulated::new(seed)));
        // SAFETY: its memory keeps the rules, and is not the host's, as of no device of this type.
        let other = unsafe { ExecutorDevice::with(Device::ext_dev(0), api) };
        let places = vec![ExecutorDevice::of(Device::CPU).unwrap(), other];
        let mut executor = Executor::new(Arc::clone(&graph), &kernels, places).unwrap();
        let float = DLDataType {
            code: 2,
            bits: 32,
            lanes: 1,
        };
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

fn recorded(model: &str) -> BTreeMap<String, Tensor> {
    read_npz(&golden(&format!("models/{model}.io.npz")))
}

fn read_npz(path: &Path) -> BTreeMap<String, Tensor> {
    let mut archive = zip::ZipArchive::new(std::fs::File::open(path).unwrap()).unwrap();
    let mut arrays = BTreeMap::new();
    for index in 0..archive.len() {
        let mut member = archive.by_index(index).unwrap();
        let name = member.name().unwrap().trim_end_matches(".npy").to_owned();
        let mut bytes = Vec::new();
        member.read_to_end(&mut bytes).unwrap();
        let mut data = bytes.as_slice();
        let header = npyz::NpyHeader::from_reader(&mut data).unwrap();
        let npyz::DType::Plain(kind) = header.dtype() else {
            panic!("{name} holds records")
        };
        let kind = kind.to_string();
        let (code, width) = kind.trim_start_matches(['<', '|']).split_at(1);
        let bits = 8 * width.parse::<u32>().unwrap();
        let dtype = match code {
            "b" => "bool".to_owned(),
            "f" => format!("float{bits}"),
            "i" => format!("int{bits}"),
            _ => format!("uint{bits}"),
        };
        let shape: Vec<i64> = header.shape().iter().map(|extent| *extent as i64).collect();
        let tensor = Tensor::empty(&shape, dtype_from_text(&dtype).unwrap()).unwrap();
        tensor.fill(data).unwrap();
        arrays.insert(name, tensor);
    }
    arrays
}

/// A library with parameters, as `link-params` compiles one: a function returns the address of each.
struct Linked {
    context: Box<[u8; 8]>,
}

/// What its function reads: parameters by storage id.
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
    // SAFETY: the convention has a place for the result.
    unsafe { result.write(TVMValue { v_handle }) };
    // SAFETY: and one for its code.
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
        let tensor = Tensor::empty(record.shape(), DLDataType::scalar(2, 32)).unwrap();
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
        let executor = create.call(&args).unwrap();
        let executor = cast::<Module>(executor.view()).unwrap();
        let call = |name: &str, args: &[Any]| {
            let args: Vec<AnyView<'_>> = args.iter().map(Any::view).collect();
            executor.require(name).unwrap().call(&args)
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
        // Its memory may be constant.
        let linked = call("get_input", &[named.into()]).unwrap();
        let error = call("set_input", &[named.into(), linked]).unwrap_err();
        assert!(
            error.message().contains("is linked into the library"),
            "{error}"
        );
    }
}
