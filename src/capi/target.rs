//! Targets, code generators and exports from C, declared in `include/tvmspec.h`. There with the feature `target`.
//!
//! What goes in and out is JSON, of the forms that the chapters have. Texts are freed with [`tvmspec_free`](super::extras::tvmspec_free).

use super::extras::{c_text, put_text};
use crate::blob::pack::{self, LinkJob, export_job};
use crate::device::Device;
use crate::payload::Payload;
use crate::release::Release;
use crate::rule::{Kind, Violation};
use crate::target::{
    GeneratedCode, Generators, KernelInfo, LoweredModule, TGT_15, TGT_81, Target, TargetConfig,
    TargetKind, device_target, register_kind, register_tag, registered_targets,
};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ffi::{CString, c_char, c_int, c_void};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{PoisonError, RwLock};

/// The parser of a kind: gets the members of the target as JSON, and leaves those that the target has in `*answer`, or null where they
/// stay. Any other return value than 0 rejects the target, for the reason in `*answer`.
pub type ParseTarget = unsafe extern "C" fn(
    context: *mut c_void,
    config: *const c_char,
    answer: *mut *const c_char,
) -> c_int;

/// A code generator: gets the JSON graph of the module and the exported target, and leaves the code in `*answer`. Any other return value
/// than 0 rejects the module, for the reason in `*answer`.
pub type GenerateCode = unsafe extern "C" fn(
    context: *mut c_void,
    module: *const c_char,
    target: *const c_char,
    answer: *mut *const c_char,
) -> c_int;

/// What calls a compiler: writes `output` of `input_count` files with `option_count` arguments, and returns 0.
pub type CompileLibrary = unsafe extern "C" fn(
    context: *mut c_void,
    output: *const c_char,
    inputs: *const *const c_char,
    input_count: usize,
    options: *const *const c_char,
    option_count: usize,
) -> c_int;

/// A callback of C with its context, which any thread may call.
#[derive(Clone, Copy)]
struct TargetHook<F> {
    call: F,
    context: *mut c_void,
}

// SAFETY: any thread may call it with its context, by the contract of the functions that take one.
unsafe impl<F> Send for TargetHook<F> {}
// SAFETY: several threads may call it at once, by the same contract.
unsafe impl<F> Sync for TargetHook<F> {}

/// Generators of C by the kinds that they are for.
static GENERATORS: RwLock<BTreeMap<String, TargetHook<GenerateCode>>> =
    RwLock::new(BTreeMap::new());

/// Registers a kind of target for this process, of the form of TGT-15, with a parser unless that is null.
///
/// Returns 0, or 1 where the form breaks a rule, with the message in `*text`.
///
/// # Safety
///
/// `form` is null or a C string, `text` null or a place for a text. Any thread may call `parse` with `context`, for ever and several at once; the
/// text that it leaves is a C string until the same thread calls it again.
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
        let form = serde_json::from_str(&form).map_err(invalid)?;
        let mut kind = TargetKind::from_json(&form)?;
        if let Some(call) = parse {
            let parser = TargetHook { call, context };
            // SAFETY: the callback keeps the contract of this function.
            kind = kind.parser(move |config, _| unsafe { parser.parse(&config) });
        }
        register_kind(kind);
        Ok(String::new())
    };
    // SAFETY: null or a place for a text, by this contract.
    unsafe { answer(text, registered) }
}

/// Registers a tag for this process, the object `config` as JSON (TGT-71), and returns its target in `release` as
/// [`tvmspec_target_read`] does.
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
        form(&register_tag(
            parsed(&release)?,
            &name,
            config,
            replace != 0,
        )?)
    };
    // SAFETY: null or a place for a text, by this contract.
    unsafe { answer(text, registered) }
}

/// The target that `named` names in `release`, normalised: `{"release", "target", "device_type", "text"}`, where `target` is its export
/// (TGT-60). Kinds and tags of this process are known. With `from_device` in it the devices of this machine answer (TGT-58).
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
        let targets = registered_targets(parsed(&release)?, named.contains("from_device"));
        form(&targets.read(&named)?)
    };
    // SAFETY: null or a place for a text, by this contract.
    unsafe { answer(text, read) }
}

/// The target of a device of this machine, such as `opencl:0` (TGT-59), as [`tvmspec_target_read`] returns it.
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
        let on = Device::parse(&device).ok_or_else(|| invalid(format!("{device} is no device")))?;
        form(&device_target(
            &registered_targets(parsed(&release)?, false),
            on,
        )?)
    };
    // SAFETY: null or a place for a text, by this contract.
    unsafe { answer(text, detected) }
}

/// Registers a code generator for targets of `kind`, for this process.
///
/// # Safety
///
/// `kind` is null or a C string. Any thread may call `generate` with `context`, for ever and several at once; the text that it leaves is a C
/// string until the same thread calls it again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tvmspec_target_register_generator(
    kind: *const c_char,
    generate: GenerateCode,
    context: *mut c_void,
) -> c_int {
    // SAFETY: null or a C string, by this contract.
    let kind = unsafe { text_of(kind) };
    let generator = TargetHook {
        call: generate,
        context,
    };
    let mut all = GENERATORS.write().unwrap_or_else(PoisonError::into_inner);
    all.insert(kind, generator);
    0
}

