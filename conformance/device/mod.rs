//! The device contract: every rule of the chapter as a program that drives a [`DeviceApi`].
//!
//! A program is the `value` of its case: a list of steps, which `steps` and `program` run. Programs that need threads, clocks or C
//! tables are code.
//!
//! ```
//! use tvmspec::device::simulated::Simulated;
//!
//! let my_device = Simulated::new(1);
//! let report = tvmspec::conformance::device::contract(&my_device).expect("the cases are here");
//! report.assert();
//! ```

pub mod c_contract;
mod coded_programs;
pub(in crate::conformance) mod counting_device;
mod evaluator;
mod failing_table;
mod forms;
pub(crate) mod ops;
mod pack;
mod pool;
mod program;
mod program_devices;
pub(crate) mod recorder;
mod registered;
pub mod script;
mod simulate;
mod staging;
mod step_forms;
mod steps;
pub(in crate::conformance) mod suite_device_types;
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
/// Fails like [`Suite::ours`] if no cases are found: a program outside of the source tree needs the feature `embed`.
pub fn contract(api: &dyn DeviceApi) -> Result<ContractReport, ParseError> {
    contract_on(api, Device::ext_dev(0))
}

/// Drives a device of another type or index, as [`contract`] does.
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
    // The walk comes after the programs, because a program usually shows the same defect in fewer steps.
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

/// Returns the cases that drive a device under test, and not one that the testee creates.
fn contract_cases(suite: &'static Suite) -> impl Iterator<Item = &'static Case> {
    suite.cases.iter().filter(|case| {
        let is_own = || program_of(case).is_none_or(program::brings_its_device);
        case.op == PROGRAM && !case.args.contains_key("defect") && !is_own()
    })
}

/// Returns the steps of a case, or the name of its program.
fn program_of(case: &Case) -> Option<&Value> {
    match &case.input {
        CaseInput::Value(value) => Some(value),
        _ => None,
    }
}

/// The operation whose cases contain their programs.
pub(in crate::conformance) const PROGRAM: &str = "device.program";

/// The operation that runs a coded program by its name.
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

/// A coded program: the id of its case, and the function.
type CodedProgram = (&'static str, fn() -> Outcome);

/// Returns the coded program of this name, which creates its own devices.
fn coded(id: &str) -> Option<fn() -> Outcome> {
    let all = [
        coded_programs::PROGRAMS,
        registered::PROGRAMS,
        evaluator::PROGRAMS,
        tables::PROGRAMS,
    ];
    let mut all = all.into_iter().flatten();
    all.find(|(known, _)| *known == id).map(|(_, run)| *run)
}

/// Returns the defect of this name. A program must fail on a simulated device with the defect, which shows that it tests something.
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

/// Runs a program. A panic of the device fails only that program.
fn guarded(run: impl FnOnce() -> Outcome) -> Outcome {
    // This does not catch a device in C: its exception ends the process. A foreign device therefore runs in a worker process.
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(run))
        .unwrap_or_else(|_| Failure::broken("the device panicked"))
}

/// The result of a contract.
#[derive(Clone, Debug)]
#[must_use]
#[non_exhaustive]
pub struct ContractReport {
    /// The device that was driven.
    pub device: Device,
    /// The results, one per behaviour, with the random walk last.
    pub results: Vec<BehaviourResult>,
}

/// The result of one behaviour.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BehaviourResult {
    /// The name of the behaviour.
    pub id: &'static str,
    /// The consequence for a user if it is broken.
    pub why: &'static str,
    /// The ids of its rules.
    pub rules: Vec<&'static str>,
    /// The outcome. The text of a failure begins with the step of the program that failed, and its number.
    pub outcome: Outcome,
}

impl ContractReport {
    /// Returns whether nothing is broken. A skipped behaviour is not broken.
    pub fn holds(&self) -> bool {
        self.broken().next().is_none()
    }

    /// Panics unless the contract [holds](ContractReport::holds), for the test of a device. The message names each broken behaviour, the
    /// call that failed, and the rules.
    #[track_caller]
    pub fn assert(&self) {
        assert!(self.holds(), "device {}: {self}", self.device);
    }

    /// Returns the broken behaviours.
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
