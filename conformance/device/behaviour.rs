//! What every device must do, whoever made it.

use super::probe::{Probe, pattern};
use crate::conformance::behaviour::{Behaviour, Failure, Outcome, demand, expect};
use crate::device::{
    Attribute, DEV_08, DEV_10, DEV_11, DEV_12, DEV_13, DEV_16, DEV_17, DEV_18, DEV_22, DEV_23,
    DEV_26, DEV_30, DEV_31, DEV_32, DEV_33, DEV_35, DEV_36, DEV_37, DEV_38, DEV_39, DEV_40, DEV_41,
    DEV_42, DEV_46, Device, Dtype, Space, Stream, TensorRef, Value,
};

/// Drives one device.
pub type OnDevice = fn(&Probe<'_>) -> Outcome;

/// Every behaviour that a [`DeviceApi`](crate::device::DeviceApi) is held to.
pub const CASES: &[Behaviour<OnDevice>] = &[
    Behaviour {
        id: "device/attributes-have-their-types",
        rules: &[DEV_08],
        releases: "0.2..",
        why: "schedulers divide by what a device answers: a zero or a text in the wrong place ends in a crash far from here",
        program: &[
            "Asks for `exist`: it is 1.",
            "Asks for every attribute of the table of DEV-09. `compute_version`, `device_name`, `max_thread_dimensions` and `driver_version` are None or a text that is not empty; `gcn_arch` is anything but the number 0; `total_global_memory` is None, -1 or a number above 0; every other one is None or a number above 0.",
        ],
        run: attributes_have_their_types,
    },
    Behaviour {
        id: "device/thread-dimensions-are-a-list",
        rules: &[DEV_10],
        releases: "0.4..",
        why: "Python parses the text as JSON and indexes three axes",
        program: &[
            "Needs a device whose `max_thread_dimensions` is a text.",
            "The text is a JSON list of three integers, none of them 0.",
        ],
        run: thread_dimensions_are_a_list,
    },
    Behaviour {
        id: "device/compute-version-is-numbers",
        rules: &[DEV_11],
        releases: "0.2..",
        why: "code generators split the text at the dot to choose instructions",
        program: &[
            "Needs a device whose `compute_version` is a text.",
            "The text is two or three decimal numbers with dots between them.",
        ],
        run: compute_version_is_numbers,
    },
    Behaviour {
        id: "device/memory-is-aligned",
        rules: &[DEV_12],
        releases: "0.2..",
        why: "compiled code uses aligned vector loads; a misaligned buffer is a fault or wrong numbers",
        program: &[
            "Needs a device whose handles are addresses.",
            "For alignments 64, 128 and 256: takes memory of 1, 24, 40, 100, 4096, 24 and 72 bytes with that alignment, hint uint8. Each address is a multiple of the alignment. Then frees all seven.",
        ],
        run: memory_is_aligned,
    },
    Behaviour {
        id: "device/flat-scopes-are-flat",
        rules: &[DEV_13],
        releases: "0.14..",
        why: "0.14 and later pass an empty scope for plain memory; a device that refuses it cannot run them",
        program: &[
            "Takes memory for a tensor of extents [3, 5], float32, without a scope, in scope `global`, and in scope of the empty text, and frees each before the next.",
        ],
        run: flat_scopes_are_flat,
    },
    Behaviour {
        id: "device/unknown-scope-is-refused",
        rules: &[DEV_13],
        releases: "0.8..",
        why: "a texture that silently becomes a buffer is read with the wrong layout",
        program: &[
            "Taking memory for [4] of float32 in scope `no.such.scope` is refused.",
            "Asking for the bytes of a tensor of [4], uint8, in that scope is refused.",
        ],
        run: unknown_scope_is_refused,
    },
    Behaviour {
        id: "device/tensor-sizes-must-match",
        rules: &[DEV_16],
        releases: "0.2..",
        why: "copying the smaller or the larger number of bytes are both wrong; only refusing is not",
        program: &[
            "Takes two spaces of 16.",
            "A copy of a tensor of [2, 4] with strides [1, 2] in the first to a compact one of [9] in the second, both uint8, is refused; where the error names a rule, it is DEV-16.",
        ],
        run: tensor_sizes_must_match,
    },
    Behaviour {
        id: "device/strided-tensor-is-refused",
        rules: &[DEV_17],
        releases: "0.8..",
        why: "copying a transposed view as if it lay in one piece permutes its elements",
        program: &[
            "Takes two spaces of 16.",
            "A copy of a compact tensor of [2, 4] to one of [2, 4] with strides [1, 2], uint8, is refused, and so is one the other way round.",
        ],
        run: strided_tensor_is_refused,
    },
    Behaviour {
        id: "device/extent-one-axes-do-not-count",
        rules: &[DEV_17],
        releases: "0.21..",
        why: "frameworks hand out batches of one with arbitrary strides",
        program: &[
            "Takes two spaces of 8 and writes pattern 1 of 8 to the first.",
            "Copies a tensor of [1, 8] with strides [77, 1], uint8, from the first to a compact one of [8] in the second.",
            "Reads the second: pattern 1 of 8.",
        ],
        run: extent_one_axes_do_not_count,
    },
    Behaviour {
        id: "device/tensor-offsets-are-used",
        rules: &[DEV_18],
        releases: "0.8..",
        why: "a view into a pooled buffer starts at its byte offset, not at the handle",
        program: &[
            "Takes two spaces of 64, writes pattern 2 of 64 to the first and 64 bytes of 7 to the second.",
            "Copies a tensor of [8], uint8, at byte offset 16 of the first to one of [2, 4] at byte offset 32 of the second.",
            "Reads the second: bytes 32 to 39 are bytes 16 to 23 of the pattern, all others 7.",
        ],
        run: tensor_offsets_are_used,
    },
    Behaviour {
        id: "device/stream-of-thread",
        rules: &[DEV_22, DEV_23],
        releases: "0.22..",
        why: "a worker thread that sets its stream must not move the work of another",
        program: &[
            "Needs a device that makes streams other than the default one.",
            "Makes a stream and sets it as the thread's stream of the device. This thread then has it; another thread has the default stream.",
            "Sets back what the thread had before: what that replaces is the stream.",
        ],
        run: stream_of_thread,
    },
    Behaviour {
        id: "device/workspace-is-reused",
        rules: &[DEV_26],
        releases: "0.2..",
        why: "operators allocate workspace on every call; a device allocation each time would dominate small kernels",
        program: &[
            "Needs a device that pools workspace. Runs on a new thread.",
            "Takes workspace of 4096 bytes and frees it.",
            "Three times: takes workspace of 4096 bytes, which is the first block again, and frees it.",
        ],
        run: workspace_is_reused,
    },
    Behaviour {
        id: "device/workspace-order",
        rules: &[DEV_30],
        releases: "0.2..",
        why: "peak memory of a program is fixed by the order in which blocks come back",
        program: &[
            "Needs a device that pools workspace. Runs each of these on a new thread: BA to AB, AB to BA, CBA to BCA, DCBA to CDBA.",
            "Takes as many workspaces of 4096 bytes as there are letters, named A, B and so on in that order, and frees them in the order of the first word.",
            "Takes as many again, without freeing: they are the blocks of the second word, in its order.",
        ],
        run: workspace_order,
    },
    Behaviour {
        id: "device/foreign-workspace-is-refused",
        rules: &[DEV_31],
        releases: "0.2..",
        why: "taking a stranger's pointer into the pool hands it out as scratch memory later",
        program: &[
            "Needs a device that pools workspace.",
            "Takes workspace of 64 bytes, and a space of 64.",
            "Freeing the space as workspace is refused.",
        ],
        run: foreign_workspace_is_refused,
    },
    Behaviour {
        id: "device/workspace-comes-back-in-any-order",
        rules: &[DEV_32],
        releases: "0.2..",
        why: "error paths free out of order",
        program: &[
            "Takes three workspaces of 100 bytes, and frees the second, the first and the third.",
        ],
        run: workspace_comes_back_in_any_order,
    },
    Behaviour {
        id: "device/workspace-is-per-device",
        rules: &[DEV_33],
        releases: "0.2..",
        why: "memory of device 0 handed to a kernel on device 1 is an illegal address there",
        program: &[
            "Needs a device that pools workspace, and, unless it is the CPU, another of its type with the next number.",
            "Takes workspace of 4096 bytes and frees it.",
            "Takes workspace of 4096 bytes on the device with the next number: it is another block.",
        ],
        run: workspace_is_per_device,
    },
    Behaviour {
        id: "device/empty-workspace-is-something",
        rules: &[DEV_35],
        releases: "0.2..",
        why: "compiled code takes null for out of memory and stops",
        program: &["Takes two workspaces of 0 bytes: neither is null."],
        run: empty_workspace_is_something,
    },
    Behaviour {
        id: "device/sync-waits",
        rules: &[DEV_36],
        releases: "0.2..",
        why: "the host reads results after a sync; a sync that returns early gives old data now and then",
        program: &[
            "Takes a space of 65536.",
            "For rounds 0 to 3: writes the pattern of the round, queues a copy of all to the host, and syncs. What arrived is the pattern.",
        ],
        run: sync_waits,
    },
    Behaviour {
        id: "device/stream-runs-in-order",
        rules: &[DEV_37],
        releases: "0.2..",
        why: "operators of a model depend on each other only by the order of the stream",
        program: &[
            "Takes two spaces of 256 and makes a stream.",
            "For rounds 0 to 9, on the stream: writes the pattern of the round to the first and copies the first to the second, without a sync.",
            "Reads the second on the stream: pattern 9.",
        ],
        run: stream_runs_in_order,
    },
    Behaviour {
        id: "device/streams-wait-for-each-other",
        rules: &[DEV_38],
        releases: "0.3..",
        why: "copy and compute streams overlap, and meet only here",
        program: &[
            "Takes two spaces of 16384 and makes two streams.",
            "For rounds 0 to 3: writes pattern 20 + round to the first space on the first stream, lets the second stream wait for the first, copies the first space to the second on the second stream, and reads the second space there: the pattern. Then syncs the first stream.",
        ],
        run: streams_wait_for_each_other,
    },
    Behaviour {
        id: "device/copy-moves-exactly-its-bytes",
        rules: &[DEV_39],
        releases: "0.2..",
        why: "one byte too many is another tensor's first byte",
        program: &[
            "Takes two spaces of 300 and writes pattern 3 of 300 to the first.",
            "For (0, 0, 1), (1, 3, 5), (17, 64, 33), (4, 0, 295) and (0, 150, 150): writes 300 bytes of 9 to the second, copies from the first offset of the first space to the second offset of the second as many bytes as the third number says, and reads the second: those bytes of the pattern, all others 9.",
            "Writes 1, 2, 3 at offset 5 of the second and reads 3 bytes from offset 4: what was at 4 before, 1, 2.",
        ],
        run: copy_moves_exactly_its_bytes,
    },
    Behaviour {
        id: "device/empty-copy-is-nothing",
        rules: &[DEV_39],
        releases: "0.2..",
        why: "tensors without elements are legal; drivers refuse copies of no bytes",
        program: &[
            "Takes two spaces of 8 and writes pattern 4 of 8 to the second.",
            "Copies 0 bytes from the first to the second, and writes 0 bytes at offset 3 of the second.",
            "Reads the second: pattern 4.",
        ],
        run: empty_copy_is_nothing,
    },
    Behaviour {
        id: "device/overlapping-copy-moves-or-refuses",
        rules: &[DEV_40],
        releases: "0.2..",
        why: "a cache that shifts in place repeats its first rows for ever",
        program: &[
            "For offsets (0, 8), (8, 0) and (0, 1): takes a space of 128, writes pattern 5 of 128, and copies 96 bytes from the first offset to the second offset of the same space.",
            "Reads it: where the copy was accepted, the bytes as if they had been read before any was written; where it was refused, the pattern.",
        ],
        run: overlapping_copy,
    },
    Behaviour {
        id: "device/spaces-are-distinct",
        rules: &[DEV_41],
        releases: "0.2..",
        why: "two live tensors in one piece of memory overwrite each other",
        program: &[
            "Takes spaces of 1, 64, 100, 4096, 4097, 1 and 64.",
            "Writes pattern 30 to all of the first, 31 to all of the second, and so on.",
            "Reads each: its pattern.",
        ],
        run: spaces_are_distinct,
    },
    Behaviour {
        id: "device/workspaces-are-distinct",
        rules: &[DEV_41],
        releases: "0.2..",
        why: "an operator with two scratch buffers computes nonsense when they are one",
        program: &["As `device/spaces-are-distinct`, with workspaces."],
        run: workspaces_are_distinct,
    },
    Behaviour {
        id: "device/set-device",
        rules: &[DEV_42],
        releases: "0.2..",
        why: "a device that is not there must be refused here and not at the first kernel",
        program: &[
            "Makes the device the current one.",
            "Unless it is a CPU: making device 1000 of its type the current one is refused, and `exist` of that is 0.",
        ],
        run: set_device,
    },
    Behaviour {
        id: "device/free-waits-for-queued-work",
        rules: &[DEV_46],
        releases: "0.2..",
        why: "frameworks drop tensors as soon as the last operator that uses them is queued",
        program: &[
            "Takes a space of 512, the target.",
            "For rounds 0 to 3: takes another space of 512, writes pattern 40 + round to it and syncs. Copies it to the target and frees it, without a sync. Takes a space of 512 again and writes 512 bytes of 0xee to it. Reads the target: the pattern. Reads the new space: 0xee.",
        ],
        run: free_waits_for_queued_work,
    },
];

const STREAM: Stream = Stream::DEFAULT;

fn attributes_have_their_types(probe: &Probe<'_>) -> Outcome {
    let ask = |attribute| probe.api.attribute(probe.device, attribute);
    expect(ask(Attribute::Exist)?, Value::Int(1), "exist")?;
    for attribute in Attribute::ALL {
        let answer = ask(attribute)?;
        let fits = match attribute {
            Attribute::ComputeVersion
            | Attribute::DeviceName
            | Attribute::MaxThreadDimensions
            | Attribute::DriverVersion => {
                matches!(&answer, Value::None)
                    || matches!(&answer, Value::Text(text) if !text.is_empty())
            }
            // A number up to 0.13, a name later.
            Attribute::GcnArch => !matches!(answer, Value::Int(0)),
            // -1 is unknown.
            Attribute::TotalGlobalMemory => matches!(answer, Value::None | Value::Int(-1 | 1..)),
            _ => matches!(answer, Value::None | Value::Int(1..)),
        };
        demand(fits, || format!("{} is {answer:?}", attribute.name()))?;
    }
    Ok(())
}

fn thread_dimensions_are_a_list(probe: &Probe<'_>) -> Outcome {
    let Value::Text(text) = probe
        .api
        .attribute(probe.device, Attribute::MaxThreadDimensions)?
    else {
        return Failure::skipped("the device does not know its thread dimensions");
    };
    let axes = serde_json::from_str::<[u64; 3]>(&text);
    demand(axes.is_ok_and(|axes| !axes.contains(&0)), || {
        format!("`{text}` is no JSON list of three sizes")
    })
}

fn compute_version_is_numbers(probe: &Probe<'_>) -> Outcome {
    let Value::Text(text) = probe
        .api
        .attribute(probe.device, Attribute::ComputeVersion)?
    else {
        return Failure::skipped("the device has no compute version");
    };
    let parts: Vec<&str> = text.split('.').collect();
    let numbers = parts.iter().all(|part| part.parse::<u32>().is_ok());
    demand(numbers && (2..=3).contains(&parts.len()), || {
        format!("`{text}` is not major.minor or major.minor.patch")
    })
}

fn memory_is_aligned(probe: &Probe<'_>) -> Outcome {
    if !probe.api.supports_pointer_arithmetic() {
        return Failure::skipped(
            "handles of this device are not addresses that the host may look at",
        );
    }
    for alignment in [64, 128, 256] {
        let mut held = Vec::new();
        for nbytes in [1, 24, 40, 100, 4096, 24, 72] {
            let space = probe
                .api
                .alloc(probe.device, nbytes, alignment, Dtype::UINT8)?;
            held.push(space);
            demand(space.address().is_multiple_of(alignment), || {
                format!(
                    "{nbytes} bytes at {:#x}, asked for alignment {alignment}",
                    space.address()
                )
            })?;
        }
        for space in held {
            // SAFETY: allocated above, freed once.
            unsafe { probe.api.free(probe.device, space)? };
        }
    }
    Ok(())
}

fn flat_scopes_are_flat(probe: &Probe<'_>) -> Outcome {
    for scope in [None, Some("global"), Some("")] {
        let space = probe
            .api
            .alloc_scoped(probe.device, &[3, 5], Dtype::FLOAT32, scope)
            .map_err(|error| Failure::Broken(format!("scope {scope:?}: {error}")))?;
        // SAFETY: allocated above, freed once.
        unsafe { probe.api.free(probe.device, space)? };
    }
    Ok(())
}

fn unknown_scope_is_refused(probe: &Probe<'_>) -> Outcome {
    let given = probe
        .api
        .alloc_scoped(probe.device, &[4], Dtype::FLOAT32, Some("no.such.scope"));
    if let Ok(space) = given {
        // SAFETY: allocated above, freed once.
        unsafe { probe.api.free(probe.device, space)? };
        return Failure::broken("memory was given for scope `no.such.scope`");
    }
    let tensor = tensor(probe, Space::NULL, &[4], None, 0);
    demand(
        probe.api.data_size(&tensor, Some("no.such.scope")).is_err(),
        || "a size was given for scope `no.such.scope`".into(),
    )
}

fn tensor<'a>(
    probe: &Probe<'_>,
    data: Space,
    shape: &'a [i64],
    strides: Option<&'a [i64]>,
    byte_offset: u64,
) -> TensorRef<'a> {
    TensorRef {
        data,
        device: probe.device,
        dtype: Dtype::UINT8,
        shape,
        strides,
        byte_offset,
    }
}

