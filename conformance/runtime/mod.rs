//! What the chapters `value`, `function`, `object`, `module`, `graph` and `vm` put their cases to: a runtime, by its C functions.
//!
//! A [`Runtime`] is reached by the names of its C functions. We are one ourselves, by the functions that we export; any
//! library is one that was loaded for judgement. [`ffi::api::FfiApi`] is the interface of tvm-ffi as such names, [`legacy::LegacyApi`] that
//! of 0.20 and before, and a *driver* in `conformance/<chapter>/` does an operation on one of them: every runtime is judged
//! by the same code.
//!
//! To add an operation, write a function of the type [`crate::conformance::op::Drive`] in the driver of its chapter and name
//! it in the chapter's `OPS` as `run: Handler::Driven(..)`, or `Handler::Legacy(..)` for the older interface. What no C function offers
//! gets `Handler::Here`: the operation is ours alone, through the Rust interface, and other runtimes answer
//! *unsupported*. `Handler::Partly(ours, theirs)` is for what shows of another runtime only in part, and `Handler::Foreign` for what only
//! others do. Where a single step is out of reach, a runtime may bring a function for it: see [`Runtime::brought`].

pub(super) mod aligned;
pub(super) mod c_call;
pub(super) mod ffi;
pub(super) mod legacy;
pub(super) mod number;
pub(super) mod shell;

use super::{function, graph, module, object, value, vm};
use crate::function::{Error, Function, take_broken};
use crate::module::exports;
use crate::module::parallel;
use crate::release::Layout;
use crate::rule::Violation;
use crate::value::Header;
use ffi::api::FfiApi;
use std::ffi::c_void;
use std::sync::LazyLock;

/// What C knows an object, a function or a module by.
pub(in crate::conformance) type RawHandle = *mut c_void;

/// A runtime in this process.
pub(super) trait Runtime: Send + Sync {
    /// What it is called, for reports.
    fn name(&self) -> &str;

    /// The address of its C function `name`; `None` where it has none.
    fn symbol(&self, name: &str) -> Option<*mut c_void>;

    /// A function object that it has for the suite alone, with one reference that is the caller's: `function.NAME` is a
    /// function of `spec/function.md` with types of its own, `convert.TYPE` returns what it takes its argument for,
    /// `read.device` the device that a text names, `object.hash` the hash of a key, `object.check_graph` checks the text
    /// of a graph, `weak.STEP` is a step with weak references,
    /// `registry.STEP` is a step of `function.registry` that only a library in Rust has, `error.again` makes an error of the
    /// parts of another, `error.frame` adds a line to the backtrace of one,
    /// `threads.configure` takes the number of workers of a launch; `graph/own.rs` describes what begins with
    /// `graph.`, `module/own.rs` what begins with `module.`, `vm/own.rs` what begins with `vm.`. Where there is none a driver finds another way, or none.
    fn brought(&self, _name: &str) -> Option<*mut Header> {
        None
    }

    /// The target whose code generator is put to cases of `target.generate`; `None` for that of the case.
    fn generator(&self) -> Option<&str> {
        None
    }

    /// Whether it loads libraries of this layout.
    fn loads(&self, layout: Layout) -> bool {
        layout == Layout::V0_22
    }

    /// The rule behind the error with this message, which was the last on this thread. No C function shows it.
    fn broken(&self, _message: &str) -> Option<Violation> {
        None
    }
}

/// The C function `name` of a runtime.
///
/// # Safety
///
/// It is of type `F`, which is the type of a function.
pub(super) unsafe fn function_of<F: Copy>(runtime: &dyn Runtime, name: &str) -> Option<F> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    let address = runtime.symbol(name)?;
    // SAFETY: the address of a function of type `F`, by this contract.
    Some(unsafe { std::mem::transmute_copy(&address) })
}

/// The C function of a runtime by its name, for the place of an interface that it goes to: an error without.
macro_rules! symbol {
    ($runtime:expr, $symbol:literal) => {
        $crate::conformance::runtime::newer!($runtime, $symbol)
            .ok_or_else(|| concat!("it does not export ", $symbol).to_owned())?
    };
}

/// The same where not every release of the interface has it: `None` without.
macro_rules! newer {
    ($runtime:expr, $symbol:literal) => {
        // SAFETY: the type of the place it goes to is the one that the C header declares for this name.
        unsafe { $crate::conformance::runtime::function_of($runtime, $symbol) }
    };
}

