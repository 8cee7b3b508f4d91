//! `tvmspec call`: runs one function of a compiled library.
//!
//! The command starts itself a second time and calls the function in that process. Compiled code checks few of its arguments, and one
//! of a wrong type can end the process. The first process survives this and explains it.

use super::call_tensor::TensorArgument;
use super::device_argument::Places;
use super::device_mirror::DeviceMirror;
use super::host_array::{HostArray, tensor_text};
use super::input::{self, Input, list_known_names};
use super::output::Content;
use super::output_folder::OutputFolder;
use super::{CliError, Exit, output};
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use tvmspec::blob::container::FileForm;
use tvmspec::blob::rules::BLOB_06;
use tvmspec::conformance::adapter::program_command;
use tvmspec::device::Device;
use tvmspec::examine::NotExaminable;
use tvmspec::examine::explain::{advice, is_image};
use tvmspec::function::{Function, registry};
use tvmspec::module::{self, Library, Module, ModuleKind};
use tvmspec::object::Tensor;
use tvmspec::rule::Strictness;
use tvmspec::value::{
    Any, bytes_bytes, device_from_text, device_to_text, dtype_to_text, index, str_bytes, types,
};

#[derive(clap::Args)]
pub(crate) struct CallArgs {
    /// The library (.so, .dylib, .dll), or a device module with its side file (.cl, .ptx, ...)
    library: PathBuf,
    /// The function, in the library or in one of its imports
    function: String,
    /// Arguments: 42, 1.5, true, none, str:TEXT, dev:cpu:0; @FILE.npy for an input tensor, @FILE.npy:bfloat16 if its elements are raw
    /// bits; out:float32[300] for an output tensor of zeros. After a tensor, :strides=1,2 (in elements), :offset=64 (in bytes) and
    /// :align=4 state its memory layout
    #[arg(allow_negative_numbers = true)]
    args: Vec<String>,
    /// The device of the tensors: cpu, cuda:0, ...; or rpc://HOST:PORT/KEY#cpu:0 to upload the library to a server and run it there;
    /// rpc-tracker:// requests the server from a tracker
    #[arg(long, default_value = "cpu")]
    device: String,
    /// Write output tensor number i to DIR/out_<i>.npy
    #[arg(long, value_name = "DIR")]
    save: Option<PathBuf>,
}

/// The environment variable that marks the second process. Its value is the id of the first process. An environment variable leaves the
/// command line unchanged.
const INNER: &str = "TVMSPEC_CALL_INNER";

/// Calls the function in a second process, because compiled code does not check everything and may crash its process.
///
/// Returns [`Exit::Bad`] if the function fails or a signal ends the second process. Exits with any other exit code of the second
/// process.
pub(crate) fn run(args: CallArgs, words: &[OsString]) -> Result<Exit, CliError> {
    if let Some(outer) = std::env::var_os(INNER) {
        end_with(&outer);
        return call(args);
    }
    // Checked here, because the second process would find another file in place of the closed stdout.
    super::closed_stdout::check()?;
    let status = program_command::command()?
        // Passed as bytes, because a path need not be UTF-8.
        .args(&words[1..])
        .env(INNER, std::process::id().to_string())
        .status()?;
    match status.code() {
        Some(0) => Ok(Exit::Good),
        Some(1) => Ok(Exit::Bad),
        // The second process has printed the reason.
        Some(code) => std::process::exit(code),
        // Without an exit code: a signal ended it, for example a segmentation fault.
        None => {
            output::note(format_args!(
                "`{}` of {} crashed ({status}). Compiled code checks few of its arguments: compare their number, order and types, and how tensors lie in memory (FUN-26 to FUN-30)",
                args.function,
                output::file_name(&args.library)
            ));
            Ok(Exit::Bad)
        }
    }
}

/// Ends this process together with its parent. Without the parent, nobody waits for the call and no signal reaches it.
#[cfg(target_os = "linux")]
fn end_with(outer: &std::ffi::OsStr) {
    use rustix::process::{Signal, getppid, set_parent_process_death_signal};
    // If the kernel does not support this, the call runs to its end.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    // The parent may have ended before the call above. Then no signal follows.
    let parent = getppid().map(|parent| parent.as_raw_pid().to_string());
    if outer.to_str() != parent.as_deref() {
        std::process::exit(2);
    }
}

