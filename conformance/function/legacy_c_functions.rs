//! The C functions of 0.2 to 0.20 that a step of `function.legacy` can call, with their signatures.

use crate::conformance::runtime::c_call::{CParameter, CResult, c_functions};
use crate::conformance::runtime::case_numbers::{number_of, numbers_in};
use crate::conformance::runtime::ffi::{Reply, unsupported};
use crate::conformance::runtime::legacy::c_text;
use crate::conformance::runtime::{RawHandle, Runtime};
use crate::tensor::{Device, Dtype};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::{Value, json};
use std::any::Any;
use std::cell::UnsafeCell;
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::ptr::{null, null_mut};

c_functions! { LegacyFrame<'_>, CAnswer:
    "TVMAPISetLastError": unsafe extern "C" fn(NameArgument) -> (),
    "TVMArrayAlloc": unsafe extern "C" fn(ExtentsArgument, c_int, c_int, c_int, c_int, c_int, c_int, EarlierPlace) -> LegacyCode,
    "TVMArrayCopyFromBytes": unsafe extern "C" fn(EarlierArgument, MemoryArgument, usize) -> LegacyCode,
    "TVMArrayCopyFromTo": unsafe extern "C" fn(EarlierArgument, EarlierArgument, EarlierArgument) -> LegacyCode,
    "TVMArrayCopyToBytes": unsafe extern "C" fn(EarlierArgument, MemoryArgument, usize) -> LegacyCode,
    "TVMArrayFree": unsafe extern "C" fn(EarlierArgument) -> LegacyCode,
    "TVMArrayFromDLPack": unsafe extern "C" fn(EarlierArgument, EarlierPlace) -> LegacyCode,
    "TVMArrayGetTypeIndex": unsafe extern "C" fn(EarlierArgument, CountPlace) -> LegacyCode,
    "TVMArrayToDLPack": unsafe extern "C" fn(EarlierArgument, EarlierPlace) -> LegacyCode,
    "TVMBackendAllocWorkspace": unsafe extern "C" fn(c_int, c_int, u64, c_int, c_int) -> EarlierResult,
    "TVMBackendFreeWorkspace": unsafe extern "C" fn(c_int, c_int, EarlierArgument) -> LegacyCode,
    "TVMBackendGetFuncFromEnv": unsafe extern "C" fn(EarlierArgument, NameArgument, EarlierPlace) -> LegacyCode,
    "TVMByteArrayFree": unsafe extern "C" fn(EarlierArgument) -> LegacyCode,
    "TVMDLManagedTensorCallDeleter": unsafe extern "C" fn(EarlierArgument) -> (),
    "TVMDeviceAllocDataSpace": unsafe extern "C" fn(Device, usize, usize, Dtype, EarlierPlace) -> LegacyCode,
    "TVMDeviceAllocDataSpaceWithScope":
        unsafe extern "C" fn(Device, c_int, ExtentsArgument, Dtype, NameArgument, EarlierPlace) -> LegacyCode,
    "TVMDeviceCopyDataFromTo": unsafe extern "C" fn(EarlierArgument, EarlierArgument, EarlierArgument) -> LegacyCode,
    "TVMDeviceFreeDataSpace": unsafe extern "C" fn(Device, EarlierArgument) -> LegacyCode,
    "TVMFuncGetGlobal": unsafe extern "C" fn(NameArgument, EarlierPlace) -> LegacyCode,
    "TVMGetLastBacktrace": unsafe extern "C" fn() -> EarlierResult,
    "TVMModFree": unsafe extern "C" fn(EarlierArgument) -> LegacyCode,
    "TVMModGetFunction": unsafe extern "C" fn(EarlierArgument, NameArgument, c_int, EarlierPlace) -> LegacyCode,
    "TVMModImport": unsafe extern "C" fn(EarlierArgument, EarlierArgument) -> LegacyCode,
    "TVMModLoadFromFile": unsafe extern "C" fn(NameArgument, NameArgument, EarlierPlace) -> LegacyCode,
    "TVMObjectDerivedFrom": unsafe extern "C" fn(c_uint, c_uint, CountPlace) -> LegacyCode,
    "TVMObjectFree": unsafe extern "C" fn(EarlierArgument) -> LegacyCode,
    "TVMObjectGetTypeIndex": unsafe extern "C" fn(EarlierArgument, CountPlace) -> LegacyCode,
    "TVMObjectRetain": unsafe extern "C" fn(EarlierArgument) -> LegacyCode,
    "TVMObjectTypeIndex2Key": unsafe extern "C" fn(c_uint, TextPlace) -> LegacyCode,
    "TVMObjectTypeKey2Index": unsafe extern "C" fn(NameArgument, CountPlace) -> LegacyCode,
    "TVMSetStream": unsafe extern "C" fn(c_int, c_int, EarlierArgument) -> LegacyCode,
    "TVMStreamCreate": unsafe extern "C" fn(c_int, c_int, EarlierPlace) -> LegacyCode,
    "TVMStreamFree": unsafe extern "C" fn(c_int, c_int, EarlierArgument) -> LegacyCode,
    "TVMStreamStreamSynchronize": unsafe extern "C" fn(c_int, c_int, EarlierArgument, EarlierArgument) -> LegacyCode,
    "TVMSynchronize": unsafe extern "C" fn(c_int, c_int, EarlierArgument) -> LegacyCode,
}

