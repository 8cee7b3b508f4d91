//! The C interface of tvm-ffi, and the common part of its drivers.

pub(in crate::conformance) mod api;
mod compiled;
pub(in crate::conformance) mod compiler;
pub(in crate::conformance) mod forms;
pub(in crate::conformance) mod owned;
mod releases;
pub(in crate::conformance) mod tensors;
mod types;

use crate::conformance::op::{OpError, data};
use crate::conformance::reply::Rejection;
pub(in crate::conformance) use crate::conformance::reply::Reply;
use crate::lock::lock;
use crate::value::{AnyPayload, RawAny, index};
use api::{FfiApi, FfiCallback};
use owned::{OwnedValue, Raised, text_arg};
use serde_json::Value;
use std::ffi::{CString, c_void};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

/// Creates the reply for a feature that this runtime or this driver lacks.
pub(in crate::conformance) fn unsupported(why: impl Into<String>) -> Reply {
    Reply::Unsupported(why.into())
}

/// Creates an answer that is the whole value.
pub(in crate::conformance) fn accepted(value: Value) -> Result<Reply, Reply> {
    Ok(Reply::Ok {
        value,
        findings: None,
    })
}

/// Creates an answer that is the part of the value named by `view`.
pub(in crate::conformance) fn view_reply(view: &str, value: Value) -> Result<Reply, Reply> {
    Ok(Reply::Shown {
        view: view.to_owned(),
        value,
    })
}

/// Returns the value of a request.
pub(in crate::conformance) fn value_of(args: &Value) -> &Value {
    args.get("value").unwrap_or(&Value::Null)
}

/// Converts a text for a C function; a text that contains a NUL becomes empty.
pub(in crate::conformance) fn c_text(text: &str) -> CString {
    CString::new(text).unwrap_or_default()
}

/// Returns the bytes of a request.
pub(in crate::conformance) fn bytes(args: &Value) -> Result<Vec<u8>, Reply> {
    data(args).map_err(|rejection| match rejection {
        OpError::Unsupported(why) => Reply::Unsupported(why),
        OpError::Rejected(broken) => Reply::ProtocolError(broken.to_string()),
    })
}

/// Returns a prefix that no other system library has.
pub(in crate::conformance) fn fresh_prefix() -> String {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    format!("tvmspec_case_{}_", NUMBER.fetch_add(1, Ordering::Relaxed))
}

/// Locks the state that a process has only once (names of the registry, loaders, custom types), so that one case at a time changes
/// it.
pub(in crate::conformance) fn lock_process_state() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    lock(&ONE)
}

/// Returns an empty module of the runtime, with the functions of the system library with the prefix `prefix`.
pub(in crate::conformance) fn system_library(
    api: &'static FfiApi,
    prefix: &str,
) -> Result<OwnedValue, Raised> {
    api.call_global("ffi.SystemLib", &[text_arg(&c_text(prefix))])
}

/// Functions that return their own number.
pub(in crate::conformance) const NUMBERS: [FfiCallback; 8] = [
    number::<0>,
    number::<1>,
    number::<2>,
    number::<3>,
    number::<4>,
    number::<5>,
    number::<6>,
    number::<7>,
];

/// Returns `N`. Each number has a separate function, so that its address shows which one a runtime found.
unsafe extern "C" fn number<const N: i64>(
    _: *mut c_void,
    _: *const RawAny,
    _: i32,
    out: *mut RawAny,
) -> i32 {
    // SAFETY: an out pointer for the result.
    unsafe { out.write(RawAny::of(index::INT, AnyPayload { int: N })) };
    0
}

impl From<Raised> for Reply {
    fn from(raised: Raised) -> Reply {
        // A function that the runtime lacks is not a wrong answer.
        if raised.kind == "Missing" {
            return Reply::Unsupported(raised.message);
        }
        Reply::Reject(match raised.broken {
            Some(broken) => Rejection::from(broken),
            None => Rejection {
                message: raised.to_string(),
                ..Rejection::default()
            },
        })
    }
}
