//! Kernels of payloads, launched on whatever device is here. Whole libraries: `device_library.rs`.
#![cfg(feature = "suite")]

#[path = "../support/skip.rs"]
mod skip;

#[path = "../support/device_memory.rs"]
mod device_memory;

use device_memory::{Floats, counting, golden, here, plus_one};
use skip::skipped;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use tvmspec::device::launch::Arg;
use tvmspec::device::load::from_payload;
use tvmspec::device::module::DeviceModule;
use tvmspec::device::{
    Attribute, AttributeValue, CopyRequest, Device, DeviceApi, Dtype, Space, Stream,
};
use tvmspec::release::Layout;
use tvmspec::value::Any;

fn kernel_adds_one(
    kind: &str,
    file: &str,
    layout: Layout,
    device: Device,
    extra: &[Arg],
    test: &str,
) {
    let Some(api) = here(device) else {
        return;
    };
    let module = from_payload(kind, layout, &std::fs::read(golden(file)).unwrap()).unwrap();
    let kernel = module.kernel("add_one").unwrap();
    let input = counting(1000);
    let (from, to) = (
        Floats::new(api, device, &input),
        Floats::new(api, device, &vec![7.0; 1000]),
    );
    api.set_device(device).unwrap();
    // 900 of 1000, in 15 blocks of 64.
    let mut args = vec![to.arg(), from.arg(), Arg::Int(900)];
    args.extend_from_slice(extra);
    args.extend([Arg::Int(15), Arg::Int(64)]);
    for _ in 0..3 {
        // SAFETY: the kernel is called with what it was compiled for, in spaces that stay.
        unsafe { kernel.call(&args) }.unwrap();
    }
    let mut expected = plus_one(&input);
    expected[900..].fill(7.0);
    assert_eq!(to.read(), expected);
    println!(
        "{test}: on {:?}",
        api.attribute(device, Attribute::DeviceName)
    );
}

/// A driver may wait in a launch, and another thread launches a kernel of the same module meanwhile: the stand-in lets launches of this
/// size go in twos.
fn two_launches_overlap(kind: &str, device: Device) {
    let bytes = std::fs::read(golden("cuda-0.27.payload")).unwrap();
    let module = from_payload(kind, Layout::V0_22, &bytes).unwrap();
    let null = Arg::Handle(std::ptr::null_mut());
    let args = [null, null, Arg::Int(0), Arg::Int(7), Arg::Int(7)];
    std::thread::scope(|scope| {
        let launch = || {
            let kernel = module.kernel("add_one").unwrap();
            // SAFETY: no thread of the kernel has an element.
            unsafe { kernel.call(&args) }
        };
        let [first, second] = [scope.spawn(launch), scope.spawn(launch)];
        first.join().unwrap().unwrap();
        second.join().unwrap().unwrap();
    });
    here(device).unwrap().sync(device, Stream::DEFAULT).unwrap();
}

/// Calls the kernel `scalars` of the golden with integers and floats of both widths, in an order that needs padding: it widens each to a
/// double. `narrow` is passed as a float32.
fn scalars_reach_their_kernel(
    api: &'static dyn DeviceApi,
    device: Device,
    module: &Arc<DeviceModule>,
    narrow: f64,
) {
    let out = Floats::new(api, device, &[0.0; 10]);
    let scalars = [
        out.arg(),
        Arg::Int(-(1 << 40)),
        Arg::Int((1 << 32) - 6),
        Arg::Int((1 << 32) - 1),
        Arg::Float(0.1),
        Arg::Float(narrow),
        Arg::Int(1),
        Arg::Int(1),
    ];
    let kernel = module.kernel("scalars").unwrap();
    // SAFETY: the kernel is called with what it was compiled for, in spaces that stay.
    unsafe { kernel.call(&scalars) }.unwrap();
    let doubles: Vec<f64> = out
        .read()
        .chunks_exact(2)
        .map(|pair| {
            f64::from_bits(u64::from(pair[0].to_bits()) | u64::from(pair[1].to_bits()) << 32)
        })
        .collect();
    let narrowed = f64::from(narrow as f32);
    assert_eq!(
        doubles,
        [-(1i64 << 40) as f64, -6.0, 4294967295.0, 0.1, narrowed]
    );
}

