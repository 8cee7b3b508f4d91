//! Results of the C functions of tvm-ffi.

use super::c_arguments::CFrame;
use super::c_callbacks::{Allocator, CustomAllocator, OWN_ALLOCATOR, allocator};
use super::no_result::NoResult;
use crate::conformance::runtime::RawHandle;
use crate::conformance::runtime::c_call::CResult;
use crate::conformance::runtime::ffi::forms::type_key;
use crate::conformance::runtime::ffi::owned::{OwnedValue, int_arg};
use crate::value::types::TypeInfo;
use crate::value::{ByteArray, RawAny, index};
use serde_json::{Value, json};
use std::ffi::{c_int, c_void};

/// Declares result types, and how a step shows a value of each.
macro_rules! results {
    ($($(#[$doc:meta])* $name:ident($type:ty) = |$frame:ident, $own:ident| $show:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy)]
        #[repr(transparent)]
        pub(super) struct $name($type);

        impl CResult<CFrame<'_>> for $name {
            type Answer = Result<OwnedValue, NoResult>;

            fn into_answer(self, $frame: &mut CFrame<'_>) -> Self::Answer {
                let $own = self.0;
                $show
            }
        }
    )*};
}

impl CResult<CFrame<'_>> for () {
    type Answer = Result<OwnedValue, NoResult>;

    fn into_answer(self, frame: &mut CFrame<'_>) -> Self::Answer {
        (frame.show)(frame)
    }
}

results! {
    /// The code of a function: 0, or a failure whose error is in the error slot.
    CodeResult(c_int) = |frame, code| {
        if code == 0 {
            return (frame.show)(frame);
        }
        let after: RawAny = frame.output_value();
        let kind = frame.api.take_raised().and_then(|error| error.error_texts()).map(|[kind, ..]| kind);
        let mut shown = json!({"code": code, "raises": kind});
        if (after.type_index, after.bits()) != (frame.before.type_index, frame.before.bits()) {
            shown["wrote"] = true.into();
        }
        Err(NoResult::Shown(shown))
    };
    /// A type index, or the error that was raised instead.
    IndexResult(i32) = |frame, number| match frame.api.take_raised().and_then(|error| error.error_texts()) {
        Some([kind, ..]) => Err(NoResult::Shown(json!({"code": number, "raises": kind}))),
        None => Ok(frame.value(int_arg(number.into()))),
    };
    /// An address that is never dereferenced, shown as a number.
    AddressResult(RawHandle) = |frame, address| Ok(frame.value(int_arg(address as i64)));
    /// A pointer that may be null. The step shows whether it is not null.
    PresenceResult(*const c_void) = |_frame, address| Err(NoResult::Shown(json!(!address.is_null())));
    /// The description of a type, shown as its key.
    TypeResult(*const TypeInfo) = |frame, info| {
        // SAFETY: the description is valid until the process ends (VAL-31).
        let type_index = unsafe { (*info).type_index };
        Err(NoResult::Shown(json!(type_key(frame.api, type_index))))
    };
    /// A text, of which the first line is shown.
    LineResult(*const ByteArray) = |_frame, text| {
        // SAFETY: the text is valid until the next call on this thread (FUN-37).
        let text = unsafe { &*text };
        // SAFETY: the bytes are valid as long as the text itself.
        let text = unsafe { text.as_slice() };
        let text = String::from_utf8_lossy(text);
        Err(NoResult::Shown(json!(text.lines().next().unwrap_or_default())))
    };
    /// An allocator of tensors.
    AllocatorResult(Option<Allocator>) = |_frame, own| Err(NoResult::Shown(allocator(own)));
    /// An object allocator. The step shows whether memory from it is aligned.
    CustomAllocatorResult(*const CustomAllocator) = |_frame, own| {
        if own.is_null() {
            return Err(NoResult::Shown(Value::Null));
        }
        if std::ptr::eq(own, &raw const OWN_ALLOCATOR) {
            return Err(NoResult::Shown(json!("own")));
        }
        // SAFETY: an allocator of the runtime is valid until the process ends (VAL-39).
        let CustomAllocator { allocate, context } = unsafe { *own };
        // SAFETY: the arguments are a size, an alignment, the index of a type, and the allocator's own context.
        let memory = unsafe { allocate(40, 16, index::OBJECT, context) };
        let aligned = !memory.is_null() && memory.addr() % 16 == 0;
        if aligned {
            let header = memory.cast::<Option<unsafe extern "C" fn(RawHandle)>>().wrapping_sub(1);
            // SAFETY: the header lies in the eight bytes before the memory (VAL-39).
            let delete = unsafe { header.read() };
            if let Some(delete) = delete {
                // SAFETY: the memory is not used.
                unsafe { delete(memory) }
            }
        }
        Err(NoResult::Shown(json!({"aligned": aligned})))
    };
}