/// The answer of a step, and the value of `{"of": n}` in a later step.
pub(super) type CAnswer = (Value, usize);

/// Calls the C function `name`. `earlier` holds the results of the earlier steps, and `function` looks up the handles that the script has
/// named.
///
/// A code other than 0 is the answer `{"code": -1}`. Nothing is owned here: a case must free each object that it receives.
pub(super) fn call(
    runtime: &dyn Runtime,
    name: &str,
    forms: &[Value],
    earlier: &[usize],
    function: &dyn Fn(&str) -> Option<RawHandle>,
) -> Result<CAnswer, Reply> {
    let missing = || unsupported(format!("this runtime has no `{name}`"));
    let address = runtime.symbol(name).ok_or_else(missing)?;
    let mut frame = LegacyFrame {
        forms: forms.iter(),
        earlier,
        function,
        kept: Vec::new(),
        place: Box::new(UnsafeCell::new(0)),
        show: |_| (Value::Null, 0),
    };
    // SAFETY: this is the address of the C function of that name. A case passes arguments that the header allows, or null where a rule
    // defines it.
    let answer = unsafe { called(name, address, &mut frame) };
    answer.ok_or_else(|| unsupported(format!("the suite does not call `{name}`")))?
}

/// One call of a C function: the argument forms that are not used yet, and everything that must live until the call returns.
struct LegacyFrame<'a> {
    forms: std::slice::Iter<'a, Value>,
    earlier: &'a [usize],
    function: &'a dyn Fn(&str) -> Option<RawHandle>,
    /// Texts and extents of the arguments.
    kept: Vec<Box<dyn Any>>,
    /// Place that the function writes its result to. A C function of this table has at most one output argument.
    place: Box<UnsafeCell<usize>>,
    show: fn(&LegacyFrame<'_>) -> CAnswer,
}

impl<'a> LegacyFrame<'a> {
    /// Returns the next form, or null if the case states no more forms.
    fn next(&mut self) -> &'a Value {
        self.forms.next().unwrap_or(&Value::Null)
    }

    /// Keeps the target of an argument alive until the call is over, and returns its address.
    fn keep<T: 'static>(&mut self, kept: T) -> *mut T {
        let mut kept = Box::new(kept);
        let address = &raw mut *kept;
        self.kept.push(kept);
        address
    }

    /// Returns the output place, and sets the function that shows its content after a success.
    fn place<T>(&mut self, show: fn(&LegacyFrame<'_>) -> CAnswer) -> *mut T {
        self.show = show;
        self.place.get().cast()
    }

    /// Returns the value that the function has written.
    fn written<T: Copy>(&self) -> T {
        const { assert!(size_of::<T>() <= size_of::<usize>()) };
        // SAFETY: all bytes of the place are initialized, and `T` is the type that the function writes.
        unsafe { *self.place.get().cast::<T>() }
    }
}

macro_rules! numbers {
    ($($type:ty)*) => {$(
        impl CParameter<LegacyFrame<'_>> for $type {
            fn take(frame: &mut LegacyFrame<'_>) -> Result<Self, Reply> {
                Ok(number_of(frame.next())?)
            }
        }
    )*};
}

numbers!(c_int c_uint u64 usize);

impl CParameter<LegacyFrame<'_>> for Device {
    fn take(frame: &mut LegacyFrame<'_>) -> Result<Self, Reply> {
        let form = frame.next();
        Ok(Device {
            kind: number_of(form.get(0))?,
            id: number_of(form.get(1))?,
        })
    }
}

impl CParameter<LegacyFrame<'_>> for Dtype {
    fn take(frame: &mut LegacyFrame<'_>) -> Result<Self, Reply> {
        let form = frame.next();
        Ok(Dtype {
            code: number_of(form.get(0))?,
            bits: number_of(form.get(1))?,
            lanes: number_of(form.get(2))?,
        })
    }
}

/// A result of an earlier step, `{"of": n}`; a named function, `{"function": name}`; or null.
#[derive(Clone, Copy)]
#[repr(transparent)]
struct EarlierArgument(RawHandle);

impl CParameter<LegacyFrame<'_>> for EarlierArgument {
    fn take(frame: &mut LegacyFrame<'_>) -> Result<Self, Reply> {
        let form = frame.next();
        if form.is_null() {
            return Ok(EarlierArgument(null_mut()));
        }
        let missing = || unsupported(format!("{form} is not an earlier result"));
        if let Some(name) = form.get("function").and_then(Value::as_str) {
            return Ok(EarlierArgument((frame.function)(name).ok_or_else(missing)?));
        }
        let at: usize = number_of(form.get("of"))?;
        let word = *frame.earlier.get(at).ok_or_else(missing)?;
        Ok(EarlierArgument(std::ptr::with_exposed_provenance_mut(word)))
    }
}

