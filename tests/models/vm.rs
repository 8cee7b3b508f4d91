//! Models from real compilers, compared with recorded runs of TVM's virtual machine, bit for bit.

#![cfg(feature = "cli")]

use crate::support::skip::skipped;
use std::collections::BTreeMap;
use std::path::PathBuf;
use tvmspec::device::Device;
use tvmspec::module;
use tvmspec::object::{Array, Tensor, sequence_of};
use tvmspec::tensor::Dtype;
use tvmspec::value::{Any, cast};
use tvmspec::vm::{LoadedExecutable, ObservedCall, Observer, VirtualMachine};

fn golden(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("golden/vm")
        .join(name)
}

/// Checks whether this machine can load the goldens, which are libraries for x86-64 Linux.
fn can_load() -> bool {
    let can = cfg!(all(target_arch = "x86_64", target_os = "linux"));
    if !can {
        skipped("the goldens are libraries for x86-64 Linux");
    }
    can
}

/// One array of an `.npz`: numpy's type, extents and bytes.
#[derive(Clone, Debug, PartialEq)]
struct Plain {
    kind: Dtype,
    shape: Vec<i64>,
    bytes: Vec<u8>,
}

fn kind_of(descr: &str) -> Dtype {
    match descr {
        "<f4" => Dtype::FLOAT32,
        "<f8" => Dtype::FLOAT64,
        "<i8" => Dtype::INT64,
        "|i1" => Dtype::INT8,
        "|b1" => Dtype::scalar(6, 8),
        other => panic!("{other}"),
    }
}

fn arrays(name: &str) -> BTreeMap<String, Plain> {
    let mut archive = zip::ZipArchive::new(std::fs::File::open(golden(name)).unwrap()).unwrap();
    let mut all = BTreeMap::new();
    for index in 0..archive.len() {
        let entry = archive.by_index(index).unwrap();
        let name = entry.name().unwrap().trim_end_matches(".npy").to_owned();
        let file = npyz::NpyFile::new(entry).unwrap();
        let shape: Vec<i64> = file.shape().iter().map(|extent| *extent as i64).collect();
        let descr = file.dtype().descr().trim_matches('\'').to_owned();
        let bytes = match descr.as_str() {
            "<f4" => flat(file.into_vec::<f32>().unwrap(), f32::to_le_bytes),
            "<f8" => flat(file.into_vec::<f64>().unwrap(), f64::to_le_bytes),
            "<i8" => flat(file.into_vec::<i64>().unwrap(), i64::to_le_bytes),
            "|i1" => flat(file.into_vec::<i8>().unwrap(), i8::to_le_bytes),
            _ => flat(file.into_vec::<bool>().unwrap(), |value| [u8::from(value)]),
        };
        let kind = kind_of(&descr);
        all.insert(name, Plain { kind, shape, bytes });
    }
    all
}

fn flat<T, const N: usize>(values: Vec<T>, bytes: impl Fn(T) -> [u8; N]) -> Vec<u8> {
    values.into_iter().flat_map(bytes).collect()
}

impl Plain {
    fn tensor(&self) -> Any {
        let tensor = Tensor::empty(&self.shape, self.kind).unwrap();
        tensor.fill(&self.bytes).unwrap();
        tensor.into()
    }
}

/// Collects the leaves of a result in the order of its tuples, like the script that made the goldens.
fn leaves(value: &Any, out: &mut Vec<Plain>) {
    let int64 = Dtype::INT64;
    if let Some(items) = sequence_of(value.view()) {
        items.iter().for_each(|item| leaves(item, out));
    } else if let Ok(tensor) = cast::<Tensor>(value.view()) {
        // Each element of a uint1 tensor takes a byte.
        let bytes = tensor.to_whole_bytes().or_else(|_| tensor.to_bytes());
        let bytes = bytes.unwrap();
        out.push(Plain {
            kind: tensor.dl().dtype,
            shape: tensor.shape().to_vec(),
            bytes,
        });
    } else if let Some(extents) = tvmspec::object::extents_of(value.view()) {
        let bytes = flat(extents.to_vec(), i64::to_le_bytes);
        out.push(Plain {
            kind: int64,
            shape: vec![extents.len() as i64],
            bytes,
        });
    } else {
        let number = cast::<i64>(value.view()).unwrap();
        out.push(Plain {
            kind: int64,
            shape: vec![],
            bytes: number.to_le_bytes().to_vec(),
        });
    }
}

