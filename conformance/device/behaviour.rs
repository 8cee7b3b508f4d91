//! What every device must do.
//!
//! Each is put to the CPU, to a simulated device, to the same behind a table of C, and by `device:` to a real one, here or on a server. A device
//! that lacks what a program needs (streams, addresses, a text as answer) is skipped, and says why; a wrong one is broken, with what was seen.
//! The table of defects in `conformance/device/mod.rs` has the wrong devices that programs have to notice.

mod attributes;
mod copies;
mod streams;
mod workspaces;

use super::probe::Probe;
use crate::conformance::behaviour::{Behaviour, Outcome};
use crate::device::{
    DEV_08, DEV_10, DEV_11, DEV_12, DEV_13, DEV_16, DEV_17, DEV_18, DEV_22, DEV_23, DEV_26, DEV_30,
    DEV_31, DEV_32, DEV_33, DEV_35, DEV_36, DEV_37, DEV_38, DEV_39, DEV_40, DEV_41, DEV_42, DEV_46,
    Stream,
};
use attributes::{
    attributes_have_their_types, compute_version_is_numbers, flat_scopes_are_flat,
    memory_is_aligned, spaces_are_distinct, thread_dimensions_are_a_list,
    unknown_scope_is_rejected,
};
use copies::{
    copy_moves_exactly_its_bytes, empty_copy_is_nothing, extent_one_axes_do_not_count,
    overlapping_copy, strided_tensor_is_rejected, tensor_offsets_are_used, tensor_sizes_must_match,
};
use streams::{
    free_waits_for_queued_work, set_device, stream_of_thread, stream_runs_in_order,
    streams_wait_for_each_other, sync_waits,
};
use workspaces::{
    empty_workspace_is_something, foreign_workspace_is_rejected, workspace_comes_back_in_any_order,
    workspace_is_per_device, workspace_is_reused, workspace_order, workspaces_are_distinct,
};

/// Drives one device.
pub type DeviceCheck = fn(&Probe<'_>) -> Outcome;

/// Every behaviour that a [`DeviceApi`](crate::device::DeviceApi) is held to.
pub const CASES: &[Behaviour<DeviceCheck>] = &[
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
        why: "0.14 and later pass an empty scope for plain memory; a device that rejects it cannot run them",
        program: &[
            "Takes memory for a tensor of extents [3, 5], float32, without a scope, in scope `global`, and in scope of the empty text, and frees each before the next.",
        ],
        run: flat_scopes_are_flat,
    },
    Behaviour {
        id: "device/unknown-scope-is-rejected",
        rules: &[DEV_13],
        releases: "0.8..",
        why: "a texture that silently becomes a buffer is read with the wrong layout",
        program: &[
            "Taking memory for [4] of float32 in scope `no.such.scope` is rejected, and so is computing the bytes of a tensor of [4], uint8, in that scope; where an error names a rule, it is DEV-13 as unsupported.",
        ],
        run: unknown_scope_is_rejected,
    },
    Behaviour {
        id: "device/tensor-sizes-must-match",
        rules: &[DEV_16],
        releases: "0.2..",
        why: "copying the smaller or the larger number of bytes are both wrong; only rejecting is not",
        program: &[
            "Takes two spaces of 16.",
            "A copy of a tensor of [2, 4] with strides [1, 2] in the first to a compact one of [9] in the second, both uint8, is rejected; where the error names a rule, it is DEV-16 as type.",
        ],
        run: tensor_sizes_must_match,
    },
    Behaviour {
        id: "device/strided-tensor-is-rejected",
        rules: &[DEV_17],
        releases: "0.8..",
        why: "copying a transposed view as if it lay in one piece permutes its elements",
        program: &[
            "Takes two spaces of 16.",
            "A copy of a compact tensor of [2, 4] to one of [2, 4] with strides [1, 2], uint8, is rejected, and so is one the other way round; where an error names a rule, it is DEV-17 as unsupported.",
        ],
        run: strided_tensor_is_rejected,
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
        id: "device/foreign-workspace-is-rejected",
        rules: &[DEV_31],
        releases: "0.2..",
        why: "taking a stranger's pointer into the pool hands it out as scratch memory later",
        program: &[
            "Needs a device that pools workspace.",
            "Takes workspace of 64 bytes, and a space of 64.",
            "Freeing the space as workspace is rejected; where the error names a rule, it is DEV-31 as missing.",
        ],
        run: foreign_workspace_is_rejected,
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
        why: "the host reads results after a sync; after a sync that returns early it reads old data now and then",
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
        why: "tensors without elements are legal; drivers reject copies of no bytes",
        program: &[
            "Takes two spaces of 8 and writes pattern 4 of 8 to the second.",
            "Copies 0 bytes from the first to the second, and writes 0 bytes at offset 3 of the second.",
            "Reads the second: pattern 4.",
        ],
        run: empty_copy_is_nothing,
    },
    Behaviour {
        id: "device/overlapping-copy-moves-or-is-rejected",
        rules: &[DEV_40],
        releases: "0.2..",
        why: "a cache that shifts in place repeats its first rows for ever",
        program: &[
            "For offsets (0, 8), (8, 0) and (0, 1): takes a space of 128, writes pattern 5 of 128, and copies 96 bytes from the first offset to the second offset of the same space.",
            "Reads it: where the copy was accepted, the bytes as if they had been read before any was written; where it was rejected, the pattern.",
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
        why: "a device that is not there must be rejected here and not at the first kernel",
        program: &[
            "Makes the device the current one.",
            "Unless it is a CPU: making device 1000 of its type the current one is rejected, where the error names a rule by DEV-42 as missing, and `exist` of that is 0.",
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
