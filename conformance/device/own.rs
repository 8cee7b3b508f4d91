//! What this crate's own half of the contract must do: the defaults, the pool, the manager.
//!
//! A behaviour is data beside a function: its id, the rules that it shows, since which release they hold, why a user cares, and the program in
//! words, by which another implementer writes the same check in another language. The functions are in the files of `own/`; ids are those of
//! the cases in `conformance/device/cases/`, which `device.behaviour` runs by name.

mod code;
mod host;
mod managed;
mod memory;
mod modules;
mod running;

use crate::conformance::behaviour::{Behaviour, Outcome};
use crate::device::{
    DEV_01, DEV_02, DEV_03, DEV_04, DEV_05, DEV_06, DEV_07, DEV_08, DEV_12, DEV_13, DEV_14, DEV_15,
    DEV_18, DEV_19, DEV_20, DEV_21, DEV_22, DEV_24, DEV_25, DEV_26, DEV_27, DEV_28, DEV_29, DEV_31,
    DEV_33, DEV_34, DEV_41, DEV_42, DEV_44, DEV_45, DEV_54, DEV_55, DEV_56, DEV_59, Device,
};
use code::{barrier_of_a_kernel, current_device, loaded_late, stream_of_a_kernel, unknown_kernel};
use host::{
    handles_are_no_addresses, no_such_alignment, what_the_cpu_answers, who_pools,
    workspace_of_compiled_code,
};
use managed::{
    copy_between_types, copy_dispatch, exist_of_missing, lookup_once, miss_forgotten, missing_says,
    overtaken, remote_share, set_device_reaches, unknown_number, workspace_hint,
};
use memory::{
    default_copy, no_streams, plain_workspace, rejects_foreign, replaces_largest, replaces_single,
    reuses, scoped_memory, smallest_fit, tensor_copy, thread_end, whole_pages,
};
use running::{best_timer, evaluator_counts, evaluator_pauses, timer_measures, timer_waits};

pub use modules::CASES as MODULE_CASES;

