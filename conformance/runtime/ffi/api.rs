//! The tvm-ffi C interface (0.22 on) of a runtime, as far as cases need it.
//!
//! Only functions that the C headers declare are used, so any library that exports them can be judged.

use super::owned::{OwnedValue, Raised};
use crate::conformance::runtime::RawHandle;
use crate::conformance::runtime::{Runtime, newer, symbol};
use crate::tensor::Dtype;
use crate::value::dlpack::{DLManagedTensor, DLManagedTensorVersioned};
use crate::value::types::{MethodInfo, TypeInfo, flag};
use crate::value::{AnyPayload, ByteArray, RawAny, index};
use std::ffi::{CStr, c_char, c_int};
use std::ptr;

/// Creates an owned value from an array of bytes.
type FromBytes = unsafe extern "C" fn(*const ByteArray, *mut RawAny) -> i32;
/// A function of the interface, in the form of a callback.
pub(in crate::conformance) type FfiCallback =
    unsafe extern "C" fn(this: RawHandle, args: *const RawAny, count: i32, out: *mut RawAny) -> i32;

/// The functions of a runtime, valid as long as the process lives, because a runtime is never unloaded.
pub(in crate::conformance) struct FfiApi {
    /// The version of tvm-ffi that the library states: major, minor, patch.
    pub(in crate::conformance) version: [u32; 3],
    /// The runtime that the functions belong to.
    pub(in crate::conformance) runtime: &'static dyn Runtime,
    /// `TVMFFIFunctionGetGlobal`
    find: unsafe extern "C" fn(*const ByteArray, *mut RawHandle) -> i32,
    /// `TVMFFIFunctionSetGlobal`
    set: unsafe extern "C" fn(*const ByteArray, RawHandle, i32) -> i32,
    /// `TVMFFIFunctionSetGlobalFromMethodInfo`
    set_described: Option<unsafe extern "C" fn(*const MethodInfo, i32) -> i32>,
    /// `TVMFFIFunctionCreate`
    create: unsafe extern "C" fn(
        RawHandle,
        FfiCallback,
        Option<unsafe extern "C" fn(RawHandle)>,
        *mut RawHandle,
    ) -> i32,
    /// `TVMFFIFunctionCall`
    call: FfiCallback,
    /// `TVMFFIObjectIncRef`
    retain: unsafe extern "C" fn(RawHandle) -> i32,
    /// `TVMFFIObjectDecRef`
    release: unsafe extern "C" fn(RawHandle) -> i32,
    /// `TVMFFIErrorMoveFromRaised`
    raised: unsafe extern "C" fn(*mut RawHandle),
    /// `TVMFFIStringFromByteArray`
    text: FromBytes,
    /// `TVMFFIBytesFromByteArray`
    bytes: FromBytes,
    /// `TVMFFIAnyViewToOwnedAny`
    own: unsafe extern "C" fn(*const RawAny, *mut RawAny) -> i32,
    /// `TVMFFIBigIntFromByteArray`, which only the newest releases have
    big_int: Option<FromBytes>,
    /// `TVMFFIBigIntGetContentByteArray`, which only the newest releases have
    big_int_words: Option<unsafe extern "C" fn(*const RawAny) -> ByteArray>,
    /// `TVMFFIDataTypeFromString`
    dtype_parse: unsafe extern "C" fn(*const ByteArray, *mut Dtype) -> i32,
    /// `TVMFFIDataTypeToString`
    dtype_text: unsafe extern "C" fn(*const Dtype, *mut RawAny) -> i32,
    /// `TVMFFIGetTypeInfo`
    pub(super) type_info: unsafe extern "C" fn(i32) -> *const TypeInfo,
    /// `TVMFFITypeKeyToIndex`
    pub(super) type_index: unsafe extern "C" fn(*const ByteArray, *mut i32) -> i32,
    /// `TVMFFITypeGetOrAllocIndex`
    pub(super) new_type: unsafe extern "C" fn(*const ByteArray, i32, i32, i32, i32, i32) -> i32,
    /// `TVMFFITypeRegisterAttr`
    pub(super) set_attr: unsafe extern "C" fn(i32, *const ByteArray, *const RawAny) -> i32,
    /// `TVMFFIEnvModRegisterSystemLibSymbol`
    pub(super) symbol: unsafe extern "C" fn(*const c_char, RawHandle) -> i32,
    /// `TVMFFIEnvModLookupFromImports`
    pub(super) imported: unsafe extern "C" fn(RawHandle, *const c_char, *mut RawHandle) -> i32,
    /// `TVMFFIErrorSetRaisedFromCStr`
    raise: unsafe extern "C" fn(*const c_char, *const c_char),
    /// `TVMFFIErrorCreateWithCauseAndExtraContext`, which not every release has (FUN-04)
    error: Option<
        unsafe extern "C" fn(
            *const ByteArray,
            *const ByteArray,
            *const ByteArray,
            RawHandle,
            RawHandle,
            *mut RawHandle,
        ) -> i32,
    >,
    /// `TVMFFITensorFromDLPack`
    pub(super) from_dlpack:
        unsafe extern "C" fn(*mut DLManagedTensor, i32, i32, *mut RawHandle) -> i32,
    /// `TVMFFITensorFromDLPackVersioned`
    pub(super) from_dlpack_1:
        unsafe extern "C" fn(*mut DLManagedTensorVersioned, i32, i32, *mut RawHandle) -> i32,
    /// `TVMFFIHandleInitOnce`, which not every release has
    pub(super) once: Option<
        unsafe extern "C" fn(
            *mut RawHandle,
            unsafe extern "C" fn(*mut RawHandle) -> c_int,
        ) -> c_int,
    >,
}

