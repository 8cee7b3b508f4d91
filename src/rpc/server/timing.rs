//! Implementation of `runtime.RPCTimeEvaluator`: a function that calls another one and returns the time it took (RPC-91).

use super::super::RPC_91;
use crate::device::timer::{Evaluator, to_bytes};
use crate::device::{self, Device, Manager};
use crate::function::{Error, Function, Result};
use crate::module::Module;
use crate::rule::Kind;
use crate::value::{AnyView, Bytes, str_bytes};
use std::time::Duration;

/// The optional arguments after the first seven, `[mod, name, device type, device id, number, repeat, min_repeat_ms]`. Their number depends
/// on the release. RPC-91: the last argument is always the name of the function to call first.
struct OptionalArguments {
    limit_zero_time_iterations: u64,
    cooldown: u64,
    repeats_to_cooldown: u64,
}

/// Creates the measuring function. `global` looks up functions that are not in a module.
pub(super) fn evaluator(
    args: &[AnyView<'_>],
    global: impl Fn(&str) -> Result<Function>,
) -> Result<Function> {
    let int = |at: usize| -> Result<i64> {
        let found = args.get(at).and_then(|arg| i64::try_from(*arg).ok());
        found.ok_or_else(|| wrong_arguments(&format!("argument {at} is not an integer")))
    };
    let count = |at: usize| -> Result<u64> {
        // A negative number means no calls, no repetitions, or no pause.
        Ok(u64::try_from(int(at)?).unwrap_or(0))
    };
    let text = |at: usize| -> Result<String> {
        let found = args.get(at).and_then(str_bytes);
        let found = found.map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        found.ok_or_else(|| wrong_arguments(&format!("argument {at} is not a string")))
    };
    let none = OptionalArguments {
        limit_zero_time_iterations: 100,
        cooldown: 0,
        repeats_to_cooldown: 1,
    };
    let (tail, first) = match args.len() {
        8 => (none, 7),
        10 => (
            OptionalArguments {
                cooldown: count(7)?,
                repeats_to_cooldown: count(8)?,
                ..none
            },
            9,
        ),
        // RPC-91: 0.14 added the number of cache bytes to flush before the text. This server flushes no cache.
        number @ (11 | 12) => (
            OptionalArguments {
                limit_zero_time_iterations: count(7)?,
                cooldown: count(8)?,
                repeats_to_cooldown: count(9)?,
            },
            number - 1,
        ),
        number => {
            return Err(wrong_arguments(&format!(
                "{number} arguments are those of no release"
            )));
        }
    };
    let name = text(1)?;
    let function = match args.first() {
        Some(module) if !module.is_none() => {
            let module = Module::try_from(*module)
                .map_err(|_| wrong_arguments("argument 0 is not a module"))?;
            module.require(&name)?
        }
        _ => global(&name)?,
    };
    let before = match text(first)?.as_str() {
        "" => None,
        name => Some(global(name)?),
    };
    let id = |at: usize| -> Result<i32> {
        i32::try_from(int(at)?)
            .map_err(|_| wrong_arguments(&format!("argument {at} is not an i32")))
    };
    let device = Device::new(id(2)?, id(3)?);
    let evaluator = Evaluator {
        number: count(4)?,
        repeat: usize::try_from(count(5)?).unwrap_or(usize::MAX).min(MOST),
        min_repeat: Duration::from_millis(count(6)?),
        limit_zero_time_iterations: tail.limit_zero_time_iterations,
        cooldown: Duration::from_millis(tail.cooldown),
        repeats_to_cooldown: usize::try_from(tail.repeats_to_cooldown).unwrap_or(usize::MAX),
    };
    Ok(Function::from_packed(move |args| {
        let api = Manager::global().api(device.kind)?;
        let mut timer = device::timer(api, device)?;
        // RPC-91: the preparing function is called before each repetition, with the same arguments.
        let prepare = || match &before {
            Some(before) => before.call_packed(args).map(drop),
            None => Ok(()),
        };
        let call = || function.call_packed(args).map(drop);
        let seconds = evaluator.run_prepared(api, device, &mut *timer, prepare, call)?;
        Ok(Bytes::new(to_bytes(&seconds)).into())
    }))
}

/// Maximum number of repetitions: 8 MiB of results.
const MOST: usize = 1 << 20;

/// Creates the error for wrong arguments (RPC-91).
fn wrong_arguments(message: &str) -> Error {
    let message = format!("runtime.RPCTimeEvaluator: {message}");
    RPC_91.rejected(Kind::Type, message).into()
}
