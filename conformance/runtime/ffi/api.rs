//! The tvm-ffi C interface (0.22 on) of a runtime, as far as cases need it.
//!
//! Only what the C headers declare is used, so any library that exports them can be judged.

use super::held::{Held, Raised};
use crate::conformance::runtime::{Runtime, newer, symbol};
use crate::value::dlpack::{DLDataType, DLManagedTensor, DLManagedTensorVersioned};
use crate::value::types::{FieldInfo, MethodInfo, TypeInfo, flag};
use crate::value::{AnyPayload, ByteArray, RawAny, index};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;
use std::sync::atomic::Ordering;

pub(in crate::conformance) type Handle = *mut c_void;
/// Makes an owned value of an array of bytes.
type FromBytes = unsafe extern "C" fn(*const ByteArray, *mut RawAny) -> i32;
/// A function of the interface, as a callback is one.
pub(in crate::conformance) type SafeCall =
    unsafe extern "C" fn(this: Handle, args: *const RawAny, count: i32, out: *mut RawAny) -> i32;

/// The functions, for as long as the process lives: a runtime is never unloaded.
pub(in crate::conformance) struct Api {
    pub(in crate::conformance) version: [u32; 3],
    /// Whose functions these are.
    pub(in crate::conformance) runtime: &'static dyn Runtime,
    find: unsafe extern "C" fn(*const ByteArray, *mut Handle) -> i32,
    set: unsafe extern "C" fn(*const ByteArray, Handle, i32) -> i32,
    set_described: Option<unsafe extern "C" fn(*const MethodInfo, i32) -> i32>,
    create: unsafe extern "C" fn(
        Handle,
        SafeCall,
        Option<unsafe extern "C" fn(Handle)>,
        *mut Handle,
    ) -> i32,
    call: SafeCall,
    retain: unsafe extern "C" fn(Handle) -> i32,
    release: unsafe extern "C" fn(Handle) -> i32,
    raised: unsafe extern "C" fn(*mut Handle),
    text: FromBytes,
    bytes: FromBytes,
    own: unsafe extern "C" fn(*const RawAny, *mut RawAny) -> i32,
    big_int: Option<FromBytes>,
    big_int_words: Option<unsafe extern "C" fn(*const RawAny) -> ByteArray>,
    dtype_parse: unsafe extern "C" fn(*const ByteArray, *mut DLDataType) -> i32,
    dtype_text: unsafe extern "C" fn(*const DLDataType, *mut RawAny) -> i32,
    type_info: unsafe extern "C" fn(i32) -> *const TypeInfo,
    type_index: unsafe extern "C" fn(*const ByteArray, *mut i32) -> i32,
    new_type: unsafe extern "C" fn(*const ByteArray, i32, i32, i32, i32, i32) -> i32,
    set_attr: unsafe extern "C" fn(i32, *const ByteArray, *const RawAny) -> i32,
    symbol: unsafe extern "C" fn(*const c_char, Handle) -> i32,
    imported: unsafe extern "C" fn(Handle, *const c_char, *mut Handle) -> i32,
    raise: unsafe extern "C" fn(*const c_char, *const c_char),
    error: Option<
        unsafe extern "C" fn(
            *const ByteArray,
            *const ByteArray,
            *const ByteArray,
            Handle,
            Handle,
            *mut Handle,
        ) -> i32,
    >,
    from_dlpack: unsafe extern "C" fn(*mut DLManagedTensor, i32, i32, *mut Handle) -> i32,
    from_dlpack_1:
        unsafe extern "C" fn(*mut DLManagedTensorVersioned, i32, i32, *mut Handle) -> i32,
    once: Option<
        unsafe extern "C" fn(*mut Handle, unsafe extern "C" fn(*mut Handle) -> c_int) -> c_int,
    >,
}

impl Api {
    /// The interface of a runtime.
    pub(in crate::conformance) fn of(runtime: &'static dyn Runtime) -> Result<Api, String> {
        Api::found(runtime)
            .map_err(|lacks| format!("{} is not a tvm-ffi library: {lacks}", runtime.name()))
    }