impl FfiApi {
    /// Returns the interface of a runtime, or the name of a missing function.
    pub(in crate::conformance) fn from_runtime(
        runtime: &'static dyn Runtime,
    ) -> Result<FfiApi, String> {
        FfiApi::look_up_functions(runtime).map_err(|lacks| {
            let name = runtime.name();
            let hint = match runtime.symbol("TVMFFIFunctionCall") {
                Some(_) => ". A runtime of 0.21 is judged as legacy:LIB",
                None => "",
            };
            format!("{name} is not a tvm-ffi library: {lacks}{hint}")
        })
    }

    /// Looks up every function by its name. Those that all releases since 0.22 have must exist.
    fn look_up_functions(runtime: &'static dyn Runtime) -> Result<FfiApi, String> {
        let version: unsafe extern "C" fn(*mut [u32; 3]) = symbol!(runtime, "TVMFFIGetVersion");
        let mut numbers = [0; 3];
        // SAFETY: the function writes three u32.
        unsafe { version(&raw mut numbers) };
        Ok(FfiApi {
            version: numbers,
            runtime,
            find: symbol!(runtime, "TVMFFIFunctionGetGlobal"),
            set: symbol!(runtime, "TVMFFIFunctionSetGlobal"),
            set_described: newer!(runtime, "TVMFFIFunctionSetGlobalFromMethodInfo"),
            create: symbol!(runtime, "TVMFFIFunctionCreate"),
            call: symbol!(runtime, "TVMFFIFunctionCall"),
            retain: symbol!(runtime, "TVMFFIObjectIncRef"),
            release: symbol!(runtime, "TVMFFIObjectDecRef"),
            raised: symbol!(runtime, "TVMFFIErrorMoveFromRaised"),
            text: symbol!(runtime, "TVMFFIStringFromByteArray"),
            bytes: symbol!(runtime, "TVMFFIBytesFromByteArray"),
            own: symbol!(runtime, "TVMFFIAnyViewToOwnedAny"),
            big_int: newer!(runtime, "TVMFFIBigIntFromByteArray"),
            big_int_words: newer!(runtime, "TVMFFIBigIntGetContentByteArray"),
            dtype_parse: symbol!(runtime, "TVMFFIDataTypeFromString"),
            dtype_text: symbol!(runtime, "TVMFFIDataTypeToString"),
            type_info: symbol!(runtime, "TVMFFIGetTypeInfo"),
            type_index: symbol!(runtime, "TVMFFITypeKeyToIndex"),
            new_type: symbol!(runtime, "TVMFFITypeGetOrAllocIndex"),
            set_attr: symbol!(runtime, "TVMFFITypeRegisterAttr"),
            symbol: symbol!(runtime, "TVMFFIEnvModRegisterSystemLibSymbol"),
            imported: symbol!(runtime, "TVMFFIEnvModLookupFromImports"),
            raise: symbol!(runtime, "TVMFFIErrorSetRaisedFromCStr"),
            error: newer!(runtime, "TVMFFIErrorCreateWithCauseAndExtraContext"),
            from_dlpack: symbol!(runtime, "TVMFFITensorFromDLPack"),
            from_dlpack_1: symbol!(runtime, "TVMFFITensorFromDLPackVersioned"),
            once: newer!(runtime, "TVMFFIHandleInitOnce"),
        })
    }

