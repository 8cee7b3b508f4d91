//! The C interface of 0.7 to 0.20 of a runtime, as far as cases need it.

mod compiler;
pub(in crate::conformance) mod functions;
pub(in crate::conformance) mod transition;
mod values;

pub(in crate::conformance) use super::ffi::c_text;
use super::ffi::unsupported;
use super::{Runtime, newer, symbol};
use crate::capi::legacy::TVMPackedCFunc;
use crate::conformance::adapter::{Rejection, Reply};
use crate::conformance::runtime::RawHandle;
use crate::tensor::Dtype;
use crate::value::legacy::{TVMValue, code};
use functions::{Frontend, Interface};
use std::ffi::{CStr, c_char, c_int};
use std::mem::ManuallyDrop;
use std::ptr;

pub(in crate::conformance) use values::{
    LegacyArg, LegacyValue, bytes_arg, bytes_of, int_arg, null_arg, text_arg,
};

/// Frees a handle by dropping one reference.
type Give = unsafe extern "C" fn(RawHandle) -> c_int;

/// Creates an array; parameters: shape, rank; code, bits and lanes of the type; device type and number; the array.
type MakeArray = unsafe extern "C" fn(
    *const i64,
    c_int,
    c_int,
    c_int,
    c_int,
    c_int,
    c_int,
    *mut RawHandle,
) -> c_int;

/// The functions of a runtime, valid as long as the process lives, because a runtime is never unloaded.
pub(in crate::conformance) struct LegacyApi {
    /// The functions for calls, errors and the registry, which scripts of chapter function also use.
    pub(in crate::conformance) functions: Interface,
    /// `TVMModLoadFromFile`
    load: unsafe extern "C" fn(*const c_char, *const c_char, *mut RawHandle) -> c_int,
    /// `TVMModImport`
    import: unsafe extern "C" fn(RawHandle, RawHandle) -> c_int,
    /// `TVMModGetFunction`
    module_function: unsafe extern "C" fn(RawHandle, *const c_char, c_int, *mut RawHandle) -> c_int,
    /// `TVMModFree`
    pub(super) free_module: Give,
    /// `TVMObjectFree`
    pub(super) free_object: Give,
    /// `TVMArrayFree`
    pub(super) free_array: Give,
    /// `TVMArrayAlloc`
    make_array: MakeArray,
    /// `TVMBackendGetFuncFromEnv`
    look_up: unsafe extern "C" fn(RawHandle, *const c_char, *mut RawHandle) -> c_int,
    /// `TVMBackendRegisterSystemLibSymbol`
    symbol: unsafe extern "C" fn(*const c_char, RawHandle) -> c_int,
    /// The runtime that the functions belong to.
    pub(in crate::conformance) runtime: &'static dyn Runtime,
}

impl LegacyApi {
    /// Returns the interface of a runtime, or the name of a missing function.
    pub(in crate::conformance) fn from_runtime(
        runtime: &'static dyn Runtime,
    ) -> Result<LegacyApi, String> {
        LegacyApi::look_up_functions(runtime).map_err(|lacks| {
            format!(
                "{} is not a TVM runtime of 0.20 or before: {lacks}",
                runtime.name()
            )
        })
    }

