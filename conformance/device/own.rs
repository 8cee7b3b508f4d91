//! What this crate's own half of the contract must do: the defaults, the pool, the manager.

use super::recorder::Recorder;
use crate::conformance::behaviour::{Behaviour, Outcome, demand, expect};
use crate::device::launch::Arg;
use crate::device::launch::{Packed, WorkSizes};
use crate::device::manager::{Factory, Manager};
use crate::device::module::{DeviceModule, Driver, KernelInfo, Loaded};
use crate::device::pool::WorkspacePools;
use crate::device::timer::{DefaultTimer, Evaluator, Timer, to_bytes};
use crate::device::{
    Attribute, Copy, DEV_01, DEV_02, DEV_03, DEV_04, DEV_05, DEV_06, DEV_07, DEV_13, DEV_14,
    DEV_15, DEV_18, DEV_19, DEV_20, DEV_21, DEV_24, DEV_25, DEV_26, DEV_27, DEV_28, DEV_29, DEV_31,
    DEV_33, DEV_34, DEV_42, DEV_44, DEV_45, DEV_54, DEV_55, DEV_56, Device, DeviceApi, Dtype,
    Space, Stream, TensorRef, Value,
};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Every behaviour of this chapter that does not depend on a device.
pub const CASES: &[Behaviour<fn() -> Outcome>] = &[
    Behaviour {
        id: "device/scoped-memory-is-flat-memory",
        rules: &[DEV_13, DEV_14, DEV_15],
        releases: "0.21..",
        why: "a device that only knows bytes must get the right number of them, aligned for its elements",
        program: &[
            "With a recorder: takes memory in scope `global` for each of the tensors below and frees it. The calls are one alloc as stated, with the tensor's dtype as the hint, on device 0, and one free: [3] of int4: 2 bytes, alignment 64; [3, 5] of float32: 60, 64; [7] of float32x3: 84, 64; [2] of float64x16: 256, 128; [0, 9] of uint8: 0, 64.",
            "Taking memory for [4, -1] of uint8 without a scope is refused.",
        ],
        run: scoped_memory,
    },
    Behaviour {
        id: "device/tensor-copy-becomes-a-copy-of-bytes",
        rules: &[DEV_18],
        releases: "0.8..",
        why: "a device that only copies bytes must learn both offsets, both devices and the element type",
        program: &[
            "With a recorder: copies a tensor of [2, 3], float32, at byte offset 8 on device (12, 1) to one at byte offset 16 on device (12, 2).",
            "The one call is a copy of 24 bytes from offset 8 on (12, 1) to offset 16 on (12, 2) with hint float32.",
        ],
        run: tensor_copy,
    },
    Behaviour {
        id: "device/default-copy-refuses",
        rules: &[DEV_18],
        releases: "0.8..",
        why: "a device without a copy must say so; silence leaves the destination unwritten",
        program: &[
            "With a recorder without a copy of its own: a copy of 0 bytes from null on the CPU to null on (12, 0) is refused, and the error has the text `Device does not support CopyDataFromTo.`",
        ],
        run: default_copy,
    },
    Behaviour {
        id: "device/no-streams-is-the-default-stream",
        rules: &[DEV_21],
        releases: "0.8..",
        why: "programs create streams without asking; up to 0.7 that failed on half of all devices",
        program: &[
            "With a recorder: makes a stream, which is the default one, lets it wait for itself, and frees it. No call reaches the recorder.",
        ],
        run: no_streams,
    },
    Behaviour {
        id: "device/workspace-without-a-pool",
        rules: &[DEV_24],
        releases: "0.2..",
        why: "workspace that is less aligned than compiled code assumes faults in vector code",
        program: &[
            "With a recorder: takes workspace of 5000 bytes with hint float32 and frees it. The calls are an alloc of 5000 bytes, alignment 64, hint float32, and a free.",
        ],
        run: plain_workspace,
    },
    Behaviour {
        id: "device/pool-takes-whole-pages",
        rules: &[DEV_25],
        releases: "0.2..",
        why: "blocks of odd sizes never fit again, and the pool grows without end",
        program: &[
            "With a pool: workspace of 0, 1, 4096, 4097 and 12288 bytes, none freed, makes one alloc each, of 4096, 4096, 4096, 8192 and 12288 bytes, alignment 64, hint uint8.",
            "Workspace of the largest size that the host can name is refused.",
        ],
        run: whole_pages,
    },
    Behaviour {
        id: "device/pool-reuses-without-a-call",
        rules: &[DEV_26],
        releases: "0.2..",
        why: "one device allocation per operator costs more than small kernels do",
        program: &[
            "With a pool that has been asked for 4096, 10000 and 4096 bytes and got them back.",
            "Three times: takes the same three sizes and frees them in that order. No call reaches the recorder.",
        ],
        run: reuses,
    },
    Behaviour {
        id: "device/pool-replaces-a-single-small-block",
        rules: &[DEV_27],
        releases: "0.2..",
        why: "keeping what is too small doubles the peak of programs that grow",
        program: &[
            "With a pool that has been asked for 4096 bytes and got them back: workspace of 4097 bytes makes the calls free, then alloc of 8192.",
        ],
        run: replaces_single,
    },
    Behaviour {
        id: "device/pool-takes-the-smallest-that-fits",
        rules: &[DEV_28],
        releases: "0.2..",
        why: "a small request that takes the large block makes the next large one allocate",
        program: &[
            "With a pool that has been asked for 4096, 8192 and 16384 bytes and got them back: workspace of 5000, then 16384, then 100 bytes, none freed, makes no call.",
        ],
        run: smallest_fit,
    },
    Behaviour {
        id: "device/pool-replaces-the-largest",
        rules: &[DEV_29],
        releases: "0.2..",
        why: "replacing the smallest keeps two blocks where one would do",
        program: &[
            "With a pool that has been asked for 4096 and 8192 bytes and got them back: workspace of 16384 bytes makes the calls free, then alloc of 16384. Workspace of 4096 bytes then makes no call.",
        ],
        run: replaces_largest,
    },
    Behaviour {
        id: "device/pool-refuses-what-it-never-gave",
        rules: &[DEV_31],
        releases: "0.2..",
        why: "upstream takes null for its own sentinel and corrupts the pool",
        program: &[
            "With a pool: freeing null as workspace is refused.",
            "Takes workspace of 64 bytes. Freeing null is refused, and so is freeing an address that is not the pool's.",
            "Frees the workspace. Freeing it again is refused.",
        ],
        run: refuses_foreign,
    },
    Behaviour {
        id: "device/pool-gives-back-when-its-thread-ends",
        rules: &[DEV_33],
        releases: "0.2..",
        why: "short-lived worker threads would leak all device memory",
        program: &[
            "With a pool: takes workspace of 64 bytes. Another thread does the same, which is another block, frees it, and ends.",
            "Within a second of that the calls are: alloc of 4096, alloc of 4096, free.",
            "Frees the first workspace and takes 64 bytes on the device with the next number: the one call is an alloc of 4096 there.",
        ],
        run: thread_end,
    },
    Behaviour {
        id: "device/lookup-is-by-name-and-once",
        rules: &[DEV_01, DEV_02],
        releases: "0.2..",
        why: "a device is added by registering a name; asking twice would make two of it",
        program: &[
            "With a manager over `device_api.cpu`, `device_api.cuda` and `device_api.ext_dev`: asks for the devices of types 2, 2, 12, 1 and 12.",
            "The names looked up are `device_api.cuda`, `device_api.ext_dev`, `device_api.cpu`.",
        ],
        run: lookup_once,
    },
    Behaviour {
        id: "device/remote-devices-share-one-api",
        rules: &[DEV_03],
        releases: "0.2..",
        why: "the session is in the number; an API per session would lose the sessions of the others",
        program: &[
            "With a manager over `device_api.rpc`: asks for the devices of types 128, 130, 257 and 4100. The one name looked up is `device_api.rpc`.",
        ],
        run: remote_share,
    },
    Behaviour {
        id: "device/missing-device-says-its-name",
        rules: &[DEV_04],
        releases: "0.2..",
        why: "the user has to learn which backend to build or install",
        program: &[
            "With a manager over nothing: asking for the device of type 2 is refused, and the error has the text `Device API cuda is not enabled.`",
            "Asking whether there is one finds none, without an error.",
        ],
        run: missing_says,
    },
    Behaviour {
        id: "device/a-miss-is-not-remembered",
        rules: &[DEV_05],
        releases: "0.2..",
        why: "a plug-in that registers its device after the first question would never be found",
        program: &[
            "With a manager over nothing: there is no device of type 12.",
            "Registers `device_api.ext_dev`. There is one now.",
        ],
        run: miss_forgotten,
    },
    Behaviour {
        id: "device/unknown-number-is-refused",
        rules: &[DEV_06],
        releases: "0.2..",
        why: "upstream indexes past its table: type 127 is a segmentation fault",
        program: &[
            "With a manager over `device_api.unknown`: asking for the devices of types -1, 0, 5, 6, 17, 31, 32, 36, 99 and 127 is refused by DEV-06. No name is looked up.",
        ],
        run: unknown_number,
    },
    Behaviour {
        id: "device/exist-is-answered-for-the-missing",
        rules: &[DEV_07],
        releases: "0.2..",
        why: "programs ask whether there is a GPU before they use one",
        program: &[
            "With a manager over `device_api.cuda`: `exist` of device (4, 0) is 0, of (2, 0) it is 1.",
            "Asking (4, 0) for its warp size is refused.",
        ],
        run: exist_of_missing,
    },
    Behaviour {
        id: "device/copy-asks-the-device-that-is-not-the-cpu",
        rules: &[DEV_19],
        releases: "0.2..",
        why: "the CPU cannot read device memory",
        program: &[
            "With a manager over `device_api.cpu` and `device_api.cuda`: copies a tensor of [8], uint8, from (2, 0) to (1, 0), from (1, 0) to (2, 0), and from (1, 0) to itself.",
            "The recorders of cuda, cuda and cpu get one copy each.",
        ],
        run: copy_dispatch,
    },
    Behaviour {
        id: "device/copy-between-types-is-refused",
        rules: &[DEV_20],
        releases: "0.2..",
        why: "neither device can read the other's handles",
        program: &[
            "With a manager over `device_api.cpu`, `device_api.cuda` and `device_api.opencl`: a copy of a tensor from (2, 0) to (4, 0) is refused, and the error has the text `Can not copy across different device types directly`.",
            "Copies from (2, 0) to (2, 1) and to (3, 0) are made.",
        ],
        run: copy_between_types,
    },
    Behaviour {
        id: "device/workspace-hint-has-one-lane",
        rules: &[DEV_34],
        releases: "0.2..",
        why: "the C function has no room for lanes; a hint of none breaks allocators that multiply by them",
        program: &[
            "With a manager over `device_api.ext_dev`: `TVMBackendAllocWorkspace` of 100 bytes on (12, 3) with code 2 and 32 bits, then frees it.",
            "The calls are an alloc of 100 bytes, alignment 64, hint float32 of one lane, and a free, both on device 3.",
        ],
        run: workspace_hint,
    },
    Behaviour {
        id: "device/set-device-reaches-the-device",
        rules: &[DEV_42],
        releases: "0.2..",
        why: "compiled code sets the device first and then launches by name",
        program: &[
            "With a manager over `device_api.vulkan`: makes (7, 2) the current device. The one call is set device 2.",
        ],
        run: set_device_reaches,
    },
    Behaviour {
        id: "device/default-timer-waits-twice",
        rules: &[DEV_44],
        releases: "0.8..",
        why: "without the wait the clock measures queueing, and everything looks free",
        program: &[
            "With a recorder: starts and stops the default timer of device 0. The calls are two syncs of device 0.",
        ],
        run: timer_waits,
    },
    Behaviour {
        id: "device/evaluator-warms-up-and-counts",
        rules: &[DEV_45],
        releases: "0.2..",
        why: "the first call loads code and allocates; it belongs to no measurement",
        program: &[
            "Measures a function with `number` 5 and `repeat` 3 by a clock for which every repetition takes 5 seconds.",
            "The function was called 16 times; the results are 1.0, 1.0 and 1.0 seconds, as bytes three doubles of the host.",
        ],
        run: evaluator_counts,
    },
    Behaviour {
        id: "device/code-is-loaded-late-and-once-per-device",
        rules: &[DEV_54],
        releases: "0.2..",
        why: "loading a library must work without its device; compiling per launch costs a thousand launches",
        program: &[
            "With a module of two kernels for a type of device of the testee's own, whose driver notes loads and launches: `add` takes a handle and an int32 and has the launch tags `blockIdx.x` and `threadIdx.x`, `mul` takes a handle and has `threadIdx.x`.",
            "Looks both up: nothing is loaded.",
            "With device 0 as the current one, calls `add` with a null handle, 7, 3 and 64, and `mul` with a null handle and 0.",
            "What was noted is: a load on device 0; a launch of `add` there with 12 bytes of arguments, 3 x 1 x 1 blocks of 64 x 1 x 1 threads; a launch of `mul` there with 8 bytes, 1 x 1 x 1 blocks of 1 x 1 x 1 threads.",
        ],
        run: loaded_late,
    },
    Behaviour {
        id: "device/kernel-runs-on-the-current-device",
        rules: &[DEV_55],
        releases: "0.2..",
        why: "the device is no argument of a kernel; memory of another device is an illegal address",
        program: &[
            "With the module of `device/code-is-loaded-late-and-once-per-device`: looks `mul` up once and calls it with device 2, 0 and 2 of its type as the current one.",
            "What was noted is: load on 2, launch on 2, load on 0, launch on 0, launch on 2.",
        ],
        run: current_device,
    },
    Behaviour {
        id: "device/unknown-kernel-is-nothing",
        rules: &[DEV_56],
        releases: "0.2..",
        why: "lookup goes on in other modules when this one has no such function",
        program: &[
            "With the module of `device/code-is-loaded-late-and-once-per-device`: there is no function `div`, and looking it up is no error.",
        ],
        run: unknown_kernel,
    },
];

