//! The random walk: scripts of calls, run on a device and on a model of it, and reduced to the smallest script that differs.
//!
//! A script is a program of `device.program`, so the smallest one can become a case. The model of programs is right only without
//! races. A step is therefore omitted if it accesses memory that another stream still uses, without an order between the two.

mod order;
mod random;
mod shrink;

pub use super::steps::Step;

use super::program::run_steps;
use super::program_devices::UnderTest;
use super::steps::Stop;
use crate::conformance::behaviour::Failure;
use crate::device::{DEV_36, DEV_37, DEV_38, DEV_39, DEV_40, DEV_41, DEV_46, Device, DeviceApi};
use order::without_races;
use random::generate;
use shrink::shrink;
use std::fmt;

/// The name of the walk among the programs.
pub(crate) const ID: &str = "device/random-walk";

/// The settings of a walk.
#[derive(Clone, Copy, Debug)]
pub struct Walk {
    /// The seed of the first script.
    pub seed: u64,
    /// The number of scripts.
    pub scripts: usize,
    /// The maximum number of steps of a script.
    pub steps: usize,
}

impl Default for Walk {
    fn default() -> Walk {
        Walk {
            seed: 1,
            scripts: 60,
            steps: 40,
        }
    }
}

/// The smallest script found in which the device and the model differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Minimal {
    /// The script.
    pub script: Vec<Step>,
    /// The difference at its end.
    pub difference: String,
    /// The number of steps before the script was shrunk.
    pub before: usize,
}

impl Minimal {
    /// Returns the rules that the steps in the script depend on.
    pub fn rules(&self) -> Vec<&'static str> {
        let has = |op: &str| self.script.iter().any(|step| step.op() == op);
        let within = |step: &Step| step.op() == "copy" && step.get(1) == step.get(3);
        // Every script reads after a sync, so these two rules are part of any difference.
        let mut rules = vec![DEV_36, DEV_39];
        if has("order") {
            rules.push(DEV_38);
        }
        if has("free") || has("free-workspace") {
            rules.push(DEV_46);
        }
        if self.script.iter().any(within) {
            rules.push(DEV_40);
        }
        rules.extend([DEV_37, DEV_41]);
        rules.into_iter().map(|rule| rule.id()).collect()
    }
}

impl fmt::Display for Minimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "device and model differ: {}", self.difference)?;
        write!(
            f,
            "     smallest script ({} steps, shrunk from {}):",
            self.script.len(),
            self.before
        )?;
        for step in &self.script {
            write!(f, "\n       {step}")?;
        }
        Ok(())
    }
}

/// Runs random scripts until one differs, and shrinks it.
///
/// # Errors
///
/// Returns the shortest script found for which the device and the model differ.
pub fn walk(api: &dyn DeviceApi, device: Device, walk: &Walk) -> Result<(), Minimal> {
    walk_with(&|script| differs(api, device, script), walk)
}

/// Runs the walk as [`walk`] does, with a new device for every script. A broken script then does not disturb the next one, so
/// shrinking gets further.
///
/// # Errors
///
/// As [`walk`].
pub fn walk_fresh<D: DeviceApi>(
    make: impl Fn() -> D,
    device: Device,
    walk: &Walk,
) -> Result<(), Minimal> {
    walk_with(&|script| differs(&make(), device, script), walk)
}

/// Runs a script and returns the difference between the device and the model, if there is one.
fn differs(api: &dyn DeviceApi, device: Device, script: &[Step]) -> Option<String> {
    match run_steps(&without_races(script), &UnderTest { api, device }) {
        Err(Stop::Judged(Failure::Broken(how))) => Some(how),
        Err(Stop::Failed(error)) => Some(error.to_string()),
        // A shrunk script may be malformed.
        Err(Stop::Malformed(_) | Stop::Judged(Failure::Skipped(_))) | Ok(()) => None,
    }
}

/// Runs scripts by seed up to the first that differs, and shrinks that one, because fifty steps tell a person nothing.
fn walk_with(differs: &dyn Fn(&[Step]) -> Option<String>, walk: &Walk) -> Result<(), Minimal> {
    for index in 0..walk.scripts {
        // The seed of a script is its position in the walk, so that it can be generated again without the earlier ones.
        let script = generate(walk.seed.wrapping_add(index as u64), walk.steps);
        if let Some(difference) = differs(&script) {
            return Err(shrink(differs, script, difference));
        }
    }
    Ok(())
}
