//! `tvmspec extract FILE INDEX -o OUT`: writes the payload of one module.

use super::input::Input;
use super::library::LibraryChoice;
use super::output::{self, Content};
use super::output_folder::OutputFolder;
use super::{CliError, Exit};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tvmspec::blob::{LibraryModule, PartialBlob};
use tvmspec::file_name::FileNames;
use tvmspec::payload::{Field, Payload};
use tvmspec::release::{Layout, Releases};

#[derive(clap::Args)]
pub(crate) struct ExtractArgs {
    /// The file, or - for stdin
    file: PathBuf,
    /// The module: its number as `inspect` shows it, or its kind if only one module has it
    module: String,
    /// The file to write; a folder for several kernels [default: stdout]
    #[arg(
        short,
        long,
        value_name = "OUT",
        default_value = "-",
        hide_default_value = true
    )]
    output: PathBuf,
    /// Write the payload as it is stored
    #[arg(long, conflicts_with_all = ["json", "field", "kernel"])]
    raw: bool,
    /// Write the decoded payload, in the JSON form of chapter payload
    #[arg(long, conflicts_with_all = ["field", "kernel"])]
    json: bool,
    /// Write one field of the payload, such as `graph_json`
    #[arg(long, value_name = "NAME", conflicts_with = "kernel")]
    field: Option<String>,
    /// Write one kernel of a module that has several
    #[arg(long, value_name = "NAME")]
    kernel: Option<String>,
    /// Read the library binary in this layout, even if symbol and bytes indicate another one
    #[arg(long, value_name = "0.2|0.7|0.21|0.22")]
    layout: Option<Layout>,
    /// The number of the library binary, from 0, if the file has several
    #[arg(long, value_name = "N")]
    blob: Option<usize>,
}

/// Writes the payload of one module of the library binary.
pub(crate) fn run(args: ExtractArgs) -> Result<Exit, CliError> {
    let input = Input::open(&args.file)?;
    let choice = LibraryChoice {
        input: &input,
        layout: args.layout,
        blob: args.blob,
    };
    choice.with_partial_blob(|_, partial| extract(&args, &input, &partial))
}

/// Writes the part that the options select: the stored bytes (`--raw`), the JSON form (`--json`), one field, or the code.
///
/// A broken rule after the module does no harm: `partial` has everything before it (BLOB-06). If the module is missing, the message
/// names the rule that ended reading.
fn extract(args: &ExtractArgs, input: &Input, partial: &PartialBlob<'_>) -> Result<Exit, CliError> {
    let modules = &partial.blob.modules;
    let (index, module) = find(&args.module, modules).map_err(|message| match &partial.broken {
        Some(broken) => CliError::new(format!(
            "{message}; reading stopped at a broken rule: {broken}"
        )),
        None => CliError::new(message),
    })?;
    let Some(module) = module.stored() else {
        return Err(CliError::new(format!(
            "module {index} is the host library: it has no payload, its code is {} itself",
            input.line()
        )));
    };
    // Before decoding, so that a payload that breaks a rule can be written too.
    if args.raw {
        output::write(&args.output, &module.payload, Content::Binary)?;
        return Ok(Exit::Good);
    }
    let decoded = module
        .decode()
        .map_err(|broken| CliError::new(format!("{broken}; --raw writes the bytes as they are")))?;
    let payload = decoded.value;
    if args.json {
        // TEN-02: programs read this form, and they read types by the newest names.
        let era = partial.blob.layout.releases();
        for (newest, name) in renamed_types(&payload, era) {
            output::note(format_args!(
                "note: `{newest}` in this form is {name} in the releases of layout {}",
                partial.blob.layout
            ));
        }
        let text = output::json_text(&payload.to_json())?;
        output::write(&args.output, text.as_bytes(), Content::Text)?;
        return Ok(Exit::Good);
    }
    if let Some(name) = &args.field {
        return write(&args.output, field(&payload, name)?);
    }
    code(args, index, &payload)
}

/// Finds the module with this number, counted from 0, or of this kind. Returns its number too.
fn find<'m, 'a>(
    wanted: &str,
    modules: &'m [LibraryModule<'a>],
) -> Result<(usize, &'m LibraryModule<'a>), String> {
    // Numbers are tried first, because no kind of a release consists of digits only.
    if let Ok(index) = wanted.parse::<usize>() {
        let module = modules.get(index);
        return module.map(|module| (index, module)).ok_or_else(|| {
            format!(
                "there is no module {index}: {} were read, counted from 0",
                modules.len()
            )
        });
    }
    let mut found = modules
        .iter()
        .enumerate()
        .filter(|(_, module)| module.kind() == wanted);
    match (found.next(), found.next()) {
        (Some(module), None) => Ok(module),
        // Choosing one of them would be a guess.
        (Some(_), Some(_)) => Err(format!(
            "several modules are `{wanted}`; give the number that `tvmspec inspect` shows"
        )),
        (None, _) => {
            let kinds: Vec<&str> = modules.iter().map(LibraryModule::kind).collect();
            Err(format!(
                "no module is `{wanted}`: there are {}",
                kinds.join(", ")
            ))
        }
    }
}