const DEVICE: Device = Device::ext_dev(0);

fn scoped_memory() -> Outcome {
    let recorder = Recorder::new();
    let asked: [(&[i64], Dtype, &str); 5] = [
        (
            &[3],
            Dtype::scalar(Dtype::INT, 4),
            "alloc 2 align 64 hint 0:4x1 on 0",
        ),
        (
            &[3, 5],
            Dtype::FLOAT32,
            "alloc 60 align 64 hint 2:32x1 on 0",
        ),
        (
            &[7],
            Dtype {
                code: Dtype::FLOAT,
                bits: 32,
                lanes: 3,
            },
            "alloc 84 align 64 hint 2:32x3 on 0",
        ),
        (
            &[2],
            Dtype {
                code: Dtype::FLOAT,
                bits: 64,
                lanes: 16,
            },
            "alloc 256 align 128 hint 2:64x16 on 0",
        ),
        (&[0, 9], Dtype::UINT8, "alloc 0 align 64 hint 1:8x1 on 0"),
    ];
    for (shape, dtype, call) in asked {
        let space = recorder.alloc_scoped(DEVICE, shape, dtype, Some("global"))?;
        // SAFETY: allocated above.
        unsafe { DeviceApi::free(&recorder, DEVICE, space)? };
        expect(
            recorder.take_log(),
            vec![call.to_owned(), "free on 0".into()],
            &format!("{shape:?} of {dtype:?}"),
        )?;
    }
    demand(
        recorder
            .alloc_scoped(DEVICE, &[4, -1], Dtype::UINT8, None)
            .is_err(),
        || "memory for a negative extent".into(),
    )
}

