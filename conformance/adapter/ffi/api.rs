//! The tvm-ffi C interface (0.22 on) of a library that was loaded for it, as far as the adapter needs it.
//!
//! Only what the C headers declare is used, so any library that exports them can be judged.

use crate::conformance::adapter::library;
use crate::value::ByteArray;
use crate::value::dlpack::{DLDataType, DLManagedTensor, DLTensor};
use crate::value::types::{FieldInfo, TypeInfo};
use crate::value::{Header, Payload, RawAny, index};
use std::ffi::c_void;
use std::fmt;
use std::mem::size_of;
use std::path::Path;
use std::ptr;
use std::sync::atomic::Ordering;

type Handle = *mut c_void;
/// A function of the interface, as a callback is one.
pub(super) type SafeCall =
    unsafe extern "C" fn(this: Handle, args: *const RawAny, count: i32, out: *mut RawAny) -> i32;

/// The functions, for as long as the process lives: the libraries are never unloaded.
pub(super) struct Api {
    pub(super) version: [u32; 3],
    find: unsafe extern "C" fn(*const ByteArray, *mut Handle) -> i32,
    set: unsafe extern "C" fn(*const ByteArray, Handle, i32) -> i32,
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
    text: unsafe extern "C" fn(*const ByteArray, *mut RawAny) -> i32,
    dtype_parse: unsafe extern "C" fn(*const ByteArray, *mut DLDataType) -> i32,
    dtype_text: unsafe extern "C" fn(*const DLDataType, *mut RawAny) -> i32,
    type_info: unsafe extern "C" fn(i32) -> *const TypeInfo,
    symbol: unsafe extern "C" fn(*const std::ffi::c_char, Handle) -> i32,
    from_dlpack: unsafe extern "C" fn(*mut DLManagedTensor, i32, i32, *mut Handle) -> i32,
}

impl Api {
    /// Loads the libraries in order, each open to those after it, and finds the interface in the first.
    pub(super) fn open(paths: &[&Path]) -> Result<Api, String> {
        let library = library::open_all("ffi", paths)?;
        let name = paths[0].display();
        macro_rules! symbol {
            ($symbol:literal) => {
                // SAFETY: the type is the one that the C header declares for this name.
                *unsafe { library.get($symbol) }.map_err(|_| {
                    format!(
                        "{name} is not a tvm-ffi library: it does not export {}",
                        $symbol
                    )
                })?
            };
        }
        let version: unsafe extern "C" fn(*mut [u32; 3]) = symbol!("TVMFFIGetVersion");
        let mut numbers = [0; 3];
        // SAFETY: three u32 are what it writes.
        unsafe { version(&raw mut numbers) };
        Ok(Api {
            version: numbers,
            find: symbol!("TVMFFIFunctionGetGlobal"),
            set: symbol!("TVMFFIFunctionSetGlobal"),
            create: symbol!("TVMFFIFunctionCreate"),
            call: symbol!("TVMFFIFunctionCall"),
            retain: symbol!("TVMFFIObjectIncRef"),
            release: symbol!("TVMFFIObjectDecRef"),
            raised: symbol!("TVMFFIErrorMoveFromRaised"),
            text: symbol!("TVMFFIStringFromByteArray"),
            dtype_parse: symbol!("TVMFFIDataTypeFromString"),
            dtype_text: symbol!("TVMFFIDataTypeToString"),
            type_info: symbol!("TVMFFIGetTypeInfo"),
            symbol: symbol!("TVMFFIEnvModRegisterSystemLibSymbol"),
            from_dlpack: symbol!("TVMFFITensorFromDLPack"),
        })
    }

    /// The global function `name`, if the runtime has it.
    pub(super) fn global(&'static self, name: &str) -> Option<Held> {
        let mut handle = ptr::null_mut();
        // SAFETY: a name and a place.
        let code = unsafe { (self.find)(&ByteArray::of(name.as_bytes()), &raw mut handle) };
        (code == 0 && !handle.is_null()).then(|| self.object(index::FUNCTION, handle))
    }

    /// Puts `function` under `name`, in place of what is there.
    pub(super) fn set_global(&'static self, name: &str, function: &Held) -> Result<(), Raised> {
        // SAFETY: a name and a function.
        let code = unsafe { (self.set)(&ByteArray::of(name.as_bytes()), function.pointer(), 1) };
        self.check(code)
    }

