//! Results: their type codes, and the texts that stay on the thread after a call (FUN-13, FUN-16, FUN-24).

use super::SPOKEN;
use super::arguments::{argument, view};
use crate::function::{Function, Result, registry};
use crate::rule::Kind;
use crate::tensor::Dtype;
use crate::value::Extension;
use crate::value::header::Header;
use crate::value::legacy::{TVMValue, argument_of, code};
use crate::value::{Any, AnyView, ByteArray, VAL_19, bytes_bytes, custom_name, index};
use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int};

thread_local! {
    /// The memory of the last results of this thread.
    static RESULTS: RefCell<ThreadResults> = RefCell::new(ThreadResults::default());
}

/// Calls `function`. Text, bytes and data types in the result are valid until the next call on this thread that returns one (FUN-16). Any
/// other handle has a reference, which the caller owns.
pub(crate) fn call(function: &Function, args: &[AnyView<'_>]) -> Result<(TVMValue, c_int)> {
    let returned = function.call_packed(args)?;
    let returned = match returned.type_index() {
        // The name of a custom type comes from a registered function, which may call this function.
        index::DATA_TYPE => Any::from(dtype_text(returned.as_raw().dtype())?),
        _ => returned,
    };
    // The previous text is dropped outside the borrow for the same reason: it may be an object of another library.
    let mut ended = Any::none();
    RESULTS.with_borrow_mut(|results| results.pass(returned, &mut ended))
}

/// Returns the names of all global functions as C strings, valid until the next listing on this thread (FUN-24). A name with a NUL inside
/// is left out, because it has no C string.
pub(crate) fn global_names() -> (usize, *const *const c_char) {
    let names = registry::names()
        .into_iter()
        .filter_map(|name| CString::new(name).ok())
        .collect();
    RESULTS.with_borrow_mut(|results| {
        results.names = names;
        results.pointers = results.names.iter().map(|name| name.as_ptr()).collect();
        (results.pointers.len(), results.pointers.as_ptr())
    })
}

/// The memory of results. This convention has no owner for text and bytes, so the thread keeps them.
struct ThreadResults {
    /// The last borrowed text or bytes (FUN-16).
    result: Any,
    /// The bytes at a stable address.
    bytes: Box<[u8]>,
    /// The byte array whose address is the result.
    array: ByteArray,
    /// The last listing of names (FUN-24).
    names: Vec<CString>,
    /// The array of the listing for the caller.
    pointers: Vec<*const c_char>,
}

impl Default for ThreadResults {
    fn default() -> ThreadResults {
        ThreadResults {
            result: Any::none(),
            bytes: Box::default(),
            array: ByteArray::EMPTY,
            names: Vec::new(),
            pointers: Vec::new(),
        }
    }
}

impl ThreadResults {
    /// Returns a result for a caller of this convention, with bytes as a byte array. Moves the old content of the thread to `ended`.
    fn pass(&mut self, returned: Any, ended: &mut Any) -> Result<(TVMValue, c_int)> {
        match returned.type_index() {
            index::SMALL_BYTES | index::BYTES => {
                *ended = std::mem::replace(&mut self.result, returned);
                let view = self.result.view();
                // A copy: short bytes are in the cell itself, but a C reader needs an address.
                self.bytes = bytes_bytes(&view).unwrap_or_default().into();
                self.array = ByteArray::of(&self.bytes);
                let v_handle = (&raw mut self.array).cast();
                Ok((TVMValue { v_handle }, code::BYTES))
            }
            index::SMALL_STR | index::STR => {
                *ended = std::mem::take(&mut self.result);
                pass_result(returned, &mut self.result)
            }
            // Stores nothing, so the old content stays readable (FUN-16).
            _ => pass_result(returned, ended),
        }
    }
}

/// Returns a data type in the spelling of releases with this interface: bool is one bit of `uint`, not a separate type.
fn dtype_text(Dtype { code, bits, lanes }: Dtype) -> Result<String> {
    if code < Dtype::CUSTOM {
        return Ok(Dtype { code, bits, lanes }.text(SPOKEN)?);
    }
    // VAL-21: up to 0.20 the bits follow the name in brackets. From 0.21 on they are omitted.
    let plain = Dtype {
        code: Dtype::INT,
        bits,
        lanes,
    };
    let plain = plain.text(SPOKEN)?;
    let bits = plain.trim_start_matches("int");
    Ok(format!("custom[{}]{bits}", custom_name(code)?))
}

/// Converts a result of the old convention and takes over its reference.
///
/// # Safety
///
/// As for [`view`]. A handle has one reference, which moves into the result. A string is copied.
pub(crate) unsafe fn take_result(value: TVMValue, code: c_int) -> Result<Any> {
    // VAL-22: handled before the view, which would copy the handle. This handle came with the result and must be destroyed once.
    // SAFETY: any member may be read as an address, because all eight bytes are written.
    let handle = unsafe { value.v_handle };
    // SAFETY: a handle of the type of `code`, which moves into the result (VAL-22).
    if let Some(extension) = unsafe { Extension::adopt(code, handle) } {
        return Ok(extension.into());
    }
    // SAFETY: `value` matches `code`; its target lives until the end of this function.
    let view = unsafe { view(value, code) }?;
    if !matches!(
        code,
        code::OBJECT | code::MODULE | code::FUNCTION | code::NDARRAY
    ) {
        return Ok(view.to_any());
    }
    // SAFETY: a handle has one reference, which moves into the result; null is None.
    Ok(unsafe { Any::from_raw(*view.as_raw()) })
}

/// Converts a result for a caller of the old convention. Strings and bytes are stored in `keep`, which the caller keeps until the next call
/// on this thread.
pub(crate) fn pass_result(result: Any, keep: &mut Any) -> Result<(TVMValue, c_int)> {
    let result = match Extension::from_any(result) {
        Ok(extension) => {
            let (v_handle, code) = extension.into_handle();
            return Ok((TVMValue { v_handle }, code));
        }
        Err(result) => result,
    };
    let raw = *result.as_raw();
    let code = match raw.type_index {
        index::FUNCTION => code::FUNCTION,
        index::MODULE => code::MODULE,
        index::TENSOR => {
            // A tensor's handle is the address of its description, after the header.
            // FUN-16: it carries the reference, which the caller frees.
            let handle = result
                .into_raw()
                .ptr()
                .cast::<u8>()
                .wrapping_add(size_of::<Header>());
            return Ok((
                TVMValue {
                    v_handle: handle.cast(),
                },
                code::NDARRAY,
            ));
        }
        index::SMALL_STR | index::STR | index::SMALL_BYTES | index::BYTES => {
            *keep = result;
            return text_result(keep);
        }
        // MOD-03: a handle, which the caller passes on without inspecting it. As a value, an object has no code (VAL-19).
        other if other >= index::OBJECT_BEGIN => code::OBJECT,
        _ => return argument_of(&result.view(), SPOKEN).map_err(Into::into),
    };
    Ok((
        TVMValue {
            v_handle: result.into_raw().ptr(),
        },
        code,
    ))
}

/// Returns the string in `kept` as a C string. Short ones end with a zero in the cell itself. Bytes have no form here (VAL-19).
fn text_result(kept: &Any) -> Result<(TVMValue, c_int)> {
    match kept.type_index() {
        index::SMALL_STR | index::STR => {
            let at = std::ptr::from_ref(kept).cast::<AnyView<'_>>();
            // SAFETY: `Any` and `AnyView` are both transparent over one cell; the view is used while `kept` is borrowed.
            argument(unsafe { &*at })
        }
        _ => Err(VAL_19
            .rejected(
                Kind::Unsupported,
                "bytes as a result have no place to live in before 0.21",
            )
            .into()),
    }
}
