//! Steps of `object.script` that read state which no function of the runtime returns: the tag of a result, the first dynamic index,
//! the buffers of backtraces, and the calls of an interpreter.

use super::c_callbacks::LOCK;
use super::no_result::NoResult;
use crate::conformance::runtime::ffi::api::FfiApi;
use crate::conformance::runtime::ffi::owned::{OwnedValue, int_arg};
use crate::conformance::runtime::ffi::{Reply, unsupported};
use crate::conformance::runtime::function_of;
use crate::value::{ByteArray, index};
use serde_json::json;
use std::ffi::{CStr, c_char};

/// `TVMFFIBacktrace`
type Backtrace = unsafe extern "C" fn(*const c_char, i32, *const c_char, i32) -> *const ByteArray;

/// Does the step `word` about `value`.
pub(super) fn look(
    api: &'static FfiApi,
    word: &str,
    value: &OwnedValue,
) -> Result<OwnedValue, NoResult> {
    let number = |number: i32| Ok(api.share(int_arg(number.into())));
    match word {
        // VAL-28
        "tag" => number(value.raw.type_index),
        // VAL-14
        "first_index" => number(first_index(api)?),
        // FUN-37
        "backtraces" => Err(NoResult::Shown(json!(backtraces(api)?))),
        // FUN-39
        _ => Err(NoResult::Shown(json!(LOCK.take().join(", ")))),
    }
}

/// Returns the lowest index from 128 on that a registered type has.
fn first_index(api: &'static FfiApi) -> Result<i32, Reply> {
    // A runtime may begin without types that have one.
    let numbers = [-1, 1, 0, 1, index::OBJECT];
    api.new_type("tvmspec.case.dynamic", numbers)?;
    let keys = api.call_global("ffi.GetRegisteredTypeKeys", &[])?;
    let size = api.call_global("ffi.ArraySize", &[keys.raw])?.raw.int();
    let mut lowest = i32::MAX;
    for at in 0..size {
        let key = api.call_global("ffi.ArrayGetItem", &[keys.raw, int_arg(at)])?;
        let found = key.text().and_then(|key| api.type_index(&key));
        lowest = lowest.min(found.filter(|index| *index >= 128).unwrap_or(i32::MAX));
    }
    Ok(lowest)
}

/// Takes a backtrace on this thread, then one on another thread, and returns the first line of the first one.
fn backtraces(api: &'static FfiApi) -> Result<String, Reply> {
    // SAFETY: the C header declares this type for the name.
    let taken = unsafe { function_of::<Backtrace>(api.runtime, "TVMFFIBacktrace") };
    let taken = taken.ok_or_else(|| unsupported("this runtime has no TVMFFIBacktrace"))?;
    let take = move |file: &CStr, line| {
        // SAFETY: two texts that end with NUL.
        unsafe { taken(file.as_ptr(), line, c"f".as_ptr(), 0) }.expose_provenance()
    };
    let own = take(c"here.c", 1);
    let other = std::thread::spawn(move || take(c"there.c", 2)).join();
    other.map_err(|_| unsupported("the other thread panicked"))?;
    let own = std::ptr::with_exposed_provenance::<ByteArray>(own);
    // SAFETY: valid until the next call of this thread (FUN-37).
    let text = unsafe { &*own };
    // SAFETY: its bytes are valid as long as itself.
    let text = String::from_utf8_lossy(unsafe { text.as_slice() }).into_owned();
    Ok(text.lines().next().unwrap_or_default().to_owned())
}