fn tensor_copy() -> Outcome {
    let recorder = Recorder::that_copies();
    let (from, mut to) = ([1u8; 64], [0u8; 64]);
    let shape = [2, 3];
    let source = TensorRef {
        data: Space::host(&from),
        device: Device::ext_dev(1),
        dtype: Dtype::FLOAT32,
        shape: &shape,
        strides: None,
        byte_offset: 8,
    };
    let target = TensorRef {
        data: Space(to.as_mut_ptr().cast()),
        device: Device::ext_dev(2),
        byte_offset: 16,
        ..source
    };
    // SAFETY: both arrays hold 24 bytes after their offsets.
    unsafe { recorder.copy_tensor(&source, &target, Stream::DEFAULT)? };
    expect(
        recorder.take_log(),
        vec!["copy 24 from +8 on 12:1 to +16 on 12:2 hint 2:32x1".to_owned()],
        "the call",
    )
}

fn default_copy() -> Outcome {
    let recorder = Recorder::new();
    let copy = Copy {
        from: Space::NULL,
        from_offset: 0,
        to: Space::NULL,
        to_offset: 0,
        nbytes: 0,
        from_device: Device::CPU,
        to_device: DEVICE,
        hint: Dtype::UINT8,
    };
    // SAFETY: the default looks at nothing.
    let refused = unsafe { recorder.copy(&copy, Stream::DEFAULT) };
    demand(
        refused.as_ref().is_err_and(|error| {
            error
                .to_string()
                .contains("Device does not support CopyDataFromTo.")
        }),
        || format!("the default copy gives {refused:?}"),
    )
}

