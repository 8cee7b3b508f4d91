//! Arguments, places and results of the C functions of tvm-ffi.

use super::c_callbacks::*;
use super::no_result::NoResult;
use super::probe::Alive;
use super::records;
use crate::conformance::runtime::RawHandle;
use crate::conformance::runtime::c_call::CParameter;
use crate::conformance::runtime::case_numbers::number_of;
use crate::conformance::runtime::ffi::api::{FfiApi, FfiCallback};
use crate::conformance::runtime::ffi::owned::{OwnedValue, int_arg};
use crate::conformance::runtime::ffi::{NUMBERS, Reply, c_text, unsupported};
use crate::tensor::Dtype;
use crate::value::dlpack::{DLManagedTensor, DLManagedTensorVersioned, DLTensor};
use crate::value::types::{FieldInfo, MethodInfo};
use crate::value::{AnyPayload, ByteArray, Header, RawAny, index};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::{Value, json};
use std::any::Any;
use std::cell::UnsafeCell;
use std::ffi::{CString, c_char, c_int, c_void};
use std::ptr::{null, null_mut};

/// One call of a C function: the argument forms that are not used yet, and everything that must live until the call returns.
pub(super) struct CFrame<'a> {
    pub(super) api: &'static FfiApi,
    forms: std::slice::Iter<'a, Value>,
    value_of: &'a dyn Fn(&Value) -> Result<OwnedValue, Reply>,
    alive: &'a Alive,
    /// Objects of the arguments, held until the call returns.
    pub(super) held: Vec<OwnedValue>,
    /// Texts and cells of the arguments, kept until the call returns.
    kept: Vec<Box<dyn Any>>,
    /// Place that the function writes its result to. A C function of this interface has at most one output argument.
    pub(super) place: Box<UnsafeCell<RawAny>>,
    pub(super) before: RawAny,
    pub(super) show: fn(&CFrame<'_>) -> Result<OwnedValue, NoResult>,
}

impl<'a> CFrame<'a> {
    pub(super) fn new(
        api: &'static FfiApi,
        forms: &'a [Value],
        value_of: &'a dyn Fn(&Value) -> Result<OwnedValue, Reply>,
        alive: &'a Alive,
    ) -> CFrame<'a> {
        // Not an object, and not a number that any of the functions writes. So a place that still has this value was not written.
        let before = int_arg(0x5EED);
        CFrame {
            api,
            forms: forms.iter(),
            value_of,
            alive,
            held: Vec::new(),
            kept: Vec::new(),
            place: Box::new(UnsafeCell::new(before)),
            before,
            show: |frame| Ok(frame.value(RawAny::NONE)),
        }
    }

    /// Returns the next form, or null if the case states no more forms.
    fn next(&mut self) -> &'a Value {
        self.forms.next().unwrap_or(&Value::Null)
    }

    /// Makes the value of a form and holds it until the call is over.
    fn held(&mut self, form: &Value) -> Result<RawAny, Reply> {
        let value = (self.value_of)(form)?;
        let raw = value.raw;
        self.held.push(value);
        Ok(raw)
    }

    /// Keeps the target of an argument alive until the call is over, and returns its address.
    fn keep<T: 'static>(&mut self, kept: T) -> *const T {
        let kept = Box::new(kept);
        let address = &raw const *kept;
        self.kept.push(kept);
        address
    }

    /// Returns a C string for a text form, and null for any other form.
    fn text(&mut self, form: &Value) -> *const c_char {
        form.as_str().map_or(null(), |text| {
            let text: *const CString = self.keep(c_text(text));
            // SAFETY: the frame keeps the string until the call is over.
            unsafe { &*text }.as_ptr()
        })
    }

    /// Returns the text of a member, empty if the member is absent.
    fn bytes(&mut self, form: &Value, member: &str) -> ByteArray {
        let text = form.get(member).and_then(Value::as_str);
        let text: *const String = self.keep(text.unwrap_or_default().to_owned());
        // SAFETY: the frame keeps it.
        ByteArray::of(unsafe { &*text }.as_bytes())
    }

    /// Returns the output place, and sets the function that shows its content after a success.
    fn output_place<T>(&mut self, show: fn(&CFrame<'_>) -> Result<OwnedValue, NoResult>) -> *mut T {
        self.show = show;
        self.place.get().cast()
    }

    /// Returns the value that the function has written.
    pub(super) fn output_value<T: Copy>(&self) -> T {
        const { assert!(size_of::<T>() <= size_of::<RawAny>()) };
        // SAFETY: all bytes of the place are initialized, and `T` is the type that the function writes.
        unsafe { *self.place.get().cast::<T>() }
    }

    pub(super) fn value(&self, raw: RawAny) -> OwnedValue {
        OwnedValue { api: self.api, raw }
    }

    /// Takes ownership of a handle. Null becomes None.
    fn object(&self, handle: RawHandle) -> OwnedValue {
        if handle.is_null() {
            return self.value(RawAny::NONE);
        }
        // SAFETY: an object begins with a header.
        let type_index = unsafe { (*handle.cast::<Header>()).type_index };
        self.value(RawAny::of(type_index, AnyPayload { ptr: handle }))
    }

    /// Shows a tensor of DLPack: its description, and how many references to its source it holds.
    fn exported(&self, tensor: &DLTensor) -> Value {
        let rank = usize::try_from(tensor.ndim).unwrap_or(0);
        let numbers = |address: *const i64| match (address.is_null(), rank) {
            (true, _) => Value::Null,
            (false, 0) => json!([]),
            // SAFETY: a tensor has one number for each dimension.
            (false, _) => json!(unsafe { std::slice::from_raw_parts(address, rank) }),
        };
        let references = self.held.first().and_then(records::strong);
        json!({
            "shape": numbers(tensor.shape),
            "strides": numbers(tensor.strides),
            "dtype": [tensor.dtype.code, u16::from(tensor.dtype.bits), tensor.dtype.lanes],
            "device": [tensor.device.kind, tensor.device.id],
            "byte_offset": tensor.byte_offset,
            // The step and the argument hold one reference each, which do not belong to the tensor.
            "references": references.map(|count| i64::from(count) - 2),
        })
    }
}