    /// Looks up every function by its name. Those that all releases from 0.7 on have must exist.
    fn look_up_functions(runtime: &'static dyn Runtime) -> Result<LegacyApi, String> {
        // FUN-25: the functions for Python errors were added in 0.14; before that there is no error object.
        let frontend = (|| {
            Some(Frontend {
                register: newer!(runtime, "TVMBackendRegisterEnvCAPI")?,
                set_error: newer!(runtime, "TVMAPISetLastPythonError")?,
                error: newer!(runtime, "TVMGetLastPythonError")?,
                drop_error: newer!(runtime, "TVMDropLastPythonError")?,
            })
        })();
        Ok(LegacyApi {
            functions: Interface {
                call: symbol!(runtime, "TVMFuncCall"),
                create: symbol!(runtime, "TVMFuncCreateFromCFunc"),
                give_result: symbol!(runtime, "TVMCFuncSetReturn"),
                own_argument: symbol!(runtime, "TVMCbArgToReturn"),
                register: symbol!(runtime, "TVMFuncRegisterGlobal"),
                find: symbol!(runtime, "TVMFuncGetGlobal"),
                names: symbol!(runtime, "TVMFuncListGlobalNames"),
                remove: newer!(runtime, "TVMFuncRemoveGlobal"),
                free: symbol!(runtime, "TVMFuncFree"),
                last_error: symbol!(runtime, "TVMGetLastError"),
                set_last_error: symbol!(runtime, "TVMAPISetLastError"),
                frontend,
            },
            load: symbol!(runtime, "TVMModLoadFromFile"),
            import: symbol!(runtime, "TVMModImport"),
            module_function: symbol!(runtime, "TVMModGetFunction"),
            free_module: symbol!(runtime, "TVMModFree"),
            free_object: symbol!(runtime, "TVMObjectFree"),
            free_array: symbol!(runtime, "TVMArrayFree"),
            make_array: symbol!(runtime, "TVMArrayAlloc"),
            look_up: symbol!(runtime, "TVMBackendGetFuncFromEnv"),
            symbol: symbol!(runtime, "TVMBackendRegisterSystemLibSymbol"),
            runtime,
        })
    }

    /// Returns the function that the runtime provides only for the suite, if it does.
    pub(in crate::conformance) fn suite_function(&'static self, name: &str) -> Option<LegacyValue> {
        let function = self.runtime.suite_function(name)?;
        Some(self.owned_handle(function.cast(), code::FUNCTION))
    }

    /// Returns whether the runtime has this symbol.
    pub(in crate::conformance) fn exports(&self, symbol: &str) -> bool {
        self.runtime.symbol(symbol).is_some()
    }

    /// Loads a library file, and returns its module.
    pub(in crate::conformance) fn load(&'static self, path: &CStr) -> Result<LegacyValue, Reply> {
        let mut module = ptr::null_mut();
        // SAFETY: two NUL-terminated strings and an out pointer.
        let code = unsafe { (self.load)(path.as_ptr(), c"so".as_ptr(), &raw mut module) };
        self.check(code)?;
        Ok(self.owned_handle(module, code::MODULE))
    }

    /// Imports `module` into `into`.
    pub(in crate::conformance) fn import(
        &self,
        into: &LegacyValue,
        module: &LegacyValue,
    ) -> Result<(), Reply> {
        // SAFETY: two modules.
        self.check(unsafe { (self.import)(into.handle(), module.handle()) })
    }

    /// Returns the function `name` of a module, or `None` if the module lacks it.
    pub(in crate::conformance) fn function_of(
        &'static self,
        module: &LegacyValue,
        name: &str,
        deep: bool,
    ) -> Result<Option<LegacyValue>, Reply> {
        let (name, mut function) = (c_text(name), ptr::null_mut());
        // SAFETY: a module, a NUL-terminated string and an out pointer.
        let code = unsafe {
            (self.module_function)(
                module.handle(),
                name.as_ptr(),
                c_int::from(deep),
                &raw mut function,
            )
        };
        self.check(code)?;
        Ok((!function.is_null()).then(|| self.owned_handle(function, code::FUNCTION)))
    }

    /// Returns what compiled code of the module with this context finds under a name. The module keeps it alive.
    ///
    /// # Safety
    ///
    /// The runtime wrote `context` into a library that is still loaded.
    pub(in crate::conformance) unsafe fn look_up_import(
        &'static self,
        context: RawHandle,
        name: &CStr,
    ) -> Result<ManuallyDrop<LegacyValue>, Reply> {
        let mut function = ptr::null_mut();
        // SAFETY: a context of a library that is still loaded, by this function's contract, a NUL-terminated string and an out
        // pointer.
        self.check(unsafe { (self.look_up)(context, name.as_ptr(), &raw mut function) })?;
        // Borrowed: the module keeps the function, and freeing it would drop a reference that does not belong to the caller.
        Ok(ManuallyDrop::new(
            self.owned_handle(function, code::FUNCTION),
        ))
    }