fn machine(name: &str) -> VirtualMachine {
    // SAFETY: a golden of a release, called as it was compiled.
    let module = unsafe { module::load(golden(name)) };
    let module = module.unwrap_or_else(|error| panic!("{name}: {error}"));
    VirtualMachine::from_module(&module, &[Device::CPU])
        .unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn assert_same(ours: &[Plain], theirs: &[Plain], what: &str) {
    assert_eq!(ours.len(), theirs.len(), "{what}: number of outputs");
    for (at, (ours, theirs)) in ours.iter().zip(theirs).enumerate() {
        assert_eq!(ours.shape, theirs.shape, "{what}, output {at}");
        assert_eq!(ours.kind, theirs.kind, "{what}, output {at}");
        assert!(
            ours.bytes == theirs.bytes,
            "{what}, output {at}: bytes differ"
        );
    }
}

fn model(name: &str) {
    model_as_recorded(name, &format!("{name}.io.npz"), &|_| "main");
}

/// Runs every recorded run of a model: `<run>/in/<parameter>[.<element>]`, `<run>/out/<n>`. `function` returns the function of a
/// run.
fn model_as_recorded(name: &str, runs: &str, function: &dyn Fn(&str) -> &str) {
    if !can_load() {
        return;
    }
    let machine = machine(&format!("{name}.so"));
    let recorded = arrays(runs);
    let mut runs: Vec<&str> = recorded
        .keys()
        .filter_map(|key| key.split('/').next())
        .collect();
    runs.dedup();
    assert!(!runs.is_empty());
    for run in runs {
        let function = function(run);
        let parameters = machine.parameters(function).unwrap();
        let args: Vec<Any> = parameters
            .iter()
            .map(|parameter| {
                let whole = format!("{run}/in/{parameter}");
                if let Some(plain) = recorded.get(&whole) {
                    return plain.tensor();
                }
                let parts = (0..).map_while(|at| recorded.get(&format!("{whole}.{at}")));
                parts.map(Plain::tensor).collect::<Array>().into()
            })
            .collect();
        let theirs: Vec<Plain> = (0..)
            .map_while(|at| recorded.get(&format!("{run}/out/{at}")).cloned())
            .collect();
        // Repeated, because the second run uses memory that the first returned.
        for _ in 0..2 {
            let result = machine
                .call(function, &*args)
                .unwrap_or_else(|fault| panic!("{name}: {fault}"));
            let mut ours = Vec::new();
            leaves(&result, &mut ours);
            assert_same(&ours, &theirs, &format!("{name}, run {run}"));
        }
    }
}

#[test]
fn a_model_with_a_dynamic_batch_and_a_tuple_out() {
    model("mlp");
}

#[test]
fn a_model_with_branches_calls_and_a_tuple_in() {
    model("branches");
}

#[test]
fn a_model_with_convolutions_and_casts() {
    model("conv");
}

/// Returns the function of a run such as `main-then` or `rows-5`.
fn function_of(run: &str) -> &str {
    run.split('-').next().unwrap_or(run)
}

#[test]
fn models_of_three_releases_whose_functions_are_compiled() {
    for release in ["0.19", "0.21", "0.27"] {
        let name = format!("compiled-{release}");
        model_as_recorded(&name, "compiled.io.npz", &function_of);
    }
}

#[test]
#[cfg_attr(not(all(target_os = "linux", target_arch = "x86_64")), ignore)]
fn compiled_functions_can_be_saved_and_count_their_arguments() {
    for release in ["0.19", "0.21", "0.27"] {
        let machine = machine(&format!("compiled-{release}.so"));
        let fault = machine.call("rows", ()).unwrap_err().to_string();
        assert!(fault.contains("takes 1 arguments"), "{fault}");
        // A builtin's error passes through the compiled code to the caller.
        let fault = machine.call("rows", (5,)).unwrap_err().to_string();
        assert!(
            fault.contains("expect Tensor with ndim 2"),
            "{release}: {fault}"
        );
    }
}

#[test]
#[cfg_attr(not(all(target_os = "linux", target_arch = "x86_64")), ignore)]
fn a_bool_is_the_uint1_of_a_model_up_to_0_22() {
    let machine = machine("bool-0.19.so");
    let x = Tensor::from_slice(&[1.0_f32, -2.0, 3.0, -4.0], &[4]).unwrap();
    let flags = Tensor::empty(&[4], Dtype::scalar(6, 8)).unwrap();
    flags.fill(&[1, 1, 0, 0]).unwrap();
    let result = machine.call("main", (x, flags.clone())).unwrap();
    let mut ours = Vec::new();
    leaves(&result, &mut ours);
    // 0.19 answers the same: the second output also has the type uint1. The argument is unchanged.
    let kinds: Vec<_> = ours
        .iter()
        .map(|plain| (plain.kind.code, plain.kind.bits))
        .collect();
    assert_eq!(kinds, [(2, 32), (1, 1)]);
    assert_eq!(flags.dl().dtype, Dtype::scalar(6, 8));
    assert_eq!(ours[1].bytes, [1, 0, 0, 0]);
}

/// Checks a sample of the releases: `in_x`, `out_<n>`.
fn sample(name: &str) {
    if !can_load() {
        return;
    }
    let machine = machine(&format!("{name}.so"));
    let recorded = arrays(&format!("{name}.io.npz"));
    let result = machine.call("main", (recorded["in_x"].tensor(),)).unwrap();
    let theirs: Vec<Plain> = (0..)
        .map_while(|at| recorded.get(&format!("out_{at}")).cloned())
        .collect();
    let mut ours = Vec::new();
    leaves(&result, &mut ours);
    assert_same(&ours, &theirs, name);
}

#[test]
fn a_library_of_0_21() {
    sample("vm-0.21");
}

#[test]
fn a_chain_of_a_thousand_operators() {
    sample("chain1000");
}

#[test]
#[cfg_attr(not(all(target_os = "linux", target_arch = "x86_64")), ignore)]
fn the_released_names_work_on_a_loaded_library() {
    // SAFETY: a golden of a release, called as it was compiled.
    let model = unsafe { module::load(golden("branches.so")) }.unwrap();
    let call = |module: &module::Module, name: &str, args: &[Any]| {
        let views: Vec<_> = args.iter().map(Any::view).collect();
        module.require(name).unwrap().call_packed(&views)
    };
    let has = call(&model, "has_function", &["scale".into()]).unwrap();
    assert!(bool::try_from(&has).unwrap());
    let text: String = cast(call(&model, "as_text", &[]).unwrap().view()).unwrap();
    assert!(text.contains("function main(flag, pair)"), "{text}");
    let machine: module::Module =
        cast(call(&model, "vm_load_executable", &[]).unwrap().view()).unwrap();
    assert!(
        call(&machine, "get_function_arity", &["main".into()]).is_err(),
        "no devices yet"
    );
    call(
        &machine,
        "vm_initialization",
        &[1i64.into(), 0i64.into(), 2i64.into()],
    )
    .unwrap();
    let recorded = arrays("branches.io.npz");
    let pair: Array = (0..2)
        .map(|at| recorded[&format!("then/in/pair.{at}")].tensor())
        .collect();
    call(
        &machine,
        "set_input",
        &[
            "main".into(),
            recorded["then/in/flag"].tensor(),
            pair.into(),
        ],
    )
    .unwrap();
    call(&machine, "invoke_stateful", &["main".into()]).unwrap();
    let arity = call(&machine, "get_output_arity", &["main".into()]).unwrap();
    assert_eq!(i64::try_from(&arity).unwrap(), 2);
    let output = call(&machine, "get_output", &["main".into(), 0i64.into()]).unwrap();
    let mut ours = Vec::new();
    leaves(&output, &mut ours);
    assert_same(&ours, &[recorded["then/out/0"].clone()], "get_output");
}

#[test]
#[cfg_attr(not(all(target_os = "linux", target_arch = "x86_64")), ignore)]
fn an_error_says_where_it_happened_and_an_observer_sees_every_call() {
    let machine = machine("mlp.so");
    let wrong: Any = Tensor::empty(&[1, 9], Dtype::FLOAT32).unwrap().into();
    let message = machine.call("main", (wrong,)).unwrap_err().to_string();
    assert!(
        message.contains("in VM function `main`, instruction 2: vm.builtin.match_shape("),
        "{message}"
    );
    let fault = machine.call("mian", ()).unwrap_err();
    assert!(fault.violation().is_some(), "{fault}");
    let message = fault.to_string();
    assert!(
        message.contains("mian") && message.contains("main"),
        "{message}"
    );

    let seen = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let sink = seen.clone();
    let observer: Observer = std::sync::Arc::new(move |step: &ObservedCall<'_>| {
        assert_eq!(step.function, "main");
        sink.lock().unwrap().push(step.callee.to_owned())
    });
    machine.observe(Some(observer));
    let good: Any = Tensor::empty(&[1, 8], Dtype::FLOAT32).unwrap().into();
    machine.call("main", (good,)).unwrap();
    let seen = seen.lock().unwrap();
    assert!(
        ["matmul", "softmax", "reshape"]
            .iter()
            .all(|name| seen.iter().any(|seen| seen == name)),
        "{seen:?}"
    );
}

