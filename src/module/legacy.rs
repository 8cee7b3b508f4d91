//! Calls across the boundary to the convention of 0.2 to 0.20: values of 8 bytes, type codes beside them.
//!
//! Handles of that convention are objects of this crate: a function, module or object handle is the address of the
//! object, a tensor handle the address of the description inside it.

use super::{Module, last_error};
use crate::function::{Error, Function, raised, take_raised};
use crate::release::Release;
use crate::rule;
use crate::value::header::{Header, ObjectRef};
use crate::value::legacy::{TVMValue, argument_of, code, view_of};
use crate::value::{Any, AnyView, ByteArray, Payload, RawAny, VAL_19, bytes_bytes, index};
use std::ffi::{c_int, c_void};

/// A compiled function up to 0.20: values, codes, count, result, result code, resource. Up to 0.6 the last three are missing.
pub(crate) type PackedC = unsafe extern "C-unwind" fn(
    args: *const TVMValue,
    codes: *const c_int,
    count: c_int,
    result: *mut TVMValue,
    result_code: *mut c_int,
    resource: *mut c_void,
) -> c_int;

/// The release whose codes are produced: the last one that had them.
pub(crate) const SPOKEN: Release = Release::of(20);

/// Zeroed values behind the arguments: code of a C host does not count them, and reads the ones it expects.
const SLACK: usize = 8;

