//! How an implementation is reached.
//!
//! A [`Testee`] answers operations; it is what an implementer writes. An [`Adapter`] carries requests to a testee and
//! survives it: in this process ([`InProcess`]), or in another that speaks the exec protocol ([`exec::Exec`]). Native
//! libraries, which may crash, are testees of a worker: our own binary, started again as `tvmspec worker SPEC`.

pub mod builtin;
pub(crate) mod device;
pub mod exec;
pub(super) mod exec_process;
pub mod family;
pub(crate) mod ffi;
pub(crate) mod legacy;
pub mod liar;
pub(super) mod library;
mod near;
pub mod protocol;
pub mod registry;
mod rpc;
pub(crate) mod view;

pub use super::reply::{Identity, Oddity, Rejection, Reply};

use crate::release::ParseError;
use serde_json::Value;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// An implementation that answers operations.
pub trait Testee {
    /// Who it is.
    fn identity(&self) -> Identity;

    /// Does `op` with `args`; binary is base64 under `data`, a value under `value`.
    fn answer(&mut self, op: &str, args: &Value) -> Reply;

    /// [`Adapter::ready`].
    ///
    /// # Errors
    ///
    /// As there.
    fn ready(&mut self, _goes_on: &dyn Fn() -> bool) -> Result<(), String> {
        Ok(())
    }

    /// Whether it is to state all that a case does: kind, rule, offset and field of every rejection, and every finding in full.
    /// Others may leave out what they do not know.
    fn answers_in_full(&self) -> bool {
        false
    }
}

/// A way to a testee, which outlives it.
pub trait Adapter {
    /// Says hello, naming the suite by its hash.
    ///
    /// # Errors
    ///
    /// When there is no testee to judge: the command is not there, or does not speak the protocol.
    fn hello(&mut self, suite: &str) -> Result<Identity, String>;

    /// Puts one request. Never fails: what goes wrong is a [`Reply`] too.
    fn call(&mut self, op: &str, args: &Value) -> Reply;

    /// Waits until there is a testee for the next case, as long as `goes_on`. What is not ready is not charged to a case.
    ///
    /// # Errors
    ///
    /// There is none, and no hope of one: no more cases are to be put.
    fn ready(&mut self, _goes_on: &dyn Fn() -> bool) -> Result<(), String> {
        Ok(())
    }

    /// What came of the testee since its last answer, without a request: a line, or its end. The last case is
    /// charged with it.
    fn stray(&mut self) -> Option<Reply> {
        None
    }

    /// Ends the testee for good, and says what [`Adapter::stray`] would.
    fn finish(&mut self) -> Option<Reply> {
        None
    }

    /// Whether the testee was started anew after it was lost, and how many requests it has had since its start.
    fn since_restart(&self) -> Option<u64> {
        None
    }

    /// Whether the last request was the only one since the testee was started. In process nothing is kept between two.
    fn was_alone(&self) -> bool {
        true
    }

    /// Ends the testee; the next call starts it anew. In process there is nothing to do.
    fn restart(&mut self) {}

    /// [`Testee::answers_in_full`].
    fn answers_in_full(&self) -> bool {
        false
    }

    /// What the testee has written to its stderr since the last request, in part where it is long.
    fn stderr(&mut self) -> Option<String> {
        None
    }
}

/// What limits a testee in another process.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// How long one request may take.
    pub timeout: Duration,
    /// Address space in MiB, where the system can limit it.
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

/// Opens `spec`, such as `builtin` or `exec:python3 testee.py`.
///
/// # Errors
///
/// Says which adapters there are.
pub fn open(spec: &str, limits: Limits) -> Result<Box<dyn Adapter>, ParseError> {
    let (scheme, rest) = spec.split_once(':').unwrap_or((spec, ""));
    match scheme {
        "builtin" => Ok(Box::new(InProcess(builtin::BuiltinTestee))),
        "exec" => Ok(Box::new(exec::Exec::command(rest, limits)?)),
        // They are in processes of their own already.
        "rpc" | rpc::POOL => {
            let mut server = rpc::LiveServer::open(scheme, rest, limits.timeout)?;
            server.is_there()?;
            Ok(Box::new(InProcess(server)))
        }
        // What may crash or hang does so in a process of its own.
        _ => {
            worker_exists(spec)?;
            let program = std::env::current_exe().map_err(|error| error.to_string())?;
            let words = [program.into_os_string(), "worker".into(), spec.into()];
            Ok(Box::new(exec::Exec::worker(words.into(), limits)))
        }
    }
}

/// Adapters to several testees of one kind, which work at once.
#[derive(Clone, Debug)]
pub struct Several {
    spec: String,
    limits: Limits,
}

impl Several {
    /// Checks `spec`: that there is a testee, and that several of them are not in each other's way.
    ///
    /// # Errors
    ///
    /// As [`open`]; what only one case at a time can be put to.
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

    /// An adapter to one more of them.
    ///
    /// # Errors
    ///
    /// As [`open`].
    pub fn open(&self) -> Result<Box<dyn Adapter>, ParseError> {
        match self.spec.split_once(':') {
            // That the pool has servers was seen; whether one is free is seen later.
            Some((scheme, rest)) if scheme == rpc::POOL => Ok(Box::new(InProcess(
                rpc::LiveServer::open(scheme, rest, self.limits.timeout)?,
            ))),
            _ => open(&self.spec, self.limits),
        }
    }
}

/// Checks the spelling of what [`open`] takes.
fn worker_or_command(scheme: &str, spec: &str) -> Result<(), ParseError> {
    match scheme {
        "exec" => Ok(()),
        _ => worker_exists(spec),
    }
}

/// The testee that `tvmspec worker SPEC` serves.
///
/// # Errors
///
/// Says which there are, or why this one cannot be opened.
pub fn worker(spec: &str) -> Result<Box<dyn Testee>, ParseError> {
    let (scheme, rest) = spec.split_once(':').unwrap_or((spec, ""));
    // No case is put to it, so that it is no adapter.
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
        // `worker_exists` has rejected every other scheme, so that this is `liar`.
        _ => Ok(Box::new(rest.parse::<liar::Liar>()?)),
    }
}

/// Checks the spelling before a process is started, so that a typing error is a usage error.
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

/// A path that is not there is a typing error. A bare name is for the dynamic linker to find.
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

/// A testee in this process. A panic is a crash of that one case; a hang or an abort is not survived.
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
        // A panic is survived here, an abort is not: what is not Rust is a testee of a worker.
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

/// The message of a panic.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("without a message")
}