#[test]
fn cut_or_changed_executables_never_panic() {
    for name in ["basic", "closure", "storage"] {
        let path = golden(&format!("{name}.vmexec"));
        let good = std::fs::read(&path).unwrap();
        let loaded = LoadedExecutable::from_file(&path, tvmspec::release::Layout::V0_22).unwrap();
        assert_eq!(loaded.bytes(), good);
        for at in 0..good.len() {
            let cut = tvmspec::vm::LoadedExecutable::from_bytes(
                &good[..at],
                tvmspec::release::Layout::V0_22,
            );
            assert!(cut.is_err(), "{name}, {at} bytes");
            let mut changed = good.clone();
            changed[at] ^= 0x81;
            if let Ok(loaded) =
                tvmspec::vm::LoadedExecutable::from_bytes(changed, tvmspec::release::Layout::V0_22)
            {
                let _ = loaded.executable().disassemble();
            }
        }
    }
}

/// TEN-35: compiled code of 0.16 to 0.25 expects one byte per element of a `uint1` constant, not only its packed bytes.
#[test]
fn a_constant_of_bools_has_a_byte_for_each() {
    let layout = tvmspec::release::Layout::V0_22;
    let mut bytes = std::fs::read(golden("basic.vmexec")).unwrap();
    // The float32 [1, 3] constant of 1, 2, 3 becomes uint1 [1, 12], with the same 12 bytes.
    let data = [1.0_f32, 2.0, 3.0].map(f32::to_le_bytes).concat();
    let at = bytes.windows(12).position(|part| part == data).unwrap();
    let head = &mut bytes[at - 28..at];
    assert_eq!(head[..4], [2, 32, 1, 0]);
    head[..4].copy_from_slice(&[1, 1, 1, 0]);
    head[12..20].copy_from_slice(&12_i64.to_le_bytes());
    let loaded = std::sync::Arc::new(LoadedExecutable::from_bytes(bytes, layout).unwrap());
    let machine = VirtualMachine::new(loaded, vec![], &[Device::CPU]).unwrap();
    let constants = machine.call("constants", ()).unwrap();
    let constants = sequence_of(constants.view()).unwrap();
    let tensor: Tensor = cast(constants[0].view()).unwrap();
    assert_eq!((tensor.shape(), tensor.nbytes()), (&[1, 12][..], 2));
    // SAFETY: a constant of a machine has whole bytes for each element, and nothing writes to them.
    let whole = unsafe { std::slice::from_raw_parts(tensor.dl().data.cast::<u8>(), 12) };
    assert_eq!(whole, data);
    let record = tvmspec::tensor::TensorRecord::new(
        tvmspec::tensor::Dtype::scalar(1, 1),
        &[12],
        data.as_slice(),
        tvmspec::tensor::Sizing::V0_7,
    );
    let tensor = Tensor::from_record(&record.unwrap()).unwrap();
    // SAFETY: as above, of a tensor of this crate.
    let whole = unsafe { std::slice::from_raw_parts(tensor.dl().data.cast::<u8>(), 12) };
    assert_eq!(whole, data);
}
