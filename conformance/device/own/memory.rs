//! The defaults of a device, and the pools of workspaces.
//!
//! What is compared is the calls that reach a device, as texts of the recorder: sizes in bytes, alignment, the hint as code, bits and lanes, and
//! the number of the device. A pool that does the right thing by other calls is another pool (DEV-25 to DEV-30).

use super::super::recorder::Recorder;
use super::super::tables::rejected;
use super::DEVICE;
use crate::conformance::behaviour::{Outcome, demand, expect};
use crate::device::pool::WorkspacePools;
use crate::device::{
    CopyRequest, DEV_15, DEV_18, DEV_25, DEV_31, Device, DeviceApi, Dtype, Space, Stream, TensorRef,
};
use crate::rule::Kind;
use std::sync::Arc;

/// `device/scoped-memory-is-flat-memory` (DEV-13, DEV-14, DEV-15). Where it does not hold: a device that only knows bytes must get the
/// right number of them, aligned for its elements.
pub(super) fn scoped_memory() -> Outcome {
    let recorder = Recorder::new();
    let requests: [(&[i64], Dtype, &str); 5] = [
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
    for (shape, dtype, call) in requests {
        let space = recorder.alloc_scoped(DEVICE, shape, dtype, Some("global"))?;
        // SAFETY: allocated above.
        unsafe { DeviceApi::free(&recorder, DEVICE, space)? };
        expect(
            recorder.take_log(),
            vec![call.to_owned(), "free on 0".into()],
            &format!("{shape:?} of {dtype:?}"),
        )?;
    }
    let negative = recorder.alloc_scoped(DEVICE, &[4, -1], Dtype::UINT8, None);
    rejected(
        negative,
        DEV_15,
        Kind::Limit,
        "memory for a negative extent",
    )?;
    let tensor = |shape| TensorRef {
        data: Space::NULL,
        device: DEVICE,
        dtype: Dtype::FLOAT32,
        shape,
        strides: None,
        byte_offset: 8,
    };
    for scope in [None, Some(""), Some("global")] {
        let size = recorder.data_size(&tensor(&[2, 3]), scope)?;
        expect(size, 24, "bytes of [2, 3] of float32")?;
        expect(tensor(&[2, 3]).nbytes(), Some(size), "its own size")?;
    }
    let size = recorder.data_size(&tensor(&[-2, 3]), None);
    rejected(size, DEV_15, Kind::Limit, "bytes of a negative extent")
}

/// `device/tensor-copy-becomes-a-copy-of-bytes` (DEV-18). Where it does not hold: a device that only copies bytes must learn both
/// offsets, both devices and the element type.
pub(super) fn tensor_copy() -> Outcome {
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

/// `device/default-copy-rejects` (DEV-18). Where it does not hold: a device without a copy must say so; silence leaves the destination
/// unwritten.
pub(super) fn default_copy() -> Outcome {
    let recorder = Recorder::new();
    let copy = CopyRequest {
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
    let copied = unsafe { recorder.copy(&copy, Stream::DEFAULT) };
    let text = copied.as_ref().err().map(|error| error.to_string());
    demand(
        text.is_some_and(|text| text.contains("Device does not support CopyDataFromTo.")),
        || format!("the default copy returns {copied:?}"),
    )?;
    rejected(copied, DEV_18, Kind::Unsupported, "the default copy")
}

/// `device/no-streams-is-the-default-stream` (DEV-21). Where it does not hold: programs create streams without asking; up to 0.7 that
/// failed on half of all devices.
pub(super) fn no_streams() -> Outcome {
    let recorder = Recorder::new();
    let stream = recorder.create_stream(DEVICE)?;
    expect(stream, Stream::DEFAULT, "a new stream")?;
    recorder.sync_streams(DEVICE, stream, stream)?;
    // SAFETY: created above.
    unsafe { recorder.free_stream(DEVICE, stream)? };
    expect(recorder.take_log(), Vec::<String>::new(), "calls")
}

/// `device/workspace-without-a-pool` (DEV-24). Where it does not hold: workspace that is less aligned than compiled code assumes faults
/// in vector code.
pub(super) fn plain_workspace() -> Outcome {
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
    /// Without blocks.
    fn new() -> Fixture {
        let recorder = Arc::new(Recorder::new());
        Fixture {
            pools: WorkspacePools::new(recorder.clone()),
            recorder,
        }
    }

    /// Takes blocks of `sizes`, frees them in order, and forgets the calls so far.
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

    /// The calls that one more block causes (DEV-26 to DEV-29).
    fn calls_of(&self, nbytes: usize) -> Result<Vec<String>, crate::device::Error> {
        self.pools.alloc(DEVICE, nbytes)?;
        Ok(self.recorder.take_log())
    }
}

/// The call for a new block of this size, as the recorder notes it.
fn block(nbytes: usize) -> String {
    format!("alloc {nbytes} align 64 hint 1:8x1 on 0")
}

/// `device/pool-takes-whole-pages` (DEV-25). Where it does not hold: blocks of odd sizes never fit again, and the pool grows without end.
pub(super) fn whole_pages() -> Outcome {
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
    let all = fixture.pools.alloc(DEVICE, usize::MAX);
    rejected(all, DEV_25, Kind::Limit, "a workspace of all memory")
}

/// `device/pool-reuses-without-a-call` (DEV-26). Where it does not hold: one device allocation per operator costs more than small kernels
/// do.
pub(super) fn reuses() -> Outcome {
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

/// `device/pool-replaces-a-single-small-block` (DEV-27). Where it does not hold: keeping what is too small doubles the peak of programs
/// that grow.
pub(super) fn replaces_single() -> Outcome {
    let fixture = Fixture::with_free(&[4096])?;
    expect(
        fixture.calls_of(4097)?,
        vec!["free on 0".to_owned(), block(8192)],
        "calls",
    )
}

/// `device/pool-takes-the-smallest-that-fits` (DEV-28). Where it does not hold: a small request that takes the large block makes the next
/// large one allocate.
pub(super) fn smallest_fit() -> Outcome {
    let fixture = Fixture::with_free(&[4096, 8192, 16384])?;
    expect(fixture.calls_of(5000)?, vec![], "calls for 5000 bytes")?;
    // The middle block is gone; the largest must still be there, and the smallest.
    expect(fixture.calls_of(16384)?, vec![], "calls for 16384 bytes")?;
    expect(fixture.calls_of(100)?, vec![], "calls for 100 bytes")
}

/// `device/pool-replaces-the-largest` (DEV-29). Where it does not hold: replacing the smallest keeps two blocks where one would do.
pub(super) fn replaces_largest() -> Outcome {
    let fixture = Fixture::with_free(&[4096, 8192])?;
    expect(
        fixture.calls_of(16384)?,
        vec!["free on 0".to_owned(), block(16384)],
        "calls",
    )?;
    // The smaller one stayed.
    expect(fixture.calls_of(4096)?, vec![], "calls for 4096 bytes")
}

/// `device/pool-rejects-a-foreign-handle` (DEV-31). Where it does not hold: upstream takes null for its own sentinel and corrupts the
/// pool.
pub(super) fn rejects_foreign() -> Outcome {
    let fixture = Fixture::new();
    let free = |space, what: &str| {
        let freed = fixture.pools.free(DEVICE, space);
        rejected(freed, DEV_31, Kind::Missing, what)
    };
    free(Space::NULL, "null of a pool that allocated nothing")?;
    let block = fixture.pools.alloc(DEVICE, 64)?;
    for foreign in [Space::NULL, Space::host(&0u8)] {
        free(foreign, "a foreign block")?;
    }
    fixture.pools.free(DEVICE, block)?;
    free(block, "a block that came back already")
}

/// `device/pool-is-freed-with-its-thread` (DEV-33). Where it does not hold: short-lived worker threads would leak all device memory.
pub(super) fn thread_end() -> Outcome {
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
    )?;
    // With the pools go their free blocks.
    let Fixture { recorder, pools } = fixture;
    drop(pools);
    expect(recorder.take_log(), vec!["free on 0".to_owned()], "the end")
}