/// Declares parameter types. Each value is made from the next form.
macro_rules! parameters {
    ($($(#[$doc:meta])* $name:ident($type:ty) = |$frame:ident, $form:ident| $make:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy)]
        #[repr(transparent)]
        pub(super) struct $name($type);

        impl CParameter<CFrame<'_>> for $name {
            fn take($frame: &mut CFrame<'_>) -> Result<Self, Reply> {
                let $form = $frame.next();
                Ok($name($make))
            }
        }
    )*};
}

/// Declares types of output places. They take no form.
macro_rules! places {
    ($($(#[$doc:meta])* $name:ident($type:ty) = |$frame:ident| $show:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy)]
        #[repr(transparent)]
        pub(super) struct $name(*mut $type);

        impl CParameter<CFrame<'_>> for $name {
            fn take(frame: &mut CFrame<'_>) -> Result<Self, Reply> {
                Ok($name(frame.output_place(|$frame| $show)))
            }
        }
    )*};
}

impl CParameter<CFrame<'_>> for i32 {
    fn take(frame: &mut CFrame<'_>) -> Result<Self, Reply> {
        Ok(number_of(frame.next())?)
    }
}

parameters! {
    /// An object, or null.
    HandleArgument(RawHandle) = |frame, form| match form {
        Value::Null => null_mut(),
        form => {
            let raw = frame.held(form)?;
            if raw.type_index < index::OBJECT_BEGIN {
                return Err(unsupported(format!("{form} is no object")));
            }
            // SAFETY: the tag says that the payload is an object.
            unsafe { raw.payload.ptr }
        }
    };
    /// A view of a value.
    ViewArgument(*const RawAny) = |frame, form| {
        let raw = frame.held(form)?;
        frame.keep(raw)
    };
    /// An array of views, or null.
    ViewsArgument(*const RawAny) = |frame, form| match form.as_array() {
        None => null(),
        Some(forms) => {
            let row: Result<Vec<RawAny>, Reply> = forms.iter().map(|form| frame.held(form)).collect();
            let row: *const Vec<RawAny> = frame.keep(row?);
            // SAFETY: the frame keeps the array until the call is over.
            unsafe { &*row }.as_ptr()
        }
    };
    /// A byte array: a text, `{"bytes": ..}`, or null for a null address with length 0.
    BytesArgument(*const ByteArray) = |frame, form| {
        let bytes = match form {
            Value::Null => return Ok(BytesArgument(frame.keep(ByteArray { data: null(), size: 0 }))),
            Value::String(text) => text.clone().into_bytes(),
            form => {
                let bytes = form.get("bytes").and_then(Value::as_str);
                let bytes = bytes.and_then(|text| BASE64_STANDARD.decode(text).ok());
                bytes.ok_or_else(|| unsupported(format!("{form} is no text")))?
            }
        };
        let bytes: *const Vec<u8> = frame.keep(bytes);
        // SAFETY: the frame keeps the bytes until the call is over.
        frame.keep(ByteArray::of(unsafe { &*bytes }))
    };
    /// A C string, or null.
    TextArgument(*const c_char) = |frame, form| frame.text(form);
    /// An array of C strings and nulls, or null.
    TextsArgument(*const *const c_char) = |frame, form| match form.as_array() {
        None => null(),
        Some(forms) => {
            let row: Vec<*const c_char> = forms.iter().map(|form| frame.text(form)).collect();
            let row: *const Vec<*const c_char> = frame.keep(row);
            // SAFETY: the frame keeps the array until the call is over.
            unsafe { &*row }.as_ptr()
        }
    };
    /// A data type as code, bits and lanes.
    DtypeArgument(*const Dtype) = |frame, form| {
        let dtype = Dtype {
            code: number_of(form.get(0))?,
            bits: number_of(form.get(1))?,
            lanes: number_of(form.get(2))?,
        };
        frame.keep(dtype)
    };
    /// The `DLTensor` of a tensor.
    DescriptionArgument(*const DLTensor) = |frame, form| {
        frame.held(form)?;
        let tensor = frame.held.last().and_then(OwnedValue::dltensor);
        std::ptr::from_ref(tensor.ok_or_else(|| unsupported(format!("{form} is no tensor")))?)
    };
    /// An address: a number that is never dereferenced, null, `"alive"` (the context of a counted callback), or a stand-in for a Python
    /// function.
    AddressArgument(RawHandle) = |frame, form| match form.as_str() {
        Some("alive") => {
            frame.alive.count_created();
            Box::into_raw(Box::new(frame.alive.clone())).cast()
        }
        Some("quiet") => report_no_signal as *mut c_void,
        Some("signal") => signal as *mut c_void,
        Some("ensure") => ensure as *mut c_void,
        Some("release") => release as *mut c_void,
        _ if form.is_null() => null_mut(),
        _ => number_of::<usize>(form)? as *mut c_void,
    };
    /// A function that returns its own number.
    CallbackArgument(FfiCallback) = |_frame, form| {
        let number: usize = number_of(form)?;
        *NUMBERS.get(number).ok_or_else(|| unsupported("there are eight numbers"))?
    };
    /// A type index: a number, or the result of an earlier step.
    TypeArgument(i32) = |frame, form| match form.as_i64() {
        Some(_) => number_of(form)?,
        None => i32::try_from(frame.held(form)?.int()).map_err(|_| unsupported("an index has 32 bits"))?,
    };
    /// A field of eight bytes with `name`, `flags`, `default` and `setter`.
    FieldArgument(*const FieldInfo) = |frame, form| {
        let setter = match form.get("setter") {
            // SAFETY: every member of the union is eight plain bytes.
            Some(setter) => unsafe { frame.held(setter)?.payload.ptr },
            None => null_mut(),
        };
        let [name, doc] = ["name", "doc"].map(|member| frame.bytes(form, member));
        let field = FieldInfo {
            name,
            doc,
            metadata: doc,
            flags: form.get("flags").map_or(Ok(0), number_of)?,
            size: 8,
            alignment: 8,
            offset: size_of::<Header>() as i64,
            getter: None,
            setter,
            default: frame.held(form.get("default").unwrap_or(&Value::Null))?,
            static_type_index: -1,
        };
        frame.keep(field)
    };
    /// A method with `name` and `method`.
    MethodArgument(*const MethodInfo) = |frame, form| {
        let [name, doc] = ["name", "doc"].map(|member| frame.bytes(form, member));
        let method = MethodInfo {
            name,
            doc,
            metadata: doc,
            flags: form.get("flags").map_or(Ok(0), number_of)?,
            method: frame.held(form.get("method").unwrap_or(&Value::Null))?,
        };
        frame.keep(method)
    };
    /// The function that is called at the end of a context, or null.
    FinishArgument(Option<unsafe extern "C" fn(RawHandle)>) = |_frame, form| form.as_str().map(|_| finish as unsafe extern "C" fn(RawHandle));
    /// The slot of a handle. One step initializes it and another step ends it.
    OnceArgument(*mut RawHandle) = |_frame, form| {
        static SLOTS: [std::sync::atomic::AtomicPtr<c_void>; 4] = [const { std::sync::atomic::AtomicPtr::new(null_mut()) }; 4];
        let slot: usize = number_of(form)?;
        SLOTS.get(slot).ok_or_else(|| unsupported("there are four handles"))?.as_ptr()
    };
    /// An initializer that returns a code. With code 0 it also makes a handle.
    InitArgument(unsafe extern "C" fn(*mut RawHandle) -> c_int) = |_frame, form| match form.as_str() {
        Some("makes") => makes,
        Some("fails") => fails,
        _ => makes_none,
    };
    /// A function that ends a handle and returns a code.
    EndArgument(unsafe extern "C" fn(RawHandle) -> c_int) = |_frame, form| match form.as_str() {
        Some("fails") => end_fails,
        _ => ends,
    };
    /// A tensor allocator of this suite, which always fails with its own error, or null.
    AllocatorArgument(Option<Allocator>) = |_frame, form| form.as_str().map(|_| allocate_none as Allocator);
    /// An object allocator of this suite, or null.
    CustomAllocatorArgument(*const CustomAllocator) = |_frame, form| form.as_str().map_or(null(), |_| &raw const OWN_ALLOCATOR);
}