/// Writes the code: one piece, one kernel of several, or every kernel into a folder. `index` is the number of the module, for messages.
fn code(args: &ExtractArgs, index: usize, payload: &Payload<'_>) -> Result<Exit, CliError> {
    // Empty for kinds that store all kernels in one piece, such as CUDA. Vulkan, for example, stores each kernel separately.
    let kernels: Vec<(&str, &[u8])> = payload.kernels().collect();
    if let Some(name) = &args.kernel {
        let found = kernels.iter().find(|(kernel, _)| kernel == name);
        return match found {
            Some((_, code)) => write(&args.output, code),
            None if kernels.is_empty() => Err(CliError::new(format!(
                "module {index} keeps its kernels in one piece; leave --kernel out"
            ))),
            None => Err(CliError::new(format!(
                "module {index} has no kernel `{name}`: there are {}",
                names(&kernels)
            ))),
        };
    }
    // All kernels are in one piece: PTX, OpenCL source, a cubin.
    if let Some(code) = payload.data() {
        return write(&args.output, code);
    }
    match kernels.as_slice() {
        [] => Err(CliError::new(format!(
            "module {index}, a {}, stores no code; --json shows all of it, --raw its bytes, --field NAME one of {}",
            payload.kind(),
            fields(payload)
        ))),
        // A single kernel needs no folder.
        [(_, code)] if !is_folder(&args.output) => write(&args.output, code),
        kernels if is_folder(&args.output) => {
            let mut folder = OutputFolder::open(&args.output, &[])?;
            let mut names = FileNames::default();
            let extension = extension(payload);
            for (kernel, code) in kernels {
                let name = names.add(kernel, extension);
                if name != format!("{kernel}.{extension}") {
                    output::note(format_args!(
                        "note: kernel `{}` is in {name}",
                        output::escape_line(kernel)
                    ));
                }
                folder.write(&name, code, Content::Binary)?;
            }
            folder.finish()?;
            Ok(Exit::Good)
        }
        kernels => Err(CliError::new(format!(
            "module {index} has {} kernels: give a folder (-o DIR/), or --kernel and one of {}",
            kernels.len(),
            names(kernels)
        ))),
    }
}

/// Returns the types of a payload whose newest name, which its JSON form uses, differs from their name in the releases of `era`.
fn renamed_types(payload: &Payload<'_>, era: Releases) -> BTreeMap<String, String> {
    let types = payload.dtypes().into_iter();
    let named = types.filter_map(|dtype| Some((dtype.to_string(), dtype.name_in(era)?)));
    named.filter(|(newest, name)| newest != name).collect()
}

/// Returns the bytes of a field that is text or bytes.
fn field<'p>(payload: &'p Payload<'_>, name: &str) -> Result<&'p [u8], CliError> {
    match payload.field(name) {
        Some(Field::Text(text)) => Ok(text.as_bytes()),
        Some(Field::Bytes(bytes)) => Ok(bytes),
        Some(_) => Err(CliError::new(format!(
            "`{name}` is neither text nor bytes; --json shows it"
        ))),
        None => Err(CliError::new(format!(
            "a {} has no field `{name}`: there are {}",
            payload.kind(),
            fields(payload)
        ))),
    }
}

/// Lists the names of its fields, for a message.
fn fields(payload: &Payload<'_>) -> String {
    match payload {
        Payload::Known(known) => {
            let names: Vec<&str> = known.form().slots.iter().map(|slot| slot.name).collect();
            names.join(", ")
        }
        Payload::Opaque { .. } => "none".into(),
    }
}

/// Lists the names of the kernels, for a message.
fn names(kernels: &[(&str, &[u8])]) -> String {
    let names: Vec<&str> = kernels.iter().map(|(name, _)| *name).collect();
    names.join(", ")
}

/// Returns the file extension for one kernel, without the dot: the format that the payload states, which is the usual extension (`ptx`,
/// `cl`, `metal`).
fn extension<'p>(payload: &'p Payload<'_>) -> &'p str {
    match (payload.kind(), payload.format()) {
        // The payloads of these two state no format that is an extension. Their code is SPIR-V and WGSL.
        ("vulkan", _) => "spv",
        ("webgpu", _) => "wgsl",
        (_, Some(format)) => format,
        _ => "bin",
    }
}

/// Writes code. Source may go to a terminal, machine code may not. Source is UTF-8 without NUL, such as PTX.
fn write(path: &Path, code: &[u8]) -> Result<Exit, CliError> {
    let text = std::str::from_utf8(code).is_ok_and(|text| !text.contains('\0'));
    // The bytes decide and not the format, because the file may state any text as its format.
    let content = if text { Content::Text } else { Content::Binary };
    output::write(path, code, content)?;
    Ok(Exit::Good)
}

/// Returns whether the output is a folder, or is to become one because its name ends with a separator.
fn is_folder(path: &Path) -> bool {
    path.is_dir() || path.as_os_str().to_string_lossy().ends_with(['/', '\\'])
}
