//! Timers, and the time evaluator that measures a function with them.

use crate::device::{Device, DeviceApi, Result, Stream, device_type};
use crate::release::Release;
use std::time::{Duration, Instant};

/// A timer of one interval of work on a device.
pub trait Timer {
    /// Begins the interval.
    ///
    /// # Errors
    ///
    /// Returns the error of a sync of the device, or of the recording of an event.
    fn start(&mut self) -> Result<()>;

    /// Ends the interval; returns before the work is complete.
    ///
    /// # Errors
    ///
    /// As [`Timer::start`].
    fn stop(&mut self) -> Result<()>;

    /// Waits for the device and returns the nanoseconds of the interval.
    ///
    /// # Errors
    ///
    /// Returns the device's error, which may also come from the work in the interval.
    fn elapsed(&mut self) -> Result<u64>;
}

/// The timer of devices without their own timer. It waits for the device before it reads the host's clock, so the result includes
/// the wait.
pub(crate) struct DefaultTimer<'a> {
    /// The device API whose default stream is waited for.
    api: &'a dyn DeviceApi,
    device: Device,
    /// The start of the interval.
    started: Instant,
    /// The length of the interval; zero before `stop`.
    elapsed: Duration,
}

impl<'a> DefaultTimer<'a> {
    /// Creates a timer that is not started.
    pub(crate) fn new(api: &'a dyn DeviceApi, device: Device) -> DefaultTimer<'a> {
        DefaultTimer {
            api,
            device,
            started: Instant::now(),
            elapsed: Duration::ZERO,
        }
    }
}

impl Timer for DefaultTimer<'_> {
    fn start(&mut self) -> Result<()> {
        // DEV-44: work that was queued earlier is not part of the interval.
        self.api.sync(self.device, Stream::DEFAULT)?;
        self.started = Instant::now();
        Ok(())
    }

    fn stop(&mut self) -> Result<()> {
        // DEV-44: all work of the interval is part of it.
        self.api.sync(self.device, Stream::DEFAULT)?;
        self.elapsed = self.started.elapsed();
        Ok(())
    }

    fn elapsed(&mut self) -> Result<u64> {
        Ok(u64::try_from(self.elapsed.as_nanos()).unwrap_or(u64::MAX))
    }
}

/// Returns the registry name of the timer of a device type: `profiling.timer.<name>` from 0.8 to 0.23, `runtime.timer.<name>` since
/// (DEV-44).
#[cfg_attr(not(feature = "suite"), allow(dead_code))]
pub(crate) fn timer_name(device_kind: i32, release: Release) -> Result<String> {
    // DEV-44: this is the name that is looked up. 0.8 registers CUDA's timer as `gpu`, so it does not find it.
    let name = device_type::name_in(device_kind, release)?;
    let prefix = if release.minor() >= 24 {
        "runtime"
    } else {
        "profiling"
    };
    Ok(format!("{prefix}.timer.{name}"))
}

/// The number of calls, and the minimum duration of a measurement (DEV-45).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Evaluator {
    /// The number of calls per measurement, at first.
    pub number: u64,
    /// The number of measurements.
    pub repeat: usize,
    /// The minimum duration: a shorter measurement is repeated with more calls.
    pub min_repeat: Duration,
    /// The number of measurements that may read a time of zero.
    pub limit_zero_time_iterations: u64,
    /// The pause after every `repeats_to_cooldown` measurements.
    pub cooldown: Duration,
    /// The number of measurements between pauses, see `cooldown`.
    pub repeats_to_cooldown: usize,
}

impl Default for Evaluator {
    fn default() -> Evaluator {
        Evaluator {
            number: 10,
            repeat: 1,
            min_repeat: Duration::ZERO,
            limit_zero_time_iterations: 100,
            cooldown: Duration::ZERO,
            repeats_to_cooldown: 1,
        }
    }
}

impl Evaluator {
    /// Measures the seconds per call, one number per measurement (DEV-45). Makes one call to warm up, then `repeat` times `number`
    /// calls, or more if `min_repeat` requires them.
    ///
    /// # Errors
    ///
    /// Returns the error of `call`, the timer, or a sync of the device. Nothing is called after the first error.
    pub fn run(
        &self,
        api: &dyn DeviceApi,
        device: Device,
        timer: &mut dyn Timer,
        call: impl FnMut() -> Result<()>,
    ) -> Result<Vec<f64>> {
        self.run_prepared(api, device, timer, || Ok(()), call)
    }

    /// Measures as [`Evaluator::run`] does, and calls `prepare` before each measurement, outside of its time.
    pub(crate) fn run_prepared(
        &self,
        api: &dyn DeviceApi,
        device: Device,
        timer: &mut dyn Timer,
        mut prepare: impl FnMut() -> Result<()>,
        mut call: impl FnMut() -> Result<()>,
    ) -> Result<Vec<f64>> {
        // DEV-45: the first call is not measured, because it may load code (DEV-54).
        call()?;
        api.sync(device, Stream::DEFAULT)?;
        // At least one call is measured, because 0 nanoseconds divided by 0 calls are not a number.
        let mut number = self.number.max(1);
        let mut seconds = Vec::with_capacity(self.repeat);
        for repeat in 0..self.repeat {
            prepare()?;
            let mut zeros = 0;
            let taken = loop {
                api.sync(device, Stream::DEFAULT)?;
                timer.start()?;
                for _ in 0..number {
                    call()?;
                }
                timer.stop()?;
                let taken = timer.elapsed()?;
                zeros += u64::from(taken == 0);
                // DEV-45: a clock that reads 0 never reaches `min_repeat`. Releases before 0.10 have no limit and repeat forever.
                if u128::from(taken) >= self.min_repeat.as_nanos()
                    || zeros >= self.limit_zero_time_iterations
                {
                    break taken;
                }
                // The larger number is kept for the following measurements.
                number = next_call_count(number, taken, self.min_repeat);
            };
            seconds.push(taken as f64 / 1e9 / number as f64);
            // DEV-45: pauses after measurements 0, n, 2n and so on; an n of 0 means no pause.
            if self.repeats_to_cooldown > 0 && repeat.is_multiple_of(self.repeats_to_cooldown) {
                std::thread::sleep(self.cooldown);
            }
        }
        Ok(seconds)
    }
}

/// Returns the calls of the next try. This is one more than the last pace requires, or the last number times 1.618, whichever is
/// larger.
fn next_call_count(number: u64, taken: u64, wanted: Duration) -> u64 {
    let per_call = taken as f64 / number as f64;
    let by_pace = wanted.as_nanos() as f64 / per_call + 1.0;
    // A pace of zero gives infinity, which is ignored because no caller waits that long.
    let by_pace = if by_pace.is_finite() { by_pace } else { 0.0 };
    by_pace.max(number as f64 * 1.618) as u64
}

/// Returns the bytes that a time evaluator returns: native doubles, one after the other (DEV-45).
pub fn to_bytes(seconds: &[f64]) -> Vec<u8> {
    // DEV-45: in the host's byte order, because frontends decode native doubles, including those from a server (RPC-91).
    seconds
        .iter()
        .flat_map(|second| second.to_ne_bytes())
        .collect()
}