#[test]
fn vulkan_kernel_with_push_constants() {
    for (file, layout) in [
        ("vulkan-0.8.payload", Layout::V0_7),
        ("vulkan-0.27.payload", Layout::V0_22),
    ] {
        let extra = [Arg::Float(1.0)];
        kernel_adds_one(
            "vulkan",
            file,
            layout,
            Device::vulkan(0),
            &extra,
            "vulkan_kernel_with_push_constants",
        );
    }
}

#[test]
fn vulkan_kernel_with_a_uniform_buffer() {
    let (file, extra) = ("vulkan-uniform-0.27.payload", [Arg::Float(1.0)]);
    kernel_adds_one(
        "vulkan",
        file,
        Layout::V0_22,
        Device::vulkan(0),
        &extra,
        "vulkan_kernel_with_a_uniform_buffer",
    );
}

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
    let Some(api) = here(Device::opencl(0)) else {
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
    // SAFETY: the kernel is called with what it was compiled for, in spaces that stay.
    unsafe { kernel.call(&args) }.unwrap();
    assert_eq!(out.read(), [-5.0, 6.0, 7.0, 0.25]);
    // Threads share a module: many first launches at once.
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
                // SAFETY: the kernel is called with what it was compiled for, in spaces that stay.
                unsafe { kernel.call(&args) }.unwrap();
                assert_eq!(out.read()[0], thread as f32);
            });
        }
    });
}

