//! Timers, and the time evaluator that measures a function with them.

use crate::device::{Device, DeviceApi, Result, Stream, device_type};
use crate::release::Release;
use std::time::{Duration, Instant};

/// Measures one stretch of work of a device.
pub trait Timer {
    /// Begins the stretch.
    ///
    /// # Errors
    ///
    /// What a sync of the device, or the record of an event, returns.
    fn start(&mut self) -> Result<()>;

    /// Ends it; returns before the device is done.
    ///
    /// # Errors
    ///
    /// As [`Timer::start`].
    fn stop(&mut self) -> Result<()>;

    /// Waits for the device and returns the nanoseconds between.
    ///
    /// # Errors
    ///
    /// What the device answers, for the work between as well.
    fn elapsed(&mut self) -> Result<u64>;
}

/// The timer of devices that have none of their own: it waits for the device before it reads the host's clock, so what it
/// measures includes the wait.
pub(crate) struct DefaultTimer<'a> {
    /// Whose default stream is waited for.
    api: &'a dyn DeviceApi,
    device: Device,
    /// When the stretch began.
    started: Instant,
    /// How long it took; zero before `stop`.
    elapsed: Duration,
}

impl<'a> DefaultTimer<'a> {
    /// A timer that was not started.
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
        // DEV-44: work that was queued before is not part of the stretch.
        self.api.sync(self.device, Stream::DEFAULT)?;
        self.started = Instant::now();
        Ok(())
    }

    fn stop(&mut self) -> Result<()> {
        // DEV-44: and the work of the stretch is, to its end.
        self.api.sync(self.device, Stream::DEFAULT)?;
        self.elapsed = self.started.elapsed();
        Ok(())
    }

    fn elapsed(&mut self) -> Result<u64> {
        Ok(u64::try_from(self.elapsed.as_nanos()).unwrap_or(u64::MAX))
    }
}

/// The name under which the registry has the timer of a device type: `profiling.timer.<name>` from 0.8 to 0.23,
/// `runtime.timer.<name>` since (DEV-44).
#[cfg_attr(not(feature = "suite"), allow(dead_code))]
pub(crate) fn timer_name(device_kind: i32, release: Release) -> Result<String> {
    // DEV-44: the name that is looked for. 0.8 registers CUDA's as `gpu`, and so does not find it.
    let name = device_type::name_in(device_kind, release)?;
    let prefix = if release.minor() >= 24 {
        "runtime"
    } else {
        "profiling"
    };
    Ok(format!("{prefix}.timer.{name}"))
}

/// How often to call, and how long a measurement is at least (DEV-45).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Evaluator {
    /// Calls per measurement, at first.
    pub number: u64,
    /// Measurements.
    pub repeat: usize,
    /// A measurement shorter than this is made again with more calls.
    pub min_repeat: Duration,
    /// How many measurements of no time at all are put up with.
    pub limit_zero_time_iterations: u64,
    /// Pause after every `repeats_to_cooldown` measurements.
    pub cooldown: Duration,
    /// See `cooldown`.
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
    /// Seconds per call, one number per measurement (DEV-45): one call to warm up, then `repeat` times `number` calls,
    /// more where `min_repeat` needs them.
    ///
    /// # Errors
    ///
    /// What `call`, the timer, and a sync of the device return; nothing is called after the first error.
    pub fn run(
        &self,
        api: &dyn DeviceApi,
        device: Device,
        timer: &mut dyn Timer,
        call: impl FnMut() -> Result<()>,
    ) -> Result<Vec<f64>> {
        self.run_prepared(api, device, timer, || Ok(()), call)
    }

    /// [`Evaluator::run`] that calls `prepare` before each measurement, outside of its time.
    pub(crate) fn run_prepared(
        &self,
        api: &dyn DeviceApi,
        device: Device,
        timer: &mut dyn Timer,
        mut prepare: impl FnMut() -> Result<()>,
        mut call: impl FnMut() -> Result<()>,
    ) -> Result<Vec<f64>> {
        // DEV-45: the first call is not measured: it may load code (DEV-54).
        call()?;
        api.sync(device, Stream::DEFAULT)?;
        // Of no calls there is no time per call: 0 nanoseconds by 0 calls are not a number.
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
                // DEV-45: a clock that reads 0 never reaches `min_repeat`. Releases before 0.10 have no bound, and try for ever.
                if u128::from(taken) >= self.min_repeat.as_nanos()
                    || zeros >= self.limit_zero_time_iterations
                {
                    break taken;
                }
                // The larger number stays for the measurements that follow.
                number = more(number, taken, self.min_repeat);
            };
            seconds.push(taken as f64 / 1e9 / number as f64);
            // DEV-45: after the measurements 0, n, 2n and so on; with an n of 0 there is no pause.
            if self.repeats_to_cooldown > 0 && repeat.is_multiple_of(self.repeats_to_cooldown) {
                std::thread::sleep(self.cooldown);
            }
        }
        Ok(seconds)
    }
}

/// The calls of the next try: as many as the last pace needs and one more, or the golden ratio, whichever is larger.
fn more(number: u64, taken: u64, wanted: Duration) -> u64 {
    let per_call = taken as f64 / number as f64;
    let by_pace = wanted.as_nanos() as f64 / per_call + 1.0;
    // A pace of zero is infinity, and no caller waits that long.
    let by_pace = if by_pace.is_finite() { by_pace } else { 0.0 };
    by_pace.max(number as f64 * 1.618) as u64
}

/// The bytes that a time evaluator returns: native doubles, one after the other (DEV-45).
pub fn to_bytes(seconds: &[f64]) -> Vec<u8> {
    // DEV-45: in the order of the host: frontends decode native doubles, those of a server as well (RPC-91).
    seconds
        .iter()
        .flat_map(|second| second.to_ne_bytes())
        .collect()
}
