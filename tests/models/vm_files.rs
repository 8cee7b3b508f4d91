//! Executables that are loaded from files: their descriptions, and the lookup of their functions.
#![cfg(feature = "cli")]

use std::path::PathBuf;
use std::sync::Arc;
use tvmspec::device::Device;
use tvmspec::function::{Error, Function, registry};
use tvmspec::module::{Module, ModuleKind};
use tvmspec::object::{Array, Tensor, sequence_of};
use tvmspec::release::Layout;
use tvmspec::value::{Any, AnyPayload, AnyView, RawAny, cast, index};
use tvmspec::vm::{LoadedExecutable, VirtualMachine};

fn golden(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("golden/vm")
        .join(name)
}

fn call(function: &Function, args: &[Any]) -> Result<Any, Error> {
    let views: Vec<AnyView<'_>> = args.iter().map(Any::view).collect();
    function.call_packed(&views)
}

#[test]
fn a_file_is_loaded_by_every_registered_loader() {
    let path = golden("machine.vmexec");
    let path = path.to_str().unwrap();
    for (name, kind) in [
        ("relax.ExecutableLoadFromFile", "relax.VMExecutable"),
        (
            "ffi.Module.load_from_file.relax.VMExecutable",
            "relax.VMExecutable",
        ),
        (
            "ffi.Module.load_from_file.relax.Executable",
            "relax.Executable",
        ),
    ] {
        let loader = registry::require(name).unwrap();
        let module: Module = cast(call(&loader, &[path.into()]).unwrap().view()).unwrap();
        assert_eq!(module.kind(), kind, "{name}");
        let gone = call(&loader, &["no/such.vmexec".into()]).unwrap_err();
        assert_eq!(gone.kind(), "RuntimeError", "{name}");
        assert!(gone.message().contains("no/such.vmexec"), "{gone}");
        for args in [
            vec![],
            vec![7i64.into()],
            vec![path.into(), "vmexec".into()],
        ] {
            let refused = call(&loader, &args).unwrap_err();
            assert_eq!(refused.kind(), "TypeError", "{name}");
        }
    }
}

#[test]
fn an_executable_says_how_much_it_has() {
    let loader = registry::require("relax.ExecutableLoadFromFile").unwrap();
    let path = golden("machine.vmexec");
    let module = call(&loader, &[path.to_str().unwrap().into()]).unwrap();
    let module: Module = cast(module.view()).unwrap();
    let stats = call(&module.require("stats").unwrap(), &[]).unwrap();
    let stats = String::try_from(&stats).unwrap();
    // `tvmspec dump golden/vm/machine.vmexec` lists the same numbers.
    for line in ["functions: 18", "packed: 11", "compiled: 0", "constants: 1"] {
        assert!(
            stats.lines().any(|own| own.trim() == line),
            "{line} in {stats}"
        );
    }
}