fn no_streams() -> Outcome {
    let recorder = Recorder::new();
    let stream = recorder.create_stream(DEVICE)?;
    expect(stream, Stream::DEFAULT, "a new stream")?;
    recorder.sync_streams(DEVICE, stream, stream)?;
    // SAFETY: created above.
    unsafe { recorder.free_stream(DEVICE, stream)? };
    expect(recorder.take_log(), Vec::<String>::new(), "calls")
}

fn plain_workspace() -> Outcome {
    let recorder = Recorder::new();
    let space = recorder.alloc_workspace(DEVICE, 5000, Dtype::FLOAT32)?;
    // SAFETY: allocated above.
    unsafe { recorder.free_workspace(DEVICE, space)? };
    expect(
        recorder.take_log(),
        vec![
            "alloc 5000 align 64 hint 2:32x1 on 0".to_owned(),
            "free on 0".into(),
        ],
        "calls",
    )
}

/// A fresh pool over a fresh recorder.
struct Fixture {
    recorder: Arc<Recorder>,
    pools: WorkspacePools,
}

impl Fixture {
    fn new() -> Fixture {
        let recorder = Arc::new(Recorder::new());
        Fixture {
            pools: WorkspacePools::new(recorder.clone()),
            recorder,
        }
    }

    /// Takes blocks of `sizes`, gives them back in order, and forgets the calls so far.
    fn with_free(sizes: &[usize]) -> Result<Fixture, crate::device::Error> {
        let fixture = Fixture::new();
        let blocks: Vec<Space> = sizes
            .iter()
            .map(|nbytes| fixture.pools.alloc(DEVICE, *nbytes))
            .collect::<Result<_, _>>()?;
        for block in blocks {
            fixture.pools.free(DEVICE, block)?;
        }
        fixture.recorder.take_log();
        Ok(fixture)
    }