/// Does nothing: other systems have no such signal.
#[cfg(not(target_os = "linux"))]
fn end_with(_: &std::ffi::OsStr) {}

/// Loads the library, calls the function, prints the result and every out tensor, and saves the out tensors (`--save`).
fn call(args: CallArgs) -> Result<Exit, CliError> {
    // Places are checked before the library is loaded, because loading it runs its initializers.
    let places = Places::resolve(&[&args.device])?;
    let device = places.devices.first().copied().unwrap_or(Device::CPU);
    let module = match places.load(&args.library)? {
        Some(there) => there,
        None => load(&args.library)?,
    };
    let function = find(&module, &args.function)?;
    let passed = args
        .args
        .iter()
        .map(|text| CallArgument::parse(text))
        .collect::<Result<Vec<CallArgument>, CliError>>()?;
    let away: Vec<Option<DeviceMirror>> = passed
        .iter()
        .map(|passed| passed.copy_to_device(device))
        .collect::<Result<_, CliError>>()?;
    // Before the call, so that nothing has run if this fails. The folder is not kept open, because a crash would leave its temporary
    // files.
    if let Some(folder) = &args.save {
        drop(OutputFolder::open(folder, &[])?);
    }
    let views: Vec<_> = passed
        .iter()
        .zip(&away)
        .map(|(passed, away)| {
            away.as_ref()
                .map_or_else(|| passed.value.view(), DeviceMirror::view)
        })
        .collect();
    let result = match function.call_packed(&views) {
        Ok(result) => result,
        Err(error) => {
            // The function ran and returned an error. This is a result, not a failure of the command.
            output::note(error);
            return Ok(Exit::Bad);
        }
    };
    // It is unknown which arguments a function writes, so that every tensor is copied back.
    for away in away.iter().flatten() {
        away.fetch()?;
    }
    let mut out = output::stdout();
    let outs = passed.iter().filter_map(|passed| passed.tensor.as_ref());
    let outs = outs.filter(|tensor| tensor.is_out);
    let outs: Vec<HostArray> = outs
        .map(TensorArgument::content)
        .collect::<Result<_, CliError>>()?;
    // Kernels return None and write to their last arguments. If there are out tensors, "None" is not printed.
    if !result.is_none() || outs.is_empty() {
        writeln!(out, "{}", text_of(&result))?;
    }
    for (index, array) in outs.iter().enumerate() {
        let header = if outs.len() > 1 {
            format!("out_{index}: ")
        } else {
            String::new()
        };
        writeln!(out, "{header}{}", array.text())?;
    }
    if let Some(folder) = &args.save {
        let mut folder = OutputFolder::open(folder, &[])?;
        for (index, array) in outs.iter().enumerate() {
            // Numbered among the out tensors, not among all arguments.
            let name = format!("out_{index}.npy");
            let bytes = array.npy(&name)?;
            folder.write(&name, &bytes, Content::Binary)?;
        }
        folder.finish()?;
    }
    Ok(Exit::Good)
}

/// Loads the library into this process, and prints its oddities to stderr.
fn load(path: &Path) -> Result<Module, CliError> {
    // MOD-01: files with another extension may have their own loader, for example a device module with its side file.
    let extension = path.extension().and_then(|extension| extension.to_str());
    let loader = extension.filter(|last| *last != "so").and_then(|last| {
        let name = format!("ffi.Module.load_from_file.{last}");
        // SAFETY: the function is only looked up, and called only below.
        unsafe { registry::lookup_raw(name.as_bytes()) }
    });
    if loader.is_some() {
        // SAFETY: as below.
        return unsafe { module::load(path) }.map_err(CliError::from_library_error);
    }
    // SAFETY: a user who calls a library by name trusts it, as the help says; `inspect` examines one that is not trusted.
    let loaded = unsafe { module::load_library(path, Strictness::Lenient) };
    let loaded = loaded.map_err(|failed| load_error(path, &failed))?;
    // Releases load libraries with oddities, so that oddities do not prevent the call.
    for finding in &loaded.findings {
        output::note(format_args!("note: {finding}"));
    }
    Ok(loaded.module)
}

