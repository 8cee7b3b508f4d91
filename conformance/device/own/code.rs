//! Modules of device code.
//!
//! The driver is one that launches nothing: when code is loaded, on which device and stream a kernel goes, and with how many bytes of arguments
//! is decided in front of it.

use super::super::tables::rejected;
use crate::conformance::behaviour::{Failure, Outcome, demand, expect};
use crate::device::launch::{Arg, Packed, WorkSizes};
use crate::device::module::{DeviceModule, KernelDescription, LoadedCode, ModuleCode};
use crate::device::stream;
use crate::device::{DEV_47, DEV_53, Device, Dtype, Stream};
use crate::rule::Kind;
use std::sync::{Arc, Mutex};

/// A driver that counts how often it loads on which device, and notes launches.
#[derive(Clone, Default)]
struct Counting {
    log: Arc<Mutex<Vec<String>>>,
}

impl Counting {
    /// Notes one call, from whichever thread.
    fn note(&self, what: String) {
        self.log
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .push(what);
    }

    /// The calls since the last time.
    fn take(&self) -> Vec<String> {
        std::mem::take(
            &mut *self
                .log
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner),
        )
    }

    /// [`Counting::take`], without what a launch has.
    fn take_calls(&self) -> Vec<String> {
        let calls = self.take().into_iter();
        calls
            .map(|call| match call.split_once(" with") {
                Some((call, _)) => call.to_owned(),
                None => call,
            })
            .collect()
    }

    /// A module of two kernels, with two parameters and two launch tags, and with one of each (DEV-47).
    fn module(&self) -> Result<Arc<DeviceModule>, crate::device::Error> {
        let handle = Dtype::scalar(Dtype::HANDLE, 64);
        let kernels = vec![
            KernelDescription::new(
                "add",
                &[handle, Dtype::scalar(Dtype::INT, 32)],
                &["blockIdx.x", "threadIdx.x"],
            )?,
            KernelDescription::new("mul", &[handle], &["threadIdx.x"])?,
        ];
        Ok(DeviceModule::new(
            "counting",
            Box::new(self.clone()),
            kernels,
        ))
    }
}

impl ModuleCode for Counting {
    fn device_kind(&self) -> i32 {
        // A number of its own, so that no other test's current device is in the way.
        31
    }

    fn load(&self, id: i32) -> crate::device::Result<Arc<dyn LoadedCode>> {
        self.note(format!("load on {id}"));
        Ok(Arc::new(CountingOn(self.clone(), id)))
    }

    fn has_barrier(&self) -> bool {
        true
    }
}

/// The module, loaded on the device of this number.
struct CountingOn(Counting, i32);

impl LoadedCode for CountingOn {
    unsafe fn launch(
        &self,
        kernel: &KernelDescription,
        args: &mut Packed,
        sizes: &WorkSizes,
        stream: Stream,
    ) -> crate::device::Result<()> {
        let bytes: usize = args.values().map(|(_, bytes)| bytes.len()).sum();
        let aside = if stream == Stream::DEFAULT {
            ""
        } else {
            " aside"
        };
        self.0.note(format!(
            "{} on {}{aside} with {bytes} bytes, {:?} blocks of {:?}",
            kernel.name, self.1, sizes.grid, sizes.block
        ));
        Ok(())
    }

    fn reset_barrier(&self, stream: Stream) -> crate::device::Result<()> {
        let aside = if stream == Stream::DEFAULT {
            ""
        } else {
            " aside"
        };
        self.0.note(format!("barrier on {}{aside}", self.1));
        Ok(())
    }
}

/// A call of `add`: a handle, a number, and the sizes of grid and block.
const KERNEL_ARGS: [Arg; 4] = [
    Arg::Handle(std::ptr::null_mut()),
    Arg::Int(7),
    Arg::Int(3),
    Arg::Int(64),
];

/// `device/code-is-loaded-late-and-once-per-device` (DEV-54). Where it does not hold: loading a library must work without its device;
/// compiling per launch costs a thousand launches.
pub(super) fn loaded_late() -> Outcome {
    let counting = Counting::default();
    let module = counting.module()?;
    let (Some(add), Some(mul)) = (module.kernel("add"), module.kernel("mul")) else {
        return Failure::broken("the module does not know its kernels");
    };
    expect(
        counting.take(),
        Vec::<String>::new(),
        "before the first launch",
    )?;
    stream::set_current_device(Device::new(31, 0));
    // SAFETY: this driver launches nothing.
    unsafe { add.call(&KERNEL_ARGS) }?;
    // SAFETY: this driver launches nothing.
    unsafe { mul.call(&[KERNEL_ARGS[0], Arg::Int(0)]) }?;
    let log = counting.take();
    let expected = [
        "load on 0",
        "add on 0 with 12 bytes, [3, 1, 1] blocks of [64, 1, 1]",
        "mul on 0 with 8 bytes, [1, 1, 1] blocks of [1, 1, 1]",
    ];
    expect(log, expected.map(String::from).to_vec(), "two launches")
}

