//! The device contract: every rule of the chapter as a program that drives a [`DeviceApi`].
//!
//! A program is the `value` of its case, steps that `steps` and `program` run. Code are only those that need threads, clocks or tables of C.
//!
//! ```
//! use tvmspec::device::simulated::Simulated;
//!
//! let my_device = Simulated::new(1);
//! let report = tvmspec::conformance::device::contract(&my_device).expect("the cases are here");
//! assert!(report.holds(), "{report}");
//! ```

pub mod c_contract;
pub(in crate::conformance) mod counted;
mod evaluator;
mod failing_table;
mod forms;
pub(crate) mod ops;
mod own;
pub(in crate::conformance) mod own_numbers;
mod pack;
mod pool;
mod program;
pub(crate) mod recorder;
mod registered;
pub mod script;
mod simulate;
mod staging;
mod stands;
mod step_forms;
mod steps;
mod tables;

use crate::conformance::behaviour::{Failure, Outcome};
use crate::conformance::case::{Case, CaseInput, Suite};
use crate::conformance::op::OpError;
use crate::device::simulated::Bug;
use crate::device::{Device, DeviceApi};
use crate::release::ParseError;
use serde_json::Value;
use std::fmt;

/// Drives `api` as external device 0 through every behaviour and the random walk.
///
/// # Errors
///
/// When there are no cases, as [`Suite::ours`]: a program that leaves the tree needs feature `embed`.
pub fn contract(api: &dyn DeviceApi) -> Result<ContractReport, ParseError> {
    contract_on(api, Device::ext_dev(0))
}

/// [`contract`] on a device of another type or index.
///
/// # Errors
///
/// As [`contract`].
pub fn contract_on(api: &dyn DeviceApi, device: Device) -> Result<ContractReport, ParseError> {
    let suite = Suite::ours()?;
    let results = contract_cases(suite).map(|case| BehaviourResult {
        id: &case.id,
        why: &case.why,
        rules: case.rules.iter().map(String::as_str).collect(),
        outcome: guarded(|| drive(&case.op, program_of(case), api, device)),
    });
    let mut results: Vec<BehaviourResult> = results.collect();
    // After the programs, because a program most likely shows the same defect in fewer steps.
    if let Some(walk) = suite.case(script::ID) {
        let walked = script::walk(api, device, &script::Walk::default());
        results.push(BehaviourResult {
            id: &walk.id,
            why: &walk.why,
            rules: walked
                .as_ref()
                .err()
                .map(script::Minimal::rules)
                .unwrap_or_default(),
            outcome: walked.map_err(|found| Failure::Broken(found.to_string())),
        });
    }
    Ok(ContractReport { device, results })
}

/// The cases that drive a device under test, and no device of the testee's own.
fn contract_cases(suite: &'static Suite) -> impl Iterator<Item = &'static Case> {
    suite.cases.iter().filter(|case| {
        let is_own = || program_of(case).is_none_or(program::brings_its_device);
        case.op == PROGRAM && !case.args.contains_key("defect") && !is_own()
    })
}

/// The steps of a case, or the name of its program.
fn program_of(case: &Case) -> Option<&Value> {
    match &case.input {
        CaseInput::Value(value) => Some(value),
        _ => None,
    }
}

/// The operation whose cases are their programs.
pub(in crate::conformance) const PROGRAM: &str = "device.program";

/// The operation that runs a program of ours by its name.
pub(in crate::conformance) const BEHAVIOUR: &str = "device.behaviour";

/// Runs the program of a case on a device under test. A program that brings its own device is skipped.
pub(in crate::conformance) fn drive(
    op: &str,
    value: Option<&Value>,
    api: &dyn DeviceApi,
    device: Device,
) -> Outcome {
    match (op, value) {
        (PROGRAM, Some(steps)) if !program::brings_its_device(steps) => {
            program::run(steps, api, device)
        }
        (BEHAVIOUR, Some(name)) if name == script::ID => {
            let walked = script::walk(api, device, &script::Walk::default());
            walked.map_err(|found| Failure::Broken(found.to_string()))
        }
        _ => Failure::skipped("this is about our own half of the contract, not about a device"),
    }
}

/// A program that is code: the id of its case, and the function.
type CodedProgram = (&'static str, fn() -> Outcome);

/// Returns the program of this name that is code, and brings its own devices.
fn coded(id: &str) -> Option<fn() -> Outcome> {
    let all = [
        own::PROGRAMS,
        registered::PROGRAMS,
        evaluator::PROGRAMS,
        tables::PROGRAMS,
    ];
    let mut all = all.into_iter().flatten();
    all.find(|(known, _)| *known == id).map(|(_, run)| *run)
}

/// Returns the defect of this name. A program must not hold on a simulated device that has it, which shows that answers are measured.
fn defect(name: &str) -> Result<Bug, OpError> {
    Ok(match name {
        "sync-returns-early" => Bug::SyncReturnsEarly,
        "free-forgets-the-queue" => Bug::FreeForgetsTheQueue,
        "overlap-smears" => Bug::OverlapSmears,
        "stream-runs-backwards" => Bug::StreamRunsBackwards,
        "workspace-twice" => Bug::WorkspaceTwice,
        _ => {
            let why = format!("there is no defect `{name}` to simulate");
            return Err(OpError::Unsupported(why));
        }
    })
}

/// Runs a program; a panic of the device is the failure of that program alone.
fn guarded(run: impl FnOnce() -> Outcome) -> Outcome {
    // A device in C cannot come here: what it throws ends the process, which is why a foreign one has a worker of its own.
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(run))
        .unwrap_or_else(|_| Failure::broken("the device panicked"))
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