fn tensor_sizes_must_match(probe: &Probe<'_>) -> Outcome {
    let (from, to) = (probe.space(16)?, probe.space(16)?);
    // Also strided: the sizes are looked at first.
    let from = tensor(probe, from.space, &[2, 4], Some(&[1, 2]), 0);
    let to = tensor(probe, to.space, &[9], None, 0);
    // SAFETY: both spaces are larger than either tensor.
    let Err(error) = (unsafe { probe.api.copy_tensor(&from, &to, STREAM) }) else {
        return Failure::broken("8 bytes were copied to a tensor of 9");
    };
    demand(error.rule().is_none_or(|rule| rule == DEV_16), || {
        format!("refused, but not for the sizes: {error}")
    })
}

fn strided_tensor_is_refused(probe: &Probe<'_>) -> Outcome {
    let (from, to) = (probe.space(16)?, probe.space(16)?);
    let flat = tensor(probe, from.space, &[2, 4], None, 0);
    let strided = tensor(probe, to.space, &[2, 4], Some(&[1, 2]), 0);
    // SAFETY: both spaces hold the tensors.
    let into = unsafe { probe.api.copy_tensor(&flat, &strided, STREAM) };
    // SAFETY: both spaces hold the tensors.
    let out = unsafe { probe.api.copy_tensor(&strided, &flat, STREAM) };
    demand(into.is_err() && out.is_err(), || {
        "a strided tensor was copied as if it lay in one piece".into()
    })
}

