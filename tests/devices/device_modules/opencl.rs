//! OpenCL kernels and modules of OpenCL source.

use super::kernel_adds_one;
use crate::support::device_memory::{Floats, device_or_skip, golden};
use std::path::Path;
use tvmspec::device::launch::Arg;
use tvmspec::device::load::from_payload;
use tvmspec::device::{Device, Space};
use tvmspec::release::Layout;

#[test]
fn opencl_kernels_of_a_payload() {
    let test = "opencl_kernels_of_a_payload";
    kernel_adds_one(
        "opencl",
        "opencl-0.27.payload",
        Layout::V0_22,
        Device::opencl(0),
        &[],
        test,
    );
    let Some(api) = device_or_skip(Device::opencl(0)) else {
        return;
    };
    let module = from_payload(
        "opencl",
        Layout::V0_22,
        &std::fs::read(golden("opencl-0.27.payload")).unwrap(),
    )
    .unwrap();
    let out = Floats::new(api, Device::opencl(0), &[0.0; 4]);
    let args = [
        out.arg(),
        Arg::Int(-5),
        Arg::Int((1 << 32) + 6),
        Arg::Int(7),
        Arg::Float(0.25),
        Arg::Int(1),
        Arg::Int(1),
    ];
    let kernel = module.kernel("scalars").unwrap();
    // SAFETY: the kernel is called with the arguments it was compiled for, in spaces that stay.
    unsafe { kernel.call(&args) }.unwrap();
    assert_eq!(out.read(), [-5.0, 6.0, 7.0, 0.25]);
    // Several threads share a module and launch its kernels for the first time at once.
    let module = from_payload(
        "opencl",
        Layout::V0_22,
        &std::fs::read(golden("opencl-0.27.payload")).unwrap(),
    )
    .unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let module = module.clone();
            scope.spawn(move || {
                let out = Floats::new(api, Device::opencl(0), &[0.0; 4]);
                let mut args = args;
                (args[0], args[1]) = (out.arg(), Arg::Int(thread));
                let kernel = module.kernel("scalars").unwrap();
                // SAFETY: the kernel is called with the arguments it was compiled for, in spaces that stay.
                unsafe { kernel.call(&args) }.unwrap();
                assert_eq!(out.read()[0], thread as f32);
            });
        }
    });
}

/// A broken module or call must be reported with the name of the driver function that fails.
#[test]
fn opencl_errors_say_what_is_wrong() {
    let Some(api) = device_or_skip(Device::opencl(0)) else {
        return;
    };
    let bytes = std::fs::read(golden("opencl-0.27.payload")).unwrap();
    let broken: Vec<u8> = bytes
        .iter()
        .map(|byte| if *byte == b';' { b'!' } else { *byte })
        .collect();
    let module = from_payload("opencl", Layout::V0_22, &broken).unwrap();
    let out = Floats::new(api, Device::opencl(0), &[0.0; 4]);
    let args = [out.arg(), out.arg(), Arg::Int(4), Arg::Int(1), Arg::Int(4)];
    let kernel = module.kernel("add_one").unwrap();
    // SAFETY: broken source is not launched.
    let error = unsafe { kernel.call(&args) }.unwrap_err().to_string();
    assert!(
        error.contains("clBuildProgram") && error.contains("error:"),
        "{error}"
    );

    let module = from_payload("opencl", Layout::V0_22, &bytes).unwrap();
    let kernel = module.kernel("add_one").unwrap();
    let host = [0f32; 4];
    let mut wrong = args;
    wrong[0] = Arg::Handle(Space::host(&host).0);
    // SAFETY: the driver rejects an argument that is not its memory, and launches nothing.
    let error = unsafe { kernel.call(&wrong) }.unwrap_err().to_string();
    assert!(error.contains("is not memory of OpenCL"), "{error}");
    // SAFETY: too few arguments are rejected (DEV-47).
    let error = unsafe { kernel.call(&args[..3]) }.unwrap_err().reason();
    assert!(error.contains("DEV-47"), "{error}");
    let mut huge = args;
    huge[4] = Arg::Int(1 << 20);
    // SAFETY: the driver rejects blocks of that size.
    let error = unsafe { kernel.call(&huge) }.unwrap_err().to_string();
    assert!(
        error.contains("clEnqueueNDRangeKernel `add_one`"),
        "{error}"
    );
}

/// Loads source that 0.16 saved by its extension (PAY-28), saves it again, and loads it under another name by its format.
#[test]
fn a_module_is_loaded_from_its_files_and_saved_to_files() {
    let files = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/payload/files");
    let from = files.join("addone-0.16.cl");
    // SAFETY: its kernel is never launched.
    let module = unsafe { tvmspec::module::load(&from) }.unwrap();
    assert_eq!(module.kind(), "opencl");
    assert!(module.function("addone_kernel", false).unwrap().is_some());
    assert_eq!(module.write_formats().unwrap(), ["cl"]);

    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    module.write_to_file(&path("again.cl"), "").unwrap();
    module.write_to_file(&path("again"), "cl").unwrap();
    let same = |one: &str, other: &str| {
        let other = std::fs::read(files.join(other)).unwrap();
        assert!(std::fs::read(path(one)).unwrap() == other, "{one}");
    };
    same("again.cl", "addone-0.16.cl");
    same("again", "addone-0.16.cl");
    same("again.tvm_meta.json", "addone-0.16.tvm_meta.json");
    let wrong = module.write_to_file(&path("again.clbin"), "").unwrap_err();
    assert_eq!(
        wrong.violation().map(|broken| broken.rule().id()),
        Some("PAY-28"),
        "{wrong}"
    );
    // SAFETY: its kernel is never launched.
    let again = unsafe { tvmspec::module::load(path("again.cl")) }.unwrap();
    assert_eq!(
        again.save_to_bytes().unwrap(),
        module.save_to_bytes().unwrap()
    );

    std::fs::write(path("alone.cl"), "").unwrap();
    // SAFETY: it is rejected.
    let alone = unsafe { tvmspec::module::load(path("alone.cl")) }.unwrap_err();
    assert_eq!(
        alone.violation().map(|broken| broken.rule().id()),
        Some("PAY-23"),
        "{alone}"
    );
    // SAFETY: there is no file.
    let missing = unsafe { tvmspec::module::load(path("missing.cl")) }.unwrap_err();
    assert!(missing.to_string().contains("missing.cl"), "{missing}");
    // Functions that load code are only for trusted callers.
    let loader = "ffi.Module.load_from_file.cl";
    assert!(tvmspec::function::registry::lookup(loader).is_none());
}
