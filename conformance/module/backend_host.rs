//! The runtime functions that operations of compiled code need, for either C interface.

use crate::conformance::runtime::RawHandle;
use crate::conformance::runtime::ffi::api::FfiApi;
use crate::conformance::runtime::ffi::owned::int_arg;
use crate::conformance::runtime::ffi::{Reply, unsupported};
use crate::conformance::runtime::{Runtime, function_of, legacy};
use std::ffi::{CStr, c_int};

/// A runtime with either C interface, as these operations use it, in addition to the functions that compiled code calls.
pub(in crate::conformance) trait BackendHost: Sync {
    /// Returns the libraries that contain the functions.
    fn runtime(&self) -> &'static dyn Runtime;

    /// Sets the number of workers of a launch.
    fn configure(&'static self, workers: i64) -> Result<(), Reply>;

    /// Sets an error on this thread, as compiled code does before it fails.
    fn raise(&self, message: &CStr);

    /// Returns the message of the last error on this thread.
    fn message(&'static self) -> Option<String>;

    /// Runs an initializer like code of 0.26 on; `None` if the runtime has no function for this.
    fn once(
        &self,
        place: &mut RawHandle,
        body: unsafe extern "C" fn(*mut RawHandle) -> c_int,
    ) -> Option<c_int>;

    /// Returns whether workspace of the default source is aligned; `None` if the runtime does not show it.
    fn host_is_aligned(&'static self, _bytes: u64) -> Result<Option<bool>, Reply> {
        Ok(None)
    }
}

impl BackendHost for FfiApi {
    fn runtime(&self) -> &'static dyn Runtime {
        self.runtime
    }

    /// Uses a Rust function for our own runtime, because the pool of a process may already run (MOD-20).
    fn configure(&'static self, workers: i64) -> Result<(), Reply> {
        match self.suite_function("threads.configure") {
            Some(configure) => self.call(&configure, &[int_arg(workers)])?,
            // The first number is the kind of cores.
            None => {
                self.call_global("runtime.config_threadpool", &[int_arg(1), int_arg(workers)])?
            }
        };
        Ok(())
    }

    fn raise(&self, message: &CStr) {
        FfiApi::raise(self, c"RuntimeError", message);
    }

    /// Takes the error: otherwise it would be attributed to the next call (FUN-06).
    fn message(&'static self) -> Option<String> {
        let texts = self.take_raised()?.error_texts()?;
        let [_, message, _] = texts;
        Some(message)
    }

    /// Returns `None`: up to 0.20 there is no such function, because compiled code contains the initialization inline.
    fn once(
        &self,
        place: &mut RawHandle,
        body: unsafe extern "C" fn(*mut RawHandle) -> c_int,
    ) -> Option<c_int> {
        FfiApi::init_handle_once(self, place, body)
    }

    fn host_is_aligned(&'static self, bytes: u64) -> Result<Option<bool>, Reply> {
        let Some(host) = self.suite_function("module.host") else {
            return Ok(None);
        };
        let bytes = i64::try_from(bytes).map_err(|_| unsupported("so much memory is nowhere"))?;
        Ok(Some(self.call(&host, &[int_arg(bytes)])?.raw.int() != 0))
    }
}

impl BackendHost for legacy::LegacyApi {
    fn runtime(&self) -> &'static dyn Runtime {
        self.runtime
    }

    fn configure(&'static self, workers: i64) -> Result<(), Reply> {
        // The first number is the kind of cores.
        let args = [legacy::int_arg(1), legacy::int_arg(workers)];
        self.call_global("runtime.config_threadpool", &args)?;
        Ok(())
    }

    fn raise(&self, message: &CStr) {
        self.set_error(&message.to_string_lossy());
    }

    fn message(&'static self) -> Option<String> {
        Some(self.last_error())
    }

    fn once(
        &self,
        _: &mut RawHandle,
        _: unsafe extern "C" fn(*mut RawHandle) -> c_int,
    ) -> Option<c_int> {
        None
    }
}

/// Returns the function `name` of the library that exports it.
///
/// # Safety
///
/// The function must be of type `F`.
pub(super) unsafe fn backend<F: Copy + 'static>(
    host: &dyn BackendHost,
    name: &str,
) -> Result<F, Reply> {
    // SAFETY: the function is of type `F`, by this contract.
    unsafe { function_of(host.runtime(), name) }
        .ok_or_else(|| unsupported(format!("none of the libraries exports {name}")))
}