    fn calls_of(&self, nbytes: usize) -> Result<Vec<String>, crate::device::Error> {
        self.pools.alloc(DEVICE, nbytes)?;
        Ok(self.recorder.take_log())
    }
}

fn block(nbytes: usize) -> String {
    format!("alloc {nbytes} align 64 hint 1:8x1 on 0")
}

fn whole_pages() -> Outcome {
    let fixture = Fixture::new();
    for (nbytes, pages) in [
        (0, 4096),
        (1, 4096),
        (4096, 4096),
        (4097, 8192),
        (12288, 12288),
    ] {
        expect(
            fixture.calls_of(nbytes)?,
            vec![block(pages)],
            &format!("calls for {nbytes} bytes"),
        )?;
    }
    demand(fixture.pools.alloc(DEVICE, usize::MAX).is_err(), || {
        "a workspace of all memory".into()
    })
}

fn reuses() -> Outcome {
    let fixture = Fixture::with_free(&[4096, 10000, 4096])?;
    for _ in 0..3 {
        let blocks = [4096, 10000, 4096].map(|nbytes| fixture.pools.alloc(DEVICE, nbytes));
        for block in blocks {
            fixture.pools.free(DEVICE, block?)?;
        }
    }
    expect(
        fixture.recorder.take_log(),
        Vec::<String>::new(),
        "device calls of three more cycles",
    )
}