/// Says why loading the library at `path` failed, and what to do.
pub(super) fn load_error(path: &Path, failed: &tvmspec::function::Error) -> CliError {
    if let Some(hint) = not_loaded(path) {
        return CliError::Message(hint);
    }
    let reason = failed.reason();
    // The answer of musl's `dlopen` in a static program.
    if reason.contains("Dynamic loading not supported") {
        return CliError::Message(format!(
            "{}: this program is static and cannot load libraries. Use the one that `cargo install` or `pip install` installs",
            output::file_name(path)
        ));
    }
    CliError::Message(match failed.violation() {
        Some(broken) if broken.rule() == BLOB_06 => format!(
            "{}: {reason}. `tvmspec inspect` shows what can be read of it, and a runtime with a loader of that kind runs it",
            output::file_name(path)
        ),
        _ => reason,
    })
}

/// Returns the reason why the file at `path` cannot be loaded, and what to do. Returns `None` if it has the form of a library, or if it
/// cannot be read.
pub(super) fn not_loaded(path: &Path) -> Option<String> {
    let input = Input::open(path).ok()?;
    let form = FileForm::detect(input.bytes());
    if is_image(form) {
        return None;
    }
    let name = output::file_name(path).to_string();
    let subject = match input::subject(&input, path, None) {
        Ok(subject) => subject,
        Err(broken) => {
            return Some(output::escape_line(
                &NotExaminable::broken(&name, &broken).to_string(),
            ));
        }
    };
    if form == FileForm::Unknown {
        return Some(output::escape_line(&subject.not_examinable().to_string()));
    }
    let advice = advice(&subject.file).unwrap_or_else(|| {
        let other = match form {
            FileForm::RawBlob => format!(
                "`tvmspec convert {name} -o lib.so --with OBJECT..` links it with its host code"
            ),
            FileForm::GraphJson => format!(
                "`tvmspec run --graph {name} --lib LIB` runs it, with --params for its weights"
            ),
            FileForm::Params => {
                format!("`tvmspec run --graph GRAPH --params {name} --lib LIB` takes it")
            }
            FileForm::TensorCache => {
                format!("`tvmspec convert {name} -o x.params` makes a parameter file of it")
            }
            FileForm::RelaxVm | FileForm::RelayVm => {
                "it has no kernels: load the library that `export_library` wrote".to_owned()
            }
            _ => format!("`tvmspec explain {name}` says what reads it"),
        };
        format!(
            "its form is {}, and it is no library: {other}",
            form.title()
        )
    });
    Some(format!(
        "{name} is not loaded: {}",
        output::escape_line(&advice)
    ))
}

/// Finds the function in the library or its imports (MOD-08).
fn find(root: &Module, name: &str) -> Result<Function, CliError> {
    if let Some(found) = root.function(name, true).map_err(CliError::new)? {
        return Ok(found);
    }
    let mut message = format!("the library has no function `{name}`");
    let mut known: Vec<String> = root.walk().iter().flat_map(functions).collect();
    known.sort();
    // MOD-08: several modules may export one name, and a look-up finds the first of them.
    known.dedup();
    if !known.is_empty() {
        let listed = list_known_names(name, known.iter().map(String::as_str));
        message.push_str(&format!("; it has: {listed}"));
    }
    if name == "default" && known.iter().any(|known| known.starts_with("tvmgen_")) {
        message.push_str("\nnote: its functions are the operators of a graph: `tvmspec run --graph GRAPH --params PARAMS --lib LIB` runs them");
    }
    for module in root.walk() {
        // MOD-11: a module whose loader is missing here may have the function.
        if let Some(hindrance) = module
            .implementation()
            .and_then(|own| own.why_not_runnable())
        {
            message.push_str(&format!("\nnote: {hindrance}"));
        }
    }
    Err(CliError::Message(message))
}

/// Returns the functions that a library exports. Returns none for a module of another kind, because only its loader knows its names.
fn functions(module: &Module) -> Vec<String> {
    Library::of(module)
        .and_then(ModuleKind::functions)
        .unwrap_or_default()
}

/// One argument, and the tensor in it if it is one.
struct CallArgument {
    /// The value that the function is called with, unless the tensor is copied to a device.
    value: Any,
    /// The tensor in `value`, shared with it, so that writes of the function are visible here.
    tensor: Option<TensorArgument>,
}

