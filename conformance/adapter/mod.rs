//! The connection to an implementation under test.
//!
//! A [`Testee`] answers operations, and is the part that an implementer writes. An [`Adapter`] carries requests to a testee and
//! survives its crashes. The testee runs in this process ([`InProcess`]), or in another that speaks the exec protocol
//! ([`exec::Exec`]). Native libraries may crash, so a worker runs them: this program's own binary, started again as `tvmspec worker
//! SPEC`.

pub mod builtin;
pub(crate) mod device;
pub mod exec;
pub(super) mod exec_process;
pub mod family;
pub(crate) mod ffi;
pub(crate) mod legacy;
pub mod liar;
pub(super) mod library;
pub(crate) mod program_command;
pub mod protocol;
pub mod registry;
mod rpc;
mod spelling;
pub(crate) mod view;

pub use super::reply::{Identity, Oddity, Rejection, Reply};

use crate::release::ParseError;
use serde_json::Value;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// An implementation that answers operations.
pub trait Testee {
    /// Returns its name, version and abilities.
    fn identity(&self) -> Identity;

    /// Executes `op` with `args`. Binary data is base64 under `data`, and a value is under `value`.
    fn answer(&mut self, op: &str, args: &Value) -> Reply;

    /// Waits as [`Adapter::ready`] does.
    ///
    /// # Errors
    ///
    /// As [`Adapter::ready`].
    fn ready(&mut self, _goes_on: &dyn Fn() -> bool) -> Result<(), String> {
        Ok(())
    }

    /// Returns whether this testee must state all that a case states: kind, rule, offset and field of every rejection, and every
    /// finding in full. Other testees may omit parts that they do not know.
    fn answers_in_full(&self) -> bool {
        false
    }
}

/// A connection to a testee, which outlives the testee.
pub trait Adapter {
    /// Says hello, with the hash of the suite.
    ///
    /// # Errors
    ///
    /// Fails without a testee: the command does not exist, or does not speak the protocol.
    fn hello(&mut self, suite: &str) -> Result<Identity, String>;

    /// Sends one request. It never fails, because a failure is also a [`Reply`].
    fn call(&mut self, op: &str, args: &Value) -> Reply;

    /// Waits until there is a testee for the next case, as long as `goes_on` returns true. A testee that is not ready is not
    /// charged to a case.
    ///
    /// # Errors
    ///
    /// Fails if no testee can be started any more, so that the remaining cases cannot be run.
    fn ready(&mut self, _goes_on: &dyn Fn() -> bool) -> Result<(), String> {
        Ok(())
    }

    /// Returns an event of the testee since its last answer that no request caused: a line, or its end. It is charged to the last
    /// case.
    fn stray(&mut self) -> Option<Reply> {
        None
    }

    /// Ends the testee for good, and returns what [`Adapter::stray`] would.
    fn finish(&mut self) -> Option<Reply> {
        None
    }

    /// Returns the number of requests since the testee was restarted after a loss, or `None` if it was not.
    fn since_restart(&self) -> Option<u64> {
        None
    }

    /// Returns whether the last request was the only one since the testee was started. A testee in this process keeps nothing
    /// between two.
    fn was_alone(&self) -> bool {
        true
    }

    /// Ends the testee; the next call starts it again. In process this does nothing.
    fn restart(&mut self) {}

    /// Returns what [`Testee::answers_in_full`] returns.
    fn answers_in_full(&self) -> bool {
        false
    }

    /// Returns the testee's stderr since the last request, truncated if it is long.
    fn stderr(&mut self) -> Option<String> {
        None
    }
}

/// The limits of a testee in another process.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// The time limit of one request, by default ten seconds.
    pub timeout: Duration,
    /// The limit of address space in MiB, if the system supports it; by default none.
    pub memory: Option<u64>,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            timeout: Duration::from_secs(10),
            memory: None,
        }
    }
}

/// The adapters, for help texts.
pub const HELP: &str = "builtin | exec:COMMAND | ffi:LIB[,LIB..][#TARGET] | legacy:LIB[,LIB..][@RELEASE][#TARGET] | rpc:HOST:PORT[/KEY][@RELEASE] | rpc-tracker:HOST:PORT/KEY[?wait=SECONDS][@RELEASE] | device:NAME[:ID] | device:rpc://HOST:PORT/KEY#NAME:ID | liar:NAME";

/// Opens `spec`, such as `builtin` or `exec:python3 testee.py`. The command is split at spaces; [`exec::Exec::new`] takes its words.
///
/// # Errors
///
/// An unknown adapter; the message lists the known ones. Otherwise the error of the adapter.
pub fn open(spec: &str, limits: Limits) -> Result<Box<dyn Adapter>, ParseError> {
    let (scheme, rest) = spec.split_once(':').unwrap_or((spec, ""));
    match scheme {
        "builtin" => Ok(Box::new(InProcess(builtin::BuiltinTestee))),
        "exec" => Ok(Box::new(exec::Exec::command(rest, limits)?)),
        // These servers already run in separate processes.
        "rpc" | rpc::POOL => {
            let mut server = rpc::LiveServer::open(scheme, rest, limits.timeout)?;
            server.is_there()?;
            Ok(Box::new(InProcess(server)))
        }
        // A testee that may crash or hang runs in a separate process.
        _ => {
            worker_exists(spec)?;
            let mut words = program_command::words().map_err(|error| error.to_string())?;
            words.extend(["worker".into(), spec.into()]);
            Ok(Box::new(exec::Exec::worker(words, limits)))
        }
    }
}

/// Adapters to several testees of one kind, which work concurrently.
#[derive(Clone, Debug)]
pub struct Several {
    spec: String,
    limits: Limits,
}

