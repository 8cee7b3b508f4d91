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
use crate::value::DLDataType;
use crate::value::legacy::{TVMValue, code};
use functions::{Frontend, Interface};
use std::ffi::{CStr, c_char, c_int};
use std::mem::ManuallyDrop;
use std::ptr;

pub(in crate::conformance) use values::{
    LegacyArg, LegacyValue, bytes_arg, bytes_of, int_arg, null_arg, text_arg,
};

/// Frees what a handle stands for: one reference less.
type Give = unsafe extern "C" fn(RawHandle) -> c_int;

/// Shape, rank; code, bits and lanes of the type; device and its number; the array.
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

/// The functions, for as long as the process lives: a runtime is never unloaded.
pub(in crate::conformance) struct LegacyApi {
    /// Calls, errors and the registry, which cases of chapter function script.
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
    /// Whose functions these are.
    pub(in crate::conformance) runtime: &'static dyn Runtime,
}

impl LegacyApi {
    /// The interface of a runtime, or which of its functions is missing.
    pub(in crate::conformance) fn of(runtime: &'static dyn Runtime) -> Result<LegacyApi, String> {
        LegacyApi::found(runtime).map_err(|lacks| {
            format!(
                "{} is not a TVM runtime of 0.20 or before: {lacks}",
                runtime.name()
            )
        })
    }