    /// Returns the function that the runtime provides only for the suite, if it does.
    pub(in crate::conformance) fn suite_function(&'static self, name: &str) -> Option<OwnedValue> {
        let function = self.runtime.suite_function(name)?;
        Some(self.object(index::FUNCTION, function.cast()))
    }

    /// Returns the global function `name`, if the runtime has it.
    pub(in crate::conformance) fn global(&'static self, name: &str) -> Option<OwnedValue> {
        let mut handle = ptr::null_mut();
        // SAFETY: a name and an out pointer.
        let code = unsafe { (self.find)(&ByteArray::of(name.as_bytes()), &raw mut handle) };
        // FUN-10: for a missing name the call succeeds with a null handle.
        (code == 0 && !handle.is_null()).then(|| self.object(index::FUNCTION, handle))
    }

    /// Registers `function` under `name`, and replaces an existing one if `over` is set.
    pub(in crate::conformance) fn set_global(
        &'static self,
        name: &str,
        function: &OwnedValue,
        over: bool,
    ) -> Result<(), Raised> {
        let (name, over) = (ByteArray::of(name.as_bytes()), i32::from(over));
        // SAFETY: a name and a function.
        let code = unsafe { (self.set)(&name, function.pointer(), over) };
        self.check(code)
    }

    /// Creates a function that runs `body` on `this`; both live as long as the process.
    pub(in crate::conformance) fn function(
        &'static self,
        this: RawHandle,
        body: FfiCallback,
    ) -> Result<OwnedValue, Raised> {
        self.function_until(this, body, None)
    }

    /// Creates a function as `function` does, which calls `finish` on `this` when it is freed.
    pub(in crate::conformance) fn function_until(
        &'static self,
        this: RawHandle,
        body: FfiCallback,
        finish: Option<unsafe extern "C" fn(RawHandle)>,
    ) -> Result<OwnedValue, Raised> {
        let mut handle = ptr::null_mut();
        // SAFETY: `body` and `finish` are fit for `this`.
        let code = unsafe { (self.create)(this, body, finish, &raw mut handle) };
        self.check(code)?;
        Ok(self.object(index::FUNCTION, handle))
    }

    /// Registers `function` under `name` with documentation and metadata. A name that is taken is rejected.
    pub(in crate::conformance) fn set_global_described(
        &'static self,
        name: &str,
        function: &OwnedValue,
        [doc, metadata]: [&str; 2],
    ) -> Result<(), Raised> {
        let set = self.set_described;
        let set = set.ok_or_else(|| Raised::missing("functions with metadata"))?;
        let [name, doc, metadata] =
            [name, doc, metadata].map(|text| ByteArray::of(text.as_bytes()));
        let info = MethodInfo {
            name,
            doc,
            metadata,
            flags: flag::STATIC_METHOD,
            method: function.raw,
        };
        // SAFETY: strings that are copied, and a function.
        let code = unsafe { set(&info, 0) };
        self.check(code)
    }