/// `device/kernel-runs-on-the-current-device` (DEV-55). Where it does not hold: the device is no argument of a kernel; memory of another
/// device is an illegal address.
pub(super) fn current_device() -> Outcome {
    let counting = Counting::default();
    let module = counting.module()?;
    let Some(mul) = module.kernel("mul") else {
        return Failure::broken("the module does not know its kernels");
    };
    for id in [2, 0, 2] {
        stream::set_current_device(Device::new(31, id));
        // SAFETY: this driver launches nothing.
        unsafe { mul.call(&[KERNEL_ARGS[0], Arg::Int(1)]) }?;
    }
    stream::set_current_device(Device::new(31, 0));
    // A thread that has set nothing launches on device 0, whatever another one has set.
    let fresh = std::thread::scope(|scope| {
        // SAFETY: this driver launches nothing.
        let launched = scope.spawn(|| unsafe { mul.call(&[KERNEL_ARGS[0], Arg::Int(1)]) });
        launched.join()
    });
    demand(matches!(fresh, Ok(Ok(()))), || {
        format!("a launch of a new thread: {fresh:?}")
    })?;
    let launches: Vec<String> = counting
        .take()
        .into_iter()
        .map(|call| call.split(" with").next().unwrap_or_default().to_owned())
        .collect();
    expect(
        launches,
        [
            "load on 2",
            "mul on 2",
            "load on 0",
            "mul on 0",
            "mul on 2",
            "mul on 0",
        ]
        .map(String::from)
        .to_vec(),
        "launches",
    )
}

/// `device/kernel-runs-on-the-stream-of-its-thread` (DEV-22, DEV-55). Where it does not hold: a kernel on another stream than its
/// thread's is ordered before nothing.
pub(super) fn stream_of_a_kernel() -> Outcome {
    let counting = Counting::default();
    let module = counting.module()?;
    let Some(mul) = module.kernel("mul") else {
        return Failure::broken("the module does not know its kernels");
    };
    let device = Device::new(31, 2);
    // SAFETY: this driver follows no handle.
    let own = unsafe { Stream::from_handle(device, std::ptr::without_provenance_mut(64)) };
    stream::set_current_device(device);
    let call = || {
        // SAFETY: this driver launches nothing.
        unsafe { mul.call(&[KERNEL_ARGS[0], Arg::Int(1)]) }
    };
    call()?;
    stream::set(device, own)?;
    call()?;
    stream::set_current_device(Device::new(31, 0));
    call()?;
    stream::set(device, Stream::DEFAULT)?;
    let expected = [
        "load on 2",
        "mul on 2",
        "mul on 2 aside",
        "load on 0",
        "mul on 0",
    ];
    expect(
        counting.take_calls(),
        expected.map(str::to_owned).to_vec(),
        "launches",
    )
}

/// `device/barrier-is-reset-before-the-kernel` (DEV-59). Where it does not hold: blocks wait for a count that an earlier launch, or
/// another device, reached.
pub(super) fn barrier_of_a_kernel() -> Outcome {
    let counting = Counting::default();
    let module = counting.module()?;
    let Some(mul) = module.kernel("mul") else {
        return Failure::broken("the module does not know its kernels");
    };
    let device = Device::new(31, 2);
    // SAFETY: this driver follows no handle.
    let own = unsafe { Stream::from_handle(device, std::ptr::without_provenance_mut(64)) };
    stream::set_current_device(device);
    stream::set(device, own)?;
    module.reset_barrier()?;
    // SAFETY: this driver launches nothing.
    unsafe { mul.call(&[KERNEL_ARGS[0], Arg::Int(1)]) }?;
    stream::set(device, Stream::DEFAULT)?;
    stream::set_current_device(Device::new(31, 0));
    module.reset_barrier()?;
    let expected = [
        "load on 2",
        "barrier on 2 aside",
        "mul on 2 aside",
        "load on 0",
        "barrier on 0",
    ];
    expect(
        counting.take_calls(),
        expected.map(str::to_owned).to_vec(),
        "calls",
    )
}

/// A call with a value too few, or of another type, is rejected before the code is loaded (DEV-47, DEV-53, DEV-54).
pub(super) fn what_a_module_has() -> Outcome {
    let counting = Counting::default();
    let module = counting.module()?;
    expect(module.kind(), "counting", "the kind")?;
    expect(module.names().collect(), vec!["add", "mul"], "the kernels")?;
    let arities = ["add", "mul"].map(|name| module.kernel(name).map(|kernel| kernel.arity()));
    expect(arities, [Some(4), Some(2)], "values of a call")?;
    let Some(add) = module.kernel("add") else {
        return Failure::broken("the module does not know its kernels");
    };
    stream::set_current_device(Device::new(31, 0));
    for (args, rule, what) in [
        (&KERNEL_ARGS[..1], DEV_53, "an argument less"),
        (&KERNEL_ARGS[..3], DEV_47, "a value of the launch less"),
        (&[KERNEL_ARGS[1]; 4], DEV_53, "a number for a handle"),
    ] {
        // SAFETY: this driver launches nothing.
        let called = unsafe { add.call(args) };
        rejected(called, rule, Kind::Type, what)?;
    }
    expect(counting.take(), Vec::<String>::new(), "loads and launches")
}

/// `device/unknown-kernel-is-nothing` (DEV-56). Where it does not hold: lookup goes on in other modules when this one has no function of
/// that name.
pub(super) fn unknown_kernel() -> Outcome {
    let module = Counting::default().module()?;
    demand(module.kernel("div").is_none(), || {
        "a kernel that is not there was found".into()
    })
}
