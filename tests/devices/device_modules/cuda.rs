//! The CUDA device and its modules, on a card or on the stand-in.

use super::{kernel_adds_one, on_a_stand_in, scalars_reach_their_kernel, two_launches_overlap};
use crate::support::device_memory::{Floats, counting, device_or_skip, golden};
use std::path::Path;
use tvmspec::device::launch::Arg;
use tvmspec::device::load::from_payload;
use tvmspec::device::{Attribute, AttributeValue, CopyRequest, Device, DeviceApi, Dtype, Stream};
use tvmspec::release::Layout;
use tvmspec::value::Any;

/// Tests CUDA on the card of this machine or, in a separate process, on the stand-in.
#[test]
fn cuda_contract_and_kernels() {
    let test = "cuda_contract_and_kernels";
    let device = Device::cuda(0);
    let Some(api) = device_or_skip(device) else {
        return;
    };
    let report = tvmspec::conformance::device::contract_on(api, device).unwrap();
    println!(
        "{test}: {}: {report}",
        api.attribute(device, Attribute::DeviceName).unwrap()
    );
    assert!(report.holds(), "{report}");
    kernel_adds_one(
        "cuda",
        "cuda-0.27.payload",
        Layout::V0_22,
        device,
        &[],
        test,
    );

    let bytes = std::fs::read(golden("cuda-0.27.payload")).unwrap();
    let module = from_payload("cuda", Layout::V0_22, &bytes).unwrap();
    scalars_reach_their_kernel(api, device, &module, 0.1);

    // Dynamic shared memory below and above the default limit.
    for threads in [64usize, 1024] {
        let values = counting(threads);
        let data = Floats::new(api, device, &values);
        let shared = if threads == 64 { 4 * 64 } else { 60 << 10 };
        let kernel = module.kernel("reverse").unwrap();
        let args = [data.arg(), Arg::Int(threads as i64), Arg::Int(shared)];
        // SAFETY: the kernel is called with the arguments it was compiled for, in spaces that stay.
        unsafe { kernel.call(&args) }.unwrap();
        let reversed: Vec<f32> = values.into_iter().rev().collect();
        assert_eq!(data.read(), reversed);
    }
    let data = Floats::new(api, device, &[0.0; 4]);
    let kernel = module.kernel("reverse").unwrap();
    // SAFETY: the driver rejects blocks of that size.
    let error = unsafe { kernel.call(&[data.arg(), Arg::Int(4096), Arg::Int(0)]) }.unwrap_err();
    assert!(
        error
            .to_string()
            .contains("CUDALaunch Error: `reverse` grid=(1, 1, 1), block=(4096, 1, 1)"),
        "{error}"
    );
    let broken: Vec<u8> = bytes
        .iter()
        .map(|byte| if *byte == b'.' { b'_' } else { *byte })
        .collect();
    let mut text = b"\x03\0\0\0\0\0\0\0ptx".to_vec();
    text.extend_from_slice(&broken[11..]);
    if let Ok(module) = from_payload("cuda", Layout::V0_22, &text) {
        let kernel = module.names().next().map(str::to_owned).unwrap();
        let kernel = module.kernel(&kernel).unwrap();
        // SAFETY: broken PTX is not launched.
        let called = unsafe { kernel.call(&[data.arg()]) };
        println!(
            "{test}: broken PTX: {:?}",
            called.map_err(|error| error.to_string())
        );
    }
    let error = api.alloc(device, 64, 96, Dtype::UINT8).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("CUDA space is aligned at 256 bytes"),
        "{error}"
    );
    // More memory than any card has.
    assert!(api.alloc(device, 1 << 50, 64, Dtype::UINT8).is_err());
    the_barrier_is_reset(api, device);
    let name = api.attribute(device, Attribute::DeviceName).unwrap();
    if name == AttributeValue::Text("stand-in 0".into()) {
        two_launches_overlap("cuda", device);
        what_is_taken_is_returned(api, device);
        bytes_go_between_two_devices(api, [device, Device::cuda(1)]);
        let mut timer = tvmspec::device::timer(api, device).unwrap();
        timer.start().unwrap();
        timer.stop().unwrap();
        // The stand-in's clock always returns this value.
        assert_eq!(timer.elapsed().unwrap(), 250_000);
    }
}

