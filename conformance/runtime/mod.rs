//! The runtimes that execute the cases of the chapters `value`, `function`, `object`, `module`, `graph` and `vm`, through their C
//! functions.
//!
//! A [`Runtime`] is accessed by the names of its C functions. This crate is one through the functions that it exports, and so is
//! any library that was loaded as a testee. [`ffi::api::FfiApi`] is the interface of tvm-ffi, and [`legacy::LegacyApi`] that of
//! 0.20 and before. A *driver* in `conformance/<chapter>/` executes an operation on one of them, so that the same code judges every
//! runtime.
//!
//! To add an operation, write a function of the type [`crate::conformance::op::Drive`] in the driver of its chapter. Name it in the
//! chapter's `OPS` as `run: Handler::Driven(..)`, or `Handler::Legacy(..)` for the older interface. An operation that no C function
//! offers gets `Handler::Here`: it runs only on this crate, through the Rust interface, and other runtimes answer *unsupported*.
//! `Handler::Partly(ours, theirs)` is for operations of which another runtime shows only a part, and `Handler::Foreign` for
//! operations that only others execute. If only a single step is out of reach, a runtime may provide a function for it: see
//! [`Runtime::suite_function`].

pub(super) mod aligned_memory;
pub(super) mod c_call;
pub(super) mod case_library;
pub(super) mod case_numbers;
pub(super) mod ffi;
pub(super) mod legacy;

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

/// The C handle of an object, a function or a module.
pub(in crate::conformance) type RawHandle = *mut c_void;

/// A runtime in this process.
pub(super) trait Runtime: Send + Sync {
    /// Returns its name for reports.
    fn name(&self) -> &str;

    /// Returns the address of its C function `name`, or `None` if it has none.
    fn symbol(&self, name: &str) -> Option<*mut c_void>;

    /// Returns a function object that the runtime has only for the suite, or `None`. The caller owns one reference. Without it a
    /// driver finds another way, or none.
    ///
    /// * `function.NAME` is a function of `spec/function.md` with its own types
    /// * `convert.TYPE` returns its argument as it was converted
    /// * `read.device` returns the device that a text names
    /// * `object.hash` returns the hash of a key, and `object.check_graph` checks the text of a graph
    /// * `weak.STEP` is a step with weak references
    /// * `registry.STEP` is a step of `function.registry` that only a library in Rust has
    /// * `error.again` creates an error from the parts of another, and `error.frame` adds a line to its backtrace
    /// * `threads.configure` takes the number of workers of a launch
    /// * `rust_interface.rs` of the chapters graph, module and vm describe the names that begin with `graph.`, `module.` and `vm.`
    fn suite_function(&self, _name: &str) -> Option<*mut Header> {
        None
    }

    /// Returns the target whose code generator runs the cases of `target.generate`; `None` for that of the case.
    fn generator(&self) -> Option<&str> {
        None
    }

    /// Returns whether it loads libraries of this layout.
    fn loads(&self, layout: Layout) -> bool {
        layout == Layout::V0_22
    }

    /// Returns the rule of the error with this message, which was the last on this thread. No C function returns it.
    fn broken(&self, _message: &str) -> Option<Violation> {
        None
    }
}

/// Returns the C function `name` of a runtime.
///
/// # Safety
///
/// The function is of type `F`.
pub(super) unsafe fn function_of<F: Copy>(runtime: &dyn Runtime, name: &str) -> Option<F> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    let address = runtime.symbol(name)?;
    // SAFETY: the address of a function of type `F`, by this function's contract.
    Some(unsafe { std::mem::transmute_copy(&address) })
}

/// Looks up a C function of a runtime by its name, for a field of an interface. It is an error if the function is missing.
macro_rules! symbol {
    ($runtime:expr, $symbol:literal) => {
        $crate::conformance::runtime::newer!($runtime, $symbol)
            .ok_or_else(|| concat!("it does not export ", $symbol).to_owned())?
    };
}

/// Looks up a C function that not every release has; `None` if it is missing.
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

    /// Uses this crate's table of exports, because the dynamic linker does not see the exports in every build (MOD-26).
    fn symbol(&self, name: &str) -> Option<*mut c_void> {
        exports::find(name).map(exports::Export::address)
    }

    /// Returns a function for each step that C does not reach, so that cases check the whole answer and not only the visible part.
    fn suite_function(&self, name: &str) -> Option<*mut Header> {
        let function: Function = match name.split_once('.')? {
            ("function", name) => function::ops::function(name)?,
            ("convert", to) => value::ops::converter(to)?,
            ("graph", name) => graph::rust_interface::function(name)?,
            ("module", name) => module::rust_interface::function(name)?,
            ("vm", name) => vm::rust_interface::function(name)?,
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

    /// Returns true, because this crate loads every layout; a release loads only its own.
    fn loads(&self, _layout: Layout) -> bool {
        true
    }

    /// Returns the rule that the thread has next to the error. It belongs to this error only if the message begins with the rule's
    /// own.
    fn broken(&self, message: &str) -> Option<Violation> {
        // A virtual machine appends lines that state its location.
        let own = |broken: &Violation| {
            let rest = message.strip_prefix(broken.message());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('\n'))
        };
        take_broken().filter(own)
    }
}

/// Returns this crate, as the drivers see it.
pub(super) fn ffi_api_of_this_crate() -> &'static FfiApi {
    // One for the process, like the exported functions.
    static OURS: LazyLock<FfiApi> = LazyLock::new(|| {
        FfiApi::from_runtime(&Ourselves).expect("the table of exports has the whole interface")
    });
    &OURS
}

/// Returns this crate, as a caller of 0.20 and before sees it.
pub(super) fn legacy_api_of_this_crate() -> &'static legacy::LegacyApi {
    static OURS: LazyLock<legacy::LegacyApi> = LazyLock::new(|| {
        legacy::LegacyApi::from_runtime(&Ourselves)
            .expect("the table of exports has the whole interface")
    });
    &OURS
}

/// Libraries that were loaded for the life of this process and complement each other. The interface is that of the first.
pub(super) struct Libraries {
    /// The names of their files, for reports.
    pub(super) name: String,
    /// The libraries in the order in which they were loaded. The first one with a name provides it.
    pub(super) libraries: Vec<&'static libloading::Library>,
    /// The target whose code generator is tested.
    pub(super) generator: Option<String>,
}

impl Runtime for Libraries {
    fn name(&self) -> &str {
        &self.name
    }

    fn generator(&self) -> Option<&str> {
        self.generator.as_deref()
    }

    /// Returns the symbol of the first library that has it: `libtvm_ffi.so`, then the runtime, then the additions of the suite.
    fn symbol(&self, name: &str) -> Option<*mut c_void> {
        let mut libraries = self.libraries.iter();
        libraries.find_map(|library| {
            // SAFETY: only the address is taken.
            let found = unsafe { library.get::<*mut c_void>(name) }.ok()?;
            Some(*found)
        })
    }
}