    /// Makes `address` a symbol of the system library.
    pub(in crate::conformance) fn system_symbol(
        &'static self,
        name: &CStr,
        address: RawHandle,
    ) -> Result<(), Reply> {
        // SAFETY: a NUL-terminated string, and an address that stays.
        self.check(unsafe { (self.symbol)(name.as_ptr(), address) })
    }

    /// Returns the global function `name`, or `None` if it is not registered.
    pub(in crate::conformance) fn global(
        &'static self,
        name: &str,
    ) -> Result<Option<LegacyValue>, Reply> {
        let mut function = ptr::null_mut();
        // SAFETY: a NUL-terminated string and an out pointer.
        self.check(unsafe { (self.functions.find)(c_text(name).as_ptr(), &raw mut function) })?;
        Ok((!function.is_null()).then(|| self.owned_handle(function, code::FUNCTION)))
    }

    /// Calls the global function `name`; unsupported if the runtime has none.
    pub(in crate::conformance) fn call_global(
        &'static self,
        name: &str,
        args: &[LegacyArg],
    ) -> Result<LegacyValue, Reply> {
        let function = self.global(name)?;
        let function = function
            .ok_or_else(|| unsupported(format!("this runtime has no function `{name}`")))?;
        self.call(&function, args)
    }

    /// Calls a function. Text and bytes of the result are copied, because they are valid only until the next call.
    pub(in crate::conformance) fn call(
        &'static self,
        function: &LegacyValue,
        args: &[LegacyArg],
    ) -> Result<LegacyValue, Reply> {
        let (mut values, mut codes): (Vec<_>, Vec<_>) = args.iter().copied().unzip();
        let (mut value, mut type_code) = (TVMValue { v_int64: 0 }, code::NULL);
        let count = c_int::try_from(args.len()).unwrap_or(c_int::MAX);
        // SAFETY: a function, that many arguments with their codes, and two out pointers.
        let returned = unsafe {
            (self.functions.call)(
                function.handle(),
                values.as_mut_ptr(),
                codes.as_mut_ptr(),
                count,
                &raw mut value,
                &raw mut type_code,
            )
        };
        self.check(returned)?;
        // SAFETY: the code says that it is a NUL-terminated string.
        let borrowed = unsafe { bytes_of(value, type_code) }.unwrap_or_default();
        Ok(LegacyValue {
            value,
            code: type_code,
            borrowed,
            api: self,
        })
    }

    /// Creates a tensor on the CPU.
    pub(in crate::conformance) fn array(
        &'static self,
        shape: &[i64],
        dtype: Dtype,
    ) -> Result<LegacyValue, Reply> {
        let rank = c_int::try_from(shape.len()).unwrap_or(c_int::MAX);
        let Dtype { code, bits, lanes } = dtype;
        let [class, bits, lanes] = [c_int::from(code), c_int::from(bits), c_int::from(lanes)];
        let mut array = ptr::null_mut();
        // SAFETY: a shape of that rank, and an out pointer.
        self.check(unsafe {
            (self.make_array)(
                shape.as_ptr(),
                rank,
                class,
                bits,
                lanes,
                1,
                0,
                &raw mut array,
            )
        })?;
        Ok(self.owned_handle(array, code::NDARRAY))
    }

    /// Creates a function from a callback. `this` must live as long as the process.
    pub(in crate::conformance) fn function<T>(
        &'static self,
        body: TVMPackedCFunc,
        this: &'static T,
    ) -> Result<LegacyValue, Reply> {
        let mut function = ptr::null_mut();
        let this = ptr::from_ref(this).cast_mut().cast();
        // SAFETY: a callback, its context, and memory for the result.
        self.check(unsafe { (self.functions.create)(body, this, None, &raw mut function) })?;
        Ok(self.owned_handle(function, code::FUNCTION))
    }

