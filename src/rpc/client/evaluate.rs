//! Time evaluators of a server: the server calls and measures, and this side waits for the results.

use super::session::Session;
use crate::device::Device;
use crate::device::timer::Evaluator;
use crate::function::{Error, ErrorKind, Function, Result};
use crate::module::Module;
use crate::value::{Any, AnyView, Bytes};

/// Options of a measurement on a server.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct RemoteTiming {
    /// Number and duration of the calls (DEV-45).
    pub evaluator: Evaluator,
    /// Number of cache bytes that are flushed before each measurement, from 0.14 on.
    pub cache_flush_bytes: u64,
    /// Global function of the server that is called before each measurement with the same arguments; empty for no function.
    pub before: String,
}

impl Session {
    /// Creates a measuring function on the server. It is called with the arguments of `name` and returns the bytes of
    /// [`timer::to_bytes`](crate::device::timer::to_bytes). Without a module, `name` is a global function of the server.
    ///
    /// # Errors
    ///
    /// Returns errors of the server, such as that for a function that it does not have.
    pub fn time_evaluator(
        &self,
        module: Option<&Module>,
        name: &str,
        device: Device,
        timing: &RemoteTiming,
    ) -> Result<Function> {
        let evaluator = self.require("runtime.RPCTimeEvaluator")?;
        // RPC-91: this call passes device type and number as two plain integers, so that the session must be removed here.
        let device = self.link().unmasked(device)?;
        let mut failed = None;
        for form in forms(self) {
            let args = arguments(module, name, device, timing, *form);
            let views: Vec<AnyView<'_>> = args.iter().map(Any::view).collect();
            match evaluator.call_packed(&views) {
                Ok(made) => return Ok(Function::try_from(made)?),
                // If the release is unknown, several forms are tried: the server rejects a form of another release by its number of
                // arguments.
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        Err(failed.unwrap_or_else(|| Error::new(ErrorKind::Runtime, "no form of the call")))
    }

    /// Measures the function `name` with these arguments. Returns seconds per call, one number for each measurement.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Session::time_evaluator`] and of the function, and a TypeError for a result that is not a list of doubles.
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
            .call_packed(args)?;
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

/// Returns the possible numbers of arguments of `runtime.RPCTimeEvaluator`: 8 up to 0.8, 10 in 0.9, 11 from 0.10 to 0.13, then 12.
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

/// Returns the arguments of a form, in the order of the newest form, without those that came later.
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
    // RPC-91: 0.10 added this argument before the arguments that 0.9 had added.
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
    // RPC-91: this argument is the last in every form: releases added others before it.
    args.push(timing.before.as_str().into());
    args
}
