//! Parameters that a library links into an executor, and inputs that are read-only.

use super::{touch, wrong_typed_pointer};
use std::sync::Arc;
use tvmspec::function::{Error, Function, registry};
use tvmspec::graph::Graph;
use tvmspec::graph::executor::{Executor, ExecutorDevice};
use tvmspec::module::{Module, ModuleKind};
use tvmspec::object::Tensor;
use tvmspec::rule::Kind;
use tvmspec::tensor::{Device, Dtype};
use tvmspec::value::{Any, AnyView, cast};

/// Module in safe code that returns the address of a parameter.
struct Liar;

impl ModuleKind for Liar {
    fn kind(&self) -> &str {
        "liar"
    }

    fn function(&self, _: &Module, name: &str) -> Result<Option<Function>, Error> {
        Ok(match name {
            "_lookup_linked_param" => Some(Function::from_typed(|_: i64| wrong_typed_pointer())),
            "touch" => Some(Function::from_packed(touch)),
            _ => None,
        })
    }
}

#[test]
fn an_address_of_a_parameter_is_followed_for_compiled_code_alone() {
    let json = r#"{"nodes": [{"op": "null", "name": "x", "inputs": []}], "arg_nodes": [0], "node_row_ptr": [0, 1],
        "heads": [[0, 0, 0]], "attrs": {"dltype": ["list_str", ["float32"]], "storage_id": ["list_int", [0]],
        "shape": ["list_shape", [[4]]]}}"#;
    let create = registry::require("tvm.graph_executor.create").unwrap();
    let library = Module::new(Liar);
    let lookup = Function::from_packed(|_| Ok(wrong_typed_pointer()));
    for lookup in [Any::none(), lookup.into()] {
        let args = [
            json.into(),
            library.clone().into(),
            lookup,
            1i64.into(),
            0i64.into(),
        ];
        let args: Vec<AnyView<'_>> = args.iter().map(Any::view).collect();
        let error = create.call_packed(&args).unwrap_err();
        assert!(error.kind() == "TypeError", "{error}");
    }
}

/// Creates an executor that lists its input `x` twice. The first lookup returns `parameter`, as a tensor that is linked into a
/// library.
fn linked(parameter: &Tensor) -> Module {
    let json = r#"{"nodes": [{"op": "null", "name": "x", "inputs": []}], "arg_nodes": [0, 0], "node_row_ptr": [0, 1],
        "heads": [[0, 0, 0]], "attrs": {"dltype": ["list_str", ["int64"]], "storage_id": ["list_int", [0]],
        "shape": ["list_shape", [[4]]]}}"#;
    let create = registry::require("tvm.graph_executor.create").unwrap();
    let once = std::sync::Mutex::new(Some(parameter.clone()));
    let lookup = Function::from_packed(move |_| {
        let found = once.lock().unwrap().take();
        Ok(found.map_or(Any::none(), Any::from))
    });
    let library = Module::new(Liar);
    let made = create.call([
        json.into(),
        library.into(),
        lookup.into(),
        Any::from(1),
        Any::from(0),
    ]);
    cast(made.unwrap().view()).unwrap()
}

