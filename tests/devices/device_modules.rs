//! Kernels of payloads, launched on each available device. `device_library.rs` tests complete libraries.
#![cfg(feature = "suite")]

mod cuda;
mod opencl;
mod rocm;
mod vulkan;

use crate::support::device_memory::{Floats, counting, device_or_skip, golden, plus_one};
use crate::support::separate_process::alone;
use crate::support::skip::skipped;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use tvmspec::device::launch::Arg;
use tvmspec::device::load::from_payload;
use tvmspec::device::module::DeviceModule;
use tvmspec::device::{Attribute, Device, DeviceApi, Stream};
use tvmspec::release::Layout;

fn kernel_adds_one(
    kind: &str,
    file: &str,
    layout: Layout,
    device: Device,
    extra: &[Arg],
    test: &str,
) {
    let Some(api) = device_or_skip(device) else {
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
    // Computes 900 of the 1000 elements, in 15 blocks of 64.
    let mut args = vec![to.arg(), from.arg(), Arg::Int(900)];
    args.extend_from_slice(extra);
    args.extend([Arg::Int(15), Arg::Int(64)]);
    for _ in 0..3 {
        // SAFETY: the kernel is called with the arguments it was compiled for, in spaces that stay.
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

/// Launches two kernels of one module from two threads. A driver may wait inside a launch, so the stand-in completes launches of
/// this size only in pairs.
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
    device_or_skip(device)
        .unwrap()
        .sync(device, Stream::DEFAULT)
        .unwrap();
}

/// Calls the kernel `scalars` of the golden file with integers and floats of both widths, in an order that needs padding. The
/// kernel widens each value to a double. `narrow` is passed as a float32.
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
    // SAFETY: the kernel is called with the arguments it was compiled for, in spaces that stay.
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

/// Builds a stand-in for a driver library, and runs `test` with it in a process that loads the stand-in instead of the driver.
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
    let output = alone(module_path!(), test)
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
