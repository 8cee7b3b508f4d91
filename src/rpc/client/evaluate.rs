//! Time evaluators of a server: it calls and measures, and this side waits for the numbers.

use super::session::Session;
use crate::device::Device;
use crate::device::timer::Evaluator;
use crate::function::{Error, ErrorKind, Function, Result};
use crate::module::Module;
use crate::value::{Any, AnyView, Bytes};

/// What a server is to measure.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct RemoteTiming {
    /// How often, and how long (DEV-45).
    pub evaluator: Evaluator,
    /// Bytes of cache that are flushed in front of each measurement, from 0.14 on.
    pub cache_flush_bytes: u64,
    /// A global function of the server that is called in front of each measurement with the same arguments; empty for none.
    pub before: String,
}

impl Session {
    /// A function of the server that measures: called with the arguments of `name`, it returns the bytes of
    /// [`timer::to_bytes`](crate::device::timer::to_bytes). Without a module `name` is a global function of the server.
    ///
    /// # Errors
    ///
    /// What the server raises, such as for a function that it does not have.
    pub fn time_evaluator(
        &self,
        module: Option<&Module>,
        name: &str,
        device: Device,
        timing: &RemoteTiming,
    ) -> Result<Function> {
        let evaluator = self.require("runtime.RPCTimeEvaluator")?;
        // RPC-91: type and number are two plain integers in this call, so that nothing behind it takes the session off.
        let device = self.link().unmasked(device)?;
        let mut failed = None;
        for form in forms(self) {
            let args = arguments(module, name, device, timing, *form);
            let views: Vec<AnyView<'_>> = args.iter().map(Any::view).collect();
            match evaluator.call(&views) {
                Ok(made) => return Ok(Function::try_from(made)?),
                // Where the release is not known: a form of another one is rejected by its number of arguments.
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        Err(failed.unwrap_or_else(|| Error::new(ErrorKind::Runtime, "no form of the call")))
    }

    /// Seconds per call, one number for each measurement, of the function `name` with these arguments.
    ///
    /// # Errors
    ///
    /// As [`Session::time_evaluator`]; what the function raises; a TypeError for a result that is no list of doubles.
    pub fn time(
        &self,
        module: Option<&Module>,
        name: &str,
        device: Device,
        timing: &RemoteTiming,
        args: &[AnyView<'_>],
    ) -> Result<Vec<f64>> {
        let measured = self
            .time_evaluator(module, name, device, timing)?
            .call(args)?;
        let wrong = || Error::new(ErrorKind::Type, "a time evaluator returns bytes of doubles");
        let bytes = Bytes::from_any(measured).map_err(|_| wrong())?;
        let (doubles, rest) = bytes.as_bytes().as_chunks::<8>();
        if !rest.is_empty() {
            return Err(wrong());
        }
        Ok(doubles
            .iter()
            .map(|double| f64::from_le_bytes(*double))
            .collect())
    }
}

/// The number of arguments that `runtime.RPCTimeEvaluator` has in the releases that the server may be of: up to 0.8 eight, in 0.9 ten, up
/// to 0.13 eleven, then twelve.
fn forms(session: &Session) -> &'static [usize] {
    let era = session.link().era;
    match (era.stated, era.release.minor()) {
        (true, ..=8) => &[8],
        (true, 9) => &[10],
        (true, 10..=13) => &[11],
        (true, _) => &[12],
        (false, 21..) => &[12],
        (false, _) => &[12, 11, 10, 8],
    }
}

/// The arguments of a form. The order is that of the newest one, without those that came later.
fn arguments(
    module: Option<&Module>,
    name: &str,
    device: Device,
    timing: &RemoteTiming,
    form: usize,
) -> Vec<Any> {
    let number = |number: u64| Any::from(i64::try_from(number).unwrap_or(i64::MAX));
    let millis = |time: std::time::Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let how = &timing.evaluator;
    let mut args = vec![
        module.map_or_else(Any::none, |module| module.clone().into()),
        name.into(),
        i64::from(device.kind).into(),
        i64::from(device.id).into(),
        number(how.number),
        number(how.repeat as u64),
        number(millis(how.min_repeat)),
    ];
    // RPC-91: it came with 0.10, and stands in front of what 0.9 had added.
    if form >= 11 {
        args.push(number(how.limit_zero_time_iterations));
    }
    if form >= 10 {
        args.push(number(millis(how.cooldown)));
        args.push(number(how.repeats_to_cooldown as u64));
    }
    if form >= 12 {
        args.push(number(timing.cache_flush_bytes));
    }
    // RPC-91: last in every form: what a release adds goes in front of it.
    args.push(timing.before.as_str().into());
    args
}