/// Module with one function, named `self.0`, that returns `self.1`.
struct Single(&'static str, i64);

impl ModuleKind for Single {
    fn kind(&self) -> &str {
        "single"
    }

    fn function(&self, _: &Module, name: &str) -> Result<Option<Function>, Error> {
        let answer = self.1;
        Ok((name == self.0).then(|| Function::from_packed(move |_| Ok(answer.into()))))
    }
}

fn machine(imports: Vec<Module>) -> VirtualMachine {
    tvmspec::object::init();
    let loaded = LoadedExecutable::from_file(golden("machine.vmexec"), Layout::V0_22).unwrap();
    VirtualMachine::new(Arc::new(loaded), imports, &[Device::CPU]).unwrap()
}

/// VM-11: imports are searched in order, then the registry.
#[test]
fn an_import_has_a_function_before_another_and_before_the_registry() {
    let size = |machine: &VirtualMachine| {
        let three = Any::from(Array::new(vec![1i64.into(), 2i64.into(), 3i64.into()]));
        machine.call("size", (three,)).unwrap()
    };
    let own = |number| Module::new(Single("ffi.ArraySize", number));
    let other = || Module::new(Single("other", 0));
    for (imports, answer) in [
        (vec![], 3),
        (vec![other()], 3),
        (vec![own(40)], 40),
        (vec![own(40), own(50)], 40),
        (vec![other(), own(50)], 50),
    ] {
        let answered = size(&machine(imports));
        assert_eq!(i64::try_from(&answered).unwrap(), answer);
    }
    // The imports of an import are searched too.
    let outer = other();
    outer.import(own(60)).unwrap();
    assert_eq!(i64::try_from(&size(&machine(vec![outer]))).unwrap(), 60);
}

#[test]
fn a_handle_that_is_no_machine_is_rejected() {
    let tuple = machine(vec![]).call("three", (1, 2, 3));
    assert_eq!(sequence_of(tuple.unwrap().view()).unwrap().len(), 3);
    let invoke = registry::require("vm.builtin.invoke_closure").unwrap();
    for handle in [std::ptr::null_mut(), std::ptr::without_provenance_mut(64)] {
        let raw = RawAny::of(index::OPAQUE, AnyPayload { ptr: handle });
        // SAFETY: a pointer, which is not dereferenced.
        let handle = unsafe { AnyView::from_raw(raw) };
        let error = invoke.call_packed(&[handle, AnyView::none()]).unwrap_err();
        assert_eq!(error.kind(), "RuntimeError", "{error}");
    }
    assert_eq!(call(&invoke, &[]).unwrap_err().kind(), "RuntimeError");
}

/// Module that calls the registry's function of the same name, like compiled code: with the handle of the machine that runs it.
struct PassesOn;

impl ModuleKind for PassesOn {
    fn kind(&self) -> &str {
        "passes-on"
    }

    fn function(&self, _: &Module, name: &str) -> Result<Option<Function>, Error> {
        const HEAP: &str = "vm.builtin.alloc_shape_heap";
        Ok((name == HEAP)
            .then(|| Function::from_packed(|args| registry::require(HEAP)?.call_packed(args))))
    }
}

#[test]
fn a_builtin_of_the_registry_finds_the_machine_by_its_handle() {
    let heap = machine(vec![Module::new(PassesOn)]).call("heap", (3,));
    let heap: Tensor = cast(heap.unwrap().view()).unwrap();
    assert_eq!(heap.shape(), [3]);
}

/// VM-28: the number of a function is only valid in the table of one executable.
#[test]
fn a_closure_is_one_of_its_executable() {
    let (one, other) = (machine(vec![]), machine(vec![]));
    let bound = one.call("bind", (3,)).unwrap();
    let call = |machine: &VirtualMachine| machine.call("invoke", (&bound, 1));
    let error = call(&other).unwrap_err();
    assert!(error.message().contains("another executable"), "{error}");
    // This error is about the number of arguments, which is checked later.
    let error = call(&one).unwrap_err();
    assert!(!error.message().contains("another executable"), "{error}");
}

/// VM-62: the owner of the input may free it before it is used.
#[test]
fn an_input_that_is_only_borrowed_is_copied() {
    let loader = registry::require("relax.ExecutableLoadFromFile").unwrap();
    let path = golden("basic.vmexec");
    let executable = call(&loader, &[path.to_str().unwrap().into()]).unwrap();
    let executable: Module = cast(executable.view()).unwrap();
    let machine = call(&executable.require("vm_load_executable").unwrap(), &[]).unwrap();
    let machine: Module = cast(machine.view()).unwrap();
    let ask = |name: &str, args: &[AnyView<'_>]| machine.require(name).unwrap().call_packed(args);
    ask(
        "vm_initialization",
        &[1i64.into(), 0i64.into(), 2i64.into()],
    )
    .unwrap();
    let tensor = Tensor::from_slice(&[1.0f32, 2.0], &[2]).unwrap();
    let mut description = *tensor.dl();
    let ptr = (&raw mut description).cast();
    let raw = RawAny::of(index::DLTENSOR_PTR, AnyPayload { ptr });
    // SAFETY: the description of a tensor, and both live for the call.
    let borrowed = unsafe { AnyView::from_raw(raw) };
    let name = Any::from("same");
    ask("set_input", &[name.view(), borrowed]).unwrap();
    tensor.fill(&[0; 8]).unwrap();
    ask("invoke_stateful", &[name.view()]).unwrap();
    let output = ask("get_output", &[name.view()]).unwrap();
    let output: Tensor = cast(output.view()).unwrap();
    assert_eq!(output.to_vec::<f32>().unwrap(), [1.0, 2.0]);
}
