//! What this crate's own half of the contract must do: the defaults, the pool, the manager.

use super::recorder::Recorder;
use crate::conformance::behaviour::{Behaviour, Outcome, demand, expect};
use crate::device::pool::WorkspacePools;
use crate::device::{
    Copy, DEV_13, DEV_14, DEV_15, DEV_18, DEV_21, DEV_24, DEV_25, DEV_26, DEV_27, DEV_28, DEV_29,
    DEV_31, DEV_33, Device, DeviceApi, Dtype, Space, Stream, TensorRef,
};
use std::sync::Arc;

/// Every behaviour of this chapter that does not depend on a device.
pub const CASES: &[Behaviour<fn() -> Outcome>] = &[
    Behaviour {
        id: "device/scoped-memory-is-flat-memory",
        rules: &[DEV_13, DEV_14, DEV_15],
        why: "a device that only knows bytes must get the right number of them, aligned for its elements",
        run: scoped_memory,
    },
    Behaviour {
        id: "device/tensor-copy-becomes-a-copy-of-bytes",
        rules: &[DEV_18],
        why: "a device that only copies bytes must learn both offsets, both devices and the element type",
        run: tensor_copy,
    },
    Behaviour {
        id: "device/default-copy-refuses",
        rules: &[DEV_18],
        why: "a device without a copy must say so; silence leaves the destination unwritten",
        run: default_copy,
    },
    Behaviour {
        id: "device/no-streams-is-the-default-stream",
        rules: &[DEV_21],
        why: "programs create streams without asking; up to 0.7 that failed on half of all devices",
        run: no_streams,
    },
    Behaviour {
        id: "device/workspace-without-a-pool",
        rules: &[DEV_24],
        why: "workspace that is less aligned than compiled code assumes faults in vector code",
        run: plain_workspace,
    },
    Behaviour {
        id: "device/pool-takes-whole-pages",
        rules: &[DEV_25],
        why: "blocks of odd sizes never fit again, and the pool grows without end",
        run: whole_pages,
    },
    Behaviour {
        id: "device/pool-reuses-without-a-call",
        rules: &[DEV_26],
        why: "one device allocation per operator costs more than small kernels do",
        run: reuses,
    },
    Behaviour {
        id: "device/pool-replaces-a-single-small-block",
        rules: &[DEV_27],
        why: "keeping what is too small doubles the peak of programs that grow",
        run: replaces_single,
    },
    Behaviour {
        id: "device/pool-takes-the-smallest-that-fits",
        rules: &[DEV_28],
        why: "a small request that takes the large block makes the next large one allocate",
        run: smallest_fit,
    },
    Behaviour {
        id: "device/pool-replaces-the-largest",
        rules: &[DEV_29],
        why: "replacing the smallest keeps two blocks where one would do",
        run: replaces_largest,
    },
    Behaviour {
        id: "device/pool-refuses-what-it-never-gave",
        rules: &[DEV_31],
        why: "upstream takes null for its own sentinel and corrupts the pool",
        run: refuses_foreign,
    },
    Behaviour {
        id: "device/pool-gives-back-when-its-thread-ends",
        rules: &[DEV_33],
        why: "short-lived worker threads would leak all device memory",
        run: thread_end,
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
    let (from, to) = ([1u8; 64], [0u8; 64]);
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
        data: Space::host(&to),
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