fn replaces_single() -> Outcome {
    let fixture = Fixture::with_free(&[4096])?;
    expect(
        fixture.calls_of(4097)?,
        vec!["free on 0".to_owned(), block(8192)],
        "calls",
    )
}

fn smallest_fit() -> Outcome {
    let fixture = Fixture::with_free(&[4096, 8192, 16384])?;
    expect(fixture.calls_of(5000)?, vec![], "calls for 5000 bytes")?;
    // The middle block is gone; the largest must still be there, and the smallest.
    expect(fixture.calls_of(16384)?, vec![], "calls for 16384 bytes")?;
    expect(fixture.calls_of(100)?, vec![], "calls for 100 bytes")
}

fn replaces_largest() -> Outcome {
    let fixture = Fixture::with_free(&[4096, 8192])?;
    expect(
        fixture.calls_of(16384)?,
        vec!["free on 0".to_owned(), block(16384)],
        "calls",
    )?;
    // The smaller one stayed.
    expect(fixture.calls_of(4096)?, vec![], "calls for 4096 bytes")
}

fn refuses_foreign() -> Outcome {
    let fixture = Fixture::new();
    demand(fixture.pools.free(DEVICE, Space::NULL).is_err(), || {
        "null was taken back by a pool that gave nothing".into()
    })?;
    let given = fixture.pools.alloc(DEVICE, 64)?;
    for foreign in [Space::NULL, Space::host(&0u8)] {
        demand(fixture.pools.free(DEVICE, foreign).is_err(), || {
            format!("{foreign:?} was taken back")
        })?;
    }
    fixture.pools.free(DEVICE, given)?;
    demand(fixture.pools.free(DEVICE, given).is_err(), || {
        "a block was taken back twice".into()
    })
}

