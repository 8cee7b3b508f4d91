//! The device contract: every rule of the chapter as a program that drives a [`DeviceApi`].
//!
//! ```
//! use tvmspec::device::simulated::Simulated;
//!
//! let my_device = Simulated::new(1);
//! let report = tvmspec::conformance::device::contract(&my_device);
//! assert!(report.holds(), "{report}");
//! ```

pub mod behaviour;
pub mod c_contract;
pub(in crate::conformance) mod counted;
mod evaluator;
mod failing_table;
mod forms;
pub(crate) mod ops;
pub mod own;
pub(in crate::conformance) mod own_numbers;
mod pack;
mod pool;
pub mod probe;
pub(crate) mod recorder;
pub mod registered;
pub mod script;
mod simulate;
pub mod tables;

use crate::conformance::behaviour::{Behaviour, Failure, Outcome};
use crate::conformance::op::OpError;
use crate::device::simulated::Bug;
use crate::device::{Device, DeviceApi};
use probe::Probe;
use std::fmt;

/// Drives `api` as external device 0 through every behaviour and the random walk.
pub fn contract(api: &dyn DeviceApi) -> ContractReport {
    contract_on(api, Device::ext_dev(0))
}

/// [`contract`] on a device of another type or index.
pub fn contract_on(api: &dyn DeviceApi, device: Device) -> ContractReport {
    let probe = Probe::new(api, device);
    let mut results: Vec<BehaviourResult> = behaviour::CASES
        .iter()
        .map(|case| BehaviourResult {
            id: case.id,
            why: case.why,
            rules: case.rules.iter().map(|rule| rule.id()).collect(),
            outcome: guarded(case, &probe),
        })
        .collect();
    // Behind the programs: what it finds in forty steps one of them most likely says in three.
    let walk = script::walk(api, device, &script::Walk::default());
    results.push(BehaviourResult {
        id: script::ID,
        why: script::WHY,
        rules: walk
            .as_ref()
            .err()
            .map(|found| found.rules())
            .unwrap_or_default(),
        outcome: walk.map_err(|found| Failure::Broken(found.to_string())),
    });
    ContractReport { device, results }
}

/// Every program that needs no device under test, in the order of `spec/device-programs.md`.
fn without_a_device() -> impl Iterator<Item = &'static Behaviour<fn() -> Outcome>> {
    own::CASES
        .iter()
        .chain(own::MODULE_CASES)
        .chain(registered::CASES)
        .chain(evaluator::CASES)
        .chain(tables::CASES)
}

/// Every program that `device.behaviour` may name, with its id, its rules, what goes wrong without them, and what it does.
/// `spec/device-programs.md` and the cases of `device.behaviour` are made of these and of [`DEFECTS`].
pub fn programs() -> impl Iterator<Item = Program> {
    let on_device = behaviour::CASES.iter().map(Program::of);
    let own = without_a_device().map(Program::of);
    let walk = Program {
        id: script::ID,
        rules: script::RULES.iter().map(|rule| rule.id()).collect(),
        releases: script::RELEASES,
        why: script::WHY,
        steps: script::PROGRAM,
    };
    on_device.chain([walk]).chain(own)
}

/// A defect that `device.behaviour` can ask for: a program must not hold on a simulated device that has it, which shows that
/// answers are measured.
pub struct Defect {
    /// Its name in the request: `sync-returns-early`.
    pub name: &'static str,
    /// The program that notices it.
    pub program: &'static str,
    /// What the simulated device does wrong.
    pub bug: Bug,
    /// The same in words, for an author of a simulated device.
    pub words: &'static str,
}

impl Defect {
    /// The defect of this name.
    fn of(name: &str) -> Result<&'static Defect, OpError> {
        let known = DEFECTS.iter().find(|known| known.name == name);
        let why = || format!("there is no defect `{name}` to simulate");
        known.ok_or_else(|| OpError::Unsupported(why()))
    }
}