/// Compiles a lowered module, the JSON graph that `save_json` of the release writes, for the target that `named` names: by a generator of
/// C, or by one of this library (`c`, `opencl`). The result is held to the contract (TGT-80 to TGT-88).
///
/// `*text` is `{"kind", "functions", "kernels", "payload"}`, and `source` where the code is text.
///
/// # Safety
///
/// `release`, `named` and `module` are null or C strings, `text` is null or a place for a text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tvmspec_target_generate(
    release: *const c_char,
    named: *const c_char,
    module: *const c_char,
    text: *mut *mut c_char,
) -> c_int {
    // SAFETY: null or a C string, by this contract.
    let release = unsafe { text_of(release) };
    // SAFETY: null or a C string, by this contract.
    let named = unsafe { text_of(named) };
    // SAFETY: null or a C string, by this contract.
    let graph = unsafe { text_of(module) };
    let generated = || {
        let target = registered_targets(parsed(&release)?, false).read(&named)?;
        let module = LoweredModule::read(graph.as_bytes())?;
        let mut generators = Generators::new();
        let own = GENERATORS.read().unwrap_or_else(PoisonError::into_inner);
        let own = own.get(&target.kind).copied();
        if let Some(generator) = own {
            let graph = graph.clone();
            let call = move |_: &LoweredModule, target: &Target| {
                // SAFETY: the callback keeps the contract of the function that registered it.
                unsafe { generator.generate(&graph, target) }
            };
            generators.register(&target.kind, Box::new(call));
        }
        let code = generators.generate(&module, &target)?;
        let kernels = code.kernels().iter().map(|kernel| {
            json!({"name": kernel.name, "arg_types": kernel.arg_types, "launch_param_tags": kernel.launch_param_tags})
        });
        Ok(json!({
            "kind": code.payload.kind(),
            "functions": code.symbols,
            "kernels": kernels.collect::<Vec<Value>>(),
            "payload": code.payload.to_json(),
            "source": code.source(),
        })
        .to_string())
    };
    // SAFETY: null or a place for a text, by this contract.
    unsafe { answer(text, generated) }
}

/// Exports what `job` describes, as JSON: see [`export_job`]. A failure leaves an older output as it was. With `compile` that is called in the
/// place of the system's compiler, whatever the extension of the output.
///
/// # Safety
///
/// `job` is null or a C string, `text` null or a place for a text. `compile` may be called with `context` once before this returns.
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
        let hook = compile.map(|call| TargetHook { call, context });
        let hook = hook.map(|hook| {
            // SAFETY: it may be called once before this returns, by this contract.
            move |job: &LinkJob<'_>| unsafe { hook.compile(job) }
        });
        let hook = hook.as_ref().map(|hook| hook as pack::LinkHook<'_>);
        export_job(&job, hook).map_err(Failure::Other)?;
        Ok(String::new())
    };
    // SAFETY: null or a place for a text, by this contract.
    unsafe { answer(text, exported) }
}

/// Writes the file at `input` to `output` with the `length` bytes at `blob`, a library binary with its header, in the place of its library
/// binary number `index` (BLOB-75). Host code stays byte for byte; both may be one file.
///
/// # Safety
///
/// `input` and `output` are null or C strings, `blob` is null or `length` bytes that are not written to during the call, `text` is null or a
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
        // SAFETY: not null, so `length` bytes that are not written to during the call, by this contract.
        _ => unsafe { std::slice::from_raw_parts(blob.cast::<u8>(), length) },
    };
    let replaced = || {
        let file = std::fs::read(&input).map_err(Failure::Other)?;
        let made = pack::replace(&file, index, blob)?;
        pack::write_whole(Path::new(&output), &made).map_err(Failure::Other)?;
        Ok(String::new())
    };
    // SAFETY: null or a place for a text, by this contract.
    unsafe { answer(text, replaced) }
}

/// Why a call fails.
enum Failure {
    /// A rule is broken: 1.
    Broken(Violation),
    /// Anything else: 2.
    Other(io::Error),
}

impl From<Violation> for Failure {
    fn from(broken: Violation) -> Failure {
        Failure::Broken(broken)
    }
}

fn invalid(why: impl ToString) -> Failure {
    Failure::Other(io::Error::new(io::ErrorKind::InvalidInput, why.to_string()))
}

fn parsed(release: &str) -> Result<Release, Failure> {
    release.parse().map_err(|why: String| invalid(why))
}

/// The form of [`tvmspec_target_read`].
fn form(target: &Target) -> Result<String, Failure> {
    let form = json!({
        "release": target.release.to_string(),
        "target": target.export(),
        "device_type": target.device_type,
        "text": target.render().ok(),
    });
    Ok(form.to_string())
}