fn thread_end() -> Outcome {
    let fixture = Fixture::new();
    let here = fixture.pools.alloc(DEVICE, 64)?;
    let there = std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let space = fixture.pools.alloc(DEVICE, 64)?;
            fixture.pools.free(DEVICE, space)?;
            Ok::<_, crate::device::Error>(space)
        });
        thread.join()
    });
    demand(
        there.is_ok_and(|there| there.is_ok_and(|there| there != here)),
        || "two threads share a block".into(),
    )?;
    // A scope ends before its threads have run their destructors; a thread of its own is joined after them.
    for _ in 0..200 {
        if fixture
            .recorder
            .peek()
            .iter()
            .any(|call| call == "free on 0")
        {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let expected = vec![block(4096), block(4096), "free on 0".to_owned()];
    expect(fixture.recorder.take_log(), expected, "calls")?;
    // Another device id is another pool.
    fixture.pools.free(DEVICE, here)?;
    fixture.pools.alloc(Device::ext_dev(1), 64)?;
    let expected = vec!["alloc 4096 align 64 hint 1:8x1 on 1".to_owned()];
    expect(
        fixture.recorder.take_log(),
        expected,
        "calls for another device",
    )
}

/// A manager whose registry is a list of names, each with a recorder; it writes down what it is asked.
struct Registry {
    manager: Manager,
    asked: Arc<Mutex<Vec<String>>>,
    names: Arc<Mutex<Vec<&'static str>>>,
}

/// Recorders that managers hold for ever, one per name, so that running a case again leaks nothing new.
fn recorder_of(name: &'static str) -> &'static Recorder {
    static ALL: Mutex<Vec<(&str, &Recorder)>> = Mutex::new(Vec::new());
    let mut all = ALL
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some((_, recorder)) = all.iter().find(|(known, _)| *known == name) {
        return recorder;
    }
    let recorder: &'static Recorder = Box::leak(Box::new(Recorder::that_copies()));
    all.push((name, recorder));
    recorder
}

impl Registry {
    fn with(names: &[&'static str]) -> Registry {
        let names = Arc::new(Mutex::new(names.to_vec()));
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (known, log) = (names.clone(), asked.clone());
        let lookup = move |name: &str| -> Option<Factory> {
            let known = known
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            let found = known.iter().copied().find(|known| *known == name);
            let mut log = log
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            log.push(if found.is_some() {
                name.to_owned()
            } else {
                format!("no {name}")
            });
            let recorder = recorder_of(found?);
            Some(Box::new(move || Ok(recorder as &dyn DeviceApi)))
        };
        Registry {
            manager: Manager::with_lookup(Box::new(lookup)),
            asked,
            names,
        }
    }

    fn asked(&self) -> Vec<String> {
        std::mem::take(
            &mut *self
                .asked
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner),
        )
    }
}

fn lookup_once() -> Outcome {
    let registry = Registry::with(&["device_api.cpu", "device_api.cuda", "device_api.ext_dev"]);
    for kind in [2, 2, 12, 1, 12] {
        registry.manager.api(kind)?;
    }
    expect(
        registry.asked(),
        ["device_api.cuda", "device_api.ext_dev", "device_api.cpu"]
            .map(String::from)
            .to_vec(),
        "names asked for",
    )
}

fn remote_share() -> Outcome {
    let registry = Registry::with(&["device_api.rpc"]);
    for kind in [128, 130, 257, 4096 + 4] {
        registry.manager.api(kind)?;
    }
    expect(
        registry.asked(),
        vec!["device_api.rpc".to_owned()],
        "names asked for",
    )
}

fn missing_says() -> Outcome {
    let registry = Registry::with(&[]);
    let refused = registry
        .manager
        .api(2)
        .err()
        .map(|error| error.to_string())
        .unwrap_or_default();
    demand(refused.contains("Device API cuda is not enabled."), || {
        format!("the error is `{refused}`")
    })?;
    demand(registry.manager.find(2)?.is_none(), || {
        "something was found where nothing is".into()
    })
}

fn miss_forgotten() -> Outcome {
    let registry = Registry::with(&[]);
    demand(registry.manager.find(12)?.is_none(), || {
        "something was found where nothing is".into()
    })?;
    registry
        .names
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
        .push("device_api.ext_dev");
    demand(registry.manager.find(12)?.is_some(), || {
        "a device that was registered later is not found".into()
    })
}

fn unknown_number() -> Outcome {
    let registry = Registry::with(&["device_api.unknown"]);
    for kind in [-1, 0, 5, 6, 17, 31, 32, 36, 99, 127] {
        let given = registry.manager.api(kind);
        demand(
            given
                .as_ref()
                .is_err_and(|error| error.rule() == Some(DEV_06)),
            || {
                format!(
                    "type {kind}: {:?}",
                    given.map(|_| "an API").map_err(|error| error.to_string())
                )
            },
        )?;
    }
    expect(registry.asked(), Vec::<String>::new(), "names asked for")
}

fn exist_of_missing() -> Outcome {
    let registry = Registry::with(&["device_api.cuda"]);
    let ask = |kind, attribute| registry.manager.attribute(Device::new(kind, 0), attribute);
    expect(
        ask(4, Attribute::Exist)?,
        Value::Int(0),
        "exist of a backend that is not here",
    )?;
    expect(
        ask(2, Attribute::Exist)?,
        Value::Int(1),
        "exist of one that is",
    )?;
    demand(ask(4, Attribute::WarpSize).is_err(), || {
        "a missing backend knows its warp size".into()
    })
}

fn bytes_on(device: Device, memory: *mut [u8; 8]) -> TensorRef<'static> {
    TensorRef {
        data: Space(memory.cast()),
        device,
        dtype: Dtype::UINT8,
        shape: &[8],
        strides: None,
        byte_offset: 0,
    }
}

fn copy_dispatch() -> Outcome {
    let registry = Registry::with(&["device_api.cpu", "device_api.cuda"]);
    let (mut from, mut to) = ([1u8; 8], [0u8; 8]);
    let (cuda, cpu) = (Device::cuda(0), Device::CPU);
    for (source, target, asked) in [
        (cuda, cpu, "device_api.cuda"),
        (cpu, cuda, "device_api.cuda"),
        (cpu, cpu, "device_api.cpu"),
    ] {
        recorder_of(asked).take_log();
        // SAFETY: both arrays hold 8 bytes, and recorders copy host memory.
        unsafe {
            registry.manager.copy_tensor(
                &bytes_on(source, &raw mut from),
                &bytes_on(target, &raw mut to),
                Stream::DEFAULT,
            )?
        };
        let copies = recorder_of(asked)
            .take_log()
            .into_iter()
            .filter(|call| call.starts_with("copy"))
            .count();
        expect(
            copies,
            1,
            &format!(
                "copies by {asked} from type {} to {}",
                source.kind, target.kind
            ),
        )?;
    }
    Ok(())
}

fn copy_between_types() -> Outcome {
    let registry = Registry::with(&["device_api.cpu", "device_api.cuda", "device_api.opencl"]);
    let (mut from, mut to) = ([1u8; 8], [0u8; 8]);
    let mut copy = |source, target| {
        // SAFETY: both arrays hold 8 bytes, and recorders copy host memory.
        unsafe {
            registry.manager.copy_tensor(
                &bytes_on(source, &raw mut from),
                &bytes_on(target, &raw mut to),
                Stream::DEFAULT,
            )
        }
    };
    let refused = copy(Device::cuda(0), Device::opencl(0))
        .err()
        .map(|error| error.to_string())
        .unwrap_or_default();
    demand(
        refused.contains("Can not copy across different device types directly"),
        || format!("the error is `{refused}`"),
    )?;
    copy(Device::cuda(0), Device::cuda(1))?;
    copy(Device::cuda(0), Device::new(3, 0))?;
    Ok(())
}

fn workspace_hint() -> Outcome {
    let registry = Registry::with(&["device_api.ext_dev"]);
    let recorder = recorder_of("device_api.ext_dev");
    recorder.take_log();
    let request = crate::module::workspace::Request {
        device_type: 12,
        device_id: 3,
        bytes: 100,
        hint: (2, 32),
    };
    let space = registry.manager.workspace(&request)?;
    // SAFETY: given above.
    unsafe { recorder.free_workspace(Device::ext_dev(3), space)? };
    expect(
        recorder.take_log(),
        vec![
            "alloc 100 align 64 hint 2:32x1 on 3".to_owned(),
            "free on 3".into(),
        ],
        "calls",
    )
}

fn set_device_reaches() -> Outcome {
    let registry = Registry::with(&["device_api.vulkan"]);
    let recorder = recorder_of("device_api.vulkan");
    recorder.take_log();
    registry.manager.set_device(Device::vulkan(2))?;
    expect(recorder.take_log(), vec!["set 2".to_owned()], "calls")
}

fn timer_waits() -> Outcome {
    let recorder = Recorder::new();
    let mut timer = DefaultTimer::new(&recorder, DEVICE);
    timer.start()?;
    timer.stop()?;
    expect(recorder.take_log(), vec!["sync 0".to_owned(); 2], "calls")
}

/// A timer that does not wait for anything: every stretch takes as long as it is told.
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

fn evaluator_counts() -> Outcome {
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

fn loaded_late() -> Outcome {
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

fn current_device() -> Outcome {
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

fn unknown_kernel() -> Outcome {
    let module = Counting::default().module()?;
    demand(module.kernel("div").is_none(), || {
        "a kernel that is not there was found".into()
    })
}