pub(super) use {newer, symbol};

/// This library, through the C functions that it exports.
struct Ourselves;

impl Runtime for Ourselves {
    fn name(&self) -> &str {
        env!("CARGO_PKG_NAME")
    }

    /// By our own table of exports, and not by the dynamic linker, which does not see them in every build (MOD-26).
    fn symbol(&self, name: &str) -> Option<*mut c_void> {
        exports::find(name).map(exports::Export::address)
    }

    /// Ours brings a function for each step that C does not reach, so that cases look at all of an answer and not only at what shows.
    fn brought(&self, name: &str) -> Option<*mut Header> {
        let function: Function = match name.split_once('.')? {
            ("function", name) => function::ops::function(name)?,
            ("convert", to) => value::ops::converter(to)?,
            ("graph", name) => graph::own::function(name)?,
            ("module", name) => module::own::function(name)?,
            ("vm", name) => vm::own::function(name)?,
            ("object", "hash") => object::ops::hasher(),
            ("object", "check_graph") => object::ops::graph_checker(),
            ("weak", step) => value::ops::weak(step)?,
            ("read", "device") => value::ops::device_reader(),
            ("threads", "configure") => Function::from_typed(|workers: i64| -> Result<(), Error> {
                let workers = usize::try_from(workers);
                parallel::configure(
                    workers.map_err(|_| Error::new("ValueError", "less than no workers"))?,
                );
                Ok(())
            }),
            ("error", "again") => Function::from_typed(|error: Error| {
                let again = Error::new(error.kind(), error.message());
                again.update_backtrace(&error.backtrace(), 0);
                let again = match error.cause() {
                    Some(cause) => again.caused_by(cause),
                    None => again,
                };
                if let Some(context) = error.context() {
                    again.set_context(context);
                }
                again
            }),
            ("registry", step) => function::ops::registry(step)?,
            ("error", "frame") => {
                Function::from_typed(|error: Error, file: String, line: i64, function: String| {
                    let line = u32::try_from(line);
                    let line = line.map_err(|why| Error::new("ValueError", why.to_string()))?;
                    error.add_frame(&file, line, &function);
                    Ok::<(), Error>(())
                })
            }
            _ => return None,
        };
        Some(function.into_object().into_raw())
    }

    /// Every layout, where a release loads its own.
    fn loads(&self, _layout: Layout) -> bool {
        true
    }

    /// The rule is on the thread beside the error; it is taken for this error only where the message begins with its own.
    fn broken(&self, message: &str) -> Option<Violation> {
        // A virtual machine adds lines about where it was.
        let own = |broken: &Violation| {
            let rest = message.strip_prefix(broken.message());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('\n'))
        };
        take_broken().filter(own)
    }
}

/// Ourselves, as the drivers see us.
pub(super) fn ourselves() -> &'static FfiApi {
    // One for the process, as the functions that are exported.
    static OURS: LazyLock<FfiApi> = LazyLock::new(|| {
        FfiApi::of(&Ourselves).expect("the table of exports has the whole interface")
    });
    &OURS
}

/// The same, as a caller of 0.20 and before sees us.
pub(super) fn ourselves_before_0_21() -> &'static legacy::LegacyApi {
    static OURS: LazyLock<legacy::LegacyApi> = LazyLock::new(|| {
        legacy::LegacyApi::of(&Ourselves).expect("the table of exports has the whole interface")
    });
    &OURS
}

/// Libraries that were loaded for the life of this process, which add to each other. The interface is that of the first.
pub(super) struct Libraries {
    /// The names of their files, for reports.
    pub(super) name: String,
    /// In the order in which they were loaded: a name is that of the first that has it.
    pub(super) libraries: Vec<&'static libloading::Library>,
    /// The target whose code generator is judged.
    pub(super) generator: Option<String>,
}

impl Runtime for Libraries {
    fn name(&self) -> &str {
        &self.name
    }

    fn generator(&self) -> Option<&str> {
        self.generator.as_deref()
    }

    /// Of the first library that has it: `libtvm_ffi.so`, then the runtime, then what the suite adds.
    fn symbol(&self, name: &str) -> Option<*mut c_void> {
        let mut libraries = self.libraries.iter();
        libraries.find_map(|library| {
            // SAFETY: only the address is taken.
            let found = unsafe { library.get::<*mut c_void>(name) }.ok()?;
            Some(*found)
        })
    }
}