/// Creates PTX of a kernel in which each thread increments a counter. `state` declares the counter: the variable of DEV-59, at
/// which kernels of 0.2 to 0.23 wait.
fn arriving(state: &str) -> String {
    format!(
        "
.version 6.0
.target sm_50
.address_size 64
.visible .global {state};
.visible .entry arrive(.param .u64 arrive_out) {{
  .reg .b32 %r<4>;
  .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [arrive_out];
  cvta.to.global.u64 %rd2, %rd1;
  atom.global.add.u32 %r1, [__tvm_global_barrier_state], 1;
  add.u32 %r2, %r1, 1;
  atom.global.max.u32 %r3, [%rd2], %r2;
  ret;
}}
"
    )
}

/// DEV-59, through a module from a library or a file: kernels continue counting where the last one ended, until the function is
/// called.
fn the_barrier_is_reset(api: &'static dyn DeviceApi, device: Device) {
    let folder = tempfile::tempdir().unwrap();
    let loaded = |name: &str, ptx: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, ptx).unwrap();
        let side = r#"{"tvm_version": "0.1.0", "func_info": {"arrive": {"name": "arrive", "arg_types": ["handle"],
            "launch_param_tags": ["blockIdx.x", "threadIdx.x"]}}}"#;
        std::fs::write(path.with_extension("tvm_meta.json"), side).unwrap();
        // SAFETY: its kernel is called with memory of its device.
        unsafe { tvmspec::module::load(path) }.unwrap()
    };
    let prepare = "__tvm_prepare_global_barrier";
    let counts = arriving(".align 4 .u32 __tvm_global_barrier_state");
    let module = loaded("counts.ptx", &counts);
    let reset = module.function(prepare, false).unwrap().unwrap();
    let arrive = module.function("arrive", false).unwrap().unwrap();
    let arrived = || {
        let out = Floats::new(api, device, &[0.0]);
        let Arg::Handle(memory) = out.arg() else {
            unreachable!("floats are in memory");
        };
        // SAFETY: the kernel takes memory of its device, which is valid until it is read.
        let memory = unsafe { Any::handle(memory) };
        arrive.call([memory, 3i64.into(), 32i64.into()]).unwrap();
        out.read()[0].to_bits()
    };
    reset.call(()).unwrap();
    assert_eq!([arrived(), arrived()], [96, 192]);
    // The function ignores its arguments.
    reset.call((7i64,)).unwrap();
    assert_eq!(arrived(), 96);

    // Each device has its own variable, and a thread resets the variable of its current device.
    if api.attribute(Device::cuda(1), Attribute::Exist) == Ok(AttributeValue::Int(1)) {
        api.set_device(Device::cuda(1)).unwrap();
        reset.call(()).unwrap();
        api.set_device(device).unwrap();
        assert_eq!(arrived(), 192);
    }

    // A module has the function even without the variable, or with a different variable of that name. A module of another kind does
    // not have it.
    let bare = counts.replace("__tvm_global_barrier_state", "another");
    let wide = format!("{bare}.visible .global .align 8 .u64 __tvm_global_barrier_state;\n");
    for (name, ptx, message) in [
        ("bare.ptx", bare.as_str(), "CUDA_ERROR_NOT_FOUND"),
        ("wide.ptx", &wide, "8 bytes"),
    ] {
        let reset = loaded(name, ptx).function(prepare, false).unwrap().unwrap();
        let error = reset.call(()).unwrap_err();
        let broken = error.violation().expect("a rule is broken");
        assert_eq!(broken.rule().id(), "DEV-59", "{error}");
        assert!(error.to_string().contains(message), "{error}");
    }
    let bytes = std::fs::read(golden("cuda-0.27.payload")).unwrap();
    let module = from_payload("cuda", Layout::V0_22, &bytes).unwrap();
    let error = module.reset_barrier().unwrap_err();
    assert!(
        error.to_string().contains("CUDA_ERROR_NOT_FOUND"),
        "{error}"
    );
}