fn extent_one_axes_do_not_count(probe: &Probe<'_>) -> Outcome {
    let (from, to) = (probe.space(8)?, probe.space(8)?);
    from.write(0, &pattern(1, 8), STREAM)?;
    let one = tensor(probe, from.space, &[1, 8], Some(&[77, 1]), 0);
    let flat = tensor(probe, to.space, &[8], None, 0);
    // SAFETY: both spaces hold the tensors.
    unsafe { probe.api.copy_tensor(&one, &flat, STREAM)? };
    expect(to.read(0, 8, STREAM)?, pattern(1, 8), "the copy")
}

fn tensor_offsets_are_used(probe: &Probe<'_>) -> Outcome {
    let (from, to) = (probe.space(64)?, probe.space(64)?);
    from.write(0, &pattern(2, 64), STREAM)?;
    to.write(0, &[7; 64], STREAM)?;
    let source = tensor(probe, from.space, &[8], None, 16);
    let target = tensor(probe, to.space, &[2, 4], None, 32);
    // SAFETY: both spaces hold the tensors.
    unsafe { probe.api.copy_tensor(&source, &target, STREAM)? };
    let mut expected = vec![7; 64];
    expected.splice(32..40, pattern(2, 64)[16..24].iter().copied());
    expect(to.read(0, 64, STREAM)?, expected, "the target")
}

