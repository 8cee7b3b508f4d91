//! A program for the time evaluator, with its own clock.

use super::CodedProgram;
use crate::conformance::behaviour::{Failure, Outcome, expect};
use crate::device::simulated::Simulated;
use crate::device::timer::{Evaluator, Timer};
use crate::device::{Device, Result};
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

/// The program for the number of calls of the evaluator (DEV-45).
pub(super) const PROGRAMS: &[CodedProgram] = &[(
    "device/evaluator-repeats-until-the-minimum-time",
    least_time,
)];

/// A clock by which every call takes the stated time.
struct PerCall {
    nanoseconds: u64,
    calls: Rc<Cell<u64>>,
    started: u64,
    taken: u64,
}

// DEV-45: it counts calls instead of reading a clock, so that the number of repetitions does not depend on the machine.
impl Timer for PerCall {
    fn start(&mut self) -> Result<()> {
        self.started = self.calls.get();
        Ok(())
    }

    fn stop(&mut self) -> Result<()> {
        self.taken = (self.calls.get() - self.started) * self.nanoseconds;
        Ok(())
    }

    fn elapsed(&mut self) -> Result<u64> {
        Ok(self.taken)
    }
}

/// Runs `device/evaluator-repeats-until-the-minimum-time` (DEV-45).
fn least_time() -> Outcome {
    let default = Evaluator::default();
    let settings = (default.number, default.repeat, default.repeats_to_cooldown);
    expect(
        settings,
        (10, 1, 1),
        "number, repeat and repetitions before a pause",
    )?;
    let limit = default.limit_zero_time_iterations;
    expect(limit, 100, "measurements of no time")?;
    let none = [default.min_repeat, default.cooldown];
    expect(none, [Duration::ZERO; 2], "the least time and the pause")?;
    let measure = |nanoseconds, evaluator: Evaluator| {
        let calls = Rc::new(Cell::new(0));
        let mut clock = PerCall {
            nanoseconds,
            calls: calls.clone(),
            started: 0,
            taken: 0,
        };
        let simulated = Simulated::new(1);
        let call = || {
            calls.set(calls.get() + 1);
            Ok(())
        };
        let seconds = evaluator.run(&simulated, Device::ext_dev(0), &mut clock, call)?;
        Ok::<_, Failure>((calls.get(), seconds))
    };
    let evaluator = Evaluator {
        number: 1,
        repeat: 2,
        min_repeat: Duration::from_millis(100),
        ..default
    };
    let (calls, seconds) = measure(10_000_000, evaluator)?;
    expect(calls, 1 + 1 + 11 + 11, "calls for 100 ms of 10 ms each")?;
    expect(seconds, vec![0.01; 2], "seconds of a call")?;
    let evaluator = Evaluator {
        repeat: 1,
        limit_zero_time_iterations: 3,
        ..evaluator
    };
    let (calls, seconds) = measure(0, evaluator)?;
    expect(calls, 1 + 1 + 1 + 1, "calls that take no time")?;
    expect(seconds, vec![0.0], "seconds of a call that takes none")?;
    for (number, nanoseconds, expected, what) in [
        (10, 0, 1 + 10 + 16 + 25, "ten that take no time"),
        (2, 10_000_000, 1 + 2 + 11, "two of 10 ms"),
        (10, 9_500_000, 1 + 10 + 16, "ten of 9.5 ms"),
        (10, 10_000_000, 1 + 10, "ten of 10 ms"),
        (0, 100_000_000, 1 + 1, "none of 100 ms"),
    ] {
        let evaluator = Evaluator {
            number,
            ..evaluator
        };
        let (calls, _) = measure(nanoseconds, evaluator)?;
        expect(calls, expected, what)?;
    }
    Ok(())
}
