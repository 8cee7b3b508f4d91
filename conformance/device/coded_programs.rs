//! Coded programs for a runtime's own half of the contract. They need threads, clocks, or properties of this machine.

mod host;
mod modules;
mod threads;
mod timers;

use super::CodedProgram;
use crate::device::Device;
use host::{handles_are_no_addresses, what_the_cpu_answers, workspace_of_compiled_code};
use modules::{module_of_a_library, modules_of_payloads};
use threads::{overtaken, thread_end};
use timers::{best_timer, evaluator_counts, evaluator_pauses, timer_measures, timer_waits};

/// The programs, each with the id of its case.
pub(super) const PROGRAMS: &[CodedProgram] = &[
    ("device/pool-is-freed-with-its-thread", thread_end),
    ("device/default-timer-waits-twice", timer_waits),
    ("device/evaluator-warms-up-and-counts", evaluator_counts),
    ("device/lookup-that-is-overtaken", overtaken),
    ("device/what-the-cpu-answers", what_the_cpu_answers),
    (
        "device/workspace-of-compiled-code",
        workspace_of_compiled_code,
    ),
    ("device/handles-are-no-addresses", handles_are_no_addresses),
    ("device/timer-measures-what-is-between", timer_measures),
    ("device/timer-of-a-type", best_timer),
    ("device/evaluator-pauses", evaluator_pauses),
    ("device/modules-of-payloads", modules_of_payloads),
    ("device/module-of-a-library", module_of_a_library),
];

const DEVICE: Device = Device::ext_dev(0);
