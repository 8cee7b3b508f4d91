//! Exports from C, declared in `include/tvmspec.h`. Available with the feature `target`.
//!
//! Texts are freed with [`tvmspec_free`](super::extras::tvmspec_free).

use super::call_result::{CHook, CallFailure, answer, invalid, text_of, to_c};
use crate::blob::pack::{self, LinkJob, export_job};
use std::ffi::{CString, c_char, c_int, c_void};
use std::io;
use std::path::Path;

/// A callback that runs a compiler: writes `output` from `input_count` files with `option_count` arguments, and returns 0.
pub type CompileLibrary = unsafe extern "C" fn(
    context: *mut c_void,
    output: *const c_char,
    inputs: *const *const c_char,
    input_count: usize,
    options: *const *const c_char,
    option_count: usize,
) -> c_int;

/// Runs the export that `job` describes, as JSON: see [`export_job`]. After a failure an older output is unchanged. If `compile` is given,
/// it is called instead of the system's compiler, for any extension of the output.
///
/// # Safety
///
/// `job` is null or a C string, `text` is null or a place for a text. `compile` may be called with `context` once before this returns.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tvmspec_export(
    job: *const c_char,
    compile: Option<CompileLibrary>,
    context: *mut c_void,
    text: *mut *mut c_char,
) -> c_int {
    // SAFETY: null or a C string, by this contract.
    let job = unsafe { text_of(job) };
    let exported = || {
        let job = serde_json::from_str(&job).map_err(invalid)?;
        let hook = compile.map(|call| CHook { call, context });
        let hook = hook.map(|hook| {
            // SAFETY: it may be called once before this returns, by this contract.
            move |job: &LinkJob<'_>| unsafe { hook.compile(job) }
        });
        let hook = hook.as_ref().map(|hook| hook as pack::LinkHook<'_>);
        export_job(&job, hook).map_err(CallFailure::Other)?;
        Ok(String::new())
    };
    // SAFETY: null or a place for a text, by this contract.
    unsafe { answer(text, exported) }
}

/// Writes the file at `input` to `output`, with library binary number `index` replaced by the `length` bytes at `blob`, which include its
/// header (BLOB-75). Host code stays unchanged, byte for byte. Both paths may be the same file.
///
/// # Safety
///
/// `input` and `output` are null or C strings. `blob` is null or `length` bytes that are not written during the call. `text` is null or a
/// place for a text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tvmspec_replace(
    input: *const c_char,
    index: usize,
    blob: *const c_void,
    length: usize,
    output: *const c_char,
    text: *mut *mut c_char,
) -> c_int {
    // SAFETY: null or a C string, by this contract.
    let input = unsafe { text_of(input) };
    // SAFETY: null or a C string, by this contract.
    let output = unsafe { text_of(output) };
    let blob = match length {
        0 => &[],
        _ if blob.is_null() || isize::try_from(length).is_err() => &[],
        // SAFETY: not null, so `length` bytes that are not written during the call, by this contract.
        _ => unsafe { std::slice::from_raw_parts(blob.cast::<u8>(), length) },
    };
    let replaced = || {
        let file = std::fs::read(&input).map_err(CallFailure::Other)?;
        let made = pack::replace(&file, index, blob)?;
        pack::write_whole(Path::new(&output), &made).map_err(CallFailure::Other)?;
        Ok(String::new())
    };
    // SAFETY: null or a place for a text, by this contract.
    unsafe { answer(text, replaced) }
}

impl CHook<CompileLibrary> {
    /// Calls the compiler of the caller.
    ///
    /// # Safety
    ///
    /// The callback may be called now, by the contract of [`tvmspec_export`].
    unsafe fn compile(self, job: &LinkJob<'_>) -> io::Result<()> {
        let path = |path: &Path| to_c(&path.to_string_lossy());
        let output = path(job.output);
        let inputs: Vec<CString> = job.inputs.iter().map(|input| path(input)).collect();
        let options: Vec<CString> = job
            .options
            .iter()
            .map(|option| path(Path::new(option)))
            .collect();
        // Addresses of the texts, which outlive the call.
        let input_texts: Vec<*const c_char> = inputs.iter().map(|text| text.as_ptr()).collect();
        let option_texts: Vec<*const c_char> = options.iter().map(|text| text.as_ptr()).collect();
        // SAFETY: it may be called now, by this contract; the strings are C strings, and their numbers are right.
        let code = unsafe {
            (self.call)(
                self.context,
                output.as_ptr(),
                input_texts.as_ptr(),
                input_texts.len(),
                option_texts.as_ptr(),
                option_texts.len(),
            )
        };
        match code {
            0 => Ok(()),
            code => Err(io::Error::other(format!(
                "the compiler of the caller returns {code}"
            ))),
        }
    }
}