/// Calls `function` with `args`.
///
/// # Errors
///
/// An argument that the convention cannot express; and what the function left as the failure of this thread.
///
/// # Safety
///
/// `function` must follow the convention.
pub(crate) unsafe fn call(function: PackedC, args: &[AnyView<'_>]) -> Result<Any, Error> {
    let passed = Arguments::of(args)?;
    let mut result = TVMValue::ZERO;
    let mut result_code = code::NULL;
    last_error::take();
    let count =
        c_int::try_from(args.len()).map_err(|_| Error::new("ValueError", "too many arguments"))?;
    // SAFETY: `function` follows the convention; the arrays hold `count` arguments, which live through `args`.
    let returned = unsafe {
        function(
            passed.values.as_ptr(),
            passed.codes.as_ptr(),
            count,
            &raw mut result,
            &raw mut result_code,
            std::ptr::null_mut(),
        )
    };
    if returned != 0 {
        return Err(failure(returned));
    }
    // SAFETY: by the convention the callee wrote the result that its code names, and owns nothing of it any more.
    unsafe { take_result(result, result_code) }
}

/// Arguments as a callee of the old convention expects them. They borrow from what they were made of.
pub(crate) struct Arguments {
    /// The values, with some zeroed ones behind them.
    pub(crate) values: Vec<TVMValue>,
    /// Their codes.
    pub(crate) codes: Vec<c_int>,
    /// Where bytes are.
    _arrays: Vec<ByteArray>,
}

impl Arguments {
    /// # Errors
    ///
    /// An argument that the convention cannot express (VAL-19).
    pub(crate) fn of(args: &[AnyView<'_>]) -> Result<Arguments, Error> {
        let room = args.len() + SLACK;
        let mut values = vec![TVMValue::ZERO; room];
        let mut codes = vec![code::NULL; room];
        let mut arrays: Vec<ByteArray> = Vec::new();
        for (at, arg) in args.iter().enumerate() {
            (values[at], codes[at]) = match bytes_bytes(arg) {
                Some(bytes) => {
                    // Never grows beyond what the first one reserves, so that addresses in it stay.
                    arrays.reserve_exact(args.len() - arrays.len());
                    let array: *mut ByteArray = arrays.as_mut_ptr().wrapping_add(arrays.len());
                    arrays.push(ByteArray {
                        data: bytes.as_ptr().cast(),
                        size: bytes.len(),
                    });
                    let v_handle = array.cast();
                    (TVMValue { v_handle }, code::BYTES)
                }
                None => argument(arg)?,
            };
        }
        Ok(Arguments {
            values,
            codes,
            _arrays: arrays,
        })
    }
}

/// What a function that returned `code` left behind, in either era's place.
pub(crate) fn failure(code: c_int) -> Error {
    // What serves both eras leaves its failure in both places.
    let left = take_raised();
    match last_error::take() {
        Some(text) => error_of(&text),
        None => left.unwrap_or_else(|| match code {
            -2 => raised(code),
            _ => Error::new(
                "RuntimeError",
                format!("a compiled function returned {code} and left no message"),
            ),
        }),
    }
}

/// The error that a text says (FUN-18): `[time] file:line: Check failed: ..: Kind: message`, of which only the message
/// is always there.
fn error_of(text: &str) -> Error {
    let (place, text) = match place_of(text) {
        Some((file, line, rest)) => (Some((file, line)), rest),
        None => (None, text),
    };
    let (check, text) = match checked(text).filter(|_| place.is_some()) {
        Some((check, rest)) => (check, rest),
        None => ("", text),
    };
    let text = text.trim_start_matches(' ');
    let is_kind = |name: &&str| {
        let mut bytes = name.bytes();
        !name.is_empty() && bytes.all(|one| one.is_ascii_alphanumeric() || b"_.".contains(&one))
    };
    let (kind, message) = match text.split_once(':').filter(|(name, _)| is_kind(name)) {
        Some((kind, message)) => (kind, message.trim_start_matches(' ')),
        None => ("TVMError", text),
    };
    let space = if check.is_empty() { "" } else { " " };
    let error = Error::new(kind, format!("{check}{space}{message}"));
    if let Some((file, line)) = place {
        error.update_backtrace(&format!("  File \"{file}\", line {line}\n"), 0);
    }
    error
}

/// File and line that a logged text begins with, and the rest.
fn place_of(text: &str) -> Option<(&str, &str, &str)> {
    let (_, rest) = text.strip_prefix('[')?.split_once(' ')?;
    let (file, rest) = rest.trim_start_matches(' ').split_once(':')?;
    let (line, rest) = rest.split_once(':')?;
    line.parse::<u32>().ok()?;
    Some((file, line, rest.trim_start_matches([' ', ':'])))
}

/// `Check failed: condition:`, and the rest.
fn checked(text: &str) -> Option<(&str, &str)> {
    let start = "Check failed:";
    let end = text.strip_prefix(start)?.find(':')? + start.len() + 1;
    Some(text.split_at(end))
}

/// An argument for a callee of the old convention; borrows from `view`.
pub(crate) fn argument(view: &AnyView<'_>) -> Result<(TVMValue, c_int), Error> {
    let raw = view.as_raw();
    let handle = |code| {
        Ok((
            TVMValue {
                v_handle: raw.ptr(),
            },
            code,
        ))
    };
    match raw.type_index {
        index::FUNCTION => handle(code::FUNCTION),
        index::MODULE => handle(code::MODULE),
        index::SMALL_STR => {
            // The characters of a small string lie in the cell itself and end in NUL there.
            let text = std::ptr::from_ref(raw)
                .cast::<u8>()
                .wrapping_add(std::mem::offset_of!(RawAny, payload));
            Ok((TVMValue { v_str: text.cast() }, code::STR))
        }
        index::TENSOR | index::STR | index::BYTES => argument_of(view, SPOKEN).map_err(Error::from),
        other if other >= index::OBJECT_BEGIN => handle(code::OBJECT),
        _ => argument_of(view, SPOKEN).map_err(Error::from),
    }
}

/// An argument that arrived in the old convention; borrows what it points to.
///
/// # Safety
///
/// `value` is what `code` says, and lives for `'a`; handles are objects of this process.
pub(crate) unsafe fn view<'a>(value: TVMValue, code: c_int) -> Result<AnyView<'a>, Error> {
    // SAFETY: any member may be read as an address: all eight bytes are written.
    let pointer = || unsafe { value.v_handle };
    let object = |pointer: *mut c_void| match pointer.cast::<Header>() {
        object if !object.is_null() => {
            // SAFETY: handles are objects of this process, which live for `'a`.
            let type_index = unsafe { (*object).type_index };
            let raw = RawAny::of(type_index, Payload { ptr: object.cast() });
            // SAFETY: the cell holds an object of this process, which lives for `'a`, under its own type.
            unsafe { AnyView::from_raw(raw) }
        }
        _ => AnyView::none(),
    };
    Ok(match code {
        code::OBJECT | code::MODULE | code::FUNCTION => object(pointer()),
        // The handle of a tensor is its description, which stands behind the header.
        code::NDARRAY if !pointer().is_null() => object(
            pointer()
                .cast::<u8>()
                .wrapping_sub(size_of::<Header>())
                .cast(),
        ),
        code::NDARRAY => AnyView::none(),
        code::RVALUE => {
            // SAFETY: the address of an object slot that the callee may empty; the view lives for `'a`.
            unsafe { AnyView::from_raw(RawAny::of(index::RVALUE_REF, Payload { ptr: pointer() })) }
        }
        // SAFETY: `value` is what `code` says, and lives for `'a`.
        _ => unsafe { view_of(value, code) }.map_err(Error::from)?,
    })
}

/// A result of the old convention, with the reference that it carries.
///
/// # Safety
///
/// As [`view`]; a handle carries one reference, which moves into the result. A string is copied.
pub(crate) unsafe fn take_result(value: TVMValue, code: c_int) -> Result<Any, Error> {
    // SAFETY: `value` is what `code` says; what it names lives until the end of this function.
    let view = unsafe { view(value, code) }?;
    if !matches!(
        code,
        code::OBJECT | code::MODULE | code::FUNCTION | code::NDARRAY
    ) {
        return Ok(view.to_any());
    }
    // SAFETY: a handle carries one reference, which moves into the result; that of nothing is None.
    Ok(unsafe { Any::from_raw(*view.as_raw()) })
}

/// A result for a caller of the old convention. Strings and bytes are left in `keep`, which the caller holds until the
/// next call on this thread.
pub(crate) fn give_result(result: Any, keep: &mut Any) -> Result<(TVMValue, c_int), Error> {
    let raw = *result.as_raw();
    let code = match raw.type_index {
        index::FUNCTION => code::FUNCTION,
        index::MODULE => code::MODULE,
        index::TENSOR => {
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
        other if other >= index::OBJECT_BEGIN => code::OBJECT,
        _ => return argument_of(&result.view(), SPOKEN).map_err(Error::from),
    };
    Ok((
        TVMValue {
            v_handle: result.into_raw().ptr(),
        },
        code,
    ))
}

fn text_result(kept: &Any) -> Result<(TVMValue, c_int), Error> {
    match kept.type_index() {
        index::SMALL_STR | index::STR => {
            let at = std::ptr::from_ref(kept).cast::<AnyView<'_>>();
            // SAFETY: `Any` and `AnyView` are both transparent over one cell; the view is used while `kept` is borrowed.
            argument(unsafe { &*at })
        }
        _ => Err(VAL_19
            .refused(
                rule::Kind::Unsupported,
                "bytes as a result have no place to live in before 0.21",
            )
            .into()),
    }
}

/// The module behind a handle of the old convention.
///
/// # Safety
///
/// `handle` must be null or a live object.
pub(crate) unsafe fn module(handle: *mut c_void) -> Result<Module, Error> {
    // SAFETY: `handle` is null or a live object.
    let object = unsafe { borrowed(handle) }?;
    Module::from_object(object).map_err(|_| Error::new("TypeError", "the handle is no module"))
}

/// The function behind a handle of the old convention.
///
/// # Safety
///
/// As [`module`].
pub(crate) unsafe fn function(handle: *mut c_void) -> Result<Function, Error> {
    // SAFETY: `handle` is null or a live object.
    let object = unsafe { borrowed(handle) }?;
    Function::from_object(object).map_err(|_| Error::new("TypeError", "the handle is no function"))
}

/// # Safety
///
/// As for [`module`].
unsafe fn borrowed(handle: *mut c_void) -> Result<ObjectRef, Error> {
    if handle.is_null() {
        return Err(Error::new("ValueError", "a null handle"));
    }
    // SAFETY: a live object, not null as just seen.
    Ok(unsafe { ObjectRef::retain(handle.cast()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_taken_apart_as_releases_do() {
        // What `TVMGetLastError` of 0.8.0 and 0.19.0 says of callbacks that left these texts.
        for (text, said) in [
            ("plain text", "TVMError: plain text"),
            ("ValueError: with kind", "ValueError: with kind"),
            ("Two words: no kind", "TVMError: Two words: no kind"),
            (
                "[12:00:00] file.cc:7: Check failed: a == b (1 vs. 2) : TypeError: inside",
                "TypeError: Check failed: a == b (1 vs. 2) : inside",
            ),
            (
                "[12:00:00] file.cc:7: InternalError: inside",
                "InternalError: inside",
            ),
            ("", "TVMError: "),
            ("  ValueError:   blanks", "ValueError: blanks"),
            ("first\nsecond", "TVMError: first\nsecond"),
            ("a.b_c9: dotted", "a.b_c9: dotted"),
            (
                "Check failed: (x) is false: y",
                "TVMError: Check failed: (x) is false: y",
            ),
        ] {
            assert_eq!(error_of(text).to_string(), said);
        }
        let error = error_of("[12:00:00] file.cc:7: InternalError: inside");
        assert_eq!(error.backtrace(), "  File \"file.cc\", line 7\n");
        for odd in [
            "[",
            "[x",
            "[x y",
            "[x y:",
            "[x y:z: a",
            "[x :1:",
            ": a",
            ":",
        ] {
            assert!(!error_of(odd).kind().is_empty(), "{odd}");
        }
    }
}
