//! Compares devices with direct calls of their driver: copies, kernel launches and workspace. Prints ratios.
//!
//! Run: `cargo bench --bench device`. A missing device is named and left out.

mod support;

use std::path::Path;
use std::ptr;
use std::time::Instant;
use support::rounds;
use tvmspec::device::launch::Arg;
use tvmspec::device::load::from_payload;
use tvmspec::device::{
    Attribute, AttributeValue, CopyRequest, Device, Dtype, Manager, Space, Stream,
};
use tvmspec::release::Layout;

const MEBIBYTE: usize = 1 << 20;

fn main() {
    workspace("cpu", Device::CPU);
    for (name, device) in [
        ("opencl", Device::opencl(0)),
        ("vulkan", Device::vulkan(0)),
        ("cuda", Device::cuda(0)),
    ] {
        let api = match Manager::global().api(device.kind) {
            Ok(api) if api.attribute(device, Attribute::Exist) == Ok(AttributeValue::Int(1)) => api,
            _ => {
                println!("{name:<8} skipped, because no such device is here");
                continue;
            }
        };
        println!(
            "{name:<8} {}",
            api.attribute(device, Attribute::DeviceName)
                .unwrap_or_default()
        );
        workspace(name, device);
    }
    opencl::compare();
}

/// Returns the shortest time of `runs` runs, in seconds.
fn fastest(runs: usize, mut body: impl FnMut()) -> f64 {
    let once = |_| {
        let start = Instant::now();
        body();
        start.elapsed().as_secs_f64()
    };
    (0..rounds(runs)).map(once).fold(f64::INFINITY, f64::min)
}

/// Compares a thousand blocks of workspace from the pool with plain memory of the device.
fn workspace(name: &str, device: Device) {
    let Ok(api) = Manager::global().api(device.kind) else {
        return;
    };
    const TIMES: usize = 1000;
    let nbytes = 64 << 10;
    let pooled = fastest(20, || {
        for _ in 0..TIMES {
            let space = api.alloc_workspace(device, nbytes, Dtype::UINT8).unwrap();
            // SAFETY: the space was allocated above.
            unsafe { api.free_workspace(device, space).unwrap() };
        }
    });
    let plain = fastest(20, || {
        for _ in 0..TIMES {
            let space = api.alloc(device, nbytes, 64, Dtype::UINT8).unwrap();
            // SAFETY: the space was allocated above.
            unsafe { api.free(device, space).unwrap() };
        }
    });
    let rate = TIMES as f64 / pooled / 1e6;
    println!(
        "{name:<8} workspace of 64 KiB: pool {rate:.1} M/s, {:.2} of plain memory's time",
        pooled / plain
    );
}

/// The comparison with OpenCL, the only driver here with raw calls as short as ours.
mod opencl {
    use super::*;
    use opencl3::command_queue::{
        create_command_queue, enqueue_nd_range_kernel, enqueue_write_buffer, finish,
    };
    use opencl3::context::context::create_context;
    use opencl3::device::{CL_DEVICE_TYPE_ALL, get_device_ids};
    use opencl3::event::release_event;
    use opencl3::kernel::{create_kernel, set_kernel_arg};
    use opencl3::memory::{CL_MEM_READ_WRITE, create_buffer};
    use opencl3::platform::platform::get_platform_ids;
    use opencl3::program::{build_program, create_program_with_source};