    /// Calls `function` and returns its result, or the error that it left on this thread.
    pub(in crate::conformance) fn call(
        &'static self,
        function: &OwnedValue,
        args: &[RawAny],
    ) -> Result<OwnedValue, Raised> {
        let mut out = RawAny::NONE;
        let count = i32::try_from(args.len()).unwrap_or(i32::MAX);
        // SAFETY: a function, that many arguments, and an out pointer for the result.
        let code = unsafe { (self.call)(function.pointer(), args.as_ptr(), count, &raw mut out) };
        self.check(code)?;
        Ok(OwnedValue {
            api: self,
            raw: out,
        })
    }

    /// Calls the global function `name`. If it is missing, the operation is unsupported, and not wrong.
    pub(in crate::conformance) fn call_global(
        &'static self,
        name: &str,
        args: &[RawAny],
    ) -> Result<OwnedValue, Raised> {
        let missing = || Raised::missing(&format!("function `{name}`"));
        let function = self.global(name).ok_or_else(missing)?;
        self.call(&function, args)
    }

    /// Creates a string of the runtime.
    pub(in crate::conformance) fn text(&'static self, text: &str) -> Result<OwnedValue, Raised> {
        self.made_of(self.text, text.as_bytes())
    }

    /// Creates bytes of the runtime.
    pub(in crate::conformance) fn bytes(&'static self, bytes: &[u8]) -> Result<OwnedValue, Raised> {
        self.made_of(self.bytes, bytes)
    }

    /// Creates an integer of any size from its 64-bit words, the lowest first.
    pub(in crate::conformance) fn big_int(
        &'static self,
        words: &[i64],
    ) -> Result<OwnedValue, Raised> {
        let from = self
            .big_int
            .ok_or_else(|| Raised::missing("big integers"))?;
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.made_of(from, &bytes)
    }

    /// Returns the 64-bit words of a big integer.
    pub(in crate::conformance) fn big_int_words(
        &'static self,
        value: &RawAny,
    ) -> Result<Vec<i64>, Raised> {
        let words = self
            .big_int_words
            .ok_or_else(|| Raised::missing("big integers"))?;
        // SAFETY: the value is a big integer, which lives for the call.
        let bytes = unsafe { words(value) };
        // SAFETY: the words are the value's, which lives for the copy.
        let bytes = unsafe { bytes.as_slice() };
        let words = bytes
            .chunks_exact(8)
            .filter_map(|word| word.try_into().ok());
        Ok(words.map(i64::from_le_bytes).collect())
    }

    /// Creates a value of the runtime with `from`, from a copy of these bytes.
    fn made_of(&'static self, from: FromBytes, bytes: &[u8]) -> Result<OwnedValue, Raised> {
        let mut out = RawAny::NONE;
        // SAFETY: bytes that are copied, and an out pointer.
        let code = unsafe { from(&ByteArray::of(bytes), &raw mut out) };
        self.check(code)?;
        Ok(OwnedValue {
            api: self,
            raw: out,
        })
    }

    /// Creates an owned value from the value that `view` borrows.
    pub(in crate::conformance) fn own(&'static self, view: &RawAny) -> Result<OwnedValue, Raised> {
        let mut out = RawAny::NONE;
        // SAFETY: the borrowed value lives for the call.
        let code = unsafe { (self.own)(view, &raw mut out) };
        self.check(code)?;
        Ok(OwnedValue {
            api: self,
            raw: out,
        })
    }

    /// Creates an error from its parts, with the error that caused it and an additional context.
    pub(in crate::conformance) fn error(
        &'static self,
        [kind, message, backtrace]: [&str; 3],
        objects: [Option<&OwnedValue>; 2],
    ) -> Result<OwnedValue, Raised> {
        let create = self
            .error
            .ok_or_else(|| Raised::missing("errors with a cause"))?;
        let [kind, message, backtrace] =
            [kind, message, backtrace].map(|text| ByteArray::of(text.as_bytes()));
        let [cause, context] =
            objects.map(|object| object.map_or(ptr::null_mut(), OwnedValue::pointer));
        let mut handle = ptr::null_mut();
        // SAFETY: strings that are copied, an error or null, an object or null, an out pointer.
        let code = unsafe { create(&kind, &message, &backtrace, cause, context, &raw mut handle) };
        self.check(code)?;
        Ok(self.object(index::ERROR, handle))
    }

