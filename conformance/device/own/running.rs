//! Timers, the evaluator, and modules of device code.

use super::super::recorder::Recorder;
use super::DEVICE;
use crate::conformance::behaviour::{Outcome, demand, expect};
use crate::device::launch::{Arg, Packed, WorkSizes};
use crate::device::module::{DeviceModule, Driver, KernelInfo, Loaded};
use crate::device::timer::{DefaultTimer, Evaluator, Timer, to_bytes};
use crate::device::{Device, Dtype, Stream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

pub(super) fn timer_waits() -> Outcome {
    let recorder = Recorder::new();
    let mut timer = DefaultTimer::new(&recorder, DEVICE);
    timer.start()?;
    timer.stop()?;
    expect(recorder.take_log(), vec!["sync 0".to_owned(); 2], "calls")
}

/// A timer that does not wait for anything: every stretch takes as long as the test states.
struct Clock(u64);

impl Timer for Clock {
    fn start(&mut self) -> crate::device::Result<()> {
        Ok(())
    }

    fn stop(&mut self) -> crate::device::Result<()> {
        Ok(())
    }

    fn elapsed(&mut self) -> crate::device::Result<u64> {
        Ok(self.0)
    }
}

pub(super) fn evaluator_counts() -> Outcome {
    let recorder = Recorder::new();
    let calls = AtomicUsize::new(0);
    let evaluator = Evaluator {
        number: 5,
        repeat: 3,
        ..Evaluator::default()
    };
    let seconds = evaluator.run(&recorder, DEVICE, &mut Clock(5_000_000_000), || {
        calls.fetch_add(1, Ordering::Relaxed);
        Ok(())
    })?;
    expect(calls.load(Ordering::Relaxed), 1 + 5 * 3, "calls")?;
    expect(seconds.as_slice(), &[1.0; 3], "seconds per call")?;
    expect(
        to_bytes(&seconds),
        [1f64.to_ne_bytes(); 3].concat(),
        "bytes",
    )
}

/// A driver that counts how often it loads on which device, and notes launches.
#[derive(Clone, Default)]
struct Counting {
    log: Arc<Mutex<Vec<String>>>,
}

impl Counting {
    fn note(&self, what: String) {
        self.log
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .push(what);
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(
            &mut *self
                .log
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner),
        )
    }

    fn module(&self) -> Result<Arc<DeviceModule>, crate::device::Error> {
        let handle = Dtype::scalar(Dtype::HANDLE, 64);
        let kernels = vec![
            KernelInfo::new(
                "add",
                &[handle, Dtype::scalar(Dtype::INT, 32)],
                &["blockIdx.x", "threadIdx.x"],
            )?,
            KernelInfo::new("mul", &[handle], &["threadIdx.x"])?,
        ];
        Ok(DeviceModule::new(
            "counting",
            Box::new(self.clone()),
            kernels,
        ))
    }
}

impl Driver for Counting {
    fn device_kind(&self) -> i32 {
        // A number of its own, so that no other test's current device is in the way.
        31
    }

    fn load(&self, id: i32) -> crate::device::Result<Arc<dyn Loaded>> {
        self.note(format!("load on {id}"));
        Ok(Arc::new(CountingOn(self.clone(), id)))
    }
}

struct CountingOn(Counting, i32);

impl Loaded for CountingOn {
    unsafe fn launch(
        &self,
        kernel: &KernelInfo,
        args: &mut Packed,
        sizes: &WorkSizes,
        _: Stream,
    ) -> crate::device::Result<()> {
        let bytes: usize = args.values().map(|(_, bytes)| bytes.len()).sum();
        self.0.note(format!(
            "{} on {} with {bytes} bytes, {:?} blocks of {:?}",
            kernel.name, self.1, sizes.grid, sizes.block
        ));
        Ok(())
    }
}

const KERNEL_ARGS: [Arg; 4] = [
    Arg::Handle(std::ptr::null_mut()),
    Arg::Int(7),
    Arg::Int(3),
    Arg::Int(64),
];

pub(super) fn loaded_late() -> Outcome {
    let counting = Counting::default();
    let module = counting.module()?;
    let (Some(add), Some(mul)) = (module.kernel("add"), module.kernel("mul")) else {
        return crate::conformance::behaviour::Failure::broken(
            "the module does not know its kernels",
        );
    };
    expect(
        counting.take(),
        Vec::<String>::new(),
        "before the first launch",
    )?;
    crate::device::stream::set_current_device(Device::new(31, 0));
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

pub(super) fn current_device() -> Outcome {
    let counting = Counting::default();
    let module = counting.module()?;
    let Some(mul) = module.kernel("mul") else {
        return crate::conformance::behaviour::Failure::broken(
            "the module does not know its kernels",
        );
    };
    for id in [2, 0, 2] {
        crate::device::stream::set_current_device(Device::new(31, id));
        // SAFETY: this driver launches nothing.
        unsafe { mul.call(&[KERNEL_ARGS[0], Arg::Int(1)]) }?;
    }
    crate::device::stream::set_current_device(Device::new(31, 0));
    let launches: Vec<String> = counting
        .take()
        .into_iter()
        .map(|call| call.split(" with").next().unwrap_or_default().to_owned())
        .collect();
    expect(
        launches,
        ["load on 2", "mul on 2", "load on 0", "mul on 0", "mul on 2"]
            .map(String::from)
            .to_vec(),
        "launches",
    )
}

pub(super) fn unknown_kernel() -> Outcome {
    let module = Counting::default().module()?;
    demand(module.kernel("div").is_none(), || {
        "a kernel that is not there was found".into()
    })
}
