//! A simulated device that counts what is alive: what a graph executor or a machine took of it and has not freed.

use crate::device::simulated::{Hazard, Simulated, SimulatedCall};
use crate::device::{Device, manager};
use crate::function::Error;
use serde_json::{Value, json};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// Its device type in a case.
pub(in crate::conformance) use super::own_numbers::COUNTED as KIND;

const NAME: &str = "suite_counted";

/// The device of this process, which is registered at its first use.
pub(in crate::conformance) fn device() -> Result<&'static Simulated, Error> {
    static DEVICE: OnceLock<Result<&'static Simulated, Error>> = OnceLock::new();
    let registered = DEVICE.get_or_init(|| {
        let device: &'static Simulated = Box::leak(Box::new(Simulated::new(3)));
        // SAFETY: the simulated device keeps the contract, as its own cases show.
        unsafe { manager::register_number(KIND, NAME, device) }.map(|()| device)
    });
    registered.clone()
}

/// Device `id` of this kind.
pub(in crate::conformance) fn number(id: i32) -> Device {
    Device { kind: KIND, id }
}

/// Only one case at a time counts, or takes of the device at all. What it finds is not its own.
pub(in crate::conformance) struct UsageCount {
    device: &'static Simulated,
    spaces: usize,
    bytes: usize,
    calls: usize,
    _alone: MutexGuard<'static, ()>,
}

impl UsageCount {
    /// From now on.
    pub(in crate::conformance) fn begin() -> Result<UsageCount, Error> {
        static ALONE: Mutex<()> = Mutex::new(());
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let device = device()?;
        Ok(UsageCount {
            device,
            spaces: spaces(device),
            bytes: device.bytes_in_use(),
            calls: device.calls().len(),
            _alone: alone,
        })
    }

    /// Spaces, bytes and streams that are alive, and how often memory was taken and copied since the count began.
    pub(in crate::conformance) fn shown(&self) -> Value {
        let since = |now: usize, before: usize| now.cast_signed() - before.cast_signed();
        // Behind the calls of earlier cases: the device, and what it noted, is one for the process.
        let calls = self.device.calls().split_off(self.calls);
        let count = |is: fn(&SimulatedCall) -> bool| calls.iter().filter(|call| is(call)).count();
        let made = count(|call| matches!(call, SimulatedCall::CreateStream(..)));
        let freed = count(|call| matches!(call, SimulatedCall::FreeStream(..)));
        json!({
            "spaces": since(spaces(self.device), self.spaces),
            "bytes": since(self.device.bytes_in_use(), self.bytes),
            "streams": since(made, freed),
            "allocations": count(|call| matches!(call, SimulatedCall::Alloc(..))),
            "copies": count(|call| matches!(call, SimulatedCall::Copy(..))),
        })
    }

    /// Lets the device reject a request for memory, after `after` more requests, once.
    pub(in crate::conformance) fn run_out(&self, after: usize) {
        self.device.fail_alloc(after);
    }
}

/// How many spaces are alive.
fn spaces(device: &Simulated) -> usize {
    let hazards = device.finish();
    let spaces = hazards
        .iter()
        .filter(|hazard| matches!(hazard, Hazard::NeverFreed(_)));
    spaces.count()
}