impl CallArgument {
    /// Parses an argument. Prefixes (`@`, `str:`, `out:`) are checked before numbers and words, so that `str:42` is a text.
    fn parse(text: &str) -> Result<CallArgument, CliError> {
        let plain = |value: Any| {
            Ok(CallArgument {
                value,
                tensor: None,
            })
        };
        let of_tensor = |tensor: TensorArgument| CallArgument {
            value: tensor.passed.clone().into(),
            tensor: Some(tensor),
        };
        if let Some(path) = text.strip_prefix('@') {
            return TensorArgument::of_file(path).map(of_tensor);
        }
        if let Some(text) = text.strip_prefix("str:") {
            return plain(text.into());
        }
        if let Some(form) = text.strip_prefix("out:") {
            return TensorArgument::of_form(form).map(of_tensor);
        }
        match text {
            "true" => return plain(true.into()),
            "false" => return plain(false.into()),
            "none" => return plain(Any::none()),
            _ => {}
        }
        if let Ok(number) = text.parse::<i64>() {
            return plain(number.into());
        }
        // As a float it would silently lose digits.
        let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
        if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(CliError::Message(format!(
                "`{text}` is beyond 64 bits: an integer is from {} to {}",
                i64::MIN,
                i64::MAX
            )));
        }
        if let Some(device) = text.strip_prefix("dev:") {
            return plain(device_from_text(device).map_err(CliError::new)?.into());
        }
        // Last, because Rust also parses `inf`, `infinity` and `nan` as floats. They are floats here too.
        match text.parse::<f64>() {
            Ok(number) => plain(number.into()),
            Err(_) => Err(CliError::Message(format!(
                "`{text}` is not an argument: write 42, 1.5, true, none, str:{text}, dev:cpu:0, @{text}.npy or out:float32[300]"
            ))),
        }
    }
}

impl CallArgument {
    /// Copies the argument to `device` if it is a tensor. Returns `None` for any other value, and if the device is the CPU.
    fn copy_to_device(&self, device: Device) -> Result<Option<DeviceMirror>, CliError> {
        if device.kind == Device::CPU.kind {
            return Ok(None);
        }
        // Applies to tensors of `@FILE` and of `out:`, because a kernel expects all of them on one device.
        let Some(tensor) = &self.tensor else {
            return Ok(None);
        };
        let bits = u32::from(tensor.passed.dl().dtype.bits);
        if tensor.is_placed() || !bits.is_multiple_of(8) {
            let message = "strides, offset, align and elements of less than a byte are for the CPU: a device gets compact tensors of whole bytes";
            return Err(CliError::new(message));
        }
        DeviceMirror::new(&tensor.passed, device).map(Some)
    }
}

/// Formats the result as Python prints it. An object that is neither a tensor nor a sequence is shown as the name of its type.
fn text_of(value: &Any) -> String {
    let view = value.view();
    // Each arm reads the part of the value that its type index selects (VAL-01).
    let raw = value.as_raw();
    match value.type_index() {
        index::NONE => "None".to_owned(),
        index::INT => raw.int().to_string(),
        index::BOOL => if raw.int() != 0 { "True" } else { "False" }.to_owned(),
        index::FLOAT => format!("{:?}", raw.float()),
        index::DATA_TYPE => dtype_to_text(raw.dtype()).unwrap_or_else(|error| error.to_string()),
        index::DEVICE => device_to_text(raw.device()),
        index::OPAQUE => format!("{:p}", raw.ptr()),
        index::SMALL_STR | index::STR => {
            // A string of compiled code may be invalid UTF-8.
            String::from_utf8_lossy(str_bytes(&view).unwrap_or_default()).into_owned()
        }
        index::SMALL_BYTES | index::BYTES => format!(
            "b\"{}\"",
            bytes_bytes(&view).unwrap_or_default().escape_ascii()
        ),
        index::TENSOR => match <Tensor as tvmspec::value::Argument>::try_from_view(view) {
            Some(tensor) => tensor_text(&tensor),
            None => "a tensor".to_owned(),
        },
        other => match tvmspec::object::sequence_of(view) {
            Some(items) => {
                let items: Vec<String> = items.iter().map(text_of).collect();
                format!("[{}]", items.join(", "))
            }
            None => format!("an object of type {}", types::key_of(other)),
        },
    }
}