fn stream_of_thread(probe: &Probe<'_>) -> Outcome {
    let Probe { api, device } = *probe;
    probe.with_stream(|stream| {
        if stream == STREAM {
            return Failure::skipped("the device has only the default stream");
        }
        let before = api.current_stream(device);
        api.set_stream(device, stream)?;
        let here = api.current_stream(device);
        let there = std::thread::scope(|scope| scope.spawn(|| api.current_stream(device)).join());
        let replaced = crate::device::stream::set(device, before)?;
        expect(here, stream, "the stream of the thread that set it")?;
        demand(there.is_ok_and(|there| there == STREAM), || {
            "another thread sees the stream".into()
        })?;
        expect(replaced, stream, "the stream that was replaced")
    })
}

fn pooled(probe: &Probe<'_>) -> Outcome {
    if probe.api.pools_workspace() {
        return Ok(());
    }
    Failure::skipped("workspace of this device is plain memory")
}

/// Runs `body` on a thread of its own, whose pool is empty.
fn on_fresh_thread<T: Send>(
    body: impl FnOnce() -> Result<T, Failure> + Send,
) -> Result<T, Failure> {
    let outcome = std::thread::scope(|scope| scope.spawn(body).join());
    outcome.unwrap_or_else(|_| Failure::broken("the device panicked"))
}