    /// Registers a global function, and replaces an existing one if `over` is set (FUN-22).
    pub(in crate::conformance) fn register(
        &self,
        name: &str,
        function: &LegacyValue,
        over: bool,
    ) -> Result<(), Reply> {
        let name = c_text(name);
        // SAFETY: a NUL-terminated string and a function.
        self.check(unsafe {
            (self.functions.register)(name.as_ptr(), function.handle(), c_int::from(over))
        })
    }

    /// Returns whether a global function can be removed.
    pub(in crate::conformance) fn can_remove(&self) -> bool {
        self.functions.remove.is_some()
    }

    /// Removes a global function (FUN-23); unsupported before 0.8.
    pub(in crate::conformance) fn remove(&self, name: &str) -> Result<(), Reply> {
        let remove = self
            .functions
            .remove
            .ok_or_else(|| unsupported("functions cannot be removed before 0.8"))?;
        // SAFETY: a NUL-terminated string.
        self.check(unsafe { remove(c_text(name).as_ptr()) })
    }

    /// Sets the result of a callback. The runtime copies it or adds a reference.
    ///
    /// # Safety
    ///
    /// `result` is the result handle of a callback that is running.
    pub(in crate::conformance) unsafe fn set_result(
        &self,
        result: RawHandle,
        (mut value, mut code): LegacyArg,
    ) -> c_int {
        // SAFETY: the result handle of a callback that runs, by this function's contract, and one value with its code.
        unsafe { (self.functions.give_result)(result, &raw mut value, &raw mut code, 1) }
    }

    /// Sets the text of an error, as a function does before it fails.
    pub(in crate::conformance) fn set_error(&self, text: &str) {
        // SAFETY: a NUL-terminated string.
        unsafe { (self.functions.set_last_error)(c_text(text).as_ptr()) };
    }

    /// Returns the text of this thread's last failure (FUN-15), without its stack trace.
    pub(in crate::conformance) fn last_error(&self) -> String {
        // SAFETY: the function has no arguments.
        let message = unsafe { (self.functions.last_error)() };
        // From 0.15 on the text is null for a thread without an error.
        if message.is_null() {
            return String::new();
        }
        // SAFETY: a NUL-terminated string that stays until the next call.
        let message = unsafe { CStr::from_ptr(message) };
        without_backtrace(&message.to_string_lossy())
    }

    /// Returns a rejection with the text of the failure for any code except 0; unsupported if a loader is missing.
    fn check(&self, returned: c_int) -> Result<(), Reply> {
        if returned == 0 {
            return Ok(());
        }
        let message = self.last_error();
        // The messages of 0.8, and of 0.7 before it, if the kind of a module has no loader.
        if message.contains("loader of that name is not registered")
            || message.contains("loadbinary_")
        {
            return Err(unsupported(format!("a loader is missing: {message}")));
        }
        Err(Reply::Reject(Rejection {
            message,
            ..Rejection::default()
        }))
    }

    /// Returns the owner of one reference of a handle.
    fn owned_handle(&'static self, v_handle: RawHandle, code: c_int) -> LegacyValue {
        LegacyValue {
            value: TVMValue { v_handle },
            code,
            borrowed: Vec::new(),
            api: self,
        }
    }
}

/// Returns the message of an error without its stack trace, which follows it up to 0.14 and precedes it from 0.15 on.
fn without_backtrace(text: &str) -> String {
    let text = text.split("\nStack trace:").next().unwrap_or_default();
    let message = match text.strip_prefix("Traceback") {
        None => text,
        Some(_) => {
            let mut lines = text.match_indices('\n').map(|(at, _)| &text[at + 1..]);
            let message = |rest: &&str| !rest.starts_with(char::is_whitespace) && !rest.is_empty();
            lines.find(message).unwrap_or(text)
        }
    };
    // A banner with hints where to find help is between the kind and the message of a failed check.
    let banner =
        |line: &str| line.starts_with("---") || line.starts_with("An error occurred during");
    let more = |line: &str| line.starts_with("For more information, please see:");
    let lines = message.lines().map(str::trim);
    let lines = lines.filter(|line| !banner(line) && !more(line));
    lines
        .collect::<Vec<_>>()
        .join("\n")
        .replace(":\n", ": ")
        .trim()
        .to_owned()
}