/// Every behaviour of this chapter that does not depend on a device, but those of modules.
pub const CASES: &[Behaviour<fn() -> Outcome>] = &[
    Behaviour {
        id: "device/scoped-memory-is-flat-memory",
        rules: &[DEV_13, DEV_14, DEV_15],
        releases: "0.21..",
        why: "a device that only knows bytes must get the right number of them, aligned for its elements",
        program: &[
            "With a recorder: takes memory in scope `global` for each of the tensors below and frees it. The calls are one alloc as stated, with the tensor's dtype as the hint, on device 0, and one free: [3] of int4: 2 bytes, alignment 64; [3, 5] of float32: 60, 64; [7] of float32x3: 84, 64; [2] of float64x16: 256, 128; [0, 9] of uint8: 0, 64.",
            "Taking memory for [4, -1] of uint8 without a scope is rejected by DEV-15 as limit.",
            "A tensor of [2, 3], float32, at byte offset 8 has 24 bytes without a scope, in that of the empty text, and in `global`; one of [-2, 3] is rejected by DEV-15 as limit.",
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
        id: "device/default-copy-rejects",
        rules: &[DEV_18],
        releases: "0.8..",
        why: "a device without a copy must say so; silence leaves the destination unwritten",
        program: &[
            "With a recorder without a copy of its own: a copy of 0 bytes from null on the CPU to null on (12, 0) is rejected by DEV-18 as unsupported, and the error has the text `Device does not support CopyDataFromTo.`",
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
            "Workspace of the largest size that the host can name is rejected by DEV-25 as limit.",
        ],
        run: whole_pages,
    },
    Behaviour {
        id: "device/pool-reuses-without-a-call",
        rules: &[DEV_26],
        releases: "0.2..",
        why: "one device allocation per operator costs more than small kernels do",
        program: &[
            "With a pool that has allocated 4096, 10000 and 4096 bytes, all freed again.",
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
            "With a pool that has allocated 4096 bytes, all freed again: workspace of 4097 bytes makes the calls free, then alloc of 8192.",
        ],
        run: replaces_single,
    },
    Behaviour {
        id: "device/pool-takes-the-smallest-that-fits",
        rules: &[DEV_28],
        releases: "0.2..",
        why: "a small request that takes the large block makes the next large one allocate",
        program: &[
            "With a pool that has allocated 4096, 8192 and 16384 bytes, all freed again: workspace of 5000, then 16384, then 100 bytes, none freed, makes no call.",
        ],
        run: smallest_fit,
    },
    Behaviour {
        id: "device/pool-replaces-the-largest",
        rules: &[DEV_29],
        releases: "0.2..",
        why: "replacing the smallest keeps two blocks where one would do",
        program: &[
            "With a pool that has allocated 4096 and 8192 bytes, all freed again: workspace of 16384 bytes makes the calls free, then alloc of 16384. Workspace of 4096 bytes then makes no call.",
        ],
        run: replaces_largest,
    },
    Behaviour {
        id: "device/pool-rejects-a-foreign-handle",
        rules: &[DEV_31],
        releases: "0.2..",
        why: "upstream takes null for its own sentinel and corrupts the pool",
        program: &[
            "With a pool: freeing null as workspace is rejected by DEV-31 as missing, and so is all below.",
            "Takes workspace of 64 bytes. Freeing null is rejected, and so is freeing an address that is not the pool's.",
            "Frees the workspace. Freeing it again is rejected.",
        ],
        run: rejects_foreign,
    },
    Behaviour {
        id: "device/pool-is-freed-with-its-thread",
        rules: &[DEV_33],
        releases: "0.2..",
        why: "short-lived worker threads would leak all device memory",
        program: &[
            "With a pool: takes workspace of 64 bytes. Another thread does the same, which is another block, frees it, and ends.",
            "Within a second of that the calls are: alloc of 4096, alloc of 4096, free.",
            "Frees the first workspace and takes 64 bytes on the device with the next number: the one call is an alloc of 4096 there.",
            "The end of the pool, with one free block: the one call is a free.",
        ],
        run: thread_end,
    },
    Behaviour {
        id: "device/lookup-is-by-name-and-once",
        rules: &[DEV_01, DEV_02],
        releases: "0.2..",
        why: "a device is added by registering a name; asking twice would make two of it",
        program: &[
            "With a manager over `device_api.cpu`, `device_api.cuda` and `device_api.ext_dev`: looks up the devices of types 2, 2, 12, 1 and 12.",
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
            "With a manager over `device_api.rpc`: looks up the devices of types 128, 130, 257 and 4100. The one name looked up is `device_api.rpc`.",
        ],
        run: remote_share,
    },
    Behaviour {
        id: "device/missing-device-says-its-name",
        rules: &[DEV_04],
        releases: "0.2..",
        why: "the user has to learn which backend to build or install",
        program: &[
            "With a manager over nothing: looking up the device of type 2 is rejected by DEV-04 as missing, and the error has the text `Device API cuda is not enabled.`",
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
        id: "device/unknown-number-is-rejected",
        rules: &[DEV_06],
        releases: "0.2..",
        why: "upstream indexes past its table: type 127 is a segmentation fault",
        program: &[
            "With a manager over `device_api.unknown`: asking for the devices of types -1, 0, 5, 6, 17, 31, 32, 36, 99 and 127 is rejected by DEV-06 as unknown-kind. No name is looked up.",
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
            "Asking (4, 0) for its warp size is rejected by DEV-04 as missing; (2, 0) has None.",
        ],
        run: exist_of_missing,
    },
    Behaviour {
        id: "device/copy-goes-to-the-device-that-is-not-the-cpu",
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
        id: "device/copy-between-types-is-rejected",
        rules: &[DEV_20],
        releases: "0.2..",
        why: "neither device can read the other's handles",
        program: &[
            "With a manager over `device_api.cpu`, `device_api.cuda` and `device_api.opencl`: a copy of a tensor from (2, 0) to (4, 0) is rejected by DEV-20 as unsupported, and the error has the text `Can not copy across different device types directly`.",
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
            "The device was waited for once behind the first call, and once before each measurement.",
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
            "Then does so on a new thread, which never made one current.",
            "What was noted is: load on 2, launch on 2, load on 0, launch on 0, launch on 2, launch on 0.",
        ],
        run: current_device,
    },
    Behaviour {
        id: "device/unknown-kernel-is-nothing",
        rules: &[DEV_56],
        releases: "0.2..",
        why: "lookup goes on in other modules when this one has no function of that name",
        program: &[
            "With the module of `device/code-is-loaded-late-and-once-per-device`: there is no function `div`, and looking it up is no error.",
        ],
        run: unknown_kernel,
    },
    Behaviour {
        id: "device/lookup-that-is-overtaken",
        rules: &[DEV_02],
        releases: "0.27",
        why: "two threads that look for a device at once must not make two of it",
        program: &[
            "With a manager whose first look-up of `device_api.metal` asks for the device of type 8 itself, as another thread may meanwhile: asks for that device twice. It is the same, at the same address, and the factory was called once.",
        ],
        run: overtaken,
    },
    Behaviour {
        id: "device/who-pools-workspace",
        rules: &[DEV_08, DEV_22, DEV_24],
        releases: "0.27",
        why: "a device that is wrong about itself is held to the rules of another",
        program: &[
            "The CPU and the simulated device have a pool of workspace, a recorder has none. Handles of the CPU are addresses, those of the others are not.",
            "A property of a recorder, `thread_warp_size`, is None. Its stream of this thread is set to the default one and is that.",
        ],
        run: who_pools,
    },
    Behaviour {
        id: "device/what-the-cpu-answers",
        rules: &[DEV_08],
        releases: "0.27",
        why: "a scheduler that takes a made-up number of the host for a fact plans for a machine that is not there",
        program: &[
            "`exist` of the CPU is 1. `total_global_memory` lies between a half and twice of what `/proc/meminfo` says, where there is such a file. Every other attribute is None.",
        ],
        run: what_the_cpu_answers,
    },
    Behaviour {
        id: "device/an-alignment-that-is-none",
        rules: &[DEV_12],
        releases: "0.27",
        why: "memory at an alignment that no allocator knows is aligned to something else",
        program: &[
            "Memory of the CPU aligned to 24, 63 and 65 is rejected by DEV-12 as unsupported. Aligned to 0 and 1 there is some.",
        ],
        run: no_such_alignment,
    },
    Behaviour {
        id: "device/workspace-of-compiled-code",
        rules: &[DEV_26, DEV_31],
        releases: "0.27",
        why: "workspace that compiled code frees and that is not reused grows with every call",
        program: &[
            "On a new thread, twice: takes 5000 bytes of workspace of the CPU as `TVMBackendAllocWorkspace` does, and frees it. It is the same block.",
            "There is no workspace of type 127, and a foreign block is not taken back.",
        ],
        run: workspace_of_compiled_code,
    },
    Behaviour {
        id: "device/handles-are-no-addresses",
        rules: &[DEV_41],
        releases: "0.27",
        why: "a handle that comes twice, or that one plus an offset also is, leads to another tensor",
        program: &[
            "With the handles of a device whose memory has no addresses: makes three, for 0, 1 and 2. Each leads to its number, and each is 64 more than the one before.",
            "The first and one byte is rejected by DEV-41 as missing. Takes the first back, which gives 0, and is rejected likewise the second time. The third still leads to 2, and a fourth is none of the three.",
        ],
        run: handles_are_no_addresses,
    },
    Behaviour {
        id: "device/timer-measures-what-is-between",
        rules: &[DEV_44],
        releases: "0.8..",
        why: "a timer that counts what was before it was started makes the first measurement the worst",
        program: &[
            "With the default timer of a recorder: it shows 0 before it is started. Started, after 20 ms stopped: it shows at least those.",
            "After 20 ms started and stopped at once, and read 20 ms later, five times: at least one shows less than 20 ms.",
        ],
        run: timer_measures,
    },
    Behaviour {
        id: "device/timer-of-a-type",
        rules: &[DEV_44],
        releases: "0.8..",
        why: "the clock of the host is not that of a device that has its own",
        program: &[
            "Asks for the timer of a recorder as type 12, starts and stops it: the recorder gets two syncs.",
            "Asks for one as type 2, which has a clock of its own: where there is no such device it fails, and else the recorder gets no sync when it is started. A testee that is built without that clock cannot run the program.",
        ],
        run: best_timer,
    },
    Behaviour {
        id: "device/evaluator-pauses",
        rules: &[DEV_45],
        releases: "0.9..",
        why: "a device that is not left to cool down is measured hot",
        program: &[
            "Measures with `number` 1, `repeat` 5 and a pause of 20 ms after every first of 0, 1, 2 and 3 measurements: there is none; one after each; one after measurements 0, 2 and 4; one after 0 and 3.",
        ],
        run: evaluator_pauses,
    },
    Behaviour {
        id: "device/kernel-runs-on-the-stream-of-its-thread",
        rules: &[DEV_22, DEV_55],
        releases: "0.22..",
        why: "a kernel on another stream than its thread's is ordered before nothing",
        program: &[
            "With the module of `device/code-is-loaded-late-and-once-per-device`: calls `mul` on device 2, once as it is and once with a stream of its own as the thread's of that device, then on device 0. The second call alone is launched on that stream.",
        ],
        run: stream_of_a_kernel,
    },
    Behaviour {
        id: "device/barrier-is-reset-before-the-kernel",
        rules: &[DEV_59],
        releases: "..0.23",
        why: "blocks that wait for each other would count on from an earlier launch, and go on too early",
        program: &[
            "With the module of `device/code-is-loaded-late-and-once-per-device`, whose code has the variable of DEV-59: resets its barrier, and calls `mul`, on device 2 with a stream of its own as the thread's; then resets it on device 0, without one. The first write and the launch are on that stream, in this order, the second write is on device 0, and each device loads the code once.",
        ],
        run: barrier_of_a_kernel,
    },
];

const DEVICE: Device = Device::ext_dev(0);