fn workspace_is_reused(probe: &Probe<'_>) -> Outcome {
    pooled(probe)?;
    on_fresh_thread(|| reused(probe))
}

fn reused(probe: &Probe<'_>) -> Outcome {
    let first = probe.workspace(4096)?;
    let space = first.space;
    first.free()?;
    for _ in 0..3 {
        let again = probe.workspace(4096)?;
        expect(again.space, space, "the block of the next cycle")?;
        again.free()?;
    }
    Ok(())
}

fn workspace_order(probe: &Probe<'_>) -> Outcome {
    pooled(probe)?;
    // In: the order in which equal blocks come back. Out: the order in which they are handed out again.
    for (back, again) in [("BA", "AB"), ("AB", "BA"), ("CBA", "BCA"), ("DCBA", "CDBA")] {
        let order = on_fresh_thread(|| order_of_reuse(probe, back))?;
        expect(
            order.as_str(),
            again,
            &format!("blocks after {back} came back"),
        )?;
    }
    Ok(())
}

fn order_of_reuse(probe: &Probe<'_>, back: &str) -> Result<String, Failure> {
    let mut blocks: Vec<_> = (0..back.len())
        .map(|_| probe.workspace(4096).map(Some))
        .collect::<Result<_, _>>()?;
    let spaces: Vec<Space> = blocks.iter().flatten().map(|held| held.space).collect();
    for letter in back.bytes() {
        if let Some(held) = blocks
            .get_mut(usize::from(letter - b'A'))
            .and_then(Option::take)
        {
            held.free()?;
        }
    }
    let mut order = String::new();
    let mut again = Vec::new();
    for _ in 0..back.len() {
        let held = probe.workspace(4096)?;
        let letter = spaces.iter().position(|space| *space == held.space);
        order.push(letter.map_or('?', |at| char::from(b'A' + at as u8)));
        again.push(held);
    }
    Ok(order)
}