impl Several {
    /// Checks that `spec` has a testee, and that several of them do not interfere.
    ///
    /// # Errors
    ///
    /// As [`open`]; an adapter that can only run one case at a time.
    pub fn check(spec: &str, limits: Limits) -> Result<Several, ParseError> {
        let (scheme, rest) = spec.split_once(':').unwrap_or((spec, ""));
        let why = match scheme {
            "rpc" => {
                "a server that ends would be charged to the cases of others; try a tracker: rpc-tracker:HOST:PORT/KEY"
            }
            "device" if rest.starts_with("rpc:") => {
                "the sessions would be of one server; try a tracker: device:rpc-tracker://HOST:PORT/KEY#NAME"
            }
            _ => "",
        };
        if !why.is_empty() {
            return Err(ParseError::new(format!("one case at a time: {why}")));
        }
        worker_or_command(scheme, spec)?;
        if scheme == rpc::POOL {
            rpc::LiveServer::open(scheme, rest, limits.timeout)?.is_there()?;
        }
        Ok(Several {
            spec: spec.to_owned(),
            limits,
        })
    }

    /// Opens an adapter to another one of them.
    ///
    /// # Errors
    ///
    /// As [`open`].
    pub fn open(&self) -> Result<Box<dyn Adapter>, ParseError> {
        match self.spec.split_once(':') {
            // The pool was seen to have servers. Whether one is free is checked later.
            Some((scheme, rest)) if scheme == rpc::POOL => Ok(Box::new(InProcess(
                rpc::LiveServer::open(scheme, rest, self.limits.timeout)?,
            ))),
            _ => open(&self.spec, self.limits),
        }
    }
}

/// Checks the spelling of a `spec` for [`open`].
fn worker_or_command(scheme: &str, spec: &str) -> Result<(), ParseError> {
    match scheme {
        "exec" => Ok(()),
        _ => worker_exists(spec),
    }
}

/// Opens the testee that `tvmspec worker SPEC` serves.
///
/// # Errors
///
/// An unknown adapter; the message lists the known ones. Otherwise the error of the adapter.
pub fn worker(spec: &str) -> Result<Box<dyn Testee>, ParseError> {
    let (scheme, rest) = spec.split_once(':').unwrap_or((spec, ""));
    // It gets no cases, so it is not an adapter.
    if scheme == registry::SCHEME {
        return Ok(Box::new(registry::Registry::open(rest)?));
    }
    worker_exists(spec)?;
    match scheme {
        "builtin" => Ok(Box::new(builtin::BuiltinTestee)),
        "device" => Ok(Box::new(device::DeviceUnderTest::open(rest)?)),
        "rpc" | rpc::POOL => {
            let mut server = rpc::LiveServer::open(scheme, rest, Limits::default().timeout)?;
            server.is_there()?;
            Ok(Box::new(server))
        }
        "legacy" => Ok(Box::new(legacy::Legacy::open(rest)?)),
        "ffi" => Ok(Box::new(ffi::Ffi::open(rest)?)),
        // `worker_exists` has rejected every other scheme, so this is `liar`.
        _ => Ok(Box::new(rest.parse::<liar::Liar>()?)),
    }
}

/// Checks the spelling before a process is started, so that a typo is a usage error.
fn worker_exists(spec: &str) -> Result<(), ParseError> {
    let (scheme, rest) = spec.split_once(':').unwrap_or((spec, ""));
    match scheme {
        "builtin" => Ok(()),
        "device" => Ok(device::parse(rest).map(drop)?),
        "rpc" | rpc::POOL => Ok(rpc::parse(scheme, rest)?),
        "ffi" => libraries_exist(scheme, library::with_generator(rest).0),
        "legacy" => {
            let (libraries, _) = library::with_generator(rest);
            libraries_exist(scheme, legacy::with_release(libraries)?.0)
        }
        "liar" => Ok(rest.parse::<liar::Liar>().map(drop)?),
        _ => Err(ParseError::new(format!(
            "there is no adapter `{scheme}`: {HELP}"
        ))),
    }
}

/// Checks that the files exist, because a wrong path is a typo. The dynamic linker searches for a bare name.
fn libraries_exist(scheme: &str, libraries: &str) -> Result<(), ParseError> {
    if libraries.is_empty() {
        return Err(ParseError::new(format!(
            "{scheme}: needs the path of a library, such as {scheme}:/usr/lib/libtvm_ffi.so"
        )));
    }
    let missing = |library: &&str| {
        let path = std::path::Path::new(library);
        path.components().count() != 1 && !path.is_file()
    };
    match libraries.split(',').find(missing) {
        Some(library) => Err(ParseError::new(format!(
            "{scheme}: there is no library at `{library}`"
        ))),
        None => Ok(()),
    }
}

/// A testee in this process. A panic is a crash of only that case. A hang or an abort ends the run.
#[derive(Debug)]
pub struct InProcess<T>(
    /// The testee.
    pub T,
);

impl<T: Testee> Adapter for InProcess<T> {
    fn hello(&mut self, _suite: &str) -> Result<Identity, String> {
        Ok(self.0.identity())
    }

    fn call(&mut self, op: &str, args: &Value) -> Reply {
        // A panic is caught here, but an abort is not. Testees that are not Rust code therefore run in a worker.
        catch_unwind(AssertUnwindSafe(|| self.0.answer(op, args)))
            .unwrap_or_else(|panic| Reply::Crash(format!("panic: {}", panic_text(&*panic))))
    }

    fn ready(&mut self, goes_on: &dyn Fn() -> bool) -> Result<(), String> {
        self.0.ready(goes_on)
    }

    fn answers_in_full(&self) -> bool {
        self.0.answers_in_full()
    }
}

/// Returns the message of a panic.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("without a message")
}