    pub(super) fn compare() {
        let device = Device::opencl(0);
        let Ok(api) = Manager::global().api(device.kind) else {
            return;
        };
        if api.attribute(device, Attribute::Exist) != Ok(AttributeValue::Int(1)) {
            return;
        }
        let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/device");
        let platform = get_platform_ids().unwrap()[0];
        let id = get_device_ids(platform, CL_DEVICE_TYPE_ALL).unwrap()[0];
        let context = create_context(&[id], ptr::null(), None, ptr::null_mut()).unwrap();
        // SAFETY: the calls use handles that were just made, and buffers outlive the commands on them.
        let queue = unsafe { create_command_queue(context, id, 0) }.unwrap();

        let host = vec![1u8; 64 * MEBIBYTE];
        let ours = api.alloc(device, host.len(), 64, Dtype::UINT8).unwrap();
        // SAFETY: the context was just made, and no host memory is passed.
        let theirs =
            unsafe { create_buffer(context, CL_MEM_READ_WRITE, host.len(), ptr::null_mut()) }
                .unwrap();
        for nbytes in [4 << 10, MEBIBYTE, 64 * MEBIBYTE] {
            let copy = CopyRequest {
                from: Space::host(host.as_ptr()),
                from_offset: 0,
                to: ours,
                to_offset: 0,
                nbytes,
                from_device: Device::CPU,
                to_device: device,
                hint: Dtype::UINT8,
            };
            let times = (8 * MEBIBYTE / nbytes).clamp(1, 500);
            let through = || {
                for _ in 0..times {
                    // SAFETY: both sides hold the bytes until the sync.
                    unsafe { api.copy(&copy, Stream::DEFAULT).unwrap() };
                }
                api.sync(device, Stream::DEFAULT).unwrap();
            };
            let directly = || {
                for _ in 0..times {
                    let from = host.as_ptr().cast();
                    // SAFETY: both sides hold the bytes until the queue has finished.
                    let event = unsafe {
                        enqueue_write_buffer(queue, theirs, 0, 0, nbytes, from, 0, ptr::null())
                    };
                    // SAFETY: the event was just made, and is not used again.
                    unsafe { release_event(event.unwrap()) }.unwrap();
                }
                finish(queue).unwrap();
            };
            let (through, directly) = alternately(through, directly);
            println!(
                "opencl   copy of {:>6} KiB to the device: {:.2} of the driver's own time",
                nbytes >> 10,
                through / directly
            );
        }

        let payload = std::fs::read(golden.join("opencl-0.27.payload")).unwrap();
        let module = from_payload("opencl", Layout::V0_22, &payload).unwrap();
        let kernel = module.kernel("add_one").unwrap();
        let args = [
            Arg::Handle(ours.0),
            Arg::Handle(ours.0),
            Arg::Int(64),
            Arg::Int(1),
            Arg::Int(64),
        ];
        let source = std::fs::read_to_string(golden.join("kernels.cl")).unwrap();
        let program = create_program_with_source(context, &[&source]).unwrap();
        build_program(program, &[id], c"", None, ptr::null_mut()).unwrap();
        let raw = create_kernel(program, c"add_one").unwrap();
        const LAUNCHES: usize = 500;
        let through = || {
            for _ in 0..LAUNCHES {
                // SAFETY: the arguments have the types of the compiled kernel, and the spaces stay allocated.
                unsafe { kernel.call(&args) }.unwrap();
            }
            api.sync(device, Stream::DEFAULT).unwrap();
        };
        let directly = || {
            let (count, sizes) = (64i32, [64usize, 1, 1]);
            for _ in 0..LAUNCHES {
                let arguments: [(usize, *const std::ffi::c_void); 3] = [
                    (8, (&raw const theirs).cast()),
                    (8, (&raw const theirs).cast()),
                    (4, (&raw const count).cast()),
                ];
                for (at, (size, value)) in (0..).zip(arguments) {
                    // SAFETY: the value lives for the call and has the type of this argument of the kernel.
                    unsafe { set_kernel_arg(raw, at, size, value) }.unwrap();
                }
                let sizes = sizes.as_ptr();
                // SAFETY: the arguments are set, and the sizes live for the call.
                let event = unsafe {
                    enqueue_nd_range_kernel(
                        queue,
                        raw,
                        1,
                        ptr::null(),
                        sizes,
                        sizes,
                        0,
                        ptr::null(),
                    )
                };
                // SAFETY: the event was just made, and is not used again.
                unsafe { release_event(event.unwrap()) }.unwrap();
            }
            finish(queue).unwrap();
        };
        let (through, directly) = alternately(through, directly);
        println!(
            "opencl   launch: {:.2} of the driver's own time",
            through / directly
        );
        // SAFETY: the space was allocated above.
        unsafe { api.free(device, ours).unwrap() };
    }

    /// Runs both bodies in turn, so that other load on the machine affects them alike. Returns the shortest time of each.
    fn alternately(mut first: impl FnMut(), mut second: impl FnMut()) -> (f64, f64) {
        let mut best = (f64::INFINITY, f64::INFINITY);
        for _ in 0..rounds(15) {
            best.0 = best.0.min(fastest(1, &mut first));
            best.1 = best.1.min(fastest(1, &mut second));
        }
        best
    }
}