/// A C string, or null.
#[derive(Clone, Copy)]
#[repr(transparent)]
struct NameArgument(*const c_char);

impl CParameter<LegacyFrame<'_>> for NameArgument {
    fn take(frame: &mut LegacyFrame<'_>) -> Result<Self, Reply> {
        let Some(text) = frame.next().as_str() else {
            return Ok(NameArgument(null()));
        };
        let text: *const CString = frame.keep(c_text(text));
        // SAFETY: the frame keeps the string until the call is over.
        Ok(NameArgument(unsafe { &*text }.as_ptr()))
    }
}

/// An array of extents.
#[derive(Clone, Copy)]
#[repr(transparent)]
struct ExtentsArgument(*const i64);

impl CParameter<LegacyFrame<'_>> for ExtentsArgument {
    fn take(frame: &mut LegacyFrame<'_>) -> Result<Self, Reply> {
        let extents: Vec<i64> = numbers_in(frame.next())?;
        let extents: *const Vec<i64> = frame.keep(extents);
        // SAFETY: the frame keeps the extents until the call is over.
        Ok(ExtentsArgument(unsafe { &*extents }.as_ptr()))
    }
}

/// Memory of the function: bytes in base64 that it reads, or the size of a buffer that it fills and the step shows.
#[derive(Clone, Copy)]
#[repr(transparent)]
struct MemoryArgument(*mut u8);

impl CParameter<LegacyFrame<'_>> for MemoryArgument {
    fn take(frame: &mut LegacyFrame<'_>) -> Result<Self, Reply> {
        let form = frame.next();
        let bytes = match form.as_str() {
            Some(text) => BASE64_STANDARD
                .decode(text)
                .map_err(|wrong| unsupported(wrong.to_string()))?,
            None => {
                frame.show = |frame| {
                    let room = frame
                        .kept
                        .iter()
                        .find_map(|kept| kept.downcast_ref::<Vec<u8>>());
                    let room = room.map(|room| BASE64_STANDARD.encode(room));
                    (json!({"bytes": room}), 0)
                };
                vec![0; number_of(form)?]
            }
        };
        let bytes = frame.keep(bytes);
        // SAFETY: the frame keeps the bytes until the call is over.
        Ok(MemoryArgument(unsafe { &mut *bytes }.as_mut_ptr()))
    }
}

/// A place for a handle. The step shows whether the handle is not null.
#[derive(Clone, Copy)]
#[repr(transparent)]
struct EarlierPlace(*mut RawHandle);

impl CParameter<LegacyFrame<'_>> for EarlierPlace {
    fn take(frame: &mut LegacyFrame<'_>) -> Result<Self, Reply> {
        Ok(EarlierPlace(frame.place(|frame| handle(frame.written()))))
    }
}

fn handle(handle: RawHandle) -> CAnswer {
    (json!(!handle.is_null()), handle.expose_provenance())
}

/// A place for a number.
#[derive(Clone, Copy)]
#[repr(transparent)]
struct CountPlace(*mut c_uint);

impl CParameter<LegacyFrame<'_>> for CountPlace {
    fn take(frame: &mut LegacyFrame<'_>) -> Result<Self, Reply> {
        Ok(CountPlace(frame.place(|frame| {
            let number: c_uint = frame.written();
            (json!(number), 0)
        })))
    }
}

/// A place for a text from the `malloc` of C. It is freed after it is shown.
#[derive(Clone, Copy)]
#[repr(transparent)]
struct TextPlace(*mut *mut c_char);

impl CParameter<LegacyFrame<'_>> for TextPlace {
    fn take(frame: &mut LegacyFrame<'_>) -> Result<Self, Reply> {
        unsafe extern "C" {
            fn free(memory: *mut c_void);
        }
        Ok(TextPlace(frame.place(|frame| {
            let text: *mut c_char = frame.written();
            // SAFETY: the text is a C string that the caller owns.
            let shown = json!(unsafe { CStr::from_ptr(text) }.to_string_lossy());
            // SAFETY: the text is not read after this call.
            unsafe { free(text.cast()) };
            (shown, 0)
        })))
    }
}

/// The code of a function.
#[derive(Clone, Copy)]
#[repr(transparent)]
struct LegacyCode(c_int);

impl CResult<LegacyFrame<'_>> for LegacyCode {
    type Answer = CAnswer;

    fn into_answer(self, frame: &mut LegacyFrame<'_>) -> CAnswer {
        match self.0 {
            0 => (frame.show)(frame),
            code => (json!({"code": code}), 0),
        }
    }
}

impl CResult<LegacyFrame<'_>> for () {
    type Answer = CAnswer;

    fn into_answer(self, frame: &mut LegacyFrame<'_>) -> CAnswer {
        (frame.show)(frame)
    }
}

/// An address.
#[derive(Clone, Copy)]
#[repr(transparent)]
struct EarlierResult(RawHandle);

impl CResult<LegacyFrame<'_>> for EarlierResult {
    type Answer = CAnswer;

    fn into_answer(self, _: &mut LegacyFrame<'_>) -> CAnswer {
        handle(self.0)
    }
}