/// Every defect.
pub const DEFECTS: &[Defect] = &[
    Defect {
        name: "sync-returns-early",
        program: "device/sync-waits",
        bug: Bug::SyncReturnsEarly,
        words: "a sync returns at once, and work that is queued runs later",
    },
    Defect {
        name: "free-forgets-the-queue",
        program: "device/free-waits-for-queued-work",
        bug: Bug::FreeForgetsTheQueue,
        words: "memory is freed, and taken again, while queued work still uses it",
    },
    Defect {
        name: "overlap-smears",
        program: "device/overlapping-copy-moves-or-is-rejected",
        bug: Bug::OverlapSmears,
        words: "a copy between ranges of one space that overlap goes byte by byte from the front",
    },
    Defect {
        name: "stream-runs-backwards",
        program: "device/stream-runs-in-order",
        bug: Bug::StreamRunsBackwards,
        words: "a stream runs its newest work first",
    },
    Defect {
        name: "workspace-twice",
        program: "device/workspaces-are-distinct",
        bug: Bug::WorkspaceTwice,
        words: "workspace that is in use is handed out again",
    },
];

/// A program in words.
pub struct Program {
    /// Name of the behaviour.
    pub id: &'static str,
    /// Ids of its rules.
    pub rules: Vec<&'static str>,
    /// The releases in which it holds.
    pub releases: &'static str,
    /// What goes wrong for a user where it is broken.
    pub why: &'static str,
    /// What it does and compares, a paragraph each.
    pub steps: &'static [&'static str],
}

impl Program {
    /// The words of a behaviour without its function, for who writes the same in another language.
    fn of<R>(behaviour: &Behaviour<R>) -> Program {
        Program {
            id: behaviour.id,
            rules: behaviour.rules.iter().map(|rule| rule.id()).collect(),
            releases: behaviour.releases,
            why: behaviour.why,
            steps: behaviour.program,
        }
    }
}

/// Runs a behaviour; a panic of the device is the behaviour's failure alone.
fn guarded(case: &Behaviour<behaviour::DeviceCheck>, probe: &Probe<'_>) -> Outcome {
    let run = std::panic::AssertUnwindSafe(|| (case.run)(probe));
    // A device in C cannot come here: what it throws ends the process, which is why a foreign one has a worker of its own.
    std::panic::catch_unwind(run).unwrap_or_else(|_| Failure::broken("the device panicked"))
}

/// What came of a contract.
pub struct ContractReport {
    /// The device that was driven.
    pub device: Device,
    /// One entry per behaviour, the random walk last.
    pub results: Vec<BehaviourResult>,
}

/// How one behaviour went.
pub struct BehaviourResult {
    /// Name of the behaviour.
    pub id: &'static str,
    /// What goes wrong for a user where it is broken.
    pub why: &'static str,
    /// Ids of its rules.
    pub rules: Vec<&'static str>,
    /// How it went.
    pub outcome: Outcome,
}

impl ContractReport {
    /// Whether nothing is broken. What was skipped is not broken.
    pub fn holds(&self) -> bool {
        self.broken().next().is_none()
    }

    /// What is broken.
    pub fn broken(&self) -> impl Iterator<Item = &BehaviourResult> {
        self.results
            .iter()
            .filter(|result| matches!(result.outcome, Err(Failure::Broken(_))))
    }
}

impl fmt::Display for ContractReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |wanted: fn(&Outcome) -> bool| {
            self.results
                .iter()
                .filter(|result| wanted(&result.outcome))
                .count()
        };
        for result in &self.results {
            match &result.outcome {
                Ok(()) => {}
                Err(Failure::Skipped(why)) => writeln!(f, "skip {}: {why}", result.id)?,
                Err(Failure::Broken(how)) => {
                    writeln!(f, "fail {} ({}): {how}", result.id, result.rules.join(", "))?;
                    writeln!(f, "     {}", result.why)?;
                }
            }
        }
        write!(
            f,
            "{} pass, {} fail, {} skipped",
            count(Result::is_ok),
            count(|outcome| matches!(outcome, Err(Failure::Broken(_)))),
            count(|outcome| matches!(outcome, Err(Failure::Skipped(_)))),
        )
    }
}