#[test]
fn nothing_writes_to_a_linked_parameter() {
    let int64 = Dtype::INT64;
    let parameter = Tensor::empty(&[4], int64).unwrap();
    let bytes: Vec<u8> = (1..=4i64).flat_map(i64::to_le_bytes).collect();
    parameter.fill(&bytes).unwrap();
    let executor = linked(&parameter);
    let call = |name: &str, args: &[Any]| {
        let args: Vec<AnyView<'_>> = args.iter().map(Any::view).collect();
        executor.require(name).unwrap().call_packed(&args)
    };
    let other = Tensor::empty(&[4], int64).unwrap();
    for index in [0i64, 1] {
        let error = call("set_input", &[index.into(), other.clone().into()]).unwrap_err();
        assert!(
            error.message().contains("is linked into the library"),
            "{error}"
        );
    }
    let shown = call("get_input", &[0i64.into()]).unwrap();
    let shown: Tensor = cast(shown.view()).unwrap();
    let builtin = |name: &str, args: &[Any]| {
        let args: Vec<AnyView<'_>> = args.iter().map(Any::view).collect();
        let name = format!("vm.builtin.{name}");
        registry::require(&name).unwrap().call_packed(&args)
    };
    let shape = tvmspec::object::Shape::new(&[2, 2]);
    let view = builtin("reshape", &[shown.clone().into(), shape.into()]).unwrap();
    let view: Tensor = cast(view.view()).unwrap();
    let same = builtin("ensure_zero_offset", &[shown.clone().into()]).unwrap();
    let same: Tensor = cast(same.view()).unwrap();
    for tensor in [&shown, &view, &same] {
        assert!(tensor.is_read_only());
        let error = tensor.fill(&[0; 32]).unwrap_err();
        assert!(error.message().contains("read-only"), "{error}");
    }
    // Target of a copy, replacement of an output, and the heap that stores extents.
    let shown = Any::from(shown);
    let copied = call("get_output", &[0i64.into(), shown.clone()]);
    let in_place = call("set_output_zero_copy", &[0i64.into(), shown.clone()]);
    let number = |value: i64| Any::from(value);
    let (store, text) = ([number(1), number(0)], Any::from(""));
    let [code, cell] = store;
    let match_value = [number(9), shown.clone(), code.clone(), cell.clone(), text];
    let stored = builtin("match_prim_value", &match_value);
    let nine = Any::from(tvmspec::object::Shape::new(&[9]));
    let match_shape = [nine, shown.clone(), number(1), code.clone(), cell.clone()];
    let shaped = builtin("match_shape", &match_shape);
    for rejected in [copied, in_place, stored, shaped] {
        let error = rejected.unwrap_err();
        assert!(error.message().contains("read-only"), "{error}");
    }
    // It can be read like any other tensor.
    let third = builtin("make_prim_value", &[shown.clone(), code, number(2)]).unwrap();
    assert_eq!(cast::<i64>(third.view()).unwrap(), 3);
    call("set_input_zero_copy", &[0i64.into(), shown]).unwrap();
    call("run", &[]).unwrap();
    assert_eq!(parameter.to_bytes().unwrap(), bytes);
}

#[test]
fn a_read_only_input_is_not_where_a_node_writes() {
    // `__nop` merges the entry that `touch` writes with an input, in one pool.
    let json = r#"{"nodes": [{"op": "null", "name": "x", "inputs": []},
        {"op": "tvm_op", "name": "y", "inputs": [],
         "attrs": {"func_name": "touch", "num_inputs": "0", "num_outputs": "2", "flatten_data": "0"}},
        {"op": "tvm_op", "name": "z", "inputs": [[0, 0, 0], [1, 0, 0]],
         "attrs": {"func_name": "__nop", "num_inputs": "2", "num_outputs": "1", "flatten_data": "0"}}],
        "arg_nodes": [0], "node_row_ptr": [0, 1, 3, 4], "heads": [[2, 0, 0]],
        "attrs": {"dltype": ["list_str", ["int64", "int64", "int64", "int64"]], "storage_id": ["list_int", [0, 0, 1, 0]],
        "shape": ["list_shape", [[4], [4], [4], [4]]]}}"#;
    let graph = Graph::read(json, &mut tvmspec::rule::Findings::default()).unwrap();
    let kernels = |_: &str| Ok(Some(Function::from_packed(touch)));
    let cpu = ExecutorDevice::new(Device::CPU).unwrap();
    let mut executor = Executor::new(Arc::new(graph), &kernels, vec![cpu]).unwrap();
    let int64 = Dtype::INT64;
    let parameter = Tensor::empty(&[4], int64).unwrap();
    let constant = linked(&parameter);
    let constant = constant.require("get_input").unwrap();
    let constant = constant.call((0i64,)).unwrap();
    let constant: Tensor = cast(constant.view()).unwrap();
    for error in [
        executor.set_input_by_reference(0, &constant).unwrap_err(),
        executor.set_output_by_reference(0, &constant).unwrap_err(),
    ] {
        assert!(error.message().contains("read-only"), "{error}");
        let broken = error.violation().unwrap();
        assert_eq!(
            (broken.rule().id(), broken.kind()),
            ("OBJ-12", Kind::Unsupported)
        );
    }
    executor.set_input_by_reference(0, &parameter).unwrap();
    // `__nop` alone writes nothing, so its output may share memory with the read-only input.
    let json = json.replace("\"touch\"", "\"__nop\"");
    let graph = Graph::read(&json, &mut tvmspec::rule::Findings::default()).unwrap();
    let cpu = ExecutorDevice::new(Device::CPU).unwrap();
    let mut executor = Executor::new(Arc::new(graph), &kernels, vec![cpu]).unwrap();
    executor.set_input_by_reference(0, &constant).unwrap();
}