/// Only CUDA has the barrier (DEV-59), so other modules must not have its function.
#[test]
fn no_other_module_has_a_barrier() {
    let bytes = std::fs::read(golden("opencl-0.27.payload")).unwrap();
    let module = from_payload("opencl", Layout::V0_22, &bytes).unwrap();
    let error = module.reset_barrier().unwrap_err();
    let broken = error.violation().expect("a rule is broken");
    assert_eq!(broken.rule().id(), "DEV-59", "{error}");
    assert_eq!(broken.kind().name(), "missing", "{error}");
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/payload/files/addone-0.16.cl");
    // SAFETY: its kernel is never launched.
    let module = unsafe { tvmspec::module::load(file) }.unwrap();
    let found = module.function("__tvm_prepare_global_barrier", false);
    assert!(found.unwrap().is_none());
}

/// Allocates and frees more spaces and events than the 4,096 of each that the stand-in can hold.
fn what_is_taken_is_returned(api: &'static dyn DeviceApi, device: Device) {
    for _ in 0..5000 {
        let space = api.alloc(device, 64, 64, Dtype::UINT8).unwrap();
        // SAFETY: a space of this device, which nothing uses.
        unsafe { api.free(device, space) }.unwrap();
        drop(tvmspec::device::timer(api, device).unwrap());
    }
    // DEV-12: every divisor of 256 bytes is a valid alignment.
    for alignment in [1, 2, 256] {
        let space = api.alloc(device, 64, alignment, Dtype::UINT8).unwrap();
        // SAFETY: a space of this device, which nothing uses.
        unsafe { api.free(device, space) }.unwrap();
    }
    for alignment in [0, 3, 512] {
        let error = api.alloc(device, 64, alignment, Dtype::UINT8).unwrap_err();
        assert!(
            error.to_string().contains(&format!("not at {alignment}")),
            "{error}"
        );
    }
    assert!(api.pools_workspace());
}

/// Copies between two devices. The copy goes through the host, because the devices may not be able to access each other's memory.
fn bytes_go_between_two_devices(api: &'static dyn DeviceApi, [one, two]: [Device; 2]) {
    let values = counting(1000);
    let (from, to) = (
        Floats::new(api, one, &values),
        Floats::new(api, two, &vec![7.0; 1000]),
    );
    let copy = CopyRequest {
        from: from.space(),
        from_offset: 400,
        from_device: one,
        to: to.space(),
        to_offset: 800,
        to_device: two,
        nbytes: 2000,
        hint: Dtype::FLOAT32,
    };
    // SAFETY: both spaces hold the bytes, and stay until the device is done.
    unsafe { api.copy(&copy, Stream::DEFAULT) }.unwrap();
    // DEV-20: the copy runs on a stream of the source device.
    api.sync(one, Stream::DEFAULT).unwrap();
    let mut expected = vec![7.0; 1000];
    expected[200..700].copy_from_slice(&values[100..600]);
    assert_eq!(to.read(), expected);
    assert_eq!(from.read(), values);
}

/// Tests CUDA on the stand-in.
#[test]
fn cuda_contract_and_kernels_on_the_stand_in() {
    // The binding tries `libcuda.so` first.
    on_a_stand_in(
        "cuda_stand_in/cuda.c",
        "-DCUDA",
        "libcuda.so",
        "cuda::cuda_contract_and_kernels",
    );
}