/// Runs `body` and leaves its text, or its message.
///
/// # Safety
///
/// `text` must be null or a place for a text.
unsafe fn answer(text: *mut *mut c_char, body: impl FnOnce() -> Result<String, Failure>) -> c_int {
    let (code, message) = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(text)) => (0, text),
        Ok(Err(Failure::Broken(broken))) => (1, broken.to_string()),
        Ok(Err(Failure::Other(why))) => (2, why.to_string()),
        Err(_) => (2, "the call panicked".to_owned()),
    };
    // SAFETY: null or a place for a text, by this contract.
    unsafe { put_text(text, message) };
    code
}

/// The text, with what is not UTF-8 replaced; empty where it is null.
///
/// # Safety
///
/// `text` must be null or a C string.
unsafe fn text_of(text: *const c_char) -> String {
    // SAFETY: null or a C string, by this contract.
    unsafe { c_text(text) }.map_or_else(String::new, |text| text.to_string_lossy().into_owned())
}

/// `text` for C: a NUL inside ends it, and JSON has none.
fn to_c(text: &str) -> CString {
    CString::new(text.split('\0').next().unwrap_or_default()).unwrap_or_default()
}

impl TargetHook<ParseTarget> {
    /// # Safety
    ///
    /// The callback follows the contract of [`tvmspec_target_register_kind`].
    unsafe fn parse(self, config: &TargetConfig) -> Result<TargetConfig, Violation> {
        let text = to_c(&Value::Object(config.clone()).to_string());
        let mut left = std::ptr::null();
        // SAFETY: this thread may call it, by this contract, with a C string and a place.
        let code = unsafe { (self.call)(self.context, text.as_ptr(), &raw mut left) };
        // SAFETY: what it leaves is null or a C string, by this contract.
        let left = unsafe { text_of(left) };
        match code {
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

impl TargetHook<GenerateCode> {
    /// # Safety
    ///
    /// The callback follows the contract of [`tvmspec_target_register_generator`].
    unsafe fn generate(self, module: &str, target: &Target) -> Result<GeneratedCode, Violation> {
        let (module, target) = (
            to_c(module),
            to_c(&Value::Object(target.export()).to_string()),
        );
        let mut left = std::ptr::null();
        // SAFETY: this thread may call it, by this contract, with two C strings and a place.
        let code = unsafe {
            (self.call)(
                self.context,
                module.as_ptr(),
                target.as_ptr(),
                &raw mut left,
            )
        };
        // SAFETY: what it leaves is null or a C string, by this contract.
        let left = unsafe { text_of(left) };
        if code != 0 {
            return Err(TGT_81.rejected(Kind::Unsupported, left));
        }
        generated(&left)
    }
}

/// The code that a generator of C describes: `{"kind", "functions", "source" | "data" | "payload", "kernels"}`.
fn generated(text: &str) -> Result<GeneratedCode, Violation> {
    let wrong = |why: &str| TGT_81.rejected(Kind::Malformed, format!("a generator of C: {why}"));
    let form: Value = serde_json::from_str(text).map_err(|why| wrong(&why.to_string()))?;
    let text = |form: &Value, name: &str| form.get(name).and_then(Value::as_str).map(str::to_owned);
    let texts = |form: &Value, name: &str| -> Vec<String> {
        let items = form
            .get(name)
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        items.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let kind = text(&form, "kind").ok_or_else(|| wrong("there is no `kind`"))?;
    let payload = match (
        form.get("payload"),
        text(&form, "source"),
        text(&form, "data"),
    ) {
        (Some(payload), ..) => Payload::from_json(payload)?,
        (None, Some(source), _) => Payload::Opaque {
            kind: kind.into(),
            bytes: source.into_bytes().into(),
        },
        (None, None, Some(data)) => Payload::Opaque {
            kind: kind.into(),
            bytes: BASE64_STANDARD
                .decode(data)
                .map_err(|why| wrong(&why.to_string()))?
                .into(),
        },
        _ => return Err(wrong("there is neither `payload`, `source` nor `data`")),
    };
    let functions = texts(&form, "functions");
    let functions: Vec<&str> = functions.iter().map(String::as_str).collect();
    let code = GeneratedCode::new(&functions, payload);
    let Some(kernels) = form.get("kernels").and_then(Value::as_array) else {
        return Ok(code);
    };
    let kernels = kernels.iter().map(|kernel| KernelInfo {
        name: text(kernel, "name").unwrap_or_default(),
        arg_types: texts(kernel, "arg_types"),
        launch_param_tags: texts(kernel, "launch_param_tags"),
    });
    Ok(code.with_kernels(kernels.collect()))
}

impl TargetHook<CompileLibrary> {
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
        // The texts outlive the call: these are their addresses.
        let input_texts: Vec<*const c_char> = inputs.iter().map(|text| text.as_ptr()).collect();
        let option_texts: Vec<*const c_char> = options.iter().map(|text| text.as_ptr()).collect();
        // SAFETY: it may be called now, by this contract, with C strings and as many as there are.
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