fn foreign_workspace_is_refused(probe: &Probe<'_>) -> Outcome {
    pooled(probe)?;
    let held = probe.workspace(64)?;
    let foreign = probe.space(64)?;
    // SAFETY: refusing is all that a pool may do with a space that it does not know, and that is what this is about.
    let refused = unsafe { probe.api.free_workspace(probe.device, foreign.space) };
    drop(held);
    demand(refused.is_err(), || {
        "the pool took memory that it had not given".into()
    })
}

fn workspace_comes_back_in_any_order(probe: &Probe<'_>) -> Outcome {
    let [first, second, third] = [
        probe.workspace(100)?,
        probe.workspace(100)?,
        probe.workspace(100)?,
    ];
    second.free()?;
    first.free()?;
    third.free()?;
    Ok(())
}

fn workspace_is_per_device(probe: &Probe<'_>) -> Outcome {
    pooled(probe)?;
    let other = Device::new(probe.device.kind, probe.device.id + 1);
    if probe.device.kind != Device::CPU.kind
        && probe.api.attribute(other, Attribute::Exist)? != Value::Int(1)
    {
        return Failure::skipped("there is one device of this type");
    }
    let first = probe.workspace(4096)?;
    let space = first.space;
    first.free()?;
    let there = Probe::new(probe.api, other).workspace(4096)?;
    demand(there.space != space, || {
        "memory of one device was handed out for another".into()
    })
}

