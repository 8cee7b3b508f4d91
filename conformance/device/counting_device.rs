//! A simulated device that counts live memory: the memory that a graph executor or a machine has allocated but not freed.

use crate::device::simulated::{Hazard, Simulated, SimulatedCall};
use crate::device::{Device, manager};
use crate::function::Error;
use crate::lock::lock;
use serde_json::{Value, json};
use std::sync::{Mutex, MutexGuard, OnceLock};

/// The device type in a case.
pub(in crate::conformance) use super::suite_device_types::COUNTED as KIND;

const NAME: &str = "suite_counted";

/// Returns the device of this process, which is registered on first use.
pub(in crate::conformance) fn device() -> Result<&'static Simulated, Error> {
    static DEVICE: OnceLock<Result<&'static Simulated, Error>> = OnceLock::new();
    let registered = DEVICE.get_or_init(|| {
        let device: &'static Simulated = Box::leak(Box::new(Simulated::new(3)));
        // SAFETY: the simulated device keeps the contract, as its own cases show.
        unsafe { manager::register_number(KIND, NAME, device) }.map(|()| device)
    });
    registered.clone()
}

/// Returns device `id` of this type.
pub(in crate::conformance) fn number(id: i32) -> Device {
    Device { kind: KIND, id }
}

/// A count of the memory in use. Only one case at a time may count or use the device, so that it sees only its own memory.
pub(in crate::conformance) struct UsageCount {
    device: &'static Simulated,
    spaces: usize,
    bytes: usize,
    calls: usize,
    _alone: MutexGuard<'static, ()>,
}

impl UsageCount {
    /// Begins the count.
    pub(in crate::conformance) fn begin() -> Result<UsageCount, Error> {
        static ALONE: Mutex<()> = Mutex::new(());
        let alone = lock(&ALONE);
        let device = device()?;
        Ok(UsageCount {
            device,
            spaces: spaces(device),
            bytes: device.bytes_in_use(),
            calls: device.calls().len(),
            _alone: alone,
        })
    }

    /// Returns the live spaces, bytes and streams, and the numbers of allocations and copies since the count began.
    pub(in crate::conformance) fn shown(&self) -> Value {
        let since = |now: usize, before: usize| now.cast_signed() - before.cast_signed();
        // The calls of earlier cases are skipped, because the process has one device and one log.
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

    /// Makes the device reject one request for memory, after `after` more requests.
    pub(in crate::conformance) fn run_out(&self, after: usize) {
        self.device.fail_alloc(after);
    }
}

/// Returns the number of live spaces.
fn spaces(device: &Simulated) -> usize {
    let hazards = device.finish();
    let spaces = hazards
        .iter()
        .filter(|hazard| matches!(hazard, Hazard::NeverFreed(_)));
    spaces.count()
}
