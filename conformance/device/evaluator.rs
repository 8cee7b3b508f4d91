//! A program about the time evaluator, with a clock of its own.

use crate::conformance::behaviour::{Behaviour, Failure, Outcome, expect};
use crate::device::simulated::Simulated;
use crate::device::timer::{Evaluator, Timer};
use crate::device::{DEV_45, Device, Result};
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

/// How often the evaluator calls (DEV-45).
pub(super) const CASES: &[Behaviour<fn() -> Outcome>] = &[Behaviour {
    id: "device/evaluator-repeats-until-the-minimum-time",
    rules: &[DEV_45],
    releases: "0.2..",
    why: "a measurement that is shorter than the clock's step says nothing",
    program: &[
        "An evaluator has `number` 10, `repeat` 1, 0 for the least time, the pause, 1 for the repetitions before it, and 100 for measurements of no time, unless the call names others.",
        "Measures with `number` 1, `repeat` 2 and a least time of 100 ms, by a clock for which a call takes 10 ms: the function is called 1 + 1 + 11 + 11 times, the results are 0.01 twice.",
        "With a clock that always says 0 and a limit of 3 measurements of no time, `number` 1 and `repeat` 1: 1 + 1 + 1 + 1 calls, and the result is 0.",
        "With `repeat` 1, 100 ms, and the same limit: 10 calls that take no time become 16 and then 25; 2 of 10 ms become 11; 10 of 9.5 ms become 16, as 1.618 times as many are more than the pace needs; 10 of 10 ms stay; 0 become 1. All after the first, which is not measured.",
    ],
    run: least_time,
}];

/// A clock for which every call takes as long as it says.
struct PerCall {
    nanoseconds: u64,
    calls: Rc<Cell<u64>>,
    started: u64,
    taken: u64,
}

// By counting and not by a clock: how often the evaluator repeats must not depend on the machine (DEV-45).
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

/// `device/evaluator-repeats-until-the-minimum-time` (DEV-45). Where it does not hold: a measurement that is shorter than the clock's
/// step says nothing.
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