places! {
    /// A handle that the caller owns.
    HandlePlace(RawHandle) = |frame| Ok(frame.object(frame.output_value()));
    /// A number.
    NumberPlace(i32) = |frame| Ok(frame.value(int_arg(frame.output_value::<i32>().into())));
    /// An address that is never dereferenced, shown as a number.
    AddressPlace(RawHandle) = |frame| Ok(frame.value(int_arg(frame.output_value::<RawHandle>() as i64)));
    /// A data type.
    DtypePlace(Dtype) = |frame| {
        let dtype: Dtype = frame.output_value();
        Err(NoResult::Shown(json!([dtype.code, u16::from(dtype.bits), dtype.lanes])))
    };
    /// Three numbers of a version.
    VersionPlace([u32; 3]) = |frame| {
        let [major, minor, patch] = frame.output_value::<[u32; 3]>();
        // Some packages report the version number of the next interface (VAL-37). A case cannot know which one, so it only shows whether
        // `patch` is below 1000.
        Err(NoResult::Shown(json!([major, minor, patch < 1000])))
    };
    /// An allocator of tensors.
    AllocatorPlace(Option<Allocator>) = |frame| Err(NoResult::Shown(allocator(frame.output_value())));
    /// A tensor of DLPack, which is deleted after it is shown.
    ManagedPlace(*mut DLManagedTensor) = |frame| {
        let managed = frame.output_value::<*mut DLManagedTensor>();
        // SAFETY: the function has written a tensor that the caller owns.
        let whole = unsafe { &*managed };
        let shown = frame.exported(&whole.dl_tensor);
        if let Some(deleter) = whole.deleter {
            // SAFETY: the deleter is called once, and the tensor is not used afterwards.
            unsafe { deleter(managed) }
        }
        Err(NoResult::Shown(shown))
    };
    /// A tensor of DLPack with a version, which is deleted after it is shown.
    VersionedPlace(*mut DLManagedTensorVersioned) = |frame| {
        let managed = frame.output_value::<*mut DLManagedTensorVersioned>();
        // SAFETY: the function has written a tensor that the caller owns.
        let whole = unsafe { &*managed };
        let mut shown = frame.exported(&whole.dl_tensor);
        shown["version"] = json!(whole.version.major);
        shown["flags"] = json!(whole.flags);
        if let Some(deleter) = whole.deleter {
            // SAFETY: the deleter is called once, and the tensor is not used afterwards.
            unsafe { deleter(managed) }
        }
        Err(NoResult::Shown(shown))
    };
}

/// A cell that the caller owns. An extra form at the end states the content of the cell before the call.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct CellPlace(*mut RawAny);

impl CParameter<CFrame<'_>> for CellPlace {
    fn take(frame: &mut CFrame<'_>) -> Result<Self, Reply> {
        if let Some(form) = frame.forms.next() {
            let raw = frame.held(form)?;
            *frame.place.get_mut() = raw;
            frame.before = raw;
        }
        Ok(CellPlace(frame.output_place(|frame| {
            Ok(frame.value(frame.output_value()))
        })))
    }
}