fn empty_workspace_is_something(probe: &Probe<'_>) -> Outcome {
    let [first, second] = [probe.workspace(0)?, probe.workspace(0)?];
    demand(!first.space.is_null() && !second.space.is_null(), || {
        "a workspace of no bytes is null".into()
    })
}

fn sync_waits(probe: &Probe<'_>) -> Outcome {
    let space = probe.space(1 << 16)?;
    for round in 0..4 {
        let bytes = pattern(round, 1 << 16);
        space.write(0, &bytes, STREAM)?;
        let staging = space.read_later(0, 1 << 16, STREAM)?;
        probe.sync(STREAM)?;
        same(&staging.bytes(), &bytes, "after the sync")?;
    }
    Ok(())
}

/// Compares buffers and names the first difference only.
fn same(actual: &[u8], expected: &[u8], what: &str) -> Outcome {
    let differs = actual
        .iter()
        .zip(expected)
        .position(|(actual, expected)| actual != expected);
    match differs {
        None => expect(actual.len(), expected.len(), what),
        Some(at) => Failure::broken(format!(
            "{what}: byte {at} of {} is {:#04x}, not {:#04x}",
            expected.len(),
            actual[at],
            expected[at]
        )),
    }
}

fn stream_runs_in_order(probe: &Probe<'_>) -> Outcome {
    let [space, other] = [probe.space(256)?, probe.space(256)?];
    probe.with_stream(|stream| {
        for round in 0..10 {
            space.write(0, &pattern(round, 256), stream)?;
            space.copy_to(0, &other, 0, 256, stream)?;
        }
        same(
            &other.read(0, 256, stream)?,
            &pattern(9, 256),
            "the last of ten writes",
        )
    })
}

fn streams_wait_for_each_other(probe: &Probe<'_>) -> Outcome {
    let [space, other] = [probe.space(1 << 14)?, probe.space(1 << 14)?];
    probe.with_stream(|first| {
        probe.with_stream(|second| {
            for round in 0..4 {
                let bytes = pattern(round + 20, 1 << 14);
                space.write(0, &bytes, first)?;
                probe.api.sync_streams(probe.device, first, second)?;
                space.copy_to(0, &other, 0, 1 << 14, second)?;
                same(
                    &other.read(0, 1 << 14, second)?,
                    &bytes,
                    "what the second stream copied",
                )?;
                probe.sync(first)?;
            }
            Ok(())
        })
    })
}

fn copy_moves_exactly_its_bytes(probe: &Probe<'_>) -> Outcome {
    let [from, to] = [probe.space(300)?, probe.space(300)?];
    from.write(0, &pattern(3, 300), STREAM)?;
    for (from_offset, to_offset, nbytes) in [
        (0, 0, 1),
        (1, 3, 5),
        (17, 64, 33),
        (4, 0, 299 - 4),
        (0, 150, 150),
    ] {
        to.write(0, &[9; 300], STREAM)?;
        from.copy_to(from_offset, &to, to_offset, nbytes, STREAM)?;
        let mut expected = vec![9; 300];
        expected.splice(
            to_offset..to_offset + nbytes,
            pattern(3, 300)[from_offset..from_offset + nbytes]
                .iter()
                .copied(),
        );
        same(
            &to.read(0, 300, STREAM)?,
            &expected,
            &format!("{nbytes} bytes from {from_offset} to {to_offset}"),
        )?;
    }
    to.write(5, &[1, 2, 3], STREAM)?;
    same(
        &to.read(4, 3, STREAM)?,
        &[from_pattern(&to, 4)?, 1, 2],
        "a write at an odd offset",
    )
}