    /// Looks every function up by its name: those that all releases from 0.7 on have must be there.
    fn found(runtime: &'static dyn Runtime) -> Result<LegacyApi, String> {
        // FUN-25: the last three came with 0.14; before that there is no error object to hold.
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

    /// The function that the runtime brings for the suite alone, if it does.
    pub(in crate::conformance) fn brought(&'static self, name: &str) -> Option<LegacyValue> {
        let function = self.runtime.brought(name)?;
        Some(self.held(function.cast(), code::FUNCTION))
    }

    /// Whether the runtime has this symbol.
    pub(in crate::conformance) fn exports(&self, symbol: &str) -> bool {
        self.runtime.symbol(symbol).is_some()
    }

    /// The module of a library file.
    pub(in crate::conformance) fn load(&'static self, path: &CStr) -> Result<LegacyValue, Reply> {
        let mut module = ptr::null_mut();
        // SAFETY: two texts and a place.
        let code = unsafe { (self.load)(path.as_ptr(), c"so".as_ptr(), &raw mut module) };
        self.check(code)?;
        Ok(self.held(module, code::MODULE))
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

    /// The function `name` of a module; `None` where there is none.
    pub(in crate::conformance) fn function_of(
        &'static self,
        module: &LegacyValue,
        name: &str,
        deep: bool,
    ) -> Result<Option<LegacyValue>, Reply> {
        let (name, mut function) = (c_text(name), ptr::null_mut());
        // SAFETY: a module, a text and a place.
        let code = unsafe {
            (self.module_function)(
                module.handle(),
                name.as_ptr(),
                c_int::from(deep),
                &raw mut function,
            )
        };
        self.check(code)?;
        Ok((!function.is_null()).then(|| self.held(function, code::FUNCTION)))
    }

    /// What compiled code of the module with this context finds under a name. The module keeps it.
    ///
    /// # Safety
    ///
    /// `context` is what the runtime wrote into a library that is still loaded.
    pub(in crate::conformance) unsafe fn looked_up(
        &'static self,
        context: RawHandle,
        name: &CStr,
    ) -> Result<ManuallyDrop<LegacyValue>, Reply> {
        let mut function = ptr::null_mut();
        // SAFETY: a context of a library that is still loaded, by this contract, a text and a place.
        self.check(unsafe { (self.look_up)(context, name.as_ptr(), &raw mut function) })?;
        // Borrowed: the module keeps the function, and freeing it would end a reference that is not the caller's.
        Ok(ManuallyDrop::new(self.held(function, code::FUNCTION)))
    }

    /// Makes what is at `address` a symbol of the system library.
    pub(in crate::conformance) fn system_symbol(
        &'static self,
        name: &CStr,
        address: RawHandle,
    ) -> Result<(), Reply> {
        // SAFETY: a text, and an address that stays.
        self.check(unsafe { (self.symbol)(name.as_ptr(), address) })
    }

    /// The global function `name`; `None` where there is none.
    pub(in crate::conformance) fn global(
        &'static self,
        name: &str,
    ) -> Result<Option<LegacyValue>, Reply> {
        let mut function = ptr::null_mut();
        // SAFETY: a text and a place.
        self.check(unsafe { (self.functions.find)(c_text(name).as_ptr(), &raw mut function) })?;
        Ok((!function.is_null()).then(|| self.held(function, code::FUNCTION)))
    }

    /// Calls the global function `name`; unsupported where the runtime has none.
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

    /// Calls a function. Text and bytes of the result are copied: they are valid until the next call.
    pub(in crate::conformance) fn call(
        &'static self,
        function: &LegacyValue,
        args: &[LegacyArg],
    ) -> Result<LegacyValue, Reply> {
        let (mut values, mut codes): (Vec<_>, Vec<_>) = args.iter().copied().unzip();
        let (mut value, mut type_code) = (TVMValue { v_int64: 0 }, code::NULL);
        let count = c_int::try_from(args.len()).unwrap_or(c_int::MAX);
        // SAFETY: a function, that many arguments with their codes, and two places.
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
        // SAFETY: the code says that it is a text.
        let borrowed = unsafe { bytes_of(value, type_code) }.unwrap_or_default();
        Ok(LegacyValue {
            value,
            code: type_code,
            borrowed,
            api: self,
        })
    }

    /// A new tensor on the CPU.
    pub(in crate::conformance) fn array(
        &'static self,
        shape: &[i64],
        dtype: DLDataType,
    ) -> Result<LegacyValue, Reply> {
        let rank = c_int::try_from(shape.len()).unwrap_or(c_int::MAX);
        let DLDataType { code, bits, lanes } = dtype;
        let [class, bits, lanes] = [c_int::from(code), c_int::from(bits), c_int::from(lanes)];
        let mut array = ptr::null_mut();
        // SAFETY: a shape of that rank, and a place.
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
        Ok(self.held(array, code::NDARRAY))
    }

    /// A function of ours. `this` must live as long as the process.
    pub(in crate::conformance) fn function<T>(
        &'static self,
        body: TVMPackedCFunc,
        this: &'static T,
    ) -> Result<LegacyValue, Reply> {
        let mut function = ptr::null_mut();
        let this = ptr::from_ref(this).cast_mut().cast();
        // SAFETY: a callback, what it is made with, and a place.
        self.check(unsafe { (self.functions.create)(body, this, None, &raw mut function) })?;
        Ok(self.held(function, code::FUNCTION))
    }

    /// Registers a global function, in the place of another where `over` is set (FUN-22).
    pub(in crate::conformance) fn register(
        &self,
        name: &str,
        function: &LegacyValue,
        over: bool,
    ) -> Result<(), Reply> {
        let name = c_text(name);
        // SAFETY: a text and a function.
        self.check(unsafe {
            (self.functions.register)(name.as_ptr(), function.handle(), c_int::from(over))
        })
    }

    /// Whether a global function can be taken away again.
    pub(in crate::conformance) fn can_remove(&self) -> bool {
        self.functions.remove.is_some()
    }

    /// Removes a global function (FUN-23); unsupported before 0.8.
    pub(in crate::conformance) fn remove(&self, name: &str) -> Result<(), Reply> {
        let remove = self
            .functions
            .remove
            .ok_or_else(|| unsupported("functions cannot be removed before 0.8"))?;
        // SAFETY: a text.
        self.check(unsafe { remove(c_text(name).as_ptr()) })
    }

    /// Leaves the result of a callback. The runtime copies or counts it.
    ///
    /// # Safety
    ///
    /// `result` must be the result handle of a callback that runs.
    pub(in crate::conformance) unsafe fn give(
        &self,
        result: RawHandle,
        (mut value, mut code): LegacyArg,
    ) -> c_int {
        // SAFETY: the result handle of a callback that runs, by this contract, and one value with its code.
        unsafe { (self.functions.give_result)(result, &raw mut value, &raw mut code, 1) }
    }

    /// Leaves the text of an error, as a function does before it fails.
    pub(in crate::conformance) fn set_error(&self, text: &str) {
        // SAFETY: a text.
        unsafe { (self.functions.set_last_error)(c_text(text).as_ptr()) };
    }

    /// The text of the last failure of this thread (FUN-15), without its stack trace.
    pub(in crate::conformance) fn last_error(&self) -> String {
        // SAFETY: takes nothing.
        let message = unsafe { (self.functions.last_error)() };
        // From 0.15 on a thread without an error has no text.
        if message.is_null() {
            return String::new();
        }
        // SAFETY: a text that stays until the next call.
        let message = unsafe { CStr::from_ptr(message) };
        without_backtrace(&message.to_string_lossy())
    }

    /// A rejection with the text of the failure, for any code but 0; unsupported where a loader is missing.
    fn check(&self, returned: c_int) -> Result<(), Reply> {
        if returned == 0 {
            return Ok(());
        }
        let message = self.last_error();
        // What 0.8, and before it 0.7, say where the kind of a module has no loader.
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

    /// The owner of one reference of a handle.
    fn held(&'static self, v_handle: RawHandle, code: c_int) -> LegacyValue {
        LegacyValue {
            value: TVMValue { v_handle },
            code,
            borrowed: Vec::new(),
            api: self,
        }
    }
}

/// The message of an error without the frames around it: below it up to 0.14, above it from 0.15 on.
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
    // Between the kind and the message of a failed check stands a banner about where to look for help.
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
