//! Messages of a model about files that cannot be opened and about missing arguments.
#![cfg(feature = "cli")]

use tvmspec::device::Device;
use tvmspec::function::{Function, registry};
use tvmspec::graph::{Graph, Model, Plan};
use tvmspec::rule::Findings;
use tvmspec::value::{Any, AnyView, cast};

/// `x` and `f(x)`: int8, one element each.
const GRAPH: &str = r#"{"nodes": [{"op": "null", "name": "x", "inputs": []}, {"op": "tvm_op", "name": "f", "inputs": [[0, 0, 0]],
    "attrs": {"func_name": "f", "num_inputs": "1", "num_outputs": "1", "flatten_data": "0"}}],
    "arg_nodes": [0], "node_row_ptr": [0, 1, 2], "heads": [[1, 0, 0]],
    "attrs": {"dltype": ["list_str", ["int8", "int8"]], "storage_id": ["list_int", [0, 1]], "shape": ["list_shape", [[1], [1]]]}}"#;

fn graph(text: &str) -> Graph {
    Graph::read(text, &mut Findings::default()).unwrap()
}

#[test]
fn a_library_that_does_not_open_is_a_runtime_error_with_its_path() {
    // SAFETY: no library is loaded.
    let error = unsafe { Model::load("no/such/library.so") }.err().unwrap();
    assert_eq!(error.kind(), "RuntimeError");
    assert!(
        error.message().starts_with("no/such/library.so: "),
        "{error}"
    );
    // SAFETY: no library is loaded.
    let error = unsafe { Model::from_parts(GRAPH, b"", "no/such/library.so", &[Device::CPU]) };
    let error = error.err().unwrap();
    assert_eq!(error.kind(), "RuntimeError");
    assert!(
        error.message().starts_with("no/such/library.so: "),
        "{error}"
    );
}

#[test]
fn a_factory_makes_no_debugger_of_too_few_arguments() {
    let create = registry::require("tvm.graph_executor_factory.create").unwrap();
    let call = |function: &Function, args: &[Any]| {
        let views: Vec<AnyView<'_>> = args.iter().map(Any::view).collect();
        function.call_packed(&views)
    };
    let kernels = Any::from(tvmspec::module::Module::new(Kernels));
    let factory = call(&create, &[GRAPH.into(), kernels, "mod".into()]).unwrap();
    let factory: tvmspec::module::Module = cast(factory.view()).unwrap();
    let debug = factory.require("debug_create").unwrap();
    for few in [vec![], vec!["mod".into()]] {
        assert_eq!(
            call(&debug, &few).unwrap_err().kind(),
            "TypeError",
            "{}",
            few.len()
        );
    }
    let device = Any::from(tvmspec::tensor::Device::CPU);
    assert!(call(&debug, &["mod".into(), device.clone()]).is_ok());
    assert!(call(&debug, &["other".into(), device]).is_err());
}

struct Kernels;

impl tvmspec::module::ModuleKind for Kernels {
    fn kind(&self) -> &str {
        "kernels"
    }

    fn function(
        &self,
        _: &tvmspec::module::Module,
        name: &str,
    ) -> Result<Option<Function>, tvmspec::function::Error> {
        Ok((name == "f").then(|| Function::from_packed(|_| Ok(Any::none()))))
    }
}

/// GRF-22: entries with the same storage share a pool. It has the scope of the first entry that states one.
#[test]
fn the_scope_of_a_pool_is_that_of_the_first_entry_that_has_one() {
    let text = |scopes: &str| {
        GRAPH
            .replace("\"list_int\", [0, 1]", "\"list_int\", [0, 0]")
            .replace(
                "\"attrs\": {\"dltype\"",
                &format!("\"attrs\": {{\"storage_scope\": [\"list_str\", [{scopes}]], \"dltype\""),
            )
    };
    for (scopes, scope) in [
        (r#""", """#, ""),
        (r#""global.vtcm", "global.vtcm""#, "global.vtcm"),
        (r#""", "global.vtcm""#, "global.vtcm"),
        (r#""global.vtcm", """#, "global.vtcm"),
    ] {
        let plan = Plan::from_graph(&graph(&text(scopes))).unwrap();
        assert_eq!(plan.pools.len(), 1);
        assert_eq!(plan.pools[0].scope, scope, "{scopes}");
        assert_eq!(plan.total_bytes(), 1);
    }
    assert_eq!(Plan::from_graph(&graph(GRAPH)).unwrap().total_bytes(), 2);
}