    /// A function that runs `body` on `this`; both live as long as the process.
    pub(super) fn function(&'static self, this: Handle, body: SafeCall) -> Result<Held, Raised> {
        let mut handle = ptr::null_mut();
        // SAFETY: `body` is fit for `this`, and there is nothing to delete.
        let code = unsafe { (self.create)(this, body, None, &raw mut handle) };
        self.check(code)?;
        Ok(self.object(index::FUNCTION, handle))
    }

    pub(super) fn call(&'static self, function: &Held, args: &[RawAny]) -> Result<Held, Raised> {
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
    pub(super) fn call_global(&'static self, name: &str, args: &[RawAny]) -> Result<Held, Raised> {
        let missing = || Raised {
            kind: "Missing".to_owned(),
            message: format!("this runtime has no function `{name}`"),
        };
        let function = self.global(name).ok_or_else(missing)?;
        self.call(&function, args)
    }

    /// A string of the runtime's own.
    pub(super) fn text(&'static self, text: &str) -> Result<Held, Raised> {
        let mut out = RawAny::NONE;
        // SAFETY: a text and a place.
        let code = unsafe { (self.text)(&ByteArray::of(text.as_bytes()), &raw mut out) };
        self.check(code)?;
        Ok(Held {
            api: self,
            raw: out,
        })
    }

    pub(super) fn dtype(&'static self, text: &str) -> Result<DLDataType, Raised> {
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

    pub(super) fn dtype_text(&'static self, dtype: DLDataType) -> Result<String, Raised> {
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

    /// The field `name` of an object's type, by reflection.
    pub(super) fn field(&'static self, object: &Held, name: &str) -> Option<Held> {
        // SAFETY: the index is that of a living object.
        let info = unsafe { (self.type_info)(object.raw.type_index) };
        // SAFETY: types live as long as the process; null where there is none.
        let info = unsafe { info.as_ref() }?;
        let count = usize::try_from(info.num_fields.load(Ordering::Acquire)).ok()?;
        let fields: *const FieldInfo = info.fields.load(Ordering::Acquire);
        for at in 0..count {
            // SAFETY: there are `count` of them.
            let field = unsafe { &*fields.add(at) };
            // SAFETY: names live as long as their type.
            if unsafe { field.name.as_slice() } != name.as_bytes() {
                continue;
            }
            let offset = usize::try_from(field.offset).ok()?;
            let mut out = RawAny::NONE;
            // SAFETY: the getter is made for the field of this type, which lies at `offset` in the object.
            let code = unsafe { field.getter?(object.pointer().byte_add(offset), &raw mut out) };
            self.check(code).ok()?;
            return Some(Held {
                api: self,
                raw: out,
            });
        }
        None
    }

    /// A tensor on the CPU that owns `tensor`, which comes as DLPack wants it.
    pub(super) fn tensor(&'static self, tensor: *mut DLManagedTensor) -> Result<Held, Raised> {
        let mut handle = ptr::null_mut();
        // SAFETY: `tensor` is managed: its deleter is called once.
        let code = unsafe { (self.from_dlpack)(tensor, 0, 0, &raw mut handle) };
        self.check(code)?;
        Ok(self.object(index::TENSOR, handle))
    }

    /// Makes `body` a symbol of the system library.
    pub(super) fn system_symbol(
        &'static self,
        name: &std::ffi::CStr,
        body: SafeCall,
    ) -> Result<(), Raised> {
        // SAFETY: a name, and a function that stays.
        let code = unsafe { (self.symbol)(name.as_ptr(), body as Handle) };
        self.check(code)
    }

    /// One more reference to `raw`.
    pub(super) fn share(&'static self, raw: RawAny) -> Held {
        if raw.type_index >= index::OBJECT_BEGIN {
            // SAFETY: it is an object that somebody holds.
            unsafe { (self.retain)(raw.payload.ptr) };
        }
        Held { api: self, raw }
    }

    fn object(&'static self, type_index: i32, handle: Handle) -> Held {
        let raw = RawAny::of(type_index, Payload { ptr: handle });
        Held { api: self, raw }
    }

    fn check(&'static self, code: i32) -> Result<(), Raised> {
        if code == 0 {
            return Ok(());
        }
        let mut handle = ptr::null_mut();
        // SAFETY: a place.
        unsafe { (self.raised)(&raw mut handle) };
        if handle.is_null() {
            return Err(Raised {
                kind: "Error".to_owned(),
                message: format!("failed with {code} and raised nothing"),
            });
        }
        let error = self.object(index::ERROR, handle);
        // SAFETY: the cell of an error begins with its kind and its message.
        let [kind, message] = unsafe { *error.cell::<[ByteArray; 2]>() };
        // SAFETY: they live as long as the error.
        let text =
            |bytes: ByteArray| String::from_utf8_lossy(unsafe { bytes.as_slice() }).into_owned();
        Err(Raised {
            kind: text(kind),
            message: text(message),
        })
    }
}

/// A view of text or bytes as an argument; `bytes` must stay where it is until the call is over.
pub(super) fn bytes_arg(bytes: &ByteArray) -> RawAny {
    let ptr = ptr::from_ref(bytes).cast_mut().cast();
    RawAny::of(index::BYTE_ARRAY, Payload { ptr })
}

/// A text as an argument, ended by a zero byte.
pub(super) fn text_arg(text: &std::ffi::CStr) -> RawAny {
    let ptr = text.as_ptr().cast_mut().cast();
    RawAny::of(index::RAW_STR, Payload { ptr })
}

pub(super) fn bool_arg(truth: bool) -> RawAny {
    let int = i64::from(truth);
    RawAny::of(index::BOOL, Payload { int })
}

pub(super) fn int_arg(int: i64) -> RawAny {
    RawAny::of(index::INT, Payload { int })
}

/// What a call raised.
#[derive(Clone, Debug)]
pub(super) struct Raised {
    pub(super) kind: String,
    pub(super) message: String,
}

impl fmt::Display for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind, self.message)
    }
}