fn from_pattern(space: &super::probe::Held<'_>, at: usize) -> Result<u8, Failure> {
    Ok(space
        .read(at, 1, STREAM)?
        .first()
        .copied()
        .unwrap_or_default())
}

fn empty_copy_is_nothing(probe: &Probe<'_>) -> Outcome {
    let [from, to] = [probe.space(8)?, probe.space(8)?];
    to.write(0, &pattern(4, 8), STREAM)?;
    from.copy_to(0, &to, 0, 0, STREAM)?;
    to.write(3, &[], STREAM)?;
    same(
        &to.read(0, 8, STREAM)?,
        &pattern(4, 8),
        "after copies of no bytes",
    )
}

fn overlapping_copy(probe: &Probe<'_>) -> Outcome {
    for (from_offset, to_offset) in [(0, 8), (8, 0), (0, 1)] {
        let space = probe.space(128)?;
        let mut expected = pattern(5, 128);
        space.write(0, &expected, STREAM)?;
        if space
            .copy_to(from_offset, &space, to_offset, 96, STREAM)
            .is_ok()
        {
            expected.copy_within(from_offset..from_offset + 96, to_offset);
        }
        same(
            &space.read(0, 128, STREAM)?,
            &expected,
            &format!("96 bytes from {from_offset} to {to_offset} of one space"),
        )?;
    }
    Ok(())
}

fn spaces_are_distinct(probe: &Probe<'_>) -> Outcome {
    let sizes = [1, 64, 100, 4096, 4097, 1, 64];
    distinct(sizes.into_iter().map(|nbytes| probe.space(nbytes)))
}

fn workspaces_are_distinct(probe: &Probe<'_>) -> Outcome {
    let sizes = [1, 64, 100, 4096, 4097, 1, 64];
    distinct(sizes.into_iter().map(|nbytes| probe.workspace(nbytes)))
}

fn distinct<'a>(
    spaces: impl Iterator<Item = Result<super::probe::Held<'a>, crate::device::Error>>,
) -> Outcome {
    let spaces: Vec<_> = spaces.collect::<Result<_, _>>()?;
    for (seed, space) in spaces.iter().enumerate() {
        space.write(0, &pattern(seed + 30, space.nbytes), STREAM)?;
    }
    for (seed, space) in spaces.iter().enumerate() {
        let bytes = space.read(0, space.nbytes, STREAM)?;
        same(
            &bytes,
            &pattern(seed + 30, space.nbytes),
            &format!("space {seed} of {}", spaces.len()),
        )?;
    }
    Ok(())
}

fn set_device(probe: &Probe<'_>) -> Outcome {
    probe.api.set_device(probe.device)?;
    if probe.device.kind == Device::CPU.kind {
        return Ok(());
    }
    let nowhere = Device::new(probe.device.kind, 1000);
    demand(probe.api.set_device(nowhere).is_err(), || {
        "device 1000 was made current".into()
    })?;
    expect(
        probe.api.attribute(nowhere, Attribute::Exist)?,
        Value::Int(0),
        "exist of device 1000",
    )
}

fn free_waits_for_queued_work(probe: &Probe<'_>) -> Outcome {
    let target = probe.space(512)?;
    for round in 0..4 {
        let source = probe.space(512)?;
        source.write(0, &pattern(round + 40, 512), STREAM)?;
        probe.sync(STREAM)?;
        source.copy_to(0, &target, 0, 512, STREAM)?;
        source.free()?;
        // The next owner of that memory writes to it at once.
        let next = probe.space(512)?;
        next.write(0, &[0xEE; 512], STREAM)?;
        same(
            &target.read(0, 512, STREAM)?,
            &pattern(round + 40, 512),
            "the copy from freed memory",
        )?;
        same(
            &next.read(0, 512, STREAM)?,
            &[0xEE; 512],
            "the next owner's memory",
        )?;
    }
    Ok(())
}
