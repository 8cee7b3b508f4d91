//! The ROCm device and its modules, on a card or on the stand-in.

use super::{kernel_adds_one, on_a_stand_in, scalars_reach_their_kernel, two_launches_overlap};
use crate::support::device_memory::{Floats, device_or_skip, golden};
use crate::support::skip::skipped;
use tvmspec::device::launch::Arg;
use tvmspec::device::load::from_payload;
use tvmspec::device::{Attribute, AttributeValue, Device, Dtype};
use tvmspec::release::Layout;

/// Tests ROCm on the card of this machine or, in a separate process, on the stand-in.
#[test]
fn rocm_contract_and_kernels() {
    let test = "rocm_contract_and_kernels";
    let device = Device::rocm(0);
    let Some(api) = device_or_skip(device) else {
        return;
    };
    let name = api.attribute(device, Attribute::DeviceName).unwrap();
    let report = tvmspec::conformance::device::contract_on(api, device).unwrap();
    println!("{test}: {name}: {report}");
    assert!(report.holds(), "{report}");
    let error = api.alloc(device, 64, 96, Dtype::UINT8).unwrap_err();
    let error = error.to_string();
    assert!(
        error.contains("HIP space is aligned at 256 bytes"),
        "{error}"
    );
    // More memory than any card has.
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

    // The stand-in's code object is the text of the CUDA golden file. Payloads of both kinds have its layout.
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
    // SAFETY: a code object that cannot be loaded is not launched.
    let error = unsafe { kernel.call(&args) }.unwrap_err().to_string();
    assert!(
        error.contains("hipModuleLoadData (hsaco) failed with 200 (hipErrorInvalidImage)"),
        "{error}"
    );

    let timer = tvmspec::device::timer(api, device);
    let mut timer = timer.unwrap();
    timer.start().unwrap();
    timer.stop().unwrap();
    // The stand-in's clock always returns this value.
    assert_eq!(timer.elapsed().unwrap(), 250_000);
}

/// Tests ROCm on the stand-in.
#[test]
fn rocm_contract_and_kernels_on_the_stand_in() {
    // ROCm 6 and ROCm 5 have libraries with different structs of device properties.
    for define in ["-DROCM6", "-DROCM5"] {
        let library = "libamdhip64.so";
        on_a_stand_in(
            "hip_stand_in/hip.c",
            define,
            library,
            "rocm::rocm_contract_and_kernels",
        );
    }
}

/// On a machine without a card, the real driver library loads and reports that there is no device.
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

/// Calls a kernel of kind `hip` on the available device.
#[cfg(feature = "hip")]
fn from_payload_of_hip() -> tvmspec::Result<()> {
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