/// What is broken in a module or a call must be reported by the function that notices.
#[test]
fn opencl_errors_say_what_is_wrong() {
    let Some(api) = here(Device::opencl(0)) else {
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
    // SAFETY: what does not compile is not launched.
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
    // SAFETY: the driver rejects what is no memory of it, and launches nothing.
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

/// Everything about CUDA, on the card of this machine or, in a process of its own, on the stand-in.
#[test]
fn cuda_contract_and_kernels() {
    let test = "cuda_contract_and_kernels";
    let device = Device::cuda(0);
    let Some(api) = here(device) else {
        return;
    };
    let report = tvmspec::conformance::device::contract_on(api, device);
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

    // Dynamic shared memory below and above what is free.
    for threads in [64usize, 1024] {
        let values = counting(threads);
        let data = Floats::new(api, device, &values);
        let shared = if threads == 64 { 4 * 64 } else { 60 << 10 };
        let kernel = module.kernel("reverse").unwrap();
        let args = [data.arg(), Arg::Int(threads as i64), Arg::Int(shared)];
        // SAFETY: the kernel is called with what it was compiled for, in spaces that stay.
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
        // SAFETY: what does not compile is not launched.
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
    // More than any card has.
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
        // What the stand-in's clock always shows.
        assert_eq!(timer.elapsed().unwrap(), 250_000);
    }
}

/// A kernel in which each thread counts itself, with the variable that kernels of 0.2 to 0.23 wait at (DEV-59), declared as `state`.
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

/// DEV-59, through the module that a library or a file makes: kernels count on from where the last ended until the function is called.
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
        // SAFETY: the kernel takes memory of its device, which is there until it is read.
        let memory = unsafe { Any::handle(memory) };
        arrive
            .call_with([memory, 3i64.into(), 32i64.into()])
            .unwrap();
        out.read()[0].to_bits()
    };
    reset.call_with([]).unwrap();
    assert_eq!([arrived(), arrived()], [96, 192]);
    // Arguments are not looked at.
    reset.call_with([7i64.into()]).unwrap();
    assert_eq!(arrived(), 96);

    // Each device has a variable of its own, and a thread resets that of its current one.
    if api.attribute(Device::cuda(1), Attribute::Exist) == Ok(AttributeValue::Int(1)) {
        api.set_device(Device::cuda(1)).unwrap();
        reset.call_with([]).unwrap();
        api.set_device(device).unwrap();
        assert_eq!(arrived(), 192);
    }

    // A module without the variable, or with another of its name, has the function; a module of another kind does not.
    let bare = counts.replace("__tvm_global_barrier_state", "another");
    let wide = format!("{bare}.visible .global .align 8 .u64 __tvm_global_barrier_state;\n");
    for (name, ptx, message) in [
        ("bare.ptx", bare.as_str(), "CUDA_ERROR_NOT_FOUND"),
        ("wide.ptx", &wide, "8 bytes"),
    ] {
        let reset = loaded(name, ptx).function(prepare, false).unwrap().unwrap();
        let error = reset.call_with([]).unwrap_err();
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

/// The barrier is of CUDA alone (DEV-59): other modules do not have the function.
#[test]
fn no_other_module_has_a_barrier() {
    let bytes = std::fs::read(golden("opencl-0.27.payload")).unwrap();
    let module = from_payload("opencl", Layout::V0_22, &bytes).unwrap();
    let error = module.reset_barrier().unwrap_err();
    let broken = error.violation().expect("a rule is broken");
    assert_eq!(broken.rule().id(), "DEV-59", "{error}");
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/payload/files/addone-0.16.cl");
    // SAFETY: its kernel is never launched.
    let module = unsafe { tvmspec::module::load(file) }.unwrap();
    let found = module.function("__tvm_prepare_global_barrier", false);
    assert!(found.unwrap().is_none());
}

/// The stand-in has room for 4,096 spaces and as many events.
fn what_is_taken_is_returned(api: &'static dyn DeviceApi, device: Device) {
    for _ in 0..5000 {
        let space = api.alloc(device, 64, 64, Dtype::UINT8).unwrap();
        // SAFETY: a space of this device, which nothing uses.
        unsafe { api.free(device, space) }.unwrap();
        drop(tvmspec::device::timer(api, device).unwrap());
    }
    // DEV-12: at any divisor of 256 bytes.
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

/// Through the host, as two devices need not see each other's memory.
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
    // DEV-20: on a stream of the source.
    api.sync(one, Stream::DEFAULT).unwrap();
    let mut expected = vec![7.0; 1000];
    expected[200..700].copy_from_slice(&values[100..600]);
    assert_eq!(to.read(), expected);
    assert_eq!(from.read(), values);
}

/// Everything about CUDA on the stand-in.
#[test]
fn cuda_contract_and_kernels_on_the_stand_in() {
    // The binding looks for `libcuda.so` first.
    on_a_stand_in(
        "cuda_stand_in/cuda.c",
        "-DCUDA",
        "libcuda.so",
        "cuda_contract_and_kernels",
    );
}

/// Everything about ROCm, on the card of this machine or, in a process of its own, on the stand-in.
#[test]
fn rocm_contract_and_kernels() {
    let test = "rocm_contract_and_kernels";
    let device = Device::rocm(0);
    let Some(api) = here(device) else {
        return;
    };
    let name = api.attribute(device, Attribute::DeviceName).unwrap();
    let report = tvmspec::conformance::device::contract_on(api, device);
    println!("{test}: {name}: {report}");
    assert!(report.holds(), "{report}");
    let error = api.alloc(device, 64, 96, Dtype::UINT8).unwrap_err();
    let error = error.to_string();
    assert!(
        error.contains("HIP space is aligned at 256 bytes"),
        "{error}"
    );
    // More than any card has.
    assert!(api.alloc(device, 1 << 50, 64, Dtype::UINT8).is_err());
    if name != AttributeValue::Text("stand-in 0".into()) {
        skipped("no golden has a code object of this card");
        return;
    }

    let answer = |attribute| api.attribute(device, attribute).unwrap().to_string();
    assert_eq!(answer(Attribute::ComputeVersion), "9.0");
    assert_eq!(answer(Attribute::WarpSize), "64");
    assert_eq!(answer(Attribute::MaxThreadDimensions), "[1024, 1024, 64]");
    assert_eq!(answer(Attribute::GcnArch), "gfx90a:sramecc+:xnack-");
    assert_eq!(answer(Attribute::ApiVersion), "50221153");
    assert_eq!(answer(Attribute::DriverVersion), "-");
    assert_eq!(answer(Attribute::AvailableGlobalMemory), "-");

    // A code object of the stand-in is the text that the golden of CUDA has; both kinds have its layout.
    for kind in ["hip", "hsaco"] {
        let file = "cuda-0.27.payload";
        kernel_adds_one(kind, file, Layout::V0_22, device, &[], test);
    }
    two_launches_overlap("hip", device);
    let bytes = std::fs::read(golden("cuda-0.27.payload")).unwrap();
    let module = from_payload("hip", Layout::V0_22, &bytes).unwrap();
    scalars_reach_their_kernel(api, device, &module, 0.5);

    let data = Floats::new(api, device, &[0.0; 4]);
    let reverse = module.kernel("reverse").unwrap();
    // SAFETY: the driver rejects blocks of that size.
    let error = unsafe { reverse.call(&[data.arg(), Arg::Int(4096), Arg::Int(0)]) }.unwrap_err();
    let error = error.to_string();
    assert!(
        error.contains("rocm: hipModuleLaunchKernel `reverse`, grid [1, 1, 1], block [4096, 1, 1]"),
        "{error}"
    );
    assert!(error.contains("hipErrorInvalidValue"), "{error}");
    let mut broken = b"\x05\0\0\0\0\0\0\0hsaco".to_vec();
    broken.extend_from_slice(&bytes[11..]);
    let version = broken.windows(8).position(|text| text == b".version");
    broken[version.unwrap()] = b'_';
    let module = from_payload("hip", Layout::V0_22, &broken).unwrap();
    let kernel = module.kernel("add_one").unwrap();
    let args = [
        data.arg(),
        data.arg(),
        Arg::Int(4),
        Arg::Int(1),
        Arg::Int(4),
    ];
    // SAFETY: what does not load is not launched.
    let error = unsafe { kernel.call(&args) }.unwrap_err().to_string();
    assert!(
        error.contains("hipModuleLoadData (hsaco) failed with 200 (hipErrorInvalidImage)"),
        "{error}"
    );

    let timer = tvmspec::device::timer(api, device);
    let mut timer = timer.unwrap();
    timer.start().unwrap();
    timer.stop().unwrap();
    // What the stand-in's clock always shows.
    assert_eq!(timer.elapsed().unwrap(), 250_000);
}

/// Everything about ROCm on the stand-in.
#[test]
fn rocm_contract_and_kernels_on_the_stand_in() {
    // The libraries of ROCm 6, and of ROCm 5, whose struct of properties is another.
    for define in ["-DROCM6", "-DROCM5"] {
        let library = "libamdhip64.so";
        on_a_stand_in(
            "hip_stand_in/hip.c",
            define,
            library,
            "rocm_contract_and_kernels",
        );
    }
}

/// The real driver library, on a machine without a card: it loads, counts no device, and says so.
#[cfg(feature = "hip")]
#[test]
fn rocm_without_a_card_is_no_device() {
    let api = tvmspec::device::hip::hip();
    let exists = api.attribute(Device::rocm(0), Attribute::Exist).unwrap();
    if exists == AttributeValue::Int(1) {
        skipped("there is a card");
        return;
    }
    let why = api.attribute(Device::rocm(0), Attribute::WarpSize);
    let why = why.unwrap_err().message().to_owned();
    if why.contains("no HIP here") {
        skipped(why);
        return;
    }
    assert_eq!(
        why,
        "HIP is here, but no device: hipGetDeviceCount returned 100 (hipErrorNoDevice)"
    );
    let error = from_payload_of_hip().unwrap_err();
    assert_eq!(error.message(), why);
}

/// Calls a kernel of kind `hip` on the device that there is.
#[cfg(feature = "hip")]
fn from_payload_of_hip() -> tvmspec::device::Result<()> {
    let bytes = std::fs::read(golden("cuda-0.27.payload")).unwrap();
    let kernel = from_payload("hip", Layout::V0_22, &bytes)?.kernel("add_one");
    let null = Arg::Handle(std::ptr::null_mut());
    // SAFETY: no thread of the kernel has an element.
    unsafe {
        kernel
            .unwrap()
            .call(&[null, null, Arg::Int(0), Arg::Int(1), Arg::Int(1)])
    }
}

/// Builds a stand-in for a driver library, and runs `test` on it in a process that finds it where the driver would be.
fn on_a_stand_in(source: &str, define: &str, library: &str, test: &str) {
    if cfg!(not(target_os = "linux")) {
        skipped("the stand-in is built for Linux");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("conformance/testee");
    let built = Command::new("cc")
        .args([define, "-shared", "-fPIC", "-O1", "-pthread", "-o"])
        .arg(folder.path().join(library))
        .arg(sources.join(source))
        .status();
    match built {
        Ok(status) => assert!(status.success(), "the stand-in does not compile"),
        Err(why) => {
            skipped(format_args!("there is no C compiler: {why}"));
            return;
        }
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env("LD_LIBRARY_PATH", folder.path())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    println!("{text}");
    assert!(
        output.status.success(),
        "{text}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(
        text.contains("stand-in"),
        "the stand-in was not used:\n{text}"
    );
}

/// Source that 0.16 saved, loaded by its extension (PAY-28), saved again, and loaded under another name by its format.
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
    // What loads code is for callers who vouch for it.
    let loader = "ffi.Module.load_from_file.cl";
    assert!(tvmspec::function::registry::lookup(loader).is_none());
}