    fn found(runtime: &'static dyn Runtime) -> Result<Api, String> {
        let version: unsafe extern "C" fn(*mut [u32; 3]) = symbol!(runtime, "TVMFFIGetVersion");
        let mut numbers = [0; 3];
        // SAFETY: three u32 are what it writes.
        unsafe { version(&raw mut numbers) };
        Ok(Api {
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

    /// The function that the runtime brings for the suite alone, if it does.
    pub(in crate::conformance) fn brought(&'static self, name: &str) -> Option<Held> {
        let function = self.runtime.brought(name)?;
        Some(self.object(index::FUNCTION, function.cast()))
    }

    /// The global function `name`, if the runtime has it.
    pub(in crate::conformance) fn global(&'static self, name: &str) -> Option<Held> {
        let mut handle = ptr::null_mut();
        // SAFETY: a name and a place.
        let code = unsafe { (self.find)(&ByteArray::of(name.as_bytes()), &raw mut handle) };
        (code == 0 && !handle.is_null()).then(|| self.object(index::FUNCTION, handle))
    }

    /// Puts `function` under `name`, in place of what is there if that is asked for.
    pub(in crate::conformance) fn set_global(
        &'static self,
        name: &str,
        function: &Held,
        over: bool,
    ) -> Result<(), Raised> {
        let (name, over) = (ByteArray::of(name.as_bytes()), i32::from(over));
        // SAFETY: a name and a function.
        let code = unsafe { (self.set)(&name, function.pointer(), over) };
        self.check(code)
    }

    /// A function that runs `body` on `this`; both live as long as the process.
    pub(in crate::conformance) fn function(
        &'static self,
        this: Handle,
        body: SafeCall,
    ) -> Result<Held, Raised> {
        self.function_until(this, body, None)
    }

    /// The same, whose end calls `finish` on `this`.
    pub(in crate::conformance) fn function_until(
        &'static self,
        this: Handle,
        body: SafeCall,
        finish: Option<unsafe extern "C" fn(Handle)>,
    ) -> Result<Held, Raised> {
        let mut handle = ptr::null_mut();
        // SAFETY: `body` and `finish` are fit for `this`.
        let code = unsafe { (self.create)(this, body, finish, &raw mut handle) };
        self.check(code)?;
        Ok(self.object(index::FUNCTION, handle))
    }

    /// Puts `function` under `name` with documentation and metadata; a name that is taken is refused.
    pub(in crate::conformance) fn set_global_described(
        &'static self,
        name: &str,
        function: &Held,
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
        // SAFETY: texts that are copied, and a function.
        let code = unsafe { set(&info, 0) };
        self.check(code)
    }

    pub(in crate::conformance) fn call(
        &'static self,
        function: &Held,
        args: &[RawAny],
    ) -> Result<Held, Raised> {
        let mut out = RawAny::NONE;
        let count = i32::try_from(args.len()).unwrap_or(i32::MAX);
        // SAFETY: a function, that many arguments, and a place for the result.
        let code = unsafe { (self.call)(function.pointer(), args.as_ptr(), count, &raw mut out) };
        self.check(code)?;
        Ok(Held {
            api: self,
            raw: out,
        })
    }

    /// Calls the global function `name`.
    pub(in crate::conformance) fn call_global(
        &'static self,
        name: &str,
        args: &[RawAny],
    ) -> Result<Held, Raised> {
        let missing = || Raised::missing(&format!("function `{name}`"));
        let function = self.global(name).ok_or_else(missing)?;
        self.call(&function, args)
    }

    /// A string of the runtime's own.
    pub(in crate::conformance) fn text(&'static self, text: &str) -> Result<Held, Raised> {
        self.made_of(self.text, text.as_bytes())
    }

    /// Bytes of the runtime's own.
    pub(in crate::conformance) fn bytes(&'static self, bytes: &[u8]) -> Result<Held, Raised> {
        self.made_of(self.bytes, bytes)
    }

    /// An integer of any size, from its 64-bit words, the lowest first.
    pub(in crate::conformance) fn big_int(&'static self, words: &[i64]) -> Result<Held, Raised> {
        let from = self
            .big_int
            .ok_or_else(|| Raised::missing("big integers"))?;
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.made_of(from, &bytes)
    }

    /// The 64-bit words of a big integer.
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

    fn made_of(&'static self, from: FromBytes, bytes: &[u8]) -> Result<Held, Raised> {
        let mut out = RawAny::NONE;
        // SAFETY: bytes that are copied, and a place.
        let code = unsafe { from(&ByteArray::of(bytes), &raw mut out) };
        self.check(code)?;
        Ok(Held {
            api: self,
            raw: out,
        })
    }

    /// An owned value of what `view` borrows.
    pub(in crate::conformance) fn own(&'static self, view: &RawAny) -> Result<Held, Raised> {
        let mut out = RawAny::NONE;
        // SAFETY: what the view borrows lives for the call.
        let code = unsafe { (self.own)(view, &raw mut out) };
        self.check(code)?;
        Ok(Held {
            api: self,
            raw: out,
        })
    }

    /// An error with its parts: the error that caused it, and what travels along.
    pub(in crate::conformance) fn error(
        &'static self,
        [kind, message, backtrace]: [&str; 3],
        objects: [Option<&Held>; 2],
    ) -> Result<Held, Raised> {
        let create = self
            .error
            .ok_or_else(|| Raised::missing("errors with a cause"))?;
        let [kind, message, backtrace] =
            [kind, message, backtrace].map(|text| ByteArray::of(text.as_bytes()));
        let [cause, context] = objects.map(|object| object.map_or(ptr::null_mut(), Held::pointer));
        let mut handle = ptr::null_mut();
        // SAFETY: texts that are copied, an error or null, an object or null, a place.
        let code = unsafe { create(&kind, &message, &backtrace, cause, context, &raw mut handle) };
        self.check(code)?;
        Ok(self.object(index::ERROR, handle))
    }

    /// Leaves an error on this thread.
    pub(in crate::conformance) fn raise(&self, kind: &CStr, message: &CStr) {
        // SAFETY: two texts that are copied.
        unsafe { (self.raise)(kind.as_ptr(), message.as_ptr()) };
    }

    /// Takes the error that lies on this thread.
    pub(in crate::conformance) fn take_raised(&'static self) -> Option<Held> {
        let mut handle = ptr::null_mut();
        // SAFETY: a place.
        unsafe { (self.raised)(&raw mut handle) };
        (!handle.is_null()).then(|| self.object(index::ERROR, handle))
    }

    pub(in crate::conformance) fn dtype(&'static self, text: &str) -> Result<DLDataType, Raised> {
        let mut dtype = DLDataType {
            code: 0,
            bits: 0,
            lanes: 0,
        };
        // SAFETY: a text and a place.
        let code = unsafe { (self.dtype_parse)(&ByteArray::of(text.as_bytes()), &raw mut dtype) };
        self.check(code)?;
        Ok(dtype)
    }

    pub(in crate::conformance) fn dtype_text(
        &'static self,
        dtype: DLDataType,
    ) -> Result<String, Raised> {
        let mut out = RawAny::NONE;
        // SAFETY: a type and a place.
        let code = unsafe { (self.dtype_text)(&raw const dtype, &raw mut out) };
        self.check(code)?;
        let held = Held {
            api: self,
            raw: out,
        };
        Ok(held.text().unwrap_or_default())
    }

    /// The index of a type that was given one.
    pub(in crate::conformance) fn type_index(&'static self, key: &str) -> Option<i32> {
        let mut index = 0;
        // SAFETY: a key and a place.
        let code = unsafe { (self.type_index)(&ByteArray::of(key.as_bytes()), &raw mut index) };
        self.check(code).is_ok().then_some(index)
    }

    /// A new type. One that does not fit is refused with a negative index, or ends the process.
    pub(in crate::conformance) fn new_type(
        &'static self,
        key: &str,
        [fixed, depth, slots, overflow, parent]: [i32; 5],
    ) -> Result<i32, Raised> {
        let key = ByteArray::of(key.as_bytes());
        // SAFETY: a key, which is copied, and numbers.
        let given = unsafe { (self.new_type)(&key, fixed, depth, slots, overflow, parent) };
        self.check(given.min(0))?;
        Ok(given)
    }

    /// Registers an attribute of a type.
    pub(in crate::conformance) fn set_attr(
        &'static self,
        type_index: i32,
        name: &str,
        value: &RawAny,
    ) -> Result<(), Raised> {
        let name = ByteArray::of(name.as_bytes());
        // SAFETY: a name, which is copied, and a value, which is counted.
        let code = unsafe { (self.set_attr)(type_index, &name, value) };
        self.check(code)
    }

    /// What is known of the type of a living object or of a registered type.
    pub(in crate::conformance) fn type_info(&self, type_index: i32) -> Option<&'static TypeInfo> {
        // SAFETY: takes any index.
        let info = unsafe { (self.type_info)(type_index) };
        // SAFETY: null where there is no such type, and types live as long as the process.
        unsafe { info.as_ref() }
    }

    /// The field `name` of an object's type, by reflection.
    pub(in crate::conformance) fn field(&'static self, object: &Held, name: &str) -> Option<Held> {
        let info = self.type_info(object.raw.type_index)?;
        let count = usize::try_from(info.num_fields.load(Ordering::Acquire)).ok()?;
        let fields: *const FieldInfo = info.fields.load(Ordering::Acquire);
        for at in 0..count {
            // SAFETY: a type has `count` fields at that address, which live as long as the type.
            let field = unsafe { &*fields.wrapping_add(at) };
            // SAFETY: names live as long as their type.
            if unsafe { field.name.as_slice() } != name.as_bytes() {
                continue;
            }
            let offset = usize::try_from(field.offset).ok()?;
            let mut out = RawAny::NONE;
            let (getter, place) = (field.getter?, object.pointer().wrapping_byte_add(offset));
            // SAFETY: the getter is made for the field of this type, which lies at `offset` in the object.
            let code = unsafe { getter(place, &raw mut out) };
            self.check(code).ok()?;
            return Some(Held {
                api: self,
                raw: out,
            });
        }
        None
    }

    /// A tensor on the CPU that owns `tensor`, which comes as DLPack wants it.
    pub(in crate::conformance) fn tensor(
        &'static self,
        tensor: *mut DLManagedTensor,
    ) -> Result<Held, Raised> {
        let mut handle = ptr::null_mut();
        // SAFETY: `tensor` is managed: its deleter is called once.
        let code = unsafe { (self.from_dlpack)(tensor, 0, 0, &raw mut handle) };
        self.check(code)?;
        Ok(self.object(index::TENSOR, handle))
    }

    /// The same, as DLPack 1.x has it. What is refused stays the caller's.
    pub(in crate::conformance) fn tensor_1(
        &'static self,
        tensor: *mut DLManagedTensorVersioned,
        alignment: i32,
        contiguous: bool,
    ) -> Result<Held, Raised> {
        let mut handle = ptr::null_mut();
        // SAFETY: a managed tensor of the caller's, and a place for the handle.
        let code = unsafe {
            (self.from_dlpack_1)(tensor, alignment, i32::from(contiguous), &raw mut handle)
        };
        self.check(code)?;
        Ok(self.object(index::TENSOR, handle))
    }

    /// What compiled code gets that looks for `name` from the module whose context is `context`.
    ///
    /// # Safety
    ///
    /// `context` is what the runtime wrote into a library that is still loaded.
    pub(in crate::conformance) unsafe fn looked_up(
        &'static self,
        context: Handle,
        name: &CStr,
    ) -> Result<Held, Raised> {
        let mut handle = ptr::null_mut();
        // SAFETY: a context of a library that is still loaded, by this contract, a name, and a place.
        let code = unsafe { (self.imported)(context, name.as_ptr(), &raw mut handle) };
        self.check(code)?;
        // The runtime keeps what it gave, for as long as the module lives.
        Ok(self.share(RawAny::of(index::FUNCTION, AnyPayload { ptr: handle })))
    }

    /// Initialises what `place` stands for, once.
    pub(in crate::conformance) fn once(
        &self,
        place: &mut Handle,
        body: unsafe extern "C" fn(*mut Handle) -> c_int,
    ) -> Option<c_int> {
        // SAFETY: a place that lives for the call, and a function fit for it.
        self.once.map(|once| unsafe { once(place, body) })
    }

    /// Makes `body` a symbol of the system library.
    pub(in crate::conformance) fn system_symbol(
        &'static self,
        name: &CStr,
        body: SafeCall,
    ) -> Result<(), Raised> {
        // SAFETY: a name, and a function that stays.
        let code = unsafe { (self.symbol)(name.as_ptr(), body as Handle) };
        self.check(code)
    }

    /// One more reference to `raw`.
    pub(in crate::conformance) fn share(&'static self, raw: RawAny) -> Held {
        if raw.type_index >= index::OBJECT_BEGIN {
            // SAFETY: the tag says that it is an object.
            let object = unsafe { raw.payload.ptr };
            // SAFETY: whoever passes the cell holds the object.
            unsafe { (self.retain)(object) };
        }
        Held { api: self, raw }
    }

    fn object(&'static self, type_index: i32, handle: Handle) -> Held {
        let raw = RawAny::of(type_index, AnyPayload { ptr: handle });
        Held { api: self, raw }
    }

    /// One reference less.
    ///
    /// # Safety
    ///
    /// `object` is alive, and a reference of the caller's.
    pub(in crate::conformance) unsafe fn drop_one(&self, object: Handle) {
        // SAFETY: alive, and the reference is the caller's to drop, by this contract.
        unsafe { (self.release)(object) };
    }

    /// The error behind a code that is not 0.
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
        let broken = self.runtime.broken(&message);
        Err(Raised {
            kind,
            message,
            broken,
        })
    }
}
