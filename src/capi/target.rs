//! Targets from C, declared in `include/tvmspec.h`. Available with the feature `target`.
//!
//! Input and output are JSON, in the forms of the chapters. Texts are freed with [`tvmspec_free`](super::extras::tvmspec_free).

use super::call_result::{CHook, CallFailure, answer, invalid, text_of, to_c};
use crate::device::Device;
use crate::release::{ParseError, Release};
use crate::rule::{Kind, Violation};
use crate::target::{
    TGT_15, Target, TargetAccount, TargetConfig, TargetKind, device_target, register_kind,
    register_tag, registered_targets,
};
use serde_json::{Value, json};
use std::ffi::{c_char, c_int, c_void};

/// The parser of a target kind. It gets the members of the target as JSON, and stores the new members in `*answer`, or null to keep them.
/// Any return value except 0 rejects the target, and `*answer` contains the reason.
pub type ParseTarget = unsafe extern "C" fn(
    context: *mut c_void,
    config: *const c_char,
    answer: *mut *const c_char,
) -> c_int;

/// Registers a target kind for this process, in the form of TGT-15, with a parser unless it is null.
///
/// Returns 0, or 1 if the form breaks a rule, with the message in `*text`.
///
/// # Safety
///
/// `form` is null or a C string, `text` is null or a place for a text. Any thread may call `parse` with `context`, forever and several at
/// once. The text that it stores is a C string until the same thread calls it again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tvmspec_target_register_kind(
    form: *const c_char,
    parse: Option<ParseTarget>,
    context: *mut c_void,
    text: *mut *mut c_char,
) -> c_int {
    // SAFETY: null or a C string, by this contract.
    let form = unsafe { text_of(form) };
    let registered = || {
        // TGT-15: invalid JSON breaks no rule of targets, so the call returns 2 instead of 1.
        let form = serde_json::from_str(&form).map_err(invalid)?;
        let mut kind = TargetKind::from_json(&form)?;
        if let Some(call) = parse {
            let parser = CHook { call, context };
            // SAFETY: the callback keeps the contract of this function.
            kind = kind.parser(move |config, _| unsafe { parser.parse(&config) });
        }
        register_kind(kind);
        Ok(String::new())
    };
    // SAFETY: null or a place for a text, by this contract.
    unsafe { answer(text, registered) }
}

/// Registers a tag for this process from the JSON object `config` (TGT-71). Returns its target in `release` like [`tvmspec_target_read`],
/// without `releases`.
///
/// # Safety
///
/// `release`, `name` and `config` are null or C strings, `text` is null or a place for a text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tvmspec_target_register_tag(
    release: *const c_char,
    name: *const c_char,
    config: *const c_char,
    replace: c_int,
    text: *mut *mut c_char,
) -> c_int {
    // SAFETY: null or a C string, by this contract.
    let release = unsafe { text_of(release) };
    // SAFETY: null or a C string, by this contract.
    let name = unsafe { text_of(name) };
    // SAFETY: null or a C string, by this contract.
    let config = unsafe { text_of(config) };
    let registered = || {
        let config: TargetConfig = serde_json::from_str(&config).map_err(invalid)?;
        let target = register_tag(parsed(&release)?, &name, config, replace != 0)?;
        Ok(target.to_json().to_string())
    };
    // SAFETY: null or a place for a text, by this contract.
    unsafe { answer(text, registered) }
}

/// Reads the target that `named` names in `release`, and returns it normalised: `{"release", "target", "device_type", "text", "releases"}`.
/// `target` is its export (TGT-60), and `releases` is the interpretation of each release ([`TargetAccount`]). Kinds and tags of this
/// process are known. A target with `from_device` queries the devices of this machine (TGT-58).
///
/// # Safety
///
/// `release` and `named` are null or C strings, `text` is null or a place for a text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tvmspec_target_read(
    release: *const c_char,
    named: *const c_char,
    text: *mut *mut c_char,
) -> c_int {
    // SAFETY: null or a C string, by this contract.
    let release = unsafe { text_of(release) };
    // SAFETY: null or a C string, by this contract.
    let named = unsafe { text_of(named) };
    let read = || {
        // TGT-58: drivers are loaded only if the target asks for a device. If the word occurs elsewhere in the text, the only cost is the
        // loading.
        let asks_devices = named.contains("from_device");
        form(&release, |release| {
            registered_targets(release, asks_devices).read(&named)
        })
    };
    // SAFETY: null or a place for a text, by this contract.
    unsafe { answer(text, read) }
}

/// Returns the target of a device of this machine, such as `opencl:0` (TGT-59), like [`tvmspec_target_read`].
///
/// # Safety
///
/// `release` and `device` are null or C strings, `text` is null or a place for a text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tvmspec_target_from_device(
    release: *const c_char,
    device: *const c_char,
    text: *mut *mut c_char,
) -> c_int {
    // SAFETY: null or a C string, by this contract.
    let release = unsafe { text_of(release) };
    // SAFETY: null or a C string, by this contract.
    let device = unsafe { text_of(device) };
    let detected = || {
        let on =
            Device::parse(&device).ok_or_else(|| invalid(format!("{device} is not a device")))?;
        form(&release, |release| {
            // TGT-59: the device is queried here, so the targets need no access to the machine.
            device_target(&registered_targets(release, false), on)
        })
    };
    // SAFETY: null or a place for a text, by this contract.
    unsafe { answer(text, detected) }
}

fn parsed(release: &str) -> Result<Release, CallFailure> {
    release.parse().map_err(|why: ParseError| invalid(why))
}

/// Returns the form of [`tvmspec_target_read`], by calling `read` for the requested release and for each release.
fn form(
    release: &str,
    read: impl Fn(Release) -> Result<Target, Violation>,
) -> Result<String, CallFailure> {
    let release = parsed(release)?;
    let mut form = read(release)?.to_json();
    form["releases"] = json!(TargetAccount::of(read));
    Ok(form.to_string())
}

impl CHook<ParseTarget> {
    /// Calls the parser.
    ///
    /// # Safety
    ///
    /// The callback follows the contract of [`tvmspec_target_register_kind`].
    unsafe fn parse(self, config: &TargetConfig) -> Result<TargetConfig, Violation> {
        let text = to_c(&Value::Object(config.clone()).to_string());
        let mut left = std::ptr::null();
        // SAFETY: this thread may call it, by this contract, with a C string and a place.
        let code = unsafe { (self.call)(self.context, text.as_ptr(), &raw mut left) };
        // SAFETY: the callback stores null or a C string, by this contract.
        let left = unsafe { text_of(left) };
        match code {
            // A parser that stores null or an empty text keeps the members.
            0 if left.is_empty() => Ok(config.clone()),
            0 => serde_json::from_str(&left).map_err(|why| {
                TGT_15.rejected(
                    Kind::Malformed,
                    format!("a parser of C returns no object: {why}"),
                )
            }),
            _ => Err(TGT_15.rejected(Kind::Malformed, left)),
        }
    }
}