    /// Sets the error of this thread.
    pub(in crate::conformance) fn raise(&self, kind: &CStr, message: &CStr) {
        // SAFETY: two NUL-terminated strings that are copied.
        unsafe { (self.raise)(kind.as_ptr(), message.as_ptr()) };
    }

    /// Takes the error of this thread.
    pub(in crate::conformance) fn take_raised(&'static self) -> Option<OwnedValue> {
        let mut handle = ptr::null_mut();
        // SAFETY: a valid out pointer.
        unsafe { (self.raised)(&raw mut handle) };
        (!handle.is_null()).then(|| self.object(index::ERROR, handle))
    }

    /// Returns the data type of a text, as the runtime parses it.
    pub(in crate::conformance) fn dtype(&'static self, text: &str) -> Result<Dtype, Raised> {
        let mut dtype = Dtype {
            code: 0,
            bits: 0,
            lanes: 0,
        };
        // SAFETY: a string and an out pointer.
        let code = unsafe { (self.dtype_parse)(&ByteArray::of(text.as_bytes()), &raw mut dtype) };
        self.check(code)?;
        Ok(dtype)
    }

    /// Returns the text of a data type, as the runtime prints it.
    pub(in crate::conformance) fn dtype_text(
        &'static self,
        dtype: Dtype,
    ) -> Result<String, Raised> {
        let mut out = RawAny::NONE;
        // SAFETY: a type and an out pointer.
        let code = unsafe { (self.dtype_text)(&raw const dtype, &raw mut out) };
        self.check(code)?;
        let held = OwnedValue {
            api: self,
            raw: out,
        };
        Ok(held.text().unwrap_or_default())
    }

    /// Adds a reference to `raw`.
    pub(in crate::conformance) fn share(&'static self, raw: RawAny) -> OwnedValue {
        // A value with a lower type index is stored in the cell itself, and has no reference count.
        if raw.type_index >= index::OBJECT_BEGIN {
            // SAFETY: the tag says that it is an object.
            let object = unsafe { raw.payload.ptr };
            // SAFETY: the caller that passes the cell holds the object.
            unsafe { (self.retain)(object) };
        }
        OwnedValue { api: self, raw }
    }

    /// Returns the owner of one reference to an object of this type.
    pub(super) fn object(&'static self, type_index: i32, handle: RawHandle) -> OwnedValue {
        let raw = RawAny::of(type_index, AnyPayload { ptr: handle });
        OwnedValue { api: self, raw }
    }

    /// Drops one reference.
    ///
    /// # Safety
    ///
    /// `object` is alive, and the reference belongs to the caller.
    pub(in crate::conformance) unsafe fn drop_one(&self, object: RawHandle) {
        // SAFETY: alive, and the reference is the caller's to drop, by this function's contract.
        unsafe { (self.release)(object) };
    }

    /// Returns the error that the call left on this thread for a code other than 0 (FUN-01).
    pub(in crate::conformance) fn check(&'static self, code: i32) -> Result<(), Raised> {
        if code == 0 {
            return Ok(());
        }
        let Some(error) = self.take_raised() else {
            return Err(Raised {
                kind: "RuntimeError".to_owned(),
                message: format!("a call failed with code {code} and left no error"),
                broken: None,
            });
        };
        let [kind, message, _] = error.error_texts().unwrap_or_default();
        // Only this crate states the rule; another runtime is judged by kind and message.
        let broken = self.runtime.broken(&message);
        Err(Raised {
            kind,
            message,
            broken,
        })
    }
}
