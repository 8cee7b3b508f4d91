//! Timers and the evaluator.
//!
//! Nothing depends on the speed of the machine: durations come from the test's own clock, or from a pause that is compared with
//! itself.

use super::super::recorder::Recorder;
use super::DEVICE;
use crate::conformance::behaviour::{Failure, Outcome, demand, expect};
use crate::device::timer;
use crate::device::timer::{DefaultTimer, Evaluator, Timer, to_bytes};
use serde_json::json;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Runs `device/default-timer-waits-twice` (DEV-44).
pub(super) fn timer_waits() -> Outcome {
    let recorder = Recorder::new();
    let mut timer = DefaultTimer::new(&recorder, DEVICE);
    timer.start()?;
    timer.stop()?;
    expect(recorder.take_log(), vec![json!(["sync", 0]); 2], "calls")
}

/// Returns the smallest of several measurements, because the system may delay any of them.
fn smallest_measurement(measure: impl Fn() -> Result<u64, Failure>) -> Result<u64, Failure> {
    let all: Result<Vec<u64>, Failure> = (0..5).map(|_| measure()).collect();
    Ok(all?.into_iter().min().unwrap_or(u64::MAX))
}

/// A pause that is longer than the resolution of any system's clock.
const PAUSE: Duration = Duration::from_millis(20);

/// Converts a duration to the unit of timers.
fn nanoseconds(of: Duration) -> u64 {
    u64::try_from(of.as_nanos()).unwrap_or(u64::MAX)
}

/// Runs `device/timer-measures-what-is-between` (DEV-44).
pub(super) fn timer_measures() -> Outcome {
    let recorder = Recorder::new();
    let between = |before: Duration, within: Duration| {
        let mut timer = DefaultTimer::new(&recorder, DEVICE);
        expect(timer.elapsed()?, 0, "the time before it was started")?;
        std::thread::sleep(before);
        timer.start()?;
        std::thread::sleep(within);
        timer.stop()?;
        std::thread::sleep(before);
        Ok::<_, Failure>(timer.elapsed()?)
    };
    let shown = between(Duration::ZERO, PAUSE)?;
    // At least the pause, without an upper bound, because the system may wake this thread arbitrarily late.
    demand(shown >= nanoseconds(PAUSE), || {
        format!("{shown} ns for a pause of 20 ms")
    })?;
    let shown = smallest_measurement(|| between(PAUSE, Duration::ZERO))?;
    demand(shown < nanoseconds(PAUSE), || {
        format!("{shown} ns with the pauses around it")
    })
}

/// Runs `device/timer-of-a-type` (DEV-44).
pub(super) fn best_timer() -> Outcome {
    // Leaked, because the timer of a type may keep its device as long as the process runs.
    let recorder: &'static Recorder = Box::leak(Box::default());
    let mut of_host = timer(recorder, DEVICE)?;
    of_host.start()?;
    of_host.stop()?;
    let log = recorder.take_log();
    expect(log, vec![json!(["sync", 0]); 2], "calls for type 12")?;
    own_clock(recorder)
}

/// Checks that a CUDA device measures with its own events and makes no sync; without a device there is no CUDA timer.
#[cfg(feature = "cuda")]
fn own_clock(recorder: &'static Recorder) -> Outcome {
    use crate::device::{Attribute, AttributeValue, cuda};
    let device = crate::device::Device::cuda(0);
    let exists = cuda::cuda().attribute(device, Attribute::Exist)?;
    let own = timer(recorder, device);
    expect(
        own.is_ok(),
        exists == AttributeValue::Int(1),
        "a timer of CUDA",
    )?;
    if let Ok(mut own) = own {
        own.start()?;
        let log = recorder.take_log();
        expect(log, Vec::new(), "calls for a device with its own clock")?;
    }
    Ok(())
}

/// Skips the check, because only CUDA has its own clock here.
#[cfg(not(feature = "cuda"))]
fn own_clock(_: &'static Recorder) -> Outcome {
    Failure::skipped("this build has no clock of CUDA")
}

/// Runs `device/evaluator-pauses` (DEV-45).
pub(super) fn evaluator_pauses() -> Outcome {
    let recorder = Recorder::new();
    let pauses = |repeats_to_cooldown, cooldown| {
        let evaluator = Evaluator {
            number: 1,
            repeat: 5,
            cooldown,
            repeats_to_cooldown,
            ..Evaluator::default()
        };
        let mut calls = Vec::new();
        evaluator.run(&recorder, DEVICE, &mut Clock(1), || {
            calls.push(Instant::now());
            Ok(())
        })?;
        calls.push(Instant::now());
        // The first call is not measured.
        let measured = calls.get(1..).unwrap_or_default();
        let waits = measured.windows(2).map(|pair| match pair {
            [one, other] => other.duration_since(*one) >= cooldown,
            _ => false,
        });
        Ok::<Vec<bool>, Failure>(waits.collect())
    };
    for (every, expected) in [
        (0, [false; 5]),
        (1, [true; 5]),
        (2, [true, false, true, false, true]),
        (3, [true, false, false, true, false]),
    ] {
        // If the system delays a call, that looks like a pause, so the measurement is repeated.
        let mut seen = pauses(every, PAUSE)?;
        for _ in 0..5 {
            if seen == expected {
                break;
            }
            seen = pauses(every, PAUSE)?;
        }
        let what = format!("pauses with one before every {every}");
        expect(seen.as_slice(), expected.as_slice(), &what)?;
    }
    Ok(())
}

/// A timer that does not wait: every interval takes the stated time.
struct Clock(u64);

impl Timer for Clock {
    fn start(&mut self) -> crate::device::Result<()> {
        Ok(())
    }

    fn stop(&mut self) -> crate::device::Result<()> {
        Ok(())
    }

    fn elapsed(&mut self) -> crate::device::Result<u64> {
        Ok(self.0)
    }
}

/// Runs `device/evaluator-warms-up-and-counts` (DEV-45).
pub(super) fn evaluator_counts() -> Outcome {
    let recorder = Recorder::new();
    let calls = AtomicUsize::new(0);
    let evaluator = Evaluator {
        number: 5,
        repeat: 3,
        ..Evaluator::default()
    };
    let seconds = evaluator.run(&recorder, DEVICE, &mut Clock(5_000_000_000), || {
        calls.fetch_add(1, Ordering::Relaxed);
        Ok(())
    })?;
    expect(calls.load(Ordering::Relaxed), 1 + 5 * 3, "calls")?;
    // DEV-45: one wait after the call that is not measured, then one before each measurement. `Clock` itself does not wait.
    let waits = vec![json!(["sync", 0]); 1 + 3];
    expect(recorder.take_log(), waits, "waits")?;
    expect(seconds.as_slice(), &[1.0; 3], "seconds per call")?;
    expect(
        to_bytes(&seconds),
        [1f64.to_ne_bytes(); 3].concat(),
        "bytes",
    )
}