/// A value that we own.
pub(super) struct Held {
    api: &'static Api,
    pub(super) raw: RawAny,
}

impl Held {
    /// The address of the object, which is who it is.
    pub(super) fn pointer(&self) -> Handle {
        // SAFETY: every member of the union is eight plain bytes.
        unsafe { self.raw.payload.ptr }
    }

    /// The value in an object behind its header.
    ///
    /// # Safety
    ///
    /// The object's type must have a `T` there.
    unsafe fn cell<T>(&self) -> *const T {
        // SAFETY: says the caller.
        unsafe { self.pointer().byte_add(size_of::<Header>()).cast::<T>() }
    }

    /// Text or bytes.
    pub(super) fn bytes(&self) -> Option<Vec<u8>> {
        read_bytes(&self.raw)
    }

    pub(super) fn text(&self) -> Option<String> {
        String::from_utf8(self.bytes()?).ok()
    }

    /// The extents of a shape.
    pub(super) fn extents(&self) -> Vec<i64> {
        if self.raw.type_index != index::SHAPE {
            return Vec::new();
        }
        // SAFETY: a shape object has pointer and count behind the header, which live as long as it does.
        let (data, size) = unsafe { *self.cell::<(*const i64, usize)>() };
        match size {
            0 => Vec::new(),
            // SAFETY: as above.
            _ => unsafe { std::slice::from_raw_parts(data, size) }.to_vec(),
        }
    }

    /// The description of a tensor.
    pub(super) fn dltensor(&self) -> Option<&DLTensor> {
        // SAFETY: a tensor object has its description behind the header.
        (self.raw.type_index == index::TENSOR).then(|| unsafe { &*self.cell::<DLTensor>() })
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.raw.type_index >= index::OBJECT_BEGIN {
            // SAFETY: we own one reference.
            unsafe { (self.api.release)(self.pointer()) };
        }
    }
}

/// Text or bytes of any tag, copied.
pub(super) fn read_bytes(raw: &RawAny) -> Option<Vec<u8>> {
    let array = match raw.type_index {
        index::SMALL_STR | index::SMALL_BYTES => {
            // SAFETY: the tag says that it holds bytes.
            let bytes = unsafe { raw.payload.bytes };
            return bytes.get(..raw.aux as usize).map(<[u8]>::to_vec);
        }
        // SAFETY: the tag says that it points to an array of bytes.
        index::BYTE_ARRAY => unsafe { raw.payload.ptr.cast::<ByteArray>() },
        // SAFETY: the tag says that it is an object with an array of bytes behind its header.
        index::STR | index::BYTES => unsafe {
            raw.payload
                .ptr
                .byte_add(size_of::<Header>())
                .cast::<ByteArray>()
        },
        _ => return None,
    };
    // SAFETY: as above; it lives while the value does.
    Some(unsafe { (*array).as_slice() }.to_vec())
}
